"""Embeddings of Gemini: what goes out, what comes back, and the real SDK in between."""

import json
from typing import Any

import pytest
from google.genai import types

from embedding_support import TEXTS, outgoing, send
from llm_provider._core.formats.gemini import embeddings
from llm_provider._core.formats.gemini.connection import connect
from llm_provider.simulator import Simulator


@pytest.mark.parametrize("transport", ["aiohttp", "http1", "http2"])
@pytest.mark.parametrize("model", ["gemini-embedding-001", "gemini-embedding-2"])
def test_the_exact_payload_is_sent_and_usage_billed(simulator: Simulator, transport: str, model: str) -> None:
    more: dict[str, Any] = {"extra_headers": {"X-Own": "1"}, "extra_body": {"title": "x"}}
    request = outgoing(embeddings, simulator.url("gemini"), model, dimensions=8, **more)
    # The second is sent with what was prepared for the first.
    reply, again = send(connect(transport), request, request)
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
