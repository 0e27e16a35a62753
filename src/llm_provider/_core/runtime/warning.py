"""Warnings that fail no call, also where standard error is closed.

It is alone because rooms from the first to the last warn, and it imports none of them.
"""

import contextlib
import os
import sys
import warnings
from types import FrameType
from typing import Any

_PACKAGE, _LIBRARY = __file__.rpartition("_core")[0], os.path.dirname(os.__file__) + os.sep
_shown: dict[str, Any] = {}
"""Python's register of the warnings that no line of a program has caused."""


def warn_user(message: str | Warning, category: type[Warning] = UserWarning, stacklevel: int = 1) -> None:
    """`warnings.warn`, which raises a `ValueError` while it writes to a file that is closed."""
    with contextlib.suppress(ValueError):
        warnings.warn(message, category, stacklevel + 1)


def warn_caller(message: Warning) -> None:
    """Warn at the line of the program that called the package; at no line if it is not on the stack."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_internal(frame.f_code.co_filename):
        frame = frame.f_back
    path, line, module, shown = "llm_provider", 0, "llm_provider", _shown
    if frame is not None:
        path, line, names = frame.f_code.co_filename, frame.f_lineno, frame.f_globals
        module, shown = names.get("__name__") or path, names.setdefault("__warningregistry__", {})
    with contextlib.suppress(ValueError):
        warnings.warn_explicit(message, type(message), path, line, module, shown)


def _is_internal(path: str) -> bool:
    """Whether a file is one of the package or of Python."""
    is_of_python = path.startswith(_LIBRARY) and not path.startswith(f"{_LIBRARY}site-packages")
    return is_of_python or path.startswith((_PACKAGE, "<frozen "))
