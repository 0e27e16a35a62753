"""Servers that answer a request for a stream with one JSON document: it is the answer, and asked for once."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import APIResponseValidationError, BadRequestError, Client, Delta, Response
from raw_server import Behaviour, RawServer, answering

pytestmark = IGNORED_WARNINGS

JSON = dict[str, Any]
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Bern"}'}}

CHAT: JSON = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "served",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello", "tool_calls": [CALL]},
            "finish_reason": "tool_calls",
        }
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
}
RESPONSES: JSON = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "served",
    "output": [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Bern"}'},
    ],
    "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
}
ANTHROPIC: JSON = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "served",
    "content": [
        {"type": "text", "text": "Hello"},
        {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Bern"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 10, "output_tokens": 5},
}
GEMINI: JSON = {
    "candidates": [
        {
            "index": 0,
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Hello"},
                    {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Bern"}}},
                ],
            },
            "finishReason": "STOP",
        }
    ],
    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
    "modelVersion": "served",
}
NATIVE: dict[str, JSON] = {
    "local/m": CHAT, "mistral/m": CHAT, "openrouter/m": CHAT, "gpt-5.5-pro": RESPONSES,
    "claude-sonnet-5-5": ANTHROPIC, "gemini-3.8-flash": GEMINI,
}  # fmt: skip
LITELLM: dict[str, JSON] = {
    "litellm/openai/m": CHAT, "hosted_vllm/m": CHAT, "snowflake/m": CHAT,
    "litellm/anthropic/claude-sonnet-5-5": ANTHROPIC,
}  # fmt: skip

natively = pytest.mark.parametrize("model", NATIVE)
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


def document(model: str) -> JSON:
    return {**NATIVE, **LITELLM}[model]


@anyhow
def test_a_document_is_the_answer(client: Client, model: str) -> None:
    response, (delta,) = streamed(client, model, answering(json.dumps(document(model)).encode()))
    assert response.text == delta.text == "Hello"
    (call,), (streamed_call,) = response.tool_calls, delta.tool_calls
    assert (call.id, call.name, call.parsed_arguments) == ("c1", "weather", {"city": "Bern"})
    assert (streamed_call.id, streamed_call.name, streamed_call.arguments) == (
        call.id,
        call.name,
        call.arguments,
    )
    assert (response.usage.input_tokens, response.usage.output_tokens) == (10, 5)
    assert (response.finish_reason, response.model) == ("tool_calls", "served")


@natively
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
def test_a_document_of_an_error_is_the_error(client: Client, model: str) -> None:
    error = {"error": {"message": "no such tool", "type": "invalid_request_error", "code": 400}}
    error["error"]["status"] = "INVALID_ARGUMENT"
    with pytest.raises(BadRequestError, match="no such tool"):
        streamed(client, model, answering(json.dumps(error).encode()))


def test_a_document_with_several_samples(client: Client) -> None:
    (choice,) = CHAT["choices"]
    reply = {**CHAT, "choices": [{**choice, "index": index} for index in range(2)]}
    response, deltas = streamed(client, "local/m", answering(json.dumps(reply).encode()), n=2)
    assert [(delta.index, delta.text) for delta in deltas] == [(0, "Hello"), (1, "Hello")]
    assert response.texts == ["Hello", "Hello"]


def test_a_list_of_the_events_of_gemini(client: Client) -> None:
    """Without `alt=sse`, which a proxy may drop, Gemini sends a list."""
    (candidate,) = GEMINI["candidates"]
    first = {"candidates": [{"content": {"parts": [{"text": "Oh! "}]}}]}
    response, deltas = streamed(client, "gemini-3.8-flash", answering(json.dumps([first, GEMINI]).encode()))
    assert response.text == "".join(delta.text for delta in deltas) == "Oh! Hello"
    assert candidate["content"]["parts"][1] in response.message["provider_specific_fields"]["content"]


def test_a_cut_document_is_no_answer(client: Client) -> None:
    body = json.dumps(CHAT).encode()[:-20]
    with RawServer(answering(body)) as server, pytest.raises(APIResponseValidationError, match="not JSON"):
        list(client.stream("local/m", "Hi", base_url=server.root, max_retries=0))


@natively
def test_the_document_is_stored_like_any_answer(model: str, tmp_path: Path) -> None:
    behaviour = answering(json.dumps(document(model)).encode())
    with RawServer(behaviour) as server, Client(cache_dir=tmp_path, max_retries=2) as client:
        where = {"base_url": server.root, "api_key": "k"}
        stream = client.stream(model, "Hi", **where)
        list(stream)
        again = client.call(model, "Hi", **where)
        assert server.requests == 1
    assert again.cached
    assert again.choices == stream.response.choices
