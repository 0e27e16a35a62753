"""Embeddings through the openai SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai.types import CreateEmbeddingResponse

from llm_provider.simulator import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from llm_provider.simulator import Simulator

    from ..conftest import Post

MODEL = "text-embedding-3-small"


@pytest.fixture
def sdk(simulator: Simulator) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=simulator.url("openai"), api_key="test-key", max_retries=0) as client:
        yield client


def values(answer: CreateEmbeddingResponse) -> list[list[float]]:
    return [one.embedding for one in answer.data]


def test_both_encodings_hold_the_same_vectors(simulator: Simulator, sdk: openai.OpenAI) -> None:
    packed = sdk.embeddings.create(model=MODEL, input=["hello", "world"])
    plain = sdk.embeddings.create(model=MODEL, input=["hello", "world"], encoding_format="float")
    assert [request.body["encoding_format"] for request in simulator.requests()] == ["base64", "float"]
    assert [len(vector) for vector in values(plain)] == [1536, 1536]
    for one, other in zip(values(packed), values(plain), strict=True):
        assert one == pytest.approx(other, abs=1e-7)


def test_the_answer_has_the_fields_of_the_sdks_types_and_no_other(post: Post) -> None:
    answer = post("/v1/embeddings", {"model": MODEL, "input": ["a", "b"]}).json
    read = CreateEmbeddingResponse.model_validate(answer, strict=True)
    assert read.model_dump() == answer
    for part in (read, read.usage, *read.data):
        assert not part.model_extra
    assert [one.index for one in read.data] == [0, 1]


@pytest.mark.parametrize(
    ("given", "vectors", "tokens"),
    [("hello", 1, 2), (["hello", "you"], 2, 3), ([101, 102], 1, 2), ([[101, 102], [103]], 2, 3)],
)
def test_input_has_four_forms(sdk: openai.OpenAI, given: Any, vectors: int, tokens: int) -> None:
    answer = sdk.embeddings.create(model=MODEL, input=given, dimensions=8)
    assert len(answer.data) == vectors
    assert answer.usage.prompt_tokens == answer.usage.total_tokens == tokens


def test_one_text_is_the_same_as_a_list_of_one(sdk: openai.OpenAI) -> None:
    alone = sdk.embeddings.create(model=MODEL, input="hello", dimensions=8)
    listed = sdk.embeddings.create(model=MODEL, input=["hello"], dimensions=8)
    assert values(alone) == values(listed)


def test_it_is_billed_for_input_alone(simulator: Simulator, sdk: openai.OpenAI, tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text(
        "provider,model,variant,min_input_tokens,input,cache_read,cache_write,output,effective_from\n"
        f"openai,{MODEL},standard,0,0.02,,,,\n"
    )
    simulator.configure(prices=str(prices), cached_tokens=100, cache_write_tokens=100)
    try:
        sdk.embeddings.create(model=MODEL, input=["x" * 400, "y" * 3])
    finally:
        simulator.configure(prices=None, cached_tokens=0, cache_write_tokens=0)
    billed = simulator.ledger().model("openai", MODEL)
    assert (billed.requests, billed.input_tokens, billed.output_tokens) == (1, 101, 0)
    assert billed.cache_read_input_tokens == billed.cache_write_input_tokens == 0
    assert str(billed.billed) == "0.00000202"


@pytest.mark.parametrize(
    ("fields", "status", "message"),
    [
        ({"input": ""}, 400, "cannot be an empty string"),
        ({"input": ["a", ""]}, 400, "cannot be an empty string"),
        ({"input": [[]]}, 400, "cannot be an empty string"),
        ({"input": []}, 400, "'$.input' is invalid"),
        ({"input": None}, 400, "'$.input' is invalid"),
        ({"input": ["a", 3]}, 400, "'$.input' is invalid"),
        ({"input": [["a"]]}, 400, "'$.input' is invalid"),
        ({"input": ["a"] * 2049}, 400, "maximum length 2048"),
        ({"input": ["word" * 8193]}, 400, "maximum context length is 8192 tokens"),
        ({"input": ["word" * 8000] * 38}, 400, "Requested 304000 tokens, max 300000 tokens per request"),
        ({"model": "gpt-6.1-sol"}, 403, "not allowed to generate embeddings from this model"),
        ({"model": ""}, 400, "provide a model"),
        ({"dimensions": 0}, 400, "Invalid 'dimensions'"),
        ({"dimensions": "8"}, 400, "Invalid 'dimensions'"),
        ({"dimensions": 1537}, 400, "Must be less than or equal to 1536"),
        ({"dimensions": 8, "model": "text-embedding-ada-002"}, 400, "does not support specifying dimensions"),
        ({"encoding_format": "int8"}, 400, "encoding_format"),
    ],
)
def test_what_openai_refuses(post: Post, fields: dict[str, Any], status: int, message: str) -> None:
    answer = post("/v1/embeddings", {"model": MODEL, "input": "hello", **fields})
    assert answer.status == status
    assert answer.json["error"].keys() == {"message", "type", "param", "code"}
    assert message in answer.json["error"]["message"]


def test_too_many_tokens_have_a_code_of_their_own(post: Post) -> None:
    error = post("/v1/embeddings", {"model": MODEL, "input": ["word" * 8000] * 38}).json["error"]
    assert error["type"] == error["code"] == "max_tokens_per_request"


def test_other_hosts_refuse_less(post: Post) -> None:
    many = {"model": "bge-base", "input": ["a"] * 2049}
    assert post("/together_ai/v1/embeddings", many).status == 200
    assert (
        post("/mistral/v1/embeddings", {"model": "mistral-embed", "input": ["word" * 9000] * 2}).status == 400
    )
    short = post("/mistral/v1/embeddings", {"model": "codestral-embed", "input": "a", "output_dimension": 3})
    assert len(short.json["data"][0]["embedding"]) == 3


def test_faults_limits_and_snapshots_are_as_for_every_request(simulator: Simulator, post: Post) -> None:
    body = {"model": MODEL, "input": ["one", "the other"]}
    simulator.inject(Fault(status=500), match="other")
    assert post("/v1/embeddings", body).status == 500
    simulator.configure(requests_per_minute=60, burst=1, snapshot_suffix="-v2")
    try:
        answer = post("/v1/embeddings", body)
        assert answer.json["model"] == f"{MODEL}-v2"
        assert answer.headers["x-ratelimit-limit-requests"] == "60"
        assert post("/v1/embeddings", body).status == 429
    finally:
        simulator.configure(requests_per_minute=None, burst=None, snapshot_suffix="")
    assert [request.model for request in simulator.requests()] == [MODEL] * 3
    assert simulator.ledger().rate_limited == 1
