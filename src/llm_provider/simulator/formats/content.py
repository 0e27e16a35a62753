"""The text of a message and its size, in the spellings of all wire formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CHARACTERS_PER_TOKEN", "convert_to_tokens", "count_tokens", "read_text", "split_fragments"]

CHARACTERS_PER_TOKEN = 4
FRAGMENT_CHARACTERS = 8
MEDIA_CHARACTERS = 1024
MEDIA_TYPES = frozenset(
    {"image_url", "input_audio", "file", "image", "document", "input_image", "input_file", "audio_url"}
)
MEDIA_FIELDS = frozenset({"inlineData", "inline_data", "fileData", "file_data"})


def read_text(content: Any) -> tuple[str, int]:
    """The text of a message's content and the number of characters it counts for.

    A medium counts 1,024 characters. A part that is neither text nor a medium, such as a tool call, counts
    the length of its JSON. The result of a tool is text, so that a conversation with tools continues from it.

    >>> read_text([{"type": "text", "text": "What is this?"}, {"type": "image_url"}])
    ('What is this?', 1037)
    """
    if isinstance(content, str):
        return content, len(content)
    texts: list[str] = []
    characters = 0
    for part in content if isinstance(content, list) else ():
        text, length = _read_part(part)
        characters += length
        if text:
            texts.append(text)
    return "\n".join(texts), characters


def count_tokens(text: str) -> int:
    """Tokens of a text by the simulator's rule: a quarter of its characters, rounded up.

    >>> count_tokens("four"), count_tokens("fives"), count_tokens("")
    (1, 2, 0)
    """
    return convert_to_tokens(len(text))


def convert_to_tokens(characters: int) -> int:
    """Tokens of a text with this number of characters."""
    return -(-characters // CHARACTERS_PER_TOKEN)


def split_fragments(text: str) -> Iterator[str]:
    """Split a text into the small pieces in which providers stream the arguments of a tool call."""
    for start in range(0, len(text), FRAGMENT_CHARACTERS):
        yield text[start : start + FRAGMENT_CHARACTERS]


def _read_part(part: Any) -> tuple[str, int]:
    if isinstance(part, str):
        return part, len(part)
    if isinstance(part.get("text"), str):
        return part["text"], len(part["text"])
    if part.get("type") == "tool_result":
        return read_text(part.get("content") or "")
    answer = part.get("functionResponse") or part.get("function_response")
    if answer:
        text = orjson.dumps(answer.get("response")).decode()
        return text, len(text)
    if part.get("type") in MEDIA_TYPES or not MEDIA_FIELDS.isdisjoint(part):
        return "", MEDIA_CHARACTERS
    return "", len(orjson.dumps(part))
