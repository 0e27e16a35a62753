"""`track`: sums of what runs inside a `with` block, through tasks, threads and batches.

A context variable holds the tracks that a call is made in, so tasks and whatever else Python hands a copy of
the context to are inside. To a new thread it hands none. A call from such a thread counts in what the main
thread has open at that moment: a script's pool of threads works for the block that waits for it. Tracks that
other threads open are their own, so the requests of a threaded server stay apart.
"""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Iterator
from typing import NamedTuple

from .ledger import Ledger
from .totals import Totals


class Tracks(NamedTuple):
    """The tracks that a call counts in."""

    tag: str = ""
    """Their names from the outermost to the innermost, with slashes between them."""
    books: tuple[Totals, ...] = ()


NOWHERE = Tracks()
_inside: contextvars.ContextVar[Tracks | None] = contextvars.ContextVar("llm_provider_tracks", default=None)


class _MainThread:
    """What the main thread has open, for threads without a context of their own."""

    def __init__(self) -> None:
        self._open: list[Tracks] = []
        self.tracks = NOWHERE

    def enter(self, tracks: Tracks) -> None:
        self._open.append(tracks)
        self._renew()

    def leave(self, tracks: Tracks) -> None:
        # By identity: equal ones may be open side by side.
        self._open = [other for other in self._open if other is not tracks]
        self._renew()

    def _renew(self) -> None:
        # Tasks of the main thread may have tracks side by side. Nobody can tell which of them a thread works
        # for, so it counts in those around all of them.
        chains = [tracks.books for tracks in self._open]
        around = [
            tracks
            for tracks in self._open
            if all(_begins(chain, tracks.books) or _begins(tracks.books, chain) for chain in chains)
        ]
        self.tracks = max(around, key=lambda tracks: len(tracks.books), default=NOWHERE)


def _begins(chain: tuple[Totals, ...], start: tuple[Totals, ...]) -> bool:
    return chain[: len(start)] == start


_main_thread = _MainThread()


def current() -> Tracks:
    """The tracks that a call counts in which is made here and now."""
    tracks = _inside.get()
    if tracks is not None:
        return tracks
    # Looked at first, as it costs nothing where nobody tracks.
    shared = _main_thread.tracks
    if shared is NOWHERE or threading.current_thread() is threading.main_thread():
        return NOWHERE
    return shared


@contextlib.contextmanager
def track(name: str = "") -> Iterator[Ledger]:
    """Sum what the calls cost that are made inside a `with` block, by whatever client.

    Counted are calls of the block itself, of the tasks it starts, of its batches and streams, and, where the
    block is the main thread's, of threads that have no track of their own. Other threads are inside if they
    are started with a copy of the context (`contextvars.copy_context().run`). Blocks nest: each has its own
    sums, and the inner one's calls are in the outer one's too. What is still under way at the end of the
    block counts when it ends.

    Args:
        name: The tag of its rows; inside another track it follows that one's name and a slash.

    Yields:
        The sums, which grow while the block runs and can be read at any time.

    Raises:
        TypeError: the name is not a str.
        ValueError: it has half a surrogate pair, which no file can hold.

    >>> from llm_provider import call
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator, track("addition") as sums:
    ...     answer = call("gpt-6.1-sol", "What is 2+3?", base_url=simulator.url("openai"))
    >>> sums.requests, float(sums.spent) == answer.cost, sums.rows()[0].tag
    (1, True, 'addition')
    """
    if not isinstance(name, str):
        raise TypeError(f"a track's name must be a str, not {type(name).__name__}")
    name.encode()
    outer, book = current(), Totals()
    tracks = Tracks("/".join(filter(None, (outer.tag, name))), (*outer.books, book))
    token = _inside.set(tracks)
    in_main = threading.current_thread() is threading.main_thread()
    if in_main:
        _main_thread.enter(tracks)
    try:
        yield Ledger(book)
    finally:
        if in_main:
            _main_thread.leave(tracks)
        with contextlib.suppress(ValueError):  # left in another context, as fixtures of tests may be
            _inside.reset(token)
