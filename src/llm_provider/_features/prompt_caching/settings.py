"""The beginning of a prompt that other prompts share, which providers keep in their prompt caches.

A prompt is divided into units: tools, blocks of the system prompt, parts of messages. The module
`prompt_cache` beside an adapter finds them, and marks the end of a prefix as its provider wants it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Protocol

from ..._core.json_values import JSONMapping, JSONObject
from ..._core.requests.routing import Target
from ..._core.runtime.json_pieces import canonical

JSONPath = tuple[str | int, ...]
"""The steps from a payload to one of its values."""

_BYTES_PER_TOKEN = 4
_MEDIUM_TOKENS = 1000
"""Estimated tokens of a part without text, such as an image."""


class Unit(NamedTuple):
    """A piece of a prompt that is in the prompt cache as a whole or not at all."""

    content: bytes
    """Equal for units that a model reads alike."""
    tokens: int
    """An estimate."""
    path: JSONPath | None
    """The value of the payload that takes a breakpoint behind this unit; None if none can be there."""
    instructs: bool
    """Whether it is a tool or belongs to the system prompt."""
    text: str | None = None
    """The text of a part of a message."""


class PromptCacheFormat(Protocol):
    """The shape of a `prompt_cache` module."""

    def serves(self, target: Target) -> bool:
        """Whether the target has a prompt cache that this module knows."""

    def units(self, payload: JSONMapping) -> list[Unit]:
        """The units of a prompt as the model reads them; empty if the user has set breakpoints."""

    def minimum(self, model: str) -> int:
        """The fewest tokens of a prefix that the provider caches."""

    def lifetime(self, model: str) -> float:
        """Seconds for which an unused entry is kept at least."""

    def is_implicit(self, model: str) -> bool:
        """Whether the provider finds common prefixes by itself, to the token and without a price for it."""

    def mark_prefix(self, payload: JSONObject, mark: PrefixMark) -> JSONObject:
        """A copy of a payload that lets the provider cache a prefix."""


class PrefixMark(NamedTuple):
    """How much of a prompt the prompt cache shall hold."""

    format: PromptCacheFormat
    length: int
    """The number of units in the prefix; 0 if none is worth its price."""
    of_batch: bool
    """Whether a batch has compared its prompts. Else any later call may share any part of this one."""
    digest: bytes | None = None
    """The digest of the prefix that calls of a batch share; None if no other call has it."""
    is_stored: bool = False
    """Whether the prefix is stored at the provider by a request of its own (`cached_contents`)."""


class Prefix(NamedTuple):
    """A beginning of a prompt that is long enough for the prompt cache."""

    digest: bytes
    length: int
    """The number of its units."""
    tokens: int


def is_stored(target: Target, prompt_caching: object) -> bool:
    """Whether a call with this `prompt_caching` has its prefix stored at the provider."""
    return prompt_caching == "explicit" and target.route.adapter == "gemini" and target.route.cloud is None


def mark_of_call(
    form: PromptCacheFormat, payload: JSONMapping, model: str, *, stored: bool = False
) -> PrefixMark | None:
    """The mark of a call without known followers: all but its last unit, the question."""
    before = form.units(payload)[:-1]
    if stored:
        return PrefixMark(form, len(before), of_batch=False, is_stored=True)
    # The tokens are an estimate. A provider ignores a breakpoint behind too few of them.
    if 2 * sum(unit.tokens for unit in before) < form.minimum(model):
        return None
    return PrefixMark(form, len(before), of_batch=False)


def prefixes(form: PromptCacheFormat, payload: JSONMapping, model: str) -> list[Prefix]:
    """The beginnings of a prompt that the prompt cache may hold, the shortest first, without the last unit.

    Where the provider compares tokens, a long last text has a beginning too.
    """
    least, total, chain = form.minimum(model), 0, blake2b(digest_size=16)
    units, result = form.units(payload), list[Prefix]()
    for length, unit in enumerate(units[:-1], 1):
        chain.update(b"%d\0" % len(unit.content))
        chain.update(unit.content)
        total += unit.tokens
        if total >= least:
            result.append(Prefix(chain.digest(), length, total))
    if units and units[-1].text is not None and form.is_implicit(model):
        missing = max(0, least - total) + least // 4
        head = units[-1].text[: missing * _BYTES_PER_TOKEN]
        if len(head) < len(units[-1].text):
            chain.update(b"head\0" + head.encode("utf-8", "surrogatepass"))
            result.append(Prefix(chain.digest(), len(units) - 1, total + missing))
    return result


def text_unit(role: str, text: str, path: JSONPath | None, *, instructs: bool = False) -> Unit:
    """A unit of plain text. An empty text takes no breakpoint."""
    content = f"{role}\0{text}".encode("utf-8", "surrogatepass")
    return Unit(content, len(content) // _BYTES_PER_TOKEN, path if text else None, instructs, text)


def json_unit(role: str, value: Any, path: JSONPath | None, *, instructs: bool = False) -> Unit:
    """A unit that is not plain text: a tool, a medium, a call of a tool or its result."""
    content = role.encode() + b"\0" + canonical(value)
    is_medium = isinstance(value, Mapping) and len(content) > _MEDIUM_TOKENS * _BYTES_PER_TOKEN
    tokens = _MEDIUM_TOKENS if is_medium and not instructs else len(content) // _BYTES_PER_TOKEN
    return Unit(content, tokens, path, instructs)


def content_units(
    role: str, content: Any, path: JSONPath, takes: Callable[[JSONMapping], bool], *, instructs: bool = False
) -> list[Unit]:
    """The units of a message's content: a text, or parts. The parts that `takes` names take a breakpoint."""
    if isinstance(content, str):
        return [text_unit(role, content, path, instructs=instructs)]
    if not isinstance(content, (list, tuple)):
        return [json_unit(role, content, None, instructs=instructs)]
    result = []
    for index, part in enumerate(content):
        marks = isinstance(part, Mapping) and takes(part)
        behind = (*path, index) if marks else None
        if marks and isinstance(part.get("text"), str):
            result.append(text_unit(role, part["text"], behind, instructs=instructs))
        else:
            result.append(json_unit(role, part, behind, instructs=instructs))
        # Only the first part begins a message.
        role = ""
    return result


def last_breakpoint(units: Sequence[Unit]) -> JSONPath | None:
    """The last place among some units that takes a breakpoint."""
    return next((unit.path for unit in reversed(units) if unit.path is not None), None)


def add_at(payload: JSONObject, path: JSONPath, fields: JSONMapping, kind: str) -> JSONObject:
    """A copy of a payload with more fields at one place, where a text becomes a part. The rest is shared.

    >>> add_at({"a": [1, "Hi"], "b": 3}, ("a", 1), {"c": 2}, "text")
    {'a': [1, [{'type': 'text', 'text': 'Hi', 'c': 2}]], 'b': 3}
    """
    whole: JSONObject = dict(payload)
    copied: Any = whole
    for step in path[:-1]:
        inner = copied[step]
        copied[step] = dict(inner) if isinstance(inner, Mapping) else list(inner)
        copied = copied[step]
    value = copied[path[-1]]
    part = [{"type": kind, "text": value, **fields}] if isinstance(value, str) else {**value, **fields}
    copied[path[-1]] = part
    return whole


def is_in_any(name: str, contents: Iterable[Any]) -> bool:
    """Whether a part of some contents has a field."""
    lists = (content for content in contents if isinstance(content, (list, tuple)))
    return any(isinstance(part, Mapping) and name in part for parts in lists for part in parts)
