"""What happens around a fork: hooks, and the wait until no other thread imports what this package needs.

The child has no other thread. It would find the module half imported, and wait for ever for its lock.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from . import clock

if TYPE_CHECKING:
    from threading import Lock
    from types import FrameType

T = TypeVar("T")

_LONGEST = 60.0
"""Seconds to wait for the other thread, as `imports` waits."""

_PAUSE = 0.005

_PACKAGE = __name__.partition(".")[0]

_IMPORTLIB = "<frozen importlib._bootstrap"
"""The beginning of the file name of Python's own import functions, in every frame of an import."""

_SLOW = "platform"
"""A module of Python that the SDKs ask before their first request, OpenAI's in a thread of its own. It runs a
program, and Python 3.11 holds a lock for so long."""

_LOCKS = (("logging", "_lock"), ("concurrent.futures.thread", "_global_shutdown_lock"))
"""The locks of Python's modules that a hook takes before a fork, and another one releases after it."""


def run_around_forks(**hooks: Callable[[], object]) -> None:
    """Register `before`, `after_in_parent` and `after_in_child`, where the system can fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**hooks)


def run_for_each_around_forks(objects: Iterable[T], **hooks: Callable[[T], object]) -> None:
    """`run_around_forks` with each of those objects that exist when the fork begins."""
    present: list[T] = []

    def run(name: str, hook: Callable[[T], object]) -> None:
        if name == "before" or "before" not in hooks:
            present[:] = objects
        for each in present:
            hook(each)
        if name != "before":
            present.clear()

    run_around_forks(**{name: functools.partial(run, name, hook) for name, hook in hooks.items()})


def reset_in_child(objects: Iterable[T], reset: Callable[[T], object]) -> None:
    """Call a function with each of some objects in the child of every fork."""
    run_for_each_around_forks(objects, after_in_child=reset)


def wait_for_imports() -> None:
    """Wait until no other thread imports a module on behalf of this package.

    It is the last hook before a fork, as the other thread may need the locks of earlier hooks, or import
    their modules. So each lock is free during the wait, and is taken at its end.
    """
    if not _is_needed():
        return
    for lock in _locks():
        with contextlib.suppress(RuntimeError):  # its hook was not there yet
            lock.release()
    until = clock.monotonic() + _LONGEST
    while _is_needed() and clock.monotonic() < until:
        clock.sleep(_PAUSE)
    for lock in _locks():
        lock.acquire()


def _locks() -> list[Lock]:
    locks = [getattr(sys.modules.get(module), name, None) for module, name in _LOCKS]
    return [lock for lock in locks if lock is not None]


def _is_needed() -> bool:
    # The frame of this thread is found by itself, as gevent replaces the numbers of threads.
    here, frames = sys._getframe(), sys._current_frames().values()  # noqa: SLF001  # there is no other view of them
    # If this thread imports as well, the other import may wait for this one.
    return not _imports(here) and any(_imports(frame) for frame in frames if frame is not here)


def _imports(frame: FrameType | None) -> bool:
    """Whether the thread of an innermost frame asks `platform`, or imports on behalf of this package."""
    importing = False
    for each in _callers(frame):
        name = str(each.f_globals.get("__name__"))
        if name == _SLOW:
            return True
        if each.f_code.co_filename.startswith(_IMPORTLIB):
            importing = True
        elif importing and name.partition(".")[0] == _PACKAGE:
            return True
    return False


def _callers(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back
