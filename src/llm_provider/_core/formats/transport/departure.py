"""Whether a request has left: one that still waits for a token, a name or a connection costs nothing."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any


class Departure:
    """The departure of one request, which counts as sent, by `begin`, but while it is held, by `withdraw`.

    `withdraw` returns False where an error has told of the request.
    """

    __slots__ = ("_begin", "_withdraw", "_withdrew", "is_held")

    def __init__(self, withdraw: Callable[[], bool], begin: Callable[[], None]) -> None:
        self._withdraw, self._begin = withdraw, begin
        self.is_held = self._withdrew = False

    def hold(self) -> None:
        if not self.is_held:
            self.is_held, self._withdrew = True, self._withdraw()

    def leave(self) -> None:
        if self.is_held and self._withdrew:
            self._begin()
        self.is_held = False

    async def note(self, event: str, _: object) -> None:
        """Note an event of a request of httpx, which calls this."""
        if event.endswith("send_request_headers.started"):
            self.leave()


# A request outside of calls departs, too.
current: ContextVar[Departure] = ContextVar("departure", default=Departure(bool, lambda: None))  # noqa: B039  # nobody changes it
"""The departure of the request that the present task sends."""


def watch(request: Any) -> None:
    """Hold a request of httpx until its headers are written."""
    departure = current.get()
    departure.hold()
    request.extensions["trace"] = departure.note
