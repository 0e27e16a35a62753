"""A ledger's rows as text, HTML, data frames and JSON lines. Imported when the first of these is made."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ..._core.runtime.files import replace_file
from ..._core.words import format_usd
from . import blocks as html

if TYPE_CHECKING:
    from ..._core.money.totals import LedgerRow


def _format_unknown(row: LedgerRow) -> str:
    if not row.unknown:
        return ""
    bound = "" if row.unknown_at_most is None else f" (at most {format_usd(row.unknown_at_most)})"
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
    "failed requests": lambda row: f"{row.failed:,}" if row.failed else "",
    "input": lambda row: f"{row.usage.input_tokens:,}",
    "cached": lambda row: f"{read:,}" if (read := row.usage.cache_read_input_tokens) else "",
    "output": lambda row: f"{row.usage.output_tokens:,}",
    "spent": lambda row: format_usd(row.spent),
    "wasted": lambda row: format_usd(row.wasted) if row.wasted else "",
    "saved": lambda row: format_usd(row.saved) if row.saved else "",
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
    columns = _cells(rows, total)
    return "\n".join(html.align(list(columns), zip(*columns.values(), strict=True), _WORDS))


def format_html(rows: list[LedgerRow], total: LedgerRow) -> str:
    """The first rows and the total of all as an HTML table for a notebook."""
    cells = _cells(rows, total)
    left_out = max(0, len(rows) - html.ROWS)
    writers = [html.words if title in _WORDS else html.figure for title in cells]
    columns = zip(*cells.values(), strict=True)
    lines = [[write(cell) for write, cell in zip(writers, line, strict=True)] for line in columns]
    return html.table(list(cells), [*lines[: html.ROWS][: len(rows)], lines[-1]], left_out=left_out)


def make_columns(rows: list[LedgerRow], total: LedgerRow) -> dict[str, list[Any]]:
    """The columns of a data frame, with USD as floats; an unknown bound is NaN."""
    # The total names the columns even if there are no rows.
    columns = {name: [row.as_dict()[name] for row in rows] for name in total.as_dict()}
    for name in total.dollars():
        columns[name] = [math.nan if amount is None else float(amount) for amount in columns[name]]
    return columns


def write_jsonl(rows: list[LedgerRow], path: str | os.PathLike[str]) -> None:
    # JSON has a form for all other values. `str` would write 0.00000006 as 6E-8.
    write = functools.partial(orjson.dumps, default="{:f}".format, option=orjson.OPT_APPEND_NEWLINE)
    with replace_file(Path(path).expanduser(), 0o666, "an earlier file is as it was") as file:
        file.writelines(write(row.as_dict()) for row in rows)
