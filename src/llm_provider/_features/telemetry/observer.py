"""`Observer`: gives what happens to the calls of a client to the log, to spans and to metrics.

A client has one observer. A call has it only if something is on when the call is made, so a call that nobody
observes pays for one question. A `Watch` follows one call that is sent.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict
from logging import DEBUG, INFO
from sys import modules
from typing import TYPE_CHECKING, Any, TypeVar

from ..._core.errors import LLMError
from ..._core.events.observed_call import (
    AskedCall,
    Destination,
    EndedAttempt,
    ObservedCall,
    Payment,
    find_served_by,
)
from ..._core.events.reasons import reason
from ..._core.runtime import clock
from . import telemetry as setting
from .logs import is_logging, log_attempt, log_call

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..._core.types.usage import Usage
    from .metrics import Metrics
    from .spans import Spans, Started
    from .telemetry import Telemetry

T = TypeVar("T")

_MOST_KEPT = 10_000
"""Results whose calls are kept. A batch that the user does not read to its end leaves some."""


class Observer:
    """Observes the calls of one client; with `content`, log lines and spans hold prompts and answers.

    `telemetry` is the setting of `Client`. `statistics` returns the state of the engine's rate control.
    """

    def __init__(
        self, telemetry: bool | Telemetry | None, *, content: bool, statistics: Callable[[], list[Any]]
    ) -> None:
        self._content = content
        # A strong reference would be a cycle, which only the garbage collector frees.
        self._statistics = weakref.WeakMethod(statistics)
        self.spans: Spans | None = None
        self.metrics: Metrics | None = None
        self.idle = Watch(self, None, 0.0, None)
        """For calls that are observed and not sent."""
        self.is_on = bool(telemetry)
        """Whether every call is observed, and not only those that are logged."""
        self.reads_prompts = content
        """Whether it needs the prompt of each call. Stored answers of a batch are else found without."""
        self._calls: OrderedDict[int, tuple[object, AskedCall]] | None = None
        """By the id of a result: the result, which keeps the id in use, and its call."""
        self._telemetry = telemetry
        if telemetry:
            self.find_providers()

    def find_providers(self) -> bool:
        """Begin to export to the providers that are configured by now. Returns whether there is one."""
        # The modules of OpenTelemetry's API are for programs that use it.
        if self.spans is None and (tracers := setting.find_provider(self._telemetry, "trace")) is not None:
            from .spans import Spans

            self.spans, self.is_on = Spans(tracers, content=self._content), True
        if self.metrics is None and (meters := setting.find_provider(self._telemetry, "metrics")) is not None:
            from .metrics import metrics_of

            self.metrics, self.is_on = metrics_of(meters), True
            self.metrics.watch(self)
        return self.spans is not None or self.metrics is not None

    def remember_calls(self) -> None:
        """Keep the call of each result until `take_call` is asked for it."""
        self._calls, self.is_on, self.reads_prompts = OrderedDict(), True, True

    def take_call(self, result: object) -> AskedCall | None:
        """The call of a result; None if it was refused before it began."""
        entry = None if self._calls is None else self._calls.pop(id(result), None)
        return None if entry is None else entry[1]

    def join_calls(self, rounds: Sequence[object], outcome: T) -> T:
        """The outcome of several rounds, whose call is that of the first round."""
        calls = [self.take_call(result) for result in rounds]
        if self._calls is not None and calls[0] is not None:
            self._calls[id(outcome)] = outcome, calls[0]
        return outcome

    def _remember(self, call: ObservedCall, outcome: object) -> None:
        # A call that was cancelled has no result.
        is_result = isinstance(outcome, LLMError) or not isinstance(outcome, BaseException)
        if self._calls is not None and is_result:
            self._calls[id(outcome)] = outcome, call.to_asked_call()
            if len(self._calls) > _MOST_KEPT:
                self._calls.popitem(last=False)

    def statistics(self) -> list[Any]:
        """The state of the rate control of the client; empty after its end."""
        statistics = self._statistics()
        return [] if statistics is None else statistics()

    def note_lookup(self, call: ObservedCall, started: float, outcome: object) -> None:
        """Note a call that ended with the lookup: a stored answer, or the error of `cache="only"`."""
        failed = isinstance(outcome, BaseException)
        self.find_providers()
        self._remember(call, outcome)
        if self.metrics is not None:
            self.metrics.note(self.metrics.record_lookup, call, not failed)
        if self.spans is not None:
            self.spans.add_lookup(call, started, outcome)
        self._log(call, clock.perf_counter() - started, outcome, None, None if failed else 0.0)

    def start(self, operation: str, to: Destination, started: float) -> tuple[Started | None, bool]:
        """The span of a call, started in the call's own task, and whether anybody reads what happens to it.

        `started` is when the user made the call, by `clock.perf_counter`. Nobody may read it, if a sampler
        left its span out: then the call needs no `ObservedCall` and no watch.
        """
        if self.spans is None or (
            self.metrics is None and (setting.SDK_METRICS in modules or self._telemetry is True)
        ):
            self.find_providers()
        if self.spans is None:
            return None, True
        span = self.spans.start(operation, to, started)
        is_read = self.metrics is not None or self._calls is not None
        return span, is_read or span.span.is_recording() or is_logging(INFO)

    def watch(self, call: ObservedCall, started: float, span: Started | None, *, missed: bool) -> Watch:
        """Begin to follow a call that is sent. It was looked up before, and not found, if it `missed`."""
        if missed and self.metrics is not None:
            self.metrics.note(self.metrics.record_lookup, call, False)
        return Watch(self, call, started, span)

    def note_payment(self, call: ObservedCall, payment: Payment) -> None:
        """Note the tokens and the cost of a request, and who answered it."""
        if payment.who is not None:
            call.answered += (payment.who,)
        if self.metrics is not None:
            self.metrics.note(self.metrics.record_payment, call, payment)
        if payment.delivery != "live" and is_logging(INFO):
            log_call(call, "ok", 0.0, payment.usage, payment.usd, delivery=payment.delivery)

    def note_end(
        self, watch: Watch, outcome: object, attempts: int, usage: Usage | None, usd: float | None
    ) -> None:
        """Note the end of a call that was sent, in the task that began to follow it with `watch`.

        `outcome` is its result or exception, and `attempts` are its requests. `usage` is None if none was
        billed; `usd` is None where the cost is not known.
        """
        seconds, call = clock.perf_counter() - watch.started, watch.call
        assert call is not None
        self._remember(call, outcome)
        if self.metrics is not None and attempts:
            # A call that was answered by the request of another one was not sent.
            error = type(outcome).__name__ if isinstance(outcome, BaseException) else None
            first = getattr(getattr(outcome, "timing", None), "first_token", None) if call.streamed else None
            served = getattr(outcome, "model", None)
            self.metrics.note(self.metrics.record_end, call, seconds, error, served, first)
        if self.spans is not None and watch.span is not None:
            self.spans.end(watch.span, call, outcome, usage, usd, attempts)
        self._log(call, seconds, outcome, usage, usd, attempts)

    def _log(
        self, call: ObservedCall, seconds: float, outcome: object, usage: Usage | None, usd: float | None,
        attempts: int = 0,
    ) -> None:  # fmt: skip
        if not is_logging(INFO):
            return
        content: dict[str, str | None] = {}
        if self._content:
            from .content import answer_json, prompt_json

            content = {"prompt": prompt_json(call.request), "answer": answer_json(outcome)}
        if isinstance(outcome, BaseException):
            # The name of another class says all that may be told.
            why = reason(outcome) if isinstance(outcome, LLMError) else None
            if self._content:
                content["message"] = str(outcome)
            log_call(
                call, type(outcome).__name__, seconds, usage, usd, attempts=attempts, reason=why,
                status=getattr(outcome, "status", None), **content,
            )  # fmt: skip
            return
        queued = round(getattr(getattr(outcome, "timing", None), "queue", 0.0), 4)
        who = find_served_by(outcome)
        log_call(
            call, "ok", seconds, getattr(outcome, "usage", None) if usage is None else usage, usd,
            cached=bool(getattr(outcome, "cached", False)), attempts=attempts, queued=queued or None,
            served=getattr(outcome, "model", None), host=who and who.host,
            fingerprint=who and who.fingerprint, request_id=who and who.request_id, **content,
        )  # fmt: skip


class Watch:
    """Follows one call that is sent."""

    def __init__(
        self, observer: Observer, call: ObservedCall | None, started: float, span: Started | None
    ) -> None:
        self.observer, self.started, self.span = observer, started, span
        self.call = call
        """None for a call that is not sent."""

    def note_attempt(self, attempt: EndedAttempt) -> None:
        call, observer, failure = self.call, self.observer, attempt.failure
        if call is None:
            return
        if observer.metrics is not None:
            error = None if failure is None else failure.error
            observer.metrics.note(observer.metrics.record_attempt, call, attempt.waited, error)
        if failure is not None and observer.spans is not None and self.span is not None:
            observer.spans.add_failure(self.span, attempt, failure)
        if is_logging(DEBUG):
            log_attempt(call, attempt)
