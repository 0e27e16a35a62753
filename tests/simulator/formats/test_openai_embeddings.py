"""Requests for embeddings that are too large for a file of exchanges."""

from typing import Any

import pytest

from ..conftest import Post

MODEL = "text-embedding-3-small"


@pytest.mark.parametrize(
    ("provider", "texts", "message", "code"),
    [
        ("openai", ["a"] * 2049, "maximum length 2048", "array_above_max_length"),
        ("openai", ["word" * 8193], "maximum context length is 8192 tokens", None),
        ("openai", ["word" * 8000] * 38, "Requested 304000 tokens, max 300000", "max_tokens_per_request"),
        ("mistral", ["word" * 9000] * 2, "Too many tokens in batch. Max is 16384 got 18000", None),
        ("together_ai", ["a"] * 2049, None, None),
    ],
)
@pytest.mark.sampled(3)
def test_requests_that_are_too_large(
    post: Post, provider: str, texts: Any, message: str | None, code: str | None
) -> None:
    answer = post(f"/{provider}/v1/embeddings", {"model": MODEL, "input": texts})
    assert answer.status == (400 if message else 200)
    if message:
        assert message in answer.json["error"]["message"]
        assert answer.json["error"]["code"] == code
