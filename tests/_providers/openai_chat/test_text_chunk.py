"""Chunks that only add text are told from all others."""

from typing import Any

import pytest

from llm_provider._providers.openai_chat.text_chunk import TextChunks


def chunk(delta: Any, **choice: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": None, **choice}]}


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        {},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{}, {}]},
        chunk({}),
        chunk({"role": "assistant", "content": "x"}),
        chunk({"content": None}),
        chunk({"content": ["x"]}),
        chunk({"reasoning": "x"}),
        chunk({"content": "x"}, finish_reason="stop"),
        chunk({"content": "x"}, index=1),
        chunk({"content": "x"}, logprobs={"content": []}),
        chunk({"content": "x"}, error={"code": "slow_down"}),
        {**chunk({"content": "x"}), "error": {"code": "slow_down"}},
        {**chunk({"content": "x"}), "type": "error"},
        {**chunk({"content": "x"}), "usage": {"prompt_tokens": 1}},
    ],
)
def test_any_other_event_is_left_to_the_assembler(event: Any) -> None:
    chunks = TextChunks()
    assert chunks.read(event) is None
    assert chunks.read(chunk({"content": "Hel"})) == "Hel"
    assert chunks.read(event) is None
