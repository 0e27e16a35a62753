"""The ends of streams that Gemini sends, and the simulator does not."""

import asyncio
import json
from typing import Any

import pytest

from llm_provider import APIConnectionError, Client, Timeouts
from raw_server import Behaviour, RawServer, reset

GEMINI = "gemini-3.8-flash"


def sse(*events: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events)


def candidate(*parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "index": 0, **fields}], "responseId": "r1"}


COUNTS = {"usageMetadata": {"promptTokenCount": 4, "candidatesTokenCount": 2}}


CODE = (
    {"executableCode": {"language": "PYTHON", "code": "print(111111111 * 109739371)"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "121932631112635269"}},
)


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
