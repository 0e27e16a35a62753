"""Streams of Gemini's as the replies that they add up to."""

import itertools
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemini_payloads import JSON_VALUES, PIECES, reply
from llm_provider._errors import APIResponseValidationError, InternalServerError, LLMError
from llm_provider._providers.gemini.assembler import Assembler
from llm_provider._providers.gemini.decode import decode
from llm_provider._types.logprobs import TokenLogprob
from llm_provider._types.messages import Delta, ToolCall, ToolCallDelta, delta_of


@given(st.lists(PIECES, max_size=3))
def test_no_stream_breaks_the_assembler(events: list[Any]) -> None:
    assembler = Assembler()
    with suppress(LLMError):
        for event in events:
            assembler.feed(event)
        decode(assembler.reply())


def cut_text(draw: st.DrawFn, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """A text part as pieces of it; its signature comes with the last piece or with an empty one after it."""
    if "functionCall" in entry:
        return [entry]
    plain = {name: value for name, value in entry.items() if name != "thoughtSignature"}
    text = entry["text"]
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    bounds = [0, *places, len(text)]
    pieces = [{**plain, "text": text[a:b]} for a, b in itertools.pairwise(bounds)]
    if "thoughtSignature" in entry:
        if draw(st.booleans()):
            pieces.append({**plain, "text": ""})
        pieces[-1] = {**pieces[-1], "thoughtSignature": entry["thoughtSignature"]}
    return pieces


@st.composite
def replies_and_streams(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """An answer, and events that add up to it."""
    thought = draw(st.none() | st.text(max_size=12))
    text = draw(st.none() | st.text(max_size=12))
    calls = draw(st.lists(st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=2), max_size=2))
    parts: list[dict[str, Any]] = []
    if thought is not None:
        parts.append({"text": thought, "thought": True})
    if text is not None:
        parts.append({"text": text} | ({"thoughtSignature": "c2ln"} if draw(st.booleans()) else {}))
    parts += [{"functionCall": {"name": "f", "args": args}, "thoughtSignature": "c2ln"} for args in calls]
    head = {"responseId": "r", "modelVersion": "m"}
    candidate = {"content": {"role": "model"}, "index": 0, "finishReason": "STOP"}
    usage = {"promptTokenCount": 5, "candidatesTokenCount": 9}
    if parts:
        candidate["content"] = {"role": "model", "parts": parts}
    whole = {"candidates": [candidate], "usageMetadata": usage, **head}
    pieces = [piece for entry in parts for piece in cut_text(draw, entry)]
    events: list[dict[str, Any]] = []
    while pieces:
        size = draw(st.integers(1, len(pieces)))
        content = {"role": "model", "parts": pieces[:size]}
        counts = {"promptTokenCount": 5, "candidatesTokenCount": 1}
        events.append({"candidates": [{"content": content, "index": 0}], "usageMetadata": counts, **head})
        pieces = pieces[size:]
    if events and draw(st.booleans()):
        events[-1]["candidates"][0]["finishReason"] = "STOP"
        events[-1]["usageMetadata"] = usage
    else:
        last = {"content": {"role": "model"}, "index": 0, "finishReason": "STOP"}
        events.append({"candidates": [last], "usageMetadata": usage, **head})
    return whole, events


@given(replies_and_streams())
def test_a_stream_adds_up_to_the_answer_however_it_is_cut(
    both: tuple[dict[str, Any], list[dict[str, Any]]],
) -> None:
    whole, events = both
    assembler = Assembler()
    deltas = [delta_of(assembler.feed(event)) for event in json.loads(json.dumps(events))]
    assembled = assembler.reply()
    assert assembled == whole
    choice = decode(whole).choices[0]
    assert "".join(delta.text for delta in deltas) == choice.text
    assert "".join(delta.reasoning for delta in deltas) == choice.reasoning
    calls = [call for delta in deltas for call in delta.tool_calls]
    assert calls == [
        ToolCallDelta(index=index, id=call.id, name=call.name, arguments=call.arguments)
        for index, call in enumerate(choice.tool_calls)
    ]


def test_samples_of_a_stream_are_kept_apart_and_the_first_is_shown() -> None:
    assembler = Assembler()
    shown = [
        assembler.feed({"candidates": [{"content": {"parts": [{"text": text}]}, "index": index, **end}]})
        for text, index, end in [
            ("a", 0, {}),
            ("x", 1, {}),
            ("b", 0, {"finishReason": "STOP"}),
            ("y", 1, {"finishReason": "STOP"}),
        ]
    ]
    assert shown == ["a", "", "b", ""]
    assert [choice.text for choice in decode(assembler.reply()).choices] == ["ab", "xy"]


def test_log_probabilities_of_a_stream_add_up() -> None:
    assembler = Assembler()
    for token, end in (("a", {}), ("b", {"finishReason": "STOP"})):
        result = {"chosenCandidates": [{"token": token}], "topCandidates": [{"candidates": []}]}
        assembler.feed({"candidates": [{"content": {}, "logprobsResult": result, **end}]})
    found = decode(assembler.reply()).choices[0].logprobs
    assert found == (TokenLogprob(token="a", logprob=0.0), TokenLogprob(token="b", logprob=0.0))


@pytest.mark.parametrize("events", [[], [{}], [reply({"text": "x"}, finish=None)], [{"usageMetadata": {}}]])
def test_a_stream_without_its_end_is_no_answer(events: list[dict[str, Any]]) -> None:
    assembler = Assembler()
    for event in events:
        assembler.feed(event)
    with pytest.raises(APIResponseValidationError, match="cut"):
        assembler.reply()


def test_a_blocked_prompt_in_a_stream() -> None:
    assembler = Assembler()
    assembler.feed({"promptFeedback": {"blockReason": "SAFETY"}})
    assert decode(assembler.reply()).choices[0].finish_reason == "content_filter"


def test_an_error_event_ends_the_stream() -> None:
    with pytest.raises(InternalServerError):
        Assembler().feed({"error": {"status": "INTERNAL", "message": "oops"}})


def fed(*events: dict[str, Any]) -> tuple[Any, list[Delta]]:
    """The reply of a stream, and its deltas."""
    assembler = Assembler()
    deltas = [delta_of(assembler.feed(event)) for event in json.loads(json.dumps(events))]
    return assembler.reply(), deltas


def event(*candidates: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"candidates": list(candidates), **fields}


def piece(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": list(parts)}, **fields}


END = {"content": {"role": "model"}, "finishReason": "STOP"}


def shown_calls(deltas: list[Delta]) -> tuple[ToolCall, ...]:
    calls: dict[int, dict[str, str]] = {}
    for call in (call for delta in deltas for call in delta.tool_calls):
        known = calls.setdefault(call.index, {"id": "", "name": "", "arguments": ""})
        for name in known:
            known[name] += getattr(call, name)
    return tuple(ToolCall(**call) for _, call in sorted(calls.items()))


def test_pieces_of_one_candidate_in_one_event_are_all_shown() -> None:
    whole, deltas = fed(event(piece({"text": "Hel"}), piece({"text": "lo"}), END))
    assert [delta.text for delta in deltas] == [decode(whole).choices[0].text] == ["Hello"]
    thought = {"text": "Hm", "thought": True}
    call = {"functionCall": {"name": "f", "args": {}}}
    whole, deltas = fed(event(piece(thought), piece({"text": "a"}), piece(call), END))
    assert (deltas[0].reasoning, deltas[0].text) == ("Hm", "a")
    assert shown_calls(deltas) == decode(whole).choices[0].tool_calls


def test_a_single_candidate_with_another_number_is_shown() -> None:
    whole, deltas = fed(event(piece({"text": "Hello"}, index=1)), event({**END, "index": 1}))
    assert "".join(delta.text for delta in deltas) == decode(whole).choices[0].text == "Hello"


@pytest.mark.parametrize("first", [{}, {"responseId": "r0"}])
def test_a_call_keeps_its_id_when_the_id_of_the_answer_comes_later(first: dict[str, str]) -> None:
    call = {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "c2ln"}
    whole, deltas = fed(event(piece(call), **first), event(piece(call)), event(END, responseId="r1"))
    answer = decode(whole)
    assert answer.id == "r1"
    assert shown_calls(deltas) == answer.choices[0].tool_calls
    assert [part["thoughtSignature"] for part in whole["candidates"][0]["content"]["parts"]] == ["c2ln"] * 2


CODE = {"executableCode": {"language": "PYTHON", "code": "print(11111 * 1097)"}}
CALL = {"functionCall": {"name": "weather", "args": {"city": "Bern"}}}
RESULT = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "12193263"}}
FINISHED = st.sampled_from([{}, {"finishReason": "STOP"}])


@given(
    st.lists(
        st.tuples(st.sampled_from([CODE, RESULT, {"text": "one "}, {"text": "two"}, CALL]), FINISHED),
        min_size=1, max_size=8,
    )
)  # fmt: skip
def test_the_answer_goes_on_after_a_finish_reason(told: Any) -> None:
    """With code execution, Gemini 2.5 ends several events of an answer with STOP."""
    told = [({"text": "begun "}, {"finishReason": "STOP"}), *told]
    events = [event(piece(dict(part), **end)) for part, end in told]
    whole, deltas = fed(*events, event(usageMetadata={"promptTokenCount": 3}))
    streamed = decode(whole).choices[0]
    parts: list[Any] = []
    for part, _ in told:
        if "text" in part and parts and "text" in parts[-1]:
            parts[-1] = {"text": parts[-1]["text"] + part["text"]}
        else:
            parts.append(part)
    assert streamed == decode(event(piece(*parts, finishReason="STOP"))).choices[0]
    assert "".join(delta.text for delta in deltas) == streamed.text
    assert sum(len(delta.tool_calls) for delta in deltas) == len(streamed.tool_calls)


def test_a_finish_reason_in_every_event() -> None:
    whole, deltas = fed(*[event(piece({"text": text}, finishReason="STOP")) for text in ("Hel", "lo")])
    assert "".join(delta.text for delta in deltas) == decode(whole).choices[0].text == "Hello"


def test_an_answer_is_whole_with_its_finish_reason() -> None:
    assembler = Assembler()
    states = []
    for one in (event(piece({"text": "x"})), event(END), event(usageMetadata={})):
        assembler.feed(one)
        states.append((assembler.is_whole(), assembler.is_complete()))
    assert states == [(False, False), (True, False), (True, False)]


def argument(path: str, more: bool = False, **value: Any) -> dict[str, Any]:
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


def call_part(*pieces: dict[str, Any], more: bool = True, **fields: Any) -> dict[str, Any]:
    call = {**fields, **({"partialArgs": list(pieces)} if pieces else {})}
    return {"functionCall": {**call, **({"willContinue": True} if more else {})}}


def test_arguments_that_are_streamed() -> None:
    begun = {**call_part(name="plan", id="wire-1"), "thoughtSignature": "c2ln"}
    whole, deltas = fed(
        event(piece({"text": "I plan"}), responseId="r1"),
        event(piece(begun)),
        event(piece(call_part(argument("$.city", more=True, stringValue="Be")))),
        event(piece(call_part(argument("$.city", stringValue="rn")))),
        event(piece(call_part(argument("$.days", numberValue=2), argument("$.night", boolValue=False)))),
        event(piece(call_part(argument("$.stops[0].name", stringValue="Zoo")))),
        event(piece(call_part(argument("$['stops'][1].name", nullValue="NULL_VALUE")))),
        event(piece(call_part(more=False))),
        event(piece(call_part(argument("$.x", numberValue=1), more=False, name="other"))),
        event(END),
    )
    choice = decode(whole).choices[0]
    arguments = {"city": "Bern", "days": 2, "night": False, "stops": [{"name": "Zoo"}, {"name": None}]}
    assert choice.tool_calls[0].parsed_arguments == arguments
    assert [(call.id, call.name) for call in choice.tool_calls] == [
        ("wire-1", "plan"),
        ("call_r1_1", "other"),
    ]
    assert choice.tool_calls[1].parsed_arguments == {"x": 1}
    assert shown_calls(deltas) == choice.tool_calls
    assert "".join(delta.text for delta in deltas) == choice.text == "I plan"
    assert whole["candidates"][0]["content"]["parts"][1] == {
        "functionCall": {"name": "plan", "id": "wire-1", "args": arguments},
        "thoughtSignature": "c2ln",
    }


@pytest.mark.parametrize("last", [END, piece({"text": "done"}, finishReason="STOP")])
def test_streamed_arguments_end_with_the_next_part_or_the_answer(last: dict[str, Any]) -> None:
    begun = call_part(argument("$.a", stringValue="b"), name="f")
    whole, deltas = fed(event(piece(begun)), event(last))
    choice = decode(whole).choices[0]
    assert shown_calls(deltas) == choice.tool_calls
    assert choice.tool_calls[0].parsed_arguments == {"a": "b"}


@pytest.mark.parametrize("path", ["$", "", None, "a", "$.a[7]", "$[0]", "$.a.b.c"])
def test_a_piece_of_arguments_without_a_place(path: Any) -> None:
    pieces = [argument("$.a.b", stringValue="x"), argument(path, stringValue="y")]
    with pytest.raises(APIResponseValidationError):
        fed(event(piece(call_part(*pieces, name="f"))))


def test_a_stream_that_comes_again_is_read_once() -> None:
    events = [
        reply({"text": text}, finish=finish, usageMetadata={"promptTokenCount": 3, "candidatesTokenCount": n})
        for n, (text, finish) in enumerate((("ha", None), ("ha", "STOP")), 1)
    ]
    # Some models give each event a finish reason.
    for told in (events, [{**event, "candidates": events[1]["candidates"]} for event in events]):
        assembler = Assembler()
        shown = "".join(delta_of(assembler.feed(event)).text for event in [*told, *told])
        assert shown == decode(assembler.reply()).choices[0].text == "haha"


def test_equal_events_without_counts_are_pieces_of_an_answer() -> None:
    assembler = Assembler()
    for _ in range(2):
        assembler.feed(reply({"text": "ha"}))
    assert decode(assembler.reply()).choices[0].text == "haha"


def piece_of(*parts: dict[str, Any], **others: Any) -> dict[str, Any]:
    """An event of one candidate; `others` are fields of the candidate."""
    content = {"content": {"role": "model", "parts": list(parts)}}
    return {"candidates": [{**content, **others}], "usageMetadata": {"promptTokenCount": 3}}


@given(
    st.lists(
        st.sampled_from(
            [
                piece_of({"text": "Hel"}),
                piece_of({"text": "lo"}, index=0),
                piece_of({"text": ""}),
                piece_of({"text": "Hm.", "thought": True}),
                piece_of({"text": "", "thoughtSignature": "c2ln"}),
                piece_of({"text": "a"}, {"text": "b"}),
                piece_of({"functionCall": {"name": "f", "args": {}}}),
                piece_of({"text": "end"}, finishReason="STOP"),
                piece_of({"text": "x"}, groundingMetadata={"webSearchQueries": ["bern"]}),
                {**piece_of({"text": "y"}), "responseId": "r", "usageMetadata": None},
            ]
        ),
        max_size=8,
    )
)
def test_a_stream_of_one_sample_is_read_like_one_of_several(events: list[dict[str, Any]]) -> None:
    one, several = Assembler(), Assembler()
    end = piece_of({"text": "."}, finishReason="STOP")
    for told in [*events, end]:
        whole = delta_of(one.feed(told))
        piece = [delta_of(step) for step in several.feed_samples(told)]
        assert (whole.text, whole.reasoning) == (
            "".join(delta.text for delta in piece),
            "".join(delta.reasoning for delta in piece),
        )
    assert one.reply() == several.reply()
