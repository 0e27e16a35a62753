"""What a call costs: `prices.csv` and a `Usage` give exact USD, or None where a price is not known.

Importing this module reads no file; `PriceTable.load` does. The layout of the file, where its figures
come from and what it cannot express are described in docs/prices.md.
"""

from __future__ import annotations

import os
import re
import threading
import time
import warnings
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import date
    from decimal import Decimal

    from ._types import Usage

__all__ = ["COLUMNS", "VARIANTS", "PriceRow", "PriceTable", "PriceWarning", "default_prices_path"]

Overrides: TypeAlias = "str | os.PathLike[str] | Iterable[Mapping[str, object]]"
"""A prices file, or rows as mappings from column name to value."""

VARIANTS = frozenset({"batch", "fast", "flex", "off_peak", "priority", "standard", "ultrafast"})
"""The service levels a row can be for; each has prices of its own and none stands in for another."""


class PriceRow(NamedTuple):
    """One row of the table. Prices are USD per million tokens, None where not known.

    `min_input_tokens` is the smallest prompt (cached tokens included) the row applies to.
    `effective_from` and `as_of` are ISO dates; an empty `effective_from` means no start is known and the
    row holds from the beginning. `source` says where the figures were read, on the day `as_of`.
    """

    provider: str
    model: str
    variant: str
    min_input_tokens: int
    input: Decimal | None
    cache_read: Decimal | None
    cache_write: Decimal | None
    cache_write_1h: Decimal | None
    output: Decimal | None
    effective_from: str
    source: str
    as_of: str


COLUMNS = PriceRow._fields
"""The header of a prices file; every file holds exactly these columns."""

_PRICE_COLUMNS = ("input", "cache_read", "cache_write", "cache_write_1h", "output")

_OVERRIDE_DEFAULTS = {"variant": "standard", "min_input_tokens": "0", "source": "override"}

_PROVIDER = re.compile(r"[a-z][a-z0-9_]*")
# The first character also keeps a spreadsheet from taking a cell for a formula.
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*")
_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]{0,11}")
# Bounded digits keep every product exact within _PRECISION.
_PRICE = re.compile(r"(?:0|[1-9][0-9]{0,5})(?:\.[0-9]{1,12})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_SNAPSHOT_DATE = re.compile(r"(.+?)(?:-([0-9]{4})-([0-9]{2})-([0-9]{2})|[-@]([0-9]{4})([0-9]{2})([0-9]{2}))")

_PRECISION = 100

# Long spellings that reach the same model as the name in the table.
_MODEL_PATHS = {
    "fireworks_ai": ("accounts/fireworks/models/", "accounts/fireworks/routers/"),
    "gemini": ("models/",),
}


class PriceWarning(UserWarning):
    """A row of a prices file was skipped, or tokens were used for which no price is known."""


def default_prices_path() -> str:
    """Path of the `prices.csv` that belongs to this package.

    In an installed wheel it lies inside the package, in a source checkout at the root of the repository.

    Raises:
        FileNotFoundError: it is in neither place; the installation is incomplete.

    >>> os.path.basename(default_prices_path())
    'prices.csv'
    """
    package = os.path.dirname(os.path.abspath(__file__))
    places = [os.path.join(package, "prices.csv")]
    source = os.path.dirname(package)
    if os.path.basename(source) == "src":
        places.append(os.path.join(os.path.dirname(source), "prices.csv"))
    for place in places:
        if os.path.isfile(place):
            return place
    raise FileNotFoundError(f"llm_provider's prices.csv is missing; looked for {' and '.join(places)}")


class PriceTable:
    """Prices by provider, model, service level, prompt size and date. Safe to share between threads.

    >>> from llm_provider._types import Usage
    >>> table = PriceTable.load(overrides=[
    ...     {"provider": "local", "model": "tiny", "input": "0.50", "cache_read": "0.05", "output": 2},
    ... ])
    >>> usage = Usage(input_tokens=1_000_000, cache_read_input_tokens=400_000, output_tokens=100_000)
    >>> table.cost("local", "tiny", usage)
    Decimal('0.52')
    >>> table.cost("local", "unheard-of", usage) is None
    True
    """

    __slots__ = ("_lock", "_models", "_rows", "_warned")

    def __init__(self, rows: Iterable[PriceRow]) -> None:
        self._rows: dict[tuple[str, str, str], list[PriceRow]] = {}
        for row in rows:
            self._rows.setdefault((row.provider, row.model, row.variant), []).append(row)
        self._models = {(provider, model) for provider, model, _ in self._rows}
        self._warned: set[tuple[str, str, str]] = set()
        self._lock = threading.Lock()

    @classmethod
    def load(
        cls, path: str | os.PathLike[str] | None = None, overrides: Overrides | None = None
    ) -> PriceTable:
        """Read a prices file, by default the one that comes with the package (`default_prices_path`).

        Args:
            path: a file with exactly the columns `COLUMNS`, in any order, UTF-8, one row per line.
            overrides: a second such file, or rows as mappings from column name to `str`, `int`, `float`,
                `Decimal`, `date` or None. In a mapping `variant` is "standard", `min_input_tokens` 0,
                `source` "override" and `as_of` today unless given, every other absent column blank.
                Where overrides hold a provider, model and variant, their rows replace all rows the
                file has for it.

        A bad row (wrong number of cells, a missing or malformed cell, a negative or not finite number, a
        key seen before) is skipped with one `PriceWarning` that names the line and the reason.

        Raises:
            OSError: a file cannot be read.
            ValueError: the first line of a file is not the header.

        >>> len(PriceTable.load()) > 500
        True
        """
        rows = _checked(_file_lines(path if path is not None else default_prices_path()))
        if overrides is None:
            return cls(rows)
        if isinstance(overrides, (str, os.PathLike)):
            replacing = _checked(_file_lines(overrides))
        else:
            replacing = _checked(_mapping_lines(overrides))
        replaced = {(row.provider, row.model, row.variant) for row in replacing}
        kept = [row for row in rows if (row.provider, row.model, row.variant) not in replaced]
        return cls([*kept, *replacing])

    def __len__(self) -> int:
        """The number of rows."""
        return sum(map(len, self._rows.values()))

    def __iter__(self) -> Iterator[PriceRow]:
        """All rows, those of one provider, model and variant together."""
        for rows in self._rows.values():
            yield from rows

    def find(
        self,
        provider: str,
        model: str,
        *,
        variant: str = "standard",
        input_tokens: int = 0,
        at: date | None = None,
    ) -> PriceRow | None:
        """The row by which a call with `input_tokens` prompt tokens pays on the UTC day `at`, default today.

        Of the price lists of that provider, model and variant the last one in effect on the day applies,
        and of its rows the one with the greatest `min_input_tokens` the prompt reaches, for all tokens.
        A name without rows of its own is looked up, in this order, without the provider's resource path
        (`accounts/fireworks/models/`, `models/`) and without one date at its end (`-2026-10-21`,
        `-20261021`, `@20261021`); nothing else is ever taken off a name.

        Returns None where the table has no such row.

        >>> table = PriceTable.load()
        >>> table.find("openai", "gpt-6.1-sol", input_tokens=300_000).input
        Decimal('4')
        >>> table.find("openai", "gpt-6.1-sol-2026-10-21").model
        'gpt-6.1-sol'
        >>> table.find("openai", "gpt-6.1-sol-unknown") is None
        True
        """
        known = next((name for name in _spellings(provider, model) if (provider, name) in self._models), None)
        if known is None:
            return None
        rows = self._rows.get((provider, known, variant), [])
        # A datetime is a date too, hence the cut.
        day = at.isoformat()[:10] if at is not None else time.strftime("%Y-%m-%d", time.gmtime())
        start = max((row.effective_from for row in rows if row.effective_from <= day), default=None)
        reached = [
            row for row in rows if row.effective_from == start and row.min_input_tokens <= input_tokens
        ]
        return max(reached, key=lambda row: row.min_input_tokens, default=None)

    def cost(
        self,
        provider: str,
        model: str,
        usage: Usage,
        *,
        variant: str = "standard",
        at: date | None = None,
    ) -> Decimal | None:
        """USD for the tokens of one call, exact; None where it is not known, never 0 in its place.

        `usage` is inclusive, so each token is billed in one class only: input less what was read from and
        written to the cache, cache reads, cache writes, cache writes kept for an hour, output (reasoning
        is part of it). `variant` is one of `VARIANTS`, `at` the day of the call (default: today, UTC).

        None for a model, variant or day without a row. None too, with one `PriceWarning` per model and
        class for the life of the table, where tokens were used in a class without a price, or where the
        counts contradict each other.

        >>> from llm_provider._types import Usage
        >>> PriceTable.load().cost("openai", "gpt-6.1-sol", Usage(input_tokens=1000, output_tokens=500))
        Decimal('0.007')
        """
        from decimal import Context, Decimal, localcontext

        row = self.find(provider, model, variant=variant, input_tokens=usage.input_tokens, at=at)
        if row is None:
            return None
        # A context of our own: the caller's may round to a few digits or trap.
        with localcontext(Context(prec=_PRECISION)):
            total = Decimal(0)
            for column, tokens in _billed_once(usage):
                if tokens < 0:
                    self._warn_once(row, column, f"contradictory token counts, {usage}")
                    return None
                if not tokens:
                    continue
                price = getattr(row, column)
                if price is None:
                    self._warn_once(row, column, f"no price for {column} tokens")
                    return None
                total += price * tokens
            dollars = total.scaleb(-6).normalize()
            # `normalize` alone writes ten dollars as 1E+1.
            return dollars.quantize(Decimal(1)) if dollars == dollars.to_integral_value() else dollars

    def _warn_once(self, row: PriceRow, column: str, reason: str) -> None:
        key = (row.provider, row.model, column)
        with self._lock:
            if key in self._warned:
                return
            self._warned.add(key)
        message = f"{row.provider}/{row.model} ({row.variant}): {reason}; the cost is unknown"
        warnings.warn(PriceWarning(message), stacklevel=3)


def _billed_once(usage: Usage) -> tuple[tuple[str, int], ...]:
    """Each price column with the tokens it is paid for; the counts add up to the inclusive totals."""
    read, written = usage.cache_read_input_tokens, usage.cache_write_input_tokens
    hour = usage.cache_write_1h_input_tokens
    return (
        ("input", usage.input_tokens - read - written),
        ("cache_read", read),
        ("cache_write", written - hour),
        ("cache_write_1h", hour),
        ("output", usage.output_tokens),
    )


def _spellings(provider: str, model: str) -> Iterator[str]:
    yield model
    for path in _MODEL_PATHS.get(provider, ()):
        if model.startswith(path):
            model = model.removeprefix(path)
            yield model
    dated = _SNAPSHOT_DATE.fullmatch(model)
    if dated is not None and _is_date("-".join(part for part in dated.groups()[1:] if part)):
        yield dated[1]


def _is_date(text: str) -> bool:
    from datetime import date

    # The pattern first: `fromisoformat` also takes week dates and dates without hyphens.
    if _DATE.fullmatch(text) is None:
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _file_lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Where a row stands, and its cells in the order of `COLUMNS`."""
    name = os.path.basename(path)
    # A BOM is what spreadsheets write; undecodable bytes only spoil the row they are in.
    with open(path, encoding="utf-8-sig", errors="replace") as file:
        header = file.readline().rstrip("\n").split(",")
        if sorted(header) != sorted(COLUMNS):
            raise ValueError(f"{name}: the first line must hold the columns {','.join(COLUMNS)}")
        order = [header.index(column) for column in COLUMNS]
        for number, line in enumerate(file, start=2):
            if not line.strip():
                continue
            where = f"{name} line {number}"
            cells = _cells(line.rstrip("\n"))
            if len(cells) != len(COLUMNS):
                _skip(where, f"{len(cells)} cells instead of {len(COLUMNS)}")
            else:
                yield where, [cells[index] for index in order]


def _cells(line: str) -> Sequence[str]:
    if '"' not in line:
        return line.split(",")
    import csv

    # Line by line, so that a stray quote cannot swallow the rows below it.
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _mapping_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[tuple[str, Sequence[str]]]:
    defaults = {**_OVERRIDE_DEFAULTS, "as_of": time.strftime("%Y-%m-%d", time.gmtime())}
    for number, row in enumerate(rows, start=1):
        where = f"override {number}"
        unknown = [str(column) for column in row if column not in COLUMNS]
        if unknown:
            _skip(where, f"no column named {', '.join(unknown)}")
        else:
            yield where, [_text(row.get(column, defaults.get(column))) for column in COLUMNS]


def _text(value: object) -> str:
    """A cell as it would be written in a file."""
    from decimal import Decimal

    if value is None:
        return ""
    if isinstance(value, float):
        value = Decimal(repr(value))
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _checked(lines: Iterable[tuple[str, Sequence[str]]]) -> list[PriceRow]:
    rows: list[PriceRow] = []
    seen: dict[tuple[str, str, str, int, str], str] = {}
    # The same few cells return in row after row.
    prices: dict[str, Decimal | None] = {"": None}
    dates: dict[str, bool] = {"": False}
    for where, cells in lines:
        try:
            row = _row(cells, prices, dates)
        except ValueError as error:
            _skip(where, str(error))
            continue
        first = seen.setdefault((*row[:4], row.effective_from), where)
        if first is not where:
            _skip(where, f"the same row as {first}")
            continue
        rows.append(row)
    return rows


def _row(cells: Sequence[str], prices: dict[str, Decimal | None], dates: dict[str, bool]) -> PriceRow:
    """Check one row. Raises ValueError with the reason."""
    provider, model, variant, minimum, *amounts, effective_from, source, as_of = cells
    if _PROVIDER.fullmatch(provider) is None:
        raise ValueError(f"provider {provider!r} is not a provider's name")
    if _MODEL.fullmatch(model) is None:
        raise ValueError(f"model {model!r} is not a model's name")
    if variant not in VARIANTS:
        raise ValueError(f"variant {variant!r} is none of {', '.join(sorted(VARIANTS))}")
    if _WHOLE_NUMBER.fullmatch(minimum) is None:
        raise ValueError(f"min_input_tokens {minimum!r} is not a whole number of tokens")
    for column, amount in zip(_PRICE_COLUMNS, amounts, strict=True):
        if amount not in prices:
            prices[amount] = _amount(column, amount)
    for column, day in (("effective_from", effective_from), ("as_of", as_of)):
        if day not in dates:
            dates[day] = _is_date(day)
        if not dates[day] and (day or column == "as_of"):
            raise ValueError(f"{column} {day!r} is not a date like 2026-11-20")
    if not source.strip():
        raise ValueError("source is missing")
    uncached, read, write, write_1h, output = (prices[amount] for amount in amounts)
    return PriceRow(
        provider=provider,
        model=model,
        variant=variant,
        min_input_tokens=int(minimum),
        input=uncached,
        cache_read=read,
        cache_write=write,
        cache_write_1h=write_1h,
        output=output,
        effective_from=effective_from,
        source=source,
        as_of=as_of,
    )


def _amount(column: str, text: str) -> Decimal:
    from decimal import Decimal

    if _PRICE.fullmatch(text) is None:
        raise ValueError(f"{column} {text!r} is not a plain decimal of 0 or more, in USD per million tokens")
    return Decimal(text)


def _skip(where: str, reason: str) -> None:
    warnings.warn(PriceWarning(f"{where} is skipped: {reason}"), stacklevel=2)
