"""The wire format of Gemini's ``decisions``."""

from __future__ import annotations

from typing import Any

from .gemini import refuse_length, refuse_rate, reject, write_error, write_error_frame, write_limit_headers
from .openai_decisions import MOST_CHOICES, REFUSED, draw, list_texts
from .wire_format import Completion, Problem, Prompt, Request
from .wire_format import stream_nothing as stream

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

MAX_QUESTIONS = 1000


def read(request: Request) -> Prompt | Problem:
    """Understand a request, whose questions are an object by their names."""
    model, given, questions = (request.body.get(name) for name in ("model", "input", "questions"))
    if not isinstance(model, str) or not model.startswith("models/"):
        return Problem("* CreateDecisionRequest.model: unexpected model name format")
    if not given or not isinstance(given, (str, list, dict)):
        return Problem("* CreateDecisionRequest.input: input is not specified")
    if not isinstance(questions, dict) or not 0 < len(questions) <= MAX_QUESTIONS:
        return Problem(f"* CreateDecisionRequest.questions: must have from 1 to {MAX_QUESTIONS} questions")
    for name, question in questions.items():
        wrong = not question.get("instructions") or question.get("type") not in ("noul", "choice", "score")
        if wrong or (question["type"] != "noul" and not 2 <= len(question["criteria"]) <= MOST_CHOICES):
            return Problem(f"* CreateDecisionRequest.questions[{name}]: invalid question")
    texts = list(list_texts([given, *questions.values()]))
    return Prompt(
        model=model.removeprefix("models/"), text=texts[0] if texts else "",
        characters=sum(map(len, texts)), samples=0, request=request,
    )  # fmt: skip


def reply(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """A ``CreateDecisionResponse``."""
    body, tokens = prompt.request.body, completion.usage.input_tokens
    usage = {"total_input_tokens": tokens, "total_output_tokens": 0, "total_tokens": tokens}
    if any(REFUSED in question["instructions"] for question in body["questions"].values()):
        return {"prompt_feedback": {"block_reason": "safety"}, "usage": usage}
    answers = {name: _answer(body["input"], question) for name, question in body["questions"].items()}
    return {"answers": answers, "usage": usage}


def _answer(given: Any, question: Any) -> dict[str, Any]:
    kind, criteria = question["type"], question.get("criteria")
    if kind == "noul":
        noul = draw(given, question, (True, False))[0]
        return {"type": kind, "noul": noul, "confidence": max(noul, 1 - noul)}
    odds = draw(given, question, criteria)
    names = list(criteria) if kind == "choice" else [str(index) for index in range(len(criteria))]
    answer = {
        "type": kind, "confidence": max(odds), "probabilities": dict(zip(names, odds, strict=True))
    }  # fmt: skip
    if kind == "choice":
        return {**answer, "choice": names[odds.index(max(odds))]}
    score = sum(index * p for index, p in enumerate(odds))
    return {**answer, "score": score, "legend": dict(zip(names, criteria, strict=True))}
