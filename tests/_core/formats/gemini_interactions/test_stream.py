"""Streams of interactions add up to the answer of a call."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interactions_server import (
    HERE,
    MODEL,
    InteractionsServer,
    call_step,
    frames,
    stream_of,
    text_step,
    thought,
    usage,
)
from llm_provider import (
    Client,
    Delta,
    InternalServerError,
)
from llm_provider._core.formats.gemini_interactions.decode import decode
from llm_provider._core.formats.gemini_interactions.stream import Assembler
from llm_provider._core.types.messages import delta_of

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=9)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(TEXTS, inner, max_size=2)),
    max_leaves=4,
)


SEARCH = {
    "type": "google_search_call", "id": "s1", "arguments": {"queries": ["a"]}, "signature": "c2ln"
}  # fmt: skip


STEPS = st.lists(
    st.one_of(
        st.builds(thought, st.just("c2ln"), TEXTS),
        st.builds(text_step, TEXTS),
        st.builds(
            text_step,
            TEXTS,
            annotations=st.just(
                [{"type": "url_citation", "url": "https://a.org", "start_index": 0, "end_index": 1}]
            ),
        ),
        st.builds(call_step, st.just("look"), st.dictionaries(TEXTS, JSON, max_size=2), TEXTS),
        st.just(SEARCH),
        st.just({"type": "google_search_result", "call_id": "s1", "result": [{"search_suggestions": "b"}]}),
    ),
    min_size=1,
    max_size=6,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(steps=STEPS, size=st.integers(1, 5), status=st.sampled_from(["completed", "incomplete"]))
def test_a_stream_adds_up_to_the_answer_that_a_call_gets(steps: list[Any], size: int, status: str) -> None:
    calls = any(step["type"] == "function_call" for step in steps)
    whole = {
        "id": "v1",
        "model": MODEL,
        "status": "requires_action" if calls and status == "completed" else status,
        "steps": steps,
        "usage": usage(),
    }
    assembler, deltas = Assembler(), list[Delta]()
    for event in json.loads(json.dumps(list(stream_of(whole, size)))):
        deltas.append(delta_of(assembler.feed(event)))
    (streamed,), (called,) = decode(assembler.reply()).choices, decode(whole).choices
    assert streamed == called
    assert "".join(delta.text for delta in deltas) == called.text
    assert "".join(delta.reasoning for delta in deltas) == called.reasoning
    shown: dict[int, list[str]] = {}
    for call in (call for delta in deltas for call in delta.tool_calls):
        known = shown.setdefault(call.index, ["", "", ""])
        shown[call.index] = [a + b for a, b in zip(known, (call.id, call.name, call.arguments), strict=True)]
    told = [[call.id, call.name, json.loads(call.arguments)] for call in called.tool_calls]
    assert [[*rest, json.loads(text)] for *rest, text in (shown[index] for index in sorted(shown))] == told


def look(place: str) -> str:
    """Look at a place."""
    return f"{place} is fine"


def test_an_error_event_ends_a_stream(server: InteractionsServer, client: Client) -> None:
    def fault(number: int, body: Any) -> Any:
        error = {"event_type": "error", "error": {"code": "internal", "message": "Broken."}}
        begun = list(stream_of({"id": "v", "status": "completed", "steps": [text_step("Hello")]}))[:5]
        data = b"".join(list(frames(iter([*begun, error])))[:-1])
        return 200, {"content-type": "text/event-stream"}, data

    server.fault = fault
    with pytest.raises(InternalServerError, match="Broken"), client.stream(MODEL, "Hi", **HERE) as stream:
        list(stream)


def _start(index: int, **step: Any) -> dict[str, Any]:
    return {"event_type": "step.start", "index": index, "step": step}


def _call(index: int, name: str, **arguments: Any) -> dict[str, Any]:
    return _start(index, type="function_call", id=f"c{name}", name=name, arguments=arguments)


def _delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"event_type": "step.delta", "index": index, "delta": {"type": kind, **fields}}


def _last(status: str, **fields: Any) -> dict[str, Any]:
    return {"event_type": "interaction.completed", "interaction": {"id": "v", "status": status, **fields}}


PIECE = {"type": "text", "text": "Pla"}
STREAMED: dict[str, tuple[list[Any], str, list[Any]]] = {
    "pieces of two calls in turns": (
        [_call(0, "a"), _call(1, "b"), _delta(0, "arguments_delta", arguments='{"x":'),
         _delta(1, "arguments_delta", arguments='{"y":2}'), _delta(0, "arguments_delta", arguments="1}")],
        "", [{"x": 1}, {"y": 2}],
    ),
    "all arguments at the start": ([_call(0, "a", x=1)], "", [{"x": 1}]),
    "all arguments at the start and in pieces": (
        [_call(0, "a", x=1), _delta(0, "arguments_delta", arguments='{"x":1}')], "", [{"x": 1}],
    ),
    "arguments as an object": ([_call(0, "a"), _delta(0, "arguments", arguments={"x": 1})], "", [{"x": 1}]),
    "a text at the start": (
        [_start(0, type="model_output", content=[{"type": "text", "text": "Once"}]),
         _delta(0, "text", text=" more")], "Once more", [],
    ),
    "no start and no number": (
        [{"event_type": "step.delta", "delta": {"type": "text", "text": text}} for text in "ab"], "ab", [],
    ),
    "a number again": (
        [_start(0, type="model_output"), _delta(0, "text", text="a"), _start(0, type="model_output"),
         _delta(1, "text", text="b")], "ab", [],
    ),
    "pieces of a summary": (
        [_start(0, type="thought", summary=[PIECE]),
         _delta(0, "thought_summary", content={"type": "text", "text": "n."})], "", [],
    ),
    "steps without what was streamed at the end": (
        [_call(0, "a"), _delta(0, "arguments_delta", arguments='{"x":1}'),
         _last("requires_action", steps=[call_step("a", {}, "ca")])], "", [{"x": 1}],
    ),
    "steps at the end alone": (
        [_last("requires_action", steps=[text_step("Hi"), call_step("a", {"x": 1})])], "Hi", [{"x": 1}],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMED)
def test_streams_of_other_shapes(name: str) -> None:
    events, text, arguments = STREAMED[name]
    assembler, shown = Assembler(), ""
    for event in [*events, _last("requires_action" if arguments else "completed", usage=usage())]:
        shown += delta_of(assembler.feed(event)).text
    (choice,) = decode(assembler.reply()).choices
    assert (choice.text, shown) == (text, text)
    assert [call.parsed_arguments for call in choice.tool_calls] == arguments
    assert choice.reasoning == ("Plan." if name == "pieces of a summary" else "")
