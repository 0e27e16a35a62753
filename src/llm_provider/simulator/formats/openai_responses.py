"""The wire format of OpenAI's responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from .content import count_tokens, read_text, split_fragments
from .openai_chat import (
    make_logprobs,
    model_refuses_temperature,
    read_tools,
    refuse_length,
    refuse_parameter,
    refuse_rate,
    write_error,
    write_limit_headers,
)
from .wire_format import Completion, Frame, Problem, Prompt, Request

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = [
    "read", "refuse_length", "refuse_rate", "reject", "reply", "stream", "write_error", "write_error_frame",
    "write_limit_headers",
]  # fmt: skip

CHAT_ONLY = ("max_tokens", "max_completion_tokens", "messages", "n", "response_format", "seed", "stop")
LOGPROBS = "message.output_text.logprobs"
CONSTANT_FIELDS = {
    "object": "response", "background": False, "error": None, "previous_response_id": None,
    "service_tier": "default", "truncation": "disabled",
}  # fmt: skip
REPEATED_FIELDS = {
    "instructions": None, "parallel_tool_calls": True, "store": True, "temperature": 1.0,
    "tool_choice": "auto", "top_p": 1.0,
}  # fmt: skip
"""Fields that a response repeats from its request, and their defaults."""

Item = dict[str, Any]


def read(request: Request) -> Prompt | Problem:
    """Read a responses request."""
    body = request.body
    model, items = body.get("model"), body.get("input")
    if not isinstance(model, str) or not model:
        return Problem("Missing required parameter: 'model'.", parameter="model")
    for name in CHAT_ONLY:
        if name in body:
            return Problem(f"Unknown parameter: '{name}'.", code="unknown_parameter", parameter=name)
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    if not isinstance(items, list) or not items:
        return Problem("Missing required parameter: 'input'.", parameter="input")
    text, characters = "", read_text(body.get("instructions") or "")[1]
    for item in items:
        content, length = read_text(item.get("content") or item.get("output") or item.get("arguments") or "")
        characters += length
        if item.get("role") == "user" or item.get("type") == "function_call_output":
            text = content
    prompt = Prompt(
        model=model,
        text=text,
        characters=characters,
        request=request,
        stream=bool(body.get("stream")),
        max_tokens=body.get("max_output_tokens"),
        reasoning=(body.get("reasoning") or {}).get("effort") not in (None, "none"),
    )
    if LOGPROBS in (body.get("include") or ()):
        prompt.logprobs = body.get("top_logprobs") or 0
    read_tools(prompt, body.get("tools") or [], body.get("tool_choice"))
    answer = (body.get("text") or {}).get("format") or {}
    if answer.get("type") == "json_schema":
        prompt.schema = answer.get("schema") or {}
    elif answer.get("type") == "json_object":
        prompt.schema = {}
    return prompt


def reject(prompt: Prompt) -> Problem | None:
    """Reject a temperature while the model reasons."""
    if prompt.provider == "openai" and model_refuses_temperature(prompt.model):
        effort = (prompt.request.body.get("reasoning") or {}).get("effort")
        if prompt.request.body.get("temperature") not in (None, 1) and effort != "none":
            return refuse_parameter("temperature", "Leave it out.")
    return None


def reply(prompt: Prompt, completion: Completion) -> Item:
    """A ``response`` object, completed or incomplete."""
    items = _make_items(prompt, completion) if completion.samples else []
    return _make_response(prompt, completion, _find_status(completion), items)


def stream(prompt: Prompt, completion: Completion) -> Iterator[Frame]:
    """The named events of a response stream, numbered from 0."""
    event = _Events()
    response = _make_response(prompt, completion, "in_progress", [])
    yield event("response.created", {"response": response})
    yield event("response.in_progress", {"response": response})
    items = _make_items(prompt, completion) if completion.samples else []
    for index, item in enumerate(items):
        empty = {name: value for name, value in item.items() if name not in ("content", "arguments")}
        position = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            empty |= {"content": [], "status": "in_progress"}
            inner = _stream_message(event, position, item["content"][0], completion.samples[0].pieces)
        elif item["type"] == "function_call":
            empty |= {"arguments": "", "status": "in_progress"}
            inner = _stream_call(event, position, item)
        else:
            inner = iter(())
        yield event("response.output_item.added", {"output_index": index, "item": empty})
        yield from inner
        yield event("response.output_item.done", {"output_index": index, "item": item})
    status = _find_status(completion)
    yield event(f"response.{status}", {"response": _make_response(prompt, completion, status, items)})


class _Events:
    """Creates the frames of one stream and numbers them in order."""

    def __init__(self) -> None:
        self._number = 0

    def __call__(self, name: str, data: Mapping[str, Any], tokens: int = 0) -> Frame:
        line = orjson.dumps({"type": name, "sequence_number": self._number, **data})
        self._number += 1
        return Frame(b"event: %s\ndata: %s\n\n" % (name.encode(), line), tokens)


def _stream_message(event: _Events, position: Item, part: Item, pieces: list[str]) -> Iterator[Frame]:
    position = {**position, "content_index": 0}
    if part["type"] == "refusal":
        name, field, logprobs = "response.refusal", "refusal", {}
    else:
        name, field, logprobs = "response.output_text", "text", {"logprobs": part["logprobs"]}
    no_logprobs: Item = {key: [] for key in logprobs}
    yield event("response.content_part.added", {**position, "part": {**part, field: "", **no_logprobs}})
    for piece in pieces:
        yield event(f"{name}.delta", {**position, "delta": piece, **no_logprobs}, count_tokens(piece))
    yield event(f"{name}.done", {**position, field: part[field], **logprobs})
    yield event("response.content_part.done", {**position, "part": part})


def _stream_call(event: _Events, position: Item, item: Item) -> Iterator[Frame]:
    name = "response.function_call_arguments"
    for piece in split_fragments(item["arguments"]):
        yield event(f"{name}.delta", {**position, "delta": piece}, count_tokens(piece))
    yield event(f"{name}.done", {**position, "name": item["name"], "arguments": item["arguments"]})


def write_error_frame(problem: Problem, request_identifier: str) -> bytes:
    """An ``error`` event."""
    body = write_error(problem, request_identifier)[1]["error"]
    return _Events()("error", {**body, "type": "error", "sequence_number": 0}).data


def _find_status(completion: Completion) -> str:
    finishes = {sample.finish for sample in completion.samples}
    return "incomplete" if finishes & {"length", "content_filter"} else "completed"


def _make_response(prompt: Prompt, completion: Completion, status: str, items: list[Item]) -> Item:
    body, reason = prompt.request.body, None
    if status == "incomplete":
        length = completion.samples[0].finish == "length"
        reason = {"reason": "max_output_tokens" if length else "content_filter"}
    return {
        "id": f"resp_{completion.identifier}",
        "created_at": completion.created,
        "status": status,
        "incomplete_details": reason,
        "max_output_tokens": prompt.max_tokens,
        "model": completion.model,
        "output": items,
        "reasoning": {"effort": (body.get("reasoning") or {}).get("effort"), "summary": None},
        "text": body.get("text") or {"format": {"type": "text"}},
        "tools": body.get("tools") or [],
        "usage": None if status == "in_progress" else _write_usage(completion),
        "metadata": body.get("metadata") or {},
        **CONSTANT_FIELDS,
        **{name: body.get(name, default) for name, default in REPEATED_FIELDS.items()},
    }


def _make_items(prompt: Prompt, completion: Completion) -> list[Item]:
    sample, identifier = completion.samples[0], completion.identifier
    items: list[Item] = []
    if sample.reasoning:
        items.append({"id": f"rs_{identifier}", "type": "reasoning", "summary": []})
    for number in range(completion.usage.web_searches):
        query = f"search {number}"
        for action in (
            {"type": "search", "query": query, "queries": [query], "sources": []},
            {"type": "open_page", "url": "https://example.com/"},
        ):
            name = f"ws_{identifier}_{number}_{action['type']}"
            items.append({"id": name, "type": "web_search_call", "status": "completed", "action": action})
    if sample.text is not None:
        if sample.finish == "refusal":
            part: Item = {"type": "refusal", "refusal": sample.text}
        else:
            logprobs = [] if prompt.logprobs is None else make_logprobs(sample.text, prompt.logprobs)
            part = {"type": "output_text", "text": sample.text, "annotations": [], "logprobs": logprobs}
        ended = "incomplete" if sample.finish in ("length", "content_filter") else "completed"
        message = {"id": f"msg_{identifier}", "type": "message", "status": ended, "role": "assistant"}
        items.append({**message, "content": [part]})
    for number, (name, arguments) in enumerate(sample.tool_calls):
        call = {"type": "function_call", "status": "completed", "call_id": f"call_{identifier}_{number}"}
        text = orjson.dumps(arguments).decode()
        items.append({"id": f"fc_{identifier}_{number}", **call, "name": name, "arguments": text})
    return items


def _write_usage(completion: Completion) -> Item:
    usage = completion.reported
    read, written = usage.cache_read_input_tokens, usage.cache_write_input_tokens
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_output_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
