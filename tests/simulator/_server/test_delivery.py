"""Clients that leave, over HTTP/1.1 and HTTP/2, and streams that take their time."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from llm_provider.simulator import Fault, Simulator
from support import wait_until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from llm_provider.simulator import Ledger

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


def test_serves_the_expected_version(served: Any, simulator: Simulator) -> None:
    answer = run(served, lambda client, url: client.post(url, json=BODY))
    assert answer.json()["choices"][0]["message"]["content"] == "echo: one two three four"
    assert answer.http_version == ("HTTP/2" if served[1] else "HTTP/1.1")
    assert simulator.requests()[0].http_version in answer.http_version


@pytest.mark.parametrize("how", ["latency", "hang", "delay"])
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


def test_a_complete_stream_is_no_disconnect(served: Any, simulator: Simulator) -> None:
    simulator.configure(chunk_interval=0.001, latency=0.001)
    answer = run(served, lambda client, url: client.post(url, json={**BODY, "stream": True}))
    assert answer.text.endswith("data: [DONE]\n\n")
    ledger = settled(simulator)
    assert (ledger.disconnects, ledger.answered) == (0, 1)
    assert not simulator.requests()[0].disconnected


def test_an_abort_is_an_error_of_the_connection_or_the_stream(served: Any, simulator: Simulator) -> None:
    simulator.inject(Fault(abort_after=1), times=None)
    for stream in (True, False):
        with pytest.raises(httpx.RemoteProtocolError):
            run(served, lambda client, url, stream=stream: client.post(url, json={**BODY, "stream": stream}))
    assert settled(simulator).disconnects == 0


def test_many_at_once(served: Any, simulator: Simulator) -> None:
    simulator.inject(Fault(hang=True), times=None)

    async def burst(client: httpx.AsyncClient, url: str) -> bool:
        tasks = [asyncio.create_task(client.post(url, json=BODY)) for _ in range(60)]
        together = await asyncio.to_thread(wait_until, lambda: simulator.ledger().in_flight == 60)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return together

    assert run(served, burst)
    ledger = settled(simulator)
    assert (ledger.peak_in_flight, ledger.disconnects) == (60, 60)
    # The control channel asks over connections of its own, which are not counted.
    assert ledger.connections == (1 if served[1] else 60)
