"""Budgets: USD or tokens that calls never exceed, in one process or in several that share a file.

Before a request is sent, the most that it can cost is reserved. After the request, its real cost replaces the
reservation. So at every moment

    spent + reserved <= limit

whatever the requests under way come to cost.

| a call's worst case | consequence |
|---|---|
| at most limit - spent - reserved | it is reserved, and the call goes on |
| at most limit - spent | the call waits, in order of arrival, for requests under way to end |
| more than limit - spent | `BudgetExceededError`: it can never fit, whatever the other requests cost |

What is reserved for a batch that nobody waits for counts as spent here, as nothing may ever end it.

| end of a request | amount counted as spent |
|---|---|
| an answer | its price, or the tokens of its usage |
| a failure that is certainly not billed | nothing |
| perhaps billed: broken off, cancelled, timed out, killed | the worst case; `uncertain` sums these |

`balance` keeps the amounts in memory, `balance_file` in a file for several processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import itertools
import os
import weakref
from collections import deque
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

from .. import doors
from ..errors import BudgetExceededError, LLMError, RequestError, cite
from ..json_values import plain_number
from ..runtime import clock, randomness
from ..runtime.exact_decimal import exact, total
from ..runtime.files import check_path
from ..runtime.forks import reset_in_child
from ..words import format_amount
from .balance import Balance, BusyError, MemoryBalance

if TYPE_CHECKING:
    from ..._features.shared_budget.balance_file import BalanceFile, FileTransaction
    from ..types.usage import Usage

_PAUSES = (0.002, 0.5)
"""Shortest and longest pause, in seconds, between two polls of a file that other processes write."""
_PAUSE_SHARE = 1 / 10
"""A pause is at most this share of the time since this process was last served, and so delays little. If
several processes wait, only the first can be served, so the pause of each one delays all of them."""
_LEAST, _MOST = Decimal("1e-9"), Decimal("1e12")
"""USD: less than a token costs, and more than anybody has."""
_MOST_TOKENS = 10**15
_BUSY_PAUSE = 0.002
"""Seconds, on average, until the next attempt on a file that another process was writing."""

Unit: TypeAlias = Literal["USD", "tokens"]
"""What a budget counts."""


class Amounts(NamedTuple):
    """What a request comes to, in both units of budgets. None is not known."""

    usd: Decimal | None
    tokens: Decimal | None

    @classmethod
    def of_usage(cls, cost: Decimal | None, usage: Usage | None) -> Amounts:
        """The USD and the tokens of a request that has ended; a usage without tokens is not known."""
        return cls(cost, Decimal(usage.total_tokens) if usage is not None and usage.total_tokens else None)

    def by(self, unit: Unit) -> Decimal | None:
        return self.usd if unit == "USD" else self.tokens

    def plus(self, other: Amounts) -> Amounts:
        usd, tokens = (
            None if mine is None or its is None else exact().add(mine, its)
            for mine, its in zip(self, other, strict=True)
        )
        return Amounts(usd, tokens)

    def fill(self, other: Amounts) -> Amounts:
        """The amounts, and the other's where one is not known."""
        usd, tokens = (mine if mine is not None else its for mine, its in zip(self, other, strict=True))
        return Amounts(usd, tokens)

    def divide(self, budgets: Iterable[Budget]) -> dict[Budget, Decimal]:
        """What each budget has to reserve; a placeholder for what is not known."""
        filled = self.fill(PLACEHOLDERS)
        return {budget: filled.by(budget.unit) or Decimal(0) for budget in budgets}


SMALLER_ANSWER = "; a smaller max_tokens lowers what it may"
"""The advice at the end of the message of a budget that has no room for a request."""
NOTHING = Amounts(Decimal(0), Decimal(0))
UNKNOWN = Amounts(None, None)
PLACEHOLDERS = Amounts(Decimal("0.000001"), Decimal(1))
"""Reserved for unknown amounts with `allow_unknown`. A used-up budget refuses even these amounts."""


class Reservation:
    """What is reserved for one request. The first call of `settle` or `release` ends it."""

    __slots__ = ("_budget", "_claim", "amount", "unit")

    def __init__(self, budget: Budget, claim: int, amount: Decimal) -> None:
        self._budget: Budget | None = budget
        self._claim = claim
        self.amount, self.unit = amount, budget.unit

    def settle(self, cost: Decimal | None, batch: str | None = None) -> None:
        """Count what the request came to; None, which is not known, counts the whole reserved amount.

        Of a `batch` that another process has submitted, it takes the place of what is reserved there.
        """
        budget, self._budget = self._budget, None
        if budget is not None:
            budget.end(self._claim, cost, batch)

    def name(self, batch: str) -> None:
        """Name the batch for which it is: it stays reserved until the batch is collected."""
        if self._budget is not None:
            self._budget.name(self._claim, batch)

    def release(self) -> None:
        """Return the money: nothing was billed."""
        self.settle(Decimal(0))

    def park(self, is_parked: bool) -> None:
        """Say whether nobody waits for the end of the request. Then no call waits for its money either."""
        if self._budget is not None:
            self._budget.park(self._claim, is_parked)


class _QueuedReservation(NamedTuple):
    amount: Decimal
    future: asyncio.Future[Reservation]


class Budget:
    """An amount of USD, or of tokens, that calls never exceed.

    Give it to a `Client`, to a batch or to a single call: as `budget`, or as `token_budget` if it counts
    tokens. Several of them may share one budget. The most that a request can cost is reserved before it is
    sent, and replaced by its cost after it. A call that fits only after requests under way have ended waits
    for them. Answers from the cache cost nothing and are always served.

    Args:
        limit: USD, finite and at least 0; or a whole number of tokens.
        path: A file through which several processes of a machine share the budget. It is made if it is
            missing, and keeps the amount that was spent: with the same file and a higher limit, a program
            continues from there. If a process is killed, the worst case of its requests under way counts as
            spent. The file must be on a local disk.
        allow_unknown: Whether to send calls whose price, or longest answer, is not known. They count their
            cost once it is known, or nothing where it stays unknown, so the limit does not hold for them.
        unit: "USD", or "tokens": the input and the output of every request, as its usage tells them. All
            amounts of the budget are in its unit.

    Raises:
        RequestError: the limit is not an amount, or the file cannot be used.

    >>> budget = Budget(5.00)
    >>> budget
    Budget(limit=$5.00, spent=$0.00, reserved=$0.00, left=$5.00)
    >>> Budget(2_000_000, unit="tokens").left
    Decimal('2000000')
    """

    def __init__(
        self,
        limit: float | Decimal,
        *,
        path: str | os.PathLike[str] | None = None,
        allow_unknown: bool = False,
        unit: Unit = "USD",
    ) -> None:
        if unit not in get_args(Unit):
            raise RequestError(f"unit must be 'USD' or 'tokens', not {cite(unit)}")
        self._unit: Unit = unit
        self._limit = amount_of(limit, unit=unit)
        self._path = None if path is None else str(Path(check_path("path", path)).resolve())
        if not isinstance(allow_unknown, bool):
            raise RequestError(f"allow_unknown must be True or False, not {allow_unknown!r}")
        self._allow_unknown = allow_unknown
        self.rank = (self._path or "", next(_numbers))
        """The order in which several budgets are reserved: in memory first, then files by path."""
        self._queue: deque[_QueuedReservation]
        self._timer: asyncio.TimerHandle | None
        self.forget_waiting()
        self._since: float | None = None
        self._store: MemoryBalance | BalanceFile = MemoryBalance()
        if self._path is not None:
            self._store = doors.balance_file.BalanceFile(self._path, unit)
        weakref.finalize(self, self._store.close).atexit = False
        _budgets.add(self)

    @property
    def unit(self) -> Unit:
        """What the budget counts: "USD" or "tokens"."""
        return self._unit

    @property
    def limit(self) -> Decimal:
        """The amount that may be spent in all."""
        return self._limit

    @property
    def path(self) -> str | None:
        """The file through which processes share the budget; None for a budget in memory."""
        return self._path

    @property
    def allow_unknown(self) -> bool:
        """Whether calls of unknown price are sent."""
        return self._allow_unknown

    @property
    def spent(self) -> Decimal:
        """The amount spent so far, by all processes that share the budget."""
        return self._store.read().spent

    @property
    def uncertain(self) -> Decimal:
        """The part of `spent` that was perhaps not billed, for requests that were broken off."""
        return self._store.read().uncertain

    @property
    def reserved(self) -> Decimal:
        """The amount reserved for the requests under way."""
        return self._store.read().reserved

    @property
    def left(self) -> Decimal:
        """The amount neither spent nor reserved."""
        balance = self._store.read()
        return self._subtract(balance.spent, balance.reserved)

    def _subtract(self, *used: Decimal) -> Decimal:
        return max(Decimal(0), exact().subtract(self._limit, total(used)))

    def __repr__(self) -> str:
        try:
            balance = self._store.read()
        except LLMError as error:
            return f"Budget(limit={self._format(self._limit)}, {error})"
        amounts = {"limit": self._limit, "spent": balance.spent, "reserved": balance.reserved}
        amounts |= {"uncertain": balance.uncertain} if balance.uncertain else {}
        amounts["left"] = self._subtract(balance.spent, balance.reserved)
        return f"Budget({', '.join(f'{name}={self._format(amount)}' for name, amount in amounts.items())})"

    def _format(self, amount: Decimal, digits: int = 4) -> str:
        return format_amount(amount, self._unit, digits)

    def __reduce__(self) -> tuple[object, ...]:
        if self._path is None:
            raise TypeError(
                "a budget in memory cannot be sent to another process: give it a file to share, as in "
                "Budget(..., path='run.budget')"
            )
        make = functools.partial(Budget, path=self._path, allow_unknown=self._allow_unknown)
        return make if self._unit == "USD" else functools.partial(make, unit=self._unit), (self._limit,)

    async def reserve(self, amount: Decimal) -> Reservation:
        """Reserve the worst case of a request. Waits for requests under way if it does not fit yet.

        Waiting calls are served in order of arrival. A call that is cancelled reserves nothing.
        """
        queued = _QueuedReservation(amount, asyncio.get_running_loop().create_future())
        self._queue.append(queued)
        self._serve_queue()
        try:
            return await queued.future
        except asyncio.CancelledError:
            if not queued.future.cancelled() and not queued.future.exception():
                # It was served and cancelled in the same iteration of the event loop.
                queued.future.result().release()
            else:
                # It stays in the queue until `_serve_queue` reaches it.
                self._serve_queue()
            raise

    def reserve_now(self, amount: Decimal) -> Reservation | None:
        """`reserve` if that is possible without waiting; else None."""
        claim: int | LLMError | None
        try:
            with self._store.open() as transaction:
                claim = None if self._queue else self._try_to_claim(transaction, amount)
        except BusyError:
            return None
        if isinstance(claim, LLMError):
            raise claim
        return None if claim is None else Reservation(self, claim, amount)

    def covers(self, amount: Decimal) -> bool:
        """Whether an amount would fit if nothing were under way that ends."""
        return self._can_fit(self._store.read(), amount)

    def check(self, amount: Decimal) -> None:
        """Raise `BudgetExceededError` if an amount does not fit, however long it waits."""
        balance = self._store.read()
        if not self._can_fit(balance, amount):
            raise self._explain_excess(balance, amount)

    def _fits(self, balance: Balance, amount: Decimal) -> bool:
        return exact().add(balance.spent, amount) <= self._limit

    def _can_fit(self, balance: Balance, amount: Decimal) -> bool:
        return self._fits(balance, exact().add(amount, balance.parked))

    def park(self, claim: int, is_parked: bool) -> None:
        """Note whether nobody waits for the request of a claim. Called by `Reservation` only."""
        self._store.park(claim, is_parked)
        self._serve_queue()

    def explain_wait(self, amount: Decimal) -> BudgetExceededError | None:
        """The error of an amount that has to wait for requests under way; None if there is room for it."""
        balance = self._store.read()
        if self._fits(balance, exact().add(amount, balance.reserved)):
            return None
        return self._explain_excess(balance, amount, balance.reserved)

    def name(self, claim: int, batch: str) -> None:
        """Note the batch of a claim. Called by `Reservation` only."""
        self._store.name(claim, batch)
        self._serve_queue()

    def end(self, claim: int, cost: Decimal | None, batch: str | None = None) -> None:
        """Replace a claim by its cost; None is an unknown cost. Called by `Reservation` only."""
        self._store.end(claim, cost, batch)
        self._serve_queue()

    def forget_waiting(self) -> None:
        """Begin with an empty queue."""
        self._queue = deque()
        self._timer = None

    def _serve_queue(self) -> None:
        """Write the costs of ended requests, then serve the queue from its head as far as the money goes."""
        if not (self._store.shared or self._queue):
            return
        served: list[tuple[_QueuedReservation, int | LLMError | None]] = []
        try:
            with self._store.open() as transaction:
                for queued in self._queue:
                    claim = None if queued.future.done() else self._try_to_claim(transaction, queued.amount)
                    if claim is None and not queued.future.done():
                        break
                    served.append((queued, claim))
                transaction.set_waiting(len(served) < len(self._queue))
        except BusyError:
            self._serve_queue_in(_BUSY_PAUSE * randomness.generator.uniform(0.5, 1.5))
            return
        except RequestError as error:
            # A copy for each task: one error that several raise would collect the tracebacks of all.
            served = [(queued, copy.copy(error)) for queued in self._queue]
        for queued, claim in served:
            self._queue.popleft()
            if isinstance(claim, LLMError):
                if not queued.future.done():
                    queued.future.set_exception(claim)
            elif claim is not None:
                queued.future.set_result(Reservation(self, claim, queued.amount))
        if self._queue and self._store.shared:
            # A request that ends in another process wakes nobody here, so this process polls.
            now = clock.monotonic()
            if served or self._since is None:
                self._since = now
            self._serve_queue_in(min(max((now - self._since) * _PAUSE_SHARE, _PAUSES[0]), _PAUSES[1]))
        else:
            self._since = None
            if self._store.is_behind:
                # A full disk may have room again, and other processes wait for what has ended here.
                self._serve_queue_in(_PAUSES[1])

    def _try_to_claim(
        self, transaction: MemoryBalance | FileTransaction, amount: Decimal
    ) -> int | LLMError | None:
        """The number of a new claim; the error if the amount can never fit; None if it has to wait."""
        balance = transaction.balance
        if not self._can_fit(balance, amount):
            return self._explain_excess(balance, amount)
        if self._fits(balance, exact().add(amount, balance.reserved)) and transaction.is_next():
            return transaction.claim(amount)
        return None

    def _serve_queue_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        # Without a running loop the interpreter is ending, and closing the store writes the costs.
        with contextlib.suppress(RuntimeError):
            self._timer = asyncio.get_running_loop().call_later(seconds, self._serve_queue)

    def _explain_excess(
        self, balance: Balance, needed: Decimal, reserved: Decimal | None = None
    ) -> BudgetExceededError:
        reserved = balance.parked if reserved is None else reserved
        show, rest = self._format, self._subtract(balance.spent, reserved)
        # As many digits as make the two amounts differ.
        digits = next((each for each in range(4, 20) if show(needed, each) != show(rest, each)), 4)
        left, limit = show(rest, digits), show(self._limit)
        cost, are, count = ("cost", "is", "counts") if self._unit == "USD" else ("take", "are", "count")
        message = (
            f"this request may {cost} up to {show(needed, digits)}, "
            f"and {left} of the budget of {limit} {are} left"
        )
        if balance.uncertain:
            uncertain = show(balance.uncertain)
            message += f" ({uncertain} {count} as spent for requests that were perhaps not billed)"
        if reserved:
            message += f" ({show(reserved)} {are} reserved for requests under way)"
        message += f"{SMALLER_ANSWER} {cost}"
        return self._make_error(message, self._limit, balance, needed)

    def _make_error(
        self, message: str, limit: Decimal, balance: Balance, needed: Decimal
    ) -> BudgetExceededError:
        error = BudgetExceededError(message, budget=limit, spent=balance.spent, needed=needed)
        if self._unit != "USD":
            error.unit = self._unit
        return error


def amount_of(value: object, name: str = "budget", unit: Unit = "USD") -> Decimal:
    """An amount as an exact number, a float as Python prints it; `RequestError` if it is no amount."""
    plain = value if isinstance(value, Decimal) else plain_number(value)
    if plain is not None:
        amount = Decimal(repr(plain)) if isinstance(plain, float) else Decimal(plain)
        if unit == "tokens":
            if amount.is_finite() and 0 <= amount <= _MOST_TOKENS and amount == int(amount):
                return Decimal(int(amount))
        elif amount.is_finite() and (amount == 0 or _LEAST <= amount <= _MOST):
            return abs(amount)  # there is a zero with a sign
    cited = str(value) if isinstance(value, Decimal) else cite(value)
    if unit == "tokens":
        raise RequestError(f"{name} must be a whole number of tokens, up to {_MOST_TOKENS:,}, not {cited}")
    raise RequestError(f"{name} must be a number of USD: 0, or from {_LEAST} to {_MOST}, not {cited}")


def _in_order(budgets: Iterable[Budget]) -> list[Budget]:
    """The budgets in one order for all processes, so that no two calls hold what the other waits for."""
    return sorted(budgets, key=lambda budget: budget.rank)


async def reserve(amounts: Mapping[Budget, Decimal]) -> list[Reservation]:
    """Reserve amounts in all of several budgets, or in none; `BudgetExceededError` if one is too small."""
    held: list[Reservation] = []
    try:
        for budget in _in_order(amounts):
            reservation = await budget.reserve(amounts[budget])
            held.append(reservation)
    except BaseException:
        release(held)
        raise
    return held


def reserve_now(amounts: Mapping[Budget, Decimal]) -> list[Reservation] | None:
    """`reserve` if that is possible without waiting; else None."""
    held: list[Reservation] = []
    with contextlib.ExitStack() as undo:
        undo.callback(lambda: release(held))
        for budget in _in_order(amounts):
            reservation = budget.reserve_now(amounts[budget])
            if reservation is None:
                return None
            held.append(reservation)
        undo.pop_all()
    return held


def release(reservations: Iterable[Reservation]) -> None:
    for reservation in reservations:
        reservation.release()


_numbers = itertools.count()
_budgets: weakref.WeakSet[Budget] = weakref.WeakSet()

# Queued reservations belong to the parent's event loop, which does not run in the child.
reset_in_child(_budgets, Budget.forget_waiting)
