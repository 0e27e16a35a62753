"""Chat completions as servers other than OpenAI's write them → what `openai_chat.decode` reads. Pure."""

from functools import partial
from typing import Any

from ..._core.formats.openai_chat import decode as standard
from ..._core.formats.openai_chat.decode import KINDS, Reading, dicts
from ..._core.formats.shared.conversations import name_calls
from ..._core.formats.shared.replies import reply_body, text_of
from ..._core.json_values import JSONMapping, JSONObject
from ..._core.types.messages import ToolCall
from .gateways import read_word

# Types of parts that are not the name of a field, such as the type of Mistral's `ReferenceChunk`.
_PARTS = frozenset({"reference", "tool_reference", "image"})


def content_of(content: Any) -> Any:
    """The content of a message: a text, or a list of parts. Any other JSON is written as text.

    With JSON mode, Cloudflare's Workers AI returns the object itself.
    """
    return content if content is None or _are_parts(content) else reply_body(content).decode()


def _are_parts(content: Any) -> bool:
    if not isinstance(content, list) or not all(isinstance(entry, dict) for entry in content):
        return False
    types = [str(entry.get("type")) for entry in content]
    pairs = zip(content, types, strict=True)
    return not content or any("text" in entry or kind in entry or kind in _PARTS for entry, kind in pairs)


def read_content(content: Any) -> tuple[Any, str, str]:
    """A content that is no text, and its text and its reasoning, which Mistral's models return as parts."""
    content = content_of(content)
    if isinstance(content, str):
        return content, content, ""
    texts, thoughts = [], []
    for entry in dicts(content, "content"):
        if entry.get("type") == "thinking":
            inner = dicts(entry.get("thinking"), "thinking")
            thoughts += [text for piece in inner if (text := text_of(piece.get("text")))]
        elif text := text_of(entry.get("text")):
            texts.append(text)
    return content, "".join(texts), "".join(thoughts)


def kind_of(call: JSONMapping) -> str | None:
    """Which member of a call holds it: its type's, else the one that is not empty; None if none is yet.

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
    entries = [_in_standard_form(entry) for entry in dicts(message.get("tool_calls"), "tool_calls")]
    calls = [entry for entry in entries if entry is not None]
    names = name_calls(entry.get("id") for entry in calls)
    calls = [
        entry if entry.get("id") == name else {**entry, "id": name}
        for entry, name in zip(calls, names, strict=True)
    ]
    legacy = message.get("function_call")
    if isinstance(legacy, dict):
        legacy = None if _is_blank(legacy) else _with_text(legacy, "arguments")
    read, fields = standard.read_calls({"tool_calls": calls, "function_call": legacy})
    if read and message.get("reasoning_content") == "":
        # DeepSeek needs it back as it was.
        fields = {"reasoning_content": "", **fields}
    return read, fields


def _in_standard_form(entry: JSONObject) -> JSONObject | None:
    """A call without the members of other kinds, with its arguments as text; None if it is no call."""
    kind = kind_of(entry)
    if kind is None or _is_blank(entry[kind]):
        bodies = [entry[name] for name in KINDS if name in entry]
        # A call whose members have no fields is malformed.
        return None if any(bodies) and all(isinstance(body, dict) for body in bodies) else entry
    others = [name for name in KINDS if name in entry and name != kind]
    body = _with_text(entry[kind], "input" if kind == "custom" else "arguments")
    if body is not entry[kind] or others:
        entry = {name: body if name == kind else value for name, value in entry.items() if name not in others}
    return entry


def _with_text(body: JSONObject, field: str) -> JSONObject:
    """The body of a call with its arguments as text, as the next request must have them."""
    text = arguments_of(body, field)
    return {**body, field: text} if isinstance(body.get(field), dict) else body


def arguments_of(body: JSONMapping, field: str) -> str:
    """The arguments of a call as text: some hosts send the object itself."""
    arguments = body.get(field)
    if arguments and isinstance(arguments, dict):
        return reply_body(arguments).decode()
    return standard.arguments_of(body, field)


decode = partial(standard.decode, reading=Reading(read_word, read_content, read_calls))
