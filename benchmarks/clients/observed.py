"""Clients that send a random user id with every call: without observers, with a hook, a log, OpenTelemetry.

The hook counts calls, tokens and time in a dictionary. The log is one line per call in a file. OpenTelemetry
is its SDK with a batching processor of spans, and with a reader that Prometheus could scrape.
"""

from __future__ import annotations

import logging
import tempfile
import uuid
from collections import Counter
from typing import Any

from . import Offer, Target
from .litellm import Litellm
from .ours import OURS, Ours


class Observer:
    """Metrics in memory and, with the name of a logger, a log on disk."""

    def __init__(self, logger: str | None = None) -> None:
        self._counts: Counter[str] = Counter()
        self._log: logging.Logger | None = None
        if logger is not None:
            self._log = logging.getLogger(logger)
            handler = logging.FileHandler(tempfile.mkstemp(suffix=".log")[1])
            handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
            self._log.addHandler(handler)
            self._log.setLevel(logging.DEBUG)
            self._log.propagate = False

    def note(self, model: str, identity: str, tokens: int, seconds: float) -> None:
        """Count one call, and log it."""
        self._counts["calls"] += 1
        self._counts["tokens"] += tokens
        self._counts[f"milliseconds of {model}"] += round(1000 * seconds)
        if self._log is not None:
            self._log.info("%s for %s: %d tokens, %.3f s", model, identity, tokens, seconds)


class OursForUser(Ours):
    """`acall` with a user id."""

    async def call(self, prepared: Any) -> str:
        fields = {"extra_body": {"user": uuid.uuid4().hex}, **self._fields}
        return (await self._client.acall(self._model, prepared, **fields)).text


class OursMetered(OursForUser):
    """The same, with the client's `on_result` counting each call."""

    LOGGER: str | None = None

    def __init__(self, target: Target) -> None:
        observer = Observer(self.LOGGER)

        def note(result: Any) -> None:
            observer.note(result.model, result.id, result.usage.output_tokens, result.timing.total)

        super().__init__(target, on_result=note)


class OursObserved(OursMetered):
    """The same, with a line in a file for each call, and the library's logger at DEBUG."""

    LOGGER = "llm_provider"


class OursTraced(OursForUser):
    """The same with OpenTelemetry: spans, in batches to an exporter, and metrics for Prometheus."""

    SPANS = METRICS = True

    def __init__(self, target: Target) -> None:
        from opentelemetry.exporter.prometheus import PrometheusMetricReader
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from llm_provider import Telemetry

        tracers = TracerProvider()
        tracers.add_span_processor(BatchSpanProcessor(_counting_exporter()))
        reader = PrometheusMetricReader(prefix=f"benchmark_{uuid.uuid4().hex}")
        super().__init__(
            target,
            telemetry=Telemetry(
                tracer_provider=tracers if self.SPANS else _nothing("trace").NoOpTracerProvider(),
                meter_provider=MeterProvider(metric_readers=[reader])
                if self.METRICS
                else _nothing("metrics").NoOpMeterProvider(),
            ),
        )


class OursUnsampled(OursForUser):
    """The same with a provider of spans whose sampler leaves every span out."""

    def __init__(self, target: Target) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

        from llm_provider import Telemetry

        super().__init__(target, telemetry=Telemetry(tracer_provider=TracerProvider(sampler=ALWAYS_OFF)))


class OursSpans(OursTraced):
    """The same with spans alone."""

    METRICS = False


class OursMetrics(OursTraced):
    """The same with metrics alone."""

    SPANS = False


class OursEmptySpan(OursForUser):
    """A call in a span without attributes, made by the benchmark: the least that OpenTelemetry costs."""

    def __init__(self, target: Target) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        tracers = TracerProvider()
        tracers.add_span_processor(BatchSpanProcessor(_counting_exporter()))
        self._tracer = tracers.get_tracer("benchmark")
        super().__init__(target, telemetry=False)

    async def call(self, prepared: Any) -> str:
        with self._tracer.start_as_current_span("chat"):
            return await super().call(prepared)


class OursUntraced(OursForUser):
    """A user id with every call, and OpenTelemetry off."""

    def __init__(self, target: Target) -> None:
        super().__init__(target, telemetry=False)


def _nothing(name: str) -> Any:
    import importlib

    return importlib.import_module(f"opentelemetry.{name}")


def _counting_exporter() -> Any:
    """An exporter that counts spans, in place of the network."""
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

    class Counting(SpanExporter):
        exported = 0

        def export(self, spans: Any) -> Any:
            self.exported += len(spans)
            return SpanExportResult.SUCCESS

    return Counting()


class LitellmForUser(Litellm):
    """`acompletion` with a user id."""

    async def call(self, prepared: Any) -> str:
        answer = await self._ask(messages=prepared, user=uuid.uuid4().hex, **self._fields)
        return answer.choices[0].message.content


class LitellmMetered(LitellmForUser):
    """The same, with a custom logger of litellm counting each call."""

    LOGGER: str | None = None

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        from litellm.integrations.custom_logger import CustomLogger

        observer = Observer(self.LOGGER)

        class Logger(CustomLogger):
            async def async_log_success_event(self, kwargs: Any, response: Any, start: Any, end: Any) -> None:
                seconds = (end - start).total_seconds()
                observer.note(kwargs["model"], kwargs["user"], response.usage.completion_tokens, seconds)

        self._litellm.callbacks = [Logger()]


class LitellmObserved(LitellmMetered):
    """The same, with a line in a file for each call."""

    LOGGER = "benchmark"


LITELLM = ("litellm", "openai", "aiohttp")

CLIENTS = [
    Offer("ours_user", "ours-openai3", OursForUser, OURS, ("openai",), "this library, observers off"),
    Offer("ours_metered", "ours-openai3", OursMetered, OURS, ("openai",), "this library, hook and metrics"),
    Offer("ours_observed", "ours-openai3", OursObserved, OURS, ("openai",), "this library, and a log"),
    Offer(
        "ours_untraced", "ours-openai2", OursUntraced, OURS, ("openai",), "this library, OpenTelemetry off"
    ),
    Offer(
        "ours_unsampled", "ours-openai2", OursUnsampled, OURS, ("openai",), "this library, no span sampled"
    ),
    Offer("ours_spans", "ours-openai2", OursSpans, OURS, ("openai",), "this library, spans"),
    Offer("ours_metrics", "ours-openai2", OursMetrics, OURS, ("openai",), "this library, metrics"),
    Offer("ours_traced", "ours-openai2", OursTraced, OURS, ("openai",), "this library, spans and metrics"),
    Offer(
        "ours_empty_span", "ours-openai2", OursEmptySpan, OURS, ("openai",), "an empty span around the call"
    ),
    Offer("litellm_user", "litellm", LitellmForUser, LITELLM, ("openai",), "litellm, observers off"),
    Offer("litellm_metered", "litellm", LitellmMetered, LITELLM, ("openai",), "litellm, hook and metrics"),
    Offer("litellm_observed", "litellm", LitellmObserved, LITELLM, ("openai",), "litellm, and a log"),
]
