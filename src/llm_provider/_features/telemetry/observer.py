"""`Observer`: gives the events of a client's calls to the log, to spans and to metrics.

A call that nobody observes pays for one question. A `Watch` follows one call that is sent.

The log is `logging` under the logger `llm_provider`. `llm_provider.calls` has a line for each call (INFO) and
one for each of its requests (DEBUG). `llm_provider.waits` has the waits (WARNING), which
`_core/events/events` tells.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from logging import DEBUG, INFO
from sys import modules
from typing import TYPE_CHECKING, Any, Literal, TextIO

import orjson

from ..._core.errors import LLMError, MissingDependencyError, RequestError
from ..._core.events.events import ROOT, SDK, EndTool, Listener, find_served_by, is_logging, reason
from ..._core.runtime import clock
from ..._core.runtime.imports import install_command
from ..._core.types.usage import Usage

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from ..._core.journey.sent_requests import SentRequests
    from ..._core.money.totals import Posting
    from ..._core.types.messages import ToolCall
    from ..._core.types.usage import Usage
    from .metrics import Metrics
    from .spans import Spans, Started


_SDK_METRICS = f"{SDK}.metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """The OpenTelemetry providers of a client, in place of the global ones.

    Args:
        tracer_provider: Makes the spans; None for the global provider of OpenTelemetry's SDK.
        meter_provider: Takes the metrics; None for the same.

    >>> from llm_provider import Client
    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> with Client(telemetry=Telemetry(tracer_provider=TracerProvider())) as client:
    ...     client.statistics()
    []
    """

    tracer_provider: TracerProvider | None = None
    meter_provider: MeterProvider | None = None


def check_telemetry(value: object) -> bool | Telemetry:
    """The setting `telemetry` that switches it on; `MissingDependencyError` without OpenTelemetry's API."""
    if value is not True and not isinstance(value, Telemetry):
        raise RequestError(f"telemetry must be True, False, None or a Telemetry, not {value!r}")
    try:
        import opentelemetry.metrics
        import opentelemetry.trace  # noqa: F401  # to find out whether it is there
    except ImportError:
        raise MissingDependencyError(
            f"telemetry needs the package opentelemetry-api: {install_command('otel')}"
        ) from None
    return value


def _find_provider(telemetry: bool | Telemetry | None, signal: Literal["trace", "metrics"]) -> Any:
    """The provider of spans or of metrics; None if the program has not configured one."""
    name = "tracer_provider" if signal == "trace" else "meter_provider"
    provider = getattr(telemetry, name, None)
    if provider is None:
        if telemetry is False or (telemetry is not True and f"{SDK}.{signal}" not in modules):
            return None
        provider = getattr(import_module(f"opentelemetry.{signal}"), f"get_{name}")()
    # The API's own providers are proxies, or do nothing.
    return None if type(provider).__module__.startswith(f"opentelemetry.{signal}") else provider


class Observer(Listener):
    """Observes the calls of one client; with `content`, log lines and spans hold prompts and answers.

    `telemetry` is the setting of `Client`. `statistics` returns the state of the engine's rate control.
    """

    def __init__(
        self, telemetry: bool | Telemetry | None, *, content: bool, statistics: Callable[[], list[Any]]
    ) -> None:
        self.reads_prompts = self._content = content
        # A strong reference would be a cycle, which only the garbage collector frees.
        self._statistics = weakref.WeakMethod(statistics)
        self.spans: Spans | None = None
        self.metrics: Metrics | None = None
        self._telemetry = telemetry
        if telemetry:
            self.find_providers()

    def find_providers(self) -> bool:
        """Begin to export to the providers that are configured by now. Returns whether there is one."""
        # The modules of OpenTelemetry's API are for programs that use it.
        if self.spans is None and (tracers := _find_provider(self._telemetry, "trace")) is not None:
            from .spans import Spans

            self.spans = Spans(tracers, content=self._content)
        if self.metrics is None and (meters := _find_provider(self._telemetry, "metrics")) is not None:
            from .metrics import metrics_of

            self.metrics = metrics_of(meters)
            self.metrics.watch(self)
        return self.spans is not None or self.metrics is not None

    def statistics(self) -> list[Any]:
        """The state of the rate control of the client; empty after its end."""
        statistics = self._statistics()
        return [] if statistics is None else statistics()

    def note_lookup(self, call: Any, started: float, outcome: object) -> None:
        failed = isinstance(outcome, BaseException)
        self.find_providers()
        if self.metrics is not None:
            self.metrics.count_lookup(call, not failed)
        if self.spans is not None:
            self.spans.add_lookup(call, started, outcome)
        if is_logging(INFO):
            self.log(call, clock.perf_counter() - started, outcome, None, None if failed else 0.0)

    def begin(self, call: Any) -> Listener:
        """Start the span of a call, in the call's own task. A sampler may drop it if only spans read it."""
        if self.spans is None or (
            self.metrics is None and (_SDK_METRICS in modules or self._telemetry is True)
        ):
            self.find_providers()
        span = None
        if self.spans is not None:
            span = self.spans.start(call)
            if self.metrics is None and not (span.span.is_recording() or is_logging(INFO)):
                return _Dropped(self.spans, span)
        # It was looked up before, and not found.
        if self.metrics is not None and call.cache in ("use", "only"):
            self.metrics.count_lookup(call, False)
        return Watch(self, span)

    def note_payment(self, call: Any, posting: Posting) -> None:
        if posting.kind == "hit":
            return
        if self.metrics is not None:
            self.metrics.note(self.metrics.record_payment, call, posting)
        if (delivery := posting.key.delivery) != "live" and is_logging(INFO):
            usd = None if posting.usd is None else float(posting.usd)
            log_call(call, "ok", 0.0, posting.usage, usd, delivery=delivery)

    def begin_tool(self, call: ToolCall, description: str | None) -> EndTool:
        if self.spans is None:
            return super().begin_tool(call, description)
        return partial(self.spans.end_tool, self.spans.start_tool(call, description))

    def log(
        self, call: Any, seconds: float, outcome: object, usage: Usage | None, usd: float | None,
        attempts: int = 0, answered: Sequence[Mapping[str, str]] = (),
    ) -> None:  # fmt: skip
        """Log the end of a call, where INFO is logged."""
        failed, name = isinstance(outcome, BaseException), "ok"
        if isinstance(outcome, BaseException):
            # The name of another class says all that may be told.
            name, why = type(outcome).__name__, reason(outcome) if isinstance(outcome, LLMError) else None
            more = {"attempts": attempts, "reason": why, "status": getattr(outcome, "status", None)}
        else:
            usage = getattr(outcome, "usage", None) if usage is None else usage
            queued = round(getattr(getattr(outcome, "timing", None), "queue", 0.0), 4)
            more = {"cached": bool(getattr(outcome, "cached", False)), "attempts": attempts}
            more |= {"queued": queued or None, "served": getattr(outcome, "model", None)}
            who = find_served_by(outcome, answered)
            more |= {part: who.get(part) for part in ("host", "fingerprint", "request_id")}
        if self._content:
            from .spans import answer_json, prompt_json

            more |= {"prompt": prompt_json(call.request), "answer": answer_json(outcome)}
            more |= {"message": str(outcome)} if failed else {}
        log_call(call, name, seconds, usage, usd, **more)


class Watch(Listener):
    """Follows one call that is sent."""

    def __init__(self, observer: Observer, span: Started | None) -> None:
        self._observer, self._span = observer, span
        self._answered: tuple[Mapping[str, str], ...] = ()
        """For each request that was answered, the fields of `served_by` without the model."""

    def note_payment(self, call: Any, posting: Posting) -> None:
        if posting.who is not None and posting.kind != "hit":
            self._answered += (posting.who,)
        self._observer.note_payment(call, posting)

    def note_attempt(self, call: Any, attempt: Any) -> None:
        observer, failure = self._observer, attempt.failure
        if observer.metrics is not None:
            error = None if failure is None else failure.error
            observer.metrics.count_attempt(call, attempt.waited, error)
        if failure is not None and observer.spans is not None and self._span is not None:
            observer.spans.add_failure(self._span, attempt, failure)
        if is_logging(DEBUG):
            fields = {
                **_name_model(call),
                "attempt": attempt.retries + 1,
                "outcome": "ok" if failure is None else failure.error,
                "status": None if failure is None else failure.status,
                "waited": round(attempt.waited, 4),
                "seconds": round(attempt.seconds, 4),
                "retry_in": None if attempt.retry_in is None else round(attempt.retry_in, 3),
            }
            CALLS.debug("%s", _Line("attempt", fields), extra={"llm_provider": fields})

    def note_end(self, call: Any, outcome: object, sent: SentRequests) -> None:
        """End the span in the task that began it."""
        seconds, observer = clock.perf_counter() - call.started, self._observer
        if observer.metrics is not None and sent.attempts:
            # A call that was answered by the request of another one was not sent.
            error = type(outcome).__name__ if isinstance(outcome, BaseException) else None
            first = getattr(getattr(outcome, "timing", None), "first_token", None) if call.streamed else None
            served = getattr(outcome, "model", None)
            observer.metrics.note(observer.metrics.record_end, call, seconds, error, served, first)
        if observer.spans is not None and self._span is not None:
            observer.spans.end(self._span, call, outcome, sent, self._answered)
        if is_logging(INFO):
            observer.log(call, seconds, outcome, sent.usage, sent.cost, sent.attempts, self._answered)


class _Dropped(Listener):
    """Ends the span of a call that a sampler left out."""

    def __init__(self, spans: Spans, span: Started) -> None:
        self._spans, self._span = spans, span

    def note_end(self, call: Any, outcome: object, sent: SentRequests) -> None:
        self._spans.drop(self._span)


CALLS = logging.getLogger("llm_provider.calls")
VARIABLE = "LLM_PROVIDER_LOG"
LEVELS = ("debug", "info", "warning")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to what `sys.stderr` is at that moment, unless a handler of the program writes there too."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter(_FORMAT))

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # the base class has an attribute
        return sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        others = logging.getLogger().handlers
        if sys.stderr is not None and all(
            getattr(other, "stream", None) is not sys.stderr for other in others
        ):
            super().emit(record)


def install_from_environment() -> None:
    """Install a handler for standard error, once, if `LLM_PROVIDER_LOG` asks for it."""
    level = os.environ[VARIABLE].strip().lower()
    if level not in LEVELS:
        raise RequestError(f"{VARIABLE} must be one of {', '.join(LEVELS)}, not {level!r}")
    ROOT.setLevel(level.upper())
    if not any(isinstance(handler, _StderrHandler) for handler in ROOT.handlers):
        ROOT.addHandler(_StderrHandler())


def log_call(
    call: Any, outcome: str, seconds: float, usage: Usage | None, usd: float | None, **more: object
) -> None:
    """Log the end of a call at INFO: "ok" or the class of its error, and its seconds. None is left out."""
    fields: dict[str, object] = {"operation": call.exchange.name, **_name_model(call)}
    fields |= {"outcome": outcome, "seconds": round(seconds, 4)}
    if usage is not None:
        fields |= {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    fields |= {"usd": None if usd is None else round(usd, 8), **more}
    if call.tracks.tag:
        fields["tag"] = call.tracks.tag
    CALLS.info("%s", _Line("call", fields), extra={"llm_provider": fields})


def _name_model(call: Any) -> dict[str, str]:
    """The model by the name that the user gave, and its provider."""
    target = call.target
    return {"model": getattr(call.request, "model", target.model), "provider": target.provider}


class _Line:
    """The text of a line, made when a handler needs it: `name key=value key=value`."""

    def __init__(self, name: str, fields: Mapping[str, object]) -> None:
        self._name, self._fields = name, fields

    def __str__(self) -> str:
        pairs = (f"{name}={_quote(value)}" for name, value in self._fields.items() if value is not None)
        return f"{self._name} {' '.join(pairs)}"


_is_word = re.compile(r"[!#-<>-~]+").fullmatch
"""Whether a text is printable ASCII without spaces, quotes and equals signs."""


def _quote(value: object) -> str:
    """A value as one word, or as JSON.

    >>> _quote("two words"), _quote(True), _quote(0.00001234), _quote("gpt-6.1-sol")
    ('"two words"', 'true', '0.00001234', 'gpt-6.1-sol')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.8f}".rstrip("0").rstrip(".")
    text = str(value)
    return text if _is_word(text) else orjson.dumps(text).decode(errors="replace")
