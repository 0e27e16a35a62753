"""`Observer`: gives what happens to the calls of a client to the log, to spans and to metrics.

A client has one observer. A call has it only if something is on when the call is made, so a call that nobody
observes pays for one question. A `Watch` follows one call that is sent.
"""

from __future__ import annotations

import time
import weakref
from collections import OrderedDict
from logging import DEBUG, INFO
from sys import modules
from typing import TYPE_CHECKING, Any, TypeVar

from .._errors import LLMError
from . import telemetry as setting
from .facts import AskedCall, AttemptFacts, CallFacts, Paid, Place
from .logs import attempt_line, call_line, is_logging, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._types.usage import Usage
    from .metrics import Metrics
    from .spans import Spans, Started
    from .telemetry import Telemetry

T = TypeVar("T")

_MOST_UNTOLD = 10_000
"""Results whose calls are kept. A batch that the user does not read to its end leaves some."""


class Observer:
    """Observes the calls of one client.

    Args:
        telemetry: True or a `Telemetry` to use OpenTelemetry, False not to, None to use it as soon as the
            program has configured it.
        content: Whether log lines and spans hold prompts and answers.
        statistics: The method of the engine that returns the state of its rate control.
    """

    __slots__ = (
        "__weakref__", "_asked", "_content", "_statistics", "_telemetry", "idle", "is_on", "metrics",
        "reads_prompts", "spans",
    )  # fmt: skip

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
        self._asked: OrderedDict[int, tuple[Any, AskedCall]] | None = None
        self._telemetry = telemetry
        if telemetry:
            self.found_providers()

    def found_providers(self) -> bool:
        """Begin to export to the providers that are configured by now. Returns whether there is one."""
        # The modules of OpenTelemetry's API are for programs that use it.
        if self.spans is None and (tracers := setting.tracer_provider(self._telemetry)) is not None:
            from .spans import Spans

            self.spans, self.is_on = Spans(tracers, content=self._content), True
        if self.metrics is None and (meters := setting.meter_provider(self._telemetry)) is not None:
            from .metrics import metrics_of

            self.metrics, self.is_on = metrics_of(meters), True
            self.metrics.watch(self)
        return self.spans is not None or self.metrics is not None

    def remember_calls(self) -> None:
        """Keep the call of each result until `asked_for` is asked for it."""
        self._asked, self.is_on, self.reads_prompts = OrderedDict(), True, True

    def asked_for(self, result: Any) -> AskedCall | None:
        """The call of a result; None if it was refused before it began."""
        found = None if self._asked is None else self._asked.pop(id(result), None)
        return None if found is None else found[1]

    def joined(self, rounds: Sequence[Any], outcome: T) -> T:
        """The outcome of several rounds, whose call is that of the first round."""
        if self._asked is not None:
            calls = [self._asked.pop(id(one), None) for one in rounds]
            if calls[0] is not None:
                self._asked[id(outcome)] = outcome, calls[0][1]
        return outcome

    def _note(self, facts: CallFacts, outcome: Any) -> None:
        # A call that was cancelled has no result.
        is_result = isinstance(outcome, LLMError) or not isinstance(outcome, BaseException)
        if self._asked is not None and is_result:
            self._asked[id(outcome)] = outcome, facts.shown()
            if len(self._asked) > _MOST_UNTOLD:
                self._asked.popitem(last=False)

    def statistics(self) -> list[Any]:
        """The state of the rate control of the client; empty after its end."""
        statistics = self._statistics()
        return [] if statistics is None else statistics()

    def looked_up(self, facts: CallFacts, started: float, outcome: Any) -> None:
        """Note a call that ended with the lookup: a stored answer, or the error of `cache="only"`."""
        failed = isinstance(outcome, BaseException)
        self.found_providers()
        self._note(facts, outcome)
        if self.metrics is not None:
            self.metrics.looked_up(facts, hit=not failed)
        if self.spans is not None:
            self.spans.hit(facts, started, outcome)
        self._log(facts, time.perf_counter() - started, outcome, None, None if failed else 0.0)

    def start(self, operation: str, to: Place, started: float) -> tuple[Started | None, bool]:
        """Start the span of a call that is sent, in its own task.

        Args:
            operation: Its name in the GenAI conventions.
            to: What is called.
            started: When the user made the call, by `time.perf_counter`.

        Returns:
            The span, and whether anybody reads what happens to the call. Nobody may, if a sampler left its
            span out: then the call needs no facts and no watch.
        """
        if self.spans is None or (
            self.metrics is None and (setting.SDK_METRICS in modules or self._telemetry is True)
        ):
            self.found_providers()
        if self.spans is None:
            return None, True
        span = self.spans.start(operation, to, started)
        read = self.metrics is not None or self._asked is not None
        return span, read or span.span.is_recording() or is_logging(INFO)

    def watch(self, facts: CallFacts, started: float, span: Started | None, *, missed: bool) -> Watch:
        """Begin to follow a call that is sent.

        Args:
            facts: The call.
            started: When the user made it, by `time.perf_counter`.
            span: Its span.
            missed: Whether its answer was looked up before, and not found.
        """
        if missed and self.metrics is not None:
            self.metrics.looked_up(facts, hit=False)
        return Watch(self, facts, started, span)

    def paid(self, facts: CallFacts, paid: Paid) -> None:
        """Note the tokens and the cost of a request."""
        if self.metrics is not None:
            self.metrics.paid(facts, paid)
        if paid.delivery != "live" and is_logging(INFO):
            call_line(facts, "ok", 0.0, usage=paid.usage, usd=paid.usd, delivery=paid.delivery)

    def ended(
        self, watch: Watch, outcome: Any, attempts: int, usage: Usage | None, usd: float | None
    ) -> None:
        """Note the end of a call that was sent, in the task that began to follow it.

        Args:
            watch: What followed it.
            outcome: Its result or its exception.
            attempts: The requests that were sent for it.
            usage: The tokens of those that were billed; None if none was.
            usd: Their cost in USD; None where it is not known.
        """
        seconds, facts = time.perf_counter() - watch.started, watch.facts
        assert facts is not None
        self._note(facts, outcome)
        if self.metrics is not None and attempts:
            # A call that was answered by the request of another one was not sent.
            self.metrics.ended(facts, seconds, outcome)
        if self.spans is not None and watch.span is not None:
            self.spans.end(watch.span, facts, outcome, usage, usd)
        self._log(facts, seconds, outcome, usage, usd, attempts)

    def _log(
        self,
        facts: CallFacts,
        seconds: float,
        outcome: Any,
        usage: Usage | None,
        usd: float | None,
        attempts: int = 0,
    ) -> None:
        if not is_logging(INFO):
            return
        more: dict[str, Any] = {}
        if self._content:
            from .content import answer_json, prompt_json

            more = {"prompt": prompt_json(facts.request), "answer": answer_json(outcome)}
        if isinstance(outcome, BaseException):
            name, why = outcome_of(outcome)
            if self._content:
                more["message"] = str(outcome)
            call_line(
                facts, name, seconds, usage=usage, usd=usd, attempts=attempts, reason=why,
                status=getattr(outcome, "status", None), **more,
            )  # fmt: skip
            return
        cached = bool(getattr(outcome, "cached", False))
        if usage is None:
            usage = getattr(outcome, "usage", None)
        queued = round(getattr(getattr(outcome, "timing", None), "queue", 0.0), 4)
        call_line(
            facts, "ok", seconds, usage=usage, usd=usd, cached=cached, attempts=attempts,
            queued=queued or None, served=getattr(outcome, "model", None), **more,
        )  # fmt: skip


class Watch:
    """Follows one call that is sent."""

    __slots__ = ("facts", "observer", "span", "started")

    def __init__(
        self, observer: Observer, facts: CallFacts | None, started: float, span: Started | None
    ) -> None:
        self.observer = observer
        self.facts = facts
        """None for a call that is not sent."""
        self.started = started
        self.span = span

    def attempt(self, attempt: AttemptFacts) -> None:
        """Note a request that has ended."""
        facts, observer, failure = self.facts, self.observer, attempt.failure
        if facts is None:
            return
        if observer.metrics is not None:
            error = None if failure is None else failure.error
            observer.metrics.attempt(facts, attempt.waited, error)
        if observer.spans is not None and self.span is not None:
            observer.spans.attempt(self.span, attempt)
        if is_logging(DEBUG):
            attempt_line(facts, attempt)
