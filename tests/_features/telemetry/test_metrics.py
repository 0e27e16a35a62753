"""The metrics of the GenAI conventions and our own, as readers of OpenTelemetry's SDK see them."""

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import prometheus_client
import pytest
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider

from llm_provider import BadRequestError, Client, Telemetry, track
from llm_provider._features.telemetry.metrics import _TOGETHER, DURATION_BUCKETS, TOKEN_BUCKETS
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-6.1-sol"


class Metered:
    """Clients whose metrics are read."""

    def __init__(self, cache: Path) -> None:
        self._reader = InMemoryMetricReader()
        self.telemetry = Telemetry(meter_provider=MeterProvider(metric_readers=[self._reader]))
        self.client = Client(cache_dir=cache, telemetry=self.telemetry)

    def points(self, name: str) -> list[dict[str, Any]]:
        """The data points of a metric."""
        data = self._reader.get_metrics_data()
        assert data is not None
        (scope,) = json.loads(data.to_json())["resource_metrics"][0]["scope_metrics"]
        metrics = [metric for metric in scope["metrics"] if metric["name"] == name]
        assert len(metrics) == 1, [metric["name"] for metric in scope["metrics"]]
        points: list[dict[str, Any]] = metrics[0]["data"]["data_points"]
        return points

    def sums(self, name: str, attribute: str) -> dict[Any, float]:
        """The values of a metric by one of its attributes."""
        return {
            point["attributes"].get(attribute): point.get("value", point.get("sum"))
            for point in self.points(name)
        }


@pytest.fixture
def metered(simulator: Simulator, own_cache: Path) -> Iterator[Metered]:
    metered = Metered(own_cache)
    with metered.client:
        yield metered


def test_what_is_counted(metered: Metered, simulator: Simulator) -> None:
    client = metered.client
    simulator.inject(Fault(status=500), times=1)
    answer = client.call(MODEL, "Hi")
    assert client.call(MODEL, "Hi").cached
    simulator.inject(Fault(status=400), times=1)
    with pytest.raises(BadRequestError):
        client.call(MODEL, "bad")

    duration = {
        point["attributes"].get("error.type"): point
        for point in metered.points("gen_ai.client.operation.duration")
    }
    # A stored answer was not sent, so its microseconds are no duration of an operation.
    assert {name: point["count"] for name, point in duration.items()} == {None: 1, "BadRequestError": 1}
    assert duration[None]["explicit_bounds"] == list(DURATION_BUCKETS)
    assert duration[None]["sum"] >= answer.timing.total - 0.001
    tokens = metered.points("gen_ai.client.token.usage")
    assert {point["attributes"]["gen_ai.token.type"]: (point["count"], point["sum"]) for point in tokens} == {
        "input": (1, answer.usage.input_tokens),
        "output": (1, answer.usage.output_tokens),
    }
    assert tokens[0]["explicit_bounds"] == list(TOKEN_BUCKETS)
    (cost,) = metered.points("llm_provider.cost")
    assert cost["value"] == pytest.approx(float(client.usage.spent))
    assert cost["attributes"] == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": MODEL,
        "server.address": "127.0.0.1",
        "server.port": simulator.port,
    }
    # The request that failed with 500 may have been billed.
    assert answer.cost is None
    assert metered.sums("llm_provider.cost.unknown", "gen_ai.request.model") == {MODEL: 1}
    assert metered.sums("llm_provider.cache.lookups", "llm_provider.cache.result") == {"hit": 1, "miss": 2}
    assert metered.sums("llm_provider.attempts", "error.type") == {
        None: 1, "InternalServerError": 1, "BadRequestError": 1
    }  # fmt: skip
    assert metered.sums("llm_provider.queue.duration", "gen_ai.request.model")[MODEL] > 0
    assert metered.sums("llm_provider.requests.in_flight", "gen_ai.request.model") == {MODEL: 0}
    assert metered.sums("llm_provider.concurrency.limit", "gen_ai.request.model")[MODEL] > 0


def test_no_attribute_has_many_values(metered: Metered) -> None:
    for _ in range(3):
        with track(uuid.uuid4().hex):
            metered.client.call(
                MODEL, uuid.uuid4().hex, user=uuid.uuid4().hex, metadata={"id": uuid.uuid4().hex}
            )
    for name in ("gen_ai.client.operation.duration", "llm_provider.cost", "llm_provider.cache.lookups"):
        assert len(metered.points(name)) == 1


def test_no_call_is_the_exemplar_of_the_calls_recorded_with_it(simulator: Simulator, own_cache: Path) -> None:
    reader = InMemoryMetricReader()
    meters = MeterProvider(metric_readers=[reader])
    telemetry = Telemetry(tracer_provider=TracerProvider(), meter_provider=meters)
    with Client(cache_dir=own_cache, telemetry=telemetry) as client:
        for number in range(_TOGETHER // 2 + 1):
            client.call(MODEL, str(number))
    data = reader.get_metrics_data()
    assert data is not None
    metrics = {each.name: each for each in data.resource_metrics[0].scope_metrics[0].metrics}
    for name in ("gen_ai.client.operation.duration", "gen_ai.client.token.usage"):
        points = metrics[name].data.data_points
        assert points
        assert [point.exemplars for point in points if point.exemplars] == []


def test_clients_of_one_provider_share_its_instruments(metered: Metered, tmp_path: Path) -> None:
    metered.client.call(MODEL, "Hi")
    with Client(cache_dir=tmp_path / "other", telemetry=metered.telemetry) as other:
        other.call(MODEL, "Hi")
        assert metered.sums("llm_provider.attempts", "gen_ai.request.model") == {MODEL: 2}
    # The requests of a forked child are its own.
    child = os.fork()
    if child == 0:
        engine = metered.client._engine
        os._exit(1 if engine.statistics() or engine.events.observer.metrics._attempts.rows() else 0)
    assert os.waitpid(child, 0)[1] == 0


def test_prometheus_reads_the_metrics(simulator: Simulator, own_cache: Path) -> None:
    provider = MeterProvider(metric_readers=[PrometheusMetricReader()])
    try:
        with Client(cache_dir=own_cache, telemetry=Telemetry(meter_provider=provider)) as client:
            answer = client.call(MODEL, "Hi")
            page = prometheus_client.generate_latest().decode()
    finally:
        provider.shutdown()
    lines = [line for line in page.splitlines() if f'gen_ai_request_model="{MODEL}"' in line]
    samples = {line.partition("{")[0]: float(line.rpartition(" ")[2]) for line in lines}
    assert samples["gen_ai_client_operation_duration_seconds_count"] == 1
    assert samples["llm_provider_cost_USD_total"] == pytest.approx(answer.cost)
    assert samples["llm_provider_attempts_total"] == 1
