"""Texts for ``embedContent`` and ``batchEmbedContents`` that are too long or too many."""

from typing import Any

from ..conftest import Post

MODEL = "gemini-embedding-001"


def entry(text: str) -> dict[str, Any]:
    return {"model": f"models/{MODEL}", "content": {"parts": [{"text": text}]}}


def test_a_long_text_is_cut_and_many_texts_are_refused(post: Post) -> None:
    cut = post(f"/v1/models/{MODEL}:embedContent", entry("word" * 3000))
    assert cut.json["usageMetadata"]["promptTokenCount"] == 2048
    refused = post(f"/v1/models/{MODEL}:batchEmbedContents", {"requests": [entry("a")] * 101})
    assert refused.status == 400
    assert "at most 100 requests can be in one batch" in refused.json["error"]["message"]
