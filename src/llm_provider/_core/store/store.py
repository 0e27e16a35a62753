"""The files of the cache: eight databases below one directory, created, read, written and repaired.

    <directory>/v2/000 … 007/cache.db     the layout of diskcache's FanoutCache(shards=8)
    <directory>/v2-network/000/cache.db   on a network file system: one shard, no write-ahead log
    <directory>/new-*                     databases that are being created; renamed when they are complete
    <directory>/damaged-003-*             a damaged shard, kept for inspection

Databases are created under another name and then renamed, so that no process ever sees an incomplete one.

Everybody who can write to a cache can change the answers that all its users get. So a directory that others
can write to is refused, unless `cache_shared=True` says that its group is trusted. The leases, the learned
limits and the batches of each user stay in a directory of that user inside a shared one.
"""

from __future__ import annotations

import contextlib
import heapq
import os
import re
import shutil
import sqlite3
import stat
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from ..runtime import clock, files
from ..runtime.databases import is_busy, is_corrupt, make_lock
from ..runtime.files import Identity, identity_of
from ..runtime.locks import hold_folder, require_locks
from .entry import (
    CHECK,
    COUNT,
    DATABASE,
    ITEMS_AFTER,
    NEWEST,
    SCHEMA_VERSION,
    Reader,
    ReplacedFileError,
    Row,
    Writer,
    rescue,
)

T = TypeVar("T", Row, tuple[str])

PATIENCE = 5.0
"""Seconds that a batch of writes waits for the locks of other processes, all shards together."""

_IMPATIENCE = 0.02
"""Seconds to wait for a shard that stayed locked the last time."""

_ROOT = f"v{SCHEMA_VERSION}"
_NETWORK_ROOT = f"{_ROOT}-network"
_SHARDS = 8
_NETWORK_SHARDS = 1
_LEFT_BEHIND_SECONDS = 1.0
"""Age of an unlocked `new-*` folder after which its creator is dead."""

_MOUNTS = Path("/proc/self/mounts")
_NETWORK = re.compile(
    r"9p|afs|beegfs|ceph|cifs|cvmfs|fuse\.(ceph|glusterfs|rclone|s3fs|sshfs)|glusterfs|gpfs|lustre|ncpfs|nfs4?"
    r"|panfs|smb3|smbfs|wekafs"
)


DIRECTORY, FILE = 0o2770, 0o660
"""The modes of what a shared cache creates. New files belong to the group of their directory."""

_SWITCH = (
    "Client(cache_shared=True) or LLM_PROVIDER_CACHE_SHARED=1 uses a cache of your group, whose members can "
    "then change the answers that you get"
)


class CacheRefusedError(PermissionError):
    """The directory must not be used as a cache."""


class Store:
    """Values by key, as bytes, on disk. Safe to share between threads and processes.

    Reading raises `OSError` or `sqlite3.Error` if the files cannot be read. A missing cache is empty, and the
    first write creates it. `warn` gets messages for the user. `mounts` is the system's table of file systems.
    """

    def __init__(
        self, directory: Path, warn: Callable[[str], None], mounts: Path = _MOUNTS, *, shared: bool = False
    ) -> None:
        self._directory = directory
        self._shared = shared
        self._warn = warn
        self._mounts = mounts
        self._reading, self._writing = make_lock(), make_lock()
        self._readers: list[Reader] = []
        self._writers: list[Writer] = []
        self._stuck: set[int] = set()
        self._doubts_locks = True
        """Whether the next use asks the file system for a lock: before the first, and after one in vain."""
        self._no_locks: tuple[float, OSError] | None = None
        """When the file system had no locks, and its error."""

    def read(self, key: str) -> bytes | None:
        """The value of a key; None if it has none."""
        if self._doubts_locks:
            self._require_locks()
        readers = self._readers or self._open_for_reading()
        if not readers:
            return None
        reader = readers[_hash(key) % len(readers)]
        try:
            with self._reading:
                return reader.read(key)
        except sqlite3.DatabaseError as error:
            self._repair(reader, error)
        with self._reading:
            return reader.read(key)  # the repair may have rescued it

    def read_many(self, keys: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        """The values of the keys that have one, in one statement per shard. Stops after `most_bytes`."""
        readers = self._readers or self._open_for_reading()
        shards: dict[int, list[str]] = {}
        for key in keys if readers else ():
            shards.setdefault(_hash(key) % len(readers), []).append(key)
        values: dict[str, bytes] = {}
        for index, part in shards.items():
            with self._reading:
                some = readers[index].read_many(part, most_bytes)
            values |= some
            most_bytes -= sum(map(len, some.values()))
            if most_bytes < 0:
                break
        return values

    def _repair(self, reader: Reader, error: sqlite3.DatabaseError) -> None:
        """Replace a database that is damaged; raise any other error."""
        self._doubts_locks = self._doubts_locks or is_busy(error)
        if not is_corrupt(error):
            raise error
        with self._reading:
            reader.close()
        self._replace_damaged(reader.folder, reader.identity)

    def items(self) -> Iterator[tuple[str, bytes]]:
        """All keys and values, sorted by key. Those written meanwhile may be missing."""
        readers = self._readers or self._open_for_reading()
        return heapq.merge(*map(self._items_of, readers))

    def _items_of(self, reader: Reader) -> Iterator[tuple[str, bytes]]:
        last: str | None = ""
        while last is not None:
            try:
                with self._reading:
                    items = reader.fetch(ITEMS_AFTER, last)
            except sqlite3.DatabaseError as error:
                self._repair(reader, error)
                continue
            yield from items
            last = items[-1][0] if items else None

    def newest(self, tag: str, count: int) -> Iterator[list[tuple[str, bytes]]]:
        """Keys and values of the entries with a tag, in groups of about `count`, newest first."""
        readers = self._readers or self._open_for_reading()
        ends = dict.fromkeys(readers, 2**63 - 1)
        while ends:
            rows: list[tuple[float, str, bytes]] = []
            for reader, end in list(ends.items()):
                with self._reading:
                    # Keys are digests, so the newest entries are spread evenly over the shards.
                    newest = reader.fetch(NEWEST, tag, end, -(-count // len(readers)))
                rows += (row[1:] for row in newest)
                if newest:
                    ends[reader] = newest[-1][0]
                else:
                    del ends[reader]
            if rows:
                yield [(key, value) for _, key, value in sorted(rows, reverse=True)]

    def count(self) -> int:
        readers = self._readers or self._open_for_reading()
        with self._reading:
            return int(sum(number for reader in readers for (number,) in reader.fetch(COUNT)))

    def bytes_on_disk(self) -> int:
        """The size of the databases and their write-ahead logs."""
        return sum(reader.bytes_on_disk() for reader in self._readers or self._open_for_reading())

    def check(self) -> list[str]:
        """The problems that SQLite finds in the databases."""
        problems = []
        for reader in self._readers or self._open_for_reading():
            try:
                with self._reading:
                    texts = [text for (text,) in reader.fetch(CHECK) if text != "ok"]
            except sqlite3.Error as error:
                texts = [str(error)]
            problems += [f"{reader.folder}: {text}" for text in texts]
        return problems

    def list_damaged(self) -> list[Path]:
        """The folders of damaged databases that were replaced."""
        return sorted(self._directory.glob("damaged-*"))

    def _open_for_reading(self) -> list[Reader]:
        with self._reading:
            # Another thread may have opened them while this one waited for the lock.
            root = None if self._readers else _find_root(self._directory, shared=self._shared)
            if root is not None:
                self._readers = [Reader(folder) for folder in _folders(root)]
            return self._readers

    def write(self, rows: Sequence[Row], patience: float = PATIENCE) -> dict[str, Exception]:
        """Store values, a transaction for each shard. Returns the keys that are not stored, with errors."""
        return self._change_shards(Writer.write, rows, patience)

    def insert(self, rows: Sequence[Row]) -> int:
        """`write`, which raises the first failure. Returns the number of answers."""
        for error in self.write(rows).values():
            raise error
        return len({key for key, _, _ in rows})

    def delete(self, keys: Sequence[str]) -> None:
        for error in self._change_shards(Writer.delete, [(key,) for key in keys], PATIENCE).values():
            raise error

    def _change_shards(
        self, change: Callable[[Writer, list[T], float], None], rows: Sequence[T], patience: float
    ) -> dict[str, Exception]:
        failures: dict[str, Exception] = {}
        with self._writing:
            if self._doubts_locks:
                self._require_locks()
            writers = self._writers or self._open_for_writing()
            deadline = clock.monotonic() + patience
            shards: dict[int, list[T]] = {}
            for row in rows:
                shards.setdefault(_hash(row[0]) % len(writers), []).append(row)
            for index, part in shards.items():
                # A shard that stays locked delays one batch of writes, and further ones hardly.
                # In tenths of a second: a new one costs the writer a statement that SQLite parses.
                left = 0.0 if index in self._stuck else int(10 * (deadline - clock.monotonic())) / 10
                try:
                    self._change_shard(writers[index], change, part, max(left, _IMPATIENCE))
                    self._stuck.discard(index)
                except (OSError, sqlite3.Error) as error:
                    failures.update((row[0], error) for row in part)
                    if is_busy(error):
                        self._stuck.add(index)
                        self._doubts_locks = True
        return failures

    def _change_shard(
        self, writer: Writer, change: Callable[[Writer, list[T], float], None], items: list[T], left: float
    ) -> None:
        try:
            return change(writer, items, left)
        except ReplacedFileError:
            writer.close()
            self._restore(writer.folder)
        except sqlite3.DatabaseError as error:
            if not is_corrupt(error):
                raise
            writer.close()
            self._replace_damaged(writer.folder, writer.identity)
        return change(writer, items, left)

    def _require_locks(self) -> None:
        """Raise an `OSError` if the file system has no locks. It is asked again after some seconds."""
        if self._no_locks is not None and clock.monotonic() < self._no_locks[0] + PATIENCE:
            raise self._no_locks[1].with_traceback(None)
        try:
            require_locks(self._directory)
        except FileNotFoundError:
            return
        except OSError as error:
            self._no_locks = clock.monotonic(), error
            raise
        self._doubts_locks, self._no_locks = False, None

    def _open_for_writing(self) -> list[Writer]:
        root = _find_root(self._directory, shared=self._shared)
        try:
            if self._shared:
                make_shared(self._directory)
            elif root is None:
                files.make_folder(self._directory)
        except OSError as error:
            raise CacheRefusedError(str(error)) from None
        if self._doubts_locks:
            self._require_locks()
        if root is None:
            root = self._create()
        _sweep(self._directory)
        # A cache that was created on a local disk may have been moved.
        journal = "delete" if is_network(self._directory, self._mounts) else "wal"
        self._writers = [Writer(folder, journal) for folder in _folders(root)]
        return self._writers

    def _create(self) -> Path:
        network = is_network(self._directory, self._mounts)
        if network:
            self._warn(
                f"the cache in {self._directory} is on a network file system, where it is slow and its locks "
                "may not work; LLM_PROVIDER_CACHE_DIR can name a directory on a local disk"
            )
        others = {path.name for path in self._directory.glob("v[0-9]*")} - {_ROOT, _NETWORK_ROOT}
        if others:
            self._warn(
                f"{self._directory} holds answers of another version ({', '.join(sorted(others))}); they are "
                "left alone, and not used"
            )
        root = self._directory / (_NETWORK_ROOT if network else _ROOT)
        self._build(root, _folders(root))
        return root

    def _restore(self, folder: Path) -> None:
        """Create again the folders that were deleted while they were in use."""
        root = folder.parent
        if not root.is_dir():
            files.make_folder(root.parent)
            self._build(root, _folders(root))
        elif not folder.is_dir():
            self._build(folder, [folder])
        elif not (folder / DATABASE).exists():
            # The old write-ahead log may still be there, and would damage a new database.
            self._replace_damaged(folder, None)

    def _replace_damaged(self, folder: Path, identity: Identity | None) -> None:
        """Replace a damaged database by a new one with the rows that can still be read."""
        now = time.strftime("%Y%m%d%H%M%S", time.localtime(clock.time()))
        aside = self._directory / f"damaged-{folder.name}-{now}-{os.getpid()}"
        with self._writing, hold_folder(folder.parent):
            if identity_of(folder / DATABASE) != identity:
                return  # another process has replaced it already
            files.rename(folder, aside)
            self._build(folder, [folder])
            rescued = 0
            journal = "wal" if folder.parent.name == _ROOT else "delete"
            with contextlib.closing(Writer(folder, journal)) as new:
                for rows in rescue(aside):
                    new.write(rows, PATIENCE)
                    rescued += len(rows)
        self._warn(
            f"a database of the cache was damaged: {rescued} of its answers were rescued, and the damaged "
            f"files were moved to {aside}"
        )

    def _build(self, target: Path, folders: list[Path]) -> None:
        """Create `target` with a new database in each of `folders`, which are it or are inside it."""
        from ..runtime import randomness  # a hit does not load these
        from .row_format import new_database

        build = self._directory / f"new-{os.getpid()}-{randomness.make_token(4)}"
        build.mkdir(mode=0o700)
        with hold_folder(build):  # `_sweep` leaves it alone
            try:
                created = build / target.name
                created.mkdir(mode=0o700)
                journal = "delete" if _NETWORK_ROOT in target.parts else "wal"
                database = new_database(build / "empty", journal)
                for folder in folders:
                    new = build / folder.relative_to(target.parent)
                    new.mkdir(exist_ok=True)
                    (new / DATABASE).write_bytes(database)
                if self._shared:
                    give_to_group(build)
                files.rename(created, target)
                files.sync_folder(target.parent)
            except OSError:
                if not target.is_dir():
                    raise
                # Another process was faster.
            finally:
                shutil.rmtree(build, ignore_errors=True)

    def close(self) -> None:
        """Close the files. The next use opens them again."""
        with self._writing, self._reading:
            for file in (*self._writers, *self._readers):
                file.close()


def _find_root(directory: Path, *, shared: bool) -> Path | None:
    """The folder of the databases, None if there is none; `CacheRefusedError` if others could change it."""
    try:
        status = directory.lstat()
    except FileNotFoundError:
        return None
    problem = find_problem(status, shared=shared)
    if problem is not None:
        raise CacheRefusedError(problem)
    return next((directory / name for name in (_ROOT, _NETWORK_ROOT) if (directory / name).is_dir()), None)


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


def _folders(root: Path) -> list[Path]:
    shards = _NETWORK_SHARDS if root.name == _NETWORK_ROOT else _SHARDS
    return [root / f"{number:03d}" for number in range(shards)]


def _hash(key: str) -> int:
    # FanoutCache assigns keys to shards by this hash.
    return zlib.adler32(key.encode())


def is_network(directory: Path, mounts: Path = _MOUNTS) -> bool:
    """Whether a directory is on a network file system; False where the system does not tell."""
    try:
        lines = [line.split() for line in mounts.read_text(errors="replace").splitlines()]
    except OSError:
        return False
    resolved = f"{directory.resolve()}/"
    # A space in a mount point is written \040. The last of equal mount points hides the others.
    above = [
        (len(name), number, kind)
        for number, (_, name, kind, *_) in enumerate(lines)
        if resolved.startswith(name.replace("\\040", " ").rstrip("/") + "/")
    ]
    return bool(above) and _NETWORK.fullmatch(max(above)[2]) is not None


def _sweep(directory: Path) -> None:
    """Remove the folders of processes that were killed while they created a cache."""
    for left in directory.glob("new-*"):
        with contextlib.suppress(OSError), hold_folder(left, wait=False):
            if clock.time() - left.stat().st_mtime > _LEFT_BEHIND_SECONDS:
                shutil.rmtree(left)
