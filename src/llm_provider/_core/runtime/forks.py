"""What happens around a fork: hooks, and the wait until no other thread holds what the child needs.

The child has no other thread. It would find a module half imported, or a lock of OpenSSL taken, and wait for
ever.
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

_HOLDERS = {
    "platform": ("",),
    "ssl": ("create_default_context", "SSLContext.__new__", "SSLContext.load_default_certs", "SSLObject."),
    "pydantic.plugin._schema_validator": ("create_schema_validator",),
    "pydantic._internal._model_construction": ("complete_model_class",),
}
"""Modules, and the beginnings of the names of their functions, that hold a lock no fork releases.

OpenAI's SDK asks `platform` before its first request, in a thread of its own. That runs a program, and Python
3.11 holds a lock for so long. The functions of `ssl` hold locks of OpenSSL, pydantic's have one of its Rust
code. Functions of `ssl` that wait for a network are not among them: a fork would wait as long.
"""

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


def wait_for_holders() -> None:
    """Wait until no other thread imports a module on behalf of this package, or is in one of `_HOLDERS`.

    It runs after the hooks of modules that are imported later than this package, as the other thread may
    need their locks, or import their modules. So each lock is free during the wait, and is taken at its end.
    """
    until = clock.monotonic() + _LONGEST
    # Another thread may begin while this one takes the locks, so it looks again after it has them.
    while _is_needed() and clock.monotonic() < until:
        present, freed = _locks(), []
        for lock in present:
            with contextlib.suppress(RuntimeError):  # its hook is of a module that was there before
                lock.release()
                freed.append(lock)
        clock.sleep(_PAUSE)
        while _is_needed() and clock.monotonic() < until:
            clock.sleep(_PAUSE)
        for lock in _locks():
            # Nothing else takes that of a module that was imported during the wait.
            if lock in freed or lock not in present:
                lock.acquire()


def _locks() -> list[Lock]:
    locks = [getattr(sys.modules.get(module), name, None) for module, name in _LOCKS]
    return [lock for lock in locks if lock is not None]


def _is_needed() -> bool:
    # The frame of this thread is found by itself, as gevent replaces the numbers of threads.
    here, frames = sys._getframe(), sys._current_frames().values()  # noqa: SLF001  # there is no other view of them
    # If this thread imports as well, the other import may wait for this one.
    return not _holds(here) and any(_holds(frame) for frame in frames if frame is not here)


def _holds(frame: FrameType | None) -> bool:
    """Whether the thread of a frame is in one of `_HOLDERS`, or imports for this package."""
    importing = False
    for each in _callers(frame):
        name = str(each.f_globals.get("__name__"))
        if name in _HOLDERS and each.f_code.co_qualname.startswith(_HOLDERS[name]):
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
