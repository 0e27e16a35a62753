"""The style of all pictures: figures, sizes, colours, and the order and the names of models.

A picture is as wide as a column of a paper, and transparent. Its colours are a grey and the ones of Okabe and
Ito (Color Universal Design, 2008) that have a contrast of 3:1 on white and on black.
"""

import functools
import io
from collections.abc import Iterable, Sequence
from typing import Any

from ..._core.runtime.imports import import_optional, install_command

WIDTH, ROW, POINTS = 3.3, 0.17, 7
"""Inches of a column and of a row, and the size of all text."""
BLUE, GREEN, VERMILION, PURPLE, GREY = "#0072B2", "#009E73", "#D55E00", "#CC79A7", "#767676"
MEANINGS = {
    "spent": BLUE, "wasted": VERMILION, "saved": GREEN, "input": GREY, "cache read": GREEN,
    "cache write": GREEN, "reasoning": PURPLE, "output": PURPLE, "answered": BLUE, "refused": VERMILION,
    "failed": PURPLE, "in flight": GREY, "window": GREEN, "allowed": GREEN,
}  # fmt: skip
PARTS = ("cache write", "reasoning")
"""What is hatched, beside what has the same colour."""
DASHES, _MARKERS, _SERIES = ("-", "--", ":", "-."), "os^DvPX", (BLUE, VERMILION, GREEN, PURPLE)


def make_figure(*heights: float) -> tuple[Any, list[Any]]:
    """A figure and its plots, which have these heights in inches. A notebook shows it without pyplot too."""
    figures = import_optional("matplotlib.figure", install_command("plot"))
    figure = figures.Figure((WIDTH, sum(heights)), dpi=200, frameon=False, layout="constrained")
    vars(figure)["_repr_png_"] = functools.partial(_write_png, figure)
    look = {"facecolor": "none"}
    # Names are no LaTeX, also where the user has other texts set by it. Ticks read that when they are made.
    with import_optional("matplotlib", install_command("plot")).rc_context({"text.usetex": False}):
        plots = figure.subplots(len(heights), squeeze=False, height_ratios=heights, subplot_kw=look).ravel()
        for axes in plots:
            axes.xaxis.get_major_ticks(20), axes.yaxis.get_major_ticks(40)
    for axes in plots:
        axes.spines[:].set_color(GREY)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(colors=GREY, labelsize=POINTS)
        for text in (axes.xaxis.label, axes.yaxis.label, axes.xaxis.get_offset_text()):
            text.set(color=GREY, fontsize=POINTS)
    return figure, list(plots)


def _write_png(figure: Any) -> bytes:
    figure.savefig(picture := io.BytesIO(), format="png")
    return picture.getvalue()


def write_note(text: str) -> Any:
    """A picture of nothing, which says why."""
    figure, (axes,) = make_figure(0.3)
    axes.set_axis_off()
    axes.set_title(text, color=GREY, fontsize=POINTS)
    return figure


def order_models(names: Iterable[str]) -> list[str]:
    """The order of models in every picture, so that a model keeps its place and its look."""
    return sorted(set(names))


def mark(index: int) -> dict[str, Any]:
    """The look of a model or a group. The first 28 differ in colour or in marker.

    The other colours of Okabe and Ito lack the contrast, so the next four markers are hollow.
    """
    colour = _SERIES[index % 4]
    return {
        "color": colour, "marker": _MARKERS[index % 7], "markersize": 3.5, "linestyle": "none",
        "markerfacecolor": "none" if index // 4 % 2 else colour,
    }  # fmt: skip


def write_name(name: str, most: int = 20) -> str:
    """A name that anyone chose, as a label: it is cut in the middle, and no formula or command."""
    cut = name if len(name) <= most else f"{name[: most // 2]}\u2026{name[1 - most // 2 :]}"
    plain = "".join(character if character.isprintable() else "?" for character in cut)
    # matplotlib leaves out what begins with an underscore.
    return plain.replace("$", r"\$") if plain[:1] != "_" else f" {plain}"


def name_rows(axes: Any, names: Sequence[str]) -> None:
    """Write names beside the rows, the first on top. Where cut names would be equal, they stay longer."""
    labels = ([write_name(name, most) for name in names] for most in range(22, 23 + max(map(len, names))))
    distinct = (each for each in labels if len({*each}) == len(names))
    axes.set_yticks(range(len(names)), next(distinct, [write_name(name) for name in names]))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params("y", length=0)


def scale_x(axes: Any, values: Sequence[float] = (0,), write: str = "{x:,g}") -> None:
    """Give the x axis few ticks: at powers of ten if the values lie far apart."""
    if 0 < 20 * min(values) < max(values):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter("")
    else:
        axes.locator_params("x", nbins=4)
    axes.xaxis.set_major_formatter(write)


def show_legend(axes: Any, characters: int = 40) -> None:
    """Show the legend above a plot, in columns for so many characters, and make the figure higher for it."""
    labels = axes.get_legend_handles_labels()[1]
    columns = max(1, min(len(labels), characters // (max(map(len, labels), default=0) + 6)))
    axes.figure.set_figheight(axes.figure.get_figheight() + 0.15 * -(-len(labels) // columns))
    legend = axes.legend(
        ncols=columns, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2, frameon=False,
        labelcolor=GREY, fontsize=POINTS, handlelength=1.6, columnspacing=1,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_usetex(False)
