"""What users are told of a model without a price: one warning, and how to renew an old table."""

from __future__ import annotations

import time
from collections.abc import Callable

from .. import doors
from ..runtime import clock
from ..runtime.warning import warn_user
from .price_rows import PriceWarning
from .pricing import NO_PRICE, default_prices_path, index_package_file

_OLD_DAYS = 30
"""After which a table may lack a model that people call."""

_warned: set[str] = set()
"""The reasons that were warned of in this process. Python's own register forgets, as libraries reset it."""


def warn_of_unknown_cost(reason: str, suggest: Callable[[], str] = str) -> None:
    """Warn, once for each reason and process. `suggest` names models that the user may have meant."""
    if reason not in _warned:
        _warned.add(reason)
        advice = (suggest() or advise_update()) if reason.endswith(NO_PRICE) else ""
        warn_user(PriceWarning(f"{reason}; the cost is unknown{advice}"))


def advise_update(now: float | None = None) -> str:
    """What to do about a model without a price if the table is old at a time; empty if it is not.

    >>> advise_update(now=4e9).partition(",")[2]
    ' and may lack it: `llm-provider prices update` renews it, and prices="fresh" uses that'
    """
    newest = index_package_file(default_prices_path())[0].newest_day()
    border = time.gmtime((clock.time() if now is None else now) - _OLD_DAYS * 86_400)
    if newest >= time.strftime("%Y-%m-%d", border) or doors.fresh_prices.find_table() is not None:
        return ""
    return (
        f"; the table is of {newest}, and may lack it: `llm-provider prices update` renews it, and "
        'prices="fresh" uses that'
    )
