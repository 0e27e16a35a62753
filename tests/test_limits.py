"""Rate control: the window's rule, the waiting for it, and both together against a server that refuses."""

from __future__ import annotations

import asyncio
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from llm_provider import Client, Response
from llm_provider._limits import Scope, Window
from llm_provider.simulator import Simulator

CEILING = 16


class WindowMachine(RuleBasedStateMachine):
    """Sends, successes, failures and refusals in any order, at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.window = Window()
        self.now = 0.0
        self.sent: list[float] = []

    @rule(seconds=st.floats(0.001, 5))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.window.room(CEILING) and self.now >= self.window.gate)
    @rule()
    def send(self) -> None:
        self.window.started()
        self.sent.append(self.now)

    @precondition(lambda self: self.sent)
    @rule(data=st.data(), delay=st.floats(0, 10))
    def refused(self, data: st.DataObject, delay: float) -> None:
        sent = self.sent.pop(data.draw(st.integers(0, len(self.sent) - 1)))
        size, gate, cut = self.window.size, self.window.gate, self.window.last_cut
        self.window.congested(sent=sent, now=self.now, delay=delay)
        self.window.ended()
        if sent > cut:
            assert self.window.size <= max(1.0, size * 0.5)
        else:
            assert self.window.size == size, "one cut per episode"
        assert self.window.gate >= max(gate, self.now + delay)

    @precondition(lambda self: self.sent)
    @rule(data=st.data())
    def served(self, data: st.DataObject) -> None:
        self.sent.pop(data.draw(st.integers(0, len(self.sent) - 1)))
        size = self.window.size
        self.window.succeeded()
        self.window.ended()
        assert size <= self.window.size <= size + 1

    @precondition(lambda self: self.sent)
    @rule()
    def failed_otherwise(self) -> None:
        self.sent.pop()
        size = self.window.size
        self.window.ended()
        assert self.window.size == size

    @invariant()
    def is_sane(self) -> None:
        assert self.window.size >= 1
        assert 0 <= self.window.in_flight == len(self.sent) <= CEILING
        # It cannot outgrow what is used of it.
        assert self.window.size == math.inf or self.window.size <= CEILING / 0.8 + 1


TestWindow = WindowMachine.TestCase
TestWindow.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5))
def test_places_are_conserved_under_any_cancellation(seed: int, ceiling: int) -> None:
    chance = random.Random(seed)

    async def caller(scope: Scope) -> None:
        await scope.acquire(ceiling, first=chance.random() < 0.2)
        try:
            assert scope.window.in_flight <= ceiling
            await asyncio.sleep(0 if chance.random() < 0.7 else 0.001)
        finally:
            scope.release()

    async def main() -> None:
        scope = Scope()
        tasks = [asyncio.create_task(caller(scope)) for _ in range(40)]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            if chance.random() < 0.3:
                chance.choice(tasks).cancel()
        assert scope.window.in_flight == 0
        await asyncio.wait_for(scope.acquire(1), 1)

    asyncio.run(main())


def test_first_come_first_served_and_the_retried_before_them() -> None:
    async def main() -> list[str]:
        scope, order = Scope(), []
        await scope.acquire(1)

        async def caller(name: str, first: bool) -> None:
            await scope.acquire(1, first=first)
            order.append(name)
            scope.release()

        tasks = [
            asyncio.create_task(caller(name, first))
            for name, first in [("a", False), ("b", False), ("r", True)]
        ]
        await asyncio.sleep(0)
        scope.release()
        await asyncio.gather(*tasks)
        return order

    assert asyncio.run(main()) == ["r", "a", "b"]


def test_nothing_starts_before_the_gate_opens() -> None:
    async def main() -> None:
        scope, loop = Scope(), asyncio.get_running_loop()
        await scope.acquire(8)
        opens = loop.time() + 0.2
        scope.congested(sent=loop.time(), delay=0.2)
        scope.release()
        started: list[float] = []

        async def caller() -> None:
            await scope.acquire(8)
            started.append(loop.time())
            await asyncio.sleep(0.01)
            scope.release()

        await asyncio.gather(*(caller() for _ in range(5)))
        assert min(started) >= opens

    asyncio.run(main())


def test_ten_thousand_waiters_can_be_cancelled() -> None:
    async def main() -> None:
        scope = Scope()
        await scope.acquire(1)
        tasks = [asyncio.create_task(scope.acquire(1)) for _ in range(10_000)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        scope.release()
        await asyncio.wait_for(scope.acquire(1), 1)

    asyncio.run(main())


def test_a_concurrency_cap_is_found_and_nothing_is_lost(client: Client, simulator: Simulator) -> None:
    simulator.configure(max_concurrent=5, latency=0.02)
    results = client.call_many(
        "gpt-6.1-sol", [f"What is {number}+0?" for number in range(80)], max_retries=20
    )
    assert [str(result) for result in results] == [str(number) for number in range(80)]
    (scope,) = client.statistics()
    assert scope.congestions == simulator.ledger().rate_limited > 0
    assert scope.window is not None
    assert scope.window <= 10
    # Plain retrying at 32 sends several requests for each that is served.
    assert simulator.ledger().requests < 80 * 1.6


def test_a_rate_limit_is_kept_by_its_retry_after(client: Client, simulator: Simulator) -> None:
    simulator.configure(requests_per_minute=1200, burst=20, latency=0.01)
    results = client.call_many("claude-sonnet-5-5", [f"What is {number}+0?" for number in range(50)])
    assert all(isinstance(result, Response) for result in results)
    assert simulator.ledger().rate_limited > 0


def test_a_sleeping_call_holds_no_place(client: Client, simulator: Simulator) -> None:
    from llm_provider.simulator import Fault

    simulator.inject(Fault(status=500), times=3, match="unlucky")

    async def main() -> list[str]:
        order: list[str] = []

        async def ask(prompt: str) -> None:
            await client.acall("gpt-6.1-sol", prompt)
            order.append(prompt)

        await asyncio.gather(ask("unlucky"), *(ask(f"lucky {number}") for number in range(5)))
        return order

    with Client(cache_dir=client.cache.directory, max_concurrent=1) as narrow:
        client = narrow
        assert asyncio.run(main())[-1] == "unlucky"


def test_scopes_are_independent(client: Client, simulator: Simulator) -> None:
    simulator.configure("openai", max_concurrent=1, latency=0.01)
    client.call_many("gpt-6.1-sol", [f"limited {number}" for number in range(12)], max_retries=30)
    client.call_many("claude-sonnet-5-5", [f"free {number}" for number in range(12)])
    windows = {scope.provider: scope.window for scope in client.statistics()}
    assert windows["openai"] is not None
    assert windows["anthropic"] is None


@pytest.mark.parametrize("keys", [("a", "b")])
def test_keys_have_scopes_of_their_own(client: Client, keys: tuple[str, str]) -> None:
    for key in keys:
        client.call("gpt-6.1-sol", f"with {key}", api_key=f"sk-{key}-{key}")
    assert len(client.statistics()) == 2
