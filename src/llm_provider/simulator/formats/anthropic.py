"""The wire format of Anthropic's messages."""

from __future__ import annotations

import base64
import math
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from .content import count_tokens, read_text, split_fragments
from .wire_format import Completion, Frame, Headers, LimitState, Problem, Prompt, Request, Sample, Tool

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

SAMPLING = ("temperature", "top_p", "top_k")
NO_SAMPLING_SINCE = b"2026-10-21"
NOTHING = Sample(text=None, pieces=[], reasoning="", tool_calls=[], finish="stop")

_CURRENT = re.compile(r"claude-(?:(?:opus|sonnet|haiku|fable|mythos)-5|opus-4-[7-9])")
_ALWAYS_THINKING = re.compile(r"claude-(?:(?:opus|sonnet)-5-5|fable|mythos)")
_NO_PREFILL = re.compile(r"claude-(?:\w+-5|(?:opus|sonnet)-4-[6-9])")
_ERRORS: dict[int, tuple[str, str]] = {
    400: ("invalid_request_error", "The request is not valid."),
    401: ("authentication_error", "invalid x-api-key"),
    402: ("billing_error", "Your credit balance is too low to access the API."),
    403: ("permission_error", "Your API key has no permission to use this resource."),
    404: ("not_found_error", "The requested resource was not found."),
    408: ("timeout_error", "The request took too long to arrive."),
    409: ("conflict_error", "The request conflicts with another one."),
    413: ("request_too_large", "Request exceeds the maximum size."),
    422: ("invalid_request_error", "The request could not be processed."),
    429: ("rate_limit_error", "This request would exceed your organization's rate limit."),
    500: ("api_error", "Internal server error"),
    502: ("api_error", "Bad gateway"),
    503: ("api_error", "Service unavailable"),
    504: ("timeout_error", "The request timed out while processing."),
    529: ("overloaded_error", "Overloaded"),
}
_STOP_REASONS = {
    "stop": "end_turn",
    "stop_sequence": "stop_sequence",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "refusal": "refusal",
    "content_filter": "refusal",
}


def read(request: Request) -> Prompt | Problem:
    """Read a messages request."""
    body = request.body
    messages, model = body.get("messages"), body.get("model")
    if not isinstance(model, str) or not model:
        return Problem("model: Field required")
    limit = body.get("max_tokens")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
        return Problem("max_tokens: Field required" if limit is None else "max_tokens: not valid")
    if not isinstance(messages, list) or not messages:
        return Problem("messages: at least one message is required")
    text, characters = "", read_text(body.get("system") or "")[1]
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
            return Problem(f"messages.{index}.role: 'user' or 'assistant' expected")
        content, length = read_text(message.get("content"))
        characters += length
        if message["role"] == "user":
            text = content
    thinking = body.get("thinking") or {}
    output = body.get("output_config") or {}
    prompt = Prompt(
        model=model,
        text=text,
        characters=characters,
        request=request,
        stream=bool(body.get("stream")),
        max_tokens=limit,
        stop=tuple(body.get("stop_sequences") or ()),
        reasoning=thinking.get("type") not in (None, "disabled")
        or ("effort" in output and thinking.get("type") != "disabled"),
        show_reasoning=thinking.get("display") != "omitted",
    )
    answer = output.get("format") or body.get("output_format") or {}
    if answer.get("type") == "json_schema":
        prompt.schema = answer.get("schema", {})
    tools, choice = body.get("tools") or [], body.get("tool_choice") or {}
    if tools:
        prompt.characters += len(orjson.dumps(tools))
        if choice.get("type") != "none":
            prompt.tools = tuple(Tool(tool.get("name", ""), tool.get("input_schema") or {}) for tool in tools)
            prompt.force_tool = choice.get("name") or choice.get("type") == "any"
    return prompt


def reject(prompt: Prompt) -> Problem | None:
    """Reject what current models reject: sampling, budgets for thinking, forced tools, prefilled answers."""
    body, model = prompt.request.body, prompt.model
    version = prompt.request.headers.get(b"anthropic-version", b"")
    if _CURRENT.match(model) or version >= NO_SAMPLING_SINCE:
        for name in SAMPLING:
            if body.get(name) is not None:
                return Problem(f"{name}: this parameter is not supported with {model}")
    thinking = (body.get("thinking") or {}).get("type")
    if thinking == "enabled" and _CURRENT.match(model):
        return Problem(f"thinking.type: 'enabled' is not supported with {model}, use 'adaptive'")
    if _ALWAYS_THINKING.match(model):
        if thinking == "disabled":
            return Problem(f"thinking.type: thinking cannot be disabled with {model}")
        if prompt.force_tool:
            return Problem("tool_choice: forced tool use is not possible while thinking is on")
    last = body["messages"][-1]
    if _NO_PREFILL.match(model) and last["role"] == "assistant" and not _is_paused(last.get("content")):
        return Problem(f"messages: {model} does not support a prefilled assistant message")
    return None


def _is_paused(content: Any) -> bool:
    """Whether an assistant's turn is a paused one: it holds blocks of tools that Anthropic runs."""
    blocks = content if isinstance(content, list) else ()
    return any(str(block.get("type", "")).startswith("server_tool_use") for block in blocks)


def reply(prompt: Prompt, completion: Completion) -> dict[str, Any]:
    """A ``message`` object."""
    sample = completion.samples[0] if completion.samples else NOTHING
    return {
        **_make_envelope(completion),
        "content": _make_blocks(prompt, completion, sample),
        **_describe_end(sample),
        "usage": _write_usage(completion),
    }


def stream(prompt: Prompt, completion: Completion) -> Iterator[Frame]:
    """The named events of a message stream."""
    sample, usage = completion.samples[0] if completion.samples else NOTHING, _write_usage(completion)
    start = {**usage, "output_tokens": min(1, completion.reported.output_tokens)}
    start.pop("output_tokens_details")
    end = {"stop_reason": None, "stop_sequence": None}
    message = {**_make_envelope(completion), "content": [], **end, "usage": start}
    yield _write_event("message_start", {"message": message})
    for index, block in enumerate(_make_blocks(prompt, completion, sample)):
        yield from _stream_block(index, block, sample)
        if index == 0:
            yield _write_event("ping", {})
    yield _write_event("message_delta", {"delta": _describe_end(sample), "usage": usage})
    yield _write_event("message_stop", {})


def write_error(problem: Problem, request_identifier: str) -> tuple[int, dict[str, Any]]:
    """``{"type": "error", "error": {type, message}, "request_id"}``."""
    status = problem.status
    kind, message = _ERRORS.get(status, _ERRORS[500 if status >= 500 else 400])
    if problem.quota:
        status = 402 if status == 429 else status
        kind, message = _ERRORS[402]
    body = {"type": problem.type or kind, "message": problem.message or message}
    if problem.code is not None:
        body["code"] = problem.code
    return status, {"type": "error", "error": body, "request_id": request_identifier}


def write_error_frame(problem: Problem, request_identifier: str) -> bytes:
    """An ``error`` event."""
    return b"event: error\ndata: " + orjson.dumps(write_error(problem, request_identifier)[1]) + b"\n\n"


def refuse_rate(seconds: float | None) -> Problem:
    """A 429 with the wait in whole seconds, rounded up."""
    return Problem(status=429, retry_after=None if seconds is None else str(math.ceil(seconds)))


def refuse_length(tokens: int, limit: int) -> Problem:
    """``prompt is too long``."""
    return Problem(f"prompt is too long: {tokens} tokens > {limit} maximum")


def write_limit_headers(state: LimitState) -> Headers:
    """``anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}``, the reset as an RFC 3339 time."""
    headers: Headers = []
    for name, values in ((b"requests", state.requests), (b"tokens", state.tokens)):
        if values is not None:
            limit, remaining, seconds = values
            # Rounded up to the next whole second, because an earlier time would be wrong.
            reset = datetime.now(UTC) + timedelta(seconds=seconds + 0.999999)
            headers.append((b"anthropic-ratelimit-%s-limit" % name, b"%d" % limit))
            headers.append((b"anthropic-ratelimit-%s-remaining" % name, b"%d" % remaining))
            headers.append((b"anthropic-ratelimit-%s-reset" % name, f"{reset:%Y-%m-%dT%H:%M:%SZ}".encode()))
    return headers


def _make_envelope(completion: Completion) -> dict[str, Any]:
    return {
        "id": f"msg_{completion.identifier}",
        "type": "message",
        "role": "assistant",
        "model": completion.model,
    }


def _describe_end(sample: Sample) -> dict[str, Any]:
    end: dict[str, Any] = {"stop_reason": _STOP_REASONS[sample.finish], "stop_sequence": sample.stop_sequence}
    if end["stop_reason"] == "refusal":
        end["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
    return end


def _make_blocks(prompt: Prompt, completion: Completion, sample: Sample) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    if sample.reasoning:
        signature = base64.b64encode(f"signature of {completion.identifier}".encode()).decode()
        thinking = sample.reasoning if prompt.show_reasoning else ""
        blocks.append({"type": "thinking", "thinking": thinking, "signature": signature})
    if sample.text:
        blocks.append({"type": "text", "text": sample.text})
    for index, (name, arguments) in enumerate(sample.tool_calls):
        identifier = f"toolu_{completion.identifier}_{index}"
        blocks.append({"type": "tool_use", "id": identifier, "name": name, "input": arguments})
    return blocks


def _stream_block(index: int, block: dict[str, Any], sample: Sample) -> Iterator[Frame]:
    deltas: list[tuple[dict[str, Any], int]]
    empty: dict[str, Any]
    if block["type"] == "text":
        empty = {"type": "text", "text": ""}
        deltas = [({"type": "text_delta", "text": piece}, count_tokens(piece)) for piece in sample.pieces]
    elif block["type"] == "thinking":
        empty = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [({"type": "thinking_delta", "thinking": block["thinking"]}, 0)] if block["thinking"] else []
        deltas.append(({"type": "signature_delta", "signature": block["signature"]}, 0))
    else:
        empty = {**block, "input": {}}
        arguments = orjson.dumps(block["input"]).decode()
        deltas = [
            ({"type": "input_json_delta", "partial_json": part}, count_tokens(part))
            for part in split_fragments(arguments)
        ]
    yield _write_event("content_block_start", {"index": index, "content_block": empty})
    for delta, tokens in deltas:
        yield _write_event("content_block_delta", {"index": index, "delta": delta}, tokens)
    yield _write_event("content_block_stop", {"index": index})


def _write_event(name: str, data: Mapping[str, Any], tokens: int = 0) -> Frame:
    return Frame(b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps({"type": name, **data})), tokens)


def _write_usage(completion: Completion) -> dict[str, Any]:
    usage = completion.reported
    read, written = usage.cache_read_input_tokens, usage.cache_write_input_tokens
    return {
        "input_tokens": usage.input_tokens - read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_output_tokens},
        "server_tool_use": {"web_search_requests": usage.web_searches, "web_fetch_requests": 0},
        "service_tier": "standard",
        "inference_geo": usage.geo,
    }
