"""Reserves the worst case of a request in all of its budgets, and settles the real cost after its answer."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from ..errors import LLMError, UnknownPriceError
from ..events.waits import Waits
from ..money.budget import Budget, Reservation, release, reserve, reserve_now
from ..money.pricing import PriceTable
from ..pace.state import Ticket
from ..words import format_usd
from .call import Call
from .key_pool import KeySelection
from .worst_case import worst_case

_PLACEHOLDER = Decimal("0.000001")
"""USD reserved for an unknown price with `allow_unknown`. A used-up budget refuses even this amount."""


class BudgetedRequest:
    """The worst case of a request for some parts of a call, and the budgets that need room for it."""

    def __init__(
        self, call: Call[Any], parts: Sequence[int], budgets: Sequence[Budget], prices: PriceTable
    ) -> None:
        self._call = call
        self._budgets = budgets
        amount = worst_case(call, parts, prices)
        self._known = amount is not None
        self._amount = _PLACEHOLDER if amount is None else amount
        if amount is None and not all(budget.allow_unknown for budget in budgets):
            raise UnknownPriceError(
                f"the most that this request to {call.request.model} can cost is not known, so no budget "
                "can be kept: give a price (prices=, or --prices on the command line), set max_tokens, leave "
                "out features with which the provider adds input by itself, or allow it with Budget(..., "
                "allow_unknown=True)",
                provider=call.target.provider,
                model=call.request.model,
            )

    def affordable(self) -> bool:
        """Whether the budgets would have room if no other request were under way."""
        return all(budget.covers(self._amount) for budget in self._budgets)

    async def acquire(
        self, selection: KeySelection, tokens: float, *, first: bool, waits: Waits
    ) -> tuple[Ticket, Hold]:
        """Wait for a slot, and reserve the worst case of the request.

        A call that waits for a budget holds no slot. A call that waits for a slot or for a token holds no
        reservation, unless it has waited for a budget before. With `first`, the call goes before others that
        wait for a slot. With a `BudgetExceededError` no slot is held: there will never be room for the
        request.
        """
        for budget in self._budgets:
            # A request that never fits must not wait for a slot.
            budget.check(self._amount)
        limit, patience = self._call.concurrency, self._call.patience
        acquire = functools.partial(selection.acquire, limit, tokens=tokens, patience=patience)
        ticket = await acquire(first=first)
        try:
            if not selection.key.is_static:
                # A process that is killed while it waits for a token has reserved nothing.
                await selection.key.prepare()
            held = reserve_now(self._budgets, self._amount)
        except BaseException:
            selection.scope.record_withdrawal(ticket)
            raise
        if held is None:
            selection.scope.record_withdrawal(ticket)
            text = "waiting for requests under way, beside which the budget has no room for another"
            with waits.during(selection.scope.name, "budget", text):
                held = await reserve(self._budgets, self._amount)
            try:
                ticket = await acquire(first=True)
            except BaseException:
                release(held)
                raise
        return ticket, Hold(held, self._known)


class Hold:
    """The reservations of one request in its budgets. Exactly one of its methods is called."""

    def __init__(self, reservations: Sequence[Reservation], known: bool) -> None:
        self._reservations = reservations
        self._known = known

    def count_answer(self, cost: Decimal | None) -> None:
        """Count the cost of the request in USD; its worst case if the cost is not known."""
        if cost is None:
            self.count_worst_case()
        else:
            for reservation in self._reservations:
                reservation.settle(cost)

    def count_worst_case(self) -> None:
        """Count the worst case: the request was sent, and may be billed."""
        for reservation in self._reservations:
            if self._known:
                reservation.settle(None)
            else:
                reservation.release()

    def count_nothing(self) -> None:
        """Count nothing: the request was not sent."""
        release(self._reservations)

    def count_failure(self, error: LLMError, cost: Decimal | None) -> None:
        """Count the USD of a failed request, or its worst case if it may have been billed."""
        if not error.maybe_billed:
            self.count_nothing()
            return
        self.count_answer(cost)
        if cost is None and self._known:
            worst = format_usd(self._reservations[0].amount)
            error.message += f" (perhaps billed, so its budget counts its worst case, {worst})"
            error.args = (error.message,)
