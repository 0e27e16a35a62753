"""A ledger as a figure. Only this module loads matplotlib, which the extra `plot` installs."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from .._runtime.imports import import_optional, install_command

if TYPE_CHECKING:
    from decimal import Decimal
    from types import ModuleType

    import matplotlib.axes
    from matplotlib.figure import Figure

    from .._types.usage import Usage
    from .ledger_rows import LedgerRow

_Timeline: TypeAlias = "dict[str, list[tuple[int, Decimal]]]"

_INSTALL = install_command("plot")

if not TYPE_CHECKING:
    Figure = import_optional("matplotlib.figure", _INSTALL).Figure

_CLASSES = ("input", "cache read", "cache write", "reasoning", "output")


class LedgerFigure(Figure):
    """A figure that notebooks show as a picture, also where pyplot was not imported."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", bbox_inches="tight")
        return picture.getvalue()


def plot(by_model: list[LedgerRow], timeline: _Timeline) -> Figure:
    """Draw the figure of `Ledger.plot`."""
    dates = import_optional("matplotlib.dates", _INSTALL)
    # Without pyplot, which would choose a display and keep every figure alive.
    figure = LedgerFigure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_costs(left, timeline, dates)
    _draw_tokens(right, by_model)
    return figure


def _draw_costs(axes: matplotlib.axes.Axes, series: _Timeline, dates: ModuleType) -> None:
    axes.set_title("spent over time")
    axes.set_ylabel("USD")
    end = max((points[-1][0] for points in series.values()), default=0)
    for model, points in series.items():
        moments = [moment for moment, _ in points]
        sums = list(accumulate(float(amount) for _, amount in points))
        # Each line begins at 0 with the model's first request and reaches the right end of the plot.
        steps = dates.date2num(
            [datetime.fromtimestamp(moment, UTC) for moment in (moments[0], *moments, end)]
        )
        axes.step(steps, [0, *sums, sums[-1]], where="post", label=model)
    if series:
        axes.xaxis_date("UTC")
        axes.legend()
        axes.tick_params("x", rotation=30)
    axes.set_xlabel("UTC")
    axes.set_ylim(bottom=0)


def _draw_tokens(axes: matplotlib.axes.Axes, rows: list[LedgerRow]) -> None:
    axes.set_title("tokens by class")
    names = [row.model for row in rows]
    lower = [0] * len(rows)
    for index, label in enumerate(_CLASSES):
        counts = [_by_class(row.usage)[index] for row in rows]
        axes.bar(names, counts, bottom=lower, label=label)
        lower = [below + count for below, count in zip(lower, counts, strict=True)]
    if rows:
        # Beside the bars, which fill the plot.
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        axes.tick_params("x", rotation=30)
    axes.set_ylabel("tokens")


def _by_class(usage: Usage) -> tuple[int, ...]:
    """The tokens of a usage in each of `_CLASSES`; every token counts in one class."""
    read, written = usage.cache_read_input_tokens, usage.cache_write_input_tokens
    reasoning = usage.reasoning_output_tokens
    return usage.input_tokens - read - written, read, written, reasoning, usage.output_tokens - reasoning
