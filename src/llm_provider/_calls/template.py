"""The calls of a batch differ in their prompt alone: they are encoded once, and then filled in.

The bytes around the prompt are the same for all of them. This module finds their place by encoding two
prompts and comparing the results, so it needs to know no wire format. A prompt that is not plain text is
encoded by itself, and so is every prompt where no such place is found.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import fields
from operator import attrgetter
from typing import Any

import orjson

from .._cache.key import key_frame
from .._providers.adapter import EncodedRequest
from .._requests.request import Request
from .._runtime.canonical_json import canonical
from .._types import Prompt, Response
from .call import MAX_REQUEST_BYTES, Call, SentRequests

_STRANGE = ' \t\n"\\/é\u2028\U0001f600\x7f '
"""What an encoder might trim, escape or rewrite: one that does so has no template."""

# `dataclasses.replace` takes four times as long.
_fields_of_call = attrgetter(*(field.name for field in fields(Call)))
_fields_of_encoded = attrgetter(*(field.name for field in fields(EncodedRequest)))


class Template:
    """The calls of a batch, but for their prompts.

    Args:
        call: One of them.
        prefix: What its body has before the prompt.
        suffix: What its body has after the prompt.
        path: Where in its payload the prompt is.
    """

    __slots__ = (
        "_asked_alike", "_before", "_head", "_message", "_path", "_prefix", "_room", "_suffix", "_tail",
        "call",
    )  # fmt: skip

    def __init__(self, call: Call[Response], prefix: bytes, suffix: bytes, path: tuple[Any, ...]) -> None:
        self.call = call
        # A system prompt may stand before the one that is filled in.
        *self._before, self._message = call.request.messages
        names = [field.name for field in fields(Request) if field.name != "messages"]
        self._asked_alike: dict[str, Any] = {name: getattr(call.request, name) for name in names}
        self._prefix, self._suffix, self._path = prefix, suffix, path
        head, tail = key_frame(**call.place(), draw=call.request.draw)
        self._head, self._tail = head + prefix, suffix + tail
        self._room = MAX_REQUEST_BYTES - len(prefix) - len(suffix)

    def fits(self, prompt: object) -> bytes | None:
        """A prompt as JSON if it can be filled in; else None, and encoded by itself it may be an error."""
        if type(prompt) is not str or not prompt:
            return None
        try:
            encoded = orjson.dumps(prompt)
        except TypeError:  # a lone surrogate
            return None
        return encoded if len(encoded) <= self._room else None

    def key(self, encoded: bytes) -> str:
        """The cache key of a prompt's first sample.

        Args:
            encoded: What `fits` gave for it.
        """
        return hashlib.sha256(b"".join((self._head, encoded, self._tail))).hexdigest()

    def filled(
        self, prompt: Prompt, encoded: bytes, started: float, key: str | None = None
    ) -> Call[Response]:
        """The call of a prompt, equal to the one that is encoded by itself.

        Args:
            prompt: The prompt.
            encoded: What `fits` gave for it.
            started: Monotonic time at which it was begun.
            key: What `key` gave for it, if it was asked.
        """
        call, filled = (
            Call(*_fields_of_call(self.call)),
            EncodedRequest(*_fields_of_encoded(self.call.encoded)),
        )
        filled.payload = inner = filled.payload.copy()
        for step in self._path[:-1]:
            inner[step] = inner = inner[step].copy()
        inner[self._path[-1]] = prompt
        messages = (*self._before, {**self._message, "content": prompt})
        call.request = Request(messages=messages, **self._asked_alike)
        call.encoded, call.started, call.first_key = filled, started, key
        call.body = b"".join((self._prefix, encoded, self._suffix))
        if call.sent is not None:
            call.sent = SentRequests()
        return call


def template(prepare: Callable[[str], Call[Response]]) -> Template | None:
    """What the calls that `prepare` makes of prompts have in common; None where that is not text around it.

    Raises:
        LLMError: no prompt can be asked with these parameters.
        TypeError: there is no such parameter.
    """
    # Nobody's prompt, so it is not among the parameters either.
    marks = [_STRANGE + os.urandom(16).hex() + _STRANGE for _ in range(2)]
    call, other = map(prepare, marks)
    encoded, otherwise = map(canonical, marks)
    prefix, _, suffix = call.body.partition(encoded)
    paths = list(_paths(call.encoded.payload, marks[0], ()))
    if len(paths) != 1 or call.place() != other.place():
        return None
    if b"".join((prefix, otherwise, suffix)) != other.body:
        return None
    return Template(call, prefix, suffix, paths[0])


def _paths(value: Any, wanted: str, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Where in JSON a text is. What is neither dict nor list is not looked into: it is not filled in."""
    if type(value) is dict:
        for name, part in value.items():
            yield from _paths(part, wanted, (*path, name))
    elif type(value) is list:
        for index, part in enumerate(value):
            yield from _paths(part, wanted, (*path, index))
    elif value == wanted:
        yield path
