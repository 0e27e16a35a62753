"""Streams of the Responses format whose events come twice, late, or not at all."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._providers.openai_responses.decode import decode
from llm_provider._providers.openai_responses.stream import Assembler
from llm_provider._types.messages import delta_of

PIECES = ("ha", "ha", " ", "ha", "!", "ha")
ARGUMENTS = ('{"a"', ": ", "1", "}")


def stream() -> list[dict[str, Any]]:
    """A numbered stream of a text whose pieces repeat, and of a call."""
    message = {"type": "message", "content": [{"type": "output_text", "text": "".join(PIECES)}]}
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "".join(ARGUMENTS)}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {}},
        {"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}},
        *({"type": "response.output_text.delta", "output_index": 0, "delta": piece} for piece in PIECES),
        {"type": "response.output_item.done", "output_index": 0, "item": message},
        {"type": "response.output_item.added", "output_index": 1, "item": {**call, "arguments": ""}},
        *(
            {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": piece}
            for piece in ARGUMENTS
        ),
        {"type": "response.output_item.done", "output_index": 1, "item": call},
        {
            "type": "response.completed",
            "response": {"object": "response", "status": "completed", "output": [message, call]},
        },
    ]
    return [{**event, "sequence_number": number} for number, event in enumerate(events)]


def check(events: list[dict[str, Any]]) -> None:
    """The deltas of the events are the answer that they end with."""
    assembler = Assembler()
    deltas = [delta_of(assembler.feed(event)) for event in events]
    assert assembler.is_complete()
    choice = decode(assembler.reply()).choices[0]
    assert "".join(delta.text for delta in deltas) == choice.text == "".join(PIECES)
    calls = [call for delta in deltas for call in delta.tool_calls]
    assert "".join(call.id for call in calls) == choice.tool_calls[0].id == "c"
    assert "".join(call.name for call in calls) == choice.tool_calls[0].name == "f"
    assert "".join(call.arguments for call in calls) == choice.tool_calls[0].arguments == "".join(ARGUMENTS)
    assert {call.index for call in calls} == {0}


@given(st.permutations(range(len(stream()) - 1)), st.lists(st.integers(0, len(stream()) - 2), max_size=8))
def test_deltas_are_the_answer_in_every_order(order: list[int], again: list[int]) -> None:
    events = stream()
    check([*(events[number] for number in order), *(events[number] for number in again), events[-1]])


@given(st.sets(st.integers(0, len(stream()) - 2)), st.data())
def test_deltas_are_the_answer_where_events_are_lost_or_copied(lost: set[int], data: st.DataObject) -> None:
    events = [event for event in stream() if event["sequence_number"] not in lost]
    copied = data.draw(st.lists(st.sampled_from(events), max_size=4))
    # Each copy comes directly after its event.
    check([event for original in events for event in [original] * (1 + copied.count(original))])


@given(st.integers(-2, 2))
def test_equal_numbers_are_no_order(number: int) -> None:
    check([{**event, "sequence_number": number} for event in stream()])
