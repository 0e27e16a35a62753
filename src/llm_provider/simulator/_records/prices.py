"""The price list of the simulated providers."""

from __future__ import annotations

import csv
import functools
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..formats.wire_format import Usage

__all__ = ["PriceList", "list_priced_providers"]

TOKENS_PER_PRICE = Decimal(1_000_000)


# In an installed wheel the file lies inside the package, in a source checkout at the root of the repository.
_PACKAGE = Path(__file__).parents[2]
_FILES = (_PACKAGE / "prices.csv", _PACKAGE.parents[1] / "prices.csv")

SHIPPED = "shipped"
"""The setting ``prices`` for the ``prices.csv`` that comes with the library."""


@functools.cache
def list_priced_providers() -> tuple[str, ...]:
    """The providers in the ``prices.csv`` that comes with the library; none if there is no such file.

    >>> {"openai", "groq"} <= set(list_priced_providers())
    True
    """
    if not (path := _find_shipped()).is_file():
        return ()
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(sorted({line["provider"] for line in csv.DictReader(file)}))


def _find_shipped() -> Path:
    return next((path for path in _FILES if path.is_file()), _FILES[0])


class _Row(NamedTuple):
    effective_from: str
    min_input_tokens: int
    prices: dict[str, Decimal]


class PriceList:
    """Standard and batch prices read from a CSV file, independently of the library's own price table.

    The columns used are provider, model, variant (``standard`` and ``batch``), min_input_tokens, input,
    cache_read, cache_write, output (USD per million tokens), web_search (USD per thousand) and
    effective_from (ISO date; empty: always in force). The row with the greatest ``min_input_tokens`` not
    above a request's input tokens applies to all its tokens. A cost that the reply reports is the bill.
    """

    def __init__(self, path: str | Path, today: str | None = None) -> None:
        today = today or datetime.now(UTC).date().isoformat()
        self._rows: dict[tuple[str, str, str], list[_Row]] = {}
        file_path = _find_shipped() if path == SHIPPED else Path(path)
        with file_path.open(newline="", encoding="utf-8") as file:
            for line in csv.DictReader(file):
                starts = line["effective_from"] or ""
                if line["variant"] not in ("standard", "batch") or starts > today:
                    continue
                classes = ("input", "cache_read", "cache_write", "output", "web_search")
                prices = {name: Decimal(line[name]) for name in classes if line.get(name)}
                row = _Row(starts, int(line["min_input_tokens"] or 0), prices)
                self._rows.setdefault((line["provider"], line["model"], line["variant"]), []).append(row)

    def cost(self, provider: str, model: str, usage: Usage, variant: str = "standard") -> Decimal | None:
        """Exact USD for a usage; None if a class of tokens in it has no price."""
        parts = self.split_cost(provider, model, usage, variant)
        return None if parts is None else sum(parts.values(), Decimal(0))

    def split_cost(
        self, provider: str, model: str, usage: Usage, variant: str = "standard"
    ) -> dict[str, Decimal] | None:
        """The cost by class of tokens."""
        if usage.cost is not None:
            return {"reported": Decimal(str(usage.cost))}
        rows = self._rows.get((provider, model, variant), [])
        newest = max((row.effective_from for row in rows), default="")
        fitting = [
            row for row in rows if row.effective_from == newest and row.min_input_tokens <= usage.input_tokens
        ]
        if not fitting:
            return None
        prices = max(fitting, key=lambda row: row.min_input_tokens).prices
        cached, written = usage.cache_read_input_tokens, usage.cache_write_input_tokens
        parts: dict[str, Decimal] = {}
        for name, tokens in (
            ("input", usage.input_tokens - cached - written),
            ("cache_read", cached),
            ("cache_write", written),
            ("output", usage.output_tokens),
            ("web_search", 1000 * _count_billed_searches(provider, model, usage)),
        ):
            if tokens and name not in prices:
                return None
            times = Decimal("1.1") if usage.geo == "us" and name != "web_search" else 1
            parts[name] = times * tokens * prices.get(name, Decimal(0)) / TOKENS_PER_PRICE
        return parts


def _count_billed_searches(provider: str, model: str, usage: Usage) -> int:
    """Gemini 2 is billed by the prompt that was grounded, and a search model of OpenAI by the request."""
    if provider == "gemini" and model.startswith(("gemini-1", "gemini-2")):
        return min(1, usage.web_searches)
    if provider == "openai" and ("-search-preview" in model or "-search-api" in model):
        return 1
    return usage.web_searches
