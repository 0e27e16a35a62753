"""What the two endpoints for decisions have in common: `Judgement`, and the checks of a reply. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..._core.errors import APIResponseValidationError
from ..._core.json_values import JSONObject
from .questions import PREDICATE_OPTIONS, Question

if TYPE_CHECKING:
    from ..._core.requests.request import Request
    from ..._core.requests.routing import Target
    from ..._core.types.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The answer to one question as a reply has it, in the words of `Decision`."""

    probability: float | None = None
    choice: str | None = None
    score: float | None = None
    confidence: float | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    refusal: str | None = None
    mass: float | None = None
    draws: int | None = None
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)


class DecisionFormat(Protocol):
    """The shape of the module of an adapter. `LABELS` are fields of `extra_body` that no key has."""

    MOST_QUESTIONS: int
    LABELS: tuple[str, ...]

    def serves(self, target: Target) -> bool:
        """Whether a server has the endpoint."""

    def operation(self, target: Target) -> str:
        """Its address below the server's."""

    def encode_input(self, request: Request, target: Target) -> Any:
        """The input that is asked about; `RequestError` for what the endpoint does not take."""

    def write(self, target: Target, given: Any, questions: Sequence[Question]) -> JSONObject:
        """The payload of one request."""

    def read(self, reply: Any, questions: Sequence[Question]) -> list[Judgement]:
        """What is found for each question; `APIResponseValidationError` if one of them is not answered."""

    def usage(self, reply: Any) -> Usage | None:
        """The usage that a reply reports."""

    def tell_model(self, reply: Any) -> str | None:
        """The model that answered; None where the reply does not tell."""


def read_number(container: Mapping[str, Any], name: str, most: float = 1.0) -> float:
    """A number from 0 to `most`, and no other one: a sum over wrong values looks like a probability."""
    value = container.get(name)
    if type(value) not in (int, float) or not 0 <= value <= most:  # type: ignore[operator]  # a number
        raise APIResponseValidationError(f"{name} is {value!r:.40}, and no number from 0 to {most:g}")
    return float(value)  # type: ignore[arg-type]  # as above


def check_probabilities(probabilities: Mapping[str, float], question: Question) -> None:
    """Raise an `APIResponseValidationError` unless each option of a question has a probability."""
    if probabilities.keys() != set(question.options):
        named = ", ".join(sorted(probabilities.keys() ^ set(question.options)))
        raise APIResponseValidationError(f"the probabilities are not those of the options: {named:.80}")


def from_weights(question: Question, weights: Sequence[float], **more: Any) -> Judgement:
    """What is found from weights of the options, which are made to add up to 1."""
    total = math.fsum(weights)
    shares = [weight / total for weight in weights]
    best = max(range(len(shares)), key=shares.__getitem__)
    probabilities = dict(zip(question.options, shares, strict=True))
    answer: JSONObject = {"confidence": shares[best]}
    if question.kind == "predicate":
        answer["probability"] = probabilities[PREDICATE_OPTIONS[0]]
    elif question.kind == "choice":
        answer["choice"] = question.options[best]
    else:
        answer["score"] = math.fsum(level * share for level, share in enumerate(shares))
    return Judgement(probabilities=probabilities, **answer, **more)
