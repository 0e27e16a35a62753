"""Chat completions of OpenAI and compatible hosts → `Answer`. Totals include parts, as in `Usage`. Pure."""

import contextlib
from collections.abc import Sequence
from typing import Any

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...types.messages import AssistantMessage, ToolCall
from ...types.response import Choice
from ...types.usage import Usage
from ..protocol import Answer
from ..shared.call_ids import name_calls
from ..shared.error_bodies import error_fields
from ..shared.errors import from_answer, raise_error_in
from ..shared.finish_words import ABORTED, judge_calls, read_finish_word, read_native_word
from ..shared.logprobs import read_logprobs
from ..shared.replies import expect_dict, find_counts, part, reply_body, split_reply, text_of
from ..shared.tool_charges import chat_tools, cost_in, with_tools
from .request_facts import tier_variant
from .usage import read_usage

# The fields in which hosts return the model's reasoning.
REASONING_FIELDS = ("reasoning_content", "reasoning")

_CALLS = frozenset({"tool_calls", "function_call"})

# Fields of an answer's message that do not become part of `Choice.message` as they are.
_NOT_KEPT = frozenset({"role", "content", "provider_specific_fields", *_CALLS})


def decode(reply: object) -> Answer:
    reply = expect_dict(reply, "answer")
    raise_error_in(reply, "choices")
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices:
        raise APIResponseValidationError("the answer holds no choices")
    counts = usage(reply)
    return Answer(
        choices=tuple([_choice(expect_dict(choice, "choice"), counts) for choice in choices]),
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


def _choice(choice: JSONObject, counts: Usage | None) -> Choice:
    if choice.get("error"):
        codes, explanation = error_fields(choice)
        raise from_answer(200, codes=codes, message=explanation)
    message, logprobs = choice.get("message"), choice.get("logprobs")
    word = read_native_word(choice.get("finish_reason"), choice.get("native_finish_reason"), replaced=False)
    if "provider_specific_fields" in choice:
        native = part(choice, "provider_specific_fields").get("native_finish_reason")
        word = read_native_word(word, native, replaced=True)
    if word is not None and not isinstance(word, str):
        raise APIResponseValidationError("the finish_reason of the answer is not text")
    if word in ABORTED:
        raise APIResponseValidationError(f"the host aborted the answer: its finish_reason is {word!r}")
    reason = read_finish_word(word)
    if message is None and reason == "content_filter":
        message = {}
    elif type(message) is not dict:
        raise APIResponseValidationError(f"the provider's message is {type(message).__name__}, not an object")
    content, refusal = content_of(message), message.get("refusal")
    text, thoughts = text_and_reasoning(content)
    calls, held = ((), {}) if _CALLS.isdisjoint(message) else read_calls(message)
    if isinstance(refusal, str) and refusal:
        reason = "refusal"
    else:
        reason = judge_calls(reason, calls=bool(calls), text=bool(text))
    reasoning = thoughts
    # Also fields that this library does not know: some hosts need theirs to continue a conversation.
    others = {name: value for name, value in message.items() if value and name not in _NOT_KEPT}
    if calls and message.get("reasoning_content") == "":
        # DeepSeek needs it back as it was.
        others["reasoning_content"] = ""
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


# Types of parts that are not the name of a field, such as the type of Mistral's `ReferenceChunk`.
_PARTS = frozenset({"reference", "tool_reference", "image"})


def content_of(message: JSONMapping) -> Any:
    """The content of a message: a text, or a list of parts. Any other JSON is written as text.

    With JSON mode, Cloudflare's Workers AI returns the object itself.
    """
    content = message.get("content")
    if content is None or isinstance(content, str) or _are_parts(content):
        return content
    return reply_body(content).decode()


def _are_parts(content: Any) -> bool:
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        return False
    types = [str(entry.get("type")) for entry in content]
    pairs = zip(content, types, strict=True)
    return not content or any("text" in entry or kind in entry or kind in _PARTS for entry, kind in pairs)


def text_and_reasoning(content: object) -> tuple[str | None, str]:
    """The text in a message's content, and the reasoning, which Mistral's models return as parts of it."""
    if content is None or isinstance(content, str):
        return content, ""
    texts, thoughts = [], []
    for entry in dicts(content, "content"):
        if entry.get("type") == "thinking":
            inner = dicts(entry.get("thinking"), "thinking")
            thoughts += [text for piece in inner if (text := text_of(piece.get("text")))]
        elif text := text_of(entry.get("text")):
            texts.append(text)
    return "".join(texts), "".join(thoughts)


def join_content(pieces: Sequence[Any]) -> Any:
    """The content of a message: a text, or parts as of Mistral's models, whose texts become parts too."""
    with contextlib.suppress(TypeError):
        return "".join(pieces) or None
    parts: list[Any] = []
    for piece in pieces:
        parts += piece if isinstance(piece, list) else [{"type": "text", "text": piece}]
    return _join_parts(parts)


def _join_parts(parts: Sequence[Any]) -> list[Any]:
    """Parts as a whole answer has them: pieces of one text, or of one thought, are one part."""
    runs: list[list[Any]] = []
    for entry in parts:
        if runs and _continues(runs[-1][-1], entry):
            runs[-1].append(entry)
        else:
            runs.append([entry])
    result = []
    for run in runs:
        merged = {name: value for entry in run for name, value in entry.items()} if len(run) > 1 else run[0]
        kind = merged.get("type") if isinstance(merged, dict) else None
        if kind == "text" and isinstance(merged.get("text"), str):
            merged = {**merged, "text": "".join(entry["text"] for entry in run)}
            if merged == {"type": "text", "text": ""}:
                continue
        elif kind == "thinking" and isinstance(merged.get("thinking"), list):
            merged = {
                **merged,
                "thinking": _join_parts([thought for entry in run for thought in entry["thinking"]]),
            }
        result.append(merged)
    return result


def _continues(last: Any, entry: Any) -> bool:
    """Whether a part is the next piece of the one before it. A signature ends a thought."""
    kind = entry.get("type") if isinstance(entry, dict) else None
    if kind not in ("text", "thinking") or not isinstance(last, dict) or last.get("type") != kind:
        return False
    form = str if kind == "text" else list
    both = isinstance(last.get(kind), form) and isinstance(entry.get(kind), form)
    return both and not last.get("signature") and not last.get("closed")


def dicts(value: object, what: str) -> list[JSONObject]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise APIResponseValidationError(f"the answer's {what} is {type(value).__name__}, not a list")
    return [expect_dict(entry, f"entry of {what}") for entry in value]


KINDS = ("function", "custom")


def kind_of(call: JSONMapping) -> str | None:
    """Which member of a call holds it: that of its type, else the one that is not empty; None if none is yet.

    >>> kind_of({"custom": {"input": "", "name": ""}, "function": {"name": "weather"}})
    'function'
    """
    named = call.get("type")
    if named in KINDS and isinstance(call.get(named), dict):
        return str(named)
    bodies = {kind: call[kind] for kind in KINDS if isinstance(call.get(kind), dict)}
    return next((kind for kind, body in bodies.items() if not _is_blank(body)), None)


def _is_blank(body: JSONMapping) -> bool:
    return not (body.get("name") or body.get("arguments") or body.get("input"))


def read_calls(message: JSONMapping) -> tuple[tuple[ToolCall, ...], JSONObject]:
    """The calls of a message, and the fields of the message that hold them, without what is no call."""
    value, legacy = message.get("tool_calls"), message.get("function_call")
    if value is not None and not isinstance(value, list):
        raise APIResponseValidationError(f"the answer's tool_calls is {type(value).__name__}, not a list")
    fields: JSONObject = {}
    objects = [expect_dict(entry, "entry of tool_calls") for entry in value or ()]
    entries = [_with_text(entry) for call in objects if (entry := _without_blanks(call)) is not None]
    if entries:
        names = name_calls(entry.get("id") for entry in entries)
        entries = [
            entry if entry.get("id") == name else {**entry, "id": name}
            for entry, name in zip(entries, names, strict=True)
        ]
        fields["tool_calls"] = entries
    if isinstance(legacy, dict) and not _is_blank(legacy):
        # The form before `tool_calls`, in which calls had no ids.
        call = _with_text({"id": "call_0", "function": legacy})
        fields["function_call"] = call["function"]
        entries = entries or [call]
    return tuple(map(_call, entries)), fields


def _without_blanks(entry: JSONObject) -> JSONObject | None:
    """A call without the members of other kinds; None if it is no call."""
    kind = kind_of(entry)
    if kind is None or _is_blank(entry[kind]):
        bodies = [entry[name] for name in KINDS if name in entry]
        # A call whose members have no fields is malformed.
        return None if any(bodies) and all(isinstance(body, dict) for body in bodies) else entry
    others = [name for name in KINDS if name in entry and name != kind]
    return {name: value for name, value in entry.items() if name not in others} if others else entry


def arguments_of(body: JSONMapping, field: str) -> str:
    """The arguments of a call as text: some hosts send the object itself."""
    arguments = body.get(field) or ""
    if isinstance(arguments, dict):
        return reply_body(arguments).decode()
    if not isinstance(arguments, str):
        raise APIResponseValidationError("a tool call has no name, or arguments that are not text")
    return arguments


def _with_text(entry: JSONObject) -> JSONObject:
    """A call with its arguments as text, as the next request must have them."""
    body = entry.get("function")
    if not isinstance(body, dict) or not isinstance(body.get("arguments"), dict):
        return entry
    return {**entry, "function": {**body, "arguments": arguments_of(body, "arguments")}}


def _call(entry: JSONObject) -> ToolCall:
    kind = kind_of(entry) or "function"
    body = expect_dict(entry.get(kind), f"tool call's {kind}")
    arguments = arguments_of(body, "input") if kind == "custom" else arguments_of(body, "arguments") or "{}"
    if not isinstance(body.get("name"), str):
        raise APIResponseValidationError("a tool call has no name, or arguments that are not text")
    return ToolCall(id=text_of(entry.get("id")) or "", name=body["name"], arguments=arguments, type=kind)
