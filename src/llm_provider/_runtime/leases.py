"""Leases: names that one process of a machine at a time may hold, and that no dead process keeps.

A lease is one byte of a file, locked through `fcntl`. The byte's position is a hash of the name, so there is
nothing to create or clean up, and no limit to the names. Taking and releasing one costs some microseconds, in
the thread that asks.

| what happens | what follows |
|---|---|
| the holder is killed, or crashes | the kernel has released the lease: one of those who wait takes it |
| the holder gives up | the same |
| the holder has finished | it says so in a mark beside the byte: all who wait stop waiting |
| the holder is stopped (Ctrl-Z, a debugger) | its heartbeat ends: one of those who wait becomes its heir |
| the holder forks | the child holds nothing, and keeps nothing of a parent that dies |
| the disk fills up | no marks: those who wait find the name free, one after the other |
| no file, no locks, Windows | silently, every process is by itself: all leases are granted |

Why not rows in SQLite: 13 µs for taking and releasing are no obstacle, but a transaction may wait for that of
another process, so it needs a thread of its own, and waking that costs several times as much. Dead holders
would have to be found by process number and time of start; the kernel knows them.

Why POSIX locks: `flock` knows only whole files, so each name would be a file that somebody has to delete.
Locks of open file descriptions live on in a forked child and have no portable call in Python. Against that, a
process never excludes itself by a POSIX lock, so what it holds is also noted here. And it loses all locks of
a file when it closes *any* descriptor of it, so each file is opened once, however many clients use it. (A
program that copies the directory while it calls loses its leases: it may pay twice for what was under way.)

The kernel keeps the locks of a file in a linear list: with 8,000 in it, taking and releasing one costs 180 µs
instead of 1. So there are several files. (`benchmarks/leases.py` measures both.)
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import os
import stat
import time
import weakref
from pathlib import Path
from typing import TypeAlias

_FILES = 8
_SLOTS = 4096
"""Marks per file. Where two names share one they overwrite each other's, which costs a look or a pause."""
_TAG_BYTES = _TOKEN_BYTES = 8
_BEAT_OFFSET = _TAG_BYTES + _TOKEN_BYTES
_MARK_BYTES = _BEAT_OFFSET + _TOKEN_BYTES

_PAUSES = (0.01, 0.2)
"""Shortest and longest, in seconds, between two looks at a lease that another process holds."""
_PAUSE_SHARE = 1 / 5
"""Of the time waited so far: what a pause adds to the wait at most."""

BEAT_SECONDS = 1.0
PATIENCE_SECONDS = 15.0
"""A holder whose loop has not run for so long is taken for stopped."""


_Place: TypeAlias = "tuple[int, int, int]"
"""Of a name: the file's descriptor, the position of the byte to lock, and that of the mark."""


class Lease:
    """A name that this process holds until it releases it or ends."""

    __slots__ = ("_files", "_place", "_tag", "released_before")

    def __init__(
        self, files: _Files | None, tag: bytes, place: _Place = (0, 0, 0), *, released_before: bool = False
    ) -> None:
        self._files = files
        self._tag = tag
        self._place = place
        self.released_before = released_before
        """Whether an earlier holder has finished, perhaps a moment ago."""

    def release(self, *, finished: bool = True) -> None:
        """Let others have the name; a second time it does nothing.

        Args:
            finished: Whether there is a result for those who wait. If not, one of them takes over.
        """
        files, self._files = self._files, None
        # After a fork the child's copy is no longer among those held.
        if files is not None and files.held.get(self._tag) is self:
            del files.held[self._tag]
            with contextlib.suppress(OSError):  # the lease ends with the process then
                files.release(self._tag, self._place, finished)


class _Mark:
    """What the holders of a name have left in its slot. Tokens have no order, they only differ."""

    __slots__ = ("beat", "released", "tag")

    def __init__(self, stored: bytes) -> None:
        self.tag = stored[:_TAG_BYTES]
        """The name that was last released in this slot."""
        self.released = stored[_TAG_BYTES:_BEAT_OFFSET]
        self.beat = stored[_BEAT_OFFSET:]


class _Files:
    """The open files of one directory; there is one such object for it in a process."""

    def __init__(self, directory: Path) -> None:
        from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, lockf

        self._lockf, self._take, self._unlock = lockf, LOCK_EX | LOCK_NB, LOCK_UN
        self.held: dict[bytes, Lease] = {}
        self._descriptors: list[int] = []
        weakref.finalize(self, _close, self._descriptors).atexit = False
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        for number in range(_FILES):
            self._descriptors.append(os.open(directory / str(number), flags, 0o600))

    def place(self, tag: bytes) -> _Place:
        number = int.from_bytes(tag, "big")
        slot = number // _FILES % _SLOTS
        # Positions are signed; a locked byte need not exist.
        return self._descriptors[number % _FILES], number >> 2, slot * _MARK_BYTES

    def take(self, tag: bytes) -> Lease | None:
        if tag in self.held:
            return None
        descriptor, position, mark = place = self.place(tag)
        try:
            self._lockf(descriptor, self._take, 1, position)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return None
            raise
        lease = self.held[tag] = Lease(self, tag, place)
        with contextlib.suppress(OSError):  # the next look finds out
            lease.released_before = os.pread(descriptor, _TAG_BYTES, mark) == tag
        return lease

    def release(self, tag: bytes, place: _Place, finished: bool) -> None:
        descriptor, position, mark = place
        try:
            if finished:
                os.pwrite(descriptor, tag + _token(), mark)
        finally:
            self._lockf(descriptor, self._unlock, 1, position)

    def mark(self, tag: bytes) -> _Mark:
        descriptor, _, mark = self.place(tag)
        return _Mark(os.pread(descriptor, _MARK_BYTES, mark))

    def beat(self) -> None:
        """Show that the holder of every held lease is alive."""
        token = _token()
        for tag in self.held:
            descriptor, _, mark = self.place(tag)
            os.pwrite(descriptor, token, mark + _BEAT_OFFSET)


class Leases:
    """The leases of one directory, for the tasks of one event loop.

    Args:
        directory: The user's own, on a disk of this machine, and made if it is missing; processes that give
            the same one exclude each other. None: every lease is granted.
        beat: Seconds between two signs of life of a holder.
        patience: Seconds without one after which a holder is taken for stopped.

    >>> import tempfile
    >>> async def example(directory):
    ...     one, other = Leases(directory), Leases(directory)
    ...     lease = one.take("breakfast")
    ...     print(other.take("breakfast"))
    ...     lease.release()
    ...     print(other.take("breakfast").released_before)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     asyncio.run(example(Path(directory)))
    None
    True
    """

    def __init__(
        self,
        directory: Path | None,
        *,
        beat: float = BEAT_SECONDS,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._directory = directory
        self._beat = beat
        self._patience = patience
        self._files: _Files | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def exclusive(self) -> bool:
        """Whether a lease has one holder at a time; False once it has shown that there are no locks."""
        return self._directory is not None

    def take(self, name: str) -> Lease | None:
        """Take a name, in a task of the loop; None if another process, or another lease here, holds it."""
        return self._take(_tag(name))

    def _take(self, tag: bytes) -> Lease | None:
        if self._directory is None:
            return Lease(None, tag)
        try:
            if self._files is None:
                self._files = _files_in(self._directory)
            lease = self._files.take(tag)
        except (OSError, ImportError):
            self._directory = self._files = None
            return Lease(None, tag)
        if lease is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._beat, self._show_life)
        return lease

    async def wait(self, name: str) -> Lease | None:
        """Wait for the holder of a name that `take` did not give; those who wait have no order.

        Returns:
            None once the holder has finished. The lease, if it was killed, gave up or is stopped.
        """
        tag = _tag(name)
        seen = self._mark(tag)
        waited = silent = 0.0
        # Time is counted in pauses, not read from a clock: where this process is stopped too, nobody is late.
        while True:
            pause = min(max(waited * _PAUSE_SHARE, _PAUSES[0]), _PAUSES[1])
            await asyncio.sleep(pause)
            waited += pause
            lease = self._take(tag)
            if lease is not None:
                return lease
            mark = self._mark(tag)
            if mark.released != seen.released and mark.tag == tag:
                return None
            silent = silent + pause if mark.beat == seen.beat else 0.0
            seen = mark
            if silent > self._patience:
                # The same again with a lease upon the lease, so that there is one heir only.
                tag = _tag(tag.hex())
                seen, silent = self._mark(tag), 0.0

    def _mark(self, tag: bytes) -> _Mark:
        with contextlib.suppress(OSError):  # the next look finds out
            if self._files is not None:
                return self._files.mark(tag)
        return _Mark(b"")

    def _show_life(self) -> None:
        self._timer = None
        if self._files is not None and self._files.held:
            self._timer = asyncio.get_running_loop().call_later(self._beat, self._show_life)
            with contextlib.suppress(OSError):  # on a full disk a long request may be sent twice
                self._files.beat()

    def close(self) -> None:
        """Close the files, once the last lease is released; they are opened again when used."""
        self._files = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_open_files: weakref.WeakValueDictionary[tuple[int, int], _Files] = weakref.WeakValueDictionary()
"""By device and number of the directory, so that no way to name it opens its files twice."""


def _files_in(directory: Path) -> _Files:
    # Before the first answer is stored there is no cache directory, and copies of a program start together.
    directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    facts = directory.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or stat.S_IMODE(facts.st_mode) & 0o022:
        raise PermissionError("the directory is not the user's own")
    identity = facts.st_dev, facts.st_ino
    files = _open_files.get(identity)
    if files is None:
        files = _open_files[identity] = _Files(directory)
    return files


def hold(directory: Path, name: str) -> Lease | None:
    """Take a name for as long as this process lives, without an event loop that shows its life.

    For what must not be granted where it cannot be had, as `Leases.take` does.

    Args:
        directory: As for `Leases`; not one that is given to any.
        name: What another process asks for to learn whether this one is alive.

    Returns:
        None if a living process, this one included, holds the name.

    Raises:
        OSError: the directory cannot be used, or is not the user's own.
        ImportError: the platform has no such locks.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     alive = hold(Path(directory), "process 1")
    ...     print(hold(Path(directory), "process 1"))
    None
    """
    return _files_in(directory).take(_tag(name))


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _tag(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=_TAG_BYTES).digest()


def _token() -> bytes:
    return time.monotonic_ns().to_bytes(_TOKEN_BYTES, "big")


def _forget_parent() -> None:
    # The locks are the parent's. The files stay open: to close them would end the child's own locks as well.
    for files in list(_open_files.values()):
        files.held = {}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
