"""Whether a request has left: one that still waits for a token, a name or a connection costs nothing.

It stands alone because SDKs, transports and credentials hold a request that the call has begun.
"""

from contextvars import ContextVar
from typing import Any


class Departure:
    """Counts the requests of one call that have left, one after the other: a held request does not count."""

    __slots__ = ("attempts", "is_held", "is_told", "under_way")

    def __init__(self) -> None:
        self.attempts = 0
        self.under_way = 0
        self.is_held = False
        """Whether the last request is held."""
        self.is_told = False
        """Whether an error has told of the last request, which was under way then. It counts no longer."""

    def start(self) -> None:
        """Begin a request, which is held at first."""
        self.is_held, self.is_told = True, False

    def hold(self) -> None:
        if not self.is_held:
            self.is_held = True
            if not self.is_told:
                self.attempts -= 1
                self.under_way -= 1

    def leave(self) -> None:
        if self.is_held:
            self.is_held = False
            if not self.is_told:
                self.attempts += 1
                self.under_way += 1

    async def note(self, event: str, _: object) -> None:
        """Note an event of a request of httpx, which calls this."""
        if event.endswith("send_request_headers.started"):
            self.leave()


# A request outside of calls departs, too.
current: ContextVar[Departure] = ContextVar("departure", default=Departure())  # noqa: B039  # nobody reads it
"""The requests of the call whose request the present task sends."""


def watch(request: Any) -> None:
    """Hold a request of httpx until its headers are written."""
    departure = current.get()
    departure.hold()
    request.extensions["trace"] = departure.note
