"""Money, durations and times of day as people read them, and switches as they write them."""

import math
import time
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


def format_usd(amount: float | Decimal | None, unknown: int = 0) -> str:
    """Format a sum of USD with four digits, and with at least two decimal places.

    `unknown` costs are not in the sum. The amount is None if it is not known at all.

    >>> format_usd(1234.5), format_usd(0.0205), format_usd(0.000174), format_usd(0)
    ('$1,234.50', '$0.0205', '$0.000174', '$0.00')
    >>> format_usd(0.5, 2), format_usd(0.0, 3), format_usd(None)
    ('≥ $0.50, 2 unknown', '3 unknown', 'unknown')
    """
    if amount is None:
        return "unknown"
    if unknown:
        return f"≥ {format_usd(amount)}, {unknown:,} unknown" if amount else f"{unknown:,} unknown"
    decimals = max(2, 3 - math.floor(math.log10(abs(float(amount))))) if amount else 2
    whole, _, digits = f"{amount:,.{decimals}f}".partition(".")
    return f"${whole}.{digits.rstrip('0'):0<2}"
