"""`track`: sums the cost of the calls inside a `with` block, through tasks, threads and batches.

A context variable holds the open tracks, so whatever runs in a copy of the context inherits them. A new
thread has an empty context: its calls count in the tracks that the main thread has open at that moment.
Tracks that another thread opens are its own.
"""

import contextlib
import contextvars
import threading
from collections.abc import Iterator
from typing import NamedTuple

from .ledger import Ledger
from .totals import Totals


class Tracks(NamedTuple):
    """The open tracks in which a call counts."""

    tag: str = ""
    """Their names from the outermost to the innermost, joined by slashes."""
    totals: tuple[Totals, ...] = ()
    """Their sums, in the same order."""


NOWHERE = Tracks()
_inside: contextvars.ContextVar[Tracks | None] = contextvars.ContextVar("llm_provider_tracks", default=None)


class _MainThread:
    """The tracks of the main thread, for threads without a context of their own."""

    def __init__(self) -> None:
        self._open: list[Tracks] = []
        self.tracks = NOWHERE

    def enter(self, tracks: Tracks) -> None:
        self._open.append(tracks)
        self._update()

    def leave(self, tracks: Tracks) -> None:
        # By identity: equal tracks may be open side by side.
        self._open = [other for other in self._open if other is not tracks]
        self._update()

    def _update(self) -> None:
        # Tasks of the main thread may have tracks open side by side. For which of these tasks a thread works
        # is unknown, so its calls count in the tracks around all of them.
        chains = [tracks.totals for tracks in self._open]
        around = [
            tracks
            for tracks in self._open
            if all(_begins(chain, tracks.totals) or _begins(tracks.totals, chain) for chain in chains)
        ]
        self.tracks = max(around, key=lambda tracks: len(tracks.totals), default=NOWHERE)


def _begins(chain: tuple[Totals, ...], start: tuple[Totals, ...]) -> bool:
    return chain[: len(start)] == start


_main_thread = _MainThread()


def current() -> Tracks:
    """The tracks in which a call counts that this thread or task makes now."""
    tracks = _inside.get()
    if tracks is not None:
        return tracks
    # First the cheap test, which is enough where no track is open.
    shared = _main_thread.tracks
    if shared is NOWHERE or threading.current_thread() is threading.main_thread():
        return NOWHERE
    return shared


@contextlib.contextmanager
def track(name: str = "") -> Iterator[Ledger]:
    """Sum the cost of all calls that are made inside a `with` block, by any client.

    Calls of the block itself count, of the tasks that it starts, and of its batches and streams. If the block
    runs in the main thread, calls of threads without a track of their own count too. Another thread counts if
    it is started with a copy of the context (`contextvars.copy_context().run`). Blocks can be nested: each
    has its own sums, and calls of an inner block count in the outer one too. A request that is still under
    way when the block ends counts when the request ends.

    Args:
        name: The tag of the block's rows. Inside another track, that track's tag and a slash precede it.

    Yields:
        The sums, which grow while the block runs and can be read at any time.

    Raises:
        TypeError: the name is not a str.
        ValueError: the name contains half a surrogate pair, which cannot be written to a file.

    >>> from llm_provider import call
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator, track("addition") as sums:
    ...     answer = call("gpt-6.1-sol", "What is 2+3?", base_url=simulator.url("openai"))
    >>> sums.requests, float(sums.spent) == answer.cost, sums.rows()[0].tag
    (1, True, 'addition')
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a track must be a str, not {type(name).__name__}: write 'evaluation'")
    name.encode()
    outer, totals = current(), Totals()
    tracks = Tracks("/".join(filter(None, (outer.tag, name))), (*outer.totals, totals))
    token = _inside.set(tracks)
    in_main = threading.current_thread() is threading.main_thread()
    if in_main:
        _main_thread.enter(tracks)
    try:
        yield Ledger(totals)
    finally:
        if in_main:
            _main_thread.leave(tracks)
        with contextlib.suppress(ValueError):  # left in another context, as by a test's fixture
            _inside.reset(token)
