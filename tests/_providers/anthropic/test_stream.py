"""Streams of Anthropic's format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from anthropic_support import SECRET, USE, reply, text
from llm_provider._providers.anthropic.decode import decode
from llm_provider._providers.anthropic.stream import Assembler
from llm_provider._types.messages import delta_of

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
    cuts = sorted(cut.draw(st.lists(st.integers(0, len(whole)), max_size=3)))
    return [whole[start:end] for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]


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
        assert list(calls.values()) == [call.arguments for call in choice.tool_calls]


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
