"""OpenAI's `POST /decisions`, by the types of openai 3.57. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._core.errors import APIResponseValidationError, RequestError
from ..._core.formats.openai_responses.encode import encode_input as encode_items
from ..._core.formats.shared.replies import expect_dict, find_counts, read_object, read_usage
from ..._core.json_values import JSONObject
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from ..._core.types.usage import Usage
from .native import Judgement, judge
from .questions import Question

MOST_QUESTIONS = 400
LABELS = ("prompt_cache_key", "prompt_cache_options", "safety_identifier")
"""Fields of `extra_body` that do not change an answer, so that no key has them."""

_TEXT_FIELDS = {"input_text": "text", "output_text": "text", "refusal": "refusal"}
_ITEM_FIELDS = {
    "function_call": ("call_id", "name", "arguments", "namespace"),
    "function_call_output": ("call_id", "output"),
    "custom_tool_call": ("call_id", "name", "input", "namespace"),
    "custom_tool_call_output": ("call_id", "output"),
}
"""The fields of each item that are sent: from `decision_create_params.py`, all that change what is judged."""
_NOT_JUDGED = frozenset({"reasoning"})
"""Items of an answer that no one was shown. This endpoint does not take them."""


def serves(target: Target) -> bool:
    """Whether a server has the endpoint: OpenAI and Azure. The hosts with OpenAI's other formats have not."""
    # Azure's `/openai/v1/decisions`, which takes the name of a deployment: litellm 1.110.
    return target.provider in ("openai", "azure") and target.route.host is None


def operation(target: Target) -> str:
    return "decisions"


def encode_input(request: Request, target: Target) -> Any:
    """The input that is asked about; `RequestError` for what the endpoint does not take."""
    messages = request.messages
    if len(messages) == 1 and messages[0]["role"] == "user" and isinstance(messages[0]["content"], str):
        return messages[0]["content"]
    return list(_list_items(encode_items(request, target)))


def _list_items(items: Sequence[JSONObject]) -> Iterator[JSONObject]:
    for item in items:
        kind = item.get("type", "message")
        if kind in _NOT_JUDGED:
            continue
        if kind == "message":
            content = item["content"]
            parts = content if isinstance(content, str) else list(map(_read_part, content))
            yield {"role": item["role"], "content": parts}
        elif kind in _ITEM_FIELDS:
            sent = {name: item[name] for name in _ITEM_FIELDS[kind] if item.get(name) is not None}
            if isinstance(sent.get("output"), list):
                sent["output"] = list(map(_read_part, sent["output"]))
            yield {"type": kind, **sent}
        else:
            raise _refuse(kind)


def _read_part(part: Mapping[str, Any]) -> JSONObject:
    kind = part.get("type")
    if kind in _TEXT_FIELDS:
        return {"type": kind, _TEXT_FIELDS[kind]: part[_TEXT_FIELDS[kind]]}
    if kind == "input_image" and isinstance(part.get("image_url"), str):
        return {name: part[name] for name in ("type", "image_url", "detail") if part.get(name) is not None}
    raise _refuse("input_image with a file id" if kind == "input_image" else kind)


def _refuse(kind: object) -> RequestError:
    return RequestError(
        f"the input holds {kind!r}, which OpenAI's decisions do not take: texts, images as URLs or data, and "
        "calls of functions can be asked about",
        provider="openai",
    )


def write(target: Target, given: Any, questions: Sequence[Question]) -> JSONObject:
    """The payload of one request. No question has a name: answers come in the order of the questions."""
    return {"model": target.model, "input": given, "questions": list(map(_write_question, questions))}


def _write_question(question: Question) -> JSONObject:
    written: JSONObject = {"type": question.kind, "instructions": question.instructions}
    if question.kind == "predicate":
        return written
    field, name = ("choices", "value") if question.kind == "choice" else ("levels", "label")
    written[field] = [
        {name: option, **({"description": described} if described else {})}
        for option, described in zip(question.options, question.descriptions, strict=True)
    ]
    return written


def read(reply: Any, questions: Sequence[Question]) -> list[Judgement]:
    """What is found for each question; `APIResponseValidationError` if one of them is not answered."""
    answers = read_object(reply, "answers").get("answers")
    if not isinstance(answers, list) or len(answers) != len(questions):
        listed = len(answers) if isinstance(answers, list) else "no"
        raise APIResponseValidationError(f"the reply has {listed} answers to {len(questions)} questions")
    return [
        _read_answer(expect_dict(answer, "answer"), question)
        for answer, question in zip(answers, questions, strict=True)
    ]


def _read_answer(answer: JSONObject, question: Question) -> Judgement:
    if answer.get("type") == "refusal":
        return Judgement(refusal="refusal")
    probabilities: JSONObject = {}
    for each in answer.get("probabilities") or () if question.kind != "predicate" else ():
        entry = expect_dict(each, "probability")
        value: Any = entry.get("value")
        # Levels have labels too, and their numbers say which is which.
        if question.kind == "score" and type(value) is int and 0 <= value < len(question.options):
            value = question.options[value]
        probabilities[str(value)] = entry.get("probability")
    return judge(answer, probabilities, question)


def usage(reply: Any) -> Usage | None:
    """The usage that a reply reports."""
    counts = find_counts(reply, "usage")
    return None if counts is None else read_usage(counts, "input")
