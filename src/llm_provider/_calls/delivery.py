"""`Delivery`: how the encoded requests of a call get their answers.

The key under which the engine stores an answer does not depend on the delivery. So a live call is answered
from the cache after another delivery got the answer, and equal calls share one request across deliveries.
`sender.Sender` is the live delivery: it sends each request now, at full price.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeAlias

from .._limits.scopes import ScopeStatistics
from .._providers.adapter import numbered
from .._types.messages import Delta, Step, ToolCallDelta, delta_of
from .._types.response import Choice
from .call import Call, Sample

Emit: TypeAlias = Callable[[list[Step]], None]
"""Receives the steps of a stream. Steps that arrived together are in one list."""


def whole(choice: Choice, index: int) -> Delta:
    """All of a sample as one delta."""
    calls = tuple(
        ToolCallDelta(index=place, id=call.id, name=call.name, arguments=call.arguments)
        for place, call in enumerate(choice.tool_calls)
    )
    return Delta(text=choice.text, reasoning=choice.reasoning, tool_calls=calls, index=index)


def placed(emit: Emit, places: Sequence[int]) -> Emit:
    """An `Emit` for a request for some of several samples. Deltas get the number of their sample in the call.

    Samples beyond those that were asked for are not shown, as they are not returned.
    """

    def emit_placed(steps: list[Step]) -> None:
        deltas = [delta for step in steps if (delta := delta_of(step)).index < len(places)]
        emit([numbered(delta, places[delta.index]) for delta in deltas])

    return emit_placed


class Delivery(Protocol):
    """Gets answers from providers, on one event loop."""

    def send(self, call: Call[Any], parts: Sequence[int], emit: Emit | None) -> Coroutine[Any, Any, Sample]:
        """Get one answer with some parts of a call.

        Args:
            call: The call.
            parts: A group of its parts, as `Operation.groups` gives them.
            emit: Receives the steps of the answer as they arrive; None for a call that is not streamed.

        Raises:
            LLMError: there is no answer.
        """

    def affordable(self, call: Call[Any], parts: Sequence[int]) -> bool:
        """Whether the budgets of a call have room for some of its parts."""

    def statistics(self) -> list[ScopeStatistics]:
        """The state of the rate control of each scope in use."""

    async def close(self) -> None:
        """Close every connection."""
