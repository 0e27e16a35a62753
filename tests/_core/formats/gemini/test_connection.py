"""Gemini through the real google-genai SDK, over every transport, against the simulator."""

import asyncio
import logging
from typing import Any

import pytest

from gemini_support import Way, both_ways, connected, failure, outgoing, run
from llm_provider._core import errors
from llm_provider.simulator import Fault, Simulator
from support import ignore, wait_until


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
        events = connection.stream(outgoing(simulator.url("gemini"), "Say one two three"), ignore)
        await anext(events)
        await events.aclose()
        assert await asyncio.to_thread(wait_until, lambda: simulator.requests()[0].disconnected)
