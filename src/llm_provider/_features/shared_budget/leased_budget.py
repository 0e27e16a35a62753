"""A budget that workers on several machines share: each takes a further part when it has used up one.

A part that a worker has taken counts as spent for the others, also after the worker was killed. So all
workers together never exceed the budget, and what a killed worker did not use is lost to the job.
"""

import functools
from collections.abc import Callable
from decimal import Decimal

from ..._core.errors import BudgetExceededError
from ..._core.money.balance import Balance
from ..._core.money.budget import SMALLER_ANSWER, Budget, Unit
from ..._core.runtime.exact_decimal import exact

_PARTS = 16
"""Parts of the share of each worker. Smaller parts leave less with workers that have ended."""


class BudgetParts:
    """Gives out the parts of a budget, in the one process that at most so many workers ask."""

    def __init__(self, total: Decimal, workers: int) -> None:
        self._left = total
        self._part = total / (workers * _PARTS)

    def take(self, needed: Decimal) -> Decimal:
        """A part, of at least the amount that is needed if there is as much; 0 if nothing is left."""
        part = min(max(needed, self._part), self._left)
        self._left = exact().subtract(self._left, part)
        return part


class LeasedBudget(Budget):
    """The budget of one worker, which grows by parts of a common one of `total` USD or tokens.

    `take` takes a part of at least so much from the common budget, and returns it; 0 if nothing is left.
    It is called on the event loop of the requests, about sixteen times, and should take some milliseconds.
    """

    def __init__(
        self,
        take: Callable[[Decimal], Decimal],
        total: Decimal,
        *,
        allow_unknown: bool = False,
        unit: Unit = "USD",
    ) -> None:
        super().__init__(0, allow_unknown=allow_unknown, unit=unit)
        self._take = take
        self._total = total
        self._is_used_up = False

    def __reduce__(self) -> tuple[object, ...]:
        make = functools.partial(LeasedBudget, allow_unknown=self.allow_unknown, unit=self.unit)
        return make, (self._take, self._total)

    def _fits(self, balance: Balance, amount: Decimal) -> bool:
        while not super()._fits(balance, amount):
            if self._is_used_up:
                return False
            needed = exact().subtract(exact().add(balance.spent, amount), self._limit)
            part = Decimal(0) if needed > self._total else self._take(needed)
            if part <= 0:
                self._is_used_up = needed <= self._total
                return False
            self._limit = exact().add(self._limit, part)
        return True

    def _explain_excess(
        self, balance: Balance, needed: Decimal, reserved: Decimal | None = None
    ) -> BudgetExceededError:
        verb = "cost" if self.unit == "USD" else "take"
        needs, total = f"may {verb} up to {self._format(needed)}", self._format(self._total)
        message = (
            f"this request {needs}, and less than that is left of the budget of {total} that the workers "
            f"share{SMALLER_ANSWER} {verb}"
        )
        return self._make_error(message, self._total, balance, needed)
