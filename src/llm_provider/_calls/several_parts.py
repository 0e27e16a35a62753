"""Calls of several parts: they are asked for in as few requests as the API allows, all at the same time.

If one request fails, the others are waited for, and their answers are stored and noted. The error of the call
has them as `samples`, and the same call asks again for what failed.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from .._errors import LLMError, ModelDriftError
from .call import Call, Sample
from .sent_requests import SentRequests

if TYPE_CHECKING:
    import asyncio

    from .delivery import Emit

T = TypeVar("T")


class Asking(Protocol):
    """The part of the engine that this module needs."""

    async def stored_parts(self, call: Call[Any]) -> dict[int, Sample]:
        """The parts of a call that are in the cache."""

    def ask(self, call: Call[Any], parts: Sequence[int]) -> Coroutine[Any, Any, list[Sample]]:
        """Get a group of parts."""

    async def deliver(
        self, call: Call[Any], parts: Sequence[int], emit: Emit | None = None, places: Sequence[int] = ()
    ) -> list[Sample]:
        """Get a group of parts from the provider."""

    def missing(self, call: Call[Any], part: int) -> LLMError:
        """The error for a part that is not stored."""

    def cancel(self, task: asyncio.Task[Any]) -> None:
        """Cancel a task that gets parts."""


async def ask_for_several(engine: Asking, call: Call[Any]) -> list[Sample]:
    """Get the parts of a call."""
    call.found = found = await engine.stored_parts(call)
    groups = call.operation.groups(call, [part for part in call.parts if part not in found])
    await side_by_side([_ask_for_group(engine, call, group) for group in groups], engine.cancel)
    return [found[part] for part in call.parts]


async def _ask_for_group(engine: Asking, call: Call[Any], parts: Sequence[int]) -> None:
    """Get a group, in smaller groups where its request is refused as too large."""
    try:
        samples = await engine.ask(_part_of(call), parts)
    except LLMError as error:
        smaller = call.operation.smaller_groups(call, parts, error)
        if not smaller:
            raise
        await side_by_side([_ask_for_group(engine, call, group) for group in smaller], engine.cancel)
    else:
        note(call, parts, samples)


async def stream_several(engine: Asking, call: Call[Any], emit: Emit) -> list[Sample]:
    """Stream the parts of a call."""
    # Its module loads asyncio, which a hit does not need.
    from .delivery import whole

    call.found = found = await engine.stored_parts(call)
    places = {part: index for index, part in enumerate(call.parts)}
    for part, sample in found.items():
        emit([whole(sample.answer.choices[0], places[part])])
    missing = [part for part in call.parts if part not in found]
    if missing and call.cache == "only":
        raise engine.missing(call, missing[0])

    async def stream_group(group: Sequence[int]) -> None:
        samples = await engine.deliver(_part_of(call), group, emit, [places[part] for part in group])
        note(call, group, samples)

    await side_by_side(list(map(stream_group, call.operation.groups(call, missing))), engine.cancel)
    return [found[part] for part in call.parts]


async def side_by_side(
    work: Sequence[Coroutine[Any, Any, T]], cancel: Callable[[asyncio.Task[Any]], object]
) -> list[T]:
    """Run coroutines at the same time. All of them end before the first failure is raised."""
    import asyncio

    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*map(asyncio.shield, tasks), return_exceptions=True)
    except asyncio.CancelledError:
        for task in tasks:
            cancel(task)
        raise
    return [task.result() for task in tasks]


def _part_of(call: Call[T]) -> Call[T]:
    """A call for some parts of another one. Its requests are counted by themselves, and there too."""
    part = replace(call, sent=SentRequests())
    call.sent.parts += (part.sent,)
    return part


def note(call: Call[Any], parts: Sequence[int], samples: Sequence[Sample]) -> None:
    """Note that some parts of a call are answered."""
    if call.found is not None:
        call.found.update(zip(parts, samples, strict=False))


def describe(call: Call[Any], error: LLMError) -> None:
    """Set what the error of a call says of its requests, and of the parts that were answered."""
    call.sent.write_to(error)
    found = call.found or {}
    samples = [found[part] for part in call.parts if part in found]
    if isinstance(error, ModelDriftError):
        samples = [sample for sample in samples if sample.served_before is None]
    if samples:
        error.samples = call.operation.good_samples(call, samples)
