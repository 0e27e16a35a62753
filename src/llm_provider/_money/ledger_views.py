"""A ledger's rows as text, HTML, data frames and JSON lines. Imported when the first of these is made."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from .. import _html
from .._words import format_usd

if TYPE_CHECKING:
    from .ledger_rows import LedgerRow


def _format_unknown(row: LedgerRow) -> str:
    if not row.unknown:
        return ""
    bound = "" if row.unknown_at_most is None else f" (≤ {format_usd(row.unknown_at_most)})"
    return f"{row.unknown:,}{bound}"


def _plain(text: str) -> str:
    # A server chooses the name of the model, and a terminal would execute escape sequences in it.
    return "".join(character if character.isprintable() else "?" for character in text)


_WORDS: dict[str, Callable[[LedgerRow], str]] = {
    "provider": lambda row: row.provider,
    "model": lambda row: _plain(row.model),
    "served": lambda row: _plain(row.served) if row.served != row.model else "",
    "tag": lambda row: _plain(row.tag),
    "delivery": lambda row: row.delivery if row.delivery != "live" else "",
}
_FIGURES: dict[str, Callable[[LedgerRow], str]] = {
    "requests": lambda row: f"{row.requests:,}",
    "hits": lambda row: f"{row.hits:,}" if row.hits else "",
    "failed": lambda row: f"{row.failed:,}" if row.failed else "",
    "input": lambda row: f"{row.usage.input_tokens:,}",
    "cached": lambda row: f"{read:,}" if (read := row.usage.cache_read_input_tokens) else "",
    "output": lambda row: f"{row.usage.output_tokens:,}",
    "spent $": lambda row: f"{row.spent:,.6f}",
    "wasted $": lambda row: f"{row.wasted:,.6f}" if row.wasted else "",
    "saved $": lambda row: f"{row.saved:,.6f}" if row.saved else "",
    "unknown": _format_unknown,
}


def _cells(rows: list[LedgerRow], total: LedgerRow) -> dict[str, list[str]]:
    """The columns of the table, without empty ones. The last cell of each belongs to the total."""
    words = {title: [cell(row) for row in rows] for title, cell in _WORDS.items()}
    words = {title: [*cells, ""] for title, cells in words.items() if any(cells)} or {"provider": [""]}
    next(iter(words.values()))[-1] = "total"
    figures = {title: [cell(row) for row in (*rows, total)] for title, cell in _FIGURES.items()}
    return words | {title: cells for title, cells in figures.items() if any(cells)}


def format_text(rows: list[LedgerRow], total: LedgerRow) -> str:
    """The rows and their total as a table for a terminal."""
    columns = []
    for title, cells in _cells(rows, total).items():
        width = max(map(len, (title, *cells)))
        columns.append([f"{cell:{'<' if title in _WORDS else '>'}{width}}" for cell in (title, *cells)])
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def format_html(rows: list[LedgerRow], total: LedgerRow) -> str:
    """The first rows and the total of all as an HTML table for a notebook."""
    cells = _cells(rows, total)
    left_out = max(0, len(rows) - _html.ROWS)
    lines = [
        [
            _html.words(cell) if title in _WORDS else _html.figure(cell)
            for title, cell in zip(cells, line, strict=True)
        ]
        for line in zip(*cells.values(), strict=True)
    ]
    return _html.table(list(cells), [*lines[: _html.ROWS][: len(rows)], lines[-1]], left_out=left_out)


def make_columns(rows: list[LedgerRow], total: LedgerRow) -> dict[str, list[Any]]:
    """The columns of a data frame, with USD as floats; an unknown bound is NaN."""
    # The total names the columns even if there are no rows.
    columns = {name: [row.as_dict()[name] for row in rows] for name in total.as_dict()}
    for name in total.dollars():
        columns[name] = [math.nan if amount is None else float(amount) for amount in columns[name]]
    return columns


def write_jsonl(rows: list[LedgerRow], path: str | os.PathLike[str]) -> None:
    """Write the rows as JSON lines, with amounts as text."""
    # JSON has a form for all other values. `str` would write 0.00000006 as 6E-8.
    write = functools.partial(orjson.dumps, default="{:f}".format, option=orjson.OPT_APPEND_NEWLINE)
    Path(path).write_bytes(b"".join(write(row.as_dict()) for row in rows))
