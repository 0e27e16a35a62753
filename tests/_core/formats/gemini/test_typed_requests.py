"""Requests by the public methods of google-genai; most tests run with the private ones as well."""

import json

import pytest

from gemini_support import connected, outgoing, streamed
from llm_provider._core.formats.gemini.typed_requests import MOST_PREPARED
from llm_provider.simulator import Fault, Simulator
from support import ignore


async def test_bytes_in_a_stream_are_spelled_as_on_the_wire(simulator: Simulator, transport: str) -> None:
    # Both alphabets of base64 differ in these bytes, and null inside of arguments is a value.
    part = {
        "functionCall": {"name": "f", "args": {"a": None, "b": [1.5, "é"]}},
        "thoughtSignature": "+/+/+w==",
    }
    image = {"inlineData": {"mimeType": "image/png", "data": "/+/+"}}
    cited = {"citationSources": [{"uri": "https://example.org", "startIndex": 1}]}
    candidate = {"content": {"role": "model", "parts": [part, image]}, "finishReason": "STOP", "index": 0}
    body = {"candidates": [{**candidate, "citationMetadata": cited}], "responseId": "r", "modelVersion": "m"}
    simulator.inject(Fault(body=f"data: {json.dumps(body)}\r\n\r\n", content_type="text/event-stream"))
    async with connected(transport) as connection:
        batches = connection.stream(outgoing(simulator.url("gemini")), ignore)
        assert [event async for batch in batches for event in batch] == [body]


async def test_a_stream_has_fields_that_the_sdk_does_not_read(simulator: Simulator, transport: str) -> None:
    detail = "Malformed function call: print(x)"
    candidate = {
        "finishReason": "MALFORMED_FUNCTION_CALL",
        "finishMessage": detail,
        "newField": [1],
        "index": 0,
    }
    body = {"candidates": [candidate], "newField": {"a": None}}
    simulator.inject(Fault(body=f"data: {json.dumps(body)}\n\n", content_type="text/event-stream"))
    async with connected(transport) as connection:
        batches = connection.stream(outgoing(simulator.url("gemini")), ignore)
        assert [event async for batch in batches for event in batch] == [body]
        # The connection is used again.
        answer = await streamed(connection, outgoing(simulator.url("gemini")))
        assert answer.choices[0].text == "4"


@pytest.mark.sampled(4)
async def test_headers_that_always_differ_take_no_more_memory(simulator: Simulator, transport: str) -> None:
    async with connected(transport) as connection:
        for number in range(MOST_PREPARED + 10):
            request = outgoing(simulator.url("gemini"), extra_headers={"X-Trace": str(number)})
            await connection.send(request, ignore)
        assert connection._requests.prepare.cache_info().currsize == MOST_PREPARED
    assert [request.headers["x-trace"] for request in simulator.requests()] == [
        str(number) for number in range(MOST_PREPARED + 10)
    ]
