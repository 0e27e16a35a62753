"""Embeddings of Gemini: what goes out, what comes back, and the real SDK in between, both of its ways."""

import asyncio
import json
from typing import Any

import pytest
from google.genai import types

import embedding_support
from embedding_support import TEXTS
from llm_provider._providers.gemini import embeddings
from llm_provider._providers.gemini.connection import GeminiConnection
from llm_provider._providers.protocol import Outgoing
from llm_provider.simulator import Simulator
from support import ignore

MODEL = "gemini-embedding-001"


@pytest.fixture(params=["aiohttp", "http1", "http2", "aiohttp, public way", "http1, public way"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def outgoing(base_url: str, model: str = MODEL, *texts: tuple[str, ...], **parameters: Any) -> Outgoing:
    return embedding_support.outgoing(embeddings, base_url, model, *texts, **parameters)


def send(transport: str, *requests: Outgoing) -> list[Any]:
    name, _, public = transport.partition(", ")

    async def main() -> list[bytes]:
        connection = GeminiConnection(name, private=not public)
        try:
            return [await connection.send(request, ignore) for request in requests]
        finally:
            await connection.close()

    return [json.loads(body) for body in asyncio.run(main())]


@pytest.mark.parametrize("model", [MODEL, "gemini-embedding-2"])
def test_exactly_the_payload_is_sent_and_the_bill_is_the_usage(
    simulator: Simulator, transport: str, model: str
) -> None:
    request = outgoing(
        simulator.url("gemini"), model, dimensions=8, extra_headers={"X-Own": "1"}, extra_body={"title": "x"}
    )
    # The second is sent with what was prepared for the first.
    reply, again = send(transport, request, request)
    assert reply == again
    types.EmbedContentResponse._from_response(response=json.loads(json.dumps(reply)), kwargs={})
    answer = embeddings.decode(reply, len(TEXTS))
    assert [len(vector) for vector in answer.vectors] == [8] * len(TEXTS)
    for seen in simulator.requests():
        assert seen.path == f"/gemini/v1/models/{model}:batchEmbedContents"
        assert seen.body == json.loads(request.body)
        assert seen.headers["x-own"] == "1"
    assert answer.usage is not None
    billed = simulator.ledger().model("gemini", model)
    assert (billed.requests, billed.input_tokens) == (2, 2 * answer.usage.input_tokens)
    assert billed.output_tokens == 0
