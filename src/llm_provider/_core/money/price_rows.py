"""The rows of a prices file (docs/prices.md): their columns, the checks of a line, and what a row bills."""

from __future__ import annotations

import functools
import operator
import os
import re
import time
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..runtime import clock
from ..runtime.exact_decimal import exact, plain, total
from ..runtime.files import read_text
from ..runtime.warning import warn_user
from ..types.usage import COUNTS, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from decimal import Decimal

WINDOW_SHARES = {"background-2h": "0.7", "background-8h": "0.6"}
"""OpenAI's completion windows for background jobs, as shares of the standard prices of tokens; from
developers.openai.com/api/docs/guides/background. They count for models without rows for the windows."""

VARIANTS = frozenset(
    {"batch", "fast", "flex", "off_peak", "priority", "standard", "ultrafast", *WINDOW_SHARES}
)
"""The service levels of rows. Each has prices of its own, and none replaces another."""

AT_MOST = "_at_most"
"""Ends the variant of rows with the higher figures of sources that disagree, such as `standard_at_most`. Only
the worst case of a budget has them, beside the rows of the same variant and `effective_from`."""

CLOUDS = frozenset({"azure", "azure_ai", "bedrock", "bedrock_mantle", "vertex_ai"})
"""The clouds, as litellm prefixes their models. Their rows have names with a region: `clouds/price_names`."""

Line: TypeAlias = "tuple[str, Sequence[str]]"
"""The file and line of a row, for messages, and its cells in the order of `COLUMNS`."""


class PriceRow(NamedTuple):
    """One row of the table; a price is None where the cell is blank.

    Prices are in USD per million tokens, `web_search` and `request` in USD per thousand.
    `cache_storage` is the rent of a million tokens for an hour.
    `min_input_tokens` is the smallest prompt, cached tokens included, to which the row applies.
    `effective_from` and `as_of` are ISO dates. With an empty `effective_from` the row applies from the
    beginning, as its first day is not known. `source` names the source of the figures on the day `as_of`.
    """

    provider: str
    model: str
    variant: str
    min_input_tokens: int
    input: Decimal | None
    cache_read: Decimal | None
    cache_write: Decimal | None
    cache_write_1h: Decimal | None
    cache_write_12h: Decimal | None
    cache_storage: Decimal | None
    output: Decimal | None
    output_reasoning: Decimal | None
    input_audio: Decimal | None
    cache_read_audio: Decimal | None
    output_audio: Decimal | None
    input_image: Decimal | None
    output_image: Decimal | None
    web_search: Decimal | None
    request: Decimal | None
    effective_from: str
    source: str
    as_of: str

    def __hash__(self) -> int:
        # Not of the prices: the hashes of decimals take longer than a bill.
        return hash(self[:4])


COLUMNS = PriceRow._fields
"""The header of a prices file."""

PRICE_COLUMNS = COLUMNS[COLUMNS.index("input") : COLUMNS.index("effective_from")]
"""The columns that hold prices."""

PART_OF = {
    "output_reasoning": ("output", "reasoning_output_tokens"),
    "output_audio": ("output", "audio_output_tokens"),
    "output_image": ("output", "image_output_tokens"),
    "input_audio": ("input", "audio_input_tokens"),
    "input_image": ("input", "image_input_tokens"),
    "cache_read_audio": ("cache_read", "cache_read_audio_input_tokens"),
}
"""Columns that are billed at the price of another column where they have no price of their own, and the count
of a usage that each bills."""

_REQUIRED = frozenset({"provider", "model", "input"})
_DEFAULTS = {"variant": "standard", "min_input_tokens": "0", "source": "override"}

_PROVIDER = re.compile(r"[a-z][a-z0-9_-]*")
# The first character also keeps a spreadsheet from taking a cell for a formula.
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]*|\*")
_WHOLE_NUMBER = re.compile(r"0|[1-9][0-9]{0,11}")
# With so few digits every sum of products is exact.
_PRICE = re.compile(r"(?:0|[1-9][0-9]{0,5})(?:\.[0-9]{1,18})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


class PriceWarning(UserWarning):
    """A row of a prices file was skipped, or something was used that has no known price."""


class PriceFile:
    """The lines of a prices file, which are parsed when they are needed.

    A file is UTF-8 with one row per line below a header. The header names the columns in any order. All but
    `provider`, `model` and `input` may be missing: the variant is then "standard", `min_input_tokens` 0,
    `source` "override", `as_of` today, and every price blank. `ValueError` if the header is wrong. A `text`
    replaces what the file has.
    """

    def __init__(self, path: str | os.PathLike[str], text: str | None = None) -> None:
        self._name = os.path.basename(path)
        # Spreadsheets write a BOM. Undecodable bytes invalidate only their own row.
        self._lines = (read_text(path, errors="replace") if text is None else text).split("\n")
        header = self._lines[0].split(",")
        if len(set(header)) < len(header) or not _REQUIRED <= set(header) <= set(COLUMNS):
            raise ValueError(
                f"{self._name}: the first line must name provider, model and input, and may name the other "
                f"columns of {','.join(COLUMNS)}"
            )
        self._order = header
        self._defaults = _defaults()

    def by_model(self) -> dict[tuple[str, str], list[int]]:
        """The numbers of the lines of each model, for a file with its columns in the order of `COLUMNS`."""
        numbers: dict[tuple[str, str], list[int]] = {}
        for number, line in enumerate(self._lines):
            provider, comma, rest = line.partition(",")
            if number and comma:
                numbers.setdefault((provider, rest.partition(",")[0]), []).append(number)
        return numbers

    def newest_day(self) -> str:
        """The last day on which a figure was read, of a file with its columns in the order of `COLUMNS`."""
        return max(line.rstrip()[-10:] for line in self._lines[1:])

    def lines(self, numbers: Iterable[int] | None = None) -> Iterator[Line]:
        """The cells of some lines, by default of all. Lines with too few or too many cells are skipped."""
        for number in range(1, len(self._lines)) if numbers is None else numbers:
            line = self._lines[number]
            if not line.strip():
                continue
            where = f"{self._name} line {number + 1}"
            cells = _cells(line)
            if len(cells) != len(self._order):
                _skip(where, f"{len(cells)} cells instead of {len(self._order)}")
            else:
                by_column = dict(zip(self._order, cells, strict=True))
                yield where, [by_column.get(column, self._defaults.get(column, "")) for column in COLUMNS]


def mapping_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[Line]:
    """The cells of rows given as mappings from column to value. Rows with an unknown column are skipped."""
    defaults = _defaults()
    for number, row in enumerate(rows, start=1):
        where = f"override {number}"
        unknown = [str(column) for column in row if column not in COLUMNS]
        if unknown:
            _skip(where, f"no column named {', '.join(unknown)}")
        else:
            yield where, [_text(row.get(column, defaults.get(column))) for column in COLUMNS]


def check(lines: Iterable[Line]) -> list[PriceRow]:
    """The valid rows. Each invalid row is skipped with a `PriceWarning` that names its line and the reason.

    A cell may be missing or malformed, a number negative or infinite, or a row be there twice.
    """
    rows: list[PriceRow] = []
    seen: dict[tuple[str, str, str, int, str], str] = {}
    for where, cells in lines:
        try:
            row = check_row(cells)
        except ValueError as error:
            _skip(where, str(error))
            continue
        first = seen.setdefault((*row[:4], row.effective_from), where)
        if first is not where:
            _skip(where, f"the same row as {first}")
            continue
        rows.append(row)
    return rows


# Most cells repeat from row to row. Checking each text once halves the time of reading a file.
@functools.lru_cache(maxsize=4096)
def is_date(text: str) -> bool:
    """Whether a text is a date like 2026-11-20."""
    from datetime import date

    # `fromisoformat` by itself would also accept week dates and dates without hyphens.
    try:
        return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _defaults() -> dict[str, str]:
    return {**_DEFAULTS, "as_of": time.strftime("%Y-%m-%d", time.gmtime(clock.time()))}


def _cells(line: str) -> Sequence[str]:
    if '"' not in line:
        return line.split(",")
    import csv

    # Each line by itself, so that a stray quote does not swallow the rows below it.
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _text(value: object) -> str:
    from decimal import Decimal

    if value is None:
        return ""
    if isinstance(value, float):
        value = Decimal(repr(value))
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def check_row(cells: Sequence[str]) -> PriceRow:
    """Check one row; raises ValueError with the reason."""
    provider, model, variant, minimum, *amounts, effective_from, source, as_of = cells
    if _PROVIDER.fullmatch(provider) is None:
        raise ValueError(f"provider {provider!r} is not a provider's name")
    if _MODEL.fullmatch(model) is None:
        raise ValueError(f"model {model!r} is not a model's name")
    if variant.removesuffix(AT_MOST) not in VARIANTS:
        raise ValueError(f"variant {variant!r} is none of {', '.join(sorted(VARIANTS))}")
    if _WHOLE_NUMBER.fullmatch(minimum) is None:
        raise ValueError(f"min_input_tokens {minimum!r} is not a whole number of tokens")
    prices = []
    for column, amount in zip(PRICE_COLUMNS, amounts, strict=True):
        try:
            prices.append(_amount(amount))
        except ValueError as error:
            raise ValueError(f"{column} {error}") from None
    for column, day in (("effective_from", effective_from), ("as_of", as_of)):
        if (day or column == "as_of") and not is_date(day):
            raise ValueError(f"{column} {day!r} is not a date like 2026-11-20")
    if not source.strip():
        raise ValueError("source is missing")
    return PriceRow._make((provider, model, variant, int(minimum), *prices, effective_from, source, as_of))


@functools.lru_cache(maxsize=4096)
def _amount(text: str) -> Decimal | None:
    from decimal import Decimal

    if text and _PRICE.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a plain decimal of 0 or more, in USD")
    return Decimal(text) if text else None


def _skip(where: str, reason: str) -> None:
    warn_user(PriceWarning(f"{where} is skipped: {reason}"))


# What a row bills. Each count of a usage has its price, so a bill is a sum of products of whole numbers.

get_counts: Callable[[Usage], tuple[int, ...]] = operator.attrgetter(*COUNTS)
"""The counts of a usage, in the order of `COUNTS`."""

_PLAIN = {"input_tokens": "input", "output_tokens": "output", "cache_read_input_tokens": "cache_read"}
"""The counts that most usages have, and their columns."""


def bill(row: PriceRow, usage: Usage, requests: int = 1) -> Decimal | str:
    """The exact USD of some requests with this usage; where they are not known, the reason."""
    (each, exponent, special), used = _rates_of(row), get_counts(usage)
    if (
        any(compress(used, special))
        or not 0 <= usage.cache_read_input_tokens <= usage.input_tokens
        or usage.output_tokens < 0
    ) and (problem := _find_problem(row, usage)):
        return problem
    return plain(exact().scaleb(sum(map(operator.mul, each, (*used, requests))), exponent))


@functools.lru_cache(maxsize=1024)
def _rates_of(row: PriceRow) -> tuple[tuple[int, ...], int, tuple[bool, ...]]:
    """What one more of each count, and of the requests, costs as a whole number, with their exponent of USD.

    Last, which counts few usages have, or have no price: what they bill is looked at.
    """
    # Prices of tokens are USD per million; fees are USD per thousand.
    prices = {
        name: exact().scaleb(getattr(row, name) or 0, 3 * (name in ("web_search", "request")))
        for name in PRICE_COLUMNS
    }
    of_one = [_split_usage(row, Usage(**{name: 1})) for name in COUNTS] + [{"request": 1}]
    usd = [total(exact().multiply(prices[name], n) for name, n in counts.items()) for counts in of_one]
    decimals = max(0, *(-int(amount.as_tuple().exponent) for amount in usd))
    special = (
        name == "unpriced_tools"
        or (getattr(row, _PLAIN[name]) is None if name in _PLAIN else any(billed.values()))
        for name, billed in zip(COUNTS, of_one, strict=False)
    )
    each = (int(exact().scaleb(amount, decimals)) for amount in usd)
    return tuple(each), -decimals - 6, tuple(special)


def _find_problem(row: PriceRow, usage: Usage) -> str | None:
    """Why a row does not tell what a usage costs; None if it does."""
    if usage.unpriced_tools:
        return "no price for tools or other parts that are billed by themselves"
    for column, count in _split_usage(row, usage).items():
        if count < 0:
            return f"contradictory token counts ({column})"
        if count and getattr(row, column) is None:
            return f"no price for {column}{'' if column == 'web_search' else ' tokens'}"
    return None


def _split_usage(row: PriceRow, usage: Usage) -> dict[str, int]:
    """The count that each price column bills. The token counts add up to the inclusive totals."""
    read, written = usage.cache_read_input_tokens, usage.cache_write_input_tokens
    hour, half_day = usage.cache_write_1h_input_tokens, usage.cache_write_12h_input_tokens
    billed = {
        "input": usage.input_tokens - read - written,
        "cache_read": read,
        "cache_write": written - hour - half_day,
        "cache_write_1h": hour,
        "cache_write_12h": half_day,
        "output": usage.output_tokens,
        "web_search": usage.web_searches,
    }
    for part, (whole, name) in PART_OF.items():
        if getattr(row, part) is None:
            continue
        count = getattr(usage, name)
        if part == "input_audio":
            # The usage includes audio that was read from the cache, which is a part of `cache_read`.
            count -= usage.cache_read_audio_input_tokens
        billed[part] = count
        billed[whole] -= count
    return billed
