"""The most that one request can cost, for budgets.

Some choices are still open when a request is sent. Each of them is taken at its highest price:

| open when the request is sent | taken |
|---|---|
| the tokens of the prompt and of the answer | the upper bounds of `_core/tokens/counting` |
| the part of the prompt that the provider reads from its cache or writes there | all, at the highest price |
| whether the provider bills text, audio or images | the highest price that the request allows |
| the service level that serves: the one asked for, or the standard one in its place | the higher price |
| whether the prompt is long enough for the price of long prompts | the highest price up to the most tokens |
| whether the call ends on the present day or, in UTC, on the next | the higher price |
"""

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from .. import doors
from ..formats.shared.request_facts import RequestFacts
from ..money.price_rows import PriceRow
from ..money.pricing import PriceTable
from ..runtime.exact_decimal import exact
from ..tokens.counting import most_input_tokens, most_output_tokens
from .call import Call

_INPUT = ("input", "cache_read", "cache_write")
_INPUT_MEDIA = ("input_audio", "cache_read_audio", "input_image")
_OUTPUT = ("output", "output_reasoning", "output_image")


def worst_case(
    call: Call[Any], parts: Sequence[int], prices: PriceTable, variants: Sequence[str] = ()
) -> Decimal | None:
    """The most USD that a request for `parts` of a call can cost; None if a price or a bound is not known.

    The prompt of several samples is billed once. `variants` are the service levels that may serve.
    """
    facts, body = call.facts(parts), call.operation.prompt(call, parts)
    provider, model = call.find_price_names()
    read = most_input_tokens(facts, body, call.target)
    answer = most_output_tokens(facts, call.target)
    if call.target.provider == "litellm" and not prices.applicable(provider, model):
        return _by_litellm(call.target.model, facts, read, answer, len(parts))
    if read is None or answer is None:
        return None
    written = answer * len(parts)
    reading, writing = _columns(facts)
    costs: list[Decimal] = []
    for variant in variants or {"standard", facts.variant}:
        rows = prices.applicable(provider, model, variant=variant, input_tokens=read)
        if not rows or any(row.input is None or (written and row.output is None) for row in rows):
            return None
        costs += [_cost(row, read, _highest(row, reading), written, _highest(row, writing)) for row in rows]
    return max(costs)


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


def _columns(facts: RequestFacts) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of the price table that may bill the prompt, and those that may bill the answer."""
    reading: tuple[str, ...] = _INPUT
    writing: tuple[str, ...] = _OUTPUT
    special = facts.special_prices()
    if special.caches_for_an_hour:
        reading += ("cache_write_1h",)
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
