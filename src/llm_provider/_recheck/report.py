"""What a recheck can see, and what it saw: `Recheck` and its `Comparison`s."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from .._foreign_attributes import Hinting
from .._json_values import json_value
from .._types.results import Cost

Outcome: TypeAlias = Literal["planned", "same", "suspected", "changed", "undecided"]
Served: TypeAlias = Mapping[str, Mapping[str, int]]
"""How many answers had each value of a field of `served_by`."""

_IDENTITY = ("host", "model", "snapshot", "quantization", "engine")
"""Fields whose new values mean that something else answers. Others, such as fingerprints, may alternate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One test: what it can see, and after the answers what it saw.

    `level` is "stored" for stored answers, whose shifts are shares of answers that differ, and "border" for
    border prompts, whose shifts are those of the first token's distribution. `available` questions can be
    asked again, `unusable` has the number of others by reason. `questions` are asked, with `before` answers
    to each before, 0 for the first answers of a history, and `after` new ones. `floor` is the known share of
    answers that differ without a change, None if it is measured. `alarm_at` is the number of differing
    answers that is an alarm; None where it is a p-value up to `alpha`, the most false alarms. `power` is the
    probability of an alarm after a `shift`, and `detectable` the smallest shift with a power of 0.95.
    `expected_cost` is in USD.

    Of the new answers `failed` did, `answered` questions have all of theirs, and `noise` is the share of
    questions whose new answers differ. `estimate` is the shift that was seen, with the ends of its 95 %
    interval. `p_value` is None if nothing was compared.
    """

    level: Literal["stored", "border"]
    available: int
    unusable: Mapping[str, int]
    questions: int
    before: int
    after: int
    floor: float | None = None
    alpha: float
    alarm_at: int | None = None
    shift: float
    power: float
    detectable: float | None
    expected_cost: float | None
    answered: int = 0
    failed: int = 0
    noise: float | None = None
    p_value: float | None = None
    estimate: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def is_off(self) -> bool:
        """Whether the difference is significant."""
        return self.p_value is not None and self.p_value <= self.alpha

    def list_lines(self) -> Iterator[tuple[str, str]]:
        """Names and texts of its lines in a report."""
        is_stored = self.level == "stored"
        what = "answers that differ" if is_stored else "shift of the first token"
        each = f"{self.before} stored and {self.after} new" if self.before else f"{self.after} reference"
        of = f"{self.questions:,} of {self.available:,}"
        yield "stored answers" if is_stored else "border prompts", f"{of} questions, {each} answers to each"
        for reason, count in self.unusable.items():
            yield "", f"{count:,} others are left out: {reason}"
        rule = f"p ≤ {self.alpha:g}" if self.alarm_at is None else f"{self.alarm_at} differ"
        noise = "measured" if self.floor is None else f"{self.floor:.2%}, as given"
        yield "  alarm", f"{rule}; false alarms at most {self.alpha:.2%}; noise {noise}"
        least = "no change" if self.detectable is None else f"{self.detectable:.1%}"
        yield "  can see", f"{what}: {least} with a power of 0.95, {self.shift:.0%} with {self.power:.3f}"
        if self.p_value is not None:
            noise = "" if self.noise is None else f"; noise {self.noise:.1%}"
            interval = f"{self.estimate:.1%} (95 % interval {self.low:.1%} to {self.high:.1%})"
            yield "  saw", f"{what}: {interval}{noise}; p = {self.p_value:.2g}{', a change' * self.is_off}"
        if self.failed:
            yield "", f"{self.failed:,} new answers failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck(Hinting):
    """Whether a model still answers as before. `print` shows it as a table.

    `outcome` is "planned" for a dry run; "same" if nothing has changed that the tests can see; "suspected"
    if a difference has not persisted for `persistence` days yet; "changed"; "undecided" if nothing could be
    compared. `draw` is the number of the recheck: the draw of its first answers, and the seed of its choice
    of questions. With the same number it continues, and takes from the cache what was answered. `time` is a
    Unix time. `before` and `after` have the values of `served_by`, and how many answers had each. `days_off`
    are the days in a row with a significant difference.

    >>> from llm_provider import Client
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator, Client(base_url=simulator.url("openai"), max_tokens=200) as client:
    ...     answers = client.call_many("gpt-6.1-sol", [f"What is {number} + 1?" for number in range(100)])
    ...     report = client.recheck(answers, floor=0.001, budget=0.10)
    >>> report.outcome, report.exit_code, report.comparisons[0].questions, report.comparisons[0].alarm_at
    ('same', 0, 93, 2)
    """

    model: str
    outcome: Outcome
    draw: int
    time: float
    before: Served
    after: Served
    comparisons: tuple[Comparison, ...]
    days_off: int = 0
    persistence: int = 1
    cost: Cost

    @property
    def exit_code(self) -> int:
        """That of `llm-provider recheck`: 1 if something has changed, 2 if it cannot be decided, else 0."""
        return {"changed": 1, "undecided": 2}.get(self.outcome, 0)

    @property
    def new_identifiers(self) -> dict[str, list[str]]:
        """By field of `served_by`, the values that no answer had before."""
        fields = self.before.keys() & self.after.keys()
        new = {name: sorted(self.after[name].keys() - self.before[name].keys()) for name in sorted(fields)}
        return {name: values for name, values in new.items() if values}

    @property
    def is_other_model(self) -> bool:
        """Whether the new identifiers say that something else answers."""
        return any(name in _IDENTITY for name in self.new_identifiers)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready values."""
        fields: dict[str, Any] = json_value({**asdict(self), "new_identifiers": self.new_identifiers})
        return fields

    def __str__(self) -> str:
        lines = (f"\n  {name:16}{text}".rstrip() for name, text in self._list_lines())
        return "".join([f"{self.model}: {self.outcome}", *lines])

    def _repr_html_(self) -> str:
        from .. import _html

        rows = ([_html.words(name), _html.words(text)] for name, text in self._list_lines())
        return _html.block(_html.table((), rows, caption=f"{self.model}: {self.outcome}"))

    def _list_lines(self) -> Iterator[tuple[str, str]]:
        for name, values in self.new_identifiers.items():
            change = ": something else answers" if name in _IDENTITY else ""
            yield name, f"{', '.join(values)}, before {', '.join(sorted(self.before[name]))}{change}"
        for comparison in self.comparisons:
            yield from comparison.list_lines()
        if self.days_off and self.persistence > 1:
            yield "days off", f"{self.days_off} in a row; an alarm needs {self.persistence}"
        expected = Cost.of(comparison.expected_cost for comparison in self.comparisons)
        yield "cost", f"about {expected}" if self.outcome == "planned" else str(self.cost)
        yield "draw", str(self.draw)
