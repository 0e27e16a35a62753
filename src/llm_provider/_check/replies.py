"""Compares replies, as a server wrote them, with the types of the installed SDKs, and with themselves."""

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

UNKNOWN, WRONG = "new fields", "fields and events"
"""The rows of findings: where the types lack a field, and where a reply contradicts them, or its request."""

Finding: TypeAlias = tuple[str, str]
"""Its row, and what it is."""

_TYPES = (
    (r"/chat/completions$", "openai.types.chat", "ChatCompletion", "ChatCompletionChunk"),
    (r"/responses$", "openai.types.responses", "Response", "ResponseStreamEvent"),
    (r"/embeddings$", "openai.types", "CreateEmbeddingResponse"),
    (r"/v1/messages$", "anthropic.types", "Message", "RawMessageStreamEvent"),
    (r":(g|streamG)enerateContent$", "google.genai.types", *["GenerateContentResponse"] * 2),
    (r":batchEmbedContents$", "google.genai.types", "EmbedContentResponse"),
    (r"/v1/files$", "openai.types", "FileObject"),
    (r"/messages/batches(/\w+(/cancel)?)?$", "anthropic.types.messages", "MessageBatch"),
    (r"/v1/batches(/\w+(/cancel)?)?$", "openai.types", "Batch"),
)
"""Pattern of a path; a module, and its types of a whole reply and of an event."""

_KNOWN = re.compile(
    r"(response\.)?store: no|usage\.(cache_creation|service_tier|inference_geo): no|x_\w+: no"
    r"|.*type 'ping'|.*service_tier: |.*\.embedding: |usageMetadata\.promptTokenDetails: no"
)
"""What providers have long sent, and the types lack: vectors in base64, tiers, events without news."""

_USUAL_ENDS = "stop|length|tool_calls|STOP|MAX_TOKENS|end_turn|max_tokens|tool_use"
_SIGNS = (
    (r'"function_call":\s*\{"', "function_call: the form before tool_calls"),
    (r'"custom":\s*\{|"type":\s*"custom(_tool_call)?"', "a custom call answers a function"),
    (r'"tool_calls":\s*\[\s*\{[\s\S]*"finish_reason":\s*"stop"', "an answer with calls ends with stop"),
    (r'"function":\s*\{"name":\s*"\w+"\}', "a call without arguments"),
    (r"data: \[DONE\][ \t]+\n|data:\[DONE\]", "the end of the stream is not written 'data: [DONE]'"),
    (r'"type":\s*"message_start".*"content":\s*\[\s*\{', "message_start has content already"),
    (r'^\{.*\{"type":\s*"text",\s*"text":\s*"(\\n|\s)*"\}', "a text that is blank"),
    (rf'"(finish_?[rR]eason|stop_reason)":\s*"(?!({_USUAL_ENDS})")', "an unusual word ends the answer"),
)
"""Patterns of bodies that the types allow, and what each means."""

_TOTALS = {
    "total_tokens": ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"),
    "totalTokenCount":
        ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount"),
}  # fmt: skip
"""Sum → its parts."""

_PLAIN: dict[Any, Any] = {float: (int, float), bytes: str, datetime: str}
"""Types whose JSON is of another type."""


def inspect(exchange: Exchange) -> Iterator[Finding]:
    """What is unknown or wrong about one answer."""
    row = find_types(exchange)
    if row is None:
        return
    failed = exchange.status >= 400
    streamed = re.search(rb'"stream":\s*true', exchange.request) is not None or "alt=sse" in exchange.path
    kind = exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != ("text/event-stream" if streamed and not failed else "application/json"):
        yield WRONG, f"the content-type is {kind} with status {exchange.status}"
    body = exchange.body.decode(errors="replace")
    if failed:
        if not re.match(r'\s*\{[\s\S]*"error":\s*\{[\s\S]*"message":\s*"', body):
            yield WRONG, f"status {exchange.status} has no error.message: {body!r:.60}"
        return
    yield from ((WRONG, text) for pattern, text in _SIGNS if re.search(pattern, body))
    kind_of_event = getattr(importlib.import_module(row[1]), row[2 + streamed])
    lines = re.split(r"\r\n?|\n", body)  # Other separators of lines may stand within a text.
    data = [line[5:].strip() for line in lines if line.startswith("data:")] if streamed else [body]
    if streamed and row[2] == "ChatCompletion" and "[DONE]" not in data:
        yield WRONG, "the stream ends without [DONE]"
    events = [read_json(text) for text in data if text != "[DONE]"]
    for event in events:
        yield from (finding for finding in _compare(event, kind_of_event) if not _KNOWN.match(finding[1]))
    objects = [event for event in events if isinstance(event, dict)]
    problems = [*map(_check_counts, objects), *[_check_order(objects)] * streamed]
    yield from ((WRONG, text) for texts in problems for text in texts)


def find_types(exchange: Exchange) -> tuple[str, ...] | None:
    """The row of `_TYPES` that an answer is compared with; None if it is not compared."""
    path = exchange.path.partition("?")[0]
    return next((row for row in _TYPES if exchange.status and re.search(row[0], path)), None)


def read_json(text: str) -> Any:
    """The value of a JSON text; the text itself if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _check_counts(reply: JSONObject) -> Iterator[str]:
    response = reply.get("response") or {}
    usage = reply.get("usage") or reply.get("usageMetadata") or response.get("usage") or {}
    for total, parts in _TOTALS.items():
        if usage.get(total) not in (None, sum(usage.get(part) or 0 for part in parts)):
            yield f"{total} differs from the sum of its parts"
    for whole in _TOTALS["total_tokens"]:
        details = usage.get(f"{whole}_details") or {}
        if any((count or 0) > (usage.get(whole) or 0) for count in details.values()):
            yield f"{whole}_details has more than {whole}"


def _check_order(events: list[JSONObject]) -> Iterator[str]:
    """What only the events of a stream together can have wrong."""
    choices = [choice for event in events for choice in event.get("choices") or event.get("candidates") or ()]
    ends = [bool(choice.get("finish_reason") or choice.get("finishReason")) for choice in choices]
    if choices and True not in ends:
        yield "the stream ends without a finish reason"
    elif choices and "candidates" in events[0] and ends.index(True) < len(ends) - 1:
        yield "the stream goes on after its finishReason"
    calls = [call for choice in choices for call in (choice.get("delta") or {}).get("tool_calls") or ()]
    if calls and calls[0].get("index") != 0:
        yield f"the first call of a stream has the index {calls[0].get('index')}"
    items = [event["item"] for event in events if isinstance(event.get("item"), dict)]
    names = {(item.get("id"), item["call_id"]) for item in items if "call_id" in item}
    if len(names) > len({identifier for identifier, _ in names}):
        yield "a call of a stream has another call_id at its end"


def _compare(value: Any, kind: Any, path: str = "") -> Iterator[Finding]:
    """Where a JSON value differs from an annotation of pydantic models."""
    members = list(_list_members(kind))
    models = [member for member in members if hasattr(member, "model_fields")]
    entries = [typing.get_args(member)[0] for member in members if typing.get_origin(member) is list]
    words, plain = _list_words(kind), [typing.get_origin(member) or member for member in members]
    if any(member in (Any, object) for member in members) or (value is None and type(None) in members):
        return
    if value is None:
        yield WRONG, f"{path}: null"
    elif models and isinstance(value, dict):
        tags = [getattr(model.model_fields.get("type"), "annotation", None) for model in models]
        pairs = list(zip(models, map(_list_words, tags), strict=True))
        tagged = [model for model, words in pairs if value.get("type") in words]
        others = [model for model, words in pairs if not words or "type" not in value]
        if not (tagged or others):
            yield WRONG, f"{path or 'event'}: unknown type {value.get('type')!r:.40}"
        findings = [list(_compare_fields(value, model, path)) for model in tagged or others]
        yield from min(findings, key=len, default=[])
    elif entries and isinstance(value, list):
        for entry in value:
            yield from _compare(entry, entries[0], f"{path}[]")
    elif words and str not in members:
        if value not in words:
            yield WRONG, f"{path}: unknown word {value!r:.40}"
    elif not any(isinstance(value, _PLAIN.get(each, each)) for each in plain if isinstance(each, type)):
        yield WRONG, f"{path}: {value!r:.40} has another type"


def _compare_fields(value: JSONObject, model: Any, path: str) -> Iterator[Finding]:
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    prefix = f"{path}." if path else ""
    for name, field in fields.items():
        if field.is_required() and name not in value:
            yield WRONG, f"{prefix}{name}: missing"
    for name, inner in value.items():
        if name in fields:
            yield from _compare(inner, fields[name].annotation, f"{prefix}{name}")
        else:
            yield UNKNOWN, f"{prefix}{name}: no such field"


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
    """The values of the enumerations and literals of an annotation."""
    words: list[Any] = []
    for member in _list_members(kind):
        if isinstance(member, type) and issubclass(member, enum.Enum):
            words += [each.value for each in member]
        elif typing.get_origin(member) is typing.Literal:
            words += typing.get_args(member)
    return words
