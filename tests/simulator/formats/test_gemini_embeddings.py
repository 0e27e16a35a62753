"""``embedContent`` and ``batchEmbedContents``, the second through the google-genai SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import types

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post

MODEL = "gemini-embedding-001"


def entry(text: str) -> dict[str, Any]:
    return {"model": f"models/{MODEL}", "content": {"parts": [{"text": text}]}}


@pytest.mark.parametrize("model", [MODEL, "gemini-embedding-2"])
def test_vectors_and_tokens(simulator: Simulator, model: str) -> None:
    sdk = genai.Client(api_key="key", http_options=types.HttpOptions(base_url=simulator.url("gemini")))
    contents = [types.Content(parts=[types.Part(text=text)]) for text in ("hello", "world")]
    config = types.EmbedContentConfig(output_dimensionality=8, task_type="RETRIEVAL_QUERY")
    answer = sdk.models.embed_content(model=model, contents=contents, config=config)
    sdk.close()
    assert [len(embedding.values or ()) for embedding in answer.embeddings or ()] == [8, 8]
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.prompt_token_count == 4
    billed = simulator.ledger().model("gemini", model)
    assert (billed.input_tokens, billed.output_tokens) == (4, 0)
    (request,) = simulator.requests()
    assert request.path == f"/gemini/v1/models/{model}:batchEmbedContents"


def test_the_answer_has_the_fields_of_the_sdks_types(post: Post) -> None:
    path, body = f"/v1beta/models/{MODEL}", {"requests": [entry("hello"), entry("b")]}
    answer = post(f"{path}:batchEmbedContents", body).json
    # The only field that the SDK does not know.
    assert answer["usageMetadata"].pop("promptTokenDetails") == [{"modality": "TEXT", "tokenCount": 3}]
    types.EmbedContentResponse.model_validate(answer)
    alone = post(f"{path}:embedContent", entry("hello")).json["embedding"]
    types.SingleEmbedContentResponse.model_validate({"embedding": alone})


def test_a_long_text_is_cut_and_many_texts_are_refused(post: Post) -> None:
    cut = post(f"/v1/models/{MODEL}:embedContent", entry("word" * 3000))
    assert cut.json["usageMetadata"]["promptTokenCount"] == 2048
    refused = post(f"/v1/models/{MODEL}:batchEmbedContents", {"requests": [entry("a")] * 101})
    assert refused.status == 400
    assert "at most 100 requests can be in one batch" in refused.json["error"]["message"]
