"""The wire format of OpenAI's ``decisions``."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import orjson

from .openai_chat import (
    refuse_length,
    refuse_rate,
    reject,
    write_error,
    write_error_frame,
    write_limit_headers,
)
from .wire_format import Completion, Problem, Prompt, Request
from .wire_format import stream_nothing as stream

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error",
    "write_error_frame", "write_limit_headers",
]  # fmt: skip

MAX_QUESTIONS = 400
MOST_CHOICES = 255
_KINDS = {"predicate": None, "choice": ("choices", "value"), "score": ("levels", "label")}
REFUSED = "refuse this question"
"""Instructions with these words are answered with a refusal."""


def read(request: Request) -> Prompt | Problem:
    """Understand a request, whose questions are a list."""
    model, given, questions = (request.body.get(name) for name in ("model", "input", "questions"))
    if not isinstance(model, str) or not model:
        return Problem("you must provide a model parameter", parameter="model")
    if not given or not isinstance(given, (str, list)):
        return Problem("Invalid value for 'input'.", parameter="input")
    if not isinstance(questions, list) or not 0 < len(questions) <= MAX_QUESTIONS:
        return Problem(f"'questions' must have from 1 to {MAX_QUESTIONS} items.", parameter="questions")
    for index, question in enumerate(questions):
        problem = _find_problem(question)
        if problem:
            return Problem(f"Invalid 'questions[{index}]': {problem}.", parameter=f"questions[{index}]")
    texts = list(list_texts([given, questions]))
    return Prompt(
        model=model, text=texts[0] if texts else "", characters=sum(map(len, texts)), samples=0,
        request=request,
    )  # fmt: skip


def _find_problem(question: Any) -> str:
    kind = question.get("type")
    if kind not in _KINDS:
        return "unknown type"
    if not question.get("instructions"):
        return "instructions are missing"
    fields = _KINDS[kind]
    if fields is None:
        return ""
    options = [option[fields[1]] for option in question[fields[0]]]
    if not 2 <= len(options) <= MOST_CHOICES or len(set(options)) < len(options):
        return f"{fields[0]} must be from 2 to {MOST_CHOICES} unique ones"
    return ""


def list_texts(value: Any) -> Iterator[str]:
    """The texts in a value, without those that name what a field is, and without the data of images."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in ("type", "role", "image_url", "data", "mime_type", "call_id"):
                yield from list_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from list_texts(inner)


def draw(given: Any, question: Any, options: Sequence[Any]) -> list[float]:
    """A probability for each option, which depend on the input and the question alone."""
    digest = hashlib.sha256(orjson.dumps([given, question], option=orjson.OPT_SORT_KEYS)).digest()
    weights = [1 + digest[index % len(digest)] + index // len(digest) for index in range(len(options))]
    return [weight / sum(weights) for weight in weights]


def reply(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """A ``Decision`` with the answers in the order of the questions."""
    body, usage = prompt.request.body, completion.usage
    return {
        "answers": [_answer(body["input"], question) for question in body["questions"]],
        "model": completion.model,
        "usage": {
            "input_tokens": usage.input_tokens,
            "input_tokens_details": {"cache_write_tokens": 0, "cached_tokens": 0},
            "output_tokens": 0,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage.input_tokens,
        },
    }


def _answer(given: Any, question: Any) -> dict[str, Any]:
    kind, name = question["type"], question.get("name")
    if REFUSED in question["instructions"]:
        return {"type": "refusal", "name": name}
    fields = _KINDS[kind]
    if fields is None:
        return {"type": kind, "name": name, "probability": draw(given, question, (True, False))[0]}
    options = [option[fields[1]] for option in question[fields[0]]]
    odds = draw(given, question, options)
    answer = {"type": kind, "name": name, "confidence": max(odds)}
    if kind == "choice":
        listed = [{"value": option, "probability": p} for option, p in zip(options, odds, strict=True)]
        return {**answer, "choice": options[odds.index(max(odds))], "probabilities": listed}
    levels = [
        {"value": index, "label": option, "probability": p}
        for index, (option, p) in enumerate(zip(options, odds, strict=True))
    ]
    return {**answer, "score": sum(index * p for index, p in enumerate(odds)), "probabilities": levels}
