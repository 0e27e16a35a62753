"""The days after which providers plan to serve models no more, by `retirements.csv`, and one warning each.

The file is made of what the anthropic SDK and litellm's price map say. A list of the provider is newer.
"""

import contextlib
import csv
import functools
import io
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ..._core.journey.recorder import RETIRING
from ..._core.requests.routing import Target
from ..._core.runtime import clock
from ..._core.runtime.files import read_text
from ..._core.runtime.warning import warn_user

_SOON_DAYS = 180
"""Days before its retirement from which a model that no list has told of is warned about."""


@functools.cache
def read_days() -> Mapping[tuple[str, str], str]:
    """Provider and model → the day (ISO) of its retirement, which may be past."""
    rows = csv.DictReader(io.StringIO(read_text(Path(__file__).with_suffix(".csv"))))
    return {(row["provider"], row["model"]): row["retires_at"] for row in rows}


@functools.cache
def _retiring_soon() -> dict[tuple[str, str], str]:
    """The days of the file that are near. A model that still answers after its day needs no warning."""
    now = datetime.fromtimestamp(clock.time(), UTC)
    first, last = now.date().isoformat(), (now + timedelta(_SOON_DAYS)).date().isoformat()
    return {model: day for model, day in read_days().items() if first <= day <= last}


def warn_of_retirement(target: Target, names: Iterable[str | None]) -> None:
    """Warn once in a run of a model by its `names`: the day of a list, or at its own server of the file."""
    # The warning of a model takes its day out.
    sources = (RETIRING,) if target.custom_base_url else (RETIRING, _retiring_soon())
    known = [name for name in names if name]
    days = [days.pop((target.provider, name), None) for days in sources for name in known]
    day = next(filter(None, days), None)
    if day is not None:
        # If the user turns warnings into errors, the answer must not be lost: it is paid for.
        with contextlib.suppress(UserWarning):
            remedy = f"models({target.provider!r}, live=True) lists others"
            warn_user(f"{target.provider}/{known[0]} retires on {day}: {remedy}")
