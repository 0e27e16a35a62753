"""Anthropic's replies and streams."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anthropic_support import CURRENT, SECRET, THOUGHT, USE, call, reply, text
from llm_provider._errors import APIResponseValidationError, LLMError, OverloadedError
from llm_provider._providers.anthropic.decode import Assembler, decode
from llm_provider._types import Usage, delta_of


class TestDecode:
    def test_everything_at_once(self) -> None:
        answer = decode(reply(THOUGHT, SECRET, text("Let me "), text("look."), USE, stop_reason="tool_use"))
        (choice,) = answer.choices
        assert (choice.text, choice.reasoning, choice.finish_reason) == ("Let me look.", "Hm.", "tool_calls")
        assert choice.tool_calls[0].parsed_arguments == {"city": "Bern"}
        assert choice.message["tool_calls"] == [call("toolu_1")]
        assert (answer.model, answer.id) == (CURRENT, "msg_1")

    @pytest.mark.parametrize(
        ("stop_reason", "expected"),
        [
            ("end_turn", "stop"),
            ("stop_sequence", "stop"),
            ("max_tokens", "length"),
            ("model_context_window_exceeded", "length"),
            ("pause_turn", "length"),
            ("refusal", "refusal"),
            ("a_new_one", "stop"),
        ],
    )
    def test_finish_reasons(self, stop_reason: str, expected: str) -> None:
        assert decode(reply(text("x"), stop_reason=stop_reason)).choices[0].finish_reason == expected

    def test_a_refusal_without_text_gives_its_explanation(self) -> None:
        details = {"type": "refusal", "category": "bio", "explanation": "Not that."}
        choice = decode(reply(stop_reason="refusal", stop_details=details)).choices[0]
        assert (choice.text, choice.message["content"]) == ("Not that.", None)

    def test_usage_is_inclusive(self) -> None:
        usage = {
            "input_tokens": 10,
            "cache_read_input_tokens": 100,
            "cache_creation_input_tokens": 50,
            "cache_creation": {"ephemeral_5m_input_tokens": 20, "ephemeral_1h_input_tokens": 30},
            "output_tokens": 40,
            "output_tokens_details": {"thinking_tokens": 15},
            "service_tier": "priority",
        }
        answer = decode(reply(text("x"), usage=usage))
        assert answer.usage == Usage(
            input_tokens=160,
            output_tokens=40,
            cache_read_input_tokens=100,
            cache_write_input_tokens=50,
            cache_write_1h_input_tokens=30,
            reasoning_output_tokens=15,
        )
        assert answer.service_tier == "priority"
        assert decode(reply(usage={**usage, "speed": "fast"})).service_tier == "fast"
        assert decode(reply(usage=None)).usage is None

    @pytest.mark.parametrize(
        "bad",
        [
            None,
            [],
            {},
            "text",
            reply(stop_reason=None),  # type: ignore[arg-type]  # what a proxy may send
            reply(content=None),
            reply("text"),
            reply({"type": "text", "text": None}),
            reply({"type": "tool_use", "id": "a", "name": "b", "input": None}),
            reply({"type": "tool_use", "id": "a", "name": None, "input": {}}),
        ],
    )
    def test_what_is_not_a_whole_answer(self, bad: Any) -> None:
        with pytest.raises(APIResponseValidationError):
            decode(bad)

    def test_an_error_with_status_200(self) -> None:
        with pytest.raises(OverloadedError):
            decode({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


# What events and messages are made of, so that nonsense gets past the first look.
WORDS = (
    "type text thinking tool_use content input id name usage stop_reason error message index delta end_turn",
    "content_block message_start content_block_start content_block_delta message_delta text_delta",
    "input_json_delta partial_json citations_delta",
)


KEYS = st.sampled_from(" ".join(WORDS).split())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | KEYS | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6),
    max_leaves=20,
)


@given(JSON)
def test_decode_raises_nothing_but_its_own_errors(value: Any) -> None:
    for candidate in (
        value,
        reply(value),
        {**reply(text("x")), **(value if isinstance(value, dict) else {})},
    ):
        with contextlib.suppress(LLMError):
            decode(candidate)


@given(st.lists(JSON, max_size=6))
def test_the_assembler_raises_nothing_but_its_own_errors(events: list[Any]) -> None:
    assembler = Assembler()
    with contextlib.suppress(LLMError):
        assembler.feed({"type": "message_start", "message": reply()})
        assembler.feed({"type": "content_block_start", "index": 0, "content_block": text("")})
        for event in events:
            assembler.feed(event)
        decode(assembler.reply())


BLOCKS = st.lists(
    st.builds(text, st.text(min_size=1))
    | st.builds(lambda words: {"type": "thinking", "thinking": words, "signature": "c2ln"}, st.text())
    | st.just(SECRET)
    | st.builds(
        lambda identifier, value: {"type": "tool_use", "id": identifier, "name": "f", "input": {"a": value}},
        st.text("abc", min_size=1),
        st.text(st.characters(exclude_categories=["Cs"])) | st.integers(-(2**53), 2**53),
    ),
    max_size=4,
)


def streamed(message: dict[str, Any], cut: st.DataObject) -> Iterator[dict[str, Any]]:
    """The events of a message, with its pieces cut anywhere."""
    start = {**message, "content": [], "stop_reason": None, "usage": {"input_tokens": 5, "output_tokens": 1}}
    yield {"type": "message_start", "message": start}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        empty, deltas = dict(block), []
        if block["type"] == "text":
            empty["text"] = ""
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"], cut)]
        elif block["type"] == "thinking":
            empty |= {"thinking": "", "signature": ""}
            deltas = [
                {"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"], cut)
            ]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        elif block["type"] == "tool_use":
            empty["input"] = {}
            written = orjson.dumps(block["input"]).decode()
            deltas = [
                {"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(written, cut)]
            ]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": message["usage"]}
    yield {"type": "message_stop"}


def pieces(whole: str, cut: st.DataObject) -> list[str]:
    places = sorted(cut.draw(st.lists(st.integers(0, len(whole)), max_size=3)))
    return [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]


class TestAssembler:
    @given(BLOCKS, st.data())
    @settings(max_examples=50)
    def test_a_stream_in_any_pieces_is_the_reply_it_would_have_been(
        self, blocks: list[dict[str, Any]], data: st.DataObject
    ) -> None:
        whole = reply(*blocks)
        assembler = Assembler()
        deltas = [delta_of(assembler.feed(event)) for event in streamed(whole, data)]
        assert assembler.reply() == whole
        choice = decode(whole).choices[0]
        assert "".join(delta.text for delta in deltas) == choice.text
        assert "".join(delta.reasoning for delta in deltas) == choice.reasoning
        calls: dict[int, str] = {}
        for delta in deltas:
            for piece in delta.tool_calls:
                calls[piece.index] = calls.get(piece.index, "") + piece.arguments
        assert list(calls.values()) == [one.arguments for one in choice.tool_calls]

    def test_what_is_cut_is_no_answer(self) -> None:
        events = list(streamed(reply(text("")), _no_cuts()))
        for length in range(len(events)):
            assembler = Assembler()
            for event in events[:length]:
                assembler.feed(event)
            with pytest.raises(APIResponseValidationError):
                assembler.reply()

    def test_a_tool_call_cut_by_its_limit_cannot_be_run(self) -> None:
        assembler = Assembler()
        for event in streamed(reply({**USE, "input": {}}, stop_reason="max_tokens"), _no_cuts()):
            assembler.feed(event)
            if event["type"] == "content_block_start":
                assembler.feed(_json_piece('{"ci'))
        choice = decode(assembler.reply()).choices[0]
        assert (choice.finish_reason, choice.tool_calls[0].arguments) == ("length", '{"ci{}')

    def test_broken_tool_input_is_no_answer(self) -> None:
        assembler = Assembler()
        for event in streamed(reply(USE), _no_cuts()):
            assembler.feed(event)
            if event["type"] == "content_block_start":
                assembler.feed(_json_piece("]"))
        with pytest.raises(APIResponseValidationError):
            assembler.reply()

    def test_citations_and_late_fields(self) -> None:
        assembler = Assembler()
        for event in streamed(reply(text("")), _no_cuts()):
            if event["type"] == "content_block_stop":
                citation = {"type": "citations_delta", "citation": {"cited_text": "a"}}
                assembler.feed({"type": "content_block_delta", "index": 0, "delta": citation})
            late = {"context_management": {"applied_edits": []}} if event["type"] == "message_delta" else {}
            assembler.feed({**event, **late})
        whole = assembler.reply()
        assert whole["content"][0]["citations"] == [{"cited_text": "a"}]
        assert whole["context_management"] == {"applied_edits": []}

    def test_an_error_event(self) -> None:
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        with pytest.raises(OverloadedError) as caught:
            Assembler().feed(error)
        assert caught.value.maybe_billed


class _NoCuts:
    def draw(self, strategy: Any) -> list[int]:
        return []


def _no_cuts() -> Any:
    return _NoCuts()


def _json_piece(piece: str) -> dict[str, Any]:
    delta = {"type": "input_json_delta", "partial_json": piece}
    return {"type": "content_block_delta", "index": 0, "delta": delta}
