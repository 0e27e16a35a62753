"""Shapes of answers that Anthropic and Gemini send, and the simulator's own answers do not have."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from llm_provider import (
    APIConnectionError,
    APIResponseValidationError,
    AuthenticationError,
    Client,
    Delta,
    LLMError,
    QuotaExceededError,
    RateLimitError,
    Response,
    Timeouts,
)
from llm_provider.simulator import Fault, Simulator
from raw_server import RawServer, reset

GEMINI, CLAUDE = "gemini-3.8-flash", "claude-sonnet-5-5"

transports = pytest.mark.parametrize("transport", ["aiohttp", "http2", "http1"])
both = pytest.mark.parametrize("streamed", [False, True], ids=["call", "stream"])


def sse(*events: dict[str, Any], named: bool = False) -> str:
    names = [f"event: {event['type']}\n" if named else "" for event in events]
    return "".join(
        f"{name}data: {json.dumps(event)}\r\n\r\n" for name, event in zip(names, events, strict=True)
    )


def answer(
    client: Client, simulator: Simulator, model: str, body: str, *, streamed: bool, **parameters: Any
) -> tuple[Response, list[Delta]]:
    """The response to a body, and its deltas. Exactly one request is sent."""
    kind = "text/event-stream" if streamed else "application/json"
    simulator.inject(Fault(body=body, content_type=kind), times=None)
    where = {"base_url": simulator.url("anthropic" if model == CLAUDE else "gemini"), **parameters}
    deltas: list[Delta] = []
    try:
        if not streamed:
            return client.call(model, "Hi", **where), []
        with client.stream(model, "Hi", **where) as stream:
            deltas += stream
        return stream.response, deltas
    finally:
        assert len(simulator.requests()) == 1


def google_error(status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": 400, "message": message, "status": status, "details": list(details)}}


ERRORS: list[tuple[int, dict[str, Any], type[LLMError], float | None]] = [
    (400, google_error("INVALID_ARGUMENT", "API key not valid. Please pass one."), AuthenticationError, None),
    (429, google_error("RESOURCE_EXHAUSTED", "slow", {"retryDelay": "3.5s"}), RateLimitError, 3.5),
    (
        429,
        google_error("RESOURCE_EXHAUSTED", "daily", {"violations": [{"quotaId": "RequestsPerDayPerModel"}]}),
        QuotaExceededError,
        None,
    ),
]


@transports
@pytest.mark.parametrize("form", ["json", "event", "list"])
@pytest.mark.parametrize(("status", "body", "kind", "wait"), ERRORS, ids=["key", "minute", "day"])
def test_an_error_of_gemini_with_the_type_of_a_stream(
    simulator: Simulator,
    client: Client,
    transport: Any,
    form: str,
    status: int,
    body: dict[str, Any],
    kind: type[LLMError],
    wait: float | None,
) -> None:
    text = {"json": json.dumps(body, indent=2), "event": sse(body), "list": json.dumps([body])}[form]
    simulator.inject(Fault(status=status, body=text, content_type="text/event-stream"), times=None)
    with Client(transport=transport, cache="off") as own, pytest.raises(LLMError) as caught:
        where = {"base_url": simulator.url("gemini"), "max_retries": 0}
        list(own.stream(GEMINI, "Hi", **where))
    assert type(caught.value) is kind
    assert (caught.value.retry_after, caught.value.message) == (wait, body["error"]["message"])


def candidate(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "index": 0, **fields}], "responseId": "r1"}


COUNTS = {"usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 2}}
CALL = {"functionCall": {"name": "weather", "args": {"city": "Bern"}}}


@both
def test_an_unexpected_tool_call_of_gemini_is_given(
    client: Client, simulator: Simulator, streamed: bool
) -> None:
    reply = {**candidate(CALL, finishReason="UNEXPECTED_TOOL_CALL"), **COUNTS}
    body = sse(reply) if streamed else json.dumps(reply)
    response, _ = answer(client, simulator, GEMINI, body, streamed=streamed)
    assert response.finish_reason == "tool_calls"
    assert response.tool_calls[0].parsed_arguments == {"city": "Bern"}
    assert response.cost is not None
    assert response.cost > 0


@both
def test_a_malformed_call_of_gemini_is_billed_once_and_told(
    client: Client, simulator: Simulator, streamed: bool
) -> None:
    said = "Malformed function call: print(default_api.weather(city='Bern'))"
    reply = {**candidate(finishReason="MALFORMED_FUNCTION_CALL", finishMessage=said), **COUNTS}
    body = sse(reply) if streamed else json.dumps(reply)
    with pytest.raises(APIResponseValidationError, match=r"weather\(city='Bern'\)") as caught:
        answer(client, simulator, GEMINI, body, streamed=streamed)
    assert (caught.value.code, caught.value.attempts) == ("MALFORMED_FUNCTION_CALL", 1)


def test_a_whole_answer_of_gemini_without_a_finish_reason(client: Client, simulator: Simulator) -> None:
    response, _ = answer(client, simulator, GEMINI, json.dumps(candidate({"text": "Hi"})), streamed=False)
    assert (response.text, response.finish_reason) == ("Hi", "stop")


@pytest.mark.parametrize(
    "rest",
    [
        "data: {garbage\r\n\r\n",
        sse({"error": {"code": 503, "status": "UNAVAILABLE", "message": "late"}}),
        "[" * 2000,
        "data: " + "[" * 2000,
    ],
)
def test_bytes_after_the_end_of_a_stream_of_gemini(client: Client, simulator: Simulator, rest: str) -> None:
    whole = {**candidate({"text": "Hello"}, finishReason="STOP"), **COUNTS}
    response, deltas = answer(client, simulator, GEMINI, sse(whole) + rest, streamed=True)
    assert response.text == "".join(delta.text for delta in deltas) == "Hello"
    assert response.usage.output_tokens == 2


CODE = (
    {"executableCode": {"language": "PYTHON", "code": "print(111111111 * 109739371)"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "121932631112635269"}},
)


def test_an_answer_of_gemini_that_goes_on_after_stop(client: Client, simulator: Simulator) -> None:
    events = sse(
        candidate(CODE[0], finishReason="STOP"),
        candidate(CODE[1]),
        candidate({"text": "The first number is 12193263"}),
        {**candidate({"text": "1112635269."}, finishReason="STOP"), **COUNTS},
    )
    response, deltas = answer(client, simulator, GEMINI, events, streamed=True)
    text = "The first number is 121932631112635269."
    assert response.text == "".join(delta.text for delta in deltas) == text
    assert response.message["provider_specific_fields"]["content"] == [*CODE, {"text": text}]


@pytest.mark.parametrize("sent", [1, 2])
def test_a_stream_of_gemini_that_breaks_while_code_runs_was_cut(client: Client, sent: int) -> None:
    body = sse(*(candidate(part, finishReason="STOP") for part in CODE[:sent])).encode()

    async def behaviour(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head + b"%x\r\n%b\r\n" % (len(body), body))
        await writer.drain()
        reset(writer)

    with RawServer(behaviour) as server, pytest.raises(APIConnectionError):
        list(client.stream(GEMINI, "Hi", base_url=server.root, max_retries=0))


@pytest.mark.parametrize("pause", [0.1, 3600.0], ids=["broken", "endless"])
def test_a_connection_that_fails_after_the_end_of_a_stream_of_gemini(client: Client, pause: float) -> None:
    body = sse({**candidate({"text": "Hello"}, finishReason="STOP"), **COUNTS}).encode()

    async def behaviour(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head + b"%x\r\n%b\r\n" % (len(body), body))
        await writer.drain()
        await asyncio.sleep(pause)
        reset(writer)

    with RawServer(behaviour) as server:
        with client.stream(GEMINI, "Hi", base_url=server.root, timeout=Timeouts(idle=1.0)) as stream:
            deltas = list(stream)
        assert stream.response.text == "".join(delta.text for delta in deltas) == "Hello"
        assert server.requests == 1


START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": CLAUDE,
        "content": [],
        "stop_reason": None,
        "usage": {"input_tokens": 5, "output_tokens": 1},
    },
}
USE = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Bern"}}


def message(*blocks: dict[str, Any], **delta: Any) -> str:
    """A stream of whole blocks, which have no deltas."""
    events: list[dict[str, Any]] = [START]
    for index, block in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 7}})
    return sse(*events, {"type": "message_stop"}, named=True)


def test_a_tool_call_of_claude_in_the_beginning_of_its_message(client: Client, simulator: Simulator) -> None:
    start = {**START, "message": {**START["message"], "content": [USE]}}  # type: ignore[dict-item]  # JSON of any shape
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 7}}
    body = sse(start, end, {"type": "message_stop"}, named=True)
    response, deltas = answer(client, simulator, CLAUDE, body, streamed=True)
    assert response.tool_calls[0].parsed_arguments == {"city": "Bern"}
    assert "".join(call.arguments for delta in deltas for call in delta.tool_calls) == '{"city":"Bern"}'


def test_an_input_of_claude_that_comes_with_its_block(client: Client, simulator: Simulator) -> None:
    body = message(USE, stop_reason="tool_use")
    response, deltas = answer(client, simulator, CLAUDE, body, streamed=True)
    assert response.tool_calls[0].parsed_arguments == {"city": "Bern"}
    assert "".join(call.arguments for delta in deltas for call in delta.tool_calls) == '{"city":"Bern"}'


def test_a_refusal_of_claude_is_explained_in_the_stream(client: Client, simulator: Simulator) -> None:
    details = {"type": "refusal", "category": None, "explanation": "I must not."}
    body = message(stop_reason="refusal", stop_details=details)
    response, deltas = answer(client, simulator, CLAUDE, body, streamed=True)
    assert response.text == "".join(delta.text for delta in deltas) == "I must not."


def test_the_model_of_claude_that_served_after_a_fallback(client: Client, simulator: Simulator) -> None:
    hop = {"type": "fallback", "from": {"model": CLAUDE}, "to": {"model": "claude-opus-4-8"}}
    body = message(hop, {"type": "text", "text": "Hi"}, stop_reason="end_turn")
    response, _ = answer(client, simulator, CLAUDE, body, streamed=True)
    assert (response.model, response.text) == ("claude-opus-4-8", "Hi")


@both
def test_an_answer_of_claude_without_a_stop_reason(
    client: Client, simulator: Simulator, streamed: bool
) -> None:
    text = {"type": "text", "text": "Hi"}
    whole = {**START["message"], "content": [text]}  # type: ignore[dict-item]  # JSON of any shape
    body = message(text, stop_reason=None) if streamed else json.dumps(whole)
    response, _ = answer(client, simulator, CLAUDE, body, streamed=streamed)
    assert (response.text, response.finish_reason) == ("Hi", "stop")


@both
@pytest.mark.parametrize("depth", [500, 1000])
@pytest.mark.parametrize("model", [GEMINI, CLAUDE])
def test_a_call_that_is_nested_too_deep_is_not_asked_for_again(
    client: Client, simulator: Simulator, model: str, depth: int, streamed: bool
) -> None:
    value = {"x": "VALUE"}
    if model == GEMINI:
        reply = candidate({"functionCall": {"name": "f", "args": value}}, finishReason="STOP")
        body = sse(reply) if streamed else json.dumps(reply)
    else:
        block = {**USE, "input": value}
        whole = {**START["message"], "content": [block], "stop_reason": "tool_use"}  # type: ignore[dict-item]  # JSON of any shape
        body = message(block, stop_reason="tool_use") if streamed else json.dumps(whole)
    body = body.replace('"VALUE"', "[" * depth + "]" * depth)
    with pytest.raises(APIResponseValidationError, match="no JSON that can be kept"):
        answer(client, simulator, model, body, streamed=streamed)
