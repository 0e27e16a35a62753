"""Calls of several parts: they are asked for in as few requests as the API allows, all at the same time.

If one request fails, the others are waited for, and their answers are stored and noted. The error of the call
has them as `samples`, and the same call asks again for what failed.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ..errors import LLMError, ModelDriftError
from .call import Call, Emit, Sample, delta_of_choice
from .early_stop import ENOUGH_FAILURES, EarlyStop
from .sent_requests import SentRequests

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

Ask: TypeAlias = Callable[[Call[Any], Sequence[int]], Coroutine[Any, Any, list[Sample]]]
"""Gets a group of parts of a call."""
Deliver: TypeAlias = Callable[
    [Call[Any], Sequence[int], Emit, Sequence[int]], Coroutine[Any, Any, list[Sample]]
]
"""Gets a group of parts from the provider, and emits the deltas with the numbers of these parts."""
Cancel: TypeAlias = Callable[["asyncio.Task[Any]"], object]
"""Cancels a task that gets parts."""


async def ask_for_missing(
    call: Call[Any], answered: dict[int, Sample], ask: Ask, cancel: Cancel
) -> list[Sample]:
    """The parts of a call, after getting those that are not in `answered`, which has the stored ones."""
    call.answered = answered
    groups = _missing_groups(call, answered)
    if len(groups) > ENOUGH_FAILURES and call.early_stop is None:
        # A wrong key fails every group.
        call.early_stop = EarlyStop()
    await _ask_for_groups(call, groups, ask, cancel)
    return [answered[part] for part in call.parts]


async def _ask_for_groups(call: Call[Any], groups: Sequence[Sequence[int]], ask: Ask, cancel: Cancel) -> None:
    """Get groups of parts, in smaller groups where a request is refused as too large."""

    async def ask_for_group(parts: Sequence[int]) -> None:
        try:
            samples = await ask(_part_of(call), parts)
        except LLMError as error:
            smaller = call.operation.smaller_groups(call, parts, error)
            if not smaller:
                raise
            await _ask_for_groups(call, smaller, ask, cancel)
        else:
            note(call, parts, samples)

    await run_side_by_side(list(map(ask_for_group, groups)), cancel)


async def share_apart(
    call: Call[Any], parts: Sequence[int], followed: Sequence[int], share: Ask, cancel: Cancel
) -> list[Sample]:
    """The parts of a group. Another call asks for some: they are followed, and the others are asked for."""

    async def share_group(group: Sequence[int]) -> dict[int, Sample]:
        samples = await share(_part_of(call), group)
        note(call, group, samples)
        return dict(zip(group, samples, strict=True))

    others = [part for part in parts if part not in followed]
    first, second = await run_side_by_side([share_group(followed), share_group(others)], cancel)
    return [first[part] if part in first else second[part] for part in parts]


async def stream_missing(
    call: Call[Any], answered: dict[int, Sample], emit: Emit, deliver: Deliver, cancel: Cancel
) -> list[Sample]:
    """The parts of a call: those in `answered` are emitted whole, and the others are streamed."""
    call.answered = answered
    positions = {part: index for index, part in enumerate(call.parts)}
    for part, sample in answered.items():
        emit([delta_of_choice(sample.answer.choices[0], positions[part])])

    async def stream_group(group: Sequence[int]) -> None:
        samples = await deliver(_part_of(call), group, emit, [positions[part] for part in group])
        note(call, group, samples)

    await run_side_by_side(list(map(stream_group, _missing_groups(call, answered))), cancel)
    return [answered[part] for part in call.parts]


def _missing_groups(call: Call[Any], answered: dict[int, Sample]) -> list[Sequence[int]]:
    return call.operation.groups(call, [part for part in call.parts if part not in answered])


async def run_side_by_side(work: Sequence[Coroutine[Any, Any, T]], cancel: Cancel) -> list[T]:
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
    if call.answered is not None:
        call.answered.update(zip(parts, samples, strict=False))


def describe(call: Call[Any], error: LLMError) -> None:
    """Set what the error of a call says of its requests, and of the parts that were answered."""
    call.sent.write_to(error)
    answered = call.answered or {}
    samples = [answered[part] for part in call.parts if part in answered]
    if isinstance(error, ModelDriftError):
        samples = [sample for sample in samples if sample.change is None]
    if samples:
        error.samples = call.operation.good_samples(call, samples)
