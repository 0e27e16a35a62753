"""When a client exports, the errors of its settings, and what is kept of calls that are observed."""

import gc

import pytest

from llm_provider import AskedCall, Client, RequestError, Telemetry
from llm_provider.simulator import Simulator
from support import RunScript


def test_calls_of_results_that_were_told_are_forgotten(simulator: Simulator) -> None:
    def kept() -> list[AskedCall]:
        gc.collect()
        return [call for call in gc.get_objects() if isinstance(call, AskedCall)]

    lines, of_other_tests = list[str](), kept()
    with Client(on_result=lambda result, call: lines.append(f"{call.model}: {result.text}")) as client:
        for number in range(3):
            client.call("gpt-6.1-sol", f"{number}+1?")
        assert lines == [f"gpt-6.1-sol: {number}" for number in (1, 2, 3)]
        assert kept() == of_other_tests


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, exports in (("1", True), ("off", False), ("", False)):
        monkeypatch.setenv("LLM_PROVIDER_OTEL", text)
        with Client() as client:
            assert bool(client._engine.events.listeners) is exports
    with Client(telemetry=Telemetry()) as client:
        assert client._engine.events.listeners
    monkeypatch.setenv("LLM_PROVIDER_OTEL", "perhaps")
    with pytest.raises(RequestError, match="LLM_PROVIDER_OTEL must be 1 or 0, not 'perhaps'"):
        Client()


def test_without_the_package_the_error_names_the_extra(run_script: RunScript) -> None:
    run_script(
        """
        import sys
        sys.modules["opentelemetry"] = None
        from llm_provider import Client, MissingDependencyError
        Client()
        try:
            Client(telemetry=True)
        except MissingDependencyError as error:
            assert "opentelemetry-api: pip install 'llm-provider-call[otel]'" in str(error), error
        else:
            raise AssertionError
        """
    )


def test_an_sdk_that_is_not_configured_changes_nothing(run_script: RunScript) -> None:
    run_script(
        """
        from llm_provider import Client
        import opentelemetry.sdk.trace
        client = Client()
        assert not client._engine.events.observer.find_providers()
        from opentelemetry import metrics, trace
        from opentelemetry.sdk.metrics import MeterProvider
        metrics.set_meter_provider(MeterProvider())
        assert client._engine.events.observer.find_providers()
        """
    )
