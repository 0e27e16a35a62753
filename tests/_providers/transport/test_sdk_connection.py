"""Calls and streams through an SDK's low-level `post`, over every transport."""

from __future__ import annotations

import asyncio

import pytest

from anthropic_support import exchange, outgoing, sent
from llm_provider._providers.anthropic import adapter
from llm_provider._providers.anthropic.connection import connect
from llm_provider.simulator import Fault, Simulator
from support import wait_until


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


@pytest.mark.parametrize("stream", [False, True])
def test_cancelling_ends_the_request_at_the_server(simulator: Simulator, stream: bool) -> None:
    simulator.inject(Fault(hang=True))

    async def run() -> None:
        connection = connect("aiohttp")
        task = asyncio.ensure_future(sent(connection, outgoing(simulator, "Hi"), stream=stream))
        assert await asyncio.to_thread(wait_until, lambda: simulator.ledger().in_flight == 1)
        task.cancel()
        await asyncio.wait([task])
        assert await asyncio.to_thread(wait_until, lambda: simulator.ledger().disconnects == 1)
        await connection.close()

    asyncio.run(run())


def test_connections_are_reused(simulator: Simulator) -> None:
    async def run() -> None:
        connection = connect("aiohttp")
        for number in range(5):
            await sent(connection, outgoing(simulator, f"Hi {number}"), stream=number % 2 == 0)
        await connection.close()

    asyncio.run(run())
    assert simulator.ledger().requests == 5
    assert simulator.ledger().connections == 1
