"""Locks of bytes of files: one process holds such a byte at a time. The kernel releases them at its end.

| | Linux, macOS: `fcntl` | Windows: `msvcrt` |
|---|---|---|
| a process that only reads or writes the byte | goes on | fails |
| so the locked byte lies | anywhere | beyond all data, from 4 TiB on |
| the same process locks the byte again | it gets it | it does not get it |
| another descriptor of the file is closed | all locks of the process are lost | nothing |
| a folder | is locked itself | a byte of the file `.locks` beside it is locked |

Microsoft's C library takes positions of 64 bits, and locks bytes that do not exist.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from . import clock, files, randomness

_BEYOND = 1 << 42
"""4 TiB. The hash of a name keeps 42 bits, so that the sum is a position that every file system takes."""
_TAKEN = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
"""What both systems say of a byte that another process holds."""
_PAUSE_SECONDS = 0.05

if sys.platform == "win32":
    import msvcrt

    def _change(descriptor: int, mode: int, position: int) -> None:
        # The C library locks at the position of the file. `files.read_at` and `files.write_at` set it anew.
        with files.position_lock:
            os.lseek(descriptor, _BEYOND + position % _BEYOND, os.SEEK_SET)
            msvcrt.locking(descriptor, mode, 1)

    def _take(descriptor: int, position: int) -> None:
        _change(descriptor, msvcrt.LK_NBLCK, position)

    def unlock_byte(descriptor: int, position: int) -> None:
        """Release a byte that this process holds."""
        _change(descriptor, msvcrt.LK_UNLCK, position)

    def lock_file(descriptor: int) -> bool:
        """Hold a file that grows until its descriptor is closed; False if another process holds it."""
        return lock_byte(descriptor, 0)

    def _lock_folder(directory: Path, wait: bool, stack: contextlib.ExitStack) -> None:
        descriptor = files.open_descriptor(directory.parent / ".locks", files.PRIVATE, 0o600)
        stack.callback(os.close, descriptor)
        digest = hashlib.blake2b(directory.name.encode(), digest_size=8).digest()
        while not lock_byte(descriptor, int.from_bytes(digest, "big") >> 2):
            if not wait:
                raise BlockingIOError(errno.EAGAIN, "another process holds it", str(directory))
            clock.sleep(_PAUSE_SECONDS)

else:
    import fcntl

    def _take(descriptor: int, position: int) -> None:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, position)

    def unlock_byte(descriptor: int, position: int) -> None:
        """Release a byte that this process holds."""
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, position)

    def lock_file(descriptor: int) -> bool:
        """Hold a file that grows until its descriptor is closed; False if another process holds it."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _lock_folder(directory: Path, wait: bool, stack: contextlib.ExitStack) -> None:
        descriptor = files.open_descriptor(directory, os.O_RDONLY)
        stack.callback(os.close, descriptor)
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def lock_byte(descriptor: int, position: int) -> bool:
    """Hold a byte of a file. Returns whether no other process holds it. `position` is below 2⁶².

    Raises:
        OSError: the file system has no locks.
    """
    try:
        _take(descriptor, position)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True


@contextlib.contextmanager
def hold_folder(directory: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock on a directory, at the latest until the process ends; `BlockingIOError` without `wait`.

    Whoever replaces a damaged database holds the lock on its folder.
    """
    with contextlib.ExitStack() as stack:
        try:
            _lock_folder(directory, wait, stack)
        except BlockingIOError:
            raise
        except OSError:
            pass  # a file system without locks
        yield


def require_locks(directory: Path) -> None:
    """Raise an `OSError` if no byte of a file can be locked there. SQLite would wait for such a lock.

    Nobody else knows the file, so the system's error does not mean that another process holds a lock. Raises
    `FileNotFoundError` for a missing directory. One where no file can be made passes.
    """
    path = directory / f".locks-{os.getpid()}-{randomness.make_token(4)}"
    try:
        descriptor = files.open_descriptor(path, files.PRIVATE | os.O_EXCL, 0o600)
    except FileNotFoundError:
        raise
    except OSError:
        return
    try:
        _take(descriptor, 0)
    except OSError as error:
        raise OSError(
            errno.ENOLCK, f"the file system has no locks ({error.strerror})", str(directory)
        ) from None
    finally:
        os.close(descriptor)
        files.remove_file(path)
