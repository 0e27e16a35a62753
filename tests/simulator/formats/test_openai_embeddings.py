"""Embeddings through the openai SDK, and requests that are too large for a file of exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai.types import CreateEmbeddingResponse

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post

MODEL = "text-embedding-3-small"


def test_both_encodings_hold_the_same_vectors(simulator: Simulator) -> None:
    with openai.OpenAI(base_url=simulator.url("openai"), api_key="test-key", max_retries=0) as sdk:
        packed = sdk.embeddings.create(model=MODEL, input=["hello", "world"])
        plain = sdk.embeddings.create(model=MODEL, input=["hello", "world"], encoding_format="float")
    assert [request.body["encoding_format"] for request in simulator.requests()] == ["base64", "float"]
    assert [len(entry.embedding) for entry in plain.data] == [1536, 1536]
    for entry, other in zip(packed.data, plain.data, strict=True):
        assert entry.embedding == pytest.approx(other.embedding, abs=1e-7)


def test_the_answer_has_the_fields_of_the_sdks_types_and_no_other(post: Post) -> None:
    answer = post("/v1/embeddings", {"model": MODEL, "input": ["a", "b"]}).json
    read = CreateEmbeddingResponse.model_validate(answer, strict=True)
    assert read.model_dump() == answer
    for part in (read, read.usage, *read.data):
        assert not part.model_extra


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
def test_requests_that_are_too_large(
    post: Post, provider: str, texts: Any, message: str | None, code: str | None
) -> None:
    answer = post(f"/{provider}/v1/embeddings", {"model": MODEL, "input": texts})
    assert answer.status == (400 if message else 200)
    if message:
        assert message in answer.json["error"]["message"]
        assert answer.json["error"]["code"] == code
