"""Streams of Gemini's as the replies that they add up to."""

import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._providers.gemini.decode import decode
from llm_provider._providers.gemini.stream import Assembler
from llm_provider._types.messages import Delta, ToolCallDelta, delta_of
from openai_support import JSON_VALUES


def cut_text(draw: st.DrawFn, entry: dict[str, Any]) -> list[dict[str, Any]]:
    """A text part as pieces of it; its signature comes with the last piece or with an empty one after it."""
    if "functionCall" in entry:
        return [entry]
    plain = {name: value for name, value in entry.items() if name != "thoughtSignature"}
    text = entry["text"]
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    bounds = [0, *cuts, len(text)]
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


def fed(*events: dict[str, Any]) -> tuple[Any, list[Delta]]:
    """The reply of a stream, and its deltas."""
    assembler = Assembler()
    deltas = [delta_of(assembler.feed(event)) for event in json.loads(json.dumps(events))]
    return assembler.reply(), deltas


def event(*candidates: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"candidates": list(candidates), **fields}


def piece(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"content": {"role": "model", "parts": list(parts)}, **fields}


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
def test_the_answer_goes_on_after_a_finish_reason(pieces: Any) -> None:
    """With code execution, Gemini 2.5 ends several events of an answer with STOP."""
    pieces = [({"text": "begun "}, {"finishReason": "STOP"}), *pieces]
    events = [event(piece(dict(part), **end)) for part, end in pieces]
    whole, deltas = fed(*events, event(usageMetadata={"promptTokenCount": 3}))
    streamed = decode(whole).choices[0]
    parts: list[Any] = []
    for part, _ in pieces:
        if "text" in part and parts and "text" in parts[-1]:
            parts[-1] = {"text": parts[-1]["text"] + part["text"]}
        else:
            parts.append(part)
    assert streamed == decode(event(piece(*parts, finishReason="STOP"))).choices[0]
    assert "".join(delta.text for delta in deltas) == streamed.text
    assert sum(len(delta.tool_calls) for delta in deltas) == len(streamed.tool_calls)


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
    single, several = Assembler(), Assembler()
    end = piece_of({"text": "."}, finishReason="STOP")
    for event in [*events, end]:
        whole = delta_of(single.feed(event))
        piece = [delta_of(step) for step in several.feed_samples(event)]
        assert (whole.text, whole.reasoning) == (
            "".join(delta.text for delta in piece),
            "".join(delta.reasoning for delta in piece),
        )
    replies = single.reply(), several.reply()
    for reply in replies:
        # Text alone is taken without the number 0, which some events have and others do not.
        reply["candidates"][0].setdefault("index", 0)
    assert replies[0] == replies[1]
