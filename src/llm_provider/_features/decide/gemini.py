"""Google's `POST /decisions`, by the types of google-genai 3.6. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.errors import APIResponseValidationError
from ..._core.formats.gemini.decode import error_of
from ..._core.formats.gemini.encode import choose_version, resource
from ..._core.formats.gemini.messages import encode_contents
from ..._core.formats.shared.replies import count, expect_dict, find_counts, part
from ..._core.json_values import JSONObject
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from ..._core.types.usage import Usage
from .conversation import flatten
from .native import Judgement, judge
from .questions import Question

MOST_QUESTIONS = 1_000
LABELS: tuple[str, ...] = ()

_KINDS = {"image": "image", "image_url": "image", "audio": "audio", "video": "video"}


def serves(target: Target) -> bool:
    """Whether a server has the endpoint. Vertex AI has not."""
    return target.provider == "gemini" and target.route.cloud is None


def operation(target: Target) -> str:
    return f"{choose_version(target.base_url) or 'v1beta'}/decisions"


def encode_input(request: Request, target: Target) -> Any:
    """The input as content blocks. They have no roles, so a conversation becomes text with its roles."""
    parts = flatten(request.messages)
    if len(parts) == 1 and parts[0]["type"] == "text":
        return parts[0]["text"]
    return [_write_block(request.model, each) for each in parts if each.get("text") != ""]


def _write_block(model: str, piece: JSONObject) -> JSONObject:
    if piece["type"] == "text":
        return {"type": "text", "text": piece["text"]}
    alone = Request(model=model, messages=({"role": "user", "content": [piece]},))
    (content,) = encode_contents(alone, signed=False, media_in_results=False)["contents"]
    (encoded,) = content["parts"]
    inline = encoded.get("inlineData")
    data = inline or encoded["fileData"]
    kind = str(data.get("mimeType") or piece["type"]).partition("/")[0]
    # A URL need not tell the type of what it holds.
    block: JSONObject = {"type": _KINDS.get(kind, "document")}
    block |= {"data": data["data"]} if inline else {"uri": data["fileUri"]}
    return block | ({"mime_type": data["mimeType"]} if data.get("mimeType") else {})


def write(target: Target, given: Any, questions: Sequence[Question]) -> JSONObject:
    """The payload of one request. Its names of questions are numbers: the user's are never sent."""
    named = {str(number): _write_question(each) for number, each in enumerate(questions, start=1)}
    return {"model": resource(target.model), "input": given, "questions": named}


def _write_question(question: Question) -> JSONObject:
    written: JSONObject = {"type": question.kind, "instructions": question.instructions}
    if question.kind == "predicate":
        return written | {"type": "noul"}
    described = dict(zip(question.options, question.descriptions, strict=True))
    if question.kind == "choice":
        return written | {"criteria": described}
    # A level has no label of its own here.
    levels = [f"{label}: {means}" if means else label for label, means in described.items()]
    return written | {"criteria": levels}


def read(reply: Any, questions: Sequence[Question]) -> list[Judgement]:
    """What is found for each question; `APIResponseValidationError` if one of them is not answered."""
    reply = expect_dict(reply, "answer")
    if reply.get("error"):
        raise error_of(reply, status=200)
    answers = reply.get("answers")
    reason = part(reply, "prompt_feedback").get("block_reason")
    if reason and not answers:
        # The whole input was blocked, and no question of it has an answer.
        return [Judgement(refusal=str(reason))] * len(questions)
    names = [str(number) for number in range(1, len(questions) + 1)]
    if not isinstance(answers, dict) or sorted(answers) != sorted(names):
        listed = len(answers) if isinstance(answers, dict) else "no"
        raise APIResponseValidationError(f"the reply has {listed} answers to {len(questions)} questions")
    return [
        _read_answer(expect_dict(answers[name], "answer"), question)
        for name, question in zip(names, questions, strict=True)
    ]


def _read_answer(answer: JSONObject, question: Question) -> Judgement:
    """The judgement in an answer, which has other names for what both endpoints tell."""
    if answer.get("type") == "noul":
        answer = {**answer, "type": "predicate", "probability": answer.get("noul")}
    probabilities = part(answer, "probabilities")
    if question.kind == "score":
        levels = {str(index): level for index, level in enumerate(question.options)}
        probabilities = {levels.get(name, name): value for name, value in probabilities.items()}
    return judge(answer, dict(probabilities), question)


def usage(reply: Any) -> Usage | None:
    """The usage that a reply reports."""
    counts = find_counts(reply, "usage")
    if counts is None:
        return None
    thought = count(counts, "total_thought_tokens")
    return Usage(
        input_tokens=count(counts, "total_input_tokens") + count(counts, "total_tool_use_tokens"),
        output_tokens=count(counts, "total_output_tokens") + thought,
        cache_read_input_tokens=count(counts, "total_cached_tokens"),
        reasoning_output_tokens=thought,
    )
