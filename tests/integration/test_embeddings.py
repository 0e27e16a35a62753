"""`embed("local/…")` against llama.cpp's own server, with an embedding model and with chat models."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from llm_provider import APIResponseValidationError, InternalServerError, embed

if TYPE_CHECKING:
    from conftest import LlamaServer

pytestmark = pytest.mark.integration

DIMENSIONS = 64
"""Of the model that conftest.py writes."""


def close(first: list[float], second: list[float]) -> bool:
    """Whether two vectors are equal but for the order in which the server adds up."""
    return all(
        math.isclose(number, other, rel_tol=1e-3, abs_tol=1e-4)
        for number, other in zip(first, second, strict=True)
    )


def test_texts_become_vectors_with_real_token_counts(embedding_llama: LlamaServer) -> None:
    vectors = embed(embedding_llama.model, ["ab", "ab" * 50], base_url=embedding_llama.base_url)
    assert (len(vectors), vectors.dimensions) == (2, DIMENSIONS)
    assert (vectors.provider, vectors.model, vectors.cost) == ("local", "tiny", None)
    assert not close(*vectors)
    # Each byte is a token, and each text begins with a space and a control token.
    single = embed(embedding_llama.model, ["ab"], base_url=embedding_llama.base_url, cache="off")
    assert 2 < single.usage.input_tokens <= 7
    assert vectors.usage.input_tokens == 2 * single.usage.input_tokens + 98
    assert vectors.usage.output_tokens == 0


def test_equal_texts_have_equal_vectors(embedding_llama: LlamaServer) -> None:
    vectors = embed(embedding_llama.model, ["bird", "fish", "bird"], base_url=embedding_llama.base_url)
    assert vectors[0] == vectors[2]
    again = embed(embedding_llama.model, ["bird"], base_url=embedding_llama.base_url, cache="off")
    assert not again.cached
    assert close(again[0], vectors[0])


def test_fifty_texts_keep_their_order(embedding_llama: LlamaServer) -> None:
    texts = [f"text number {number}" for number in range(50)]
    vectors = embed(embedding_llama.model, texts, base_url=embedding_llama.base_url)
    assert (len(vectors), vectors.timing.attempts) == (50, 1)
    for index in (0, 7, 49):
        single = embed(embedding_llama.model, [texts[index]], base_url=embedding_llama.base_url, cache="off")
        assert [other for other in range(50) if close(single[0], vectors[other])] == [index]


def test_this_server_ignores_dimensions(embedding_llama: LlamaServer) -> None:
    vectors = embed(embedding_llama.model, ["bird"], base_url=embedding_llama.base_url, dimensions=8)
    assert vectors.dimensions == DIMENSIONS


def test_this_server_cuts_a_text_that_is_too_long(embedding_llama: LlamaServer) -> None:
    texts = ["x" * 2 * embedding_llama.context, "x" * 3 * embedding_llama.context]
    vectors = embed(embedding_llama.model, texts, base_url=embedding_llama.base_url)
    assert vectors.usage.input_tokens == 2 * embedding_llama.context
    assert close(*vectors)


def test_a_server_without_embeddings_says_how_to_start_it(llama: LlamaServer) -> None:
    with pytest.raises(InternalServerError, match="embedding=True") as caught:
        embed(llama.model, ["bird"], base_url=llama.base_url, max_retries=0)
    assert caught.value.status == 500


def test_a_model_with_a_vector_for_each_token_is_refused(unpooled_llama: LlamaServer) -> None:
    with pytest.raises(APIResponseValidationError, match="a vector for each token"):
        embed(unpooled_llama.model, ["bird"], base_url=unpooled_llama.base_url, max_retries=0)
