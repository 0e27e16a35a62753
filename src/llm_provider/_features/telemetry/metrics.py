"""The metrics of calls: the metrics of the GenAI conventions, and cost, cache, queue and limits.

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
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from ..._core.runtime.forks import reset_in_child
from . import spans

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Histogram, MeterProvider, Observation

    from ..._core.money.totals import Posting

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

_Attributes: TypeAlias = Mapping[str, str | int]
_Names: TypeAlias = tuple[tuple[str, str | int], ...]


class _Sums:
    """A counter: sums by attributes."""

    def __init__(self) -> None:
        self._sums: dict[_Names, float] = {}
        self._lock = threading.Lock()

    def add(self, amount: float, names: _Names) -> None:
        with self._lock:
            try:
                self._sums[names] += amount
            except KeyError:
                if len(self._sums) >= _MOST_NAMES:
                    names = ((spans.REQUEST_MODEL, "other models"),)
                self._sums[names] = self._sums.get(names, 0.0) + amount

    def rows(self) -> list[tuple[_Names, float]]:
        with self._lock:
            return list(self._sums.items())

    def clear(self) -> None:
        # In a forked child: the parent has the sums so far, and another thread of it may hold the lock.
        self._lock, self._sums = threading.Lock(), {}


class Metrics:
    """The instruments of one meter provider. All clients that use the provider share them."""

    def __init__(self, provider: MeterProvider) -> None:
        from opentelemetry import metrics, trace
        from opentelemetry.context import Context

        self._observation = metrics.Observation
        # The current span belongs to one call. It must not be the exemplar of a whole group.
        self._no_span = trace.set_span_in_context(trace.INVALID_SPAN, Context())
        self._pending: deque[Callable[[], None]] = deque()
        meter = metrics.get_meter("llm_provider", spans.version(), provider, spans.SCHEMA_URL)

        def histogram(
            name: str, unit: str, text: str, buckets: Sequence[float] = DURATION_BUCKETS
        ) -> Histogram:
            return meter.create_histogram(name, unit, text, explicit_bucket_boundaries_advisory=buckets)

        calls = "Duration of calls that were sent"
        self._duration = histogram("gen_ai.client.operation.duration", "s", calls)
        chunks = "Time from the request to the first part of a streamed answer"
        self._first_chunk = histogram("gen_ai.client.operation.time_to_first_chunk", "s", chunks)
        billed = "Tokens of the requests that were billed"
        self._tokens = histogram("gen_ai.client.token.usage", "{token}", billed, TOKEN_BUCKETS)
        self._sums: list[_Sums] = []

        def counter(name: str, unit: str, description: str) -> _Sums:
            sums = _Sums()
            meter.create_observable_counter(name, [self._read(sums)], unit, description)
            self._sums.append(sums)
            return sums

        self._cost = counter("llm_provider.cost", "USD", "Cost of requests")
        self._unknown = counter("llm_provider.cost.unknown", "{request}", "Requests of unknown cost")
        self._lookups = counter("llm_provider.cache.lookups", "{call}", "Cache hits and misses")
        self._queue = counter("llm_provider.queue.duration", "s", "Time before requests were sent")
        self._attempts = counter("llm_provider.attempts", "{request}", "Requests sent")
        self._clients: weakref.WeakSet[Any] = weakref.WeakSet()
        gauge = meter.create_observable_gauge
        limit = "Requests that may be in flight, where a limit is known"
        gauge("llm_provider.concurrency.limit", [self._state("window")], "{request}", limit)
        gauge("llm_provider.rate.limit", [self._state("rate")], "{request}/s", "Requests per second")
        gauge("llm_provider.requests.in_flight", [self._state("in_flight")], "{request}", "Under way now")
        gauge("llm_provider.calls.waiting", [self._state("waiting")], "{call}", "Waiting for a slot now")
        _all.add(self)

    def watch(self, client: Any) -> None:
        """Read the limits of a client for as long as it exists. It has `statistics()`."""
        self._clients.add(client)

    def note(self, record: Callable[..., None], call: Any, *values: Any) -> None:
        """Call a method that records in histograms later, together with others."""
        self._pending.append(partial(record, spans.describe_destination(call), *values))
        if len(self._pending) >= _TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Record everything that was noted so far."""
        while self._pending:
            try:
                record = self._pending.popleft()
            except IndexError:  # another thread took the last one
                return
            record()

    def record_end(
        self, names: _Attributes, seconds: float, error: str | None, served: str | None, first: float | None
    ) -> None:
        if error is not None:
            names = {**names, spans.ERROR_TYPE: error}
        elif served is not None and served != names[spans.REQUEST_MODEL]:
            names = {**names, spans.RESPONSE_MODEL: served}
        self._duration.record(seconds, names, self._no_span)
        if first is not None:
            self._first_chunk.record(first, names, self._no_span)

    def count_lookup(self, call: Any, hit: bool) -> None:
        """Count a lookup in the cache."""
        names = spans.describe_destination(call).items()
        self._lookups.add(1, (*names, ("llm_provider.cache.result", "hit" if hit else "miss")))

    def count_attempt(self, call: Any, waited: float, error: str | None) -> None:
        """Count a request and the time before it was sent."""
        names = tuple(spans.describe_destination(call).items())
        if waited > 0:
            self._queue.add(waited, names)
        self._attempts.add(1, names if error is None else (*names, (spans.ERROR_TYPE, error)))

    def record_payment(self, attributes: _Attributes, posting: Posting) -> None:
        """Record the tokens and the cost of a request."""
        names, key = tuple(attributes.items()), posting.key
        if key.delivery != "live":
            names += (("llm_provider.delivery", key.delivery),)
        if posting.usd is None:
            self._unknown.add(1, names)
        else:
            self._cost.add(float(posting.usd), names)
        if posting.usage is not None:
            of_input, of_output = _token_names(names, key.served)
            self._tokens.record(posting.usage.input_tokens, of_input, self._no_span)
            self._tokens.record(posting.usage.output_tokens, of_output, self._no_span)

    def _read(self, sums: _Sums) -> Callback:
        def read(_: CallbackOptions) -> Iterable[Observation]:
            # OpenTelemetry calls this before it reads the histograms.
            self.flush()
            return [self._observation(amount, dict(names)) for names, amount in sums.rows()]

        return read

    def _state(self, field: str) -> Callback:
        """Reads one number of each scope. The scopes of several keys and clients are added up."""

        def read(_: CallbackOptions) -> Iterable[Observation]:
            totals: dict[_Names, float] = {}
            for client in list(self._clients):
                for scope in client.statistics():
                    value = getattr(scope, field)
                    if value is not None:
                        names = spans.describe_target("chat", scope.provider, scope.model, scope.base_url)
                        # A limit holds for all operations together.
                        key = tuple(each for each in names.items() if each[0] != spans.OPERATION)
                        totals[key] = totals.get(key, 0) + value
            return [self._observation(value, dict(names)) for names, value in totals.items()]

        return read

    def forget_parent(self) -> None:
        self._pending.clear()
        for sums in self._sums:
            sums.clear()


_all: weakref.WeakSet[Metrics] = weakref.WeakSet()
_by_provider: weakref.WeakKeyDictionary[MeterProvider, Metrics] = weakref.WeakKeyDictionary()


def metrics_of(provider: MeterProvider) -> Metrics:
    """The metrics of a provider, made once: an instrument of the same name twice would be counted twice."""
    if provider not in _by_provider:
        _by_provider[provider] = Metrics(provider)
    return _by_provider[provider]


@functools.lru_cache(maxsize=1024)
def _token_names(names: _Names, served: str) -> tuple[_Attributes, _Attributes]:
    """The attributes of the tokens of the input and of the output."""
    common = {**dict(names), spans.RESPONSE_MODEL: served}
    return {**common, "gen_ai.token.type": "input"}, {**common, "gen_ai.token.type": "output"}


reset_in_child(_all, Metrics.forget_parent)
