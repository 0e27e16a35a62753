"""Clients that leave, over HTTP/1.1 and HTTP/2, and streams that take their time."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import httpx
import pytest

from llm_provider.simulator import Fault, Ledger, Simulator
from support import wait_until

BODY = {"model": "m", "messages": [{"role": "user", "content": "one two three four"}]}


@pytest.fixture(scope="module", params=["http1", "https1", "https2"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[Simulator, httpx.AsyncClient]]:
    with Simulator(tls=request.param != "http1") as simulator:
        yield simulator, request.param == "https2"


@pytest.fixture
def simulator(served: Any) -> Simulator:
    served[0].clear()
    return served[0]  # type: ignore[no-any-return]  # JSON


def run(served: Any, work: Callable[[httpx.AsyncClient, str], Awaitable[Any]]) -> Any:
    simulator, http2 = served

    async def main() -> Any:
        context = (
            ssl.create_default_context(cafile=str(simulator.certificate)) if simulator.certificate else True
        )
        async with httpx.AsyncClient(http2=http2, verify=context, timeout=60, trust_env=False) as client:
            return await work(client, simulator.url("local") + "/chat/completions")

    return asyncio.run(main())


def settled(simulator: Simulator) -> Ledger:
    """The ledger once nothing is in progress; the server learns of a departure a moment after it."""
    assert wait_until(lambda: simulator.ledger().in_flight == 0)
    return simulator.ledger()


@pytest.mark.parametrize("how", ["latency", "hang", "delay"])
@pytest.mark.sampled(4)
def test_a_client_that_leaves_while_it_waits(served: Any, simulator: Simulator, how: str) -> None:
    if how == "latency":
        simulator.configure(latency=30)
    else:
        simulator.inject(Fault(hang=True) if how == "hang" else Fault(delay=30))

    async def leave(client: httpx.AsyncClient, url: str) -> None:
        task = asyncio.create_task(client.post(url, json=BODY))
        assert await asyncio.to_thread(wait_until, lambda: simulator.ledger().in_flight == 1)
        task.cancel()
        await asyncio.wait([task])

    run(served, leave)
    ledger = settled(simulator)
    assert (ledger.disconnects, ledger.answered, ledger.statuses) == (1, 0, {})
    assert simulator.requests()[0].disconnected


def test_a_cancelled_stream_is_billed_as_far_as_it_was_sent(served: Any, simulator: Simulator) -> None:
    simulator.configure(chunk_interval=0.05, output_tokens=1000)

    async def leave(client: httpx.AsyncClient, url: str) -> int:
        async with client.stream("POST", url, json={**BODY, "stream": True}) as answer:
            seen = 0
            async for line in answer.aiter_lines():
                seen += line.startswith("data: ")
                if seen == 4:
                    break
        return seen

    run(served, leave)
    ledger = settled(simulator)
    assert (ledger.disconnects, ledger.answered, ledger.statuses) == (1, 1, {200: 1})
    assert 3 <= ledger.output_tokens < 1000
    assert simulator.requests()[0].disconnected
