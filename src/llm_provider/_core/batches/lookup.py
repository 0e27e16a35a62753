"""The cache lookup of a batch, in the user's thread: a stored prompt becomes a result, another one a call.

The parts of a request that are equal for all prompts are encoded once (`template`). The prompts of a list are
looked up in groups. The prompts of other iterables are read one by one, as results are taken.
"""

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, TypeAlias, TypeVar, cast

from ..errors import CacheMissError, LLMError
from ..journey.call import Call
from ..journey.engine import Engine
from ..journey.lookup import READING
from ..money.totals import find_tracks
from ..requests.request import describe_input
from ..runtime import clock
from ..types.messages import Prompt
from ..types.response import Response, Result
from .template import Template, find_template

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
        texts = list(map(shared.fits, prompts)) if by_template else [None] * len(prompts)
        keys = [shared.key(text) if text and reads else None for text in texts]
        ahead = cache.read_ahead(list(filter(None, keys))) if len(keys) > 1 else {}
        for prompt, text, key in zip(prompts, texts, keys, strict=True):
            engine.refuse_closed()
            if text is None:
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
                        result = engine.answer_from(call, entry, started, key)
                    except LLMError as error:
                        result = error
                if result is not None:
                    object.__setattr__(result, "prompt", shared.describe(prompt))
                if result is None:
                    yield _report_miss(engine, shared.fill_in(prompt, text, started, key))
                else:
                    yield result if metadata is None else with_metadata(result, call.metadata)
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


def _report_miss(engine: Engine, call: Call[Response]) -> CacheMissError | Call[Response]:
    if call.cache == "only" and not engine.cache.has_second_level:
        return with_metadata(engine.missing(call, call.parts[0]), call.metadata)
    return call


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
