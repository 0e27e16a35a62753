"""The check of the paths that users give."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .._errors import RequestError, shown


def checked_path(name: str, value: Any) -> str | os.PathLike[str]:
    """A path as the user gave it.

    Raises:
        RequestError: it is neither a text nor a path, or it is empty.

    >>> checked_path("ledger", "runs.jsonl")
    'runs.jsonl'
    """
    if isinstance(value, (str, os.PathLike)) and os.fspath(value):
        return value
    if isinstance(value, str):
        raise RequestError(f"{name} must be a path, not '': leave {name} out for its default")
    raise RequestError(
        f"{name} must be a path as a str or a pathlib.Path, such as 'folder/name', not {shown(value)}"
    )


def file_remedy(path: Path) -> str:
    """What to do about a file that cannot be opened for writing, for the end of a message."""
    if path.is_dir():
        return "; it is a folder: name a file in it"
    if not path.parent.is_dir():
        return f"; make the folder {str(path.parent)!r} first"
    return ""
