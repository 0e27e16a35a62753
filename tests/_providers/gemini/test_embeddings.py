"""Embeddings of Gemini: what goes out, what comes back, and the real SDK in between, both of its ways."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from google.genai import types

import embedding_support
from embedding_support import FAILURES, TEXTS
from llm_provider._errors import (
    APIResponseValidationError,
    BadRequestError,
    ContextWindowExceededError,
    InternalServerError,
    LLMError,
    NotFoundError,
    OverloadedError,
    RateLimitError,
)
from llm_provider._limits.timeouts import Timeouts
from llm_provider._providers.gemini import adapter, embeddings
from llm_provider._providers.gemini.connection import GeminiConnection
from llm_provider._providers.protocol import Outgoing
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.routing import resolve
from llm_provider._runtime.canonical_json import canonical
from llm_provider.simulator import Fault, Simulator
from support import ignore

MODEL = "gemini-embedding-001"


class TestEncode:
    @pytest.mark.parametrize(
        ("model", "tokens"), [(MODEL, 2048), ("gemini-embedding-2", 8192), ("gemini-embedding-9", None)]
    )
    def test_limits(self, model: str, tokens: int | None) -> None:
        assert embeddings.limits(resolve(model)) == (100, None, tokens)


# Through the SDK


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


def test_chat_and_embeddings_share_a_connection(simulator: Simulator, transport: str) -> None:
    from llm_provider._requests.request import Request

    chat, target = (
        Request.build("gemini-3.8-flash", "2+2?", {}),
        resolve("gemini-3.8-flash", simulator.url("gemini")),
    )
    encoded = adapter.encode(chat, target)
    timeouts = Timeouts(total=30, connect=15)
    question = Outgoing(encoded, canonical(encoded.payload), target, APIKey("key-1"), timeouts)
    first, vectors, second = send(transport, question, outgoing(simulator.url("gemini")), question)
    assert adapter.decode(first).choices == adapter.decode(second).choices
    assert len(embeddings.decode(vectors, len(TEXTS)).vectors) == len(TEXTS)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        *FAILURES,
        (Fault(status=429, retry_after="7", retry_after_style="retry_info"), RateLimitError),
        (Fault(context_length=True), ContextWindowExceededError),
        (Fault(status=503), OverloadedError),
        (Fault(body="[]"), APIResponseValidationError),
        (Fault(body='{"embeddings": [{"values": ["x"]}]}'), APIResponseValidationError),
        (Fault(body="<html>proxy</html>", content_type="text/html"), json.JSONDecodeError),
        (Fault(body="<html>proxy</html>", content_type="text/html", status=502), InternalServerError),
    ],
)
def test_failures(simulator: Simulator, transport: str, fault: Fault, kind: type[Exception]) -> None:
    simulator.inject(fault)
    with pytest.raises(Exception) as caught:  # noqa: PT011  # whatever the SDK or its transport raises
        embeddings.decode(send(transport, outgoing(simulator.url("gemini")))[0], len(TEXTS))
    # A body that is no JSON is told by whoever parses it.
    unread = kind is json.JSONDecodeError
    error = caught.value if unread else adapter.map_error(caught.value)
    assert type(error) is kind
    if isinstance(error, LLMError):
        assert error.retry_after == (7.0 if fault.retry_after else None)
    assert len(simulator.requests()) == 1, "no retries but ours"


@pytest.mark.parametrize(
    ("model", "texts", "kind", "message"),
    [
        (MODEL, ("a",) * 101, BadRequestError, "at most 100 requests"),
        ("gemini/a-name-of-tomorrow", ("a",), NotFoundError, "not supported for embedContent"),
    ],
)
def test_more_than_the_host_takes(
    simulator: Simulator,
    transport: str,
    model: str,
    texts: tuple[str, ...],
    kind: type[LLMError],
    message: str,
) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # as above
        send(transport, outgoing(simulator.url("gemini"), model, texts))
    error = adapter.map_error(caught.value)
    assert type(error) is kind
    assert message in str(error)
