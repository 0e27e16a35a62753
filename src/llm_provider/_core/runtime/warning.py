"""Warnings that fail no call, also where standard error is closed."""

import contextlib
import warnings


def warn_user(message: str | Warning, category: type[Warning] = UserWarning, stacklevel: int = 1) -> None:
    """`warnings.warn`, which raises a `ValueError` while it writes to a file that is closed."""
    with contextlib.suppress(ValueError):
        warnings.warn(message, category, stacklevel + 1)
