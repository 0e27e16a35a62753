"""Paths that users give, and every change of a file that must survive a crash, but for those of SQLite.

A simulation can replace the functions of `os` here, `create_file`, `write_at` and `remove_file`, to fail them
or to tear what they write. So they are looked up when they are called, as in `files.write()`.
"""

import contextlib
import errno
import functools
import os
import shutil
import sys
from collections.abc import Iterator
from os import fsync, ftruncate, rename, replace, write
from os import open as open_descriptor
from pathlib import Path
from typing import IO

from .._errors import RequestError, cite

__all__ = [
    "TEMPORARY", "check_path", "create_file", "file_remedy", "fsync", "ftruncate", "full_disk",
    "open_descriptor", "open_lines", "read_at", "remove_file", "rename", "replace_file", "sync_folder",
    "write", "write_at",
]  # fmt: skip

_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_FULL_OF_SQLITE = ("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")


def check_path(name: str, value: object) -> str | os.PathLike[str]:
    """Return a path as the user gave it; `RequestError` if it is neither a text nor a path, or empty."""
    if isinstance(value, (str, os.PathLike)) and os.fspath(value):
        return value
    if isinstance(value, str):
        raise RequestError(f"{name} must be a path, not '': leave {name} out for its default")
    raise RequestError(
        f"{name} must be a path as a str or a pathlib.Path, such as 'folder/name', not {cite(value)}"
    )


def file_remedy(path: Path) -> str:
    """What to do about a file that cannot be opened for writing, for the end of a message."""
    if path.is_dir():
        return "; it is a folder: name a file in it"
    if not path.parent.is_dir():
        return f"; make the folder {str(path.parent)!r} first"
    return ""


def full_disk(error: Exception, path: str | os.PathLike[str], safe: str) -> OSError | None:
    """The error that names a full disk, what is safe, and the remedy; None if an error has another cause.

    >>> print(full_disk(OSError(28, "No space left on device"), "a.jsonl", "earlier lines are safe"))
    the disk of a.jsonl is full (No space left on device): earlier lines are safe; free space on this disk
    """
    number = getattr(error, "errno", None)
    if number not in _FULL and getattr(error, "sqlite_errorname", None) not in _FULL_OF_SQLITE:
        return None
    reason = getattr(error, "strerror", None) or error
    full = OSError(f"the disk of {path} is full ({reason}): {safe}; free space on this disk")
    full.errno = number or errno.ENOSPC
    return full


def create_file(path: Path, mode: int = 0o666) -> IO[bytes]:
    """Open an empty file for writing."""
    return open(path, "wb", opener=functools.partial(open_descriptor, mode=mode))  # with a mode


def open_lines(path: Path, flags: int = 0) -> tuple[int, bool]:
    """Open a file for appending lines. Returns its descriptor, and whether its last line is cut."""
    flags |= os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0)
    descriptor = open_descriptor(path, flags, 0o666)
    size = os.fstat(descriptor).st_size
    if not size:
        return descriptor, False
    os.lseek(descriptor, size - 1, os.SEEK_SET)
    return descriptor, os.read(descriptor, 1) != b"\n"


def write_at(descriptor: int, data: bytes, position: int) -> None:
    """Write to a position of a file; not on Windows."""
    if sys.platform != "win32":
        os.pwrite(descriptor, data, position)


def read_at(descriptor: int, length: int, position: int) -> bytes:
    """Read from a position of a file; nothing on Windows."""
    if sys.platform == "win32":
        return b""
    return os.pread(descriptor, length, position)


def remove_file(path: Path) -> None:
    """Delete a file, if it is there."""
    path.unlink(missing_ok=True)


TEMPORARY = ".tmp"
"""The end of the name of a file that `replace_file` writes. A process that is killed leaves it behind."""


@contextlib.contextmanager
def replace_file(path: Path, new_mode: int = 0o600) -> Iterator[IO[bytes]]:
    """Open a file that replaces another one, on disk, when the block ends well. Else the other stays.

    A new file belongs to its owner alone, unless `new_mode` and the umask allow more; a mode is kept.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        with create_file(beside, new_mode) as file:
            yield file
            file.flush()
            fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(path, beside)
        replace(beside, path)  # noqa: PTH105  # a simulation can replace it
        sync_folder(path.parent)
    finally:
        remove_file(beside)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk, so that a power cut undoes no renaming."""
    with contextlib.suppress(OSError):  # not every file system can
        descriptor = open_descriptor(folder, os.O_RDONLY)
        try:
            fsync(descriptor)
        finally:
            os.close(descriptor)
