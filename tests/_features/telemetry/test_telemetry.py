"""When a client exports, and the errors of its settings."""

import pytest

from llm_provider import Client, RequestError, Telemetry
from support import RunScript


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, exports in (("1", True), ("off", False), ("", False)):
        monkeypatch.setenv("LLM_PROVIDER_OTEL", text)
        with Client() as client:
            assert client._engine.observer.is_on is exports
    with Client(telemetry=Telemetry()) as client:
        assert client._engine.observer.is_on
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
        assert not client._engine.observer.find_providers()
        from opentelemetry import metrics, trace
        from opentelemetry.sdk.metrics import MeterProvider
        metrics.set_meter_provider(MeterProvider())
        assert client._engine.observer.find_providers()
        """
    )
