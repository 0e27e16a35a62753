"""Answers in a Valkey or Redis server, by the package `valkey`, which is imported at first use.

Commands: MGET, MSET, SCAN, DBSIZE, INFO, and SET and EVAL for leases. Keys begin with the name and the
version of the format, so several versions, and other programs, may share a database.

The package `valkey` is pure Python, has 1.3 MB and no dependencies, and speaks to Redis too. `redis` has
twice that size, and `valkey-glide` has 48 MB of compiled code with its dependencies.
"""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from ..._core.store.entry import SCHEMA_VERSION

PREFIX = f"llm_provider:{SCHEMA_VERSION}:"

CONNECT_SECONDS = 1.0
ANSWER_SECONDS = 2.0
"""Longest waits for the server, unless the URL says others: `?socket_connect_timeout=3&socket_timeout=5`."""

_OWN = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call"
_RENEW = f"{_OWN}('PEXPIRE', KEYS[1], ARGV[2]) end return 0"
_RELEASE = f"{_OWN}('DEL', KEYS[1]) end return 0"

_MOST_KEYS = 128
_MOST_BYTES = 8_000_000
"""The most bytes of one MSET: a server that is far away must take them within `ANSWER_SECONDS`."""


class ValkeyStore:
    """A `SecondLevelStore` in a Valkey or Redis server. Its methods may be called from any thread.

    Args:
        url: `valkey://[[user]:password@]host:port/database`, `valkeys://` for TLS, `redis://` and
            `rediss://`, or `unix:///path/to/socket?db=0`. Parameters of `valkey.Valkey.from_url` may follow.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connecting = threading.Lock()
        self._connected: Any = None

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        # Connections stay in this process.
        return type(self), (self._url,)

    @property
    def _server(self) -> Any:
        with self._connecting:
            if self._connected is None:
                import valkey
                from valkey.backoff import NoBackoff
                from valkey.retry import Retry

                self._connected = valkey.Valkey.from_url(
                    self._url,
                    socket_connect_timeout=CONNECT_SECONDS,
                    socket_timeout=ANSWER_SECONDS,
                    socket_keepalive=True,
                    # An idle connection may have been cut. A silent server is not asked twice.
                    retry=Retry(NoBackoff(), 1, (valkey.ConnectionError,)),
                )
            return self._connected

    def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        values = self._server.mget([PREFIX + key for key in keys]) if keys else []
        return {key: value for key, value in zip(keys, values, strict=True) if value is not None}

    def put_many(self, values: Mapping[str, bytes]) -> None:
        batch: dict[str, bytes] = {}
        size = 0
        for key, value in values.items():
            if batch and size + len(value) > _MOST_BYTES:
                self._server.mset(batch)
                batch, size = {}, 0
            batch[PREFIX + key] = value
            size += len(value)
        if batch:
            self._server.mset(batch)

    def stats(self) -> dict[str, int]:
        """The number of keys of the database, and the bytes of the whole server."""
        memory = self._server.info("memory")
        return {"entries": self._server.dbsize(), "bytes": int(memory.get("used_memory", 0))}

    def export(self) -> Iterator[tuple[str, bytes]]:
        """Every key with its value. Those written meanwhile may be missing."""
        keys: list[str] = []
        for name in self._server.scan_iter(match=f"{PREFIX}{'[0-9a-f]' * 4}*", count=1000):
            keys.append(name.decode().removeprefix(PREFIX))
            if len(keys) == _MOST_KEYS:
                yield from self.get_many(keys).items()
                keys = []
        yield from self.get_many(keys).items()

    def take_lease(self, name: str, owner: str, seconds: float) -> bool:
        """Take or renew a lease, which ends by itself. Returns whether the owner has it now."""
        key, milliseconds = f"{PREFIX}lease:{name}", int(1000 * seconds)
        if self._server.set(key, owner, nx=True, px=milliseconds):
            return True
        return bool(self._server.eval(_RENEW, 1, key, owner, milliseconds))

    def release_lease(self, name: str, owner: str) -> None:
        """End a lease that the owner has."""
        self._server.eval(_RELEASE, 1, f"{PREFIX}lease:{name}", owner)

    def close(self) -> None:
        """Close the connections. The next use opens others."""
        with self._connecting:
            server, self._connected = self._connected, None
        if server is not None:
            server.close()
