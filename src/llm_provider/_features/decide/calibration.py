"""How good probabilities are: the Brier score, reliability in bins, and the agreement of judges."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..._core import doors
from ..._core.errors import RequestError, cite
from ..._core.requests.inputs import is_missing, put_in_order
from ..._core.runtime.imports import import_optional
from ..._core.types.results import Results

_Z = 1.959963984540054
"""The normal quantile of an interval of 95 %."""


def brier_score(probabilities: Iterable[float | None], outcomes: Iterable[Any] = ()) -> float:
    """The mean squared difference between probabilities and what was true: 0 is perfect, 0.25 is a coin.

    Args:
        probabilities: Such as the column `probability` of `results.to_pandas()`.
        outcomes: Whether each statement was true: True or False, or 1 or 0. A pair with an empty side is
            not counted. Two columns of pandas are paired by their indexes.

    Raises:
        RequestError: the lengths differ, nothing is left, or a value is no probability or outcome.

    >>> round(brier_score([0.9, 0.2, None], [True, False, True]), 6)
    0.025
    """
    pairs = _read_pairs(probabilities, outcomes)
    return math.fsum((probability - outcome) ** 2 for probability, outcome in pairs) / len(pairs)


@dataclass(frozen=True, slots=True)
class Bin:
    """The probabilities from `low` to `high`: how many, their mean, and the share that was true.

    `interval` is Wilson's interval of the share at 95 %.
    """

    low: float
    high: float
    count: int
    mean: float
    share: float
    interval: tuple[float, float]


@dataclass(frozen=True, slots=True, repr=False)
class Reliability:
    """Probabilities beside what was true, in bins of equal width. Bins without a probability are left out.

    `error` is the expected calibration error: the mean distance of both, by the counts of the bins.
    """

    bins: tuple[Bin, ...]
    count: int
    error: float

    @property
    def _title(self) -> str:
        return f"calibration error {self.error:.3f}, {self.count:,} answers"

    def __str__(self) -> str:
        head = ("from", "to", "answers", "mean", "share", "95 % interval")
        lines = [
            (f"{each.low:.3f}", f"{each.high:.3f}", f"{each.count:,}", f"{each.mean:.3f}",
             f"{each.share:.3f}", "[{:.3f}, {:.3f}]".format(*each.interval))
            for each in self.bins
        ]  # fmt: skip
        return "\n".join([self._title, *doors.html.align(head, lines, ())])

    __repr__ = __str__

    def to_pandas(self) -> Any:
        """A row for each bin.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        rows = [
            {**asdict(entry), "interval_low": entry.interval[0], "interval_high": entry.interval[1]}
            for entry in self.bins
        ]
        return import_optional("pandas", "pip install pandas").DataFrame(rows).drop(columns="interval")

    def plot(self, axes: Any = None) -> Any:
        """Draw the share that was true over the mean probability, in new axes by default: their figure.

        Raises:
            MissingDependencyError: matplotlib is not installed.
        """
        style, shares = doors.picture_style, [entry.share for entry in self.bins]
        axes = axes or style.make_figure(3.0)[1][0]
        lengths = [
            [max(0.0, entry.share - entry.interval[0]) for entry in self.bins],
            [max(0.0, entry.interval[1] - entry.share) for entry in self.bins],
        ]
        axes.plot([0, 1], [0, 1], linestyle=":", color=style.GREY)
        axes.errorbar([entry.mean for entry in self.bins], shares, yerr=lengths, **style.mark(0))
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability", ylabel="share that was true")
        look = {"fontsize": axes.xaxis.label.get_fontsize(), "color": axes.xaxis.label.get_color()}
        axes.set_title(self._title, **look)
        return axes.figure


def reliability(
    probabilities: Iterable[float | None], outcomes: Iterable[Any] = (), *, bins: int = 10
) -> Reliability:
    """Compare probabilities with what was true, in bins of equal width.

    Args:
        probabilities: As for `brier_score`.
        outcomes: As for `brier_score`.
        bins: How many bins, from 1 to 1,000.

    Raises:
        RequestError: as for `brier_score`, or the number of bins is not valid.

    >>> measured = reliability([0.1, 0.15, 0.8, 0.9], [False, False, True, True], bins=2)
    >>> [(entry.low, entry.count, entry.share) for entry in measured.bins], round(measured.error, 4)
    ([(0.0, 2, 0.0), (0.5, 2, 1.0)], 0.1375)
    """
    if type(bins) is not int or not 1 <= bins <= 1_000:
        raise RequestError(f"bins must be an int from 1 to 1000, not {cite(bins)}")
    pairs = _read_pairs(probabilities, outcomes)
    filled: dict[int, list[tuple[float, float]]] = {}
    for probability, outcome in pairs:
        filled.setdefault(min(int(probability * bins), bins - 1), []).append((probability, outcome))
    entries = []
    for number, inside in sorted(filled.items()):
        true = math.fsum(outcome for _, outcome in inside)
        mean = math.fsum(probability for probability, _ in inside) / len(inside)
        interval = find_interval(true, len(inside))
        entries.append(
            Bin(number / bins, (number + 1) / bins, len(inside), mean, true / len(inside), interval)
        )
    error = math.fsum(entry.count * abs(entry.mean - entry.share) for entry in entries) / len(pairs)
    return Reliability(tuple(entries), len(pairs), error)


@dataclass(frozen=True, slots=True)
class Agreement:
    """How two judges agree. `kappa` is 1 for always, and 0 for as often as by chance.

    It is NaN where both judges gave one label to everything, which tells nothing of them. `interval` is its
    interval at 95 %, `agreement` the share of equal labels, `count` the pairs of labels.
    """

    kappa: float
    interval: tuple[float, float]
    agreement: float
    count: int


def cohen_kappa(first: Iterable[Hashable], second: Iterable[Hashable]) -> Agreement:
    """Cohen's kappa of two judges who label the same inputs, with its asymptotic interval.

    Args:
        first: The labels of one judge, such as the column `choice` of a table.
        second: The other one's labels, in the same order or with the same index. Empty ones are left out.

    Raises:
        RequestError: the lengths differ, nothing is left, or the judges share no label and have labels of
            different types, such as True and "True", or one in two spellings, such as "no" and "No".

    >>> measured = cohen_kappa(list("aabb" * 5), list("aabb" * 4 + "abbb"))
    >>> round(measured.kappa, 3), measured.agreement, measured.count
    (0.9, 0.95, 20)
    """
    pairs = _zip(first, second, "labels")
    if strange := [each for pair in pairs for each in pair if not isinstance(each, Hashable)]:
        raise RequestError(f"{cite(strange[0])} is no label: give texts, numbers or bools")
    ours, theirs = ({pair[side] for pair in pairs} for side in (0, 1))
    if ours.isdisjoint(theirs):
        _check_labels(ours, theirs)
    count = len(pairs)
    shares = {pair: number / count for pair, number in Counter(pairs).items()}
    rows, columns = Counter[Hashable](), Counter[Hashable]()
    for (label, other), share in shares.items():
        rows[label] += share  # type: ignore[assignment]  # a Counter may hold shares
        columns[other] += share  # type: ignore[assignment]  # as above
    agreed = math.fsum(share for (label, other), share in shares.items() if label == other)
    chance = math.fsum(rows[label] * columns[label] for label in rows)
    if chance >= 1:
        return Agreement(math.nan, (math.nan, math.nan), 1.0, count)
    kappa = (agreed - chance) / (1 - chance)
    # The variance of Fleiss, Cohen and Everitt, Psychological Bulletin 72 (1969), 323.
    own = math.fsum(
        share * (1 - (rows[label] + columns[label]) * (1 - kappa)) ** 2
        for (label, other), share in shares.items()
        if label == other
    )
    others = (1 - kappa) ** 2 * math.fsum(
        share * (columns[label] + rows[other]) ** 2
        for (label, other), share in shares.items()
        if label != other
    )
    variance = (own + others - (kappa - chance * (1 - kappa)) ** 2) / (count * (1 - chance) ** 2)
    half = _Z * math.sqrt(max(0.0, variance))
    return Agreement(kappa, (max(-1.0, kappa - half), min(1.0, kappa + half)), agreed, count)


def _check_labels(ours: set[Hashable], theirs: set[Hashable]) -> None:
    """Raise an error if two judges who share no label have labels of two types, or spell one in two ways."""
    kinds = [{str if isinstance(each, str) else type(each) for each in side} for side in (ours, theirs)]
    pairs = sorted((str(label), str(other)) for label in ours for other in theirs)
    alike = [pair for pair in pairs if len({each.strip().casefold() for each in pair}) == 1]
    if kinds[0] != kinds[1] or alike:
        first, second = next(iter(ours)), next(iter(theirs))
        remedy = "give both labels of one type"
        if kinds[0] == kinds[1]:
            (first, second), remedy = alike[0], "they differ in case or spaces: write both in one way"
        cited = [cite(str(each) if isinstance(each, str) else each) for each in (first, second)]
        raise RequestError(f"the judges share no label: one says {cited[0]}, the other {cited[1]}; {remedy}")


def find_interval(count: float, total: float) -> tuple[float, float]:
    """Wilson's interval of a share at 95 %.

    >>> [round(bound, 3) for bound in find_interval(8, 10)]
    [0.49, 0.943]
    """
    share, square = count / total, _Z * _Z
    middle = (share + square / (2 * total)) / (1 + square / total)
    half = _Z * math.sqrt(share * (1 - share) / total + square / (4 * total * total)) / (1 + square / total)
    return max(0.0, middle - half), min(1.0, middle + half)


def _read_pairs(probabilities: Iterable[Any], outcomes: Iterable[Any]) -> list[tuple[float, float]]:
    pairs = []
    for probability, outcome in _zip(probabilities, outcomes, "probabilities and outcomes"):
        if isinstance(probability, bool) or not _is_share(probability):
            raise RequestError(f"{cite(probability)} is no probability: give numbers from 0 to 1")
        if not _is_share(outcome) or outcome not in (0, 1):
            raise RequestError(f"{cite(outcome)} is no outcome: give True or False")
        pairs.append((float(probability), float(outcome)))
    return pairs


def _is_share(value: Any) -> bool:
    try:
        return bool(0 <= value <= 1)
    except (TypeError, ValueError):  # such as a text, or an array of several numbers
        return False


def _zip(first: Iterable[Any], second: Iterable[Any], what: str) -> Sequence[tuple[Any, Any]]:
    for each in (first, second):
        is_table = isinstance(each, (str, Mapping, Results)) or getattr(each, "ndim", 1) != 1
        is_table = is_table or hasattr(each, "columns")
        if is_table or not isinstance(each, Iterable):
            raise RequestError(
                f"{what} are two columns or lists, such as frame['probability'] and frame['true'] of "
                f"frame = results.to_pandas(), not {cite(each)}"
            )
    firsts, seconds = list(first), list(put_in_order(second, first, what))
    if len(firsts) != len(seconds):
        raise RequestError(f"{what} are {len(firsts):,} and {len(seconds):,}: give as many of both")
    pairs = list(zip(firsts, seconds, strict=True))
    # Empty texts would count as labels on which both judges agree.
    empty = [any(is_missing(each) or (isinstance(each, str) and not each) for each in pair) for pair in pairs]
    if all(empty):
        raise RequestError(f"no pair of {what} is left: give one pair at least without an empty cell")
    return [pair for pair, is_empty in zip(pairs, empty, strict=True) if not is_empty]
