"""What a recheck can see, and what it saw: `Recheck`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, TypeAlias

from ..._core.json_values import json_value
from ..._core.types.response import Result
from ..._core.types.results import Results
from ..._core.types.usage import Cost
from .statistics import ALPHA

Served: TypeAlias = Mapping[str, list[str]]
"""The values of each field of `served_by`."""

_IDENTITY = ("host", "model", "snapshot", "quantization", "engine")
"""Fields whose new values mean that something else answers. Others, such as fingerprints, may alternate."""

_WORDS = {
    "stored": ("of answers differ", "are not stored, or cannot be asked as they were"),
    "border": ("shift of the first token", "have one first token"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """Whether a model still answers as before: what a test can see, and what it saw. `print` shows a table.

    `outcome` is "planned" for a dry run; "same" if nothing has changed that the test can see; "suspected" if
    a difference has not persisted for `persistence` days; "changed"; "reference" if the answers are those
    with which later ones are compared; "undecided" if nothing was compared.

    `questions` of those `available` are asked, with so many new `answers` to each; `left_out` cannot be.
    Shifts are shares of answers that differ, and those of the first token's distribution for border prompts.
    `floor` is the known shift without a change; None if it is measured. `detectable` is the smallest shift
    that is seen with a power of 0.95. `expected_cost` is in USD. With the same `draw`, a recheck continues.

    `answered` questions have all of their answers. `estimate` is the shift that was seen, and `noise` the
    share of questions whose new answers differ. A `p_value` up to 0.01 is a difference, which `days_off` days
    in a row have. `before` and `after` have the values of `served_by`, and `new` those that were not there
    before. `failed` says how many of the new answers are errors, and why the first one is.
    """

    model: str
    kind: Literal["stored", "border"]
    outcome: Literal["planned", "same", "suspected", "changed", "reference", "undecided"] = "planned"
    draw: int
    time: float
    available: int = 0
    left_out: int = 0
    questions: int = 0
    answers: int = 0
    floor: float | None = None
    detectable: float | None = None
    expected_cost: float | None = None
    answered: int = 0
    noise: float | None = None
    estimate: float | None = None
    p_value: float | None = None
    before: Served = field(default_factory=dict)
    after: Served = field(default_factory=dict)
    new: Served = field(default_factory=dict)
    days_off: int = 0
    persistence: int = 1
    cost: float = 0.0
    failed: str = ""

    @property
    def is_off(self) -> bool:
        """Whether the difference is significant."""
        return self.p_value is not None and self.p_value <= ALPHA

    def conclude(self, before: Served, results: Results[Result], days_off: int | None = None) -> Recheck:
        """The report after the answers; `LLMError`, the first one, if all calls failed."""
        if results and not results.ok:
            raise results.errors[0]
        days_off = int(self.is_off) if days_off is None else days_off
        after = list_served(results)
        pairs = ((name, sorted({*after[name]} - {*before[name]})) for name in before.keys() & after.keys())
        new = {name: values for name, values in sorted(pairs) if values}
        report = replace(self, before=before, after=after, new=new, days_off=days_off, cost=results.cost)
        if results.errors:
            share = f"{len(results.errors):,} of {len(results):,} new answers"
            report = replace(report, failed=f"{share}; the first: {results.errors[0]}")
        if new.keys() & {*_IDENTITY} or (self.is_off and days_off >= self.persistence):
            return replace(report, outcome="changed")
        if self.is_off:
            return replace(report, outcome="suspected")
        is_blind = self.p_value is None or self.detectable is None
        return replace(report, outcome="undecided" if is_blind else "same")

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready values."""
        fields: dict[str, Any] = json_value(asdict(self))
        return fields

    def __str__(self) -> str:
        what, reason = _WORDS[self.kind]
        lines = [(name, f"{values}, before {self.before[name]}") for name, values in self.new.items()]
        others = f"; {self.left_out:,} others {reason}" if self.left_out else ""
        share = f"{self.questions:,} of {self.available:,} prompts"
        lines += [(self.kind, f"{share}, new answers to each: {self.answers}{others}")]
        noise = "measured" if self.floor is None else f"{self.floor:.2%}, as given"
        least = "no change" if self.detectable is None else f"{self.detectable:.1%} {what}"
        rates = f"with a power of 0.95; false alarms at most {ALPHA:.0%}; noise {noise}"
        lines += [("can see", f"{least}, {rates}")]
        if self.p_value is not None:
            noise = "" if self.noise is None else f"; noise {self.noise:.1%}"
            days = f"; {self.days_off} of {self.persistence} days" if self.persistence > 1 else ""
            rates = f"{self.answered:,} answered; p = {self.p_value:.2g}{noise}{days}"
            lines += [("saw", f"{self.estimate:.1%} {what}; {rates}")]
        lines += [("failed", self.failed)] * bool(self.failed)
        cost = f"about {Cost.of([self.expected_cost])}" if self.outcome == "planned" else str(self.cost)
        lines += [("cost", cost), ("draw", str(self.draw))]
        return f"{self.model}: {self.outcome}" + "".join(f"\n  {name:12}{text}" for name, text in lines)


def list_served(results: Results[Any]) -> Served:
    """The values of each field of `served_by`, without those of the request."""
    served = [response.served_by.to_dict() for response in results.ok if response.served_by]
    names = {name for each in served for name in each} - {"request_id"}
    return {name: sorted({each[name] for each in served if name in each}) for name in sorted(names)}
