"""Times of day and durations in words."""

from __future__ import annotations

import time


def clock_time(ago: float) -> str:
    """The local time so many seconds ago, as "14:02:07"."""
    return time.strftime("%H:%M:%S", time.localtime(time.time() - ago))


def duration(seconds: float) -> str:
    """A duration in words.

    >>> duration(0.52), duration(75), duration(3725)
    ('0.5 s', '1 min 15 s', '1 h 2 min')
    """
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"
