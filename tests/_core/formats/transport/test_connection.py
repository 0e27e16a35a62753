"""The connection through an SDK: what it sends, what it remembers, over every transport."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai import types
from google.genai.errors import APIError, ClientError, ServerError

from anthropic_support import exchange, outgoing
from gemini_support import connected
from gemini_support import outgoing as gemini_outgoing
from llm_provider import Client
from llm_provider._core.formats.anthropic import encode as adapter
from llm_provider._core.formats.transport.connection import MOST_ENDPOINTS
from llm_provider._core.requests.api_keys import APIKey
from llm_provider.simulator import Fault, Simulator


@pytest.mark.parametrize("transport", ["aiohttp", "http1", "http2"])
def test_a_call_and_a_stream_give_the_same_answer(simulator: Simulator, transport: str) -> None:
    order = outgoing(simulator, "What is 2 + 2?", reasoning_effort="high")
    whole, streamed_ = (
        adapter.decode(exchange(order, stream=stream, transport=transport)) for stream in (False, True)
    )
    assert whole.choices[0].text == streamed_.choices[0].text == "4"
    assert whole.choices[0].reasoning == streamed_.choices[0].reasoning != ""
    assert whole.usage == streamed_.usage
    first, second = simulator.requests("anthropic")
    assert first.body == order.encoded.payload
    assert second.body == {**order.encoded.payload, "stream": True}


OWN = {"x-own": "1", "user-agent": "my-program/1"}


async def ask_openai(url: str, body: Any, seconds: float) -> None:
    async with openai.AsyncOpenAI(base_url=url, api_key="key", max_retries=0) as client:
        await client.chat.completions.create(**body, extra_headers=OWN, timeout=seconds)


async def ask_anthropic(url: str, body: Any, seconds: float) -> None:
    async with anthropic.AsyncAnthropic(base_url=url, api_key="key", max_retries=0) as client:
        await client.messages.create(**body, extra_headers=OWN, timeout=seconds)


async def ask_gemini(url: str, body: Any, seconds: float) -> None:
    options = types.HttpOptions(base_url=url, api_version="v1", timeout=int(1000 * seconds))
    async with genai.Client(vertexai=False, api_key="key", http_options=options).aio as client:
        alone = types.AutomaticFunctionCallingConfig(disable=True)
        config = types.GenerateContentConfig(
            automatic_function_calling=alone, http_options=types.HttpOptions(headers=OWN)
        )
        await client.models.generate_content(model=GEMINI, contents="Hi", config=config)


GEMINI = "gemini-3.8-flash"
# Of the connection, and the key that another server than Anthropic's may read.
NOT_COMPARED = {"accept-encoding", "connection", "content-length", "host", "transfer-encoding", "x-api-key"}


@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize(
    ("provider", "model", "ask"),
    [
        ("openai", "gpt-4.1", ask_openai),
        ("anthropic", "claude-sonnet-5-5", ask_anthropic),
        ("gemini", GEMINI, ask_gemini),
    ],
)
# The SDKs warn about their own use of aiohttp.
@pytest.mark.filterwarnings("ignore:Inheritance class")
def test_every_request_has_the_address_and_the_headers_that_the_sdk_writes(
    own_cache: Path, simulator: Simulator, provider: str, model: str, ask: Any, transport: str
) -> None:
    url = simulator.url(provider)
    with Client(cache="off", cache_dir=own_cache, transport=transport, timeout=77.0) as ours:
        for _ in range(2):
            ours.call(model, "Hi", base_url=url, api_key="key", extra_headers=OWN)
    body = simulator.requests()[0].body
    asyncio.run(ask(url, body, 77.0))
    *sent, own = simulator.requests()
    for request in sent:
        assert request.path == own.path
        headers, expected = (
            {name: value for name, value in each.headers.items() if name not in NOT_COMPARED}
            for each in (request, own)
        )
        assert headers == expected


async def test_headers_that_always_differ_take_no_more_memory(simulator: Simulator) -> None:
    numbers = range(MOST_ENDPOINTS + 10)
    async with connected("aiohttp") as connection:
        for number in numbers:
            request = gemini_outgoing(simulator.url("gemini"), extra_headers={"X-Trace": str(number)})
            await connection.send(request)
        assert len(connection._endpoints) <= MOST_ENDPOINTS
    assert [request.headers["x-trace"] for request in simulator.requests()] == list(map(str, numbers))


async def test_keys_that_always_differ_take_no_more_clients(simulator: Simulator) -> None:
    """As in a service whose users bring their own keys."""
    keys = [f"key-{number}" for number in range(MOST_ENDPOINTS + 10)]
    async with connected("aiohttp") as connection:
        for key in keys:
            request = replace(gemini_outgoing(simulator.url("gemini")), key=APIKey(key))
            await connection.send(request)
        assert len(connection._clients) <= MOST_ENDPOINTS
    assert len({request.headers["x-goog-api-key"] for request in simulator.requests()}) == len(keys)


@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize(("status", "kind"), [(400, ClientError), (503, ServerError)])
async def test_a_failure_is_the_error_of_the_sdk(
    simulator: Simulator, status: int, kind: type[APIError], transport: str
) -> None:
    request = gemini_outgoing(simulator.url("gemini"))
    async with connected(transport) as connection:
        simulator.inject(Fault(status=status), times=1)
        with pytest.raises(kind) as caught:
            await connection.send(request)
        assert caught.value.code == status
        # What is known of the endpoint is used again.
        assert json.loads(await connection.send(request))["candidates"]
    first, second = simulator.requests()
    assert first.headers == second.headers


@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini/gemini-3.8-flash"])
def test_no_key_of_one_request_goes_with_the_next(simulator: Simulator, model: str) -> None:
    """The headers of the first request are sent again. An SDK that adds such a key needs a live header."""
    with Client(cache="off") as client:
        for prompt in ("one", "two"):
            client.call(model, prompt)
    names = {name.lower() for request in simulator.requests() for name in request.headers}
    assert not [name for name in names if "idempotency" in name or "request-id" in name]
