"""Draws the charts of a result: `python -m benchmarks.plot <result.json> <picture.png>`; needs matplotlib."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

INCHES = (9.0, 4.5)
DOTS_PER_INCH = 110
OURS = "this library"


def draw(charts: list[dict[str, Any]], picture: Path) -> None:
    """Draw charts one below the other in one file."""
    figure, axes = pyplot.subplots(
        len(charts), 1, figsize=(INCHES[0], INCHES[1] * len(charts)), squeeze=False
    )
    for (axis,), chart in zip(axes, charts, strict=True):
        if chart["kind"] == "lines":
            _lines(axis, chart)
        elif len(chart["series"]) == 1:
            _ranking(axis, chart)
        else:
            _groups(axis, chart)
        axis.set_title(chart["title"])
    figure.tight_layout()
    # Without the version of matplotlib in it, the same figures give the same file.
    figure.savefig(picture, dpi=DOTS_PER_INCH, metadata={"Software": None})


def _lines(axis: Any, chart: dict[str, Any]) -> None:
    for name, values in chart["series"].items():
        axis.plot(chart["x"], values, marker="o", label=name, linewidth=3 if name == OURS else 1.3)
    axis.set_xlabel(chart["x_label"])
    axis.set_ylabel(chart["y_label"])
    axis.set_xticks(chart["x"], [str(one) for one in chart["x"]])
    if chart["logarithmic"]:
        axis.set_yscale("log")
    axis.grid(alpha=0.3)
    _legend(axis)


def _ranking(axis: Any, chart: dict[str, Any]) -> None:
    """A bar per client, the shortest at the top."""
    ((label, values),) = chart["series"].items()
    ranked = sorted(
        ((value, str(name)) for value, name in zip(values, chart["x"], strict=True) if value is not None),
        reverse=True,
    )
    colours = ["tab:orange" if name.startswith(OURS) else "tab:blue" for _, name in ranked]
    bars = axis.barh([name for _, name in ranked], [value for value, _ in ranked], color=colours)
    axis.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize="small")
    axis.set_xlabel(f"{label} ({chart['y_label']})" if chart["y_label"] not in label else label)
    axis.margins(x=0.12)


def _groups(axis: Any, chart: dict[str, Any]) -> None:
    width = 0.8 / len(chart["series"])
    for place, (name, values) in enumerate(chart["series"].items()):
        positions = [number + place * width for number in range(len(chart["x"]))]
        bars = axis.bar(positions, values, width, label=name)
        axis.bar_label(bars, fmt=_shown, fontsize="x-small")
    axis.set_xticks([number + 0.4 - width / 2 for number in range(len(chart["x"]))], chart["x"])
    axis.set_ylabel(chart["y_label"])
    if chart["logarithmic"]:
        axis.set_yscale("log")
    _legend(axis)


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _legend(axis: Any) -> None:
    axis.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["charts"], Path(sys.argv[2]))
