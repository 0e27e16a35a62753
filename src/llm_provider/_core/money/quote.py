"""The checks of what a user asks `price` for."""

from datetime import date
from decimal import Decimal

from ..errors import RequestError, cite
from ..types.usage import Usage
from .price_rows import VARIANTS
from .pricing import NO_PRICE, PriceTable, warn_of_unknown_cost


def quote(
    prices: PriceTable,
    listed: tuple[str, str],
    usage: Usage,
    service_tier: str | None = None,
    at: date | None = None,
) -> Decimal | None:
    """The cost in USD of one call, None if unknown. The tiers "default" and "auto" mean "standard"."""
    if not isinstance(usage, Usage):
        raise RequestError(
            f"usage is a llm_provider.Usage, not {type(usage).__name__}: write response.usage, or "
            "Usage(input_tokens=1000)"
        )
    counts = {name: getattr(usage, name) for name in Usage.__slots__}
    wrong = [name for name, value in counts.items() if type(value) is not int or not 0 <= value < 2**63]
    if wrong:
        value = cite(getattr(usage, wrong[0]))
        raise RequestError(f"{wrong[0]} of a usage is a whole number from 0 to 2**63 - 1, not {value}")
    variant = "standard" if service_tier in (None, "default", "auto") else service_tier
    if variant not in VARIANTS:
        raise RequestError(f"service_tier is one of {', '.join(sorted(VARIANTS))}, not {cite(service_tier)}")
    if at is not None and not isinstance(at, date):
        raise RequestError(
            f"at is a datetime.date or datetime.datetime, not {type(at).__name__}: write date(2026, 1, 31)"
        )
    cost = prices.explain_cost(*listed, usage, variant=variant, at=at)
    if not isinstance(cost, str):
        return cost
    if not cost.endswith(NO_PRICE):  # the others are no news to who asks for a price
        warn_of_unknown_cost(cost)
    return None
