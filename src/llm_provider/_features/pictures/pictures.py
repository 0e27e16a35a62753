"""The pictures of results, of a ledger, and of requests: a function each."""

import functools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from itertools import accumulate, chain
from statistics import fmean
from typing import Any

from ..._core import doors
from ..._core.errors import LLMError, RequestError, cite
from ..._core.money.totals import LedgerRow
from ..._core.runtime.imports import import_optional, install_command
from ..._core.types.results_table import AnyResult, table_rows
from ..._core.types.usage import SNAPSHOT
from . import style
from .request_timeline import TimedRequest

_np = functools.partial(import_optional, "numpy", install_command("plot"))
"""NumPy, which comes with matplotlib."""


def plot_results(results: Sequence[AnyResult], kind: str, by: Any, cluster: Any, score: str | None) -> Any:
    """The picture of `Results.plot`."""
    if kind not in ("scores", "costs", "answers") or (by is not None and kind != "scores"):
        raise RequestError(f'kind is "scores", "costs" or "answers", not {cite(kind)}; by= is for "scores"')
    if kind == "answers":
        return plot_answers(list(table_rows(results)))
    table = doors.score_summaries.summarize_scores(results, by, cluster)
    name = doors.score_summaries.choose_score(list(dict.fromkeys(row["score"] for row in table.rows)), score)
    rows = [row for row in table.rows if row["score"] == name]
    title = f"{style.write_name(name.removeprefix('score.'), 40)}, 95 % interval"
    label = "\n".join([title, *(note.partition(";")[0] for note in table.notes)])
    if kind == "scores":
        return plot_scores(rows, table.words[1:-1], label)
    prices: defaultdict[str, list[float]] = defaultdict(list)
    for result in results:
        if not isinstance(result, LLMError) and result.price is not None:
            prices[result.model].append(1000 * result.price)
    return plot_costs(rows, {model: fmean(each) for model, each in prices.items()}, label)


def plot_scores(rows: Sequence[Mapping[str, Any]], by: Sequence[str], label: str) -> Any:
    """Means with their intervals: a row for each model, with its groups below each other."""
    models = style.order_models(row["model"] for row in rows)
    groups: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["mean"] is not None:
            groups[", ".join(str(row[name]) for name in by)].append(row)
    figure, (axes,) = style.make_figure(0.5 + style.ROW * len(models) * max(1, 0.6 * len(groups)))
    for index, (group, members) in enumerate(groups.items()):
        below = 0.8 * ((index + 0.5) / len(groups) - 0.5)
        positions = [models.index(row["model"]) + below for row in members]
        means, ends = _read_means(members)
        axes.errorbar(means, positions, xerr=ends, label=style.write_name(group), **style.mark(index))
    style.name_rows(axes, models)
    if by:
        style.show_legend(axes)
    axes.set_xlabel(label, loc="right")
    return figure


def plot_costs(rows: Sequence[Mapping[str, Any]], prices: Mapping[str, float], label: str) -> Any:
    """Means of scores against mean prices, and the frontier: the best mean for a price."""
    scored = [row for row in rows if row["mean"] is not None and row["model"] in prices]
    if not scored:
        raise RequestError("no model has a score and a price: docs/prices.md says how to add a price")
    figure, (axes,) = style.make_figure(2.0)
    # A legend has the room for names without the dates of snapshots.
    families = {row["model"]: SNAPSHOT.sub("", row["model"]) for row in rows}
    distinct = len({*families.values()}) == len(families)
    for index, row in enumerate(sorted(rows, key=lambda row: str(row["model"]))):
        if row in scored:
            name = families[row["model"]] if distinct else row["model"]
            look = {"label": style.write_name(name), **style.mark(index)}
            axes.errorbar(prices[row["model"]], *_read_means([row]), **look)
    scored.sort(key=lambda row: (prices[row["model"]], -row["mean"]))
    costs, means = zip(*((prices[row["model"]], row["mean"]) for row in scored), strict=True)
    best = _np().maximum.accumulate(means)
    axes.step(costs, best, ":", where="post", color=style.GREY, zorder=0, label="frontier")
    style.scale_x(axes, costs, "${x:,.4g}")
    style.show_legend(axes, 46)
    missing = ", ".join(style.write_name(row["model"]) for row in rows if row not in scored)
    axes.set_xlabel("price of 1,000 calls" + f"\nwithout a price or a score: {missing}" * bool(missing))
    axes.set_ylabel(label)
    return figure


def _read_means(rows: Sequence[Mapping[str, Any]]) -> tuple[Any, Any]:
    """Means, and the lengths of their intervals below and above."""
    means = _np().array([row["mean"] for row in rows])
    bounds = [row["interval"] or (mean, mean) for row, mean in zip(rows, means, strict=True)]
    return means, abs(_np().transpose(bounds) - means)


def plot_answers(rows: Sequence[Mapping[str, Any]]) -> Any:
    """The lengths of answers, and the times of calls that were not stored, of each model."""
    panels: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if isinstance(row.get("text"), str):
            panels["characters of an answer"][row["model"]].append(len(row["text"]))
        if row.get("seconds") is not None and not row["cached"]:
            panels["seconds of a call"][row["model"]].append(row["seconds"])
    if not panels:
        raise RequestError("no answer has a text, and none has a time: there is nothing to draw")
    models = style.order_models(chain(*panels.values()))
    figure, plots = style.make_figure(*[0.4 + style.ROW * len(models)] * len(panels))
    for axes, (label, values) in zip(plots, sorted(panels.items()), strict=True):
        positions = [position for position, model in enumerate(models) if model in values]
        numbers = (values[models[position]] for position in positions)
        shares = [_np().quantile(each, (0.05, 0.25, 0.5, 0.75, 0.95)) for each in numbers]
        low, first, median, third, high = _np().transpose(shares)
        axes.hlines(positions, low, high, style.BLUE, linewidth=0.8, label="90 %")
        axes.hlines(positions, first, third, style.BLUE, linewidth=3, label="half")
        axes.plot(median, positions, "o", color=style.BLUE, markersize=4.5, label="median")
        style.name_rows(axes, models)
        style.scale_x(axes, [*low, *high])
        axes.set_xlabel(label)
    style.show_legend(plots[0])
    return figure


def plot_ledger(rows: Sequence[LedgerRow], timeline: Mapping[str, Sequence[tuple[int, Decimal]]]) -> Any:
    """USD over time, USD by model and tokens by class, each where there are some; rows are sums by model."""

    def read(name: str) -> Any:
        return _np().array([float(row.as_dict()[name]) for row in rows])

    # Every token counts in one class.
    names = ("cache_read_input_tokens", "cache_write_input_tokens", "reasoning_output_tokens")
    reads, writes, reasoning = map(read, names)
    tokens = {
        "input": read("input_tokens") - reads - writes, "cache read": reads, "cache write": writes,
        "reasoning": reasoning, "output": read("output_tokens") - reasoning,
    }  # fmt: skip
    panels = {"USD": {name: read(name) for name in ("spent", "wasted", "saved")}, "tokens": tokens}
    panels = {unit: classes for unit, classes in panels.items() if any(map(any, classes.values()))}
    heights = [1.3] * bool(timeline) + [0.4 + style.ROW * len(rows)] * len(panels)
    if not heights:
        counts = f"{sum(row.requests for row in rows):,} requests, {sum(row.hits for row in rows):,} hits"
        return style.write_note(f"{counts}: no cost and no tokens are known")
    figure, plots = style.make_figure(*heights)
    if timeline:
        _draw_time(plots[0], timeline)
    for axes, (unit, classes) in zip(plots[bool(timeline) :], panels.items(), strict=True):
        left = _np().zeros(len(rows))
        for label, values in classes.items():
            if any(values):
                colour, is_part = style.MEANINGS[label], label in style.PARTS
                look = {"edgecolor": colour, "facecolor": "none" if is_part else colour, "linewidth": 0.5}
                axes.barh(range(len(rows)), values, 0.6, left, hatch="//////" * is_part, label=label, **look)
                left = left + values
        style.name_rows(axes, [row.model for row in rows])
        style.show_legend(axes)
        style.scale_x(axes, write="${x:,.4g}" if unit == "USD" else "{x:,g}")
        axes.set_xlabel(unit)
    return figure


def _draw_time(axes: Any, timeline: Mapping[str, Sequence[tuple[int, Decimal]]]) -> None:
    """Draw the cost of each model, or of many models together, from 0 to the right end of the plot."""
    dates = import_optional("matplotlib.dates", install_command("plot"))
    points = sorted(chain(*timeline.values()))
    end = points[-1][0] + max(1, (points[-1][0] - points[0][0]) / 50)
    timeline = timeline if len(timeline) <= len(style.DASHES) else {"all models": points}
    for index, model in enumerate(style.order_models(timeline)):
        moments, amounts = zip(*timeline[model], strict=True)
        times = [datetime.fromtimestamp(moment, UTC) for moment in (moments[0], *moments, end)]
        sums = [0, *accumulate(map(float, amounts))]
        look = style.mark(index) | {"color": style.BLUE, "linestyle": style.DASHES[index], "markevery": [-1]}
        axes.step(times, [*sums, sums[-1]], where="post", label=style.write_name(model), **look)
    axes.xaxis.set_major_formatter(
        dates.ConciseDateFormatter(axes.xaxis.get_major_locator(), tz=UTC, usetex=False)
    )
    axes.yaxis.set_major_formatter("${x:,.4g}")
    axes.set_xlabel("UTC", loc="left")
    axes.set(ylabel="cost", ylim=(0, None))
    style.show_legend(axes)


def plot_requests(rows: Sequence[TimedRequest]) -> Any:
    """Requests per second by outcome, those in flight, and what the rate control allowed, of all models."""
    if not rows:
        return style.write_note("no request has ended")
    figure, (above, below) = style.make_figure(1.2, 1.2)
    end = max(0.1, rows[-1].time)
    for outcome in ("answered", "refused", "failed"):
        if times := [row.time for row in rows if row.outcome == outcome]:
            counts, edges = _np().histogram(times, min(100, int(end / 0.1)), (0, end))
            look = {"color": style.MEANINGS[outcome], "baseline": None, "label": outcome}
            above.stairs(counts / edges[1], edges, **look)
    # The state of each model at its last request, added up.
    states: dict[str, list[float]] = {}
    sums = []
    for row in rows:
        states[row.model] = [math.nan if value is None else value for value in row[-3:]]
        sums.append([sum(values) for values in zip(*states.values(), strict=True)])
    labels = ((below, "in flight"), (below, "window"), (above, "allowed"))
    for (axes, label), values in zip(labels, _np().transpose(sums), strict=True):
        if not _np().isnan(values).all():
            times, colour = [row.time for row in rows], style.MEANINGS[label]
            axes.step(times, values, where="post", color=colour, linewidth=1, label=label)
    for axes, label in zip((above, below), ("requests per second", "requests in flight"), strict=True):
        axes.set(xlim=(0, end), ylim=(0, None), ylabel=label, xlabel="seconds")
        style.show_legend(axes, 55)
    return figure
