"""The second level of a cache as the user names it: a URL, or an object with five methods."""

import importlib.util
import inspect
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol, Self, runtime_checkable
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from ..._core.errors import MissingDependencyError, RequestError
from ..._core.runtime.imports import install_command
from ..._core.store.entry import SCHEMA_VERSION
from ..._core.words import read_switch

SCHEMES = ("valkey", "valkeys", "redis", "rediss", "unix")
_METHODS = ("get_many", "put_many", "stats", "export", "close")
_MODES = ("use", "refresh", "only", "off")
_WAIT, _LEASES = "wait_for_writes", "leases"
_LEASE_METHODS = ("take_lease", "release_lease")


@runtime_checkable
class SecondLevelStore(Protocol):
    """A store of answers that machines share, such as a database or an object store: five methods.

    A key has 64 characters from 0 to 9 and a to f. A value is bytes, which the store returns unchanged; each
    value contains its checksum, so a damaged value counts as missing. One thread calls `get_many`, another
    one calls `put_many`, and the user's thread calls the others. A method that raises is called again later;
    meanwhile calls go on with the local store.
    """

    def get_many(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """The values of those keys that have one. Up to 128 keys at a time, to be read in one round trip."""

    def put_many(self, values: Mapping[str, bytes]) -> object:
        """Store values by key, and replace those that are stored. They are stored when it returns."""

    def stats(self) -> Mapping[str, object]:
        """Figures about the store, such as its number of `entries` and its `bytes`."""

    def export(self) -> Iterable[tuple[str, bytes]]:
        """Every key with its value, in any order, for `Client.cache.pull()`."""

    def close(self) -> object:
        """Close files and connections. The client that uses the store is closed."""


class LeasingStore(Protocol):
    """What `SecondLevel(leases=True)` needs besides: `store.take_lease` and `store.release_lease`."""

    def take_lease(self, name: str, owner: str, seconds: float) -> object: ...

    def release_lease(self, name: str, owner: str) -> object: ...


@dataclass(frozen=True)
class SecondLevel:
    """A second level of the cache, with its settings, for `Client(cache=...)`.

    Args:
        store: A URL such as "valkey://host:6379/0", or an object with the five methods of `SecondLevelStore`.
        wait_for_writes: Whether an answer is in the second level, too, before the call returns it. Otherwise
            it is only in the local store by then, and is sent to the second level in the background. The
            URL's parameter `?wait_for_writes=true` says the same.
        leases: Whether equal calls of several machines share one request: a call waits while another machine
            sends the same one. Each call that is sent then needs one more round trip. An object also needs
            the methods `take_lease(name, owner, seconds)`, which returns whether the owner has the lease
            now, and `release_lease(name, owner)`. The URL's parameter `?leases=true` says the same.
        mode: "use", "refresh", "only" or "off", for calls without `cache`.

    Raises:
        RequestError: the URL or the object cannot be a second level, or a setting is wrong.
        MissingDependencyError: the URL needs the package `valkey`.
    """

    store: str | SecondLevelStore = field(repr=False)
    wait_for_writes: bool = False
    leases: bool = False
    mode: str = "use"

    def __post_init__(self) -> None:
        for name in (_WAIT, _LEASES):
            if not isinstance(getattr(self, name), bool):
                raise RequestError(f"{name} must be True or False, not {getattr(self, name)!r}")
        if self.mode not in _MODES:
            raise RequestError(f"mode must be one of {', '.join(_MODES)}, not {self.mode!r}")
        if isinstance(self.store, str):
            for name, value in _parse_url(self.store).items():
                object.__setattr__(self, name, value)
        else:
            _check_methods(self.store, (*_METHODS, *(_LEASE_METHODS if self.leases else ())))

    @property
    def name(self) -> str:
        """The store without its password, for messages."""
        if not isinstance(self.store, str):
            return type(self.store).__name__
        parts = urlsplit(self.store)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def __repr__(self) -> str:
        settings = f"wait_for_writes={self.wait_for_writes}, leases={self.leases}, mode={self.mode!r}"
        return f"SecondLevel({self.name!r}, {settings})"

    def open_store(self) -> SecondLevelStore:
        """The store itself. A URL gets a new one, which connects at first use."""
        if not isinstance(self.store, str):
            return self.store
        return ValkeyStore(self.store)


def _check_methods(store: object, names: Sequence[str]) -> None:
    modes, methods = ", ".join(_MODES), ", ".join(names)
    if isinstance(store, type):
        raise RequestError(
            f"cache must be an object, not the class {store.__name__}: make one, {store.__name__}(...)"
        )
    missing = [name for name in names if not callable(getattr(store, name, None))]
    if missing:
        raise RequestError(
            f"cache must be one of {modes}, True or False, a URL such as 'valkey://host:6379/0', or an "
            f"object with the methods {methods}, not "
            f"{type(store).__name__}, which has no {' and no '.join(missing)}"
        )
    for name in names:
        if inspect.iscoroutinefunction(getattr(store, name)):
            raise RequestError(
                f"cache: {type(store).__name__}.{name} is a coroutine function; the methods of a second "
                "level run in threads of their own, and must be plain functions"
            )


def _parse_url(url: str) -> dict[str, str | bool]:
    """`store`, the URL without our own parameters, and their values. No message shows a password."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise RequestError(f"cache: the URL of the second level is not valid: {error}") from None
    if parts.scheme not in SCHEMES:
        raise RequestError(
            "cache: the URL of a second level begins with valkey://, valkeys://, redis://, rediss:// or "
            f"unix://, not {parts.scheme + '://' if parts.scheme else 'no scheme'}"
        )
    database = "" if parts.scheme == "unix" else parts.path.strip("/")
    if parts.scheme == "unix" and parts.path in ("", "/"):
        raise RequestError("cache: a unix:// URL names a socket, such as unix:///run/valkey.sock?db=0")
    if parts.scheme != "unix" and not parts.hostname:
        raise RequestError(f"cache: the URL names no host: {parts.scheme}://host:6379/0")
    if parts.scheme != "unix" and port == 0:
        raise RequestError("cache: the port of the URL must be from 1 to 65535, not 0")
    if database and not (database.isascii() and database.isdigit()):
        raise RequestError(f"cache: the path of the URL is the number of a database, not {database!r}")
    query: list[tuple[str, str]] = []
    settings: dict[str, str | bool] = {}
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in (_WAIT, _LEASES):
            query.append((name, value))
        elif (is_on := read_switch(value)) is not None:
            settings[name] = is_on
        else:
            raise RequestError(f"cache: {name} in the URL must be true or false, not {value!r}")
    if importlib.util.find_spec("valkey") is None:
        raise MissingDependencyError(
            f"a cache of {parts.scheme}:// needs the package valkey: {install_command('valkey')}"
        )
    return {"store": urlunsplit(parts._replace(query=urlencode(query))), **settings}


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
        batches, size = [dict[str, bytes]()], 0
        for key, value in values.items():
            if batches[-1] and size + len(value) > _MOST_BYTES:
                batches.append({})
                size = 0
            batches[-1][PREFIX + key] = value
            size += len(value)
        for batch in filter(None, batches):
            self._server.mset(batch)

    def stats(self) -> dict[str, int]:
        """The number of keys of the database, and the bytes of the whole server."""
        memory = self._server.info("memory")
        return {"entries": self._server.dbsize(), "bytes": int(memory.get("used_memory", 0))}

    def export(self) -> Iterator[tuple[str, bytes]]:
        """Every key with its value. Those written meanwhile may be missing."""
        names = self._server.scan_iter(match=f"{PREFIX}{'[0-9a-f]' * 4}*", count=1000)
        keys = (name.decode().removeprefix(PREFIX) for name in names)
        while some := list(islice(keys, _MOST_KEYS)):
            yield from self.get_many(some).items()

    def take_lease(self, name: str, owner: str, seconds: float) -> bool:
        """Take or renew a lease, which ends by itself. Returns whether the owner has it now."""
        key, milliseconds = f"{PREFIX}lease:{name}", int(1000 * seconds)
        if self._server.set(key, owner, nx=True, px=milliseconds):
            return True
        return bool(self._server.eval(_RENEW, 1, key, owner, milliseconds))

    def release_lease(self, name: str, owner: str) -> None:
        self._server.eval(_RELEASE, 1, f"{PREFIX}lease:{name}", owner)

    def close(self) -> None:
        """Close the connections. The next use opens others."""
        with self._connecting:
            server, self._connected = self._connected, None
        if server is not None:
            server.close()
