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
from llm_provider._providers.anthropic import extras
from llm_provider._providers.anthropic.decode import Assembler, decode
from llm_provider._types.messages import Delta, ToolCall, delta_of
from llm_provider._types.response import Choice
from llm_provider._types.usage import Usage


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

    @pytest.mark.parametrize("word", [None, "", "a_word_of_tomorrow"])
    def test_a_whole_answer_with_an_unknown_end_or_none(self, word: Any) -> None:
        assert decode(reply(text("Hi"), stop_reason=word)).choices[0].finish_reason == "stop"
        assert decode(reply(USE, stop_reason=word)).choices[0].finish_reason == "tool_calls"

    def test_blocks_without_a_type(self) -> None:
        use = {name: value for name, value in USE.items() if name != "type"}
        choice = decode(reply({"text": "Hi"}, {"thinking": "Hm."}, use)).choices[0]
        assert (choice.text, choice.reasoning, len(choice.tool_calls)) == ("Hi", "Hm.", 1)

    def test_a_refusal_with_its_explanation(self) -> None:
        details = {"type": "refusal", "explanation": "I must not."}
        choice = decode(reply(stop_reason="refusal", stop_details=details)).choices[0]
        assert (choice.text, choice.finish_reason) == ("I must not.", "refusal")
        assert (choice.message["content"], choice.message["refusal"]) == (None, "I must not.")
        said = decode(reply(text("No."), stop_reason="refusal", stop_details=details)).choices[0]
        assert (said.text, said.message.get("refusal")) == ("No.", None)

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

    def test_blocks_that_the_message_begins_with(self) -> None:
        first = {**USE, "id": "toolu_0"}
        start = _start(text("Let me "), first)
        whole, deltas = fed(start, *_block(0, text("look.")), *_block(1, USE), _end("tool_use"))
        choice = decode(whole).choices[0]
        assert whole["content"] == [text("Let me "), first, text("look."), USE]
        assert [call.id for call in choice.tool_calls] == ["toolu_0", "toolu_1"]
        assert choice.finish_reason == "tool_calls"
        check_shown(deltas, choice)

    def test_the_blocks_of_the_message_are_not_begun_twice(self) -> None:
        empty = {**USE, "input": {}}
        whole, deltas = fed(
            _start(empty), *_block(0, empty, _json_piece('{"city":"Bern"}')), _end("tool_use")
        )
        assert whole["content"] == [USE]
        check_shown(deltas, decode(whole).choices[0])

    @pytest.mark.parametrize("value", [{"city": "Bern"}, {}])
    @pytest.mark.parametrize("pieces", [[], [""]])
    @pytest.mark.parametrize("stops", [True, False])
    def test_an_input_that_is_complete_when_its_block_begins(
        self, value: dict[str, Any], pieces: list[str], stops: bool
    ) -> None:
        block = {**USE, "input": value}
        events = _block(0, block, *map(_json_piece, pieces))
        whole, deltas = fed(_start(), *events[: None if stops else -1], _end("tool_use"))
        choice = decode(whole).choices[0]
        assert choice.tool_calls[0].parsed_arguments == value
        check_shown(deltas, choice)

    @pytest.mark.parametrize(("kind", "field"), [("text_delta", "text"), ("thinking_delta", "thinking")])
    @pytest.mark.parametrize("block", [{}, {"type": None}])
    def test_a_block_without_a_type(self, block: dict[str, Any], kind: str, field: str) -> None:
        piece = {"type": "content_block_delta", "index": 0, "delta": {"type": kind, field: "Hm."}}
        whole, deltas = fed(_start(), *_block(0, block, piece), _end())
        assert whole["content"] == [{"type": field, field: "Hm."}]
        check_shown(deltas, decode(whole).choices[0])

    def test_a_block_that_begins_twice(self) -> None:
        begun = _block(0, text("Hello"))
        whole, deltas = fed(_start(), begun[0], *begun, _end())
        assert whole["content"] == [text("Hello")]
        check_shown(deltas, decode(whole).choices[0])

    def test_an_index_that_is_used_twice(self) -> None:
        whole, deltas = fed(_start(), *_block(0, text("Hello")), *_block(0, USE), _end("tool_use"))
        assert whole["content"] == [text("Hello"), USE]
        check_shown(deltas, decode(whole).choices[0])

    def test_a_compaction(self) -> None:
        delta = {"type": "compaction_delta", "content": "Earlier: x", "encrypted_content": "ZW5j"}
        piece = {"type": "content_block_delta", "index": 0, "delta": delta}
        begun = {"type": "compaction", "content": None, "signature": "c2ln"}
        whole, _ = fed(_start(), *_block(0, begun, piece), *_block(1, text("Hi")), _end())
        kept = {**begun, "content": "Earlier: x", "encrypted_content": "ZW5j"}
        assert whole["content"] == [kept, text("Hi")]
        choice = decode(whole).choices[0]
        assert choice.text == "Hi"
        assert choice.message["provider_specific_fields"]["content"][0] == kept

    def test_the_model_that_served_after_a_fallback(self) -> None:
        hop = {"type": "fallback", "from": {"model": CURRENT}, "to": {"model": "claude-opus-4-8"}}
        whole, _ = fed(_start(), *_block(0, hop), *_block(1, text("Hi")), _end())
        answer = decode(whole)
        assert (answer.model, answer.choices[0].text) == ("claude-opus-4-8", "Hi")

    @pytest.mark.parametrize("said", [(), (text(""),)])
    def test_the_explanation_of_a_refusal_is_shown(self, said: tuple[dict[str, Any], ...]) -> None:
        details = {"type": "refusal", "explanation": "I must not."}
        blocks = [event for index, block in enumerate(said) for event in _block(index, block)]
        whole, deltas = fed(_start(), *blocks, _end("refusal", stop_details=details))
        assert decode(whole).choices[0].text == "I must not."
        check_shown(deltas, decode(whole).choices[0])

    def test_a_refusal_in_its_own_words_is_shown_alone(self) -> None:
        details = {"type": "refusal", "explanation": "I must not."}
        piece = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "No."}}
        whole, deltas = fed(_start(), *_block(0, text(""), piece), _end("refusal", stop_details=details))
        assert decode(whole).choices[0].text == "No."
        check_shown(deltas, decode(whole).choices[0])

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


def fed(*events: dict[str, Any]) -> tuple[Any, list[Delta]]:
    """The reply of a stream, which `message_stop` ends, and its deltas."""
    assembler = Assembler()
    deltas = [delta_of(assembler.feed(event)) for event in (*events, {"type": "message_stop"})]
    return assembler.reply(), deltas


def check_shown(deltas: list[Delta], choice: Choice) -> None:
    """The deltas add up to the answer."""
    assert "".join(delta.text for delta in deltas) == choice.text
    assert "".join(delta.reasoning for delta in deltas) == choice.reasoning
    calls: dict[int, dict[str, str]] = {}
    for piece in (piece for delta in deltas for piece in delta.tool_calls):
        known = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
        for name in known:
            known[name] += getattr(piece, name)
    assert [ToolCall(**call) for _, call in sorted(calls.items())] == list(choice.tool_calls)


def _start(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"type": "message_start", "message": {**reply(*blocks), "stop_reason": None}}


def _block(index: int, block: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *deltas,
        {"type": "content_block_stop", "index": index},
    ]


def _end(stop_reason: str = "end_turn", **fields: Any) -> dict[str, Any]:
    delta = {"stop_reason": stop_reason, **fields}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}}


kinds = st.sampled_from(["text", "thinking", "tool_use", "novelty", None])


@given(st.lists(st.tuples(kinds, st.lists(st.sampled_from("abc"), max_size=3), st.booleans()), max_size=5))
def test_what_a_stream_shows_is_the_answer(blocks: Any) -> None:
    """Also for blocks of types that are not known, and for text in blocks of other types."""
    assembler = Assembler()
    events: list[Any] = [{"type": "message_start", "message": {**reply(), "content": []}}]
    for index, (kind, pieces, thought) in enumerate(blocks):
        empty = {"text": {"text": ""}, "thinking": {"thinking": ""}, "tool_use": {**USE}}.get(
            kind, {"text": "x"}
        )
        events.append(
            {"type": "content_block_start", "index": index, "content_block": {**empty, "type": kind}}
        )
        field = "thinking" if thought else "text"
        events += [
            {"type": "content_block_delta", "index": index, "delta": {"type": f"{field}_delta", field: piece}}
            for piece in pieces
        ]
        events.append({"type": "content_block_stop", "index": index})
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
    deltas = [delta_of(assembler.feed(event)) for event in [*events, end, {"type": "message_stop"}]]
    choice = decode(assembler.reply()).choices[0]
    assert "".join(delta.text for delta in deltas) == choice.text
    assert "".join(delta.reasoning for delta in deltas) == choice.reasoning


@pytest.mark.parametrize("identifier", [["a"], {"a": 1}, 5, None, [[]]])
def test_an_id_that_is_no_text_breaks_nothing_else(identifier: Any) -> None:
    call = {"type": "server_tool_use", "id": identifier, "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": identifier, "content": []}
    body = {**reply(call, found, text("Hello")), "id": identifier}
    answer = decode(body)
    assert (answer.choices[0].text, answer.id) == ("Hello", None)
    assert extras.server_tool_calls(body)[0].name == "web_search"
    with pytest.raises(APIResponseValidationError, match="has no id"):
        decode(reply({**USE, "id": identifier}))
