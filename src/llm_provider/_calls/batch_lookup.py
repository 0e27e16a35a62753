"""How a batch begins its calls, in the user's thread: they are made, looked up, and answered if stored.

What is equal for all prompts is done once (`_template`), and where the prompts are all there already many are
looked up together. Prompts are read and answers given one by one all the same, as they are asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from .._errors import CacheMissError, LLMError
from .._money.track import current
from .._types import Prompt, Result
from .call import Call
from .prepare import READING, Front
from .template import Template, template

Begin: TypeAlias = Callable[[Iterable[Prompt]], Iterator[Result | Call]]
"""For each prompt, when it is asked for: its answer if stored, else its call, or what is wrong with it."""

_AT_ONCE = 128
"""Prompts that are looked up together: with more, a hit takes no less time, and what is read more memory."""


def beginning(front: Front, prepare: Callable[[Prompt], Call]) -> Begin:
    """What begins the calls of a batch.

    Args:
        front: Looks them up.
        prepare: Makes the call of a prompt.

    Raises:
        LLMError: something is wrong with every call.
        TypeError: likewise.
    """
    found = template(prepare)
    # Several samples are several keys, which are looked up one by one.
    alike = found if found is not None and found.call.request.n == 1 else None

    def begun(prompt: Prompt) -> Result | Call:
        try:
            call = prepare(prompt)
            return front.lookup(call) or call
        except LLMError as error:
            return error

    def begin(inputs: Iterable[Prompt]) -> Iterator[Result | Call]:
        return map(begun, inputs) if alike is None else _begin(front, alike, begun, inputs)

    return begin


def _begin(
    front: Front,
    alike: Template,
    begun: Callable[[Prompt], Result | Call],
    inputs: Iterable[Prompt],
) -> Iterator[Result | Call]:
    cache, call = front.cache, alike.call
    reads = call.cache in READING
    # What is no list may not have its next prompt yet, and the ones before it are not kept waiting for that.
    for prompts in _groups(inputs, _AT_ONCE if reads and isinstance(inputs, (list, tuple)) else 1):
        started = time.perf_counter()
        texts = [alike.fits(prompt) for prompt in prompts]
        keys = [alike.key(text) if text and reads else None for text in texts]
        ahead = cache.read_ahead([key for key in keys if key]) if len(keys) > 1 else {}
        for prompt, text, key in zip(prompts, texts, keys, strict=True):
            front.refuse_closed()
            if text is None:
                yield begun(prompt)
            else:
                response: Result | None = None
                # Those of who takes the results, which need not be in the block where the batch was made.
                call.tracks = current()
                if key is not None:
                    try:
                        # Looked up again if it was not there: it may have been asked for since.
                        response = front.answered(call, cache.get(key, ahead.pop(key, None)), started)
                    except LLMError as error:
                        response = error
                yield response or _missed(front, alike.filled(prompt, text, started, key))
            started = time.perf_counter()


def _missed(front: Front, call: Call) -> CacheMissError | Call:
    return front.missing(call, call.request.draw) if call.cache == "only" else call


def _groups(inputs: Iterable[Prompt], most: int) -> Iterator[list[Prompt]]:
    group: list[Prompt] = []
    try:
        for prompt in inputs:
            group.append(prompt)
            if len(group) == most:
                yield group
                group = []
    except Exception:
        # What was read before is begun before the error is told.
        if group:
            yield group
        raise
    if group:
        yield group
