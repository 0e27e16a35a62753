"""The arguments of `decide` and its result: `DecideRequest`, `Decision` and `Decisions`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from ..._core.errors import READERS, RequestError
from ..._core.hints import Hinting
from ..._core.json_values import JSONMapping, JSONObject, check_fields, json_value
from ..._core.requests.checks import DecideMethod, ReasoningEffort, number, one_of
from ..._core.requests.parameter_table import CHECKS
from ..._core.requests.request import (
    SHARED,
    CommonArguments,
    Request,
    check_model_name,
    check_parameters,
    seal,
)
from ..._core.runtime.frozen import with_late_field
from ..._core.types.messages import Message
from ..._core.types.results_table import OtherResult
from ..._core.types.score_values import list_scores
from ..._core.types.usage import RowLabel, ServedBy, Timing, Usage, cost_text
from .questions import Kind, Question, read_questions

if TYPE_CHECKING:
    from ..._core.requests.parameters import DecideParameters

DEFAULTS = frozenset(SHARED) - {"in_batch", "extra_body"}
"""The defaults of a client that `decide` uses. The fields in `extra_body` belong to one endpoint."""

_MOST_DRAWS = 1_000
_DEFAULT_DRAWS = 10


def _check_pack(name: str, value: object) -> int | bool:
    if isinstance(value, bool):
        return value
    most: int = number(1, 1_000, whole=True)(name, value)  # type: ignore[assignment]  # a whole number
    return most


_CHECKS = {name: CHECKS[name] for name in {*SHARED, "reasoning_effort"} - {"in_batch"}} | {
    "method": one_of(DecideMethod),
    "draws": number(1, _MOST_DRAWS, whole=True),
    "pack": _check_pack,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideRequest(CommonArguments):
    """One call of `decide`; `DecideRequest.build` is the only way to make one."""

    model: str
    messages: tuple[Message, ...]
    inputs: tuple[Question, ...]
    """The questions, by the name that the texts of other operations have."""
    method: DecideMethod = "native"
    draws: int | None = None
    pack: int | bool = True
    reasoning_effort: ReasoningEffort | None = None
    structure: Any = None
    """The pydantic model that asked the questions; None for other questions."""

    max_tool_rounds: ClassVar[None] = None
    options: ClassVar[None] = None

    @classmethod
    def build(
        cls, model: str, inputs: object, parameters: DecideParameters, function: str = "decide"
    ) -> DecideRequest:
        """Check and normalise the arguments of a function. `inputs` are the input and the questions."""
        seal(parameters)
        check_model_name(model)
        checked = check_parameters(function, _CHECKS, cast("JSONMapping", parameters))
        given, questions = cast("tuple[Any, Any]", inputs)
        if isinstance(given, (str, list, tuple)) and not (given.strip() if isinstance(given, str) else given):
            raise RequestError("input is empty: give a text or a list of messages to ask about")
        method = checked.get("method", "native")
        for name, needed in (("draws", ("sampled",)), ("reasoning_effort", ("sampled", "logprobs"))):
            if name in checked and method not in needed:
                raise RequestError(f"{name} belongs to method={' or '.join(map(repr, needed))}: leave it out")
        if method != "native" and checked.get("pack"):
            raise RequestError(f"pack: method={method!r} asks each question alone: leave it out")
        if method == "sampled":
            checked.setdefault("draws", _DEFAULT_DRAWS)
        return cls(
            model=model,
            messages=Request.build(model, given, {}, function).messages,
            inputs=read_questions(questions),
            structure=questions if isinstance(questions, type) else None,
            **checked,
        )

    def make_chat(self, messages: tuple[Message, ...], **parameters: Any) -> Request:
        """A call of a chat with the parameters that both have."""
        shared = {name: getattr(self, name) for name in SHARED if name != "in_batch"}
        if self.reasoning_effort is not None:
            parameters["reasoning_effort"] = self.reasoning_effort
        return Request(model=self.model, messages=messages, **shared, **parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Hinting):
    """The answer to one question. What its kind of question does not have is None.

    Attributes:
        name: The name of the question.
        kind: "predicate", "choice" or "score".
        instructions: What was asked.
        method: "native", "logprobs" or "sampled": how the probabilities were found.
        probability: How likely the statement of a predicate is true.
        choice: The most likely option of a choice.
        score: The expected level of a score, where the lowest level is 0.
        confidence: The probability of the most likely answer.
        probabilities: The probability of each option, by its text; "true" and "false" of a predicate.
        value: The answer in Python: True or False, the option as it was given, or the score.
        refusal: Why the model did not answer, such as "refusal"; None if it did.
        asked_with: How many other questions were in the same request.
        request: The digest of that request. Questions that were asked together have the same.
        cached: Whether it came from the cache.
        mass: With "logprobs", the probability of all options together before they were made to add up to 1.
        draws: With "sampled", the answers that were counted.
        intervals: With "sampled", the Wilson interval of each probability at 95 %.
    """

    name: str
    kind: Kind
    instructions: str
    method: str = "native"
    probability: float | None = None
    choice: str | None = None
    score: float | None = None
    confidence: float | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    value: Any = field(default=None, repr=False, compare=False)
    refusal: str | None = None
    asked_with: int = 0
    request: str | None = field(default=None, repr=False)
    cached: bool = False
    mass: float | None = None
    draws: int | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Decision({self.name!r}, {self.describe()})"

    def describe(self) -> str:
        """The answer for people.

        >>> Decision(name="polite", kind="predicate", instructions="…", probability=0.9).describe()
        '0.900'
        """
        if self.refusal is not None:
            return f"refused: {self.refusal}"
        if self.kind == "choice":
            return f"{self.choice} ({self.confidence or 0.0:.3f})"
        return f"{(self.probability if self.kind == 'predicate' else self.score) or 0.0:.3f}"

    def to_dict(self) -> JSONObject:
        """The decision as JSON-ready values, from which `from_dict` makes an equal one.

        >>> polite = Decision(name="polite", kind="predicate", instructions="…", probability=0.9)
        >>> Decision.from_dict(polite.to_dict()) == polite
        True
        """
        plain = asdict(self)
        del plain["value"]
        return plain

    @classmethod
    def from_dict(cls, entries: JSONMapping) -> Decision:
        """The decision that `to_dict` wrote. The `value` of a choice is the text of its option."""
        known = dict(check_fields(entries))
        known["intervals"] = {name: tuple(pair) for name, pair in known.get("intervals", {}).items()}
        value = known.get("choice", known.get("score"))
        if known["kind"] == "predicate" and known.get("probability") is not None:
            value = known["probability"] >= 0.5
        return cls(**known, value=known.get("score") if known["kind"] == "score" else value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions(OtherResult, Hinting):
    """The answers to some questions about one input, in the order of the questions.

    `len()` and iteration work on `decisions`; an index is a position or the name of a question. `cost`,
    `cost_source`, `price`, `usage`, `cached`, `timing` and `failures` are as for `Embeddings`: sums over all
    questions. `metadata` belongs to the input in its batch. `served_by` is who answered the first question.
    `parsed` is an instance of the pydantic model that asked the questions; None without one, or if the model
    refused a question.

    >>> from llm_provider import Usage
    >>> polite = Decision(name="polite", kind="predicate", instructions="…", probability=0.9)
    >>> decisions = Decisions(input="Hi!", decisions=(polite,), usage=Usage(), model="m", provider="p",
    ...                       cost=0.0)
    >>> decisions
    Decisions(polite=0.900, model='m', $0.00)
    >>> decisions["polite"].probability
    0.9
    """

    input: str | list[Message] | None
    decisions: tuple[Decision, ...]
    parsed: Any = field(default=None, repr=False, compare=False)
    served_by: ServedBy | None = field(default=None, repr=False)
    metadata: Any = None
    row_label: RowLabel | None = field(default=None, repr=False, compare=False)
    cache_keys: tuple[str | None, ...] = field(default=(), repr=False, compare=False)
    """The key of the cache entry of each distinct question; None where nothing was stored."""

    @property
    def prompt(self) -> Any:
        """The input, by the name that it has in other results."""
        return self.input

    @property
    def asked_together(self) -> tuple[tuple[str, ...], ...]:
        """The names of the questions in each request, also of requests of earlier calls."""
        groups: dict[object, list[str]] = {}
        for index, decision in enumerate(self.decisions):
            groups.setdefault(decision.request or index, []).append(decision.name)
        return tuple(map(tuple, groups.values()))

    def list_rows(self) -> list[dict[str, Any]]:
        """The columns that the row of each question has for itself in a table."""
        return [
            {
                "question": each.name,
                "text": each.describe(),
                **{name: getattr(each, name) for name in _COLUMNS},
                "probabilities": json.dumps(dict(each.probabilities), ensure_ascii=False),
                **{name: value for name in ("mass", "draws") if (value := getattr(each, name)) is not None},
                **(
                    {"intervals": json.dumps(dict(each.intervals), ensure_ascii=False)}
                    if each.intervals
                    else {}
                ),
            }
            for each in self.decisions
        ]

    def row_text(self, row: Mapping[str, Any]) -> str:
        """What a person reads of the row of a question."""
        return f"{row['question']}: {row['text']}"

    def to_dict(self) -> JSONObject:
        """The decisions as JSON-ready values, from which `from_dict` makes equal ones."""
        plain = asdict(self)
        del plain["parsed"]
        own = {
            "decisions": [each.to_dict() for each in self.decisions],
            "metadata": json_value(self.metadata),
            "usage": json_value(self.usage),
        }
        return plain | own | list_scores(self)

    @classmethod
    def from_dict(cls, entries: JSONMapping) -> Decisions:
        """The decisions that `to_dict` wrote."""
        readers: JSONObject = {
            "decisions": lambda each: tuple(map(Decision.from_dict, each)),
            "timing": lambda timing: Timing(**timing),
            "served_by": lambda served_by: ServedBy(**served_by),
            "cache_keys": tuple,
            **READERS,
        }
        return cls(**{
            name: value if value is None or name not in readers else readers[name](value)
            for name, value in check_fields(entries).items()
        })  # fmt: skip

    def __len__(self) -> int:
        return len(self.decisions)

    def __iter__(self) -> Iterator[Decision]:
        return iter(self.decisions)

    def __getitem__(self, which: int | str) -> Decision:
        if not isinstance(which, str):
            return self.decisions[which]
        for decision in self.decisions:
            if decision.name == which:
                return decision
        raise KeyError(f"no question has the name {which!r}; names: {', '.join(d.name for d in self)}")

    def __repr__(self) -> str:
        texts = [f"{each.name}={each.describe()}" for each in self.decisions[:_SHOWN]]
        more = [f"{len(self) - _SHOWN} more"] if len(self) > _SHOWN else []
        return f"Decisions({', '.join([*texts, *more])}, model={self.model!r}, {cost_text(self)})"


_SHOWN = 4
_COLUMNS = (
    "kind", "probability", "choice", "score", "confidence", "refusal", "method", "asked_with", "cached"
)  # fmt: skip

with_late_field(Decisions, "served_by")


def read_entry(payload: JSONMapping, reply: JSONMapping, shared: JSONMapping) -> Decisions:
    """The decision in a cache entry, whose question has the input. `shared` are the other fields."""
    known: Any = payload
    decision = {
        "name": "q1",
        "instructions": known["question"]["instructions"],
        **cast("Any", reply)["decision"],
    }
    return Decisions(
        input=known["input"],
        decisions=(Decision.from_dict(decision),),
        usage=Usage(**cast("Any", reply["usage"])),
        **cast("Any", shared),
    )
