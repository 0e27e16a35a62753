"""What one request can cost at most, for budgets.

Every choice that is open when the request is sent is taken at its dearest:

| open | taken |
|---|---|
| how many tokens the prompt has, and the answer | the most (`_tokens`) |
| what of the prompt the provider writes to its cache, or reads there | all, at the dearest of these prices |
| whether text, sound or images are billed | the dearest that the request allows |
| which tier serves: the one asked for, or the standard one in its place | the dearer |
| whether the prompt reaches the price of a long one | the dearest up to the most tokens |
| whether the call ends today or, in UTC, tomorrow | the dearer |
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from .._money.price_rows import VARIANTS
from .._requests.routing import priced_as
from .._runtime.exact_decimal import exact
from .._tokens.counting import contents, most_input_tokens, most_output_tokens

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .._money.price_rows import PriceRow
    from .._money.pricing import PriceTable
    from .._providers.adapter import EncodedRequest
    from .call import Call

_INPUT = ("input", "cache_read", "cache_write")
_INPUT_MEDIA = ("input_audio", "cache_read_audio", "input_image")
_OUTPUT = ("output", "output_reasoning", "output_image")


def worst_case(call: Call, samples: int, prices: PriceTable) -> Decimal | None:
    """USD that a request for some samples of a call can cost at most.

    Args:
        call: The call.
        samples: How many answers the request asks for; the prompt is billed once.
        prices: What it pays by.

    Returns:
        None where the price, or a bound for the tokens, is not known.
    """
    read, written = most_input_tokens(call, samples), most_output_tokens(call, samples)
    if read is None or written is None:
        return None
    reading, writing = _columns(call)
    provider, model = priced_as(call.target)
    costs: list[Decimal] = []
    for alternatives in _variants(call.encoded):
        rows = [
            row
            for variant in alternatives
            for row in prices.applicable(provider, model, variant=variant, input_tokens=read)
        ]
        if not rows or any(row.input is None or row.output is None for row in rows):
            return None
        costs += [_cost(row, read, _dearest(row, reading), written, _dearest(row, writing)) for row in rows]
    return max(costs)


def _variants(encoded: EncodedRequest) -> list[tuple[str, ...]]:
    """The tiers that may serve a request. Of each group at least one must have a price."""
    asked = (
        encoded.payload.get("service_tier")
        or encoded.payload.get("serviceTier")
        or encoded.payload.get("speed")
    )
    if not isinstance(asked, str) or asked not in VARIANTS - {"standard"}:
        return [("standard",)]
    # OpenAI serves "fast" under the name of "priority".
    return [("standard",), ("fast", "priority") if asked == "fast" else (asked,)]


def _columns(call: Call) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The prices by which the prompt and the answer may be billed."""
    reading: tuple[str, ...] = _INPUT
    writing: tuple[str, ...] = _OUTPUT
    # Only who asks for it has a prompt kept for an hour.
    if b'"1h"' in call.body:
        reading += ("cache_write_1h",)
    if contents(call.encoded.payload).media:
        reading += _INPUT_MEDIA
    if b'"audio"' in call.body:
        reading += _INPUT_MEDIA
        writing += ("output_audio",)
    return reading, writing


def _dearest(row: PriceRow, columns: Iterable[str]) -> Decimal:
    prices: list[Decimal | None] = [getattr(row, column) for column in columns]
    return max(price for price in prices if price is not None)


def _cost(row: PriceRow, read: int, input_price: Decimal, written: int, output_price: Decimal) -> Decimal:
    tokens = exact().add(exact().multiply(read, input_price), exact().multiply(written, output_price))
    # Prices of tokens are per million, those of requests per thousand.
    return exact().add(exact().scaleb(tokens, -6), exact().scaleb(row.request or Decimal(0), -3))
