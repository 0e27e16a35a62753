"""What the tests of the connection to Gemini share."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from llm_provider._core.errors import LLMError
from llm_provider._core.formats.gemini import encode as adapter
from llm_provider._core.formats.gemini.connection import connect
from llm_provider._core.formats.gemini.stream import Assembler
from llm_provider._core.formats.protocol import Answer, Outgoing
from llm_provider._core.formats.transport.connection import SDKConnection
from llm_provider._core.pace.call_limits import Timeouts
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._core.runtime.json_pieces import canonical

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"my_city": {"type": "string"}}},
    },
}


def outgoing(
    base_url: str,
    prompt: Any = "What is 2+2?",
    model: str = "gemini-3.8-flash",
    timeout: float = 30.0,
    connect: float = 15.0,
    **more: Any,
) -> Outgoing:
    request, target = Request.build(model, prompt, more), resolve(model, base_url)
    encoded = adapter.encode(request, target)
    return Outgoing(
        encoded, canonical(encoded.payload), target, APIKey("key-1"), Timeouts(total=timeout, connect=connect)
    )


@asynccontextmanager
async def connected(transport: str) -> AsyncIterator[SDKConnection]:
    connection = connect(transport)
    try:
        yield connection
    finally:
        await connection.close()


async def sent(connection: SDKConnection, request: Outgoing) -> Answer:
    return adapter.decode(json.loads(await connection.send(request)))


async def streamed(connection: SDKConnection, request: Outgoing) -> Answer:
    assembler = Assembler()
    async with aclosing(connection.stream(request)) as batches:
        async for batch in batches:
            for event in batch:
                assembler.feed(event)
    return adapter.decode(assembler.reply())


Way = Callable[[SDKConnection, Outgoing], Awaitable[Answer]]
both_ways = pytest.mark.parametrize("way", [sent, streamed])


def run(transport: str, way: Way, *requests: Outgoing) -> list[Answer]:
    async def main() -> list[Answer]:
        async with connected(transport) as connection:
            return [await way(connection, request) for request in requests]

    return asyncio.run(main())


def failure(transport: str, way: Way, request: Outgoing) -> LLMError:
    with pytest.raises(Exception) as caught:  # noqa: PT011  # whatever the SDK or its transport raises
        run(transport, way, request)
    return adapter.map_error(caught.value)
