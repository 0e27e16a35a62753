"""A second level as users may write it: the five methods over one sqlite file, which tests can break."""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path


class SqliteStore:
    """Answers in one table. `gets` and `puts` are the numbers of keys, and each call raises `fails`.

    A `get_many` takes `pause` seconds longer.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.gets: list[int] = []
        self.puts: list[int] = []
        self.fails: Exception | None = None
        self.pause = 0.0
        self.closed = 0
        self.leases: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()
        with self._open() as database:
            database.execute("CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, value BLOB)")

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(self.path)) as database, database:
            yield database

    def get_many(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        self._check()
        self.gets.append(len(keys))
        time.sleep(self.pause)
        marks = ",".join("?" * len(keys))
        with self._lock, self._open() as database:
            return dict(database.execute(f"SELECT key, value FROM answers WHERE key IN ({marks})", keys))

    def put_many(self, values: Mapping[str, bytes]) -> None:
        self._check()
        self.puts.append(len(values))
        with self._lock, self._open() as database:
            database.executemany("REPLACE INTO answers VALUES (?, ?)", values.items())

    def stats(self) -> Mapping[str, int]:
        self._check()
        with self._lock, self._open() as database:
            return {"entries": database.execute("SELECT COUNT(*) FROM answers").fetchone()[0]}

    def export(self) -> Iterable[tuple[str, bytes]]:
        self._check()
        with self._lock, self._open() as database:
            return list(database.execute("SELECT key, value FROM answers"))

    def close(self) -> None:
        self.closed += 1

    def take_lease(self, name: str, owner: str, seconds: float) -> bool:
        self._check()
        with self._lock:
            holder, until = self.leases.get(name, (owner, 0.0))
            if holder != owner and time.monotonic() < until:
                return False
            self.leases[name] = (owner, time.monotonic() + seconds)
            return True

    def release_lease(self, name: str, owner: str) -> None:
        self._check()
        with self._lock:
            if self.leases.get(name, ("", 0.0))[0] == owner:
                del self.leases[name]

    def _check(self) -> None:
        if self.fails is not None:
            raise self.fails
