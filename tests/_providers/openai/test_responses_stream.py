"""Streams of the Responses format whose events come twice, late, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import APIResponseValidationError
from llm_provider._providers.openai import responses
from llm_provider._providers.openai.responses_stream import Assembler
from llm_provider._types.messages import delta_of

PIECES = ("ha", "ha", " ", "ha", "!", "ha")
ARGUMENTS = ('{"a"', ": ", "1", "}")


def stream() -> list[dict[str, Any]]:
    """A numbered stream of a text whose pieces repeat, and of a call."""
    text = {"type": "output_text", "text": "".join(PIECES)}
    message = {"type": "message", "content": [text]}
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
    choice = responses.decode(assembler.reply()).choices[0]
    assert "".join(delta.text for delta in deltas) == choice.text == "".join(PIECES)
    calls = [call for delta in deltas for call in delta.tool_calls]
    assert "".join(call.id for call in calls) == choice.tool_calls[0].id == "c"
    assert "".join(call.name for call in calls) == choice.tool_calls[0].name == "f"
    assert "".join(call.arguments for call in calls) == choice.tool_calls[0].arguments == "".join(ARGUMENTS)
    assert {call.index for call in calls} == {0}


def changed(place: int, **item: Any) -> list[dict[str, Any]]:
    """The stream, with another item in one of its events."""
    events = stream()
    events[place] = {**events[place], "item": {**events[place]["item"], **item}}
    return events


BEGINNING_OF_THE_CALL = len(PIECES) + 3


def read(events: list[dict[str, Any]]) -> tuple[Any, list[tuple[str, str, str]]]:
    """The choice of a stream, and the calls that its deltas have shown."""
    assembler, shown = Assembler(), {}
    for event in events:
        for call in delta_of(assembler.feed(event)).tool_calls:
            before = shown.get(call.index, ("", "", ""))
            parts = (call.id, call.name, call.arguments)
            shown[call.index] = tuple(map("".join, zip(before, parts, strict=True)))
    return responses.decode(assembler.reply()).choices[0], list(shown.values())


@pytest.mark.parametrize("item", [{"call_id": "other"}, {"call_id": None}, {"name": None}, {"name": ""}])
def test_a_call_is_shown_as_it_is_returned(item: dict[str, Any]) -> None:
    """Some servers give a call another id at its end, or say its name there only."""
    choice, shown = read(changed(BEGINNING_OF_THE_CALL, **item))
    (call,) = choice.tool_calls
    assert shown == [(call.id, call.name, call.arguments)]
    assert (call.id, call.name) == ("c", "f")
    kept = choice.message["provider_specific_fields"]["content"]
    assert kept[-1]["call_id"] == choice.message["tool_calls"][0]["id"] == call.id


def test_another_call_than_was_shown_is_no_answer() -> None:
    extra = {"output_index": 7, "item": {"type": "function_call", "call_id": "d", "name": "g"}}
    more = [{"type": "response.output_item.added", **extra}, *stream()]
    more = [{name: value for name, value in event.items() if name != "sequence_number"} for event in more]
    for events in (changed(BEGINNING_OF_THE_CALL, name="g"), more):
        with pytest.raises(APIResponseValidationError, match="not those of its final answer") as caught:
            read(events)
        assert not caught.value.retryable


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


def test_a_server_need_not_say_the_places_of_its_items() -> None:
    check([{name: value for name, value in event.items() if name != "output_index"} for event in stream()])


@pytest.mark.parametrize("output", [[], None])
def test_an_answer_of_deltas_alone(output: Any) -> None:
    events = stream()
    last = {**events[-1], "response": {"status": "completed", "output": output}}
    check([*events[:-1], last])
    assembler = Assembler()
    for event in [*events[:8], last]:
        assembler.feed(event)
    assert responses.decode(assembler.reply()).choices[0].text == "".join(PIECES)


@pytest.mark.parametrize("place", [2, 10])
def test_other_deltas_than_the_answer(place: int) -> None:
    events = [{**event, "sequence_number": None} for event in stream()]
    events[place]["delta"] = "other"
    with pytest.raises(APIResponseValidationError, match="not those of its final answer"):
        check(events)


def test_arguments_may_be_written_with_other_spaces() -> None:
    events = stream()
    events[-1]["response"]["output"][1] = {**events[-1]["response"]["output"][1], "arguments": '{"a":1}'}
    assembler = Assembler()
    for event in events:
        assembler.feed(event)
    assert responses.decode(assembler.reply()).choices[0].tool_calls[0].arguments == '{"a":1}'


@pytest.mark.parametrize("in_last", [True, False])
@pytest.mark.parametrize("first", ["other", "", None, "c"])
def test_the_finished_item_says_the_id_of_a_call(first: Any, in_last: bool) -> None:
    events = changed(BEGINNING_OF_THE_CALL, call_id=first)
    if not in_last:
        events[-1] = {**events[-1], "response": {**events[-1]["response"], "output": []}}
    choice, shown = read(events)
    (call,) = choice.tool_calls
    assert (call.id, choice.message["tool_calls"][0]["id"]) == ("c", "c")
    assert shown == [(call.id, call.name, call.arguments)]
