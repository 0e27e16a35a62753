"""Embeddings of OpenAI and its kind: what goes out, what comes back, and the real SDK in between."""

import base64
import inspect
import json
import struct
import sys
from typing import Any

import pytest
from openai.types import CreateEmbeddingResponse, EmbeddingCreateParams

from embedding_support import TEXTS, outgoing, send
from llm_provider import Client
from llm_provider._core.formats.openai import embeddings
from llm_provider._core.formats.openai.connection import connect
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._core.requests.routing import resolve
from llm_provider._core.types.usage import Usage
from llm_provider.simulator import Simulator
from raw_server import RawServer, answering

MODEL = "text-embedding-3-small"


def reply(*entries: Any, **fields: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 7, "total_tokens": 7}
    return {"object": "list", "data": list(entries), "model": MODEL, "usage": usage, **fields}


def test_the_limits_of_openai_are_in_its_sdk() -> None:
    assert embeddings.limits(resolve(MODEL)) == (2048, 300_000, 8192, None)
    documented = " ".join(inspect.getsource(sys.modules[EmbeddingCreateParams.__module__]).split())
    for number in ("2048 dimensions or less", "300,000 tokens", "8192 tokens for all embedding models"):
        assert number in documented


# Through the SDK


@pytest.mark.parametrize("transport", ["aiohttp", "http1", "http2"])
def test_the_exact_payload_is_sent_and_usage_billed(simulator: Simulator, transport: str) -> None:
    request = outgoing(embeddings, simulator.url("openai"), MODEL, dimensions=8, extra_headers={"X-Own": "1"})
    [reply] = send(connect(transport), request)
    assert CreateEmbeddingResponse.model_validate(reply, strict=True).model_extra == {}
    answer = embeddings.decode(reply, len(TEXTS))
    assert [len(vector) for vector in answer.vectors] == [8] * len(TEXTS)
    (seen,) = simulator.requests()
    assert (seen.path, seen.body) == ("/openai/v1/embeddings", json.loads(request.body))
    assert seen.headers["x-own"] == "1"
    billed = simulator.ledger().model("openai", MODEL)
    assert answer.usage == Usage(input_tokens=billed.input_tokens)
    assert billed.output_tokens == 0
    parts = embeddings.split(reply, [len(text) for text in TEXTS])
    assert sum((embeddings.usage(part) or Usage() for part in parts), Usage()) == answer.usage


PERPLEXITY = {"pplx-embed-v1-0.6b": None, "perplexity/pplx-embed-v1-4b": "base64_int8", "m": "base64_int8"}


@pytest.mark.parametrize(("model", "encoding"), PERPLEXITY.items())
@pytest.mark.parametrize("host", ["local", "openrouter"])
def test_perplexitys_vectors_are_bytes(model: str, encoding: str | None, host: str) -> None:
    vectors = [[-128, -1, 0, 1, 127, 5, 7, 9], [3] * 8]
    data = [
        {"index": index, "embedding": base64.b64encode(struct.pack("8b", *vector)).decode()}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 4, "total_tokens": 4, "cost": {"total_cost": 0.001}}
    body = json.dumps({"object": "list", "data": data, "model": model, "usage": usage}).encode()
    extra = {"encoding_format": encoding} if encoding else None
    with RawServer(answering(body)) as server, Client() as client:
        where: dict[str, Any] = {"base_url": f"{server.root}/v1", "api_key": "k", "extra_body": extra}
        embedded = client.embed(f"{host}/{model}", ["a", "b"], **where)
        again = client.embed(f"{host}/{model}", ["b", "a"], **where)
        assert server.requests == 1
    assert [list(vector) for vector in embedded.vectors] == vectors
    assert [list(vector) for vector in again.vectors] == vectors[::-1]
    assert (again.cached, embedded.cost) == (True, 0.001)


@pytest.mark.parametrize(
    ("model", "encoding", "sent", "vector"),
    [
        ("pplx-embed-v1-4b", "base64_binary", b"\x01\x80", [1.0, *[0.0] * 14, 1.0]),
        (MODEL, "base64", struct.pack("<2f", 0.5, 1), [0.5, 1.0]),
    ],
)
def test_base64_holds_bits_or_floats(model: str, encoding: str, sent: bytes, vector: list[float]) -> None:
    encoded = EncodedRequest("embeddings", {"model": model, "encoding_format": encoding})
    reply = {"data": [{"embedding": base64.b64encode(sent).decode()}]}
    assert embeddings.decode(reply, 1, encoded).vectors == [vector]
