"""Budgets are never exceeded, lose nothing, and serve calls in order."""

import asyncio
import os
import pickle
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import partial
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Budget, BudgetExceededError, Client, RequestError, call, call_many
from llm_provider._core.money.budget import amount_of, reserve, reserve_now


async def iterations() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.parametrize("is_shared", [False, True])
async def test_calls_are_served_in_order_and_every_end_counts_once(tmp_path: Path, is_shared: bool) -> None:
    budget = Budget(1, path=tmp_path / "run.budget" if is_shared else None)
    first = await budget.reserve(Decimal("0.6"))
    waiting = [asyncio.create_task(budget.reserve(Decimal(amount))) for amount in ("0.5", "0.3", "0.8")]
    await iterations()
    # There is room for the second, but it is not the next.
    assert not any(task.done() for task in waiting)
    assert budget.reserve_now(Decimal("0.1")) is None
    first.settle(Decimal("0.2"))
    first.release()
    await waiting[0]
    second = await waiting[1]
    assert (budget.spent, budget.reserved, budget.left) == (Decimal("0.2"), Decimal("0.8"), 0)
    assert not waiting[2].done()
    second.settle(None)
    with pytest.raises(BudgetExceededError) as caught:
        await waiting[2]
    assert (caught.value.spent, caught.value.needed) == (Decimal("0.5"), Decimal("0.8"))
    assert (budget.spent, budget.uncertain) == (Decimal("0.5"), Decimal("0.3"))
    assert budget.reserved == Decimal("0.5")


async def test_a_budget_that_waits_for_other_processes_has_one_timer(tmp_path: Path) -> None:
    """Each timer sets the next one, so a second one would ask the file for ever."""
    budgets = [Budget(1, path=tmp_path / "run.budget") for _ in range(2)]
    held = await budgets[0].reserve(Decimal("0.6"))
    waiting = [asyncio.create_task(budgets[1].reserve(Decimal("0.5"))) for _ in range(5)]
    await iterations()
    timers = [timer for timer in asyncio.get_running_loop()._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]  # of asyncio's own loops
    assert len(timers) == 1
    held.release()
    for task in waiting:
        (await task).release()


async def test_sums_keep_every_digit_whatever_the_callers_context() -> None:
    budget = Budget(1000)
    cost = Decimal("100.000000000000000000000001")
    with localcontext() as context:
        context.prec = 3
        for _ in range(3):
            (await budget.reserve(Decimal(101))).settle(cost)
    assert budget.spent == Decimal("300.000000000000000000000003")
    # A float means the digits that it prints.
    assert amount_of(0.1) == Decimal("0.1")


async def test_the_error_of_a_wait_names_the_amounts() -> None:
    budget = Budget(1)
    held = await budget.reserve(Decimal("0.6"))
    assert budget.explain_wait(Decimal("0.4")) is None
    error = budget.explain_wait(Decimal("0.5"))
    assert error is not None
    assert error.needed == Decimal("0.5")
    assert "up to $0.50, and $0.40 of the budget of $1.00 is left ($0.60 is reserved" in error.message
    held.release()
    assert budget.explain_wait(Decimal("0.5")) is None


async def test_several_budgets_get_the_money_all_or_none() -> None:
    wide, narrow = Budget(10), Budget(1)
    with pytest.raises(BudgetExceededError) as caught:
        await reserve(dict.fromkeys([wide, narrow], Decimal(2)))
    assert caught.value.budget == 1
    with pytest.raises(BudgetExceededError):
        reserve_now(dict.fromkeys([wide, narrow], Decimal(2)))
    held = await reserve(dict.fromkeys([wide, narrow], Decimal("0.75")))
    assert len(held) == 2
    assert reserve_now(dict.fromkeys([wide, narrow], Decimal("0.75"))) is None
    waiting = asyncio.create_task(reserve(dict.fromkeys([wide, narrow], Decimal("0.75"))))
    await iterations()
    waiting.cancel()
    await iterations()
    assert (wide.reserved, narrow.reserved) == (Decimal("0.75"), Decimal("0.75"))
    for reservation in held:
        reservation.settle(Decimal("0.25"))
    assert (wide.left, narrow.left) == (Decimal("9.75"), Decimal("0.75"))


@pytest.mark.parametrize("is_shared", [False, True])
async def test_budgets_in_any_order_never_wait_for_each_other(tmp_path: Path, is_shared: bool) -> None:
    """Nor do the files of several processes, each of which has opened them in its own order."""
    budgets = [Budget(1) for _ in range(3)]
    users = [
        [Budget(1, path=tmp_path / str(number)) if is_shared else budgets[number] for number in order]
        for order in permutations(range(3))
    ]

    async def spend(budgets: list[Budget]) -> None:
        held = await reserve(dict.fromkeys(budgets, Decimal("0.6")))
        await asyncio.sleep(0)
        for reservation in reversed(held):
            reservation.settle(Decimal("0.01"))
            await asyncio.sleep(0.003)

    async with asyncio.timeout(30):
        await asyncio.gather(*(spend(user) for user in users for _ in range(3)))
    assert {budget.spent for budget in users[0]} == {Decimal("0.18")}


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        ("0.01537", "up to $0.01537, and $0.0153699 of"),
        ("0.0153699", "up to $0.0153699, and $0.01536988 of"),
        ("0.016", "up to $0.016, and $0.01537 of"),
    ],
)
async def test_the_amounts_have_as_many_digits_as_make_them_differ(needed: str, words: str) -> None:
    budget = Budget(0.02)
    (await budget.reserve(Decimal("0.01"))).settle(Decimal("0.00463012"))
    assert "spent=$0.00463, " in repr(budget)
    with pytest.raises(BudgetExceededError) as caught:
        await budget.reserve(Decimal(needed))
    assert words in str(caught.value)


async def test_the_error_names_the_missing_and_the_uncertain_amount() -> None:
    budget = Budget(1)
    (await budget.reserve(Decimal("0.5"))).settle(None)
    with pytest.raises(BudgetExceededError) as caught:
        await budget.reserve(Decimal("0.75"))
    assert repr(budget) == "Budget(limit=$1.00, spent=$0.50, reserved=$0.00, uncertain=$0.50, left=$0.50)"
    error = caught.value
    assert str(error) == (
        "this request may cost up to $0.75, and $0.50 of the budget of $1.00 is left ($0.50 counts as spent "
        "for requests that were perhaps not billed); a smaller max_tokens lowers what it may cost"
    )
    again = pickle.loads(pickle.dumps(error))
    assert (again.budget, again.spent, again.needed) == (1, Decimal("0.5"), Decimal("0.75"))
    assert not error.retryable


@pytest.mark.parametrize(
    "amount", [10**309, -(10**400), float("inf"), float("nan"), Decimal("1e400"), "huge"]
)
def test_an_amount_beyond_floats_is_refused(amount: Any, tmp_path: Path) -> None:
    # As a parameter, its digits would be a part of the test's name.
    amount = 10**5000 if amount == "huge" else amount
    settings = ("budget", "show_estimate_above", "outage_patience")
    makers: list[Callable[[], object]] = [
        lambda: Budget(amount),
        lambda: Budget(amount, path=tmp_path / "file"),
        lambda: call("gpt-5.5", "a", budget=amount),
        lambda: call_many("gpt-5.5", ["a"], budget=amount),
        *(partial(Client, **{name: amount}) for name in settings),
    ]
    if amount == float("inf"):
        makers.pop()
    for make in makers:
        with pytest.raises(RequestError, match=r"must be a (finite )?number of"):
            make()


def test_a_budget_in_memory_stays_in_its_process() -> None:
    budget = Budget(5)
    with pytest.raises(TypeError, match="give it a file"):
        pickle.dumps(budget)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            asyncio.run(budget.reserve(Decimal(1)))
        except RequestError as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert b"path='run.budget'" in os.read(reading, 1000)
    os.close(reading)
    os.close(writing)
