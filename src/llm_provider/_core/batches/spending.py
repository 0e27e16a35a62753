"""The money of one batch in the budgets of a job: reserved at batch prices before it is submitted."""

import asyncio
import contextlib
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from ..errors import LLMError, UnknownPriceError
from ..journey.call import Call
from ..journey.engine import Engine
from ..journey.reservation import worst_case
from ..money.budget import Budget, Reservation, release, reserve
from ..runtime.exact_decimal import exact

_PLACEHOLDER = Decimal("0.000001")
"""USD reserved for a row of unknown price with `allow_unknown`."""
_PATIENCE = 30.0
"""Seconds that a batch waits for the money of requests under way: no other batch is submitted meanwhile."""


class Spending:
    """The reservation of one batch, of whose job `shared` is a call."""

    def __init__(self, engine: Engine, shared: Call[Any]) -> None:
        self._prices = engine.recorder.prices
        budgets = (shared.request.budget, engine.settings.budget)
        self._budgets: list[Budget] = [budget for budget in budgets if budget is not None]
        self._held: list[Reservation] = []

    async def reserve(self, calls: Iterable[Call[Any]], batch: str) -> None:
        """Reserve the worst case of all rows of a batch, if there is or soon will be room for it."""
        if not self._budgets:
            return
        amount = Decimal(0)
        for call in calls:
            most = worst_case(call, call.parts, self._prices(), variants=("batch",))
            if most is None and not all(budget.allow_unknown for budget in self._budgets):
                raise UnknownPriceError(
                    f"the most that a batch of {call.request.model} can cost is not known, so no budget can "
                    "be kept: give a price (prices= or --prices, with variant 'batch'), set max_tokens, or "
                    "allow it with Budget(..., allow_unknown=True)",
                    provider=call.target.provider,
                    model=call.request.model,
                )
            amount = exact().add(amount, _PLACEHOLDER if most is None else most)
        while not self._held:
            try:
                async with asyncio.timeout(_PATIENCE):
                    self._held = await reserve(self._budgets, amount)
            except TimeoutError:
                for error in (budget.explain_wait(amount) for budget in self._budgets):
                    if error is not None:
                        raise error from None
        for reservation in self._held:
            reservation.name(batch)

    def park(self, is_parked: bool) -> None:
        """Say whether nobody waits for the batch, so that no call waits for its money."""
        for reservation in self._held:
            reservation.park(is_parked)

    async def count(self, cost: Decimal, batch: str) -> None:
        """Count the USD of a batch that an earlier process has submitted, or the most that it can be."""
        for budget in self._budgets:
            # A budget that is used up must not keep answers back that are paid for.
            with contextlib.suppress(LLMError):
                (await budget.reserve(Decimal(0))).settle(cost, batch)

    def release(self) -> None:
        release(self._held)
        self._held = []

    def settle(self, cost: Decimal | None) -> None:
        """Count the cost of the batch in USD; its worst case if the cost is not known."""
        for reservation in self._held:
            reservation.settle(cost)
        self._held = []
