"""Leases: names that one process of a machine holds at a time. A dead process never keeps one.

A lease is a lock of the operating system on one byte of a file (`locks`). The byte's position is a hash of
the name, so names need no creation and no cleanup, and their number has no limit. Taking and releasing a
lease takes some microseconds in the calling thread.

| event | consequence |
|---|---|
| the holder is killed or crashes | the kernel releases the lease, and one waiting process takes it |
| the holder gives up | the same; a mark beside the byte says so to those who come later |
| the holder has finished | it writes another mark, and all waiting processes stop waiting |
| the holder is stopped (Ctrl-Z, a debugger) | its heartbeat ends, and one waiting process takes over |
| the holder forks | the child holds no lease, and does not keep the leases of a parent that dies |
| the disk is full | there are no marks, and waiting processes take the lease one after the other |
| there is no file or no lock | all leases are granted, without a message: processes do not share |

SQLite rows instead: taking and releasing would take 13 µs, but a transaction may wait for one of another
process. It would need its own thread, and waking a thread costs several times as much. Dead holders would
have to be detected by process number and start time; the kernel detects them for locks.

Other locks instead: `flock` locks whole files only, so each name would be a file that somebody has to delete.
Locks of open file descriptions survive in a forked child and have no portable call in Python. POSIX locks
have two drawbacks. A process does not exclude itself, so its leases are also recorded in memory. A process
loses all locks of a file when it closes *any* descriptor of the file, so each file is opened once for all
clients. (A program that copies the directory while it calls loses its leases and may pay twice for calls in
flight.)

The kernel keeps the locks of a file in a linear list: with 8,000 locks, taking and releasing one takes 180 µs
instead of 1. Therefore there are several files. (`benchmarks/leases.py` measures both.)
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import stat
import weakref
from pathlib import Path
from typing import NamedTuple, TypeAlias

from . import clock, files, locks
from .forks import run_around_forks

_FILES = 8
_SLOTS = 4096
"""Marks per file. Two names that share a mark overwrite it, which costs a further check or a pause."""
_TAG_BYTES = _TOKEN_BYTES = 8
_UNFINISHED = bytes(_TOKEN_BYTES)
_BEAT_OFFSET = _TAG_BYTES + _TOKEN_BYTES
_MARK_BYTES = _BEAT_OFFSET + _TOKEN_BYTES

_PAUSES = (0.01, 0.2)
"""Shortest and longest pause, in seconds, between two checks of a lease that another process holds."""
_PAUSE_SHARE = 1 / 5
"""The length of a pause as a share of the time waited so far."""

_RELEASING_SECONDS = 0.1
"""Longest time between the token of a release and its mark on disk."""

BEAT_SECONDS = 1.0
PATIENCE_SECONDS = 15.0
"""Seconds without a heartbeat after which a holder counts as stopped."""


_Address: TypeAlias = "tuple[int, int, int]"
"""The descriptor of a name's file, the position of the byte to lock, and the position of the mark."""


class Lease:
    """A name that this process holds until it releases it or ends."""

    __slots__ = ("_address", "_files", "_tag", "released_before")

    def __init__(self, opened: _Files | None, tag: bytes, address: _Address = (0, 0, 0)) -> None:
        self._files = opened
        self._tag = tag
        self._address = address
        self.released_before = 0.0
        """Monotonic seconds at which the last holder of any process released it, or of another name with the
        same mark; infinite if that holder left no time. It may have stored a result, also if it gave up. Who
        has looked for a result later need not look again."""

    def release(self, *, finished: bool = True) -> None:
        """Release the name, once. Unless it is `finished`, with a result, a waiting process takes it."""
        opened, self._files, tag = self._files, None, self._tag
        # In a forked child the lease is no longer among those held.
        if opened is None or opened.held.get(tag) is not self:
            return
        del opened.held[tag]
        descriptor, position, mark = self._address
        try:
            try:
                files.write_at(descriptor, tag + (_token() if finished else _UNFINISHED), mark)
            finally:
                locks.unlock_byte(descriptor, position)
        except OSError:
            return  # the kernel releases it when the process ends


class _Mark(NamedTuple):
    """The bytes that holders of a name have written to its slot. Tokens are the time of their writing."""

    tag: bytes = b""
    """The tag of the name that was last released in this slot."""
    released: bytes = b""
    """A token of the holder that finished. Zeros if it gave up, as a token would belong to another name."""
    beat: bytes = b""


class _Files:
    """The open files of one directory. A process has one such object per directory."""

    def __init__(self, directory: Path) -> None:
        self.held: dict[bytes, Lease] = {}
        self._descriptors: list[int] = []
        weakref.finalize(self, _close, self._descriptors).atexit = False
        for number in range(_FILES):
            self._descriptors.append(files.open_descriptor(directory / str(number), files.PRIVATE, 0o600))

    def address_of(self, tag: bytes) -> _Address:
        number = int.from_bytes(tag)
        # File positions are signed, so the hash is shifted. A locked byte need not exist.
        return self._descriptors[number % _FILES], number >> 2, number // _FILES % _SLOTS * _MARK_BYTES

    def take(self, tag: bytes) -> Lease | None:
        if tag in self.held:
            return None
        descriptor, position, mark = address = self.address_of(tag)
        if not locks.lock_byte(descriptor, position):
            return None
        lease = self.held[tag] = Lease(self, tag, address)
        try:
            stored = files.read_at(descriptor, _BEAT_OFFSET, mark)
        except OSError:
            return lease  # the next check finds out
        if any(stored[:_TAG_BYTES]):
            token = stored[_TAG_BYTES:]
            is_dated = len(token) == _TOKEN_BYTES and token != _UNFINISHED
            moment = int.from_bytes(token) / 1e9 if is_dated else float("inf")
            lease.released_before = moment + _RELEASING_SECONDS
        return lease

    def mark(self, tag: bytes) -> _Mark:
        descriptor, _, mark = self.address_of(tag)
        stored = files.read_at(descriptor, _MARK_BYTES, mark)
        return _Mark(stored[:_TAG_BYTES], stored[_TAG_BYTES:_BEAT_OFFSET], stored[_BEAT_OFFSET:])

    def beat(self) -> None:
        """Write a heartbeat for every lease of this process."""
        token = _token()
        for tag in self.held:
            descriptor, _, mark = self.address_of(tag)
            files.write_at(descriptor, token, mark + _BEAT_OFFSET)


class Leases:
    """The leases of one directory of this machine's disks, for the tasks of one event loop.

    Processes with the same directory exclude each other; with None, all are granted. `beat` are the seconds
    between heartbeats of a holder, and `patience` those after which it counts as stopped.
    """

    def __init__(
        self, directory: Path | None, *, beat: float = BEAT_SECONDS, patience: float = PATIENCE_SECONDS
    ) -> None:
        self._directory = directory
        self._beat = beat
        self._patience = patience
        self._files: _Files | None = None
        self._timer: asyncio.TimerHandle | None = None

    def take(self, name: str) -> Lease | None:
        """Take a name, in a task of the loop; None if a process, this one included, holds it."""
        return self._take(_tag(name))

    def _take(self, tag: bytes) -> Lease | None:
        if self._directory is None:
            return Lease(None, tag)
        try:
            if self._files is None:
                self._files = _files_in(self._directory)
            lease = self._files.take(tag)
        except OSError:
            self._directory = self._files = None
            return Lease(None, tag)
        if lease is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._beat, self._show_life)
        return lease

    async def wait(self, name: str) -> Lease | None:
        """Wait for a name, in no order: None once its holder has finished, the lease if it ended or hangs."""
        tag = _tag(name)
        seen = self._mark(tag)
        waited = silent = 0.0
        # The wait is the sum of the pauses. A clock would also count the time in which this process is
        # stopped.
        while True:
            pause = min(max(waited * _PAUSE_SHARE, _PAUSES[0]), _PAUSES[1])
            await asyncio.sleep(pause)
            waited += pause
            lease = self._take(tag)
            if lease is not None:
                return lease
            mark = self._mark(tag)
            if mark.tag == tag and mark.released not in (seen.released, _UNFINISHED):
                return None
            silent = silent + pause if mark.beat == seen.beat else 0.0
            seen = mark
            if silent > self._patience:
                # Compete for a second lease, named after the first, so that only one process takes over.
                tag = _tag(tag.hex())
                seen, silent = self._mark(tag), 0.0

    def _mark(self, tag: bytes) -> _Mark:
        with contextlib.suppress(OSError):  # the next check finds out
            if self._files is not None:
                return self._files.mark(tag)
        return _Mark()

    def _show_life(self) -> None:
        self._timer = None
        if self._files is not None and self._files.held:
            self._timer = asyncio.get_running_loop().call_later(self._beat, self._show_life)
            with contextlib.suppress(OSError):  # on a full disk, another process may repeat a long request
                self._files.beat()

    def close(self) -> None:
        """Close the files once the last lease is released. They are opened again when needed."""
        self._files = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_open_files: weakref.WeakValueDictionary[tuple[int, int], _Files] = weakref.WeakValueDictionary()
"""By device and inode of the directory, so that two paths of one directory do not open its files twice."""


def check_own_directory(directory: Path) -> tuple[int, int]:
    """The device and inode of a directory; `PermissionError` unless only this user can write to it."""
    status = directory.lstat()
    # Windows has no owners, and each mode reads there as if everybody could write.
    others_write = hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022)
    if others_write or not stat.S_ISDIR(status.st_mode):
        raise PermissionError(f"{directory} does not belong to this user alone; choose another directory")
    return status.st_dev, status.st_ino


def _files_in(directory: Path) -> _Files:
    # The cache directory may not exist yet, and several processes may create it at once.
    files.make_folder(directory.parent)
    files.make_folder(directory)
    identity = check_own_directory(directory)
    opened = _open_files.get(identity)
    if opened is None:
        locks.require_locks(directory)
        opened = _open_files[identity] = _Files(directory)
    return opened


def hold(directory: Path, name: str) -> Lease | None:
    """Take a name until this process ends, without an event loop and without heartbeats.

    Another process that gets None for the name knows that this one is alive. The directory must not be one
    that a `Leases` uses. Unlike `Leases.take`, this function does not grant the name where locks are
    unavailable: there it raises an `OSError`, as where the directory cannot be used.
    """
    return _files_in(directory).take(_tag(name))


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _tag(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=_TAG_BYTES).digest()


def _token() -> bytes:
    return clock.monotonic_ns().to_bytes(_TOKEN_BYTES)


def _forget_parent() -> None:
    # The locks belong to the parent. The files stay open: closing them would release the child's own locks
    # too.
    for opened in list(_open_files.values()):
        opened.held = {}


run_around_forks(after_in_child=_forget_parent)
