"""Each picture draws what its table says, and everything in it can be read."""

import io
import math
import random
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from itertools import combinations, pairwise, product
from typing import Any

import pytest

from llm_provider import (
    Choice,
    Ledger,
    RateLimitError,
    RequestError,
    Response,
    Results,
    Timing,
    Usage,
    reliability,
)
from llm_provider._core.money.totals import Key, Posting, Totals
from llm_provider._features.pictures import style
from llm_provider._features.pictures.pictures import plot_costs, plot_requests
from llm_provider._features.pictures.request_timeline import TimedRequest
from support import needs

pytestmark = [needs("matplotlib"), needs("pandas")]

MODELS = (
    "together_ai/zai-org/GLM-5.3", "gpt-6.1-sol", "claude-haiku-5-5", "gemini-3.8-flash", "deepseek-v4",
    "fireworks_ai/accounts/fireworks/models/llama-v3p1-405b-instruct", "local/my$odel_x$", "gpt-6-luna",
    "fireworks_ai/accounts/fireworks/models/llama-v3p1-8b-instruct", "claude-sonnet-5-5",
)  # fmt: skip
PALETTE = {style.BLUE, style.GREEN, style.VERMILION, style.PURPLE, style.GREY}


def run(count: int, *, cached: bool = False, priced: bool = True, end: str = "") -> Results[Any]:
    """Scored answers of some models, and one failed call."""
    numbers = random.Random(3)
    results: list[Any] = [RateLimitError("slow down", provider="p", model=MODELS[0])]
    for place, number in product(range(count), range(9)):
        results += [Response(
            choices=(Choice(text="x" * int(numbers.lognormvariate(3, 1))),), model=MODELS[place] + end,
            provider="p", usage=Usage(output_tokens=9), prompt=f"question {number}", cached=cached,
            price=2.0**place * numbers.uniform(1e-5, 3e-5) if priced else None,
            timing=Timing(total=numbers.lognormvariate(0, 0.5)),
            metadata={"kind": ["sum", "product", "proof"][number % 3], "ok": numbers.random() < 0.7},
        )]  # fmt: skip
    return Results(results).score(
        lambda sample: {"correct": sample.metadata["ok"], "length": len(sample.text)}
    )


def ledger(count: int, kind: Any = "answered", usd: Decimal | None = Decimal("0.0054")) -> Ledger:
    totals = Totals()
    for place, model in enumerate(MODELS[:count]):
        used = Usage(
            input_tokens=1200 + place, output_tokens=300, cache_read_input_tokens=200 * place,
            cache_write_input_tokens=100 * (place == 1), reasoning_output_tokens=40,
        )  # fmt: skip
        for number in range(5):
            totals.post(Posting(1.79e9 + 60 * number, kind, Key("p", model, model, ""), usd, used))
    return Ledger(totals)


def requests(count: int) -> list[TimedRequest]:
    numbers = random.Random(3)
    outcomes = numbers.choices(["answered", "refused", "failed"], [8, 3, 1], k=200)
    return [
        TimedRequest(
            MODELS[number % count], outcome, number / 20, 30,
            None if number > 100 else 256 + number, None if number < 40 else 50.0,
        )
        for number, outcome in enumerate(outcomes)
    ]  # fmt: skip


def calibration() -> Any:
    numbers = random.Random(3)
    probabilities = [numbers.random() for _ in range(100)]
    return reliability(probabilities, [numbers.random() < each for each in probabilities])


def list_labels(axes: Any) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


def read_bars(figure: Any) -> dict[str, dict[str, list[float]]]:
    """The widths of the bars of a ledger's picture, by the unit of the plot and the class."""
    return {
        axes.get_xlabel(): {bars.get_label(): [bar.get_width() for bar in bars] for bars in axes.containers}
        for axes in figure.axes
        if axes.containers
    }


def read_points(axes: Any) -> Iterator[tuple[str, list[Any], list[Any], list[Any]]]:
    """The label, the points and the ends of the intervals of each group of means."""
    for container in axes.containers:
        line, _, (bars,) = container
        ends = [[tuple(end) for end in segment] for segment in bars.get_segments()]
        yield container.get_label(), list(line.get_xdata()), list(line.get_ydata()), ends


@pytest.mark.parametrize("by", [None, "kind"])
def test_scores_are_those_of_the_table(by: str | None) -> None:
    results = run(3)
    (axes,) = results.plot(by=by, score="correct").axes
    drawn = {}
    for group, means, places, ends in read_points(axes):
        for mean, place, ((low, _), (high, _)) in zip(means, places, ends, strict=True):
            drawn[list_labels(axes)[round(place)], group if by else ""] = mean, (low, high)
    rows = [row for row in results.summarize_scores(by).rows if row["score"] == "score.correct"]
    table = {
        (style.write_name(row["model"], 22), style.write_name(row[by]) if by else ""): row
        for row in rows
        if row["mean"] is not None
    }
    assert len(drawn) == len(table) == (9 if by else 3)
    for name, row in table.items():
        assert drawn[name] == (pytest.approx(row["mean"]), pytest.approx(row["interval"]))
    assert axes.get_xlabel() == "correct, 95 % interval\nfailed calls left out: 1"


def test_costs_are_the_mean_prices_and_the_frontier_is_what_none_beats() -> None:
    results = run(10)
    (axes,) = results.plot("costs", score="correct").axes
    table = results.to_pandas()
    prices = 1000 * table[table["error"].isna()].groupby("model")["price"].mean()
    rows = {row["model"]: row for row in results.summarize_scores().rows if row["score"] == "score.correct"}
    points = {}
    for name, (price,), (mean,), (((_, low), (_, high)),) in read_points(axes):
        points[name] = price, mean, low, high
    assert len(points) == 9  # two names are cut alike
    for model, row in rows.items():
        if "llama" not in model:
            expected = prices[model], row["mean"], *row["interval"]
            assert points[style.write_name(model)] == pytest.approx(expected)
    frontier = next(line for line in axes.lines if line.get_label() == "frontier")
    for price, best in zip(*frontier.get_data(), strict=True):
        assert best == max(row["mean"] for model, row in rows.items() if prices[model] <= price + 1e-12)
    assert axes.get_xscale() == "log"


def test_a_frontier_passes_no_model_that_another_one_beats_at_its_price() -> None:
    points = [("a", 0.2, 1.0), ("b", 0.6, 1.0), ("c", 0.6, 3.0), ("d", 0.9, 4.0), ("e", 0.5, 4.0)]
    rows = [{"model": name, "mean": mean, "interval": None} for name, mean, _ in points]
    (axes,) = plot_costs(rows, {name: price for name, _, price in points}, "score").axes
    (frontier,) = (line for line in axes.lines if line.get_label() == "frontier")
    costs, best = (list(values) for values in frontier.get_data())
    assert (costs, best) == ([1.0, 1.0, 3.0, 4.0, 4.0], [0.6, 0.6, 0.6, 0.9, 0.9])


@pytest.mark.parametrize("name", ["a$x_{$", "_hidden", "50 %"])
def test_the_name_of_a_score_is_no_formula(name: str) -> None:
    results = Results(run(1)[1:]).score(lambda sample: {name: 1})
    for kind in ("scores", "costs"):
        figure = results.plot(kind)
        figure.draw_without_rendering()
        label = figure.axes[0].get_xlabel() if kind == "scores" else figure.axes[0].get_ylabel()
        assert label == f"{style.write_name(name)}, 95 % interval"


def test_answers_are_the_quantiles_of_the_table() -> None:
    results = run(3)
    figure = results.plot("answers")
    table = results.to_pandas()
    table = table[table["error"].isna()].assign(characters=lambda frame: frame["text"].str.len())
    for axes, column in zip(figure.axes, ("characters", "seconds"), strict=True):
        groups = table.groupby("model")[column]
        wide, half = axes.collections
        for lines, shares in ((wide, (0.05, 0.95)), (half, (0.25, 0.75))):
            drawn = [tuple(end[0] for end in segment) for segment in lines.get_segments()]
            assert drawn == [tuple(part.quantile(shares)) for _, part in groups]
        assert list(axes.lines[0].get_xdata()) == list(groups.median())
        assert list_labels(axes) == [style.write_name(model, 22) for model in groups.groups]


def test_stored_answers_have_no_time() -> None:
    (axes,) = run(2, cached=True).plot("answers").axes
    assert axes.get_xlabel() == "characters of an answer"


def test_a_ledger_is_drawn_as_its_rows(ledger_of_two: Ledger) -> None:
    figure = ledger_of_two.plot()
    drawn = {line.get_label(): list(line.get_ydata()) for line in figure.axes[0].get_lines()}
    assert drawn["gpt-6.1-sol"] == pytest.approx([0, 0.0064, 0.0118, 0.0172, 0.0172])
    assert drawn["claude-haiku-5-5"] == pytest.approx([0, 6e-8, 6e-8])
    assert read_bars(figure) == {
        "USD": {"spent": [6e-8, 0.0162], "wasted": [0, 0.001], "saved": [0, 0.0054]},
        "tokens": {"input": [1, 3010], "cache read": [0, 600], "reasoning": [0, 300], "output": [0, 600]},
    }
    assert all(list_labels(axes) == ["claude-haiku-5-5", "gpt-6.1-sol"] for axes in figure.axes[1:])


@pytest.fixture(name="ledger_of_two")
def find_ledger_of_two(totals: Totals) -> Ledger:
    return Ledger(totals)


def test_a_run_of_stored_answers_shows_what_was_saved() -> None:
    assert read_bars(ledger(2, "hit").plot()) == {"USD": {"saved": pytest.approx([0.027, 0.027])}}


def test_only_what_there_is_is_drawn() -> None:
    assert [*read_bars(ledger(1, usd=None).plot())] == ["tokens"]
    unknown = ledger(1, "hit", None).plot()
    assert unknown.axes[0].get_title() == "0 requests, 5 hits: no cost and no tokens are known"
    assert plot_requests([]).axes[0].get_title() == "no request has ended"


def test_many_models_have_one_line_of_cost() -> None:
    spent = ledger(5)
    (line,) = spent.plot().axes[0].get_lines()
    assert (line.get_label(), line.get_ydata()[-1]) == ("all models", pytest.approx(float(spent.spent)))


@pytest.mark.parametrize("count", [1, 3])
def test_requests_are_those_of_the_rows(count: int) -> None:
    rows = requests(count)
    above, below = plot_requests(rows).axes
    outcomes = Counter(row.outcome for row in rows)
    for stairs in above.patches:
        rates, edges, _ = stairs.get_data()
        widths = [right - left for left, right in pairwise(edges)]
        assert sum(rates * widths) == pytest.approx(outcomes.pop(stairs.get_label()))
    assert not outcomes
    drawn = {line.get_label(): line.get_ydata().tolist() for line in (*below.lines, *above.lines)}
    for place in range(len(rows)):
        last = {each.model: each for each in rows[: place + 1]}.values()
        assert drawn["in flight"][place] == sum(each.in_flight for each in last)
        for name, label in (("window", "window"), ("rate", "allowed")):
            limits = [getattr(each, name) for each in last]
            assert drawn[label][place] == (
                pytest.approx(math.nan, nan_ok=True) if None in limits else sum(limits)
            )


def test_calibration_is_drawn_as_its_bins() -> None:
    measured = calibration()
    (axes,) = measured.plot().axes
    ((_, means, shares, ends),) = read_points(axes)
    for entry, mean, share, ((_, low), (_, high)) in zip(measured.bins, means, shares, ends, strict=True):
        assert (mean, share) == (entry.mean, entry.share)
        assert (low, high) == pytest.approx(entry.interval)


PICTURES = {
    "groups": lambda count: run(count).plot(by="kind", score="length"),
    "costs": lambda count: run(count).plot("costs", score="correct"),
    "costs of snapshots": lambda count: run(count, end="-2026-10-21").plot("costs", score="correct"),
    "answers": lambda count: run(count).plot("answers"),
    "usage": lambda count: ledger(count).plot(),
    "requests": lambda count: plot_requests(requests(count)),
}


@pytest.mark.parametrize(
    ("name", "count", "dpi"),
    [
        *product([each for each in PICTURES if each != "usage"], [3, 10], [72, 100, 120, 150, 200, 300]),
        # matplotlib chooses the ticks of a time, which touch each other at 150.
        *product(["usage"], [3, 10], [100, 200, 300]), ("calibration", 1, 200),
    ],
)  # fmt: skip
@pytest.mark.sampled(7)
def test_a_picture_can_be_read_at_the_width_of_a_column(name: str, count: int, dpi: int) -> None:
    """All text has 7 points, lies inside, and covers no other. The colours are those of the style."""
    from matplotlib import image

    figure = calibration().plot() if name == "calibration" else PICTURES[name](count)
    figure.set_dpi(dpi)
    figure.draw_without_rendering()
    width, height = figure.canvas.get_width_height()
    assert figure.get_figwidth() == style.WIDTH
    boxes = []
    for text in list_texts(figure):
        box = text.get_window_extent()
        assert min(box.x0, box.y0, width - box.x1, height - box.y1) > -dpi / 150, text
        assert text.get_fontsize() == style.POINTS, text
        boxes.append((text, box.padded(-1)))
    assert len(boxes) > 5
    for (one, box), (other, beside) in combinations(boxes, 2):
        assert not box.overlaps(beside), (one, other)
    pixels = (image.imread(io.BytesIO(figure._repr_png_())) * 255).round().astype(int).reshape(-1, 4)
    colours = Counter("#{:02X}{:02X}{:02X}".format(*pixel[:3]) for pixel in pixels if pixel[3] == 255)
    # Where two colours meet, few pixels have a mixture.
    assert {colour for colour, count in colours.items() if count > 0.05 * colours.total()} <= PALETTE


def list_texts(figure: Any) -> Iterator[Any]:
    """Every text that is drawn."""
    for axes in figure.axes:
        legend = axes.get_legend()
        texts = [axes.title, *([] if legend is None else legend.get_texts())]
        for place, axis in enumerate((axes.xaxis, axes.yaxis)):
            low, high = sorted(axis.get_view_interval())
            labels = [label for label in axis.get_ticklabels() if low <= label.get_position()[place] <= high]
            texts += [axis.label, axis.get_offset_text(), *labels]
        yield from (text for text in texts if text.get_text() and text.get_visible())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "score"}, 'kind is "scores", "costs" or "answers", not .score.'),
        ({"kind": "costs", "by": "kind"}, 'by= is for "scores"'),
        ({}, "several scores: give one of score.correct, score.length"),
        ({"score": "right"}, "there is no score 'right'"),
        ({"score": "correct", "by": "level"}, "no column 'level'"),
    ],
)
def test_a_wrong_argument_names_the_right_ones(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(RequestError, match=message):
        run(1).plot(**arguments)


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(RequestError, match="failed"):
        Results(run(1)[:1]).plot()
    with pytest.raises(RequestError, match="there is nothing to draw"):
        Results(run(1)[:1]).plot("answers")
    with pytest.raises(RequestError, match="no model has a score and a price"):
        run(1, priced=False).plot("costs", score="correct")
