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
    from llm_provider._core.formats.gemini_interactions.decode import decode
    from llm_provider._core.formats.gemini_interactions.stream import Assembler
    from llm_provider._core.types.messages import delta_of

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
