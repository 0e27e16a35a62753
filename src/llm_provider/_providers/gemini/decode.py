"""Replies, streams and errors of Gemini's `generateContent`. Pure.

The sources are the Gemini API reference and the types of google-genai 3.4. Most models return function calls
without an id; these get one that consists of the answer's id and their position.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ..._errors import APIResponseValidationError, LLMError
from ..._limits.retry import retry_delay
from ..._types import Choice, Delta, FinishReason, Step, ToolCall, ToolCallDelta, Usage
from ..adapter import Answer, count, expect_dict, part, split_reply
from ..bill import gemini_searches, with_searches
from ..errors import from_answer

PROVIDER = "gemini"

_FINISH: Mapping[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "LANGUAGE": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "ESCALATION": "content_filter",
    "PUP_LIMITED_DISABLED": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "IMAGE_OTHER": "content_filter",
}

# Finish reasons that another attempt would meet again.
_LASTING = frozenset({"MISSING_THOUGHT_SIGNATURE", "TOO_MANY_TOOL_CALLS", "CONTINUATION"})


def decode(reply: Any) -> Answer:
    """Turn a `GenerateContentResponse` into an `Answer`.

    Raises:
        APIResponseValidationError: the reply is malformed or incomplete.
        LLMError: the reply is an error that came with status 200.

    >>> decode({"promptFeedback": {"blockReason": "SAFETY"}}).choices[0].finish_reason
    'content_filter'
    """
    reply = expect_dict(reply, "answer")
    if reply.get("error"):
        raise error_of(reply, status=200)
    return Answer(
        choices=_choices(reply),
        usage=usage(reply),
        model=_str(reply.get("modelVersion")),
        id=_str(reply.get("responseId")),
    )


def usage(reply: Any) -> Usage | None:
    """The usage in a reply; see `Adapter.usage`."""
    reported = reply.get("usageMetadata") if isinstance(reply, dict) else None
    if not isinstance(reported, dict):
        return None
    return with_searches(decode_usage(reported), gemini_searches(reply))


def split(reply: Any) -> list[Any]:
    """Divide a reply with several candidates into one for each; see `Adapter.split`."""
    return split_reply(reply, "candidates", "usageMetadata")


def _choices(reply: dict[str, Any]) -> tuple[Choice, ...]:
    candidates = reply.get("candidates")
    if not candidates:
        reason = part(reply, "promptFeedback").get("blockReason")
        if not isinstance(reason, str) or not reason:
            raise APIResponseValidationError("the answer holds no candidates")
        message = {"role": "assistant", "content": None}
        return (Choice(finish_reason="content_filter", message=message),)
    if not isinstance(candidates, list):
        raise APIResponseValidationError(
            f"the answer's candidates are {type(candidates).__name__}, not a list"
        )
    ordered = sorted((expect_dict(candidate, "candidate") for candidate in candidates), key=_index)
    return tuple(_choice(candidate, _str(reply.get("responseId"))) for candidate in ordered)


def _index(candidate: Mapping[str, Any]) -> int:
    return count(candidate, "index")


def _choice(candidate: dict[str, Any], response_id: str | None) -> Choice:
    content = candidate.get("content")
    parts = expect_dict(content, "content").get("parts") if content is not None else None
    if parts is not None and not isinstance(parts, list):
        raise APIResponseValidationError(f"the answer's parts are {type(parts).__name__}, not a list")
    text, reasoning, found = read_parts(parts or [])
    reason = _finish_reason(candidate)
    if found and reason == "stop":
        reason = "tool_calls"
    calls = tuple(
        ToolCall(id=call_id(call, response_id, index), name=call["name"], arguments=_arguments(call))
        for index, call in enumerate(found)
    )
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
    if parts:
        message["provider_specific_fields"] = {"provider": PROVIDER, "content": parts}
    return Choice(
        text=text,
        reasoning=reasoning,
        tool_calls=calls,
        finish_reason=reason,
        message=message,
        logprobs=candidate.get("logprobsResult"),
    )


def _finish_reason(candidate: Mapping[str, Any]) -> FinishReason:
    word = candidate.get("finishReason")
    if not isinstance(word, str) or not word:
        raise APIResponseValidationError("the answer ends without a finish reason: it was cut")
    if word not in _FINISH:
        detail = candidate.get("finishMessage")
        said = f": {detail}" if isinstance(detail, str) and detail else ""
        raise APIResponseValidationError(
            f"the model ended its answer with {word}{said[:300]}", code=word, retryable=word not in _LASTING
        )
    return _FINISH[word]


def read_parts(parts: list[Any]) -> tuple[str, str, list[dict[str, Any]]]:
    """The text, the thoughts and the function calls (`name`, `args` and perhaps `id`) of a candidate's parts.

    Raises:
        APIResponseValidationError: a part is malformed.
    """
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for given in parts:
        entry = expect_dict(given, "part")
        text, call = entry.get("text"), entry.get("functionCall")
        if text is not None:
            if not isinstance(text, str):
                raise APIResponseValidationError(f"the answer's text is {type(text).__name__}")
            (thoughts if entry.get("thought") else texts).append(text)
        if call is not None:
            calls.append(_function_call(call))
    return "".join(texts), "".join(thoughts), calls


def _function_call(call: Any) -> dict[str, Any]:
    call = expect_dict(call, "function call")
    if not isinstance(call.get("name"), str) or not call["name"]:
        raise APIResponseValidationError("a function call has no name")
    arguments = call.get("args")
    read = {
        "name": call["name"],
        "args": expect_dict({} if arguments is None else arguments, "function's args"),
    }
    if isinstance(call.get("id"), str) and call["id"]:
        read["id"] = call["id"]
    return read


def _arguments(call: Mapping[str, Any]) -> str:
    try:
        return json.dumps(call["args"], ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise APIResponseValidationError("a function call's arguments are nested too deep") from None


def call_id(call: Mapping[str, Any], response_id: str | None, index: int) -> str:
    """The id of a function call: its own, or one that is the same each time this answer is decoded."""
    if isinstance(call.get("id"), str) and call["id"]:
        return str(call["id"])
    return f"call_{response_id}_{index}" if response_id else f"call_{index}"


def decode_usage(usage: Mapping[str, Any]) -> Usage:
    """Gemini's counts of tokens with inclusive totals: Gemini counts thoughts and tool prompts separately.

    >>> decode_usage({"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 5})
    Usage(input_tokens=9, output_tokens=7, reasoning_output_tokens=5)
    """
    thoughts = count(usage, "thoughtsTokenCount")
    return Usage(
        input_tokens=count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
        output_tokens=count(usage, "candidatesTokenCount") + thoughts,
        cache_read_input_tokens=count(usage, "cachedContentTokenCount"),
        reasoning_output_tokens=thoughts,
        audio_input_tokens=_tokens_of(usage, "promptTokensDetails", "AUDIO"),
        cache_read_audio_input_tokens=_tokens_of(usage, "cacheTokensDetails", "AUDIO"),
        image_input_tokens=_tokens_of(usage, "promptTokensDetails", "IMAGE"),
        audio_output_tokens=_tokens_of(usage, "candidatesTokensDetails", "AUDIO"),
        image_output_tokens=_tokens_of(usage, "candidatesTokensDetails", "IMAGE"),
    )


def _tokens_of(usage: Mapping[str, Any], name: str, modality: str) -> int:
    details = usage.get(name)
    if not details or not isinstance(details, list):
        return 0
    return sum(
        count(entry, "tokenCount")
        for entry in details
        if isinstance(entry, dict) and entry.get("modality") == modality
    )


def error_of(body: Any, *, status: int | None, headers: Mapping[str, str] | None = None) -> LLMError:
    """The error for Google's error object, `{"error": {"code", "message", "status", "details"}}`.

    >>> error_of({"error": {"status": "RESOURCE_EXHAUSTED", "details": [{"retryDelay": "7s"}]}}, status=429)
    RateLimitError('HTTP 429')
    """
    error = body.get("error") if isinstance(body, dict) else body
    if isinstance(body, dict) and error is None:
        # The SDK's stand-in for a body that is not JSON. Its "status" is only the reason phrase of HTTP.
        error = body.get("message")
    if not isinstance(error, dict):
        return from_answer(status, message=error if isinstance(error, str) else "", headers=headers)
    details = error.get("details")
    entries = [entry for entry in details if isinstance(entry, dict)] if isinstance(details, list) else []
    message = error.get("message")
    message = message if isinstance(message, str) else ""
    waits = (retry_delay(entry.get("retryDelay")) for entry in entries)
    return from_answer(
        status,
        codes=(*_daily_quotas(entries), *_reasons(entries, message), _str(error.get("status"))),
        message=message,
        headers=headers,
        wait=next((wait for wait in waits if wait is not None), None),
    )


def _daily_quotas(details: list[dict[str, Any]]) -> Iterator[str]:
    for entry in details:
        violations = entry.get("violations")
        for violation in violations if isinstance(violations, list) else ():
            quota = violation.get("quotaId") if isinstance(violation, dict) else None
            if isinstance(quota, str) and "perday" in quota.lower():
                yield quota


def _reasons(details: list[dict[str, Any]], message: str) -> Iterator[str]:
    reasons = {entry["reason"] for entry in details if isinstance(entry.get("reason"), str)}
    if "API_KEY_INVALID" in reasons or message.startswith(("API key not valid", "API key expired")):
        # Google answers 400 INVALID_ARGUMENT to a wrong key. `errors` knows it by this code.
        yield "invalid_api_key"
    yield from sorted(reasons)


def _str(value: Any) -> str | None:
    return value if isinstance(value, str) else None


class Assembler:
    """Folds the `GenerateContentResponse` objects of a stream into the one that they add up to."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._candidates: dict[int, dict[str, Any]] = {}
        # Both by candidate: the pieces of text that its last part does not yet have, and its function calls
        # so far. Appending each piece to a long text would take quadratic time.
        self._pieces: dict[int, list[str]] = {}
        self._calls: dict[int, int] = {}

    def feed(self, event: Any) -> Step:
        """Take one event; returns the text or delta of the first sample."""
        event = expect_dict(event, "stream event")
        if event.get("error"):
            raise error_of(event, status=200)
        for name, value in event.items():
            if name != "candidates" and value is not None:
                self._head[name] = value
        shown: Step = ""
        pieces = event.get("candidates")
        for piece in pieces if isinstance(pieces, list) else ():
            index = _index(expect_dict(piece, "candidate"))
            delta = self._add(index, piece)
            if index == 0:
                shown = delta
        return shown

    def _add(self, index: int, piece: dict[str, Any]) -> Step:
        candidate = self._candidates.setdefault(index, {"content": {"role": "model"}})
        for name, value in piece.items():
            if name == "logprobsResult" and isinstance(value, dict):
                _extend_lists(candidate.setdefault(name, {}), value)
            elif name != "content" and value is not None:
                candidate[name] = value
        content = piece.get("content")
        added = expect_dict(content, "content").get("parts") if content is not None else None
        if not added:
            return ""
        if not isinstance(added, list):
            raise APIResponseValidationError(f"the stream's parts are {type(added).__name__}, not a list")
        parts = candidate["content"].setdefault("parts", [])
        text, reasoning, calls = read_parts(added)
        for entry in added:
            self._append_part(index, parts, entry)
        if not (reasoning or calls):
            return text
        response_id = _str(self._head.get("responseId"))
        before = self._calls.get(index, 0)
        self._calls[index] = before + len(calls)
        return Delta(
            text=text,
            reasoning=reasoning,
            tool_calls=tuple(
                ToolCallDelta(
                    index=place,
                    id=call_id(call, response_id, place),
                    name=call["name"],
                    arguments=_arguments(call),
                )
                for place, call in enumerate(calls, before)
            ),
        )

    def _append_part(self, index: int, parts: list[dict[str, Any]], piece: dict[str, Any]) -> None:
        """Append a part, or extend the last one if both are pieces of the same text.

        A signature ends its part. It comes with the last piece of text, or with an empty piece after it.
        """
        last = parts[-1] if parts else {}
        fields = {"text", "thought"}
        plain = last.keys() <= fields and piece.keys() <= fields | {"thoughtSignature"}
        if (
            plain
            and _is_text(last)
            and _is_text(piece)
            and bool(last.get("thought")) == bool(piece.get("thought"))
        ):
            self._pieces.setdefault(index, []).append(piece["text"])
            last.update((name, value) for name, value in piece.items() if name != "text")
        else:
            self._join(index, parts)
            parts.append(dict(piece))

    def _join(self, index: int, parts: list[dict[str, Any]]) -> None:
        pieces = self._pieces.pop(index, None)
        if pieces:
            parts[-1]["text"] = "".join((parts[-1]["text"], *pieces))

    def is_complete(self) -> bool:
        """False: no event says so."""
        return False

    def reply(self) -> Any:
        """The response that the events add up to."""
        for index, candidate in self._candidates.items():
            self._join(index, candidate["content"].get("parts", []))
        if not self._candidates and not part(self._head, "promptFeedback").get("blockReason"):
            raise APIResponseValidationError("the stream ended before its first candidate: it was cut")
        for candidate in self._candidates.values():
            if not candidate.get("finishReason"):
                raise APIResponseValidationError("the stream ended before its finish reason: it was cut")
        ordered = [candidate for _, candidate in sorted(self._candidates.items())]
        return {**({"candidates": ordered} if ordered else {}), **self._head}


def _is_text(entry: Mapping[str, Any]) -> bool:
    return isinstance(entry.get("text"), str)


def _extend_lists(kept: dict[str, Any], piece: Mapping[str, Any]) -> None:
    for name, value in piece.items():
        if isinstance(value, list) and isinstance(kept.get(name, []), list):
            kept[name] = [*kept.get(name, []), *value]
        elif value is not None:
            kept[name] = value
