"""Every attribute and metric that is emitted has a name of the GenAI conventions, or one of our own."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from llm_provider import BadRequestError, Client, Telemetry
from llm_provider._features.telemetry.spans import SCHEMA_URL
from llm_provider.simulator import Fault, Simulator
from support import ask

PAGE = Path(__file__).parents[2] / "docs" / "observability.md"

# From the registry of https://github.com/open-telemetry/semantic-conventions-genai, revision `SCHEMA_URL`:
# the attributes of the spans of inference, embeddings and tools, and the metrics of clients.
ATTRIBUTES = frozenset({
    "gen_ai.embeddings.dimension.count", "gen_ai.input.messages", "gen_ai.operation.name",
    "gen_ai.output.messages", "gen_ai.output.type", "gen_ai.provider.name", "gen_ai.request.choice.count",
    "gen_ai.request.encoding_formats", "gen_ai.request.frequency_penalty", "gen_ai.request.max_tokens",
    "gen_ai.request.model", "gen_ai.request.presence_penalty", "gen_ai.request.reasoning.level",
    "gen_ai.request.seed", "gen_ai.request.stop_sequences", "gen_ai.request.stream",
    "gen_ai.request.temperature", "gen_ai.request.top_k", "gen_ai.request.top_p",
    "gen_ai.response.finish_reasons", "gen_ai.response.id", "gen_ai.response.model",
    "gen_ai.response.time_to_first_chunk", "gen_ai.system_instructions", "gen_ai.token.type",
    "gen_ai.tool.call.arguments", "gen_ai.tool.call.id", "gen_ai.tool.call.result",
    "gen_ai.tool.definitions", "gen_ai.tool.description", "gen_ai.tool.name", "gen_ai.tool.type",
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens", "gen_ai.usage.reasoning.output_tokens",
    "openai.response.system_fingerprint", "openai.response.service_tier",
    "error.type", "http.response.status_code", "server.address", "server.port",
})  # fmt: skip
METRICS = frozenset({
    "gen_ai.client.operation.duration", "gen_ai.client.operation.time_per_output_chunk",
    "gen_ai.client.operation.time_to_first_chunk", "gen_ai.client.token.usage",
})  # fmt: skip

MODELS: dict[str, dict[str, Any]] = {
    "gpt-5.5": {
        "reasoning_effort": "none",
        "response_format": {"type": "json_object"},
        "temperature": 0.5,
        "seed": 1,
    },
    "claude-haiku-4-5": {"max_tokens": 900, "top_k": 5},
    "gemini-2.5-flash": {"top_k": 5, "top_p": 0.5, "frequency_penalty": 0.5, "presence_penalty": 0.5},
}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


TOOLS: dict[str, Any] = {"tools": [add], "max_tool_rounds": 2}
WITH_TOOL = 'use the tool add({"a": 2, "b": 3})'


def use(client: Client, simulator: Simulator, model: str, way: str) -> None:
    """Use a client in one of the `WAYS`."""
    parameters = MODELS[model]
    if way == "tools":
        ask(client, "call", model, WITH_TOOL, **parameters, **TOOLS)
    elif way == "embed":
        client.embed("text-embedding-3-small", ["a"], dimensions=8)
    elif way == "batch":
        ask(client, "call_many", model, delivery="batch", **parameters)
    elif way == "hit":
        ask(client, "call", model, **parameters)
        assert ask(client, "stream", model, **parameters).cached
    elif way == "error":
        simulator.inject(Fault(status=400), times=1)
        with pytest.raises(BadRequestError):
            ask(client, "call", model, "bad", **parameters)
    else:
        ask(client, way, model, **parameters)


WAYS = ("call", "acall", "stream", "astream", "call_many", "tools", "embed", "batch", "hit", "error")


class Exported:
    """A client whose spans and metrics are kept."""

    def __init__(self, cache: Path, **settings: Any) -> None:
        self.exporter, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        telemetry = Telemetry(
            tracer_provider=tracers, meter_provider=MeterProvider(metric_readers=[self._reader])
        )
        self.client = Client(cache_dir=cache, telemetry=telemetry, **settings)

    def scopes(self) -> list[dict[str, Any]]:
        """The metrics of each scope."""
        data = self._reader.get_metrics_data()
        assert data is not None
        scopes: list[dict[str, Any]] = json.loads(data.to_json())["resource_metrics"][0]["scope_metrics"]
        return scopes


@pytest.fixture(params=[False, True], ids=["without content", "with content"])
def exported(request: pytest.FixtureRequest, simulator: Simulator, own_cache: Path) -> Iterator[Exported]:
    exported = Exported(own_cache, log_content=request.param)
    with exported.client:
        yield exported


def is_known(name: str) -> bool:
    return name in ATTRIBUTES or name in METRICS or name.startswith("llm_provider.")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(7)
def test_names_are_of_the_conventions(exported: Exported, simulator: Simulator, model: str, way: str) -> None:
    use(exported.client, simulator, model, way)
    spans = exported.exporter.get_finished_spans()
    assert bool(spans) is (way != "batch")
    for span in spans:
        assert span.instrumentation_scope is not None
        assert span.instrumentation_scope.schema_url == SCHEMA_URL
        of_events = [name for event in span.events for name in event.attributes or {}]
        assert all(map(is_known, [*(span.attributes or {}), *of_events]))
        operation = (span.attributes or {})["gen_ai.operation.name"]
        of_what = "gen_ai.tool.name" if operation == "execute_tool" else "gen_ai.request.model"
        assert span.name == f"{operation} {(span.attributes or {})[of_what]}"
        assert span.kind is (SpanKind.INTERNAL if operation == "execute_tool" else SpanKind.CLIENT)
    (scope,) = exported.scopes()
    assert scope["schema_url"] == scope["scope"]["schema_url"] == SCHEMA_URL
    for metric in scope["metrics"]:
        assert is_known(metric["name"])
        assert all(
            map(is_known, [name for point in metric["data"]["data_points"] for name in point["attributes"]])
        )


@pytest.mark.parametrize("way", ["call", "acall", "stream", "astream", "call_many", "hit"])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.sampled(5)
def test_only_streams_have_a_first_chunk(
    exported: Exported, simulator: Simulator, model: str, way: str
) -> None:
    use(exported.client, simulator, model, way)
    attributes = [dict(span.attributes or {}) for span in exported.exporter.get_finished_spans()]
    streamed = {"stream": [True], "astream": [True], "hit": [None, True]}.get(way, [None] * len(attributes))
    assert [names.get("gen_ai.request.stream") for names in attributes] == streamed
    is_sent = way.endswith("stream")
    seconds = [names["gen_ai.response.time_to_first_chunk"] for names in attributes if
               "gen_ai.response.time_to_first_chunk" in names]  # fmt: skip
    assert len(seconds) == is_sent
    (scope,) = exported.scopes()
    points = [
        point
        for metric in scope["metrics"]
        if metric["name"] == "gen_ai.client.operation.time_to_first_chunk"
        for point in metric["data"]["data_points"]
    ]
    assert [point["sum"] for point in points] == seconds
    assert all(second > 0 for second in seconds)


def test_the_page_names_the_revision_and_every_name() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert SCHEMA_URL in page
    for name in ("gen_ai.request.stream", "gen_ai.response.time_to_first_chunk", "execute_tool",
                 "gen_ai.client.operation.time_to_first_chunk", "gen_ai.tool.call.result"):  # fmt: skip
        assert name in page
