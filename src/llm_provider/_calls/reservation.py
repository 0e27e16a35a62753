"""A request and the budgets that pay for it: its worst case is reserved before it is sent, and settled after.

The budgets are those of the client and of the call or batch. A request needs room in each of them.
"""

from __future__ import annotations

import functools
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .._errors import LLMError, UnknownPriceError
from .._money.budget import Budget, Reservation, release, reserve, reserve_now, shown
from .worst_case import worst_case

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._limits.rate_estimator import Ticket
    from .._money.pricing import PriceTable
    from .call import Call
    from .key_pool import KeySelection

_PLACEHOLDER = Decimal("0.000001")
"""USD reserved where no price is known and that is allowed: a budget that is used up refuses this too."""


class Spending:
    """The most that a request for some parts of a call can cost, and the budgets that need room for it.

    Args:
        call: The call.
        parts: The parts that the request asks for.
        budgets: Those that the call is under.
        prices: What it pays by.

    Raises:
        UnknownPriceError: the most that the request may cost is not known, and a budget does not allow that.
    """

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
                f"what {call.request.model} may cost here is not known, so no budget can be kept: give its "
                "price (prices=), set max_tokens, leave out what the provider searches or adds by itself, or "
                "allow it with Budget(..., allow_unknown=True)",
                provider=call.target.provider,
                model=call.request.model,
            )

    def affordable(self) -> bool:
        """Whether there is room once no other request is under way."""
        return all(budget.covers(self._amount) for budget in self._budgets)

    async def acquire(self, selection: KeySelection, tokens: float, *, first: bool) -> tuple[Ticket, Hold]:
        """A slot, with what the request may cost set aside.

        Who waits for money holds no slot. Who waits for a slot holds no money, unless it was waited for.

        Args:
            selection: The keys that may send the request.
            tokens: Estimated tokens of the request.
            first: Whether to go before the others that wait for one.

        Raises:
            BudgetExceededError: there will never be room for the request. No slot is held then.
            RequestError: a budget's file cannot be used.
        """
        for budget in self._budgets:
            # Not to wait for a slot in vain.
            budget.check(self._amount)
        acquire = functools.partial(
            selection.acquire, self._call.max_concurrent, tokens=tokens, at_once=self._call.at_once
        )
        ticket = await acquire(first=first)
        try:
            held = reserve_now(self._budgets, self._amount)
        except BaseException:
            selection.withdrawn(ticket)
            raise
        if held is None:
            selection.withdrawn(ticket)
            held = await reserve(self._budgets, self._amount)
            try:
                ticket = await acquire(first=True)
            except BaseException:
                release(held)
                raise
        return ticket, Hold(held, self._known)


class Hold:
    """What is set aside for one request, in each of its budgets. Exactly one of the endings is called."""

    __slots__ = ("_known", "_reservations")

    def __init__(self, reservations: Sequence[Reservation], known: bool) -> None:
        self._reservations = reservations
        self._known = known

    def answered(self, cost: Decimal | None) -> None:
        """Count what the request cost in USD; its worst case if that is not known."""
        if cost is None:
            self.lost()
        else:
            for reservation in self._reservations:
                reservation.settle(cost)

    def lost(self) -> None:
        """Count the worst case: the request was sent, and may be billed."""
        for reservation in self._reservations:
            if self._known:
                reservation.settle(None)
            else:
                reservation.release()

    def failed(self, error: LLMError, cost: Decimal | None) -> None:
        """Count a failed request as what it cost, or may have cost, which its error tells.

        Args:
            error: How it failed.
            cost: USD, as its answer told although it cannot be used.
        """
        if not error.maybe_billed:
            release(self._reservations)
            return
        self.answered(cost)
        if cost is None and self._known:
            worst = shown(self._reservations[0].amount)
            error.message += f" (perhaps billed, so its budget counts its worst case, ${worst})"
            error.args = (error.message,)
