"""Replies and errors of Gemini's `generateContent`. Pure.

Most models return function calls without an id; these get the answer's id and their position.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import APIResponseValidationError, LLMError
from ...json_values import JSONMapping, JSONObject
from ...pace.headers import retry_delay
from ...types.messages import AssistantMessage, FinishReason, ToolCall
from ...types.response import Choice
from ..protocol import Answer
from ..shared.conversations import tell_apart
from ..shared.errors import body_in_text, error_fields, from_answer, from_exception, headers_of, reports_error
from ..shared.logprobs import read_logprobs
from ..shared.replies import (
    FINISH_WORDS,
    call_entry,
    count,
    dicts,
    expect_dict,
    part,
    read_finish_word,
    split_reply,
    text_of,
)
from ..shared.request_facts import variant_of
from .usage import usage

PROVIDER = "gemini"

# The model wrote a function call that Google could not read, or did not expect. Text before it is no finished
# answer.
_FAILED_CALLS = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"})

_LONGEST_DETAIL = 2000

CONTINUES = "continuationToken"
"""The field of a candidate that ended before its answer: a request with it goes on."""

# The levels of Vertex's `trafficType`.
_TRAFFIC: Mapping[str, str] = {
    "ON_DEMAND": "standard",
    "ON_DEMAND_PRIORITY": "priority",
    "ON_DEMAND_FLEX": "flex",
}


def decode(reply: Any) -> Answer:
    """Turn a `GenerateContentResponse` into an `Answer`; an `LLMError` if it is an error with status 200."""
    reply = expect_dict(reply, "answer")
    if reports_error(reply, "candidates"):
        raise error_of(reply, status=200)
    choices = _choices(reply)
    return Answer(
        choices=choices,
        usage=usage(reply),
        model=text_of(reply.get("modelVersion")),
        id=text_of(reply.get("responseId")),
        service_tier=_service_tier(part(reply, "usageMetadata")),
        has_media=not choices[0].text and _has_media(choices),
    )


def _has_media(choices: tuple[Choice, ...]) -> bool:
    """Whether a sample has a part with an image or audio."""
    kept = (part(choice.message, "provider_specific_fields").get("content") for choice in choices)
    return any(entry.get("inlineData") or entry.get("fileData") for parts in kept for entry in parts or ())


def _service_tier(usage: JSONMapping) -> str | None:
    tier = usage.get("serviceTier")
    return variant_of(tier.lower()) if isinstance(tier, str) else _TRAFFIC.get(str(usage.get("trafficType")))


def split(reply: Any) -> list[Any]:
    return split_reply(reply, "candidates", "usageMetadata")


def _choices(reply: JSONObject) -> tuple[Choice, ...]:
    candidates = reply.get("candidates")
    if not candidates:
        reason = part(reply, "promptFeedback").get("blockReason")
        if not isinstance(reason, str) or not reason:
            raise APIResponseValidationError("the answer holds no candidates")
        message = {"role": "assistant", "content": None}
        return (Choice(finish_reason="content_filter", message=AssistantMessage(message)),)
    if not isinstance(candidates, list):
        raise APIResponseValidationError(
            f"the answer's candidates are {type(candidates).__name__}, not a list"
        )
    ordered = [expect_dict(candidate, "candidate") for candidate in candidates]
    if len(ordered) > 1:
        ordered.sort(key=index_of)
    identifier = text_of(reply.get("responseId"))
    return tuple([_choice(candidate, identifier) for candidate in ordered])


def index_of(candidate: JSONMapping) -> int:
    return count(candidate, "index")


def _choice(candidate: JSONObject, response_id: str | None) -> Choice:
    content = candidate.get("content")
    parts = expect_dict(content, "content").get("parts") if content is not None else None
    if parts is not None and not isinstance(parts, list):
        raise APIResponseValidationError(f"the answer's parts are {type(parts).__name__}, not a list")
    text, reasoning, functions = read_parts(parts or [])
    reason = _finish_reason(candidate, parts or [], called=bool(functions))
    calls = tell_apart(
        [
            ToolCall(id=call_id(call, response_id, index), name=call["name"], arguments=arguments_of(call))
            for index, call in enumerate(functions)
        ]
    )
    message: JSONObject = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = list(map(call_entry, calls))
    if parts:
        message["provider_specific_fields"] = {"provider": PROVIDER, "content": parts}
    return Choice(
        text=text,
        reasoning=reasoning,
        tool_calls=calls,
        finish_reason=reason,
        message=AssistantMessage(message),
        logprobs=read_logprobs(candidate.get("logprobsResult")),
    )


def _finish_reason(candidate: JSONMapping, parts: list[Any], *, called: bool) -> FinishReason:
    """Why the model stopped. A whole answer may have an unknown word for it, or none.

    A failure of the model, as a call that Google could not read, was billed, so it is not sent again.
    """
    word = candidate.get("finishReason") or ("CONTINUATION" if candidate.get(CONTINUES) else None)
    if not isinstance(word, str):
        word = None
    known = FINISH_WORDS.get(word.lower(), "unknown") if word else "stop"
    if called and known == "stop":
        return "tool_calls"
    is_failed = known == "unknown" or word in _FAILED_CALLS
    if not is_failed or called or any(map(_has_content, parts)):
        return read_finish_word(word) if known == "unknown" else known
    detail = candidate.get("finishMessage")
    said = f": {detail}" if isinstance(detail, str) and detail else ""
    raise APIResponseValidationError(
        f"the model ended its answer with {word}{said[:_LONGEST_DETAIL]}", code=word, retryable=False
    )


def _has_content(entry: JSONMapping) -> bool:
    """Whether a part holds anything but thoughts and signatures."""
    return not entry.get("thought") and any(entry[name] for name in entry if name != "thoughtSignature")


def read_parts(parts: list[Any]) -> tuple[str, str, list[JSONObject]]:
    """The text, the thoughts and the open function calls (`name`, `args`, perhaps `id`) of a candidate."""
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[JSONObject] = []
    called = False
    for item in parts:
        entry = expect_dict(item, "part")
        text, call = entry.get("text"), entry.get("functionCall")
        if text is not None:
            if not isinstance(text, str):
                raise APIResponseValidationError(f"the answer's text is {type(text).__name__}")
            (thoughts if entry.get("thought") else texts).append(text)
        called = called or call is not None
    if called:
        calls = [_function_call(entry["functionCall"]) for entry in open_calls(parts)]
    return "".join(texts), "".join(thoughts), calls


def open_calls(parts: list[JSONObject]) -> list[JSONObject]:
    """The parts with calls of functions that no later part answers.

    Google calls the functions of `mcpServers` itself: its answer has such a call, and the result.
    """
    calls: list[JSONObject] = []
    for entry in parts:
        if entry.get("functionCall") is not None:
            calls.append(entry)
        elif calls and isinstance(response := entry.get("functionResponse"), dict):
            for index, call in enumerate(calls):
                if is_result(response, call["functionCall"]):
                    del calls[index]
                    break
    return calls


def is_result(response: JSONMapping, call: Any) -> bool:
    """Whether a function's response answers a call: by their ids, else by the name."""
    if not isinstance(call, dict):
        return False
    name = "id" if call.get("id") and response.get("id") else "name"
    return bool(call.get(name) == response.get(name))


def _function_call(call: Any) -> JSONObject:
    call = expect_dict(call, "function call")
    if not isinstance(call.get("name"), str):
        raise APIResponseValidationError("a function call has no name")
    arguments = call.get("args")
    read = {
        "name": call["name"],
        "args": expect_dict({} if arguments is None else arguments, "function's args"),
    }
    if isinstance(call.get("id"), str) and call["id"]:
        read["id"] = call["id"]
    return read


def arguments_of(call: JSONMapping) -> str:
    try:
        return json.dumps(call["args"], ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        raise APIResponseValidationError("a function call's arguments are nested too deep") from None


def call_id(call: JSONMapping, response_id: str | None, index: int) -> str:
    """The id of a function call: its own, or one that is the same each time this answer is decoded."""
    if isinstance(call.get("id"), str) and call["id"]:
        return str(call["id"])
    return f"call_{response_id}_{index}" if response_id else f"call_{index}"


def error_of(body: Any, *, status: int | None, headers: Mapping[str, str] | None = None) -> LLMError:
    """The error for Google's error object, `{"error": {"code", "message", "status", "details"}}`."""
    error = _error_in(body)
    if isinstance(body, dict) and error is None:
        # The SDK's stand-in for a body that it did not read, because it is no JSON or has another type than
        # JSON's. Its "status" is only the reason phrase of HTTP.
        text = body.get("message")
        inner = body_in_text(text) if isinstance(text, str) else body
        error = _error_in(inner) or inner
    if not isinstance(error, dict):
        return from_answer(status, message=error_fields(error)[1], headers=headers)
    details = error.get("details")
    entries = [entry for entry in details if isinstance(entry, dict)] if isinstance(details, list) else []
    codes, message = error_fields(error)
    waits = (retry_delay(entry.get("retryDelay")) for entry in entries)
    return from_answer(
        status,
        # A gateway's error has OpenAI's form, whatever the form of its path.
        codes=(*_daily_quotas(entries), *_reasons(entries), text_of(error.get("status")), *codes),
        message=message,
        headers=headers,
        wait=next((wait for wait in waits if wait is not None), None),
    )


def _error_in(body: Any) -> Any:
    """The error in a body. Without `alt=sse`, a stream is a list of responses, and its error one of them."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    return body.get("error") if isinstance(body, dict) else body


def _daily_quotas(details: list[JSONObject]) -> Iterator[str]:
    for entry in details:
        violations = entry.get("violations")
        for violation in violations if isinstance(violations, list) else ():
            quota = violation.get("quotaId") if isinstance(violation, dict) else None
            if isinstance(quota, str) and "perday" in quota.lower():
                yield quota


def _reasons(details: list[JSONObject]) -> list[str]:
    return sorted({entry["reason"] for entry in details if isinstance(entry.get("reason"), str)})


def map_error(error: BaseException) -> LLMError:
    if isinstance(error, LLMError):
        return error
    if not any(kind.__name__ == "APIError" for kind in type(error).__mro__):
        return from_exception(error)
    response = getattr(error, "response", None)
    # An error event inside a stream has a code of its own, although the status of the answer is 200.
    status = getattr(response, "status", None) or getattr(response, "status_code", None)
    code = getattr(error, "code", None)
    return error_of(
        getattr(error, "details", None),
        status=status if isinstance(status, int) else code if isinstance(code, int) else None,
        headers=headers_of(response),
    )


# --- answers that Google divides: a request ends with `CONTINUATION`, and the next one goes on
#
# The rules are the same as in google-genai's `automatic_continuation`: the same request with the token of the
# first candidate goes on with all candidates. Lists are joined, and counts are added up.

_OF_THE_LAST = frozenset({CONTINUES, "finishReason", "finishMessage"})
"""Fields of a candidate that say how its last request ended."""

_UNFINISHED = (None, "", "CONTINUATION")


def continuation(reply: Any) -> JSONObject | None:
    """The fields with which the same request goes on; None for an answer that is whole or cannot go on."""
    candidates = reply.get("candidates")
    if not candidates:
        return None
    first = candidates[0] if len(candidates) == 1 else min(candidates, key=index_of)
    token = first.get(CONTINUES)
    if not isinstance(token, str) or not token or first.get("finishReason") not in _UNFINISHED:
        return None
    return {CONTINUES: token}


def join(before: JSONMapping, after: JSONMapping) -> JSONObject:
    """Two replies as one, with the id of the first: the ids of calls are made from it."""
    later = {index_of(candidate): candidate for candidate in after.get("candidates") or ()}
    # Without candidates, the prompt was blocked this time.
    blocked = None if later else {"finishReason": part(after, "promptFeedback").get("blockReason")}
    candidates = []
    for candidate in before["candidates"]:
        is_open = candidate.get("finishReason") in _UNFINISHED
        following = later.pop(index_of(candidate), blocked if is_open else None)
        candidates.append(candidate if following is None else _join_candidates(candidate, following))
    joined: JSONObject = _merge(before, {**after, "candidates": None, "responseId": None})
    return {**joined, "candidates": [*candidates, *later.values()]}


def _join_candidates(before: JSONMapping, after: JSONMapping) -> JSONObject:
    kept = {name: value for name, value in before.items() if name not in _OF_THE_LAST}
    metadata = part(after, "groundingMetadata")
    if supports := list(dicts(metadata.get("groundingSupports"))):
        chunks = len(dicts(part(before, "groundingMetadata").get("groundingChunks")))
        parts = len(part(before, "content").get("parts") or ())
        moved = [_move(support, chunks, parts) for support in supports]
        after = {**after, "groundingMetadata": {**metadata, "groundingSupports": moved}}
    joined: JSONObject = _merge(kept, after)
    return joined


def _move(support: JSONMapping, chunks: int, parts: int) -> JSONObject:
    """A support of the text whose sources and part have so many others before them."""
    segment, numbers = part(support, "segment"), support.get("groundingChunkIndices")
    indices = [number for number in numbers if type(number) is int] if isinstance(numbers, list) else []
    return {
        **support,
        "groundingChunkIndices": [chunks + number for number in indices],
        "segment": {**segment, "partIndex": parts + count(segment, "partIndex")},
    }


def _merge(before: Any, after: Any, name: str = "") -> Any:
    if isinstance(before, dict) and isinstance(after, dict):
        return {**before, **{key: _merge(before.get(key), after[key], key) for key in after}}
    if isinstance(before, list) and isinstance(after, list) and name != "safetyRatings":
        return [*before, *after]
    if (
        name.endswith(("Count", "Sum"))
        and isinstance(before, (int, float))
        and isinstance(after, (int, float))
    ):
        return before + after
    return before if after is None else after
