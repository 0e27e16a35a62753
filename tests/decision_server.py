"""A server with the endpoints for decisions of OpenAI and Google, by the types of their SDKs.

`/v1/systemone`, at OpenRouter `/alpha/decisions`, is the endpoint of the hosts that litellm reaches, by
`litellm/types/decisions.py`.

A probability is a function of the input and the question, so that every answer can be told from any other.
The server keeps books: each question that it answered, and what it bills by `prices.csv`.
"""

import contextlib
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from counting_server import CountingServer
from sdk_types import checker

INPUT_PRICE = Decimal("0.1") / 1_000_000
"""USD of an input token in both rows of `prices.csv`."""

Fault = tuple[int, Mapping[str, str], Any]


def draw(*what: object, count: int) -> list[float]:
    """Probabilities that add up to about 1, as odd as those of a model."""
    digest = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).digest()
    weights = [1 + digest[index % 32] + index for index in range(count)]
    return [weight / sum(weights) for weight in weights]


class DecisionServer(CountingServer):
    """Answers questions and keeps books. Attributes may be changed while it serves."""

    def __init__(self) -> None:
        super().__init__(self.answer)
        self.asked: Counter[tuple[str, str]] = Counter()
        """Answered questions by their input and question."""
        self.bodies: list[Any] = []
        self.tokens = 0
        self.fault: Callable[[int, Any], Fault | None] = lambda number, body: None
        """The failure of the request with a number, in place of an answer."""
        self.refuses: Callable[[Any], bool] = lambda question: False
        self.validates = True
        self._lock = threading.Lock()

    @property
    def bill(self) -> Decimal:
        return self.tokens * INPUT_PRICE

    def answer(self, path: str, headers: Mapping[str, str], body: Any) -> Fault:
        with self._lock:
            number = len(self.bodies)
            self.bodies.append(body)
        if (fault := self.fault(number, body)) is not None:
            return fault
        systemone = path.endswith(("/v1/systemone", "/alpha/decisions"))
        google = path.endswith("v1beta/decisions") or systemone
        assert google or path.endswith("/v1/decisions"), path
        if systemone:
            body = {**body, "input": [body["state"], body.get("images")]}
        elif self.validates:
            (check_google if google else check_openai)(body)
        tokens = len(json.dumps(body)) // 4
        questions = body["questions"]
        with self._lock:
            self.tokens += tokens
            for question in questions.values() if google else questions:
                self.asked[json.dumps(body["input"]), json.dumps(question, sort_keys=True)] += 1
        reply = (self._google if google else self._openai)(body, tokens)
        if systemone:
            reply |= {"model": body["model"], "usage": {"input_tokens": tokens, "output_tokens": 0}}
        return 200, {}, reply

    def _openai(self, body: Any, tokens: int) -> Any:
        return {
            "answers": [self._answer_openai(body["input"], question) for question in body["questions"]],
            "model": body["model"],
            "usage": {
                "input_tokens": tokens,
                "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
                "output_tokens": len(body["questions"]),
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": tokens + len(body["questions"]),
            },
        }

    def _answer_openai(self, given: Any, question: Any) -> Any:
        kind = question["type"]
        if self.refuses(question):
            return {"type": "refusal", "name": None}
        if kind == "predicate":
            return {"type": kind, "name": None, "probability": draw(given, question, count=2)[0]}
        options = [
            each.get("value", each.get("label")) for each in question.get("choices", question.get("levels"))
        ]
        found = draw(given, question, count=len(options))
        confidence = max(found)
        if kind == "choice":
            probabilities = [
                {"value": value, "probability": p} for value, p in zip(options, found, strict=True)
            ]
            best = options[found.index(confidence)]
            return {"type": kind, "name": None, "choice": best, "confidence": confidence,
                    "probabilities": probabilities[::-1]}  # fmt: skip
        levels = [
            {"value": index, "label": label, "probability": p}
            for index, (label, p) in enumerate(zip(options, found, strict=True))
        ]
        score = sum(index * p for index, p in enumerate(found))
        return {"type": kind, "name": None, "score": score, "confidence": confidence, "probabilities": levels}

    def _google(self, body: Any, tokens: int) -> Any:
        usage = {"total_input_tokens": tokens, "total_output_tokens": 0, "total_tokens": tokens}
        if any(map(self.refuses, body["questions"].values())):
            return {"prompt_feedback": {"block_reason": "safety"}, "usage": usage}
        answers = {name: _answer_google(body["input"], each) for name, each in body["questions"].items()}
        # The order of an object's names means nothing.
        return {"answers": dict(reversed(answers.items())), "usage": usage}


def _answer_google(given: Any, question: Any) -> Any:
    kind, criteria = question["type"], question.get("criteria")
    if kind == "noul":
        noul = draw(given, question, count=2)[0]
        return {"type": kind, "noul": noul, "confidence": max(noul, 1 - noul)}
    found = draw(given, question, count=len(criteria))
    confidence = max(found)
    names = list(criteria) if kind == "choice" else [str(index) for index in range(len(criteria))]
    answer = {"type": kind, "confidence": confidence, "probabilities": dict(zip(names, found, strict=True))}
    if kind == "choice":
        return answer | {"choice": names[found.index(confidence)]}
    score = sum(index * p for index, p in enumerate(found))
    return answer | {"score": score, "legend": dict(zip(names, criteria, strict=True))}


def check_openai(body: Any) -> None:
    """Fail for what the SDK's own types do not allow, where the installed SDK has them."""
    with contextlib.suppress(ImportError):
        from openai.types.decision_create_params import DecisionCreateParams

        checker(DecisionCreateParams).validate_python(body)


def check_google(body: Any) -> None:
    """As `check_openai`."""
    with contextlib.suppress(ImportError):
        from google.genai.decisions import CreateDecisionRequest

        CreateDecisionRequest.model_validate(body)


@contextmanager
def serving() -> Iterator[DecisionServer]:
    with DecisionServer() as server:
        yield server
