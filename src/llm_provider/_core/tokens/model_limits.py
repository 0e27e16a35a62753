"""The largest input and output of each model, from `model_limits.csv`, when the first is looked up."""

import functools
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from .. import doors
from ..money.price_rows import CLOUDS, PriceWarning, is_date
from ..money.pricing import find_table, list_keys
from ..requests.routing import Target, maker_names
from ..runtime.files import read_text
from ..runtime.warning import warn_user

FILE_NAME = "model_limits.csv"

_TOKENS = re.compile(r"[1-9][0-9]{0,8}")


class ModelLimits(NamedTuple):
    """One row of the file, in tokens; None where no source gives a number.

    `context_window` is the size of a request together with its answer, or only of the request if the
    provider counts the two separately. `max_output_tokens` is the longest answer, reasoning included.
    """

    provider: str
    model: str
    context_window: int | None
    max_output_tokens: int | None
    source: str
    as_of: str


COLUMNS = ModelLimits._fields
"""The header of the file."""


def limits_of(provider: str, model: str) -> ModelLimits | None:
    """The limits of a model, matched as by `PriceTable.find`, without a region; else None."""
    if provider in CLOUDS:
        model = doors.cloud_price_names.drop_region(provider, model)
    rows = _load()
    return next((rows[key] for key in list_keys(provider, model) if key in rows), None)


def limits_of_target(target: Target) -> ModelLimits | None:
    """The limits of a target's model: its host's own, else the file's."""
    provider, model = maker_names(target)
    host = target.route.host
    if host is None:
        return limits_of(provider, model)
    known = host.find_limits(model).get
    return ModelLimits(provider, model, known("context_window"), known("max_output_tokens"), "host", "")


def read(path: str | os.PathLike[str]) -> dict[tuple[str, str], ModelLimits]:
    """The valid rows of a file; `ValueError` without `COLUMNS`, and a `PriceWarning` for a bad row."""
    name = os.path.basename(path)
    header, *lines = read_text(path, errors="replace").split("\n")
    if header != ",".join(COLUMNS):
        raise ValueError(f"{name}: the first line must be {','.join(COLUMNS)}")
    rows: dict[tuple[str, str], ModelLimits] = {}
    for number, line in enumerate(lines, start=2):
        if not line.strip():
            continue
        try:
            row = _row(line.split(","), rows)
        except ValueError as error:
            warn_user(PriceWarning(f"{name} line {number} is skipped: {error}"))
        else:
            rows[row.provider, row.model] = row
    return rows


@functools.cache
def _load() -> Mapping[tuple[str, str], ModelLimits]:
    return read(find_table(FILE_NAME))


def _row(cells: list[str], before: Mapping[tuple[str, str], ModelLimits]) -> ModelLimits:
    """Parse one row; `ValueError` with the reason if it is not valid."""
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{len(cells)} cells instead of {len(COLUMNS)}")
    provider, model, window, longest, source, as_of = cells
    if not provider or not model or not source:
        raise ValueError("provider, model or source is missing")
    if not is_date(as_of):
        raise ValueError(f"as_of {as_of!r} is not a date like 2026-11-20")
    if (provider, model) in before:
        raise ValueError("an earlier row has the same model")
    return ModelLimits(provider, model, _tokens(window), _tokens(longest), source, as_of)


def _tokens(cell: str) -> int | None:
    if cell and _TOKENS.fullmatch(cell) is None:
        raise ValueError(f"{cell!r} is not a number of tokens")
    return int(cell) if cell else None
