"""The locks of Windows on Linux: a module `msvcrt` as Microsoft's documentation has it.

A lock belongs to a descriptor, as a lock of the kernel on an open file description does. Whoever reads or
writes a locked byte would fail there, so the stub refuses a lock within the data of a file.
"""

import errno
import fcntl
import os
import struct
import subprocess  # noqa: F401  # it takes every system with a module `msvcrt` for Windows
import sys
import types

_SET_LOCK = 37  # F_OFD_SETLK of Linux


def install_windows_locks() -> None:
    """Let `llm_provider._core.runtime.locks`, which is not imported yet, believe that this is Windows."""
    stub = types.ModuleType("msvcrt")
    stub.LK_UNLCK, stub.LK_LOCK, stub.LK_NBLCK = 0, 1, 2  # type: ignore[attr-defined]
    stub.locking = _lock  # type: ignore[attr-defined]
    sys.modules["msvcrt"] = stub
    # The library under it asks for the platform too, and has imported what it needs.
    import llm_provider._core.runtime.files

    assert "llm_provider._core.runtime.locks" not in sys.modules
    platform, sys.platform = sys.platform, "win32"
    try:
        import llm_provider._core.runtime.locks
    finally:
        sys.platform = platform
    assert llm_provider._core.runtime.locks.msvcrt is stub


def _lock(descriptor: int, mode: int, length: int) -> None:
    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    if position < os.fstat(descriptor).st_size:
        raise AssertionError("a locked byte lies within the data, where Windows lets readers fail")
    kind = fcntl.F_UNLCK if mode == 0 else fcntl.F_WRLCK
    # Of struct flock: kind, whence, start, length, process.
    wanted = struct.pack("hhqqi4x", kind, os.SEEK_SET, position, length, 0)
    try:
        fcntl.fcntl(descriptor, _SET_LOCK, wanted)
    except OSError as error:
        if error.errno == errno.EAGAIN:  # the C library says it so
            raise PermissionError(errno.EACCES, "Permission denied") from None
        raise
