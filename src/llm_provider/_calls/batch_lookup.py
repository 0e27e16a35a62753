"""The lookup of a batch, in the user's thread: prompts become results if they are stored, else calls.

All that is equal for all prompts is encoded once (`template`). The prompts of a list are looked up in groups.
All the same, prompts are read and results given one by one, as they are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from .._errors import CacheMissError, LLMError
from .._money.track import current
from .._types import Prompt, Response, Result
from .call import Call
from .engine import READING, Engine
from .template import Template, template

Lookup: TypeAlias = Callable[[Iterable[Prompt]], Iterator[Result | Call[Response]]]
"""For each prompt, when it is asked for: its stored answer, else its call, or the error that it causes."""

_GROUP = 128
"""Prompts that are looked up together. In larger groups a hit takes no less time, and the entries that are
read ahead take more memory."""


def batch_lookup(engine: Engine, prepare: Callable[[Prompt], Call[Response]]) -> Lookup:
    """The lookup of a batch.

    Args:
        engine: Looks calls up.
        prepare: Makes the call of a prompt.

    Raises:
        LLMError: something is wrong with every call.
        TypeError: there is no such parameter.
    """
    found = template(prepare)

    def by_itself(prompt: Prompt) -> Result | Call[Response]:
        try:
            call = prepare(prompt)
            return engine.lookup(call) or call
        except LLMError as error:
            return error

    def lookup(inputs: Iterable[Prompt]) -> Iterator[Result | Call[Response]]:
        # Several samples are several keys, which are looked up one by one.
        if found is None or len(found.call.parts) > 1:
            return map(by_itself, inputs)
        return _by_template(engine, found, by_itself, inputs)

    return lookup


def _by_template(
    engine: Engine,
    shared: Template,
    by_itself: Callable[[Prompt], Result | Call[Response]],
    inputs: Iterable[Prompt],
) -> Iterator[Result | Call[Response]]:
    cache, call = engine.cache, shared.call
    reads = call.cache in READING
    # The next prompt of a generator may take long to come, and those before it must not wait for it.
    for prompts in _groups(inputs, _GROUP if reads and isinstance(inputs, (list, tuple)) else 1):
        started = time.perf_counter()
        texts = [shared.fits(prompt) for prompt in prompts]
        keys = [shared.key(text) if text and reads else None for text in texts]
        ahead = cache.read_ahead([key for key in keys if key]) if len(keys) > 1 else {}
        for prompt, text, key in zip(prompts, texts, keys, strict=True):
            engine.refuse_closed()
            if text is None:
                yield by_itself(prompt)
            else:
                result: Result | None = None
                # The `track` blocks around the code that takes the results, not those around the start.
                call.tracks = current()
                if key is not None:
                    try:
                        # A key that was missing is looked up again: an answer may have come since.
                        result = engine.answered(call, cache.get(key, ahead.pop(key, None)), started)
                    except LLMError as error:
                        result = error
                yield result or _missed(engine, shared.filled(prompt, text, started, key))
            started = time.perf_counter()


def _missed(engine: Engine, call: Call[Response]) -> CacheMissError | Call[Response]:
    return engine.missing(call, call.parts[0]) if call.cache == "only" else call


def _groups(inputs: Iterable[Prompt], most: int) -> Iterator[list[Prompt]]:
    group: list[Prompt] = []
    try:
        for prompt in inputs:
            group.append(prompt)
            if len(group) == most:
                yield group
                group = []
    except Exception:
        # The prompts before the error are served before it is raised.
        if group:
            yield group
        raise
    if group:
        yield group
