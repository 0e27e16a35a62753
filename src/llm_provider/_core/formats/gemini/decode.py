"""Replies and errors of Gemini's `generateContent`, and the tokens that a request may use. Pure.

Most models return function calls without an id; these get the answer's id and their position.
"""

import functools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import APIResponseValidationError, LLMError
from ...json_values import JSONMapping, JSONObject
from ...pace.headers import retry_delay
from ...runtime.json_pieces import canonical
from ...types.messages import AssistantMessage, FinishReason, ToolCall
from ...types.response import Choice, make_choice
from ...types.usage import Usage, make_usage
from ..protocol import Answer, EncodedRequest
from ..shared import payload as shared
from ..shared.conversations import tell_apart
from ..shared.errors import body_in_text, error_fields, from_answer, from_exception, headers_of
from ..shared.logprobs import read_logprobs
from ..shared.replies import (
    FINISH_WORDS,
    call_entry,
    count,
    dicts,
    expect_dict,
    find_counts,
    gemini_tools,
    part,
    read_finish_word,
    reports_error,
    split_reply,
    text_of,
    with_tools,
)

PROVIDER = "gemini"

# The model wrote a function call that Google could not read, or did not expect. Text before it is no finished
# answer.
_FAILED_CALLS = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"})

_LONGEST_DETAIL = 2000

_DETAIL_FIELDS = ("promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails")
_MEDIA_FIELDS: tuple[Mapping[str, str], ...] = (
    {"AUDIO": "audio_input_tokens", "IMAGE": "image_input_tokens"},
    {"AUDIO": "cache_read_audio_input_tokens"},
    {"AUDIO": "audio_output_tokens", "IMAGE": "image_output_tokens"},
)
"""The fields of `Usage` for what is read, cached and written of a medium that has a price of its own."""

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
    choices, counts = _choices(reply), part(reply, "usageMetadata")
    kept = (part(choice.message, "provider_specific_fields").get("content") for choice in choices)
    tier = counts.get("serviceTier")
    return Answer(
        choices=choices,
        usage=usage(reply),
        model=text_of(reply.get("modelVersion")),
        id=text_of(reply.get("responseId")),
        service_tier=shared.variant_of(tier.lower())
        if isinstance(tier, str)
        else _TRAFFIC.get(str(counts.get("trafficType"))),
        has_media=not choices[0].text
        and any(entry.get("inlineData") or entry.get("fileData") for parts in kept for entry in parts or ()),
    )


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
        kind = type(candidates).__name__
        raise APIResponseValidationError(f"the answer's candidates are {kind}, not a list")
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
    named = ((call, call_id(call, response_id, index)) for index, call in enumerate(functions))
    calls = tell_apart(
        [ToolCall(id=name, name=call["name"], arguments=arguments_of(call)) for call, name in named]
    )
    message: JSONObject = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = list(map(call_entry, calls))
    if parts:
        message["provider_specific_fields"] = {"provider": PROVIDER, "content": parts}
    return make_choice(
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
    # A part may have nothing but a thought or a signature.
    if (
        not is_failed
        or called
        or any(
            not entry.get("thought") and any(entry[name] for name in entry if name != "thoughtSignature")
            for entry in parts
        )
    ):
        return read_finish_word(word) if known == "unknown" else known
    detail = candidate.get("finishMessage")
    said = f": {detail}" if isinstance(detail, str) and detail else ""
    raise APIResponseValidationError(
        f"the model ended its answer with {word}{said[:_LONGEST_DETAIL]}", code=word, retryable=False
    )


def read_parts(parts: list[Any]) -> tuple[str, str, list[JSONObject]]:
    """The text, the thoughts and the open function calls (`name`, `args`, perhaps `id`) of a candidate."""
    texts, thoughts, called = list[str](), list[str](), False
    for item in parts:
        entry = expect_dict(item, "part")
        text, call = entry.get("text"), entry.get("functionCall")
        if text is not None:
            if not isinstance(text, str):
                raise APIResponseValidationError(f"the answer's text is {type(text).__name__}")
            (thoughts if entry.get("thought") else texts).append(text)
        called = called or call is not None
    calls = [_function_call(entry["functionCall"]) for entry in open_calls(parts)] if called else []
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
    arguments = {} if call.get("args") is None else expect_dict(call["args"], "function's args")
    own_id = {"id": call["id"]} if isinstance(call.get("id"), str) and call["id"] else {}
    return {"name": call["name"], "args": arguments, **own_id}


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
        body = body_in_text(text) if isinstance(text, str) else body
        error = _error_in(body) or body
    if not isinstance(error, dict):
        codes, message = error_fields(body)
        return from_answer(status, codes=codes, message=message, headers=headers)
    entries = dicts(error.get("details"))
    codes, message = error_fields(error)
    waits = (retry_delay(entry.get("retryDelay")) for entry in entries)
    violations = (violation for entry in entries for violation in dicts(entry.get("violations")))
    quotas = (text_of(violation.get("quotaId")) or "" for violation in violations)
    reasons = {entry["reason"] for entry in entries if isinstance(entry.get("reason"), str)}
    return from_answer(
        status,
        # A gateway's error has OpenAI's form, whatever the form of its path.
        codes=(
            *(quota for quota in quotas if "perday" in quota.lower()),
            *sorted(reasons),
            text_of(error.get("status")),
            *codes,
        ),
        message=message,
        headers=headers,
        wait=next((wait for wait in waits if wait is not None), None),
    )


def _error_in(body: Any) -> Any:
    """The error in a body. Without `alt=sse`, a stream is a list of responses, and its error one of them."""
    if isinstance(body, list) and len(body) == 1:
        body = body[0]
    return body.get("error") if isinstance(body, dict) else body


def map_error(error: BaseException) -> LLMError:
    if isinstance(error, LLMError):
        return error
    if not any(kind.__name__ == "APIError" for kind in type(error).__mro__):
        return from_exception(error)
    response = getattr(error, "response", None)
    # An error event inside a stream has a code of its own, although the status of the answer is 200.
    status = getattr(response, "status", None) or getattr(response, "status_code", None)
    known = (number for number in (status, getattr(error, "code", None)) if isinstance(number, int))
    details = getattr(error, "details", None)
    return error_of(details, status=next(known, None), headers=headers_of(response))


# --- answers that Google divides: a request ends with `CONTINUATION`, and the next one goes on
#
# The rules are the same as in google-genai's `automatic_continuation`: the same request with the token of the
# first candidate goes on with all candidates. Lists are joined, and counts are added up.

_OF_THE_LAST = frozenset({CONTINUES, "finishReason", "finishMessage"})
"""Fields of a candidate that say how its last request ended."""

_UNFINISHED = (None, "", "CONTINUATION")


def continuation(reply: Any, _: EncodedRequest | None = None) -> JSONObject | None:
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


def _join_candidates(before: JSONMapping, after: JSONMapping) -> Any:
    kept = {name: value for name, value in before.items() if name not in _OF_THE_LAST}
    metadata, moved = part(after, "groundingMetadata"), []
    # The sources and parts that come before the later answer's.
    chunks = len(dicts(part(before, "groundingMetadata").get("groundingChunks")))
    parts = len(part(before, "content").get("parts") or ())
    for support in dicts(metadata.get("groundingSupports")):
        segment, numbers = part(support, "segment"), support.get("groundingChunkIndices")
        indices = [number for number in numbers if type(number) is int] if isinstance(numbers, list) else []
        segment = {**segment, "partIndex": parts + count(segment, "partIndex")}
        indices = [chunks + index for index in indices]
        moved.append({**support, "groundingChunkIndices": indices, "segment": segment})
    if moved:
        after = {**after, "groundingMetadata": {**metadata, "groundingSupports": moved}}
    return _merge(kept, after)


def _merge(before: Any, after: Any, name: str = "") -> Any:
    if isinstance(before, dict) and isinstance(after, dict):
        return {**before, **{key: _merge(before.get(key), after[key], key) for key in after}}
    if isinstance(before, list) and isinstance(after, list) and name != "safetyRatings":
        return [*before, *after]
    numbers = isinstance(before, (int, float)) and isinstance(after, (int, float))
    if numbers and name.endswith(("Count", "Sum")):
        return before + after
    return before if after is None else after


_LABELS = frozenset({"role", "id"})
_MEDIA = ("inlineData", "fileData", "inline_data", "file_data")


def facts(encoded: EncodedRequest) -> shared.RequestFacts:
    payload = encoded.payload
    settings = _field(payload, "generationConfig")
    resolution = str(_field(settings, "mediaResolution")).lower().removeprefix("media_resolution_")
    groups = (_field(payload, name) for name in ("systemInstruction", "contents"))
    tools, schema = _field(payload, "tools") or (), _field(settings, "responseJsonSchema")
    written = 0
    if encoded.continues is not None:
        # A bound where the answer so far tells no tokens.
        reported = usage(encoded.continues)
        written = len(canonical(encoded.continues)) if reported is None else reported.output_tokens
    return shared.collect_facts(
        _LABELS,
        functools.partial(_medium, resolution=resolution),
        groups,
        variant=variant(encoded),
        max_output_tokens=shared.largest_limit(_field(settings, "maxOutputTokens")),
        tools=tools,
        schemas=(schema,) if schema else (),
        # Google runs tools without functions by itself, and then reads their results.
        adds_input=_field(payload, "cachedContent") is not None
        or any(_field(tool, "functionDeclarations") is None or len(tool) > 1 for tool in tools),
        special_prices=lambda: shared.SpecialPrices(
            speaks="AUDIO" in str(_field(settings, "responseModalities"))
        ),
        continued=written,
    )


def variant(encoded: EncodedRequest) -> str:
    tier = encoded.payload.get("serviceTier") or encoded.payload.get("service_tier")
    return shared.variant_of(str(tier).lower() if tier else None) or "standard"


def _medium(part: JSONObject, resolution: str) -> shared.Medium | None:
    """The medium in a part of a turn, None if the part holds text."""
    for name in _MEDIA:
        inner = part.get(name)
        if isinstance(inner, dict):
            kind = str(_field(inner, "mimeType") or "application").partition("/")[0]
            return shared.Medium(kind, inner.get("data"), resolution)
    return None


def find_declared_functions(payload: JSONObject) -> set[str] | None:
    """The names of the functions that the user runs; None for an empty payload, which tells nothing.

    An MCP server has functions of its own, which may have any name.
    """
    names = set[str]()
    for tool in _field(payload, "tools") or ():
        if _field(tool, "mcpServers"):
            return set()
        names.update(str(_field(each, "name")) for each in _field(tool, "functionDeclarations") or ())
    return names if payload else None


def _field(container: Any, name: str) -> Any:
    """A field by its name. Google's JSON allows the same name in snake_case."""
    if not isinstance(container, dict):
        return None
    value = container.get(name)
    return container.get(snake_case(name)) if value is None else value


@functools.cache
def snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def usage(reply: Any) -> Usage | None:
    reported = find_counts(reply, "usageMetadata")
    return None if reported is None else with_tools(decode_usage(reported), *gemini_tools(reply))


def decode_usage(usage: JSONMapping) -> Usage:
    """Gemini's counts of tokens with inclusive totals: Gemini counts thoughts and tool prompts separately.

    >>> decode_usage({"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 5})
    Usage(input_tokens=9, output_tokens=7, reasoning_output_tokens=5)
    """
    thoughts = count(usage, "thoughtsTokenCount")
    return make_usage(
        input_tokens=count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
        output_tokens=count(usage, "candidatesTokenCount") + thoughts,
        cache_read_input_tokens=count(usage, "cachedContentTokenCount"),
        reasoning_output_tokens=thoughts,
        **count_media(usage, _DETAIL_FIELDS, "tokenCount"),
    )


def count_media(usage: JSONMapping, details: Sequence[str], field: str) -> dict[str, Any]:
    """The tokens of audio and of images in three details of a count, by the names of `Usage`."""
    tokens: dict[str, Any] = {}
    for name, fields in zip(details, _MEDIA_FIELDS, strict=True):
        for entry in dicts(usage[name]) if name in usage else ():
            if known := fields.get(str(entry.get("modality")).upper()):
                tokens[known] = tokens.get(known, 0) + count(entry, field)
    return tokens
