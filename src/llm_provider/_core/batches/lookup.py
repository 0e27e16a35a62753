"""The cache lookup of a batch, in the user's thread: a stored prompt becomes a result, another one a call.

The prompts of a list are looked up in groups. The prompts of other iterables are read one by one, as results
are taken. What a batch needs later is loaded first, as its connections may use up all file descriptors.

The calls of a batch are encoded once, as a template, and each prompt is then filled in.
This saves 46 % of the CPU time of a hit in `call_many` (25 µs; 46 µs without a template) and 6 % of a call
that is sent (467 µs; 493 µs). These are medians of the ratios of 7 alternating runs with 2,000 prompts, 32
at a time, and `python -m benchmarks compare` measures them against a copy where `batch_lookup` uses no
template.

The bytes around the prompt are equal for all calls of a batch. This module finds the place of the prompt by
encoding two prompts and comparing the results, so it does not depend on a wire format. A prompt that is not
plain text is encoded by itself. If no such place is found, so is every prompt.
"""

import contextlib
import errno
import hashlib
import os
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import fields, replace
from importlib import import_module
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar, cast

import orjson

from .. import doors
from ..errors import APIConnectionError, LLMError
from ..formats.protocol import EncodedRequest
from ..journey.call import MAX_REQUEST_BYTES, Call
from ..journey.engine import Engine
from ..journey.lookup import READING
from ..json_values import JSONObject
from ..money.totals import find_tracks
from ..requests.request import Request, describe_input, describe_prompt, make_request
from ..runtime import clock, randomness
from ..runtime.json_pieces import canonical
from ..store.entry import key_frame
from ..types.messages import Message, Prompt
from ..types.response import Response, Result

_NEEDED = 64
"""File descriptors that must be left before the first batch of a client: up to 48 for the eight shards of the
cache, three for the event loop, and the rest for connections and small files."""

SHORTAGES = (errno.EMFILE, errno.ENFILE)

_MODULES = ("diskcache", "glob", "llm_provider._core.store.row_format")
"""What is imported at the first answer otherwise; `glob` by pathlib from Python 3.15 on."""

_MODULES_OF_STRUCTURES = ("jsonschema_rs", "llm_provider._core.schemas.reading")
"""What is imported at the first answer with a `response_format` otherwise."""

_prepared: weakref.WeakSet[Engine] = weakref.WeakSet()
"""The engines that have made a batch. What they need later is loaded."""


def load_for_batch(engine: Engine, call: Call[Any], waits: bool) -> None:
    """Load what the calls of a batch need later, with `waits` the SDK too, as this thread waits anyway.

    An `APIConnectionError` says that the process has too few file descriptors left, so nothing is sent.
    """
    with name_shortage():
        if engine not in _prepared:
            with contextlib.ExitStack() as opened:
                for _ in range(_NEEDED):
                    opened.callback(os.close, os.open(os.devnull, os.O_RDONLY))
            for module in _MODULES:
                import_module(module)
            doors.failures  # noqa: B018 -- it is imported at the first failure otherwise
            engine.recorder.prices()
            _prepared.add(engine)
        if call.encoded.structure is not None:
            for module in _MODULES_OF_STRUCTURES:
                import_module(module)
        if waits:
            engine.load(call)


@contextlib.contextmanager
def name_shortage() -> Iterator[None]:
    """Raise an `APIConnectionError` in place of Python's error for a process without file descriptors."""
    try:
        yield
    except OSError as error:
        if error.errno not in SHORTAGES:
            raise
        raise shortage() from None


def shortage() -> APIConnectionError:
    """The error of a process that has too few file descriptors left."""
    return APIConnectionError(
        f"the process has too few file descriptors left (a batch needs {_NEEDED}): raise its limit "
        "(ulimit -n), or close files"
    )


_STRANGE = ' \t\n"\\/é\u2028\U0001f600\x7f '
"""Characters that an encoder might trim, escape or rewrite. If it does, there is no template."""

_OF_A_PROMPT = ("request", "encoded", "body", "started", "first_key", "tracks", "metadata")
"""The fields of a call that differ between the calls of a batch."""

_fields_of_encoded = attrgetter(*(field.name for field in fields(EncodedRequest)))


class Template:
    """The calls of a batch without their prompts.

    `prefix` and `suffix` are the bytes around the prompt of a body, and `path` leads to it in the payload.
    """

    def __init__(self, call: Call[Response], prefix: bytes, suffix: bytes, path: tuple[Any, ...]) -> None:
        self.call = call
        # A system prompt may come before the prompt.
        *self._before, self._message = call.request.messages
        # `dataclasses.replace` takes four times as long.
        self._called_alike: JSONObject = {
            field.name: getattr(call, field.name) for field in fields(Call) if field.name not in _OF_A_PROMPT
        }
        names = [field.name for field in fields(Request) if field.init and field.name != "messages"]
        self._asked_alike: JSONObject = {name: getattr(call.request, name) for name in names}
        self._prefix, self._suffix, self._path = prefix, suffix, path
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
        if encoded is None:
            return None
        return hashlib.sha256(b"".join((self._head, encoded, self._tail))).hexdigest()

    def describe(self, prompt: Any) -> str | list[Message] | None:
        """The `Response.prompt` of a prompt."""
        return (
            describe_prompt((*self._before, {**self._message, "content": prompt})) if self._before else prompt
        )

    def fill_in(self, prompt: Prompt, started: float, key: str | None = None) -> Call[Response]:
        """The call of a prompt that fits, as `prepare` makes it. Its lookup began at a monotonic time."""
        filled = EncodedRequest(*_fields_of_encoded(self.call.encoded))
        filled.payload = inner = filled.payload.copy()
        for step in self._path[:-1]:
            inner[step] = inner = inner[step].copy()
        inner[self._path[-1]] = prompt
        messages = (*self._before, {**self._message, "content": prompt})
        return Call(
            request=make_request(messages=messages, **self._asked_alike),
            encoded=filled,
            body=b"".join((self._prefix, orjson.dumps(prompt), self._suffix)),
            started=started,
            first_key=key,
            tracks=self.call.tracks,
            metadata=self.call.metadata,
            **self._called_alike,
        )


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


Lookup: TypeAlias = Callable[[Iterable[Prompt]], Iterator[Result | Call[Response]]]
"""Yields for each prompt its stored answer, its call if nothing is stored, or its error."""

ResultT = TypeVar("ResultT", bound=Result)

_GROUP = 128
"""Prompts that are looked up together. Larger groups do not make a hit faster, and they need more memory for
the entries that are read ahead."""


def batch_lookup(
    engine: Engine,
    prepare: Callable[[Prompt], Call[Response]],
    metadata: Callable[[Prompt], Any] | None = None,
    example: Any = None,
) -> Lookup:
    """The lookup of a batch. It raises the `LLMError` or `TypeError` that every call would raise.

    `metadata` gives the metadata of each prompt, in order, if any. `example` is an input that is no prompt.
    """
    shared = None
    if example is None:
        shared = find_template(prepare)
    else:
        prepare(example)

    def by_itself(prompt: Prompt) -> Result | Call[Response]:
        described = None if metadata is None else metadata(prompt)
        call: Call[Response] | None = None
        try:
            call = prepare(prompt)
            call.metadata = described
            result: Result | None = engine.lookup(call)
        except LLMError as error:
            result = error
            # One that cannot be prepared may be anything.
            text = prompt if isinstance(prompt, str) else None
            error.prompt = text if call is None else describe_input(call.request)
        return cast("Call[Response]", call) if result is None else with_metadata(result, described)

    def lookup(inputs: Iterable[Prompt]) -> Iterator[Result | Call[Response]]:
        # Several samples have several keys, which are looked up one by one. So have several models.
        if shared is None or len(shared.call.parts) > 1 or shared.call.relay is not None:
            return map(by_itself, inputs)
        return _by_template(engine, shared, by_itself, inputs, metadata)

    return lookup


def _by_template(
    engine: Engine,
    shared: Template,
    by_itself: Callable[[Prompt], Result | Call[Response]],
    inputs: Iterable[Prompt],
    metadata: Callable[[Prompt], Any] | None,
) -> Iterator[Result | Call[Response]]:
    cache, call = engine.cache, shared.call
    reads = call.cache in READING
    by_template = not any(listener.reads_prompts for listener in call.listeners)
    # The next prompt of a generator may take long, and the prompts before it must not wait.
    for prompts in _groups(inputs, _GROUP if reads and isinstance(inputs, (list, tuple)) else 1):
        started = clock.perf_counter()
        keys = list(map(shared.key, prompts)) if by_template and reads else [None] * len(prompts)
        ahead = cache.read_ahead(list(filter(None, keys))) if len(keys) > 1 else {}
        for prompt, key in zip(prompts, keys, strict=True):
            if engine.closed:
                engine.refuse_closed()
            if key is None and (reads or not by_template or shared.fits(prompt) is None):
                yield by_itself(prompt)
            else:
                result: Result | None = None
                # A call counts in the `track` blocks around the code that takes its result.
                call.tracks = find_tracks()
                if metadata is not None:
                    call.metadata = metadata(prompt)
                if key is not None:
                    try:
                        # A missing key is looked up again: its answer may have been stored meanwhile.
                        entry = cache.get_here(key, ahead.pop(key, None))
                        result = engine.answer_from(call, entry, started, key, shared.describe(prompt))
                    except LLMError as error:
                        result, error.prompt = error, shared.describe(prompt)
                if result is not None:
                    yield result if metadata is None else with_metadata(result, call.metadata)
                else:
                    filled = shared.fill_in(prompt, started, key)
                    is_missing = call.cache == "only" and not cache.has_second_level
                    missing = engine.missing(filled, filled.parts[0]) if is_missing else None
                    yield filled if missing is None else with_metadata(missing, filled.metadata)
            started = clock.perf_counter()


def with_metadata(result: ResultT, metadata: Any) -> ResultT:
    """A result that was just made, with the metadata of its input."""
    if metadata is not None:
        # A response is frozen for its user, who has not seen this one yet.
        object.__setattr__(result, "metadata", metadata)
    return result


async def run_with_metadata(
    run: Callable[[Call[Response]], Awaitable[Response]], call: Call[Response]
) -> Response:
    """The answer of a call, or its `LLMError`, with the metadata of its input."""
    try:
        return with_metadata(await run(call), call.metadata)
    except LLMError as error:
        raise with_metadata(error, call.metadata) from None


def fetch_ahead(
    engine: Engine, prepare: Callable[[Prompt], Call[Any]], inputs: Iterable[Prompt]
) -> Iterable[Prompt]:
    """The inputs, once their answers in a second level of the cache are in the local store."""
    if not engine.cache.has_second_level:
        return inputs
    prompts, keys = list(inputs), list[str]()
    for prompt in prompts:
        with contextlib.suppress(LLMError):  # the caller prepares it again, and reports the error
            call = prepare(prompt)
            for each in call.candidates if call.cache in READING else ():
                keys += map(each.key, each.parts)
    engine.cache.fetch(keys)
    return prompts


def _groups(inputs: Iterable[Prompt], most: int) -> Iterator[list[Prompt]]:
    group: list[Prompt] = []
    try:
        for prompt in inputs:
            group.append(prompt)
            if len(group) == most:
                yield group
                group = []
    except Exception:
        # The prompts before the error get their results before it is raised.
        if group:
            yield group
        raise
    if group:
        yield group
