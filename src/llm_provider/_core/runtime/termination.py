"""SIGTERM during a batch: it ends as after Ctrl-C, as where SLURM preempts a job or docker stops a container.

| SIGTERM arrives | and then |
|---|---|
| during a command of the shell | it ends with one line, as after Ctrl-C |
| during a batch of the main thread | the batch raises `Terminated`, keeps what is paid, and tells its count |
| during an asynchronous one | its event loop ends with `Terminated`; `asyncio.run` then cancels the batch |
| a second time, half a second later or more, or after the batch | the process ends at once |
| during a batch of another thread, in a notebook, or with a handler of the program | as without this module |
| in a forked child | the child ends at once |
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from . import clock
from .notebooks import in_notebook

if TYPE_CHECKING:
    import asyncio

EXIT_STATUS = 128 + 15
"""The exit status of a shell for a program that SIGTERM (15) has ended."""

_TWICE = 0.5
"""Seconds in which a second SIGTERM is the first one again: GNU's `timeout` sends it to its child, and then
to the group of processes in which the child is."""


class Terminated(SystemExit):
    """SIGTERM has ended a batch, and so the process, with the exit status 143, unless the program goes on."""

    def __init__(self) -> None:
        super().__init__(EXIT_STATUS)


class _Watch:
    """The batches that SIGTERM ends, and the process that has them."""

    def __init__(self) -> None:
        self.loops: list[asyncio.AbstractEventLoop | None] = []
        """The event loop of each batch, the newest last; None for a synchronous one."""
        self.process = 0
        self.has_ended = False
        """Whether SIGTERM has ended the batches."""
        self.ended_at = 0.0
        """When it did, on the monotonic clock."""


_watch = _Watch()


def is_terminated() -> bool:
    """Whether SIGTERM has ended a batch of this process."""
    return _watch.has_ended and _watch.process == os.getpid()


@contextlib.contextmanager
def heed_sigterm(loop: asyncio.AbstractEventLoop | None = None) -> Iterator[None]:
    """Let SIGTERM end the batch of this block, which runs on the user's `loop` if it is asynchronous."""
    if threading.current_thread() is not threading.main_thread() or not _install():
        yield
        return
    _watch.loops.append(loop)
    try:
        yield
    finally:
        _watch.loops.remove(loop)
        if not _watch.loops and signal.getsignal(signal.SIGTERM) is _end_batches:
            # A generator may be closed in any thread. The handler then stays, and does what the default does.
            with contextlib.suppress(ValueError):
                signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _install() -> bool:
    """Take the place of the default handler. Returns whether this module handles SIGTERM."""
    handler = signal.getsignal(signal.SIGTERM)
    if handler is signal.SIG_DFL and not in_notebook():
        signal.signal(signal.SIGTERM, _end_batches)
        _watch.process, _watch.has_ended = os.getpid(), False
        return True
    return handler is _end_batches and _watch.process == os.getpid()


def _end_batches(*_: Any) -> None:
    now = clock.monotonic()
    if is_terminated() and now < _watch.ended_at + _TWICE:
        return
    if _watch.loops and _watch.process == os.getpid() and not _watch.has_ended:
        _watch.has_ended, _watch.ended_at = True, now
        loop = _watch.loops[-1]
        if loop is None:
            raise Terminated
        # Raised between two callbacks, it leaves the loop's own state whole.
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_raise)
            return
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def _raise() -> NoReturn:
    raise Terminated
