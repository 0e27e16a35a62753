"""The wire format of Gemini's ``generateContent``."""

from __future__ import annotations

import base64
import math
import re
from functools import cache
from typing import TYPE_CHECKING, Any

import orjson

from .content import count_tokens, read_text
from .wire_format import Completion, Frame, Headers, LimitState, Problem, Prompt, Request, Sample, Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

TYPES = "type.googleapis.com/google.rpc."

_ERRORS: dict[int, tuple[str, str]] = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    402: ("FAILED_PRECONDITION", "Billing is not enabled for this project."),
    403: ("PERMISSION_DENIED", "Your API key has no permission to use this model."),
    404: ("NOT_FOUND", "The model is not found or not supported for generateContent."),
    408: ("DEADLINE_EXCEEDED", "The request took too long to arrive."),
    409: ("ABORTED", "The request conflicts with another one."),
    413: ("INVALID_ARGUMENT", "Request payload size exceeds the limit."),
    422: ("INVALID_ARGUMENT", "The request could not be processed."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    500: ("INTERNAL", "An internal error has occurred."),
    502: ("UNAVAILABLE", "Bad gateway."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "The request could not be completed in time."),
    529: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}
_FINISH = {
    "stop": "STOP",
    "stop_sequence": "STOP",
    "length": "MAX_TOKENS",
    "tool_calls": "STOP",
    "refusal": "SAFETY",
    "content_filter": "PROHIBITED_CONTENT",
}


def read(request: Request) -> Prompt | Problem:
    """Read a ``generateContent`` or ``streamGenerateContent`` request; the model is in the path."""
    body = request.body
    name, _, action = request.path.rpartition("/models/")[2].partition(":")
    contents = body.get("contents")
    if not isinstance(contents, list) or not contents:
        return Problem("* GenerateContentRequest.contents: contents is not specified")
    text, characters = "", _read_part_text(_get(body, "systemInstruction"))[1]
    for content in contents:
        if not isinstance(content, dict):
            return Problem("Invalid value at 'contents'")
        said, length = _read_part_text(content)
        characters += length
        if content.get("role", "user") in ("user", "function"):
            text = said
    prompt = Prompt(
        model=name,
        text=text,
        characters=characters,
        stream=action == "streamGenerateContent",
        request=request,
    )
    if len(body) > 1:
        _read_options(prompt, _get(body, "generationConfig") or {})
        _read_tools(prompt, body)
    return prompt


def _read_options(prompt: Prompt, options: Mapping[str, Any]) -> None:
    prompt.max_tokens = _get(options, "maxOutputTokens")
    prompt.stop = tuple(_get(options, "stopSequences") or ())
    prompt.samples = _get(options, "candidateCount") or 1
    prompt.seed = _get(options, "seed") or 0
    thinking = _get(options, "thinkingConfig") or {}
    prompt.reasoning = bool(_get(thinking, "thinkingLevel") or _get(thinking, "thinkingBudget"))
    prompt.show_reasoning = bool(_get(thinking, "includeThoughts"))
    if _get(options, "responseLogprobs"):
        prompt.logprobs = _get(options, "logprobs") or 0
    if _get(options, "responseMimeType") == "application/json":
        prompt.schema = _get(options, "responseJsonSchema") or _get(options, "responseSchema") or {}


def _read_tools(prompt: Prompt, body: Mapping[str, Any]) -> None:
    functions = [
        function for tool in body.get("tools") or () for function in _get(tool, "functionDeclarations") or ()
    ]
    if not functions:
        return
    prompt.characters += len(orjson.dumps(functions))
    choice = _get(_get(body, "toolConfig") or {}, "functionCallingConfig") or {}
    if choice.get("mode") == "NONE":
        return
    prompt.tools = tuple(
        Tool(
            function.get("name", ""),
            _get(function, "parametersJsonSchema") or function.get("parameters") or {},
        )
        for function in functions
    )
    allowed = _get(choice, "allowedFunctionNames") or [True]
    prompt.force_tool = allowed[0] if choice.get("mode") == "ANY" else False


def reject(prompt: Prompt) -> Problem | None:
    """Reject a thinking budget together with a thinking level."""
    options = _get(prompt.request.body, "generationConfig")
    thinking = _get(options, "thinkingConfig") if options else None
    if thinking and _get(thinking, "thinkingBudget") is not None and _get(thinking, "thinkingLevel"):
        return Problem("You can only set one of thinking budget and thinking level.")
    return None


def _get(values: Mapping[str, Any], name: str) -> Any:
    """A field in either of the spellings that the API accepts; the SDK sends a mixture of both."""
    value = values.get(name)
    return values.get(_snake_case(name)) if value is None else value


@cache
def _snake_case(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()


def reply(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """A ``GenerateContentResponse``."""
    if is_blocked(prompt):
        return {"promptFeedback": {"blockReason": "SAFETY"}, **_make_envelope(completion)}
    candidates = [
        _make_candidate(prompt, completion, index, _make_parts(prompt, completion, sample), last=True)
        for index, sample in enumerate(completion.samples)
    ]
    return (
        {"candidates": candidates, **_make_envelope(completion)} if candidates else _make_envelope(completion)
    )


def stream(prompt: Prompt, completion: Completion) -> Iterator[Frame]:
    """``GenerateContentResponse`` events; the last event of each candidate has its finish reason."""
    if is_blocked(prompt) or not completion.samples:
        yield _write_event(reply(prompt, completion))
        return
    envelope = _make_envelope(completion)
    final = envelope["usageMetadata"]
    sent = 0
    for index, sample in enumerate(completion.samples):
        parts: list[tuple[dict[str, Any], int]] = []
        for part in _make_parts(prompt, completion, sample):
            if part.get("thought") or "text" not in part:
                call = part.get("functionCall")
                parts.append((part, count_tokens(orjson.dumps(call["args"]).decode()) if call else 0))
                continue
            parts += [({"text": piece}, count_tokens(piece)) for piece in sample.pieces] or [
                ({"text": ""}, 0)
            ]
            parts[-1][0].update({name: value for name, value in part.items() if name != "text"})
        for number, (part, tokens) in enumerate(parts or [({}, 0)]):
            last = number >= len(parts) - 1
            sent += tokens if completion.counted else 0
            # Every event has the totals so far, so that the last event received has the right ones.
            envelope["usageMetadata"] = final if last else {**final, "candidatesTokenCount": sent}
            if not last:
                thoughts = final.get("thoughtsTokenCount", 0)
                envelope["usageMetadata"]["totalTokenCount"] = final["promptTokenCount"] + sent + thoughts
            pieces = [part] if part else []
            candidate = _make_candidate(prompt, completion, index, pieces, last=last)
            yield _write_event({"candidates": [candidate], **envelope}, tokens)


def write_error(problem: Problem, _request_identifier: str) -> tuple[int, dict[str, Any]]:
    """``{"error": {code, message, status, details}}``."""
    word, message = _ERRORS.get(problem.status, _ERRORS[500 if problem.status >= 500 else 400])
    details: list[dict[str, Any]] = []
    if problem.status == 429:
        period = "PerDay" if problem.quota else "PerMinute"
        violation = {
            "quotaMetric": "generativelanguage.googleapis.com/generate_requests",
            "quotaId": f"GenerateRequests{period}PerProjectPerModel",
        }
        details.append({"@type": TYPES + "QuotaFailure", "violations": [violation]})
        if problem.retry_after is not None and problem.retry_after_style != "date":
            delay = problem.retry_after
            if problem.retry_after_style == "ms":
                delay = f"{float(delay) / 1000:.3f}".rstrip("0").rstrip(".")
            details.append(
                {"@type": TYPES + "RetryInfo", "retryDelay": delay if delay.endswith("s") else delay + "s"}
            )
    if problem.quota:
        message = "You exceeded your current quota, please check your plan and billing details."
    body: dict[str, Any] = {
        "code": problem.status,
        "message": problem.message or message,
        "status": problem.type or problem.code or word,
    }
    if details:
        body["details"] = details
    return problem.status, {"error": body}


def write_error_frame(problem: Problem, _request_identifier: str) -> bytes:
    """An event that holds an error object."""
    return b"data: " + orjson.dumps(write_error(problem, _request_identifier)[1]) + b"\r\n\r\n"


def refuse_rate(seconds: float | None) -> Problem:
    """A 429 with the wait in ``RetryInfo``, in the body."""
    wait = None if seconds is None else f"{math.ceil(seconds * 1000) / 1000:g}s"
    return Problem(status=429, retry_after=wait, retry_after_style="retry_info")


def refuse_length(tokens: int, limit: int) -> Problem:
    """An ``INVALID_ARGUMENT`` with both numbers in its message."""
    message = f"The input token count ({tokens}) exceeds the maximum number of tokens allowed ({limit})."
    return Problem(message)


def write_limit_headers(_state: LimitState) -> Headers:
    """No headers: Gemini describes its limits only in the body of an error."""
    return []


def _read_part_text(content: Any) -> tuple[str, int]:
    return read_text(content.get("parts") if isinstance(content, dict) else content)


def is_blocked(prompt: Prompt) -> bool:
    return "please refuse the prompt" in prompt.text


def _make_envelope(completion: Completion) -> dict[str, Any]:
    usage = completion.reported
    thoughts = usage.reasoning_output_tokens
    counts: dict[str, Any] = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens - thoughts,
        "totalTokenCount": usage.input_tokens + usage.output_tokens,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": usage.input_tokens}],
    }
    if usage.cache_read_input_tokens:
        counts["cachedContentTokenCount"] = usage.cache_read_input_tokens
        counts["cacheTokensDetails"] = [{"modality": "TEXT", "tokenCount": usage.cache_read_input_tokens}]
    if thoughts:
        counts["thoughtsTokenCount"] = thoughts
    return {"usageMetadata": counts, "modelVersion": completion.model, "responseId": completion.identifier}


def _make_candidate(
    prompt: Prompt, completion: Completion, index: int, parts: list[dict[str, Any]], *, last: bool
) -> dict[str, Any]:
    sample, searches = completion.samples[index], completion.usage.web_searches
    content: dict[str, Any] = {"role": "model"}
    if parts:
        content["parts"] = parts
    candidate: dict[str, Any] = {"content": content, "index": index}
    if last:
        candidate["finishReason"] = _FINISH[sample.finish]
        if searches and not index:
            candidate["groundingMetadata"] = {
                "searchEntryPoint": {"renderedContent": "<div></div>"},
                "groundingChunks": [{"web": {"uri": "https://example.com/", "title": "example.com"}}],
                "webSearchQueries": [f"search {number}" for number in range(searches)],
            }
        if prompt.logprobs is not None:
            candidate["avgLogprobs"] = -0.1
            candidate["logprobsResult"] = _make_logprobs(sample.text or "", prompt.logprobs)
    return candidate


def _make_parts(prompt: Prompt, completion: Completion, sample: Sample) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    signature = {}
    if sample.reasoning:
        thought = base64.b64encode(f"thought {completion.identifier}".encode()).decode()
        signature = {"thoughtSignature": thought}
        if prompt.show_reasoning:
            parts.append({"text": sample.reasoning, "thought": True})
    if sample.text is not None and sample.finish not in ("refusal", "content_filter"):
        parts.append({"text": sample.text, **signature})
    for name, arguments in sample.tool_calls:
        parts.append({"functionCall": {"name": name, "args": arguments}, **signature})
    return parts


def _make_logprobs(text: str, alternatives: int) -> dict[str, Any]:
    tokens = [
        {"token": text[start : start + 4], "tokenId": start, "logProbability": -0.1}
        for start in range(0, len(text), 4)
    ]
    top = [{"candidates": [token] * alternatives} for token in tokens]
    return {"chosenCandidates": tokens, "topCandidates": top}


def _write_event(data: Mapping[str, Any], tokens: int = 0) -> Frame:
    return Frame(b"data: " + orjson.dumps(data) + b"\r\n\r\n", tokens)
