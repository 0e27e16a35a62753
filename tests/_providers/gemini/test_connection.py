"""Gemini through the real google-genai SDK, over every transport, against the simulator."""

import asyncio
import gc
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from gemini_support import WEATHER, Way, both_ways, connected, failure, outgoing, run, sent, streamed
from llm_provider._errors import (
    APIConnectionError,
    APIResponseValidationError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    ContextWindowExceededError,
    InternalServerError,
    LLMError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
)
from llm_provider._providers.gemini import adapter
from llm_provider._providers.gemini.connection import connect
from llm_provider._providers.gemini.stream import Assembler
from llm_provider._requests.api_keys import APIKey
from llm_provider.simulator import Fault, RecordedRequest, Simulator
from support import ignore, wait_until


@dataclass
class Proxy:
    port: int = 0
    connections: int = 0


@asynccontextmanager
async def counting_proxy(port: int) -> AsyncIterator[Proxy]:
    """Passes bytes on to a port of this machine and counts the connections."""
    proxy = Proxy()
    serving: set[asyncio.Task[Any]] = set()

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
        sink.close()
        await sink.wait_closed()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        proxy.connections += 1
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        serving.update(
            {asyncio.create_task(pump(reader, far_writer)), asyncio.create_task(pump(far_reader, writer))}
        )

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        proxy.port = server.sockets[0].getsockname()[1]
        yield proxy
        await asyncio.gather(*serving)


def take_signatures(reply: dict[str, Any]) -> list[bool]:
    """Takes the signatures out of a reply and tells which parts had one."""
    parts = [part for candidate in reply["candidates"] for part in candidate["content"]["parts"]]
    return [part.pop("thoughtSignature", None) is not None for part in parts]


def test_a_stream_is_the_answer_without_streaming(simulator: Simulator, transport: str) -> None:
    async def main() -> tuple[Any, list[Any]]:
        async with connected(transport) as connection:
            whole = json.loads(await connection.send(request, ignore))
            return whole, [event async for batch in connection.stream(request, ignore) for event in batch]

    for more in ({"reasoning_effort": "low"}, {"tools": [WEATHER], "tool_choice": "required"}, {"n": 3}):
        request = outgoing(simulator.url("gemini"), **more)
        whole, events = asyncio.run(main())
        assembler = Assembler()
        for event in events:
            assembler.feed(event)
        assembled = assembler.reply()
        # The simulator's signatures hold the id of the answer, which differs from one request to the next.
        assert take_signatures(assembled) == take_signatures(whole)
        assert {**assembled, "responseId": ""} == {**whole, "responseId": ""}


@both_ways
def test_calls_share_a_connection_and_keys_their_http_client(
    simulator: Simulator, transport: str, way: Way, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> int:
        async with counting_proxy(simulator.port) as proxy, connected(transport) as connection:
            base_url = simulator.url("gemini").replace(str(simulator.port), str(proxy.port))
            first = outgoing(base_url)
            for request in (first, replace(first, key=APIKey("key-2")), first):
                await way(connection, request)
            return proxy.connections

    assert asyncio.run(main()) == 1
    keys = [seen.headers["x-goog-api-key"] for seen in simulator.requests()]
    assert keys[0] == keys[2] != keys[1]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


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


@both_ways
def test_a_conversation_with_tools(simulator: Simulator, transport: str, way: Way) -> None:
    prompt: list[Any] = [{"role": "user", "content": "Please use the tool"}]
    more: dict[str, Any] = {"tools": [WEATHER], "reasoning_effort": "low"}
    request = outgoing(simulator.url("gemini"), prompt, **more)
    choice = run(transport, way, request)[0].choices[0]
    assert choice.finish_reason == "tool_calls"
    prompt.append(json.loads(json.dumps(choice.message)))
    prompt += [{"role": "tool", "tool_call_id": call.id, "content": "sun"} for call in choice.tool_calls]
    run(transport, way, outgoing(simulator.url("gemini"), prompt, **more))
    contents = simulator.requests()[-1].body["contents"]
    assert contents[1]["parts"] == choice.message["provider_specific_fields"]["content"]
    assert "thoughtSignature" in contents[1]["parts"][-1]
    assert contents[2]["parts"][0]["functionResponse"]["name"] == "weather"


@both_ways
@pytest.mark.parametrize(
    ("finish", "reason", "text"),
    [("length", "length", "echo: Say one"), ("refusal", "content_filter", ""), ("empty", "stop", "")],
)
def test_unusual_ends(simulator: Simulator, way: Way, finish: str, reason: str, text: str) -> None:
    simulator.inject(Fault(finish=finish))
    choice = run("aiohttp", way, outgoing(simulator.url("gemini"), "Say one two three four"))[0].choices[0]
    assert choice.finish_reason == reason
    assert choice.text.startswith(text)


def test_a_blocked_prompt(simulator: Simulator, transport: str) -> None:
    request = outgoing(simulator.url("gemini"), "please refuse the prompt")
    for way in (sent, streamed):
        assert run(transport, way, request)[0].choices[0].finish_reason == "content_filter"


FAULTS: list[tuple[Fault, type[LLMError], dict[str, Any]]] = [
    (Fault(status=400), BadRequestError, {"code": "INVALID_ARGUMENT"}),
    (Fault(status=401), AuthenticationError, {}),
    (Fault(status=402), QuotaExceededError, {}),
    (Fault(status=403), PermissionDeniedError, {}),
    (Fault(status=404), NotFoundError, {}),
    (Fault(context_length=True), ContextWindowExceededError, {}),
    (Fault(status=429), RateLimitError, {"retry_after": None}),
    (
        Fault(status=429, retry_after="27.39s", retry_after_style="retry_info"),
        RateLimitError,
        {"retry_after": 27.39},
    ),
    (Fault(status=429, retry_after="3"), RateLimitError, {"retry_after": 3.0}),
    (Fault(quota=True), QuotaExceededError, {"retryable": False}),
    (Fault(status=500), InternalServerError, {"maybe_billed": True}),
    (Fault(status=503), OverloadedError, {}),
    (Fault(status=504), APITimeoutError, {"retryable": True}),
    (Fault(status=503, body="not JSON"), OverloadedError, {"status": 503}),
    (
        Fault(status=502, body="<html>x</html>", content_type="text/html"),
        InternalServerError,
        {"status": 502},
    ),
    (Fault(redirect="http://127.0.0.1:9/elsewhere"), APIResponseValidationError, {"status": 307}),
    (
        Fault(body="<html></html>", content_type="text/html"),
        APIResponseValidationError,
        {"maybe_billed": True},
    ),
    (
        Fault(body=b'{"candidates": [{"content": {"parts": [{"text": "\xff"}]}}]}'),
        APIResponseValidationError,
        {},
    ),
    (Fault(body="{}"), APIResponseValidationError, {}),
    (Fault(body="null"), APIResponseValidationError, {}),
    (Fault(body="[" * 100_000), APIResponseValidationError, {}),
    (
        Fault(body='{"error": {"code": 503, "status": "UNAVAILABLE"}}'),
        OverloadedError,
        {"maybe_billed": True},
    ),
    (Fault(body='{"candidates": [{"finishReason": "TOMORROW"}]}'), APIResponseValidationError, {}),
    (Fault(finish="no_choices"), APIResponseValidationError, {}),
]


@both_ways
def test_every_failure_is_one_of_ours_after_one_request(
    simulator: Simulator, transport: str, way: Way
) -> None:
    async def main() -> None:
        request = outgoing(simulator.url("gemini"))
        async with connected(transport) as connection:
            for fault, kind, attributes in FAULTS:
                simulator.clear()
                simulator.inject(fault)
                with pytest.raises(Exception) as caught:  # noqa: PT011  # whatever the SDK or its transport raises
                    await way(connection, request)
                error = adapter.map_error(caught.value)
                assert type(error) is kind, (fault, error)
                assert {name: getattr(error, name) for name in attributes} == attributes, fault
                assert len(simulator.requests()) == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(cut_after=1), APIResponseValidationError),
        (Fault(empty_stream=True), APIResponseValidationError),
        (Fault(abort_after=1), APIConnectionError),
        (Fault(error_after=1), InternalServerError),
        (Fault(error_after=1, status=429), RateLimitError),
        (Fault(body='data: {"error": "x"}\r\n\r\n'), (InternalServerError, APIResponseValidationError)),
        (Fault(body='data: {"candidates": 7}\r\n\r\n'), APIResponseValidationError),
    ],
)
def test_a_stream_that_breaks_is_no_answer(
    simulator: Simulator, transport: str, fault: Fault, kind: type[LLMError] | tuple[type[LLMError], ...]
) -> None:
    simulator.inject(fault)
    error = failure(transport, streamed, outgoing(simulator.url("gemini"), "Say one two three"))
    assert isinstance(error, kind)
    assert error.maybe_billed


def test_an_answer_that_breaks_off_is_a_broken_connection(simulator: Simulator, transport: str) -> None:
    simulator.inject(Fault(abort_after=1))
    error = failure(transport, sent, outgoing(simulator.url("gemini"), "Say one two three"))
    assert (type(error), error.retryable, error.maybe_billed) == (APIConnectionError, True, True)


@both_ways
def test_cancelling_closes_the_request_at_the_server(simulator: Simulator, transport: str, way: Way) -> None:
    async def main() -> None:
        simulator.inject(Fault(hang=True))
        async with connected(transport) as connection:
            task = asyncio.create_task(way(connection, outgoing(simulator.url("gemini"))))
            await asyncio.to_thread(wait_until, lambda: bool(simulator.requests()))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(wait_until, lambda: gone(simulator))
            # The connection serves on.
            await way(connection, outgoing(simulator.url("gemini")))

    asyncio.run(main())


def gone(simulator: Simulator) -> bool:
    seen: RecordedRequest = simulator.requests()[0]
    return seen.disconnected


def test_leaving_a_stream_closes_it_at_the_server(simulator: Simulator, transport: str) -> None:
    async def main() -> None:
        simulator.inject(Fault(stall_after=1))
        async with connected(transport) as connection:
            events = connection.stream(outgoing(simulator.url("gemini"), "Say one two three"), ignore)
            await anext(events)
            await events.aclose()
            assert await asyncio.to_thread(wait_until, lambda: gone(simulator))

    asyncio.run(main())


@pytest.mark.sampled(3)
def test_closing_leaves_nothing_open(simulator: Simulator, transport: str) -> None:
    async def main() -> None:
        async with connected(transport) as connection:
            requests = [outgoing(simulator.url("gemini"), f"What is {number}+1?") for number in range(20)]
            answers = await asyncio.gather(*(sent(connection, request) for request in requests))
            assert [answer.choices[0].text for answer in answers] == [str(number + 1) for number in range(20)]
            await streamed(connection, requests[0])
        assert len(asyncio.all_tasks()) == 1

    before = threading.active_count()
    asyncio.run(main())
    # Warnings are errors: what is still open says so when it is collected.
    gc.collect()
    assert threading.active_count() == before


def test_closing_what_was_never_opened() -> None:
    asyncio.run(connect("aiohttp").close())


def test_the_sdk_prints_nothing(simulator: Simulator) -> None:
    program = f"""
import asyncio
from llm_provider._runtime.canonical_json import canonical
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._limits.timeouts import Timeouts
from llm_provider._providers.gemini import adapter
from llm_provider._providers.gemini.connection import connect
from llm_provider._providers.gemini.stream import Assembler
from llm_provider._providers.protocol import Outgoing

async def main():
    target = resolve("gemini-3.8-flash", {simulator.url("gemini")!r})
    encoded = adapter.encode(Request.build("gemini-3.8-flash", "Hi", {{}}), target)
    connection = connect("aiohttp")
    request = Outgoing(encoded, canonical(encoded.payload), target, APIKey("k"), Timeouts(total=30))
    await connection.send(request, lambda headers: None)
    async for batch in connection.stream(request, lambda headers: None):
        pass
    await connection.close()

asyncio.run(main())
"""
    # google-genai 3.0 has an invalid escape in a docstring, which is reported when it is first compiled.
    command = [sys.executable, "-W", "error", "-W", "ignore:invalid escape sequence", "-c", program]
    variables = {**os.environ, "GOOGLE_API_KEY": "a", "GEMINI_API_KEY": "b"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
