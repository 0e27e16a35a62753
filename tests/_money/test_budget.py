"""Budgets are never exceeded, lose nothing, and serve calls in order."""

import asyncio
import math
import os
import pickle
from collections.abc import Awaitable, Callable
from decimal import Decimal, localcontext
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from llm_provider import Budget, BudgetExceededError, RequestError
from llm_provider._money.budget import Reservation, amount_of, reserve, reserve_now

T = TypeVar("T")

AMOUNTS = st.decimals(min_value=0, max_value=6, places=6)


async def iterations() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


class Machine(RuleBasedStateMachine):
    """One budget, calls that come and end in every way, and sums kept by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.line: list[tuple[Decimal, asyncio.Task[Reservation]]] = []
        self.open: list[Reservation] = []
        self.spent = self.uncertain = Decimal(0)

    def budget_of(self, limit: Decimal) -> Budget:
        return Budget(limit)

    def do(self, work: Callable[[], Awaitable[T] | T]) -> T:
        async def main() -> T:
            result = work()
            done = await result if isinstance(result, Awaitable) else result
            await iterations()
            return done

        done = self.loop.run_until_complete(main())
        self.collect()
        return done

    def collect(self) -> None:
        """Take the granted reservations, which are those at the head of the queue."""
        while self.line and self.line[0][1].done():
            amount, task = self.line.pop(0)
            if task.cancelled():
                continue
            error = task.exception()
            if error is None:
                assert task.result().amount == amount
                self.open.append(task.result())
            else:
                assert isinstance(error, BudgetExceededError)
                assert self.spent + amount > self.limit
                assert (error.budget, error.spent, error.needed) == (self.limit, self.spent, amount)
        assert not any(task.done() and not task.cancelled() for _, task in self.line)

    @initialize(limit=st.decimals(min_value=0, max_value=10, places=3))
    def begin(self, limit: Decimal) -> None:
        self.limit = limit
        self.budget = self.budget_of(limit)

    @rule(amount=AMOUNTS)
    def come(self, amount: Decimal) -> None:
        async def start() -> None:
            self.line.append((amount, self.loop.create_task(self.budget.reserve(amount))))

        self.do(start)

    @rule(amount=AMOUNTS)
    def try_at_once(self, amount: Decimal) -> None:
        free = not any(not task.done() for _, task in self.line)
        try:
            got = self.do(lambda: self.budget.reserve_now(amount))
        except BudgetExceededError:
            assert self.spent + amount > self.limit
            return
        if got is not None:
            assert free
            self.open.append(got)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), share=st.none() | st.decimals(min_value=0, max_value=1, places=3))
    def end(self, data: st.DataObject, share: Decimal | None) -> None:
        reservation = self.open.pop(data.draw(st.integers(0, len(self.open) - 1)))
        cost = None if share is None else reservation.amount * share
        self.spent += reservation.amount if cost is None else cost
        self.uncertain += reservation.amount if cost is None else 0
        self.do(lambda: reservation.settle(cost))
        # Only the first ending counts.
        reservation.release()

    @precondition(lambda self: self.line)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        _, task = self.line[data.draw(st.integers(0, len(self.line) - 1))]
        self.do(task.cancel)

    @precondition(lambda self: self.open and self.line)
    @rule()
    def end_and_leave_in_one_turn(self) -> None:
        """The first in line may be granted and cancelled before it has run."""
        reservation, (_, task) = self.open.pop(0), self.line[0]

        def both() -> None:
            reservation.release()
            task.cancel()

        self.do(both)

    @invariant()
    def the_sums_agree(self) -> None:
        if not hasattr(self, "budget"):
            return
        budget = self.budget
        assert budget.reserved == sum((reservation.amount for reservation in self.open), Decimal(0))
        assert (budget.spent, budget.uncertain) == (self.spent, self.uncertain)
        assert budget.spent + budget.reserved <= self.limit
        assert budget.left == self.limit - budget.spent - budget.reserved
        waiting = [amount for amount, task in self.line if not task.done()]
        if waiting:
            # The first in the queue waits because others hold the money, and can still get it.
            assert self.spent + waiting[0] <= self.limit < budget.spent + budget.reserved + waiting[0]

    def teardown(self) -> None:
        for _, task in self.line:
            task.cancel()
        self.loop.run_until_complete(iterations())
        self.loop.close()


class FileMachine(Machine):
    """The same in a file."""

    def budget_of(self, limit: Decimal) -> Budget:
        self.folder = TemporaryDirectory()
        return Budget(limit, path=Path(self.folder.name) / "run.budget")

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.budget._store.close()
            self.folder.cleanup()


TestInMemory = Machine.TestCase
TestInMemory.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestInFile = FileMachine.TestCase
TestInFile.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)


async def test_sums_keep_every_digit_whatever_the_callers_context() -> None:
    budget = Budget(1000)
    cost = Decimal("100.000000000000000000000001")
    with localcontext() as context:
        context.prec = 3
        for _ in range(3):
            (await budget.reserve(Decimal(101))).settle(cost)
    assert budget.spent == Decimal("300.000000000000000000000003")


async def test_several_budgets_get_the_money_all_or_none() -> None:
    wide, narrow = Budget(10), Budget(1)
    with pytest.raises(BudgetExceededError) as caught:
        await reserve([wide, narrow], Decimal(2))
    assert caught.value.budget == 1
    with pytest.raises(BudgetExceededError):
        reserve_now([wide, narrow], Decimal(2))
    held = await reserve([wide, narrow, wide], Decimal("0.75"))
    assert len(held) == 2
    assert reserve_now([wide, narrow], Decimal("0.75")) is None
    waiting = asyncio.create_task(reserve([wide, narrow], Decimal("0.75")))
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
        held = await reserve(budgets, Decimal("0.6"))
        await asyncio.sleep(0)
        for reservation in reversed(held):
            reservation.settle(Decimal("0.01"))
            await asyncio.sleep(0.003)

    async with asyncio.timeout(30):
        await asyncio.gather(*(spend(user) for user in users for _ in range(3)))
    assert {budget.spent for budget in users[0]} == {Decimal("0.18")}


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
    "limit", [-1, math.nan, math.inf, "5", None, True, Decimal("NaN"), Decimal("-0.1"), 1j]
)
def test_a_limit_must_be_an_amount(limit: object) -> None:
    with pytest.raises(RequestError, match="finite number of USD"):
        Budget(limit)  # type: ignore[arg-type]  # on purpose


def test_a_float_means_the_digits_it_prints() -> None:
    assert amount_of(0.1) == Decimal("0.1")


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
