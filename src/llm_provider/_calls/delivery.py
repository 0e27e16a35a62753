"""`Delivery`: how the encoded requests of a call get their answers.

The key under which the engine stores an answer does not depend on the delivery. So a live call is answered
from the cache after another delivery got the answer, and equal calls share one request across deliveries.
`sender.Sender` is the live delivery: it sends each request now, at full price.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeAlias

from .._limits.scopes import ScopeStatistics
from .._types import Step
from .call import Call, Sample

Emit: TypeAlias = Callable[[list[Step]], None]
"""Receives the steps of a stream. Steps that arrived together are in one list."""


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
