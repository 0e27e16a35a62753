"""``embedContent`` and ``batchEmbedContents``, the second through the google-genai SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google import genai
from google.genai import errors, types

if TYPE_CHECKING:
    from collections.abc import Iterator

    from llm_provider.simulator import Simulator

    from ..conftest import Post

MODEL = "gemini-embedding-001"


@pytest.fixture
def sdk(simulator: Simulator) -> Iterator[genai.Client]:
    client = genai.Client(
        api_key="test-key", http_options=types.HttpOptions(base_url=simulator.url("gemini"))
    )
    yield client
    client.close()


def one(text: str = "hello", **fields: Any) -> dict[str, Any]:
    return {"model": f"models/{MODEL}", "content": {"parts": [{"text": text}]}, **fields}


@pytest.mark.parametrize("model", [MODEL, "gemini-embedding-2"])
def test_vectors_and_tokens(simulator: Simulator, sdk: genai.Client, model: str) -> None:
    contents = [types.Content(parts=[types.Part(text=text)]) for text in ("hello", "world")]
    config = types.EmbedContentConfig(output_dimensionality=8, task_type="RETRIEVAL_QUERY")
    answer = sdk.models.embed_content(model=model, contents=contents, config=config)
    assert answer.embeddings is not None
    assert [len(entry.values or ()) for entry in answer.embeddings] == [8, 8]
    assert answer.usage_metadata is not None
    assert answer.usage_metadata.prompt_token_count == 4
    billed = simulator.ledger().model("gemini", model)
    assert (billed.input_tokens, billed.output_tokens) == (4, 0)
    (seen,) = simulator.requests()
    assert seen.path == f"/gemini/v1/models/{model}:batchEmbedContents"


def test_the_answer_has_the_fields_of_the_sdks_types(post: Post) -> None:
    answer = post(f"/v1beta/models/{MODEL}:batchEmbedContents", {"requests": [one(), one("b")]}).json
    # The only field that the SDK does not know.
    assert answer["usageMetadata"].pop("promptTokenDetails") == [{"modality": "TEXT", "tokenCount": 3}]
    read = types.EmbedContentResponse.model_validate(answer)
    assert read.embeddings is not None
    assert len(read.embeddings) == 2


@pytest.mark.parametrize("version", ["v1", "v1beta"])
def test_a_text_alone(post: Post, version: str) -> None:
    alone = post(f"/gemini/{version}/models/{MODEL}:embedContent", one(outputDimensionality=8)).json
    batch = {"requests": [one(outputDimensionality=8)]}
    listed = post(f"/gemini/{version}/models/{MODEL}:batchEmbedContents", batch).json
    assert [alone["embedding"]] == listed["embeddings"]
    assert alone["usageMetadata"] == listed["usageMetadata"]
    types.SingleEmbedContentResponse.model_validate({"embedding": alone["embedding"]})


def test_both_spellings_of_a_field(post: Post) -> None:
    path = f"/v1/models/{MODEL}:embedContent"
    assert post(path, one(output_dimensionality=3)).json == post(path, one(outputDimensionality=3)).json


def test_a_long_text_is_cut(post: Post) -> None:
    answer = post(f"/v1/models/{MODEL}:embedContent", one("word" * 3000)).json
    assert answer["usageMetadata"]["promptTokenCount"] == 2048


@pytest.mark.parametrize(
    ("requests", "status", "message"),
    [
        ([one()] * 101, 400, "at most 100 requests can be in one batch"),
        ([], 400, "requests is not specified"),
        (None, 400, "requests is not specified"),
        ([one("")], 400, "must not be empty"),
        ([one(model="models/other")], 400, f"model must be models/{MODEL}"),
        ([one(outputDimensionality=0)], 400, "from 1 to 3072"),
        ([one(outputDimensionality=4000)], 400, "from 1 to 3072"),
        (["hello"], 400, "malformed"),
        ([{"model": f"models/{MODEL}"}], 400, "malformed"),
    ],
)
def test_what_is_refused(post: Post, requests: Any, status: int, message: str) -> None:
    answer = post(f"/v1/models/{MODEL}:batchEmbedContents", {"requests": requests})
    assert answer.status == status
    assert message in answer.json["error"]["message"]
    assert answer.json["error"]["status"] == "INVALID_ARGUMENT"


def test_a_model_that_does_not_embed(sdk: genai.Client) -> None:
    with pytest.raises(errors.ClientError, match=r"not supported for embedContent") as caught:
        sdk.models.embed_content(
            model="gemini-3.8-flash", contents=types.Content(parts=[types.Part(text="a")])
        )
    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
