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

from ..._core.json_values import JSONObject
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
    (r":batchGenerateContent$|/v1beta/batches/[\w-]+$", "google.genai.types", "BatchJob"),
)
"""Pattern of a path; a module, and its types of a whole reply and of an event."""

_ERRORS = {
    "openai": ("openai.types.shared", "ErrorObject"),
    "anthropic": ("anthropic.types", "ErrorResponse"),
}
"""SDK → the type of its errors: of the field `error`, or of all. google-genai has none."""

_KNOWN = re.compile(
    r"(response\.)?(store|billing|\w+_penalty): no|x_\w+: no"
    r"|usage\.(cache_creation|service_tier|inference_geo|(queue|prompt|completion|total)_time): no"
    r"|.*type 'ping'|.*service_tier: unknown word '(on_demand|performance)'|.*\.embedding: "
    r"|(obfuscation|name): no"
    r"|batch\.(@type|batchStats|done|response|output|inputConfig|priority): no"
    r"|usageMetadata\.promptTokenDetails: no|error\.code: \d"
)
"""What providers have long sent, and the types lack: base64, tiers, padding, events without news."""

_USUAL_ENDS = "stop|length|tool_calls|STOP|MAX_TOKENS|end_turn|max_tokens|tool_use"
_SIGNS = (
    (r'"function_call":\s*\{"', "function_call: the form before tool_calls"),
    (r'"custom":\s*\{|"type":\s*"custom(_tool_call)?"', "a custom call answers a function"),
    (r'"(tool_calls":\s*\[\s*\{|type":\s*"tool_use")[\s\S]*_reason":\s*"(stop|end_turn)"',
     "an answer with calls ends with stop"),
    (r'"(content|text)":\s*"\s*<think', "thinking stands within the text"),
    (r'"function":\s*\{"name":\s*"\w+"\}', "a call without arguments"),
    (r"data: \[DONE\][ \t]+\n|data:\[DONE\]", "the end of the stream is not written 'data: [DONE]'"),
    (r'"type":\s*"message_start".*"content":\s*\[\s*\{', "message_start has content already"),
    (r'"type":\s*"content_block_start".*"input":\s*\{\s*"', "a call is complete at its start"),
    (r'^\{.*\{"type":\s*"text",\s*"text":\s*"(\\n|\s)*"\}', "a text that is blank"),
    (rf'"(finish_?[rR]eason|stop_reason)":\s*"(?!({_USUAL_ENDS})")', "an unusual word ends the answer"),
)  # fmt: skip
"""Patterns of bodies that the types allow, and what each means."""

_TOTALS = {
    "total_tokens": ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"),
    "totalTokenCount":
        ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount"),
}  # fmt: skip
"""Sum → its parts."""

_DETAILS = {whole: f"{whole}_details" for whole in _TOTALS["total_tokens"]} | {
    "promptTokenCount": "promptTokensDetails",
    "candidatesTokenCount": "candidatesTokensDetails",
    "cachedContentTokenCount": "cacheTokensDetails",
    "cache_creation_input_tokens": "cache_creation",
}
"""Count → what tells parts of it."""

_END = re.compile(r'"(finish_?[rR]eason|stop_reason|blockReason)":\s*"\w|"error":\s*\{')

_PLAIN: dict[Any, Any] = {float: (int, float), bytes: str, datetime: str}
"""Types whose JSON is of another type."""


def inspect(exchange: Exchange) -> Iterator[Finding]:
    row = find_types(exchange)
    findings = _inspect(exchange, *row[1:]) if row else ()
    return (finding for finding in findings if not _KNOWN.match(finding[1]))


def _inspect(exchange: Exchange, module: str, whole: str, event: str = "") -> Iterator[Finding]:
    failed = exchange.status >= 400
    streamed = re.search(rb'"stream":\s*true', exchange.request) is not None or "alt=sse" in exchange.path
    kind = exchange.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != ("text/event-stream" if streamed and not failed else "application/json"):
        yield WRONG, f"the content-type is {kind} with status {exchange.status}"
    body = exchange.body.decode(errors="replace")
    if failed:
        sdk = module.partition(".")[0]
        if not re.match(r'\s*\{[\s\S]*"error":\s*\{[\s\S]*"message":\s*"', body):
            yield WRONG, f"status {exchange.status} has no error.message: {body!r:.60}"
        elif sdk in _ERRORS:
            value = read_json(body)["error"] if sdk == "openai" else read_json(body)
            expected = getattr(importlib.import_module(_ERRORS[sdk][0]), _ERRORS[sdk][1])
            yield from _compare(value, expected, "error")
        elif not re.search(r'"status":\s*"[A-Z_]+"', body):
            yield WRONG, "error.status: missing"
        return
    yield from ((WRONG, text) for pattern, text in _SIGNS if re.search(pattern, body))
    texts = [("", body)]
    if streamed:
        # Other separators of lines may stand within a text.
        blocks = re.split(r"(?:\r\n|\n|\r(?!\n)){2}", body)
        lines = ([line.partition(":") for line in re.split(r"\r\n?|\n", block)] for block in blocks)
        named = (
            ["\n".join(text.strip() for key, _, text in fields if key == of) for of in ("event", "data")]
            for fields in lines
        )
        texts = [(name, data) for name, data in named if data]
    if streamed and whole == "ChatCompletion" and ("", "[DONE]") not in texts:
        yield WRONG, "the stream ends without [DONE]"
    if whole in ("ChatCompletion", "Message", "GenerateContentResponse") and not _END.search(body):
        yield WRONG, "the answer has no finish reason"
    types = getattr(importlib.import_module(module), event if streamed else whole)
    if whole == "BatchJob":  # Gemini's API writes most of it into a field, and other words than the SDK
        reply = json.loads(body.replace("BATCH_STATE", "JOB_STATE"))
        texts = [("", json.dumps(reply.pop("metadata", {}) | reply))]
    events = [(name, read_json(text)) for name, text in texts if text != "[DONE]"]
    for _, value in events:
        yield from _compare(value, types, "batch" if whole == "BatchJob" else "")
    objects = [value for _, value in events if isinstance(value, dict)]
    problems = [_check_reply(value) for value in objects]
    if objects:
        problems += [_check_order(objects)] * streamed
        problems += [_check_echo(exchange.request, objects[-1])] * (whole == "Response")
    yield from ((WRONG, problem) for iterator in problems for problem in iterator)
    if streamed and any(
        isinstance(value, dict) and name != value.get("type", name) for name, value in events
    ):
        yield WRONG, "a line 'event:' is not the type of its event"  # SDKs skip such events


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


def _check_reply(reply: JSONObject) -> Iterator[str]:
    choices = reply.get("choices") or reply.get("candidates") or []
    if len(choices) > 1 or any(choice.get("index") for choice in choices):
        yield "an answer has another index than 0"
    messages = [choice.get("message") or {} for choice in choices]
    if any(not call.get("id") for message in messages for call in message.get("tool_calls") or ()):
        yield "a call has no id"
    holder = reply.get("response") or reply.get("message") or reply
    usage = holder.get("usage") or holder.get("usageMetadata") or {}
    for total, parts in _TOTALS.items():
        if usage.get(total) not in (None, sum(usage.get(part) or 0 for part in parts)):
            yield f"{total} differs from the sum of its parts"
    for whole, name in _DETAILS.items():
        details, count = usage.get(name) or {}, usage.get(whole) or 0
        named = [part["tokenCount"] for part in details] if isinstance(details, list) else [*details.values()]
        most = max([part or 0 for part in named], default=0) if name.endswith("_details") else sum(named)
        if most > count or (name == "cache_creation" and details and most < count):
            yield f"{name} has {'more' if most > count else 'less'} than {whole}"


def _check_echo(request: bytes, event: JSONObject) -> Iterator[str]:
    """A reply of the Responses API says how it ended, and repeats the parameters."""
    request_fields, reply = json.loads(request), event.get("response") or event
    if not reply.get("status"):
        yield "the answer has no status"
    for name in sorted(request_fields.keys() & reply.keys() - {"model", "service_tier"}):
        if not isinstance(request_fields[name], dict | list) and request_fields[name] != reply[name]:
            yield f"{name}: {request_fields[name]} was asked, and {reply[name]} is echoed"


def _check_order(events: list[JSONObject]) -> Iterator[str]:
    """What only the events of a stream together can have wrong."""
    choices = [choice for event in events for choice in event.get("choices") or event.get("candidates") or ()]
    ends = [bool(choice.get("finish_reason") or choice.get("finishReason")) for choice in choices]
    late = choices[ends.index(True) + 1 :] if True in ends else []
    pieces = [choice.get("delta") or choice.get("content") or {} for choice in late]
    deltas = [choice.get("delta") or {} for choice in choices]
    fragments = [call for delta in deltas for call in delta.get("tool_calls") or ()]
    calls = [call.get("index") for call in fragments]
    first = {call.get("index"): call for call in reversed(fragments)}
    items = [event["item"] for event in events if isinstance(event.get("item"), dict)]
    names = {(item.get("id"), item["call_id"]) for item in items if "call_id" in item}
    numbers = [event["sequence_number"] for event in events if "sequence_number" in event]
    kinds = [str(event.get("type", "start")) for event in events]
    begun, ended = set[tuple[Any, ...]](), set[tuple[Any, ...]]()
    for kind, event in zip(kinds, events, strict=True):
        if stage := re.fullmatch(r"(?!.*annotation)(.+)[._](start|added|delta|done|stop)", kind):
            indexes = (event.get(name) for name in ("output_index", "content_index", "index"))
            (ended if stage[2] in ("done", "stop") else begun).add((stage[1], *indexes))
    begins = ("content_block_start", "response.output_item.added")
    parts = [event for event in events if event.get("type") in begins]
    counted = [part.get("index", part.get("output_index")) for part in parts]
    problems = {
        "the stream goes on after its finish reason": ends.count(True) > 1
        or any(piece.get(name) for piece in pieces for name in ("content", "tool_calls", "parts")),
        f"the first call of a stream has the index {next(iter(calls), 0)}": calls and calls[0] != 0,
        "a call has no id": not all(call.get("id") for call in first.values()),
        "a call of a stream has another call_id at its end": len(names) > len({item for item, _ in names}),
        "sequence_number does not rise": numbers != sorted(set(numbers)),
        f"the stream begins with {kinds[0]}": not kinds[0].endswith(("start", "created")),
        f"the parts of a stream have the indexes {counted}": counted != list(range(len(counted))),
    }
    for name in ("id", "model", "responseId", "modelVersion"):
        values = {event.get(name) or "" for event in events} - {""}
        problems[f"{name} changes within a stream"] = len(values) > 1
    yield from (text for text, is_wrong in problems.items() if is_wrong)
    yield from (f"a {what} has no end, or no deltas" for what, *_ in sorted(begun ^ ended, key=str))


def _compare(value: Any, kind: Any, path: str = "") -> Iterator[Finding]:
    """Where a JSON value differs from an annotation of pydantic models."""
    members = list(_list_members(kind))
    models = [member for member in members if hasattr(member, "model_fields")]
    entries = [typing.get_args(member)[0] for member in members if typing.get_origin(member) is list]
    words, plain = _list_words(kind), [typing.get_origin(member) or member for member in members]
    if any(member in (Any, object) for member in members) or (value is None and type(None) in members):
        return
    if value is None:
        yield WRONG, f"{path or 'reply'}: null"
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
        yield WRONG, f"{path or 'reply'}: {value!r:.40} has another type"


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
    if hasattr(kind, "__value__") or typing.get_origin(kind) is typing.Annotated:
        yield from _list_members(getattr(kind, "__value__", None) or typing.get_args(kind)[0])
    elif typing.get_origin(kind) in (typing.Union, types.UnionType):
        for member in typing.get_args(kind):
            yield from _list_members(member)
    else:
        yield kind


def _list_words(kind: Any) -> list[Any]:
    words: list[Any] = []
    for member in _list_members(kind):
        if isinstance(member, type) and issubclass(member, enum.Enum):
            words += [each.value for each in member]
        elif typing.get_origin(member) is typing.Literal:
            words += typing.get_args(member)
    return words
