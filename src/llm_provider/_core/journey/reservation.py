"""Reserves the worst case of a request in all of its budgets, and settles the real cost after its answer.

Some choices are still open when a request is sent. Each of them is taken at its highest price:

| open when the request is sent | taken |
|---|---|
| the tokens of the prompt and of the answer | the upper bounds of `_core/tokens/counting` |
| the part of the prompt that the provider reads from its cache or writes there | all, at the highest price |
| whether the provider bills text, audio or images | the highest price that the request allows |
| the service level that serves: the one asked for, or the standard one in its place | the higher price |
| whether the prompt is long enough for the price of long prompts | the highest price up to the most tokens |
| whether the call ends on the present day or, in UTC, on the next | the higher price |

A budget in tokens has no choices but the first one, and needs no price.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .. import doors
from ..errors import BudgetExceededError, LLMError, UnknownPriceError
from ..events.events import Waits
from ..formats.shared.payload import RequestFacts, SpecialPrices
from ..money.budget import (
    SMALLER_ANSWER,
    UNKNOWN,
    Amounts,
    Budget,
    Reservation,
    release,
    reserve,
    reserve_now,
)
from ..money.price_rows import PriceRow
from ..money.pricing import PriceTable
from ..pace.state import Ticket
from ..requests.routing import suggest_near_model
from ..runtime.exact_decimal import exact
from ..tokens.counting import most_input_tokens, most_output_tokens
from ..words import format_amount
from .call import Call
from .key_pool import KeySelection

if TYPE_CHECKING:
    from ..types.usage import Usage

_INPUT = ("input", "cache_read", "cache_write")
_INPUT_MEDIA = ("input_audio", "cache_read_audio", "input_image")
_OUTPUT = ("output", "output_reasoning", "output_image")


class BudgetedRequest:
    """The worst case of a request for some parts of a call, and the budgets that need room for it."""

    def __init__(
        self, call: Call[Any], parts: Sequence[int], budgets: Sequence[Budget], prices: PriceTable
    ) -> None:
        self._call, self._parts, self._prices = call, parts, prices
        self._budgets = budgets
        self._most = find_most(call, parts, prices, budgets)
        self._amounts = self._most.divide(budgets)

    def affordable(self) -> bool:
        """Whether the budgets would have room if no other request were under way."""
        return all(budget.covers(amount) for budget, amount in self._amounts.items())

    def _explain_excess(self, message: str) -> str:
        """The message with the bounds of the worst case; other advice if no answer is short enough."""
        call, parts = self._call, self._parts
        facts, body = call.facts(parts), call.operation.prompt(call, parts)
        most_input = most_input_tokens(facts, body, call.target)
        most_output = most_output_tokens(facts, call.target)
        if most_input is None or most_output is None:
            return message
        least = Amounts(worst_case(call, parts, self._prices, answer=0), Decimal(most_input))
        if not all(budget.covers(amount) for budget, amount in least.divide(self._budgets).items()):
            advice = "; its input alone exceeds that: raise the budget, or shorten the input"
            message = message.partition(SMALLER_ANSWER)[0] + advice
        return message + f" (at most {most_input:,} tokens of input, and {most_output:,} in each answer)"

    async def acquire(
        self, selection: KeySelection, tokens: float, *, first: bool, waits: Waits
    ) -> tuple[Ticket, Hold]:
        """Wait for a slot, and reserve the worst case of the request.

        A call that waits for a budget holds no slot. A call that waits for a slot or for a token holds no
        reservation, unless it has waited for a budget before. With `first`, the call goes before others that
        wait for a slot. With a `BudgetExceededError` no slot is held: there will never be room for the
        request.
        """
        try:
            for budget, amount in self._amounts.items():
                # A request that never fits must not wait for a slot.
                budget.check(amount)
        except BudgetExceededError as error:
            error.message = self._explain_excess(error.message)
            error.args = (error.message,)
            raise
        (most, at_once), patience = self._call.concurrency, self._call.patience
        acquire = functools.partial(
            selection.slots.acquire, most, at_once=at_once, tokens=tokens, patience=patience
        )
        ticket = await acquire(first=first)
        try:
            if not selection.key.is_static:
                # A process that is killed while it waits for a token has reserved nothing.
                await selection.key.prepare()
            held = reserve_now(self._amounts)
        except BaseException:
            selection.scope.record_withdrawal(ticket)
            raise
        if held is None:
            selection.scope.record_withdrawal(ticket)
            text = "waiting for requests under way, beside which the budget has no room for another"
            with waits.during(selection.scope.name, "budget", text):
                held = await reserve(self._amounts)
            try:
                ticket = await acquire(first=True)
            except BaseException:
                release(held)
                raise
        return ticket, Hold(held, self._most)


class Hold:
    """The reservations of one request in its budgets. Exactly one of its methods is called."""

    def __init__(self, reservations: Sequence[Reservation], most: Amounts) -> None:
        self._reservations = reservations
        self._most = most

    def count_answer(self, cost: Decimal | None, usage: Usage | None) -> None:
        """Count the USD and the tokens of the request; its worst case where these are not known."""
        self._settle(Amounts.of_usage(cost, usage))

    def _settle(self, spent: Amounts) -> None:
        for reservation in self._reservations:
            if spent.by(reservation.unit) is None and self._most.by(reservation.unit) is None:
                reservation.release()
            else:
                reservation.settle(spent.by(reservation.unit))

    def count_worst_case(self) -> None:
        """Count the worst case: the request was sent, and may be billed."""
        self._settle(UNKNOWN)

    def count_nothing(self) -> None:
        """Count nothing: the request was not sent."""
        release(self._reservations)

    def count_failure(self, error: LLMError, cost: Decimal | None, usage: Usage | None) -> None:
        """Count what a failed request came to, or its worst case if it may have been billed."""
        if not error.maybe_billed:
            self.count_nothing()
            return
        spent = Amounts.of_usage(cost, usage)
        self._settle(spent)
        units = dict.fromkeys(reservation.unit for reservation in self._reservations)
        worst = {unit: most for unit in units if spent.by(unit) is None and (most := self._most.by(unit))}
        if worst:
            text = " and ".join(format_amount(most, unit) for unit, most in worst.items())
            error.message += f" (perhaps billed, so its budget counts its worst case, {text})"
            error.args = (error.message,)


def find_most(
    call: Call[Any],
    parts: Sequence[int],
    prices: PriceTable,
    budgets: Sequence[Budget],
    variants: Sequence[str] = (),
    subject: str = "this request to",
) -> Amounts:
    """The most that a request for `parts` of a call can come to, in the units that its budgets count.

    An `UnknownPriceError` says that it is not known, unless every budget of the unit allows that.
    """
    units = {budget.unit for budget in budgets}
    usd = worst_case(call, parts, prices, variants) if "USD" in units else Decimal(0)
    tokens = most_tokens(call, parts) if "tokens" in units else Decimal(0)
    most, model = Amounts(usd, tokens), call.request.model
    strict = [budget.unit for budget in budgets if not budget.allow_unknown]
    unknown = [unit for unit in strict if most.by(unit) is None]
    if not unknown:
        return most
    problem, remedy, unit = f"the most tokens that {subject} {model} can take are", "", "unit='tokens', "
    if "USD" in unknown:
        problem, unit = f"the most that {subject} {model} can cost is", ""
        variant = f", with variant {variants[0]!r}" if variants else ""
        remedy = f"give a price (prices={variant}), "
        is_listed = prices.find_key(*call.find_price_names()) is not None
        if not is_listed and call.target.provider != "litellm":
            near = suggest_near_model(call.target, model)
            raise UnknownPriceError(
                f"no price of {model!r} is known, so no budget can be kept"
                f"{prices.describe_missing(*call.find_price_names())}"
                f"{near and near + ' If the name is right'}: {remedy}"
                "or allow it with Budget(..., allow_unknown=True)",
                provider=call.target.provider,
                model=model,
            )
    raise UnknownPriceError(
        f"{problem} not known, so no budget can be kept: {remedy}set max_tokens, leave "
        "out features with which the provider adds input by itself, or allow it with "
        f"Budget(..., {unit}allow_unknown=True)",
        provider=call.target.provider,
        model=model,
    )


def worst_case(
    call: Call[Any], parts: Sequence[int], prices: PriceTable, variants: Sequence[str] = (),
    answer: int | None = None,
) -> Decimal | None:  # fmt: skip
    """The most USD that a request for `parts` of a call can cost; None if a price or a bound is not known.

    The prompt of several samples is billed once. `variants` are the service levels that may serve, and
    `answer` is a length for each answer in the place of the longest one.
    """
    facts, body = call.facts(parts), call.operation.prompt(call, parts)
    provider, model = call.find_price_names()
    read = most_input_tokens(facts, body, call.target)
    answer = most_output_tokens(facts, call.target) if answer is None else answer
    if call.target.provider == "litellm" and not prices.applicable(provider, model):
        return _by_litellm(call.target.model, facts, read, answer, len(parts))
    if read is None or answer is None:
        return None
    special = facts.special_prices()
    written = answer * len(parts)
    reading, writing = _columns(facts, special)
    costs: list[Decimal] = []
    for variant in variants or {"standard", facts.variant}:
        rows = prices.applicable(provider, model, variant=variant, input_tokens=read)
        if not rows or any(row.input is None or (written and row.output is None) for row in rows):
            return None
        if special.caches_for_12_hours and any(row.cache_write_12h is None for row in rows):
            return None
        costs += [_cost(row, read, _highest(row, reading), written, _highest(row, writing)) for row in rows]
    return max(costs)


def most_tokens(call: Call[Any], parts: Sequence[int]) -> Decimal | None:
    """The most tokens of a request for `parts` of a call, input and output; None if a bound is not known.

    The prompt of several samples counts once.
    """
    facts, body = call.facts(parts), call.operation.prompt(call, parts)
    read = most_input_tokens(facts, body, call.target)
    answer = most_output_tokens(facts, call.target)
    return None if read is None or answer is None else Decimal(read + answer * len(parts))


def _by_litellm(
    model: str, facts: RequestFacts, read: int | None, answer: int | None, samples: int
) -> Decimal | None:
    """The most USD by litellm's price map, for a model that the price table does not have."""
    entry = doors.litellm_prices.prices_of(model)
    if entry is None or facts.adds_input:
        return None
    if answer is None:
        answer = entry.get("max_output_tokens")
    if read is None or not isinstance(answer, int) or facts.media:
        return None
    return doors.litellm_prices.most_cost(entry, read, answer * samples)


def _columns(facts: RequestFacts, special: SpecialPrices) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of the price table that may bill the prompt, and those that may bill the answer."""
    reading: tuple[str, ...] = _INPUT
    writing: tuple[str, ...] = _OUTPUT
    if special.caches_for_an_hour:
        reading += ("cache_write_1h",)
    if special.caches_for_12_hours:
        reading += ("cache_write_12h",)
    if facts.media or special.continues_speech:
        reading += _INPUT_MEDIA
    if special.speaks:
        writing += ("output_audio",)
    return reading, writing


def _highest(row: PriceRow, columns: Iterable[str]) -> Decimal:
    prices: list[Decimal | None] = [getattr(row, column) for column in columns]
    return max((price for price in prices if price is not None), default=Decimal(0))


def _cost(row: PriceRow, read: int, input_price: Decimal, written: int, output_price: Decimal) -> Decimal:
    tokens = exact().add(exact().multiply(read, input_price), exact().multiply(written, output_price))
    # Token prices are per million tokens, request prices per thousand requests.
    return exact().add(exact().scaleb(tokens, -6), exact().scaleb(row.request or Decimal(0), -3))
