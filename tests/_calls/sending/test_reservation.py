"""Budgets over real connections: what the simulator bills never exceeds them, and they are used up."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import (
    APIConnectionError,
    APIResponseValidationError,
    APITimeoutError,
    BatchError,
    Budget,
    BudgetExceededError,
    Client,
    InternalServerError,
    RequestError,
    Response,
    UnknownPriceError,
)
from llm_provider._money.pricing import default_prices_path
from llm_provider.simulator import Fault, Simulator
from support import wait_until

MODEL = "gpt-6.1-sol"
SHORT: dict[str, Any] = {"max_tokens": 60}
WORST = Decimal("0.0062")
"""USD: a little more than what a short call may cost."""
LONG: dict[str, Any] = {"max_tokens": 420}
WORST_LONG = Decimal("0.0098")


@pytest.fixture
def simulator(simulator: Simulator) -> Simulator:
    simulator.configure(prices=default_prices_path(), output_tokens=50)
    return simulator


def billed(simulator: Simulator) -> Decimal:
    return simulator.ledger().billed


def limited(client: Client, limit: float, **settings: Any) -> Client:
    """Another client of the same cache."""
    return Client(cache_dir=client.cache.directory, budget=limit, **settings)


def prompts(count: int) -> list[str]:
    return [f"question {number}" for number in range(count)]


def answered(results: list[Any]) -> list[Response]:
    return [result for result in results if isinstance(result, Response)]


def test_with_many_in_flight_the_bill_stays_below_and_comes_close(
    client: Client, simulator: Simulator
) -> None:
    simulator.configure(latency=0.05, latency_jitter=0.05, output_tokens=400)
    with limited(client, 1.2, max_concurrent=64) as spender:
        most = Decimal(0)
        results = []
        for _, result in spender.iter_many(MODEL, prompts(400), progress=False, **LONG):
            balance = spender.budget._store.read()
            most = max(most, balance.spent + balance.reserved)
            results.append(result)
        budget = spender.budget
    assert simulator.ledger().peak_in_flight == 64
    assert billed(simulator) == budget.spent <= budget.limit == Decimal("1.2")
    assert most <= budget.limit
    assert budget.left < WORST_LONG
    assert (budget.reserved, budget.uncertain) == (0, 0)
    refused = [result for result in results if isinstance(result, BudgetExceededError)]
    assert len(answered(results)) + len(refused) == 400
    assert {error.budget for error in refused} == {budget.limit}
    assert refused[-1].spent + refused[-1].needed > budget.limit
    assert (refused[0].provider, refused[0].model, refused[0].attempts) == ("openai", MODEL, 0)


def test_a_rerun_with_more_goes_on_without_paying_again(client: Client, simulator: Simulator) -> None:
    with limited(client, 0.02) as spender:
        first = spender.call_many(MODEL, prompts(100), progress=False, **SHORT)
        with pytest.raises(BatchError) as caught:
            spender.call_many(MODEL, prompts(100), progress=False, on_error="raise", **SHORT)
        # What is stored costs nothing, and is served though the budget is used up.
        again = answered(caught.value.results)
        assert [result.text for result in again] == [result.text for result in answered(first)]
        assert all(result.cached and result.cost == 0 for result in again)
        assert isinstance(caught.value.__cause__, BudgetExceededError)
        spent = spender.budget.spent
    assert 0 < len(again) < 100
    with limited(client, 1) as richer:
        rest = richer.call_many(MODEL, prompts(100), progress=False, on_error="raise", **SHORT)
        assert sum(result.cached for result in answered(rest)) == len(again)
        assert richer.budget.spent + spent == billed(simulator)
    assert simulator.ledger().answered == 100


def endless() -> Iterator[str]:
    return (f"question {number}" for number in itertools.count())


async def endless_and_awaited() -> AsyncIterator[str]:
    for question in endless():
        yield question


def test_an_endless_iterable_is_read_no_further_than_the_money_goes(client: Client) -> None:
    batch: dict[str, Any] = {"progress": False, "max_concurrent": 8, **SHORT}
    results = client.call_many(MODEL, endless(), budget=0.03, **batch)
    assert 0 < len(answered(results)) < len(results) < 200
    awaited = asyncio.run(client.acall_many(MODEL, endless_and_awaited(), budget=0.03, **batch))
    # What the first batch has bought was free for the second, which so got further.
    assert len(answered(results)) < len(answered(awaited)) < len(awaited) < 300
    # An input that is too dear by itself ends nothing.
    mixed = ["word " * 20_000, *prompts(5)]
    results = client.call_many(MODEL, iter(mixed), budget=0.03, **batch)
    assert [isinstance(result, BudgetExceededError) for result in results] == [True] + [False] * 5


def test_the_batchs_budget_and_the_clients_both_hold(client: Client, simulator: Simulator) -> None:
    with limited(client, 0.04, cache="off") as spender:
        batch = spender.call_many(MODEL, prompts(60), budget=0.02, progress=False, **SHORT)
        assert {result.budget for result in batch if isinstance(result, BudgetExceededError)} == {
            Decimal("0.02")
        }
        assert spender.budget.spent == billed(simulator) <= Decimal("0.02")
        shared = Budget(1)
        for _ in range(2):
            spender.call_many(MODEL, prompts(60), budget=shared, progress=False, **SHORT)
        assert spender.budget.spent == billed(simulator) <= Decimal("0.04")
        assert shared.spent < spender.budget.spent
        with pytest.raises(BudgetExceededError):
            spender.call(MODEL, "one more", **SHORT)
        assert (spender.budget.reserved, shared.reserved) == (0, 0)


def test_a_reservation_of_an_unbilled_request_is_released(client: Client, simulator: Simulator) -> None:
    with limited(client, 1) as spender:
        simulator.inject(Fault(status=429, retry_after="0.01"), times=2)
        answer = spender.call(MODEL, "Hi", **SHORT)
        assert answer.timing.attempts == 3
        simulator.inject(Fault(status=400))
        with pytest.raises(RequestError):
            spender.call(MODEL, "Ho", **SHORT)
        with pytest.raises(APIConnectionError):
            spender.call(MODEL, "Hm", base_url="http://127.0.0.1:9/v1", max_retries=0, **SHORT)
        budget = spender.budget
        assert budget.spent == billed(simulator) > 0
        assert (budget.reserved, budget.uncertain) == (0, 0)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault(hang=True), APITimeoutError),
        (Fault(status=500), InternalServerError),
        (Fault(abort_after=0), APIConnectionError),
    ],
    ids=["timeout", "server error", "broken off"],
)
def test_a_request_that_was_perhaps_billed_counts_its_worst_case(
    client: Client, simulator: Simulator, fault: Fault, kind: type[Exception]
) -> None:
    with limited(client, 0.01) as spender:
        simulator.inject(fault, times=None, match="Hi")
        with pytest.raises(kind, match=r"perhaps billed, so its budget counts its worst case, \$0\.00"):
            spender.call(MODEL, "Hi", timeout=1, max_retries=0, **SHORT)
        budget = spender.budget
        assert 0 < budget.spent == budget.uncertain < WORST
        # There is no money for another attempt now, nor for another call.
        with pytest.raises(BudgetExceededError, match="perhaps not billed"):
            spender.call(MODEL, "Ho", **SHORT)
        assert "uncertain=" in repr(budget)


def test_an_answer_that_cannot_be_used_counts_what_it_says_it_used(
    client: Client, simulator: Simulator
) -> None:
    simulator.inject(Fault(finish="no_choices"), times=1)
    with limited(client, 1) as spender:
        with pytest.raises(APIResponseValidationError) as caught:
            spender.call(MODEL, "Hi", max_retries=0, **SHORT)
        budget = spender.budget
        assert budget.spent == spender.usage.wasted == billed(simulator) > 0
        assert (budget.reserved, budget.uncertain) == (0, 0)
        assert "perhaps billed" not in str(caught.value)


def test_a_retry_that_cannot_be_paid_is_not_sent(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=500), times=None)
    with limited(client, 0.01) as spender, pytest.raises(BudgetExceededError) as caught:
        spender.call(MODEL, "Hi", **SHORT)
    assert caught.value.attempts == simulator.ledger().requests == 1
    assert [failure.error for failure in caught.value.failures] == ["InternalServerError"]


def test_a_cancelled_call_counts_its_worst_case_if_it_was_sent(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(hang=True), times=None)

    async def main(spender: Client) -> None:
        sent = asyncio.create_task(spender.acall(MODEL, "Hi", **SHORT))
        assert await asyncio.to_thread(wait_until, lambda: simulator.ledger().in_flight == 1, 30)
        reserved = spender.budget.reserved
        waiting = asyncio.create_task(spender.acall(MODEL, "Ho", **SHORT))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        # Who waits for money holds no slot.
        assert [scope.in_flight for scope in spender.statistics()] == [1]
        for task in (waiting, sent):
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await asyncio.to_thread(wait_until, lambda: spender.budget.reserved == 0, 30)
        assert spender.budget.spent == spender.budget.uncertain == reserved

    with limited(client, 0.01) as spender:
        asyncio.run(main(spender))
    assert simulator.ledger().requests == 1


def test_a_waiting_call_continues_when_another_has_ended(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=0.1)
    with limited(client, 0.0125) as spender:
        results = spender.call_many(MODEL, prompts(8), progress=False, **SHORT)
    assert len(answered(results)) == 8
    assert simulator.ledger().peak_in_flight == 2


def test_a_model_without_a_price_is_refused_unless_that_is_allowed(
    client: Client, simulator: Simulator
) -> None:
    with limited(client, 1) as spender:
        for question in (
            {"model": "gpt-6.1-unheard-of"},
            {"model": MODEL, "extra_body": {"web_search_options": {}}},
        ):
            with pytest.raises(UnknownPriceError, match="allow_unknown=True") as caught:
                spender.call(messages="Hi", **question, **SHORT)
            assert caught.value.provider == "openai"
        assert simulator.ledger().requests == 0
        assert spender.budget.reserved == 0
    allowing = Budget(0.01, allow_unknown=True)
    with limited(client, allowing) as spender:
        assert spender.call("gpt-6.1-unheard-of", "Hi", **SHORT).cost is None
        assert (allowing.spent, allowing.reserved) == (0, 0)
        paid = spender.call(MODEL, "Hi", **SHORT, extra_body={"web_search_options": {}})
        assert allowing.spent == Decimal(repr(paid.cost)) > 0


def test_a_stream_is_paid_like_a_call_and_leaving_it_counts_the_worst_case(
    client: Client, simulator: Simulator
) -> None:
    simulator.configure(chunk_interval=0.02)
    with limited(client, 1) as spender:
        with spender.stream(MODEL, "Hi", **SHORT) as deltas:
            assert spender.budget.reserved >= 0
            list(deltas)
        assert spender.budget.spent == billed(simulator)
        with spender.stream(MODEL, "Ho", **SHORT) as deltas:
            next(deltas)
        assert wait_until(lambda: spender.budget.reserved == 0, 30)
        assert 0 < spender.budget.uncertain < WORST
        assert billed(simulator) <= spender.budget.spent


def test_samples_are_paid_together(client: Client, simulator: Simulator) -> None:
    with limited(client, 1) as spender:
        assert len(spender.call(MODEL, "Hi", n=4, **SHORT).texts) == 4
        assert spender.budget.spent == billed(simulator)


def test_equal_calls_pay_once_and_none_fails_for_want_of_anothers_money(
    client: Client, simulator: Simulator
) -> None:
    simulator.configure(latency=0.2)

    async def main(spender: Client) -> list[Any]:
        poor = [spender.acall(MODEL, "Hi", budget=0.001, **SHORT) for _ in range(3)]
        rich = [spender.acall(MODEL, "Hi", budget=1, **SHORT) for _ in range(3)]
        return await asyncio.gather(*poor, *rich, return_exceptions=True)

    with limited(client, 1) as spender:
        results = asyncio.run(main(spender))
        assert spender.budget.spent == billed(simulator)
    # A poor call may have joined a rich one, which costs it nothing.
    assert all(isinstance(result, Response) for result in results[3:])
    assert all(isinstance(result, Response | BudgetExceededError) for result in results[:3])
    assert simulator.ledger().requests == 1


EIGHT = """
    import os, random, sys, time
    from llm_provider import Budget, BudgetExceededError, Client
    import aiohttp, openai

    parent, children = os.getpid(), []
    for number in range(8):
        if (child := os.fork()) == 0:
            break
        children.append(child)
    if os.getpid() != parent:
        # Under way while others are killed, and each with prompts of its own.
        with Client(budget=Budget(1.0, path=sys.argv[1]), max_concurrent=8, cache="off") as client:
            questions = (f"{number}: {index}" for index in range(10_000))
            for _, result in client.iter_many("gpt-6.1-sol", questions, max_tokens=420, progress=False):
                if isinstance(result, BudgetExceededError):
                    os._exit(0)
                assert not isinstance(result, Exception), result
        os._exit(1)
    time.sleep(0.7)
    for child in random.sample(children, 3):
        os.kill(child, 9)
    statuses = sorted(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
    print(statuses)
"""


def test_eight_processes_share_one_and_what_is_killed_takes_no_money_along(
    simulator: Simulator, tmp_path: Path
) -> None:
    simulator.configure(latency=0.1, latency_jitter=0.1, output_tokens=400)
    path = tmp_path / "run.budget"
    budget = Budget(1.0, path=path)
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", textwrap.dedent(EIGHT), str(path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    statuses = [int(status) for status in done.stdout.strip("[]\n").split(",")]
    assert set(statuses) <= {-9, 0}
    assert billed(simulator) <= budget.spent <= budget.limit
    assert budget.left < WORST_LONG


def test_the_environment_sets_a_budget(
    client: Client, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert client.budget is None
    monkeypatch.setenv("LLM_PROVIDER_BUDGET", "0.25")
    with Client() as spender:
        assert spender.budget.limit == Decimal("0.25")
    monkeypatch.setenv("LLM_PROVIDER_BUDGET_FILE", str(tmp_path / "run.budget"))
    with Client() as spender:
        spender.call(MODEL, "Hi", **SHORT)
    with Client() as spender:
        assert spender.budget.spent == billed(simulator) > 0
    for wrong in ("five", "-1", "nan"):
        monkeypatch.setenv("LLM_PROVIDER_BUDGET", wrong)
        with pytest.raises(RequestError, match="LLM_PROVIDER_BUDGET must be"):
            Client()
    with pytest.raises(RequestError, match="budget must be"):
        client.call(MODEL, "Hi", budget="a lot")  # type: ignore[arg-type]  # on purpose
    with pytest.raises(RequestError, match="budget must be"):
        client.call_many(MODEL, ["Hi"], budget=-1)
