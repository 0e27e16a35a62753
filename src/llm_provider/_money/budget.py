"""Budgets: an amount of money that calls never go beyond, in one process or in several that share a file.

Before a request is sent the most it can cost is set aside; what it really cost is written down after it. So
at every moment

    spent + reserved <= limit

and no outcome of the requests under way can break it. `reserved` is what is set aside for them.

| a call's worst case | what follows |
|---|---|
| fits into what is left | it is reserved, and the call goes on |
| does not fit beside those under way | the call waits, in order of arrival, for them to end |
| is more than what is not spent | `BudgetExceededError`: whatever the others cost, it can never fit |

| how its request ended | what is counted |
|---|---|
| with an answer | its price |
| in a way that is certainly not billed | nothing |
| perhaps billed: broken off, cancelled, timed out, killed | the worst case; `uncertain` sums these |

What is counted is in a book: `_budget_book`, or `_budget_file` for several processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import math
import os
import random
import time
import weakref
from collections import deque
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from .._errors import BudgetExceededError, LLMError, RequestError
from .balance import EXACT, Balance, BalanceStore, BalanceTransaction, BusyError, MemoryBalance

_PAUSES = (0.002, 0.1)
"""Shortest and longest, in seconds, between two looks at what other processes have done."""
_PAUSE_SHARE = 1 / 10
"""Of the time since this process last got something: what a pause adds to the wait at most. Where several
wait the money goes to the first of them only, so that each one's pause delays all."""
_BUSY_PAUSE = 0.002
"""Seconds, on average, until another look at a file that another process was just writing."""


class Reservation:
    """Money set aside for one request. Exactly one of its endings counts: the first."""

    __slots__ = ("_budget", "_claim", "amount")

    def __init__(self, budget: Budget, claim: int, amount: Decimal) -> None:
        self._budget: Budget | None = budget
        self._claim = claim
        self.amount = amount
        """USD."""

    def settle(self, cost: Decimal | None) -> None:
        """Count what the request cost, in USD; None, as that is not known, counts all that was set aside."""
        budget, self._budget = self._budget, None
        if budget is not None:
            budget.end(self._claim, cost)

    def release(self) -> None:
        """Give the money back: nothing was billed."""
        self.settle(Decimal(0))


class _QueuedReservation:
    """A call that waits for its reservation."""

    __slots__ = ("amount", "future")

    def __init__(self, amount: Decimal) -> None:
        self.amount = amount
        self.future: asyncio.Future[Reservation] = asyncio.get_running_loop().create_future()


class Budget:
    """An amount of money that the calls it is given to never go beyond.

    Give it to a `Client`, to a batch or to a single call; given to several it is shared by them. What a call
    may cost at most is set aside before each request and replaced by its cost after it. A call that does not
    fit beside those under way waits for them. Answers from the cache cost nothing and are always served.

    Args:
        limit: USD, finite and at least 0.
        path: A file in which several processes of a machine count together, made if it is missing. What was
            spent stays in it: with the same file and a higher limit a program goes on from there. A process
            that is killed leaves the worst case of its requests under way as spent. On a local disk; not on
            Windows.
        allow_unknown: Whether calls go out whose price, or longest answer, is not known; they count what they
            turn out to cost, or nothing where that stays unknown, so the limit no longer holds for them.

    Raises:
        RequestError: the limit is not an amount, or the file cannot be used.

    >>> budget = Budget(5.00)
    >>> budget
    Budget(limit=5, spent=0, reserved=0, left=5)
    """

    def __init__(
        self,
        limit: float | Decimal,
        *,
        path: str | os.PathLike[str] | None = None,
        allow_unknown: bool = False,
    ) -> None:
        self._limit = amount_of(limit)
        self._path = None if path is None else str(Path(path).resolve())
        self._allow_unknown = bool(allow_unknown)
        self._waiting: deque[_QueuedReservation]
        self._timer: asyncio.TimerHandle | None
        self.forget_waiting()
        self._since: float | None = None
        self._book = _book(self._path)
        weakref.finalize(self, self._book.close).atexit = False
        _budgets.add(self)

    @property
    def limit(self) -> Decimal:
        """USD that may be spent in all."""
        return self._limit

    @property
    def path(self) -> str | None:
        """The file that is shared with other processes, if there is one."""
        return self._path

    @property
    def allow_unknown(self) -> bool:
        """Whether calls go out whose price is not known."""
        return self._allow_unknown

    @property
    def spent(self) -> Decimal:
        """USD spent so far, by all that share the budget."""
        return self._book.read().spent

    @property
    def uncertain(self) -> Decimal:
        """USD: the part of `spent` that was perhaps not billed, for requests that broke off."""
        return self._book.read().uncertain

    @property
    def reserved(self) -> Decimal:
        """USD set aside for the requests under way."""
        return self._book.read().reserved

    @property
    def left(self) -> Decimal:
        """USD neither spent nor set aside."""
        return self._left(self._book.read())

    def _left(self, balance: Balance) -> Decimal:
        left = EXACT.subtract(self._limit, EXACT.add(balance.spent, balance.reserved))
        return max(Decimal(0), left)

    def __repr__(self) -> str:
        try:
            balance = self._book.read()
        except LLMError as error:
            return f"Budget(limit={shown(self._limit)}, {error})"
        facts = {"limit": self._limit, "spent": balance.spent, "reserved": balance.reserved}
        facts |= {"uncertain": balance.uncertain} if balance.uncertain else {}
        facts["left"] = self._left(balance)
        return f"Budget({', '.join(f'{name}={shown(value)}' for name, value in facts.items())})"

    def __reduce__(self) -> tuple[object, ...]:
        if self._path is None:
            raise TypeError(
                "a budget in memory cannot be sent to another process: give it a file to share, as in "
                "Budget(5.00, path='run.budget')"
            )
        return _unpickled, (self._limit, self._path, self._allow_unknown)

    async def reserve(self, amount: Decimal) -> Reservation:
        """Set aside what a request may cost, waiting for those under way where it does not fit beside them.

        Args:
            amount: USD, the request's worst case.

        Those who wait are served in order of arrival. Cancelling gives everything back.

        Raises:
            BudgetExceededError: it does not fit into what is not spent, even when nothing else is under way.
            RequestError: the budget's file cannot be used.
        """
        waiter = _QueuedReservation(amount)
        self._waiting.append(waiter)
        self._turn()
        try:
            return await waiter.future
        except asyncio.CancelledError:
            if waiter.future.done() and not waiter.future.cancelled() and not waiter.future.exception():
                # Reserved and cancelled in the same turn of the loop.
                waiter.future.result().release()
            else:
                # One that is cancelled stays in the line until `_turn` meets it.
                waiter.future.cancel()
                self._turn()
            raise

    def reserve_now(self, amount: Decimal) -> Reservation | None:
        """`reserve`, if that is possible without waiting and nobody waits already; else None.

        Raises:
            BudgetExceededError: as `reserve`.
            RequestError: as `reserve`.
        """
        found: int | LLMError | None
        try:
            with self._book.open() as page:
                found = None if self._waiting else self._serve(page, amount)
        except BusyError:
            return None
        if isinstance(found, LLMError):
            raise found
        return None if found is None else Reservation(self, found, amount)

    def covers(self, amount: Decimal) -> bool:
        """Whether an amount fits into what is not spent, once nothing is under way."""
        return self._fits(self._book.read(), amount)

    def check(self, amount: Decimal) -> None:
        """Refuse what can never be reserved.

        Raises:
            BudgetExceededError: the amount is more than what is not spent.
            RequestError: the budget's file cannot be used.
        """
        balance = self._book.read()
        if not self._fits(balance, amount):
            raise self._exceeded(balance, amount)

    def _fits(self, balance: Balance, amount: Decimal) -> bool:
        return EXACT.add(balance.spent, amount) <= self._limit

    def end(self, claim: int, cost: Decimal | None) -> None:
        """Count a reservation as what it came to; for `Reservation`, whose own endings are there for all."""
        self._book.end(claim, cost)
        if self._book.shared or self._waiting:
            self._turn()

    def forget_waiting(self) -> None:
        """Begin with nobody in the line."""
        self._waiting = deque()
        self._timer = None

    def _turn(self) -> None:
        """Write down what has ended, then serve those who wait, as far as the money goes."""
        served: list[tuple[_QueuedReservation, int | LLMError | None]] = []
        try:
            with self._book.open() as page:
                for waiter in self._waiting:
                    found = None if waiter.future.done() else self._serve(page, waiter.amount)
                    if found is None and not waiter.future.done():
                        break
                    served.append((waiter, found))
                page.line_up(len(served) < len(self._waiting))
        except BusyError:
            self._look_again(_BUSY_PAUSE * random.uniform(0.5, 1.5))
            return
        except RequestError as error:
            # A copy each: raised by several tasks, one would collect the tracebacks of all.
            served = [(waiter, copy.copy(error)) for waiter in self._waiting]
        for waiter, found in served:
            self._waiting.popleft()
            if isinstance(found, LLMError):
                if not waiter.future.done():
                    waiter.future.set_exception(found)
            elif found is not None:
                waiter.future.set_result(Reservation(self, found, waiter.amount))
        if self._waiting and self._book.shared:
            # What other processes end wakes nobody here.
            now = time.monotonic()
            if served or self._since is None:
                self._since = now
            self._look_again(min(max((now - self._since) * _PAUSE_SHARE, _PAUSES[0]), _PAUSES[1]))
        else:
            self._since = None

    def _serve(self, page: BalanceTransaction, amount: Decimal) -> int | LLMError | None:
        """The claim of the first who waits, or why there will never be one; None to go on waiting."""
        balance = page.balance
        if not self._fits(balance, amount):
            return self._exceeded(balance, amount)
        if self._fits(balance, EXACT.add(amount, balance.reserved)) and page.goes_first():
            return page.claim(amount)
        return None

    def _look_again(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # Without a loop it is the interpreter's end, and the book is written when it is closed.
        with contextlib.suppress(RuntimeError):
            self._timer = asyncio.get_running_loop().call_later(seconds, self._turn)

    def _exceeded(self, balance: Balance, needed: Decimal) -> BudgetExceededError:
        left = max(Decimal(0), EXACT.subtract(self._limit, balance.spent))
        message = (
            f"this request may cost up to ${shown(needed)}, and of the budget of ${shown(self._limit)} "
            f"${shown(left)} is left"
        )
        if balance.uncertain:
            message += (
                f" (${shown(balance.uncertain)} counts as spent for requests that were perhaps not billed)"
            )
        message += "; a smaller max_tokens lowers what it may cost"
        return BudgetExceededError(message, budget=self._limit, spent=balance.spent, needed=needed)


def amount_of(value: object, name: str = "budget") -> Decimal:
    """An amount of USD as an exact number: a float means the digits it is shown with.

    Raises:
        RequestError: it is no number, not finite, or negative.

    >>> amount_of(0.1)
    Decimal('0.1')
    """
    if (
        not isinstance(value, (int, float, Decimal))
        or isinstance(value, bool)
        or not math.isfinite(value)
        or value < 0
    ):
        raise RequestError(f"{name} must be a finite number of USD of at least 0, not {value!r}")
    if isinstance(value, Decimal):
        return value
    # NumPy's float64 is a float, and shows itself with its name.
    return Decimal(repr(float(value)) if isinstance(value, float) else int(value))


def shown(amount: Decimal) -> str:
    """USD with as many digits as say something: to six places, and no trailing zeros.

    >>> shown(Decimal("5.000")), shown(Decimal("0.0012345678")), shown(Decimal("1E-9"))
    ('5', '0.001235', '1E-9')
    """
    rounded = round(amount, 6)
    if not rounded and amount:
        return f"{amount.normalize():.2G}"
    return f"{rounded.normalize():f}"


def _book(path: str | None) -> BalanceStore:
    if path is None:
        return MemoryBalance()
    from .balance_file import BalanceFile

    return BalanceFile(path)


def _unpickled(limit: Decimal, path: str, allow_unknown: bool) -> Budget:
    return Budget(limit, path=path, allow_unknown=allow_unknown)


async def reserve(budgets: Iterable[Budget], amount: Decimal) -> list[Reservation]:
    """Set an amount aside in several budgets, in all or in none.

    Raises:
        BudgetExceededError: it does not fit into one of them.
    """
    held: list[Reservation] = []
    try:
        # In one order for all calls: two that hold what the other waits for would wait for ever.
        for budget in sorted(set(budgets), key=id):
            reservation = await budget.reserve(amount)
            held.append(reservation)
    except BaseException:
        release(held)
        raise
    return held


def reserve_now(budgets: Iterable[Budget], amount: Decimal) -> list[Reservation] | None:
    """`reserve`, if that is possible without waiting; else None, with nothing set aside.

    Raises:
        BudgetExceededError: it does not fit into one of them.
    """
    held: list[Reservation] = []
    try:
        for budget in set(budgets):
            reservation = budget.reserve_now(amount)
            if reservation is None:
                break
            held.append(reservation)
        else:
            return held
    except BaseException:
        release(held)
        raise
    release(held)
    return None


def release(reservations: Iterable[Reservation]) -> None:
    """Give back all of the money."""
    for reservation in reservations:
        reservation.release()


_budgets: weakref.WeakSet[Budget] = weakref.WeakSet()


def _forget_parent() -> None:
    # Who waits here waits in the parent, on a loop that does not run in the child.
    for budget in list(_budgets):
        budget.forget_waiting()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
