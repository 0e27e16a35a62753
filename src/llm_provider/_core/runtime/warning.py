"""Warnings that fail no call, also where standard error is closed.

It is alone because rooms from the first to the last warn, and it imports none of them.
"""

import contextlib
import warnings


def warn_user(message: str | Warning, category: type[Warning] = UserWarning, stacklevel: int = 1) -> None:
    """`warnings.warn`, which raises a `ValueError` while it writes to a file that is closed."""
    with contextlib.suppress(ValueError):
        warnings.warn(message, category, stacklevel + 1)
