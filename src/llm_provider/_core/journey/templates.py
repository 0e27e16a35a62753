"""Calls that differ in their prompt alone are encoded once, as a template, and each prompt is then filled in.

A batch has one template: a hit of `call_many` executes 1,198 bytecode instructions with it, and 1,943
without. A client remembers templates of single calls: a hit of `call` executes 1,836 with one, and 2,392
without (Python 3.11, prompts of 900 characters).

The bytes around the prompt are equal for all these calls. This module finds the place of the prompt by
encoding two prompts and comparing the results, so it does not depend on a wire format. A prompt that is not
plain text is encoded by itself. If no such place is found, so is every prompt.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import orjson

from ..money.totals import find_tracks
from ..pace.call_limits import Concurrency, Patience
from ..requests.api_keys import APIKey
from ..requests.request import Request, describe_prompt
from ..requests.routing import Target
from ..runtime import cassette, clock, randomness
from ..runtime.frozen import maker_like
from ..runtime.json_pieces import canonical
from ..store.entry import key_frame
from ..types.messages import Message, Prompt
from ..types.response import Response
from .call import MAX_REQUEST_BYTES, Call, Operation
from .chat import CHAT
from .lookup import LookupEngine

_STRANGE = ' \t\n"\\/é\u2028\U0001f600\x7f '
"""Characters that an encoder might trim, escape or rewrite. If it does, there is no template."""


class Template:
    """Calls without their prompts.

    `prefix` and `suffix` are the bytes around the prompt of a body, and `path` leads to it in the payload.
    """

    def __init__(self, call: Call[Response], prefix: bytes, suffix: bytes, path: tuple[Any, ...]) -> None:
        self.call = call
        self.destination: tuple[Target, str | None] | None = None
        """Where it is sent, for single calls."""
        # A system prompt may come before the prompt.
        *self._before, self._message = call.request.messages
        self._make_call, self._make_request = maker_like(call), maker_like(call.request)
        self._make_encoded = maker_like(call.encoded)
        self._prefix, self._suffix = prefix, suffix
        *self._outer, self._last = path
        head, tail = key_frame(**call.key_fields(), draw=call.request.draw)
        self._head, self._tail = head + prefix, suffix + tail
        self._room = MAX_REQUEST_BYTES - len(prefix) - len(suffix)

    def fits(self, prompt: object) -> bytes | None:
        """A prompt as JSON; None if it cannot be filled in. It is then encoded by itself, which may fail."""
        # Some providers refuse a blank prompt.
        if type(prompt) is not str or not prompt or prompt.isspace():
            return None
        try:
            encoded = orjson.dumps(prompt)
        except TypeError:  # a lone surrogate
            return None
        return encoded if len(encoded) <= self._room else None

    def key(self, prompt: object) -> str | None:
        """The cache key of a prompt's first sample; None if the prompt does not fit."""
        # The text is not kept: orjson's short texts lie in large blocks of memory, which take some time.
        encoded = self.fits(prompt)
        return None if encoded is None else self.key_of(encoded)

    def key_of(self, encoded: bytes) -> str:
        """The cache key of a prompt as JSON."""
        return hashlib.sha256(b"".join((self._head, encoded, self._tail))).hexdigest()

    def describe(self, prompt: Any) -> str | list[Message] | None:
        """The `Response.prompt` of a prompt."""
        return (
            describe_prompt((*self._before, {**self._message, "content": prompt})) if self._before else prompt
        )

    def fill_in(self, prompt: Prompt, started: float, key: str | None = None) -> Call[Response]:
        """The call of a prompt that fits, as `prepare` makes it. Its lookup began at a monotonic time."""
        call = self.call
        payload = inner = call.encoded.payload.copy()
        for step in self._outer:
            inner[step] = inner = inner[step].copy()
        inner[self._last] = prompt
        request = self._make_request(messages=(*self._before, {**self._message, "content": prompt}))
        encoded = self._make_encoded(payload=payload)
        body = b"".join((self._prefix, orjson.dumps(prompt), self._suffix))
        filled = self._make_call(request=request, encoded=encoded, body=body, started=started, first_key=key)
        filled.tracks, filled.metadata = call.tracks, call.metadata
        return filled


def find_template(prepare: Callable[[str], Call[Response]]) -> Template | None:
    """The template of the calls of `prepare`, which may raise; None if not only the prompt differs."""
    # Random, so that no parameter contains them.
    marks = [_STRANGE + randomness.make_token(16) + _STRANGE for _ in range(2)]
    call = prepare(marks[0])
    *before, message = call.request.messages
    request = replace(call.request, messages=(*before, {**message, "content": marks[1]}))
    other = call.operation.encode(request, call.target, call.adapter)
    encoded, otherwise = map(orjson.dumps, marks)
    prefix, _, suffix = call.body.partition(encoded)
    paths = list(_paths(call.encoded.payload, marks[0], ()))
    alike = (other.operation, other.headers) == (call.encoded.operation, call.encoded.headers)
    if len(paths) != 1 or not alike or prefix + otherwise + suffix != canonical(other.payload):
        return None
    return Template(call, prefix, suffix, paths[0])


def _paths(value: Any, wanted: str, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The places of a text in JSON. Only dicts and lists are searched, because only they can be filled in."""
    if type(value) is dict:
        for name, part in value.items():
            yield from _paths(part, wanted, (*path, name))
    elif type(value) is list:
        for index, part in enumerate(value):
            yield from _paths(part, wanted, (*path, index))
    elif value == wanted:
        yield path


# --- single calls

_PLAIN = {str, int, float, bool, APIKey, type(None)}
"""The types of parameters that are compared. A budget, for example, has a state of its own."""

_ENOUGH, _MOST = 16, 64
"""Equal calls before their template is made, which takes as long as it saves for a hundred of them, and the
sets of parameters that an engine remembers."""


def prepare_alike(
    engine: LookupEngine,
    operation: Operation[Any, Any],
    model: str,
    inputs: Any,
    parameters: Any,
    allowed: Concurrency,
    function: str,
) -> Call[Any]:
    """The call that `engine.prepare` makes of what the operation builds. It may come from a template."""
    started, kinds = clock.perf_counter(), tuple(map(type, parameters.values()))
    if operation is not CHAT or type(model) is not str or not _PLAIN.issuperset(kinds) or cassette.modes:
        return engine.prepare(operation, operation.build(model, inputs, parameters, function), allowed)
    # 1, 1.0 and True are equal, but not as JSON.
    templates, alike = engine.templates, (model, allowed, kinds, *parameters.items())
    known = templates.get(alike)
    if isinstance(known, Template) and (encoded := known.fits(inputs)):
        call = known.call
        if _find_destination(engine, call.request) == known.destination:
            engine.refuse_closed()
            patience, key = call.patience, None if call.cache == "off" else known.key_of(encoded)
            call = known.fill_in(inputs, started, key)
            call.tracks, call.listeners = find_tracks(), engine.find_listeners()
            call.patience = Patience(patience.seconds, clock.monotonic(), patience.is_default)
            return call
        known = None
    call = engine.prepare(operation, operation.build(model, inputs, parameters, function), allowed)
    if known is None:
        if len(templates) >= _MOST:
            templates.clear()
        # Of what is rarely asked only the hash is kept: a system prompt may be long.
        count = templates[hash(alike)] = templates.get(hash(alike), 0) + 1
        if count > _ENOUGH:
            templates[alike] = _find(engine, call, parameters) or False
    return call


def _find(engine: LookupEngine, call: Call[Any], parameters: Any) -> Template | None:
    """The template of calls from which nothing but the prompt and the time will differ; None without one."""
    request = call.request
    own = call.relay, call.deadline, call.encoded.prefix, request.budget, request.token_budget
    if own.count(None) < len(own) or call.target.route.adapter == "litellm" or engine.adds_headers:
        return None
    build = partial(CHAT.build, request.model, parameters=parameters)
    template = find_template(lambda mark: engine.prepare(CHAT, build(mark), call.concurrency))
    if template is not None:
        template.destination = _find_destination(engine, request)
    return template


def _find_destination(engine: LookupEngine, request: Request) -> tuple[Target, str | None]:
    """What the environment says now: the address, and the version of Google's API."""
    target = engine.settings.find_target(request.model, request.base_url, request.endpoint)
    is_google = target.route.adapter.startswith("gemini")
    return target, os.environ.get("GOOGLE_GENAI_API_VERSION") if is_google else None
