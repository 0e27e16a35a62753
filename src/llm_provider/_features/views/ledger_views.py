"""A ledger's rows as text, HTML, data frames and JSON lines. Imported when the first of these is made."""

from __future__ import annotations

import functools
import io
import math
import os
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from ..._core.runtime.files import replace_file
from ..._core.runtime.imports import import_optional, install_command
from ..._core.words import format_usd
from . import blocks as html

if TYPE_CHECKING:
    from decimal import Decimal
    from types import ModuleType

    import matplotlib.axes
    from matplotlib.figure import Figure

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
    "failed": lambda row: f"{row.failed:,}" if row.failed else "",
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


_Timeline: TypeAlias = "dict[str, list[tuple[int, Decimal]]]"


def plot(by_model: list[LedgerRow], timeline: _Timeline) -> Figure:
    figures, dates = (
        import_optional(f"matplotlib.{name}", install_command("plot")) for name in ("figure", "dates")
    )
    figure: Figure = figures.Figure(figsize=(11, 4), layout="constrained")
    # Notebooks show it as a picture, also where pyplot was not imported.
    vars(figure)["_repr_png_"] = functools.partial(_write_png, figure)
    left, right = figure.subplots(1, 2)
    _draw_costs(left, timeline, dates)
    _draw_tokens(right, by_model)
    return figure


def _write_png(figure: Figure) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", bbox_inches="tight")
    return picture.getvalue()


def _draw_costs(axes: matplotlib.axes.Axes, series: _Timeline, dates: ModuleType) -> None:
    axes.set_title("spent over time")
    axes.set_ylabel("USD")
    end = max((points[-1][0] for points in series.values()), default=0)
    for model, points in series.items():
        # Each line begins at 0 with the model's first request and reaches the right end of the plot.
        moments = [points[0][0], *(moment for moment, _ in points), end]
        sums = list(accumulate(float(amount) for _, amount in points))
        steps = dates.date2num([datetime.fromtimestamp(moment, UTC) for moment in moments])
        axes.step(steps, [0, *sums, sums[-1]], where="post", label=model)
    if series:
        axes.xaxis_date("UTC")
        axes.legend()
        axes.tick_params("x", rotation=30)
    axes.set_xlabel("UTC")
    axes.set_ylim(bottom=0)


def _draw_tokens(axes: matplotlib.axes.Axes, rows: list[LedgerRow]) -> None:
    axes.set_title("tokens by class")
    names, usages = [row.model for row in rows], [row.usage for row in rows]
    reads = [usage.cache_read_input_tokens for usage in usages]
    writes = [usage.cache_write_input_tokens for usage in usages]
    reasoning = [usage.reasoning_output_tokens for usage in usages]
    # Every token counts in one class.
    inputs = [each.input_tokens - reads[at] - writes[at] for at, each in enumerate(usages)]
    outputs = [each.output_tokens - reasoning[at] for at, each in enumerate(usages)]
    classes = {"input": inputs, "cache read": reads, "cache write": writes, "reasoning": reasoning}
    lower = [0] * len(rows)
    for label, counts in {**classes, "output": outputs}.items():
        axes.bar(names, counts, bottom=lower, label=label)
        lower = [below + count for below, count in zip(lower, counts, strict=True)]
    if rows:
        # Beside the bars, which fill the plot.
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        axes.tick_params("x", rotation=30)
    axes.set_ylabel("tokens")
