"""The ends of streams that Gemini sends, and the simulator does not."""

import asyncio
import json
from typing import Any

import pytest

from llm_provider import APIConnectionError, Client, Delta, Response, Timeouts
from llm_provider.simulator import Fault, Simulator
from raw_server import Behaviour, RawServer, reset

GEMINI = "gemini-3.8-flash"


def sse(*events: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events)


def stream(client: Client, simulator: Simulator, body: str) -> tuple[Response, list[Delta]]:
    """The response to a streamed body, and its deltas. Exactly one request is sent."""
    simulator.inject(Fault(body=body, content_type="text/event-stream"), times=None)
    with client.stream(GEMINI, "Hi", base_url=simulator.url("gemini")) as stream:
        deltas = list(stream)
    assert len(simulator.requests()) == 1
    return stream.response, deltas


def candidate(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "index": 0, **fields}], "responseId": "r1"}


COUNTS = {"usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 2}}


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
    response, deltas = stream(client, simulator, events)
    text = "The first number is 121932631112635269."
    assert response.text == "".join(delta.text for delta in deltas) == text
    assert response.message["provider_specific_fields"]["content"] == [*CODE, {"text": text}]


def breaking(events: str, pause: float) -> Behaviour:
    """A stream whose connection breaks some seconds after these events."""
    body = events.encode()

    async def behaviour(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        writer.write(head + b"%x\r\n%b\r\n" % (len(body), body))
        await writer.drain()
        await asyncio.sleep(pause)
        reset(writer)

    return behaviour


@pytest.mark.parametrize("sent", [1, 2])
def test_a_stream_of_gemini_that_breaks_while_code_runs_was_cut(client: Client, sent: int) -> None:
    behaviour = breaking(sse(*(candidate(part, finishReason="STOP") for part in CODE[:sent])), 0)
    with RawServer(behaviour) as server, pytest.raises(APIConnectionError):
        list(client.stream(GEMINI, "Hi", base_url=server.root, max_retries=0))


@pytest.mark.parametrize("pause", [0.1, 3600.0], ids=["broken", "endless"])
def test_a_connection_that_fails_after_the_end_of_a_stream_of_gemini(client: Client, pause: float) -> None:
    events = sse({**candidate({"text": "Hello"}, finishReason="STOP"), **COUNTS})
    with RawServer(breaking(events, pause)) as server:
        with client.stream(GEMINI, "Hi", base_url=server.root, timeout=Timeouts(idle=1.0)) as stream:
            deltas = list(stream)
        assert stream.response.text == "".join(delta.text for delta in deltas) == "Hello"
        assert server.requests == 1
