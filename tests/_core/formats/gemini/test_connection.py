"""Gemini through the real google-genai SDK, over every transport, against the simulator."""

import asyncio
import json
import logging
from typing import Any

import pytest

from gemini_support import WEATHER, Way, both_ways, connected, failure, outgoing, run, streamed
from llm_provider._core import errors
from llm_provider.simulator import Fault, Simulator
from support import wait_until


@both_ways
def test_the_sdks_variables_have_no_effect(
    simulator: Simulator, way: Way, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    request = outgoing(simulator.url("gemini"))
    run("aiohttp", way, request)
    for name, value in {
        "GOOGLE_API_KEY": "other",
        "GEMINI_API_KEY": "another",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_USE_ENTERPRISE": "true",
        "GOOGLE_CLOUD_PROJECT": "project",
        "GOOGLE_CLOUD_LOCATION": "europe-west1",
        "GOOGLE_GENAI_API_VERSION": "v1alpha",
        "GOOGLE_GEMINI_BASE_URL": "http://localhost:1",
    }.items():
        monkeypatch.setenv(name, value)
    run("aiohttp", way, request)
    plain, disturbed = simulator.requests()
    assert (disturbed.path, disturbed.headers["x-goog-api-key"]) == (
        plain.path,
        plain.headers["x-goog-api-key"],
    )
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


FAULTS: list[tuple[Fault, type[errors.LLMError], dict[str, Any]]] = [
    (Fault(status=400), errors.BadRequestError, {"code": "INVALID_ARGUMENT"}),
    (
        Fault(status=429, retry_after="27.39s", retry_after_style="retry_info"),
        errors.RateLimitError,
        {"retry_after": 27.39},
    ),
    (Fault(status=429, retry_after="3"), errors.RateLimitError, {"retry_after": 3.0}),
    (Fault(status=503, body="not JSON"), errors.OverloadedError, {"status": 503}),
    (Fault(redirect="http://127.0.0.1:9/elsewhere"), errors.APIResponseValidationError, {"status": 307}),
    (Fault(body="null"), errors.APIResponseValidationError, {}),
    (Fault(abort_after=1), errors.APIConnectionError, {"maybe_billed": True}),
]


@both_ways
@pytest.mark.sampled(3)
def test_failures_are_ours_after_one_request(simulator: Simulator, transport: str, way: Way) -> None:
    """Over each transport; tests/end_to_end/faults.py has every failure."""
    for fault, kind, attributes in FAULTS:
        simulator.clear()
        simulator.inject(fault)
        error = failure(transport, way, outgoing(simulator.url("gemini"), "Say one two three"))
        assert type(error) is kind, (fault, error)
        assert {name: getattr(error, name) for name in attributes} == attributes, fault
        assert len(simulator.requests()) == 1


@both_ways
async def test_cancelling_closes_the_request_at_the_server(
    simulator: Simulator, transport: str, way: Way
) -> None:
    simulator.inject(Fault(hang=True))
    async with connected(transport) as connection:
        task = asyncio.create_task(way(connection, outgoing(simulator.url("gemini"))))
        await asyncio.to_thread(wait_until, lambda: bool(simulator.requests()))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(wait_until, lambda: simulator.requests()[0].disconnected)
        # The connection serves on.
        await way(connection, outgoing(simulator.url("gemini")))


async def test_leaving_a_stream_closes_it_at_the_server(simulator: Simulator, transport: str) -> None:
    simulator.inject(Fault(stall_after=1))
    async with connected(transport) as connection:
        events = connection.stream(outgoing(simulator.url("gemini"), "Say one two three"))
        await anext(events)
        await events.aclose()
        assert await asyncio.to_thread(wait_until, lambda: simulator.requests()[0].disconnected)


@both_ways
def test_exactly_the_payload_is_sent(simulator: Simulator, transport: str, way: Way) -> None:
    request = outgoing(
        simulator.url("gemini"),
        [
            {"role": "user", "content": "Weather in Bern?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c",
                        "function": {"name": "weather", "arguments": '{"my_city": "Bern", "none": null}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "sun"},
        ],
        system="Be short",
        tools=[WEATHER],
        tool_choice="auto",
        max_tokens=50,
        reasoning_effort="low",
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
        extra_headers={"X-Own": "1"},
        extra_body={"safetySettings": [{"category": "x", "threshold": "y"}], "service_tier": "flex"},
    )
    run(transport, way, request)
    (seen,) = simulator.requests()
    assert seen.body == request.encoded.payload
    action = "streamGenerateContent?alt=sse" if way is streamed else "generateContent"
    assert seen.path == f"/gemini/v1/models/gemini-3.8-flash:{action}"
    assert (seen.headers["x-own"], seen.headers["x-server-timeout"]) == ("1", "30")
    assert "authorization" not in seen.headers


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
        batches = connection.stream(outgoing(simulator.url("gemini")))
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
        batches = connection.stream(outgoing(simulator.url("gemini")))
        assert [event async for batch in batches for event in batch] == [body]
        # The connection is used again.
        answer = await streamed(connection, outgoing(simulator.url("gemini")))
        assert answer.choices[0].text == "4"
