"""The cache lookup of a batch, in the user's thread: a stored prompt becomes a result, another one a call.

The prompts of a list are looked up in groups. The prompts of other iterables are read one by one, as results
are taken. What a batch needs later is loaded first, as its connections may use up all file descriptors.

The calls of a batch are encoded once, as a template, and each prompt is then filled in (`journey/templates`).
"""

import contextlib
import errno
import os
import weakref
from collections.abc import Awaitable, Callable, Iterable, Iterator
from importlib import import_module
from typing import Any, TypeAlias, TypeVar, cast

from .. import doors
from ..errors import APIConnectionError, LLMError
from ..journey.call import Call
from ..journey.engine import Engine
from ..journey.lookup import READING
from ..journey.templates import Template, find_template
from ..money.totals import find_tracks
from ..requests.request import describe_input
from ..runtime import clock
from ..types.messages import Prompt
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
    for prompts in _groups(inputs, _GROUP if isinstance(inputs, (list, tuple)) else 1):
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
