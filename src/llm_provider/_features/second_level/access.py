"""Reads and writes of a second level, in threads of its own, and what happens while it is not there.

One thread reads: the lookups of all calls that arrive while it is busy are one `get_many`. Another one
writes. A store that fails is left alone, so only the first call after its failure waits for it. The writer's
thread tries again after 1 to 30 seconds; then it sends the answers that were stored meanwhile.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple, cast

from ..._core.runtime import cassette, randomness
from ..._core.runtime.threads import Timer
from ..._core.store.worker import BatchQueue, Worker, start_timer
from .settings import LeasingStore, SecondLevel, SecondLevelStore

MOST_KEYS = 128
"""Keys of one round trip."""
_LINGER = 0.005
"""Seconds that the answers of concurrent calls wait to be sent together."""
_LONGEST_READ = 5.0
"""Seconds that a caller waits for a store that has no timeouts of its own."""
_MOST_PENDING = 200_000
_MOST_PENDING_BYTES = 64_000_000
_RETRY_AFTER = 1.0
_LONGEST_RETRY = 30.0
_PROBE = ("0" * 64,)
LEASE_SECONDS = 30.0
"""A lease of a machine that was switched off ends after so long. Others are renewed three times as often."""


@dataclass(frozen=True, slots=True)
class SecondLevelStatistics:
    """The use of a second level in this process.

    Args:
        hits: Answers that were found there and not in the local store.
        writes: Answers that were sent to it.
        pending: Answers that are not there yet.
        available: Whether its last read and its last write succeeded.
        store: The figures that the store gives, such as `entries` and `bytes`; empty if it gives none.
    """

    hits: int
    writes: int
    pending: int
    available: bool
    store: Mapping[str, object] = field(default_factory=dict)


class Write(NamedTuple):
    """An answer for the second level."""

    key: str
    value: bytes
    local: bool
    """Whether the local store has it, so that it need not stay in memory."""


class SecondLevelAccess:
    """The second level of one cache, whose local store `read_local` reads."""

    def __init__(
        self, level: SecondLevel, read_local: Callable[[str], bytes | None], warn: Callable[[str], None]
    ) -> None:
        self.level = level
        self.hits = self.writes = 0
        self._read_local = read_local
        self._warn = warn
        self._warned = False
        self._opening = threading.Lock()
        self._opened: SecondLevelStore | None = None
        self._reader = Worker("llm_provider-second-level-reader")
        self._writer = Worker("llm_provider-second-level")
        self._reads: BatchQueue[Sequence[str], dict[str, bytes]] = BatchQueue(self._reader, self._get_all)
        self._writes: BatchQueue[Write, None] = BatchQueue(self._writer, self._put_all, _LINGER)
        self._changing = threading.Lock()
        self._pending: dict[str, bytes | None] = {}
        """Values to send; None for those that the local store has."""
        self._pending_bytes = 0
        self._lost = 0
        self._read_fails = self._write_fails = False
        self._retry_after = _RETRY_AFTER
        self._retrying: Timer | None = None
        self._owner = randomness.make_token(16)
        self._leases: set[str] = set()
        """Names of the leases that this client has."""
        self._renewing: Timer | None = None

    @property
    def store(self) -> SecondLevelStore:
        """The store, made at first use."""
        with self._opening:
            if self._opened is None:
                self._opened = self.level.open_store()
            return self._opened

    def read(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The values of those keys that have one, for a thread that may wait."""
        if self._read_fails or not keys or cassette.replayed is not None:
            return {}
        try:
            return self._reads.submit(keys).result(_LONGEST_READ)
        except TimeoutError:
            self._report_failure(TimeoutError(f"no answer within {_LONGEST_READ:g} s"), reading=True)
            return {}

    @contextlib.contextmanager
    def _leaving_alone(self, *, reading: bool) -> Iterator[None]:
        """Leave the store alone for a while if it fails: it may raise anything, and must not fail a call."""
        try:
            yield
        except Exception as error:
            self._report_failure(error, reading=reading)

    def _get_all(self, lookups: list[Sequence[str]]) -> list[dict[str, bytes]]:
        keys = list(dict.fromkeys(chain.from_iterable(lookups)))
        values: dict[str, bytes] = {}
        for start in range(0, len(keys), MOST_KEYS):
            if self._read_fails:
                break
            with self._leaving_alone(reading=True):
                values |= self.get(keys[start : start + MOST_KEYS])
        return [{key: values[key] for key in each if key in values} for each in lookups]

    def get(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The values of up to `MOST_KEYS` keys, read in this thread. It raises what the store raises."""
        answer = self.store.get_many(keys)
        if not isinstance(answer, Mapping):
            raise TypeError(f"get_many returned {type(answer).__name__}, not a mapping of keys to bytes")
        values = {key: answer[key] for key in keys if answer.get(key) is not None}
        for value in values.values():
            if not isinstance(value, bytes):
                raise TypeError(f"get_many returned a value of {type(value).__name__}, not of bytes")
        return values

    def get_now(self, keys: Sequence[str]) -> dict[str, bytes]:
        """`get` in the reader's thread, also while the store counts as failed."""
        return self._reader.submit(lambda: self.get(keys)).result()

    def put_now(self, values: Mapping[str, bytes]) -> None:
        """Send values in the writer's thread. It raises what the store raises."""
        self._writer.submit(lambda: self._put(values)).result()

    def write(self, writes: Sequence[Write]) -> None:
        """Send answers: at once if calls wait for that, else in the background."""
        futures = [self._writes.submit(each) for each in writes]
        if self.level.wait_for_writes:
            for future in futures:
                future.result()

    def _put_all(self, writes: list[Write]) -> list[None]:
        # A server that does not answer one thread makes the other one wait, too.
        if not (self._write_fails or self._read_fails):
            with self._leaving_alone(reading=False):
                self._put({each.key: each.value for each in writes})
                return [None] * len(writes)
        self._keep(writes)
        return [None] * len(writes)

    def _put(self, values: Mapping[str, bytes]) -> None:
        self.store.put_many(values)
        self.writes += len(values)

    def _keep(self, writes: Sequence[Write]) -> None:
        with self._changing:
            for key, value, local in writes:
                self._pending_bytes -= len(self._pending.pop(key, None) or b"")
                self._pending[key] = None if local else value
                self._pending_bytes += 0 if local else len(value)
            while len(self._pending) > _MOST_PENDING or self._pending_bytes > _MOST_PENDING_BYTES:
                self._pending_bytes -= len(self._pending.pop(next(iter(self._pending))) or b"")
                self._lost += 1
        self._try_later()

    def _report_failure(self, error: Exception, *, reading: bool) -> None:
        """Leave the store alone for a while, and warn of its first failure."""
        self._read_fails |= reading
        self._write_fails |= not reading
        self._try_later()
        if not self._warned:
            self._warned = True
            self._warn(
                f"cannot {'read' if reading else 'write'} the second level of the cache, {self.level.name}; "
                "calls go on with the local store, and their answers are sent to it when it works again: "
                f"{type(error).__name__}: {error}"
            )

    def _try_later(self) -> None:
        with self._changing:
            if self._retrying is None:
                self._retrying = start_timer(self._retry_after, self._writer, self._try_again)
                self._retry_after = min(2 * self._retry_after, _LONGEST_RETRY)

    def _try_again(self) -> None:
        """Ask the store whether it works, and send what is pending; in the writer's thread."""
        self._retrying = None
        try:
            if self._read_fails:
                self._reader.submit(lambda: self.get(_PROBE)).result(_LONGEST_READ)
                self._read_fails = False
            self._send_pending()
            self._write_fails = False
            self._retry_after = _RETRY_AFTER
        except Exception:  # as in `_leaving_alone`; the warning was shown before
            self._try_later()

    def _send_pending(self) -> None:
        while self._pending:
            with self._changing:
                some = dict(list(self._pending.items())[:MOST_KEYS])
            values = {key: self._read_local(key) if value is None else value for key, value in some.items()}
            # A value that the local store has lost meanwhile cannot be sent.
            self._put({key: value for key, value in values.items() if value is not None})
            with self._changing:
                for key, value in some.items():
                    if key in self._pending and self._pending[key] is value:
                        del self._pending[key]
                        self._pending_bytes -= len(value or b"")

    def take_lease(self, name: str) -> Future[bool]:
        """Take a lease, in the reader's thread. Without a working store every lease is granted."""
        return self._reader.submit(lambda: self._take(name))

    def _take(self, name: str, *, again: bool = False) -> bool:
        if self._read_fails:
            return True
        try:
            granted = bool(cast("LeasingStore", self.store).take_lease(name, self._owner, LEASE_SECONDS))
        except Exception as error:  # as in `_leaving_alone`
            self._report_failure(error, reading=True)
            return True
        with self._changing:
            # The writer's thread may have released it while this one renewed it.
            released = granted and again and name not in self._leases
            if granted and not released:
                self._leases.add(name)
                if self._renewing is None:
                    self._renewing = start_timer(LEASE_SECONDS / 3, self._reader, self._renew)
        if released:
            self._end_lease(name)
        return granted

    def release_lease(self, name: str) -> None:
        """Release a lease once the answers that were handed over before are in the store."""

        def release() -> None:
            self._writes.drain()
            with self._changing:
                held = name in self._leases
                self._leases.discard(name)
            if held:
                self._end_lease(name)

        self._writer.submit(release)

    def _end_lease(self, name: str) -> None:
        if not (self._write_fails or self._read_fails):
            with self._leaving_alone(reading=False):
                cast("LeasingStore", self.store).release_lease(name, self._owner)

    def _renew(self) -> None:
        with self._changing:
            names = list(self._leases)
            renewing = start_timer(LEASE_SECONDS / 3, self._reader, self._renew) if names else None
            self._renewing = renewing
        for name in names:
            self._take(name, again=True)

    def statistics(self) -> SecondLevelStatistics:
        figures: Mapping[str, object] = {}
        if not self._read_fails:
            with self._leaving_alone(reading=True):
                figures = dict(self.store.stats())
        pending, works = len(self._writes) + len(self._pending), not (self._read_fails or self._write_fails)
        return SecondLevelStatistics(self.hits, self.writes, pending, works, figures)

    def flush(self) -> None:
        """Wait until the answers that were handed over are sent, or are known to be pending."""
        self._writes.flush()

    def close(self) -> None:
        """Send what is pending once more, and close the store. The next use opens it again."""
        self._writes.flush()
        self._reader.close()
        if not self._writer.close(last=self._finish):
            self._finish()

    def _finish(self) -> None:
        with self._changing:
            timers = (self._retrying, self._renewing)
            self._retrying = self._renewing = None
            self._leases.clear()
        for timer in timers:
            if timer is not None:
                timer.cancel()
        with self._leaving_alone(reading=False):
            self._send_pending()
        missing = self._lost + len(self._pending)
        if missing:
            self._pending.clear()
            self._pending_bytes = self._lost = 0
            self._warn(
                f"{missing} answers are in the local store and not in the second level, {self.level.name}; "
                "Client.cache.push() sends them when it works again"
            )
        opened, self._opened = self._opened, None
        if opened is not None:
            with self._leaving_alone(reading=False):
                opened.close()
