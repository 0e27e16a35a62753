"""What the batches of several models will cost: `Estimates`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..._core.runtime.imports import import_optional
from ..._core.tokens.counting import Range
from ..._core.words import format_duration, format_usd
from .estimate import Estimate, whole

if TYPE_CHECKING:
    import pandas as pd

_TITLES = ("model", "requests", "input tokens", "output tokens", "cost", "at most", "time")


class Estimates(dict[str, Estimate]):
    """The estimate of each of several models by its name. `print` shows a row for each, and their total.

    >>> from llm_provider import estimate
    >>> estimates = estimate(["gpt-6.1-sol", "claude-sonnet-5-5"], ["Name a bird."], max_tokens=50)
    >>> list(estimates), estimates.total.requests
    (['gpt-6.1-sol', 'claude-sonnet-5-5'], 2)
    """

    @property
    def total(self) -> Estimate:
        """The sums of all models, which are asked side by side. The cost is None if one is unknown."""
        each, nothing = list(self.values()), Range.exactly(0)
        costs = [estimate.cost for estimate in each if estimate.cost is not None]
        variants = {estimate.variant for estimate in each}
        variant = variants.pop() if len(variants) == 1 else "standard"
        return Estimate(
            model=f"{len(each)} models",
            provider=", ".join(dict.fromkeys(estimate.provider for estimate in each)),
            inputs=sum(estimate.inputs for estimate in each),
            cached=sum(estimate.cached for estimate in each),
            duplicates=sum(estimate.duplicates for estimate in each),
            invalid=tuple(problem for estimate in each for problem in estimate.invalid),
            requests=sum(estimate.requests for estimate in each),
            input_tokens=sum_of(estimate.input_tokens for estimate in each),
            output_tokens=sum_of(estimate.output_tokens for estimate in each),
            cached_input_tokens=sum_of(estimate.cached_input_tokens for estimate in each),
            variant=variant,
            costs={variant: sum_of(iter(costs))} if len(costs) == len(each) else {},
            seconds=Range(*map(max, zip(nothing, *(estimate.seconds for estimate in each), strict=True))),
            assumptions=tuple(dict.fromkeys(text for estimate in each for text in estimate.assumptions)),
        )

    def to_pandas(self) -> pd.DataFrame:
        """A pandas DataFrame with a row for each model. `total` has the sums.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        frame: pd.DataFrame = import_optional("pandas", "pip install pandas").DataFrame(
            [_row_of(name, estimate) for name, estimate in self.items()]
        )
        return frame

    def __str__(self) -> str:
        rows = [_TITLES, *self._rows()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in rows
        )
        return "\n".join([*lines, *(f"  - {text}" for text in self.total.assumptions)])

    def __repr__(self) -> str:
        return f"Estimates({super().__repr__()})"

    def _repr_html_(self) -> str:
        from ..views import blocks as html

        rows = ([html.words(name), *map(html.figure, figures)] for name, *figures in self._rows())
        notes = (html.small(f"- {text}") for text in self.total.assumptions)
        return html.block(html.table(_TITLES, rows), *notes)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for name, estimate in {**self, "total": self.total}.items():
            cost = estimate.cost
            yield (
                name,
                f"{estimate.requests:,}",
                whole(estimate.input_tokens.likely),
                whole(estimate.output_tokens.likely),
                format_usd(None if cost is None else cost.likely),
                "" if cost is None else format_usd(cost.high),
                format_duration(estimate.seconds.likely),
            )


def add_fallbacks(estimates: Sequence[Estimate]) -> Estimate:
    """The estimate of a batch, from that of its model and those of the models of its `fallback`.

    The first model is likely to answer all inputs. At most, each model but the last refuses all of them and
    bills that. At least, the cheapest one answers alone.
    """
    first, *others = estimates
    if not others or not first.requests:
        return first

    def widen(each: Sequence[Range]) -> Range:
        lows, _, highs = zip(*each, strict=True)
        return Range(min(lows), each[0].likely, sum(highs))

    # A provider's batch has one model.
    known = [name for name in first.costs if name != "batch" and all(name in each.costs for each in others)]
    rest = ", ".join(estimate.model for estimate in others)
    assumption = f"{first.model} answers; at most, each model is paid before the next one is asked: {rest}"
    texts = [assumption, *(text for estimate in estimates for text in estimate.assumptions)]
    return replace(
        first,
        input_tokens=widen([estimate.input_tokens for estimate in estimates]),
        output_tokens=widen([estimate.output_tokens for estimate in estimates]),
        costs={name: widen([estimate.costs[name] for estimate in estimates]) for name in known},
        seconds=widen([estimate.seconds for estimate in estimates]),
        assumptions=tuple(dict.fromkeys(texts)),
    )


def sum_of(ranges: Iterator[Range]) -> Range:
    total = Range.exactly(0)
    for summand in ranges:
        total = total.plus(summand)
    return total


def _row_of(name: str, estimate: Estimate) -> dict[str, object]:
    low, likely, high = estimate.cost or (None, None, None)
    return {
        "model": name,
        "provider": estimate.provider,
        "inputs": estimate.inputs,
        "cached": estimate.cached,
        "duplicates": estimate.duplicates,
        "invalid": len(estimate.invalid),
        "requests": estimate.requests,
        "input_tokens": estimate.input_tokens.likely,
        "output_tokens": estimate.output_tokens.likely,
        "cost_low": low,
        "cost": likely,
        "cost_high": high,
        "seconds": estimate.seconds.likely,
    }
