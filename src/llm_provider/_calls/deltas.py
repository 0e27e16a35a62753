"""The deltas of a streamed call: their receiver, and their numbers where a call has several samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from .._providers.shared.replies import number_step
from .._types.messages import Delta, Step, ToolCallDelta, delta_of
from .._types.response import Choice

Emit: TypeAlias = Callable[[list[Step]], None]
"""Receives the steps of a stream. Steps that arrived together are in one list."""


def delta_of_choice(choice: Choice, index: int) -> Delta:
    """All of a sample as one delta."""
    calls = tuple(
        ToolCallDelta(index=position, id=call.id, name=call.name, arguments=call.arguments)
        for position, call in enumerate(choice.tool_calls)
    )
    return Delta(text=choice.text, reasoning=choice.reasoning, tool_calls=calls, index=index)


def renumber(emit: Emit, numbers: Sequence[int]) -> Emit:
    """An `Emit` that gives deltas the `numbers` of their samples in the call, and drops surplus ones."""

    def emit_renumbered(steps: list[Step]) -> None:
        deltas = [delta for step in steps if (delta := delta_of(step)).index < len(numbers)]
        emit([number_step(delta, numbers[delta.index]) for delta in deltas])

    return emit_renumbered
