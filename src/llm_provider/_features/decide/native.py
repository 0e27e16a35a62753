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
    """The shape of the module of an adapter: pure functions between questions and replies.

    `LABELS` are fields of `extra_body` that no key has. `operation` is the address below the server's.
    `encode_input` raises a `RequestError` for what the endpoint does not take, and `read` an
    `APIResponseValidationError` if one of the questions is not answered.
    """

    MOST_QUESTIONS: int
    LABELS: tuple[str, ...]

    def serves(self, target: Target) -> bool: ...
    def operation(self, target: Target) -> str: ...
    def encode_input(self, request: Request, target: Target) -> Any: ...
    def write(self, target: Target, given: Any, questions: Sequence[Question]) -> JSONObject: ...
    def read(self, reply: Any, questions: Sequence[Question]) -> list[Judgement]: ...
    def usage(self, reply: Any) -> Usage | None: ...


def judge(answer: JSONObject, probabilities: JSONObject, question: Question) -> Judgement:
    """The judgement in an answer, whose probabilities are by option; an error unless it is a whole one."""
    if answer.get("type") != question.kind:
        raise APIResponseValidationError(f"a {question.kind} is answered by {answer.get('type')!r:.40}")
    if question.kind == "predicate":
        yes = read_number(answer, "probability")
        confidence = read_number(answer, "confidence") if "confidence" in answer else max(yes, 1 - yes)
        both = dict(zip(PREDICATE_OPTIONS, (yes, 1 - yes), strict=True))
        return Judgement(probability=yes, confidence=confidence, probabilities=both)
    if probabilities.keys() != set(question.options):
        named = ", ".join(map(str, probabilities.keys() ^ set(question.options)))
        raise APIResponseValidationError(f"the probabilities are not those of the options: {named:.80}")
    by_option = {option: read_number(probabilities, option) for option in question.options}
    confidence = read_number(answer, "confidence")
    if question.kind == "score":
        score = read_number(answer, "score", most=len(question.options) - 1)
        return Judgement(score=score, confidence=confidence, probabilities=by_option)
    choice = answer.get("choice")
    if choice not in question.options:
        raise APIResponseValidationError(f"the reply chose {choice!r:.60}, which is no option")
    return Judgement(choice=choice, confidence=confidence, probabilities=by_option)


def read_number(container: Mapping[str, Any], name: str, most: float = 1.0) -> float:
    """A number from 0 to `most`, and no other one: a sum over wrong values looks like a probability."""
    value: Any = container.get(name)
    if type(value) not in (int, float) or not 0 <= value <= most:
        raise APIResponseValidationError(f"{name} is {value!r:.40}, and no number from 0 to {most:g}")
    return float(value)


def from_weights(question: Question, weights: Sequence[float], **more: Any) -> Judgement:
    """The judgement by weights of the options, which are made to add up to 1."""
    total = math.fsum(weights)
    shares = [weight / total for weight in weights]
    best = max(range(len(shares)), key=shares.__getitem__)
    answer: JSONObject = {"confidence": shares[best]}
    if question.kind == "predicate":
        answer["probability"] = shares[0]
    elif question.kind == "choice":
        answer["choice"] = question.options[best]
    else:
        answer["score"] = math.fsum(level * share for level, share in enumerate(shares))
    return Judgement(probabilities=dict(zip(question.options, shares, strict=True)), **answer, **more)
