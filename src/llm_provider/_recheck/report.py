"""What a recheck can see, and what it saw: `Recheck`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from .._errors import LLMError
from .._json_values import json_value
from .._types.messages import Prompt
from .._types.response import Response, Result
from .._types.results import Cost, Results
from .statistics import ALPHA

Served: TypeAlias = Mapping[str, list[str]]
"""The values of each field of `served_by`."""

_IDENTITY = ("host", "model", "snapshot", "quantization", "engine")
"""Fields whose new values mean that something else answers. Others, such as fingerprints, may alternate."""


class Ask(Protocol):
    """Asks prompts, like `call_many`."""

    def __call__(self, inputs: Sequence[Prompt], *, draw: int) -> Results[Result]:
        """Ask with the number of a sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recheck:
    """Whether a model still answers as before: what a test can see, and what it saw. `print` shows a table.

    `kind` is "stored" for stored answers, whose shifts are shares of answers that differ, and "border" for
    border prompts, whose shifts are those of the first token's distribution. `outcome` is "planned" for a dry
    run; "same" if nothing has changed that the test can see; "suspected" if a difference has not persisted
    for `persistence` days; "changed"; "undecided" if nothing could be compared.

    `questions` of those `available` are asked, `left_out` cannot be, and `answers` new ones are asked to
    each. `floor` is the known share of answers that differ without a change; None if it is measured.
    `detectable` is the smallest shift that is seen with a power of 0.95, `expected_cost` is in USD. With the
    same `draw`, a recheck continues. `time` is a Unix time.

    `answered` questions have all of their answers, `failed` answers failed. `estimate` is the shift that was
    seen, and `noise` the share of questions whose new answers differ. `p_value` is None if nothing was
    compared; up to 0.01 it is a difference, which `days_off` days in a row have. `before` and `after` have
    the values of `served_by`.

    >>> from llm_provider import Client
    >>> from llm_provider.simulator import Simulator
    >>> sums = [f"What is {number} + 1?" for number in range(100)]
    >>> with Simulator() as simulator, Client(base_url=simulator.url("openai"), max_tokens=200) as client:
    ...     answers = client.call_many("gpt-6.1-sol", sums)
    ...     report = client.recheck("gpt-6.1-sol", answers, floor=0.001, budget=0.10)
    >>> report.outcome, report.exit_code, report.questions, report.p_value
    ('same', 0, 93, 1.0)
    """

    model: str
    kind: Literal["stored", "border"]
    outcome: Literal["planned", "same", "suspected", "changed", "undecided"] = "planned"
    draw: int
    time: float
    available: int
    left_out: int = 0
    questions: int
    answers: int
    floor: float | None = None
    detectable: float | None
    expected_cost: float | None
    answered: int = 0
    failed: int = 0
    noise: float | None = None
    estimate: float | None = None
    p_value: float | None = None
    before: Served = field(default_factory=dict)
    after: Served = field(default_factory=dict)
    days_off: int = 0
    persistence: int = 1
    cost: float = 0.0

    @property
    def is_off(self) -> bool:
        """Whether the difference is significant."""
        return self.p_value is not None and self.p_value <= ALPHA

    @property
    def exit_code(self) -> int:
        """That of `llm-provider recheck`: 1 if something has changed, 2 if it cannot be decided, else 0."""
        return {"changed": 1, "undecided": 2}.get(self.outcome, 0)

    @property
    def new_identifiers(self) -> dict[str, list[str]]:
        """By field of `served_by`, the values that no answer had before."""
        fields = sorted(self.before.keys() & self.after.keys())
        new = {name: sorted({*self.after[name]} - {*self.before[name]}) for name in fields}
        return {name: values for name, values in new.items() if values}

    @property
    def is_other_model(self) -> bool:
        """Whether the new identifiers say that something else answers."""
        return any(name in _IDENTITY for name in self.new_identifiers)

    def conclude(self, before: Served, results: Sequence[Result], days_off: int | None = None) -> Recheck:
        """The report after the answers; `LLMError`, the first one, if all calls failed."""
        errors = [result for result in results if isinstance(result, LLMError)]
        if errors and len(errors) == len(results):
            raise errors[0]
        report = replace(
            self,
            failed=len(errors),
            before=before,
            after=list_served(results),
            days_off=int(self.is_off) if days_off is None else days_off,
            cost=Cost.of(result.cost for result in results),
        )
        is_alarm = report.is_off and report.days_off >= report.persistence
        if report.is_other_model or is_alarm:
            return replace(report, outcome="changed")
        if report.is_off:
            return replace(report, outcome="suspected")
        is_seen = report.p_value is not None and report.detectable is not None
        return replace(report, outcome="same" if is_seen else "undecided")

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-ready values."""
        fields: dict[str, Any] = json_value({**asdict(self), "new_identifiers": self.new_identifiers})
        return fields

    def __str__(self) -> str:
        lines = (f"\n  {name:16}{text}".rstrip() for name, text in self._list_lines())
        return "".join([f"{self.model}: {self.outcome}", *lines])

    def _list_lines(self) -> Iterator[tuple[str, str]]:
        for name, values in self.new_identifiers.items():
            change = ": something else answers" if name in _IDENTITY else ""
            yield name, f"{', '.join(values)}, before {', '.join(self.before[name])}{change}"
        is_stored = self.kind == "stored"
        reason = "have no stored answer" if is_stored else "have one first token"
        others = f"; {self.left_out:,} others {reason}" if self.left_out else ""
        text = f"{self.questions:,} of {self.available:,}, {self.answers} new answers to each{others}"
        yield "stored answers" if is_stored else "border prompts", text
        what = "of answers differ" if is_stored else "shift of the first token"
        noise = "measured" if self.floor is None else f"{self.floor:.2%}, as given"
        least = "no change" if self.detectable is None else f"{self.detectable:.1%} {what}"
        yield "can see", f"{least}, with a power of 0.95; false alarms at most {ALPHA:.0%}; noise {noise}"
        if self.p_value is not None:
            noise = "" if self.noise is None else f"; noise {self.noise:.1%}"
            yield "saw", f"{self.estimate:.1%} {what}; p = {self.p_value:.2g}{noise}"
        if self.failed:
            yield "", f"{self.failed:,} new answers failed"
        if self.days_off and self.persistence > 1:
            yield "days off", f"{self.days_off} in a row; an alarm needs {self.persistence}"
        is_planned = self.outcome == "planned"
        yield "cost", f"about {Cost.of([self.expected_cost])}" if is_planned else str(self.cost)
        yield "draw", str(self.draw)


def list_served(results: Sequence[Result]) -> Served:
    """The values of each field of `served_by`, without those of the request."""
    served = [result.served_by for result in results if isinstance(result, Response)]
    items = {item for each in served if each is not None for item in each.to_dict().items()}
    values: dict[str, list[str]] = {}
    for name, value in sorted(items):
        if name != "request_id":
            values.setdefault(name, []).append(value)
    return values
