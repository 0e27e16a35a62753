"""The metrics of calls: those of the GenAI conventions, and cost, cache, queue and limits.

Counters are sums of our own that OpenTelemetry reads when it exports. To add to its counters in each call
would take several microseconds for each of them. Histograms have no such form, so what they record is noted
and recorded in groups. No attribute has many values: they name the model, the provider, the server and the
class of an error.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from .._runtime.forks import reset_in_child
from .facts import CallFacts, Paid
from .spans import ERROR_TYPE, OPERATION, REQUEST_MODEL, RESPONSE_MODEL, SCHEMA_URL, place, version

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

    Callback: TypeAlias = Callable[[CallbackOptions], Iterable[Observation]]

DURATION_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKEN_BUCKETS = (
    1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
)  # fmt: skip
"""The boundaries that the conventions recommend, in seconds and in tokens."""

_TOGETHER = 128
"""Notes that are recorded together, which takes a third of the time of each by itself, and at each export."""

_MOST_NAMES = 1000
"""Sets of attributes that a counter keeps. A model's name comes from the user, so further ones count as
"other models"."""

_Names: TypeAlias = tuple[tuple[str, Any], ...]


class _Sums:
    """A counter: sums by attributes."""

    def __init__(self) -> None:
        self._sums: dict[_Names, float] = {}
        self._lock = threading.Lock()

    def add(self, amount: float, names: _Names) -> None:
        with self._lock:
            if names not in self._sums and len(self._sums) >= _MOST_NAMES:
                names = ((REQUEST_MODEL, "other models"),)
            self._sums[names] = self._sums.get(names, 0.0) + amount

    def rows(self) -> list[tuple[_Names, float]]:
        with self._lock:
            return list(self._sums.items())

    def clear(self) -> None:
        # In a forked child: the parent has the sums so far, and another thread of it may hold the lock.
        self._lock, self._sums = threading.Lock(), {}


class Metrics:
    """The instruments of one meter provider. All clients that use the provider share them.

    Args:
        provider: The provider of meters.
    """

    def __init__(self, provider: MeterProvider) -> None:
        from opentelemetry import metrics

        self._observation = metrics.Observation
        self._pending: deque[tuple[Any, ...]] = deque()
        meter = metrics.get_meter("llm_provider", version(), provider, SCHEMA_URL)
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="Duration of calls that were sent",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )
        self._first_chunk = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk",
            unit="s",
            description="Time from the request to the first part of a streamed answer",
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Tokens of the requests that were billed",
            explicit_bucket_boundaries_advisory=TOKEN_BUCKETS,
        )
        self._cost, self._unknown, self._lookups, self._queue, self._attempts = (_Sums() for _ in range(5))
        self._sums = (self._cost, self._unknown, self._lookups, self._queue, self._attempts)
        counter = meter.create_observable_counter
        counter("llm_provider.cost", [self._read(self._cost)], "USD", "Cost of requests")
        counter(
            "llm_provider.cost.unknown", [self._read(self._unknown)], "{request}", "Requests of unknown cost"
        )
        counter("llm_provider.cache.lookups", [self._read(self._lookups)], "{call}", "Cache hits and misses")
        counter(
            "llm_provider.queue.duration", [self._read(self._queue)], "s", "Time before requests were sent"
        )
        counter("llm_provider.attempts", [self._read(self._attempts)], "{request}", "Requests sent")
        self._clients: weakref.WeakSet[Any] = weakref.WeakSet()
        gauge = meter.create_observable_gauge
        limit = "Requests that may be in flight, where a limit is known"
        gauge("llm_provider.concurrency.limit", [self._state("window")], "{request}", limit)
        gauge("llm_provider.rate.limit", [self._state("rate")], "{request}/s", "Requests per second")
        gauge("llm_provider.requests.in_flight", [self._state("in_flight")], "{request}", "Under way now")
        gauge("llm_provider.calls.waiting", [self._state("waiting")], "{call}", "Waiting for a slot now")
        _made.add(self)

    def watch(self, client: Any) -> None:
        """Read the limits of a client for as long as it exists. It has `statistics()`."""
        self._clients.add(client)

    def ended(self, facts: CallFacts, seconds: float, outcome: Any) -> None:
        """Record the end of a call that was sent."""
        error = type(outcome).__name__ if isinstance(outcome, BaseException) else None
        first = getattr(getattr(outcome, "timing", None), "first_token", None) if facts.streamed else None
        self._later((self._ended, facts, seconds, error, getattr(outcome, "model", None), first))

    def looked_up(self, facts: CallFacts, *, hit: bool) -> None:
        """Count a lookup in the cache."""
        self._later((self._looked_up, facts, hit))

    def attempt(self, facts: CallFacts, waited: float, error: str | None) -> None:
        """Count a request and the time before it was sent."""
        self._later((self._attempted, facts, waited, error))

    def paid(self, facts: CallFacts, paid: Paid) -> None:
        """Record the tokens and the cost of a request."""
        self._later((self._paid, facts, paid))

    def _later(self, work: tuple[Any, ...]) -> None:
        self._pending.append(work)
        if len(self._pending) >= _TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Record everything that was noted so far."""
        while self._pending:
            try:
                record, *facts = self._pending.popleft()
            except IndexError:  # another thread took the last one
                return
            record(*facts)

    def _ended(
        self, facts: CallFacts, seconds: float, error: str | None, served: str | None, first: float | None
    ) -> None:
        names = place(facts.operation, facts.provider, facts.model, facts.base_url)
        if error is not None:
            names = {**names, ERROR_TYPE: error}
        elif served is not None and served != facts.model:
            names = {**names, RESPONSE_MODEL: served}
        self._duration.record(seconds, names)
        if first is not None:
            self._first_chunk.record(first, names)

    def _looked_up(self, facts: CallFacts, hit: bool) -> None:
        self._lookups.add(1, (*_names(facts), ("llm_provider.cache.result", "hit" if hit else "miss")))

    def _attempted(self, facts: CallFacts, waited: float, error: str | None) -> None:
        names = _names(facts)
        if waited > 0:
            self._queue.add(waited, names)
        self._attempts.add(1, names if error is None else (*names, (ERROR_TYPE, error)))

    def _paid(self, facts: CallFacts, paid: Paid) -> None:
        names = _names(facts, paid.delivery)
        if paid.usd is None:
            self._unknown.add(1, names)
        else:
            self._cost.add(paid.usd, names)
        if paid.usage is not None:
            for kind, count in (("input", paid.usage.input_tokens), ("output", paid.usage.output_tokens)):
                self._tokens.record(count, _token_names(names, paid.served, kind))

    def _read(self, sums: _Sums) -> Callback:
        def read(_: CallbackOptions) -> Iterable[Observation]:
            # OpenTelemetry calls this before it reads the histograms.
            self.flush()
            return [self._observation(amount, dict(names)) for names, amount in sums.rows()]

        return read

    def _state(self, field: str) -> Callback:
        """Reads one number of each scope. The scopes of several keys and clients are added up."""

        def read(_: CallbackOptions) -> Iterable[Observation]:
            found: dict[_Names, float] = {}
            for client in list(self._clients):
                for scope in client.statistics():
                    value = getattr(scope, field)
                    if value is not None:
                        names = place("chat", scope.provider, scope.model, scope.base_url)
                        # A limit holds for all operations together.
                        key = tuple(each for each in names.items() if each[0] != OPERATION)
                        found[key] = found.get(key, 0) + value
            return [self._observation(value, dict(names)) for names, value in found.items()]

        return read

    def forget_parent(self) -> None:
        self._pending.clear()
        for sums in self._sums:
            sums.clear()


_made: weakref.WeakSet[Metrics] = weakref.WeakSet()
_by_provider: weakref.WeakKeyDictionary[Any, Metrics] = weakref.WeakKeyDictionary()


def metrics_of(provider: MeterProvider) -> Metrics:
    """The metrics of a provider, made once: an instrument of the same name twice would be counted twice."""
    found = _by_provider.get(provider)
    if found is None:
        found = _by_provider[provider] = Metrics(provider)
    return found


def _names(facts: CallFacts, delivery: str = "live") -> _Names:
    names = tuple(place(facts.operation, facts.provider, facts.model, facts.base_url).items())
    return names if delivery == "live" else (*names, ("llm_provider.delivery", delivery))


@functools.lru_cache(maxsize=1024)
def _token_names(names: _Names, served: str, kind: str) -> Mapping[str, Any]:
    return {**dict(names), RESPONSE_MODEL: served, "gen_ai.token.type": kind}


reset_in_child(_made, Metrics.forget_parent)
