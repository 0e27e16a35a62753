"""Who may write to the directory of a cache: its user alone, or on demand the group of the directory.

Everybody who can write to a cache can change the answers that all its users get. So a directory that others
can write to is refused, unless `cache_shared=True` says that its group is trusted. The leases, the learned
limits and the batches of each user stay in a directory of that user inside a shared one.
"""

import contextlib
import os
import stat
from pathlib import Path

DIRECTORY, FILE = 0o2770, 0o660
"""The modes of what a shared cache creates. New files belong to the group of their directory."""

_SWITCH = (
    "Client(cache_shared=True) or LLM_PROVIDER_CACHE_SHARED=1 uses a cache of your group, whose members can "
    "then change the answers that you get"
)


def find_problem(status: os.stat_result, *, shared: bool) -> str | None:
    """Why a directory, by its `lstat`, must not be used as a cache; `shared` if its group is trusted."""
    if stat.S_ISLNK(status.st_mode):
        return "the directory is a symbolic link; name the directory that it points to"
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a directory"
    if not hasattr(os, "getuid"):  # Windows, where each mode reads as if everybody could write
        return None
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o002:
        return "the directory can be written by other users, all of this machine: chmod o-w forbids it"
    if shared:
        return None
    if not _is_own(status):
        return f"the directory belongs to another user; {_SWITCH}"
    if mode & 0o020:
        return f"the directory can be written by other users; chmod g-w forbids it, and {_SWITCH}"
    return None


def make_shared(directory: Path) -> None:
    """Create the directory of a shared cache, if it is missing, and let its group write to it."""
    if not directory.is_dir():
        directory.mkdir(parents=True, exist_ok=True)
    status = directory.stat()
    if _is_own(status) and not status.st_mode & stat.S_IWGRP:
        directory.chmod(DIRECTORY)
        for answers in directory.glob("v[0-9]*"):
            give_to_group(answers)


def give_to_group(path: Path) -> None:
    """Let the group of a path write to it and to all below it, as far as it belongs to this user."""
    for each in [path, *path.rglob("*")]:
        with contextlib.suppress(PermissionError):
            each.chmod(DIRECTORY if each.is_dir() else FILE)


def make_own_directory(directory: Path) -> Path:
    """The directory of this user's own files in a shared cache. The directory around it is created."""
    users = directory / "users"
    with contextlib.suppress(OSError):  # the cache itself reports it
        make_shared(directory)
        make_shared(users)
    return users / str(os.getuid() if hasattr(os, "getuid") else 0)


def _is_own(status: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or status.st_uid == os.getuid()
