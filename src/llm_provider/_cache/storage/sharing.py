"""Who may write to the directory of a cache: its user alone, or on demand the group of the directory.

Everybody who can write to a cache can change the answers that all its users get. So a directory that others
can write to is refused, unless `cache_shared=True` says that its group is trusted. A directory that all users
of the machine can write to is always refused.

A shared cache holds the answers. The leases, the learned limits and the batches of each user stay in a
directory of that user inside it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from ..._errors import RequestError

DIRECTORY, FILE = 0o2770, 0o660
"""The modes of what a shared cache creates. New files belong to the group of their directory."""

_SWITCH = (
    "Client(cache_shared=True) or LLM_PROVIDER_CACHE_SHARED=1 uses a cache of your group, whose members can "
    "then change the answers that you get"
)
_WORDS = {"": False, "0": False, "false": False, "no": False, "1": True, "true": True, "yes": True}


def shared_by_environment() -> bool:
    """Whether `LLM_PROVIDER_CACHE_SHARED` says that caches are shared.

    Raises:
        RequestError: its text is neither 1 nor 0.
    """
    text = os.environ.get("LLM_PROVIDER_CACHE_SHARED", "").strip()
    if text.lower() not in _WORDS:
        raise RequestError(f"LLM_PROVIDER_CACHE_SHARED must be 1 or 0, not {text!r}")
    return _WORDS[text.lower()]


def problem_of(facts: os.stat_result, *, shared: bool) -> str | None:
    """Why a directory must not be used as a cache; None if it may be.

    Args:
        facts: Those of `lstat`.
        shared: Whether its group is trusted.
    """
    if stat.S_ISLNK(facts.st_mode):
        return "the directory is a symbolic link; name the directory that it points to"
    if not stat.S_ISDIR(facts.st_mode):
        return "it is not a directory"
    mode = stat.S_IMODE(facts.st_mode)
    if mode & 0o002:
        return "the directory can be written by other users, all of this machine: chmod o-w forbids it"
    if shared:
        return None
    if hasattr(os, "getuid") and facts.st_uid != os.getuid():
        return f"the directory belongs to another user; {_SWITCH}"
    if mode & 0o020:
        return f"the directory can be written by other users; chmod g-w forbids it, and {_SWITCH}"
    return None


def make(directory: Path) -> None:
    """Create the directory of a shared cache, if it is missing, and let its group write to it.

    Raises:
        OSError: it cannot be created.
    """
    if not directory.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
    facts = directory.stat()
    own = not hasattr(os, "getuid") or facts.st_uid == os.getuid()
    if own and not facts.st_mode & stat.S_IWGRP:
        directory.chmod(DIRECTORY)
        for answers in directory.glob("v[0-9]*"):
            give_to_group(answers)


def give_to_group(path: Path) -> None:
    """Let the group of a path write to it and to all below it, as far as it belongs to this user."""
    for place in [path, *path.rglob("*")]:
        with contextlib.suppress(PermissionError):
            place.chmod(DIRECTORY if place.is_dir() else FILE)


def personal(directory: Path) -> Path:
    """The directory of this user's own files in a shared cache. The directory around it is created."""
    users = directory / "users"
    with contextlib.suppress(OSError):  # the cache itself reports it
        make(directory)
        make(users)
    return users / str(os.getuid() if hasattr(os, "getuid") else 0)
