"""Servers that answer a request for a stream with one JSON document: it is the answer, and asked for once."""

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import APIResponseValidationError, BadRequestError, Client, Delta, Response
from raw_server import Behaviour, RawServer, answering
from wire_shapes import JSON, SHAPES, TEXT

pytestmark = IGNORED_WARNINGS

NATIVE = {
    "local/m": "openai", "mistral/m": "openai", "openrouter/m": "openai", "gpt-5.5-pro": "responses",
    "claude-sonnet-5-5": "anthropic", "gemini-3.8-flash": "gemini",
}  # fmt: skip
LITELLM = {
    "litellm/openai/m": "openai", "hosted_vllm/m": "openai", "snowflake/m": "openai",
    "litellm/anthropic/claude-sonnet-5-5": "anthropic",
}  # fmt: skip

anyhow = pytest.mark.parametrize(
    "model", [*NATIVE, *(pytest.param(model, marks=needs_litellm) for model in LITELLM)]
)


@pytest.fixture
def client() -> Iterator[Client]:
    with Client(cache=False, max_retries=2) as client:
        yield client


def streamed(
    client: Client, model: str, behaviour: Behaviour, **parameters: Any
) -> tuple[Response, list[Delta]]:
    """The answer and the deltas of one stream, for which one request was sent."""
    with RawServer(behaviour) as server:
        base_url = server.root if "claude" in model or "gemini" in model else f"{server.root}/v1"
        try:
            stream = client.stream(model, "Hi", base_url=base_url, api_key="k", **parameters)
            deltas = list(stream)
            return stream.response, deltas
        finally:
            assert server.requests == 1


def document(model: str, name: str = "text") -> JSON:
    return next(shape.whole for shape in SHAPES[{**NATIVE, **LITELLM}[model]] if shape.name == name)


@anyhow
def test_a_document_is_the_answer(client: Client, model: str) -> None:
    response, (delta,) = streamed(client, model, answering(json.dumps(document(model)).encode()))
    assert response.text == delta.text == TEXT
    # Anthropic counts the four tokens that it had in its cache apart.
    assert (response.usage.input_tokens, response.finish_reason) == (13 if "claude" in model else 9, "stop")
    response, (delta,) = streamed(client, model, answering(json.dumps(document(model, "tool")).encode()))
    (call,), (streamed_call,) = response.tool_calls, delta.tool_calls
    assert (call.name, call.parsed_arguments) == ("weather", {"city": "Oslo", "days": 3})
    assert (streamed_call.id, streamed_call.name) == (call.id, call.name)
    assert streamed_call.arguments == call.arguments
    assert response.finish_reason == "tool_calls"


@pytest.mark.parametrize("model", NATIVE)
@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("form", ["indented", "spaces", "mark", "pieces"])
@pytest.mark.sampled(5)
def test_a_document_in_any_form(model: str, transport: Any, form: str) -> None:
    reply = document(model)
    body = json.dumps(reply, indent=2 if form == "indented" else None).encode()
    body = {"spaces": b" \r\n" * 9 + body + b"\r\n\r\n", "mark": b"\xef\xbb\xbf" + body}.get(form, body)

    async def in_pieces(writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for start in range(0, len(body), 37):
            piece = body[start : start + 37]
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        writer.write(b"0\r\n\r\n")

    with Client(cache=False, max_retries=2, transport=transport) as client:
        response, deltas = streamed(client, model, in_pieces if form == "pieces" else answering(body))
    assert len(deltas) == 1
    assert response.raw == reply


@anyhow
@pytest.mark.sampled(3)
def test_a_document_of_an_error_is_the_error(client: Client, model: str) -> None:
    error = {"error": {"message": "no such tool", "type": "invalid_request_error", "code": 400}}
    error["error"]["status"] = "INVALID_ARGUMENT"
    with pytest.raises(BadRequestError, match="no such tool"):
        streamed(client, model, answering(json.dumps(error).encode()))


def test_a_list_of_the_events_of_gemini(client: Client) -> None:
    """Without `alt=sse`, which a proxy may drop, Gemini sends a list."""
    events = list(SHAPES["gemini"][0].events)
    response, deltas = streamed(client, "gemini-3.8-flash", answering(json.dumps(events).encode()))
    assert response.text == "".join(delta.text for delta in deltas) == TEXT


@pytest.mark.parametrize("model", NATIVE)
def test_a_stream_that_nobody_asked_for_is_the_answer(model: str) -> None:
    """Some servers stream always. The second request was billed, too, and was answered in the same way."""
    shape = SHAPES[NATIVE[model]][0]
    body = shape.stream()
    with RawServer(answering(body, headers={"content-type": "text/event-stream"})) as server:
        base_url = server.root if "claude" in model or "gemini" in model else f"{server.root}/v1"
        with Client() as client:
            for cached in (False, True):
                response = client.call(model, "Hi", base_url=base_url, api_key="k")
                assert (response.text, response.cached, response.finish_reason) == (TEXT, cached, "stop")
                assert response.usage.output_tokens
    assert server.requests == 1


def test_an_answer_before_the_end_of_a_stream(client: Client) -> None:
    body = json.dumps(document("local/m")).encode() + b"\n\ndata: [DONE]\n\n"
    with RawServer(answering(body)) as server:
        assert client.call("local/m", "Hi", base_url=f"{server.root}/v1", api_key="k").text == TEXT
        assert server.requests == 1


def test_a_cut_stream_that_nobody_asked_for_is_no_answer(client: Client) -> None:
    body = SHAPES["openai"][0].stream()[:90]
    with RawServer(answering(body)) as server:
        with pytest.raises(APIResponseValidationError):
            client.call("local/m", "Hi", base_url=f"{server.root}/v1", api_key="k")
        assert server.requests == 2
