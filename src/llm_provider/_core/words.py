"""Money, durations and times as people read them, switches as they write them, and what terminals show."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

_SWITCHES = dict.fromkeys(("1", "true", "yes", "on"), True)
_SWITCHES |= dict.fromkeys(("0", "false", "no", "off"), False)


def read_switch(text: str) -> bool | None:
    """Whether a word such as "yes" or "0" switches something on or off; None for any other text."""
    return _SWITCHES.get(text.lower())


def format_clock_time(moment: float) -> str:
    """Format a Unix time as local time of day, such as "14:02:07"."""
    return time.strftime("%H:%M:%S", time.localtime(moment))


def format_duration(seconds: float) -> str:
    """Format a duration.

    >>> format_duration(0.52), format_duration(75), format_duration(3725)
    ('0.5 s', '1 min 15 s', '1 h 2 min')
    """
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def format_usd(
    amount: float | Decimal | None,
    unknown: int = 0,
    at_most: float | Decimal | None = None,
    *,
    digits: int = 4,
) -> str:
    """Format a sum of USD with four digits, and with at least two decimal places.

    `unknown` costs are not in the sum, and are `at_most` so many USD where that is known. The amount is None
    if it is not known at all.

    >>> format_usd(1234.5), format_usd(0.0205), format_usd(0.000174), format_usd(0)
    ('$1,234.50', '$0.0205', '$0.000174', '$0.00')
    >>> format_usd(0.5, 2), format_usd(0.0, 3), format_usd(None)
    ('≥ $0.50, 2 costs unknown', '3 costs unknown', 'unknown')
    >>> format_usd(0.5, 2, 0.25), format_usd(0, 1, 0.25)
    ('$0.50 + at most $0.25 (2 costs unknown)', 'at most $0.25 (1 cost unknown)')
    """
    if amount is None:
        return "unknown"
    costs = f"{unknown:,} cost{'s' * (unknown != 1)} unknown"
    if unknown and at_most is not None:
        known = f"{format_usd(amount)} + " if amount else ""
        return f"{known}at most {format_usd(at_most)} ({costs})"
    if unknown:
        return f"≥ {format_usd(amount)}, {costs}" if amount else costs
    from decimal import Decimal

    # A float is formatted by its digits, so that it rounds as the decimal that it stands for.
    amount = amount if isinstance(amount, Decimal) else Decimal(repr(float(amount)))
    # Of the smallest amounts, twenty decimal places are enough.
    decimals = min(max(2, digits - 1 - amount.adjusted()), 20) if amount else 2
    whole, _, rest = f"{abs(amount):,.{decimals}f}".partition(".")
    return f"{'-' if amount < 0 else ''}${whole}.{rest.rstrip('0'):0<2}"


def format_amount(amount: Decimal, unit: str, digits: int = 4) -> str:
    """Format an amount of a budget in its unit, "USD" or "tokens".

    >>> from decimal import Decimal
    >>> format_amount(Decimal("0.5"), "USD"), format_amount(Decimal(20_000), "tokens")
    ('$0.50', '20,000 tokens')
    """
    return format_usd(amount, digits=digits) if unit == "USD" else f"{amount:,.0f} tokens"


def format_cost(cost: float | None, bounds: Sequence[float | None] | None = None) -> str:
    """Format the USD of one call; if they are not known, the least and the most that they can be.

    >>> format_cost(0.5), format_cost(None), format_cost(None, (0.5, 0.75))
    ('$0.50', 'cost unknown', '$0.50 + at most $0.25 (1 cost unknown)')
    """
    least, most = bounds or (None, None)
    if cost is not None or not (least or most is not None):
        return "cost unknown" if cost is None else format_usd(cost)
    return format_usd(least or 0.0, 1, None if most is None else most - (least or 0.0))


_ESCAPED = (*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0), *range(0x202A, 0x202F))
"""The control characters, which begin every command to a terminal, and the marks that reverse what follows.

The isolating marks of right-to-left scripts end with their line, so they stay.
"""

_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _ESCAPED} | {0x0D: ""}
"""A carriage return would let a text cover what stands before it."""


def escape_controls(text: str) -> str:
    r"""A text with escapes in the place of control characters. Line breaks and tabs stay.

    >>> escape_controls("copied\x1b]52;c;aGk=\x07 \u202eback\r\n")
    'copied\\x1b]52;c;aGk=\\x07 \\u202eback\n'
    """
    return text.translate(_ESCAPES)
