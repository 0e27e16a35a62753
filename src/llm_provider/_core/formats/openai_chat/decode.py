"""Chat completions of OpenAI and compatible hosts → `Answer`. Totals include parts, as in `Usage`. Pure.

What OpenAI's own API never writes is read by functions of `quirks`, which stand in the place of the fields of
`Reading`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...types.messages import AssistantMessage, ToolCall
from ...types.response import Choice
from ...types.usage import Usage
from ..protocol import Answer
from ..shared.errors import raise_error_in
from ..shared.logprobs import read_logprobs
from ..shared.replies import (
    ABORTED,
    expect_dict,
    find_counts,
    judge_calls,
    part,
    read_finish_word,
    split_reply,
    text_of,
)
from ..shared.tool_charges import chat_tools, cost_in, with_tools
from .usage import read_usage, tier_variant

# The fields in which hosts return the model's reasoning.
REASONING_FIELDS = ("reasoning_content", "reasoning")

KINDS = ("function", "custom")

_CALLS = frozenset({"tool_calls", "function_call"})

# Fields of an answer's message that do not become part of `Choice.message` as they are.
_NOT_KEPT = frozenset({"role", "content", "provider_specific_fields", *_CALLS})


def _read_word(choice: JSONMapping) -> Any:
    return choice.get("finish_reason")


def raise_for_content(content: Any) -> tuple[Any, str, str]:
    raise APIResponseValidationError(f"the answer's content is {type(content).__name__}, not text")


def read_calls(message: JSONMapping) -> tuple[tuple[ToolCall, ...], JSONObject]:
    """The calls of a message, and the fields of the message that hold them."""
    entries, legacy = dicts(message.get("tool_calls"), "tool_calls"), message.get("function_call")
    fields: JSONObject = {"tool_calls": entries} if entries else {}
    if isinstance(legacy, dict):
        # The form before `tool_calls`, in which calls had no ids.
        fields["function_call"] = legacy
        entries = entries or [{"id": "call_0", "function": legacy}]
    return tuple(map(_call, entries)), fields


class Reading(NamedTuple):
    """How parts of a reply are read. Each field is a function; the defaults read what OpenAI's API writes."""

    word: Callable[[JSONMapping], Any] = _read_word
    """The word for the end of a choice."""
    content: Callable[[Any], tuple[Any, str, str]] = raise_for_content
    """A content that is no text, as the next request has it, and the text and the reasoning in it."""
    calls: Callable[[JSONMapping], tuple[tuple[ToolCall, ...], JSONObject]] = read_calls


_STANDARD = Reading()


def decode(reply: object, reading: Reading = _STANDARD) -> Answer:
    reply = expect_dict(reply, "answer")
    raise_error_in(reply, "choices")
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices:
        raise APIResponseValidationError("the answer holds no choices")
    counts = usage(reply)
    return Answer(
        choices=tuple([_choice(expect_dict(choice, "choice"), counts, reading) for choice in choices]),
        usage=counts,
        model=text_of(reply.get("model")),
        id=text_of(reply.get("id")),
        service_tier=tier_variant(reply.get("service_tier")),
        cost=cost_in(reply.get("usage")),
    )


def usage(reply: Any) -> Usage | None:
    reported = find_counts(reply, "usage")
    return None if reported is None else with_tools(read_usage(reported), *chat_tools(reply, reported))


def split(reply: Any) -> list[Any]:
    return split_reply(reply, "choices", "usage")


def _choice(choice: JSONObject, counts: Usage | None, reading: Reading) -> Choice:
    message, logprobs = choice.get("message"), choice.get("logprobs")
    word = reading.word(choice)
    if word is not None and not isinstance(word, str):
        raise APIResponseValidationError("the finish_reason of the answer is not text")
    if word in ABORTED:
        raise APIResponseValidationError(f"the host aborted the answer: its finish_reason is {word!r}")
    reason = read_finish_word(word)
    if message is None and reason == "content_filter":
        message = {}
    elif type(message) is not dict:
        raise APIResponseValidationError(f"the provider's message is {type(message).__name__}, not an object")
    content, refusal = message.get("content"), message.get("refusal")
    text, reasoning = content, ""
    if content is not None and type(content) is not str:
        content, text, reasoning = reading.content(content)
    calls, held = ((), {}) if _CALLS.isdisjoint(message) else reading.calls(message)
    if isinstance(refusal, str) and refusal:
        reason = "refusal"
    else:
        reason = judge_calls(reason, calls=bool(calls), text=bool(text))
    # Also fields that this library does not know: some hosts need theirs to continue a conversation.
    others = {name: value for name, value in message.items() if value and name not in _NOT_KEPT}
    others.update(held)
    kept = {"role": "assistant", "content": content, **others}
    if others:
        for name in REASONING_FIELDS:
            reasoning = reasoning or text_of(others.get(name)) or ""
    if not text:
        text = text_of(part(message, "audio").get("transcript")) or text_of(refusal) or ""
    if not (word or text or calls or reasoning or content or others or (counts and counts.total_tokens)):
        raise APIResponseValidationError("the answer is empty, and has no finish reason")
    return Choice(
        text=text,
        reasoning=reasoning,
        tool_calls=calls,
        finish_reason=reason,
        message=AssistantMessage(kept),
        logprobs=None if logprobs is None else read_logprobs(logprobs),
    )


def dicts(value: object, what: str) -> list[JSONObject]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise APIResponseValidationError(f"the answer's {what} is {type(value).__name__}, not a list")
    return [expect_dict(entry, f"entry of {what}") for entry in value]


def kind_of(call: JSONMapping) -> str | None:
    """Which member of a call holds it; None if none is yet."""
    return "custom" if isinstance(call.get("custom"), dict) else "function"


def arguments_of(body: JSONMapping, field: str) -> str:
    """The arguments of a call; an `APIResponseValidationError` if they are not text."""
    arguments = body.get(field) or ""
    if not isinstance(arguments, str):
        raise APIResponseValidationError("a tool call has no name, or arguments that are not text")
    return arguments


def _call(entry: JSONObject) -> ToolCall:
    kind = kind_of(entry) or "function"
    body = expect_dict(entry.get(kind), f"tool call's {kind}")
    arguments = arguments_of(body, "input") if kind == "custom" else arguments_of(body, "arguments") or "{}"
    if not isinstance(body.get("name"), str):
        raise APIResponseValidationError("a tool call has no name, or arguments that are not text")
    return ToolCall(id=text_of(entry.get("id")) or "", name=body["name"], arguments=arguments, type=kind)
