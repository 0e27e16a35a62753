"""Paths that users give, data that is read, and every change of a file that must survive a crash.

SQLite's files are the exception. A simulation can replace the functions of `os` here, `create_file`,
`write_at` and `remove_file`, to fail them or to tear what they write. So they are looked up when they are
called, as in `files.write()`.
"""

import contextlib
import errno
import functools
import io
import json
import os
import select
import shutil
import stat
import sys
import threading
from collections.abc import Iterator, Mapping
from os import fsync, ftruncate, rename, replace, write
from os import open as open_descriptor
from pathlib import Path
from typing import IO, Any, TypeAlias

import orjson

from ..errors import RequestError, cite
from . import clock

__all__ = [
    "LONGEST_LINE", "PRIVATE", "TEMPORARY", "Identity", "LineFile", "append_line", "check_path",
    "create_file", "encode_line", "file_remedy", "fsync", "ftruncate", "full_disk", "identity_of",
    "is_replaceable", "limit_data", "lines_of", "make_folder", "open_data", "open_descriptor",
    "position_lock", "read_at", "read_lines", "read_text", "remove_file", "rename", "replace_file",
    "sync_folder", "write", "write_at",
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


LONGEST_LINE = 2**28
"""Bytes. The longest answer that a client reads by default has a quarter of it."""
_MOST_OF_TEXT = 2**26
"""Characters of a file that is read as a whole, such as a list of hosts or of prices."""
_MOST_OF_PIPE = 2**32
"""Bytes from a pipe, or anything else whose size is not known before."""
_WRITER_SECONDS = 10.0
"""For which a named pipe may have no writer."""


def open_data(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a file, a pipe or a terminal for reading; `RequestError` for what may have no end or no writer."""
    flags = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, os.O_RDONLY | flags)
    try:
        return _open_by_kind(descriptor, path)
    except BaseException:
        os.close(descriptor)
        raise


def _open_by_kind(descriptor: int, path: str | os.PathLike[str]) -> IO[bytes]:
    status, begin = os.fstat(descriptor), b""
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFREG:
        return open(path, "rb", opener=lambda *_: descriptor)
    if kind == stat.S_IFDIR:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    if kind == stat.S_IFIFO:
        begin = _wait_for_writer(descriptor, path)
    elif not os.isatty(descriptor) and not os.path.samestat(status, Path(os.devnull).stat()):
        raise RequestError(f"{path} is a device, which may have no end: name a file or a pipe")
    if sys.platform != "win32":
        os.set_blocking(descriptor, True)
    return limit_data(io.FileIO(descriptor), path, begin)


def _wait_for_writer(descriptor: int, path: str | os.PathLike[str]) -> bytes:
    """Wait until a named pipe has had a writer. What was read meanwhile is returned."""
    if sys.platform == "win32" or not Path(path).resolve().exists():
        # The pipe of a shell, as in <(...), has had one.
        return b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    until = clock.monotonic() + _WRITER_SECONDS
    while not poll.poll(100):
        try:
            begin = os.read(descriptor, 1)
        except BlockingIOError:
            # It has a writer, who has not written yet.
            return b""
        if begin:
            return begin
        if clock.monotonic() > until:
            raise RequestError(f"{path} is a pipe, and nobody has begun to write into it")
    return b""


def limit_data(source: IO[bytes] | io.FileIO, name: object, begin: bytes = b"") -> IO[bytes]:
    """Data that begins with some bytes and goes on with a source, up to a number of bytes."""
    return io.BufferedReader(_Limited(source, name, begin))


class _Limited(io.RawIOBase):
    def __init__(self, source: Any, name: object, begin: bytes) -> None:
        self._read, self._close, self._name = getattr(source, "read1", source.read), source.close, name
        self._begin, self._left = begin, _MOST_OF_PIPE

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data, self._begin = self._begin or self._read(len(buffer)), b""
        self._left -= len(data)
        if self._left < 0:
            raise RequestError(
                f"{self._name} has more than {_MOST_OF_PIPE:,} bytes: write them into a file first"
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._close()
        super().close()


def lines_of(file: IO[bytes], name: object) -> Iterator[bytes]:
    """The lines of a file; `RequestError` if one is longer than any that is written."""
    for line in iter(functools.partial(file.readline, LONGEST_LINE), b""):
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            raise RequestError(f"{name} has a line of more than {LONGEST_LINE:,} bytes")
        yield line


def read_lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """The lines of a file of data, which is open meanwhile."""
    with open_data(path) as file:
        yield from lines_of(file, path)


def read_text(path: str | os.PathLike[str], errors: str = "strict") -> str:
    """The whole of a file in UTF-8, without its byte order mark; `RequestError` if it is too large."""
    with io.TextIOWrapper(open_data(path), encoding="utf-8-sig", errors=errors) as file:
        text = file.read(_MOST_OF_TEXT + 1)
    if len(text) > _MOST_OF_TEXT:
        raise RequestError(f"{path} has more than {_MOST_OF_TEXT:,} characters")
    return text


def create_file(path: Path, mode: int = 0o666) -> IO[bytes]:
    """Open an empty file for writing, and for reading what was written."""
    return open(path, "w+b", opener=functools.partial(open_descriptor, mode=mode))  # with a mode


Identity: TypeAlias = tuple[int, int]
"""The device and the inode of a file, which stay with the file when it is renamed."""


def identity_of(path: str | Path) -> Identity | None:
    """The identity of the file that has a name now; None if there is no such file."""
    try:
        status = os.stat(path)  # noqa: PTH116 -- a third of the time of Path.stat
    except OSError:
        return None
    return status.st_dev, status.st_ino


class LineFile:
    """A file to which any number of processes append lines, each by one `write`, so that lines do not mix.

    A killed process or a full disk leaves the beginning of a line. It is ended first, so it alone is lost.
    """

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path = path
        self._flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | (os.O_CREAT if create else 0)
        self._descriptor: int | None = None
        self._identity: Identity | None = None
        self._is_cut = False

    def open(self) -> int:
        """Open the file, which is made if `create` says so. `append` does it too."""
        self._descriptor = descriptor = open_descriptor(self.path, self._flags, 0o666)
        status = os.fstat(descriptor)
        self._identity = status.st_dev, status.st_ino
        if status.st_size:
            os.lseek(descriptor, status.st_size - 1, os.SEEK_SET)
        self._is_cut = bool(status.st_size) and os.read(descriptor, 1) != b"\n"
        return descriptor

    def append(self, line: bytes, *, sync: bool = False) -> None:
        """Write a line, on disk if `sync` when this returns; an `OSError` says that it is not whole."""
        descriptor = self._descriptor
        if descriptor is None or identity_of(self.path) != self._identity:
            # A rotation has renamed the file, or a user has deleted it.
            self.close()
            descriptor = self.open()
        data = b"\n" + line if self._is_cut else line
        self._is_cut = True
        self._is_cut = write(descriptor, data) != len(data)
        if sync:
            fsync(descriptor)
        if self._is_cut:
            raise OSError(errno.ENOSPC, "it took only a part of a line")

    def close(self) -> None:
        """Close the file. A later line opens it again."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def append_line(path: Path, line: bytes, *, create: bool = True) -> None:
    """Append a line, which is on disk when this returns; an `OSError` says that it is not whole."""
    with contextlib.closing(LineFile(path, create=create)) as file:
        file.append(line, sync=True)


def encode_line(fields: Mapping[str, object]) -> bytes:
    """A line of JSON, with its line break. `json_pieces.loads` reads it exactly."""
    try:
        return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # a number of more than 64 bits, or a lone surrogate
        return f"{json.dumps(fields)}\n".encode()


PRIVATE = (
    os.O_RDWR
    | os.O_CREAT
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
)
"""How a file for this process's own descriptor is opened, on each system."""

position_lock = threading.Lock()
"""Held while a thread uses the position of a file, on Windows."""


if sys.platform == "win32":

    def write_at(descriptor: int, data: bytes, position: int) -> int:
        """Write to a position of a file."""
        with position_lock:
            os.lseek(descriptor, position, os.SEEK_SET)
            return os.write(descriptor, data)

    def read_at(descriptor: int, length: int, position: int) -> bytes:
        """Read from a position of a file."""
        with position_lock:
            os.lseek(descriptor, position, os.SEEK_SET)
            return os.read(descriptor, length)

else:
    from os import pread as read_at
    from os import pwrite as write_at


def remove_file(path: Path) -> None:
    """Delete a file, if it is there."""
    path.unlink(missing_ok=True)


TEMPORARY = ".tmp"
"""The end of the name of a file that `replace_file` writes. A process that is killed leaves it behind."""


@contextlib.contextmanager
def replace_file(path: Path, new_mode: int = 0o600, safe: str = "") -> Iterator[IO[bytes]]:
    """Open a file that replaces another one, on disk, when the block ends well. Else the other stays.

    A new file belongs to its owner alone, unless `new_mode` and the umask allow more; a mode is kept.
    A link is followed. A pipe or a device gets what was written once the block ends well. The error of a full
    disk says what is `safe`, if the caller does.
    """
    try:
        with _replace(path, new_mode) as file:
            yield file
    except OSError as error:
        raise (full_disk(error, path, safe) if safe else None) or error from None


@contextlib.contextmanager
def _replace(path: Path, new_mode: int) -> Iterator[IO[bytes]]:
    if not is_replaceable(path):
        import tempfile

        with path.open("wb") as goal, tempfile.TemporaryFile() as file:
            yield file
            file.seek(0)
            shutil.copyfileobj(file, goal)
        return
    path = path.resolve()
    if not path.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {path.parent} for {path.name}", str(path))
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


def is_replaceable(path: Path) -> bool:
    """Whether another file may take the place of what is there: nothing, or a file."""
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return True


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk, so that a power cut undoes no renaming."""
    with contextlib.suppress(OSError):  # not every file system can
        descriptor = open_descriptor(folder, os.O_RDONLY)
        try:
            fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder that only this user can read, and its parents, unless others have made them."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
