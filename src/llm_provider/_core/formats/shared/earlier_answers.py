"""Content of an earlier answer for which the provider of a request has no form.

It is left out of the request, and a `UserWarning` names it. The text of a warning names no message, so
Python's default filter shows each kind of content once.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ...json_values import JSONMapping, JSONObject
from ...runtime.canonical_json import replace_halves, write_exactly
from ...runtime.json_pieces import read_exactly
from ...runtime.warning import warn_user
from ...types.messages import Message

# The fields of an assistant message that every format sends, or whose content is in another field as well.
_SENT = frozenset({"role", "content", "refusal", "tool_calls", "function_call", "prefix"})

# The types of blocks and items whose content is in `content`, `refusal` or `tool_calls` as well.
_IN_THE_MESSAGE = frozenset({"text", "tool_use", "message", "function_call", "output_text", "refusal"})

# The same for the fields of Gemini's parts. A thought is also a text.
_IN_THE_MESSAGE_OF_GEMINI = frozenset({"text", "functionCall", "thought"})

_NOTES = ("citations", "annotations")

# A lone half of a surrogate pair, as JSON writes it: anthropics/claude-code#3277.
_HALF = re.compile(
    r"\\u[dD][89abAB]\w\w(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]\w\w)\\u[dD][c-fC-F]\w\w", re.ASCII
)


def warn_of_lost_content(message: Message, provider: str, *, own: str = "") -> None:
    """Warn of the content of an assistant message that only the provider which gave it accepts.

    `own` is the provider of this format's answers, which come here outdated: a user has changed them.
    """
    if not message.keys() <= _SENT:
        for kind in sorted(set(_list_lost_kinds(message, own))):
            _warn(f"an earlier answer holds {kind}", provider)


def warn_of(what: str, provider: str) -> None:
    """Warn that something in a message or a tool, which does not change what it says, is left out."""
    _warn(f"a message or a tool holds {what}", provider)


def warn_of_empty_turn(provider: str) -> None:
    """Warn that an assistant message is left out because nothing in it can be sent."""
    _warn("an earlier answer is empty", provider)


def own_content(message: Message, provider: str) -> Any:
    """What a provider's answer held in its own form, as the message of the answer keeps it; else None."""
    kept = message.get("provider_specific_fields")
    return kept.get("content") if isinstance(kept, Mapping) and kept.get("provider") == provider else None


def content_of(message: Message) -> Any:
    """The content of an answer, or the transcript of one that was spoken."""
    content, audio = message.get("content"), message.get("audio")
    if content or not isinstance(audio, Mapping):
        return content
    transcript = audio.get("transcript")
    return transcript if isinstance(transcript, str) else content


EMPTY_TEXT = "has empty content; give some text or leave the message out"
"""The error for a user's message without text, which only Chat Completions takes."""


def parse_arguments(text: str, provider: str) -> JSONObject:
    """The arguments of a call as an object.

    A model may write arguments that are no object, and an answer that was cut may end inside them. They are
    sent as the only field of an object, because a result may follow the call.
    """
    try:
        arguments = read_exactly(text or "{}")
    except (ValueError, RecursionError):
        arguments = None
    if isinstance(arguments, dict):
        if _HALF.search(text):
            return dict(json.loads(replace_halves(json.dumps(arguments, ensure_ascii=False))))
        return arguments
    warn_user(
        f"the arguments of an earlier tool call are not a JSON object, which {provider} needs: "
        "they are sent as the text of a field 'arguments'",
        UserWarning,
        stacklevel=2,
    )
    return {"arguments": text}


def write_arguments(arguments: Any, *, any_text: bool) -> Any:
    """The arguments of a call as text: of a JSON object, unless the host takes `any_text`."""
    if arguments is None or (arguments == "" and not any_text):
        return "{}"
    if not isinstance(arguments, str):
        arguments = write_exactly(dict(arguments) if isinstance(arguments, Mapping) else arguments).decode()
    if any_text:
        return arguments
    parsed = parse_arguments(arguments, "the host")
    is_sent = parsed != {"arguments": arguments} and not _HALF.search(arguments)
    return arguments if is_sent else write_exactly(parsed).decode()


def with_object(block: JSONMapping, provider: str) -> JSONObject:
    """A block of Anthropic's. The input of a call of a tool is an object, as `parse_arguments` makes it."""
    if block.get("type") != "tool_use" or isinstance(block.get("input"), dict):
        return dict(block)
    text = write_arguments(block.get("input"), any_text=True)
    return {**block, "input": parse_arguments(text, provider)}


def warn_of_late_system(provider: str) -> str:
    """Warn of a system message where a provider takes none, and give the role in which it is sent."""
    warn_user(
        f"a system message stands inside the conversation, where {provider} takes none: it is sent as the "
        "user's",
        UserWarning,
        stacklevel=3,
    )
    return "user"


def _warn(what: str, provider: str) -> None:
    problem = f"{what}, for which {provider} has no form here: it is left out of the request"
    warn_user(problem, UserWarning, stacklevel=3)


def _list_lost_kinds(message: Message, own: str) -> Iterator[str]:
    for name, value in message.items():
        if name == "provider_specific_fields":
            if isinstance(value, Mapping) and value.get("provider") != own:
                yield from _list_kinds(value.get("content"))
        elif value and name not in _SENT:
            yield name


def _list_kinds(content: object) -> Iterator[str]:
    if isinstance(content, Mapping):
        yield from content
    for entry in content if isinstance(content, list) else ():
        if not isinstance(entry, Mapping):
            continue
        kind = entry.get("type")
        if not isinstance(kind, str):
            yield from entry.keys() - _IN_THE_MESSAGE_OF_GEMINI
            if entry.get("thought"):
                yield "thought"
        elif kind not in _IN_THE_MESSAGE:
            yield kind
        yield from _list_notes(entry)


def _list_notes(entry: JSONMapping) -> Iterator[str]:
    inner = entry.get("content")
    for piece in (entry, *(inner if isinstance(inner, list) else ())):
        if isinstance(piece, Mapping):
            yield from (name for name in _NOTES if piece.get(name))
