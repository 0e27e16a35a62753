"""Warnings that fail no call, also where standard error is closed.

It is alone because rooms from the first to the last warn, and it imports none of them.
"""

import contextlib
import contextvars
import functools
import os
import sys
import warnings
from contextvars import Context, ContextVar
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias

_PACKAGE, _LIBRARY = __file__.rpartition("_core")[0], f"{Path(os.__file__).parent}{os.sep}"
_Place: TypeAlias = tuple[str, int, dict[str, Any]]
"""The path of a file, a line of it, and the names of its module."""

_NOWHERE: _Place = "llm_provider", 0, {}
"""It shows no line of a file."""

_caller: ContextVar[_Place | None] = ContextVar("caller", default=None)


def copy_context() -> Context:
    """The context for work in another thread, whose warnings are at the line that called the package."""
    context = contextvars.copy_context()
    if (caller := find_caller()) is not None:
        context.run(_caller.set, caller)
    return context


def warn_user(
    message: str | Warning, category: type[Warning] = UserWarning, caller: _Place | None = None
) -> None:
    """Warn at the line of the program that called the package, else at `caller`; without one, at no line."""
    path, line, names = find_caller() or _caller.get() or caller or _NOWHERE
    kind = type(message) if isinstance(message, Warning) else category
    register = names.setdefault("__warningregistry__", {})
    # Python raises a `ValueError` while it writes to a file that is closed.
    with contextlib.suppress(ValueError):
        warnings.warn_explicit(message, kind, path, line, names.get("__name__") or path, register)


def find_caller() -> _Place | None:
    """The line of the program that called the package; None in a thread that the package has started."""
    frame: FrameType | None = sys._getframe(2)  # noqa: SLF001
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    return frame and (frame.f_code.co_filename, frame.f_lineno, frame.f_globals)


@functools.lru_cache(maxsize=1024)
def is_internal(path: str) -> bool:
    """Whether a file is one of the package or of Python."""
    is_of_python = path.startswith(_LIBRARY) and not path.startswith(f"{_LIBRARY}site-packages")
    return is_of_python or path.startswith((_PACKAGE, "<frozen "))
