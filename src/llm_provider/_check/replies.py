"""Compares replies, as a server wrote them, with the types of the installed SDKs, and with themselves.

A finding is "unknown" where the types lack a field, which `Response.raw` keeps, and "wrong" where a reply
contradicts them, or what it was asked.
"""

from __future__ import annotations

import enum
import importlib
import json
import re
import types
import typing
from collections.abc import Iterator
from datetime import datetime
from typing import Any, TypeAlias

from .._json_values import JSONObject
from .traffic import Exchange

Finding: TypeAlias = tuple[str, str]
"""Its kind, and what it is."""

_TYPES = (
    (r"/chat/completions$", "openai.types.chat", "ChatCompletion", "ChatCompletionChunk"),
    (r"/responses$", "openai.types.responses", "Response", "ResponseStreamEvent"),
    (r"/embeddings$", "openai.types", "CreateEmbeddingResponse"),
    (r"/v1/messages$", "anthropic.types", "Message", "RawMessageStreamEvent"),
    (r":(g|streamG)enerateContent$", "google.genai.types", *["GenerateContentResponse"] * 2),
    (r"/messages/batches(/\w+(/cancel)?)?$", "anthropic.types.messages", "MessageBatch"),
    (r"/v1/batches(/\w+(/cancel)?)?$", "openai.types", "Batch"),
)
"""Pattern of a path; a module, and its types of a whole reply and of an event."""

_KNOWN = re.compile(
    r"(response\.)?store: no|usage\.(cache_creation|service_tier|inference_geo): no|x_\w+: no"
    r"|.*type 'ping'|.*service_tier: |.*\.embedding: "
)
"""What providers have long sent, and the types lack: vectors in base64, tiers, events without news."""

_SIGNS = (
    (r'"function_call":\s*\{"', "function_call: the form before tool_calls"),
    (
        r'"custom":\s*\{|"type":\s*"custom(_tool_call)?"',
        "a custom call answers the declaration of a function",
    ),
    (r'"function":\s*\{"name":\s*"\w+"\}', "a call without arguments"),
    (r"data: \[DONE\][ \t]+\n|data:\[DONE\]", "the end of the stream is not written 'data: [DONE]'"),
    (r'"type":\s*"message_start".*"content":\s*\[\s*\{', "message_start has content already"),
    (r'^\{.*\{"type":\s*"text",\s*"text":\s*"(\\n|\s)*"\}', "a text that is blank"),
    (
        r'"(finish_?[rR]eason|stop_reason)":\s*"(?!(stop|length|tool_calls|STOP|MAX_TOKENS|end_turn|max_tokens|tool_use)")',
        "an unusual word ends the answer",
    ),
)
"""Patterns of bodies that the types allow, and what each means."""

_GEMINIS = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount")
_TOTALS = (
    ("total_tokens", ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")),
    ("totalTokenCount", _GEMINIS),
)

_PLAIN: dict[Any, Any] = {float: (int, float), bytes: str, datetime: str}
"""Types whose JSON is of another type."""


def inspect(exchange: Exchange) -> Iterator[Finding]:
    """What is unknown or wrong about one answer."""
    path, _, query = exchange.path.partition("?")
    row = next((row for row in _TYPES if re.search(row[0], path)), None)
    streamed = re.search(rb'"stream":\s*true', exchange.request) is not None or "alt=sse" in query
    if row is None or not exchange.status:
        return
    failed = exchange.status >= 400
    expected = "text/event-stream" if streamed and not failed else "application/json"
    kind = exchange.headers.get("content-type", "").partition(";")[0]
    if kind != expected:
        yield "wrong", f"the content-type is {kind} with status {exchange.status}"
    if failed:
        return
    body = exchange.body.decode(errors="replace")
    kind_of_event = getattr(importlib.import_module(row[1]), row[2 + streamed])
    yield from (("wrong", text) for pattern, text in _SIGNS if re.search(pattern, body))
    events = list(read_events(body)) if streamed else [_read_json(body)]
    for event in events:
        yield from (finding for finding in compare(event, kind_of_event) if not _KNOWN.match(finding[1]))
        yield from _check_counts(event if isinstance(event, dict) else {})
    if streamed:
        yield from _check_order([event for event in events if isinstance(event, dict)])


def read_events(body: str) -> Iterator[Any]:
    """The JSON values of a stream's events, without its end."""
    for line in body.splitlines():
        if line.startswith("data:") and line[5:].strip() != "[DONE]":
            yield _read_json(line[5:])


def _read_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _check_counts(reply: JSONObject) -> Iterator[Finding]:
    usage = (
        reply.get("usage") or reply.get("usageMetadata") or (reply.get("response") or {}).get("usage") or {}
    )
    for total, parts in _TOTALS:
        added = sum(usage.get(part) or 0 for part in parts)
        if usage.get(total) not in (None, added):
            yield "wrong", f"{total} differs from the sum of its parts"
    for whole in _TOTALS[0][1]:
        if any(
            (count or 0) > (usage.get(whole) or 0) for count in (usage.get(f"{whole}_details") or {}).values()
        ):
            yield "wrong", f"{whole}_details has more than {whole}"


def _check_order(events: list[JSONObject]) -> Iterator[Finding]:
    """What only the events of a stream together can have wrong."""
    choices = [choice for event in events for choice in event.get("choices") or event.get("candidates") or ()]
    ends = [bool(choice.get("finish_reason") or choice.get("finishReason")) for choice in choices]
    if choices and True not in ends:
        yield "wrong", "the stream ends without a finish reason"
    elif "candidates" in events[0] and ends.index(True) < len(ends) - 1:
        yield "wrong", "the stream goes on after its finishReason"
    calls = [call for choice in choices for call in (choice.get("delta") or {}).get("tool_calls") or ()]
    if calls and calls[0].get("index") != 0:
        yield "wrong", f"the first call of a stream has the index {calls[0].get('index')}"
    items = [event["item"] for event in events if isinstance(event.get("item"), dict)]
    names = {(item.get("id"), item["call_id"]) for item in items if "call_id" in item}
    if len(names) > len({identifier for identifier, _ in names}):
        yield "wrong", "a call of a stream has another call_id at its end"


def compare(value: Any, kind: Any, path: str = "") -> Iterator[Finding]:
    """Where a JSON value differs from an annotation of pydantic models."""
    members = list(_list_members(kind))
    if value is None or any(member in (Any, object) for member in members):
        if value is None and not any(member in (Any, object, type(None)) for member in members):
            yield "wrong", f"{path}: null"
        return
    models = [member for member in members if hasattr(member, "model_fields")]
    entries = [typing.get_args(member)[0] for member in members if typing.get_origin(member) is list]
    words = [word for member in members for word in _list_words(member)]
    if models and isinstance(value, dict):
        tagged = [model for model in models if value.get("type") in _list_tags(model)]
        fitting = tagged or [model for model in models if "type" not in value or not _list_tags(model)]
        if not fitting:
            yield "wrong", f"{path or 'event'}: unknown type {value.get('type')!r:.40}"
        yield from min((list(_compare_fields(value, model, path)) for model in fitting), key=len, default=[])
    elif entries and isinstance(value, list):
        for entry in value:
            yield from compare(entry, entries[0], f"{path}[]")
    elif words and str not in members:
        if value not in words:
            yield "wrong", f"{path}: unknown word {value!r:.40}"
    else:
        plain = [typing.get_origin(member) or member for member in members]
        if not any(
            isinstance(value, _PLAIN.get(member, member)) for member in plain if isinstance(member, type)
        ):
            yield "wrong", f"{path}: {value!r:.40} has another type"


def _compare_fields(value: JSONObject, model: Any, path: str) -> Iterator[Finding]:
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    prefix = f"{path}." if path else ""
    for name in [name for name, field in fields.items() if field.is_required() and name not in value]:
        yield "wrong", f"{prefix}{name}: missing"
    for name, inner in value.items():
        if name in fields:
            yield from compare(inner, fields[name].annotation, f"{prefix}{name}")
        else:
            yield "unknown", f"{prefix}{name}: no such field"


def _list_members(kind: Any) -> Iterator[Any]:
    """The members of a union; any other annotation is its own only member."""
    if hasattr(kind, "__value__") or typing.get_origin(kind) is typing.Annotated:
        yield from _list_members(getattr(kind, "__value__", None) or typing.get_args(kind)[0])
    elif typing.get_origin(kind) in (typing.Union, types.UnionType):
        for member in typing.get_args(kind):
            yield from _list_members(member)
    else:
        yield kind


def _list_words(kind: Any) -> list[Any]:
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return [member.value for member in kind]
    return list(typing.get_args(kind)) if typing.get_origin(kind) is typing.Literal else []


def _list_tags(model: Any) -> list[Any]:
    """The words of the field `type` of a model: they tell the members of a union apart."""
    field = model.model_fields.get("type")
    return (
        []
        if field is None
        else [word for member in _list_members(field.annotation) for word in _list_words(member)]
    )
