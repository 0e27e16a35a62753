"""When a client exports, the errors of its settings, and what is kept of calls that are observed."""

import gc
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from llm_provider import APITimeoutError, AskedCall, BadRequestError, Client, RequestError, Telemetry, track
from llm_provider._core.events.events import ROOT, is_configured, reason
from llm_provider.simulator import Fault, Simulator
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


MODEL = "gpt-6.1-sol"


@pytest.fixture
def restored() -> Iterator[None]:
    """The logger as it was, after the environment has changed it."""
    handlers, level = list(ROOT.handlers), ROOT.level
    yield
    ROOT.handlers[:] = handlers
    ROOT.setLevel(level)


def lines(caplog: pytest.LogCaptureFixture, level: int = logging.INFO) -> list[str]:
    records = [
        record for record in caplog.records if record.name == "llm_provider.calls" and record.levelno == level
    ]
    return [record.getMessage() for record in records]


def test_a_line_for_each_call(client: Client, simulator: Simulator, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "llm_provider")
    with track("first"):
        client.call(MODEL, "a secret question")
    client.call(MODEL, "a secret question")
    client.embed("text-embedding-3-small", ["one", "two"])
    simulator.inject(Fault(status=400, message="the secret of the answer"), times=1)
    with pytest.raises(BadRequestError):
        client.call("openai/gpt-6.1-sol", "bad", cache="off")
    client.call_many(MODEL, ["a secret question", "another"])
    first, second, embedded, refused, *batch = lines(caplog)
    start = f"call operation=chat model={MODEL} provider=openai outcome=ok seconds="
    assert first.startswith(start)
    assert " input_tokens=5 output_tokens=6 usd=0.00007 cached=false attempts=1 " in first
    assert first.endswith(" tag=first")
    assert " usd=0 cached=true attempts=0 " in second
    assert embedded.startswith("call operation=embeddings model=text-embedding-3-small ")
    assert " outcome=BadRequestError " in refused
    assert refused.endswith(' usd=0 attempts=1 reason="BadRequestError (HTTP 400)" status=400')
    assert sorted("cached=true" in line for line in batch) == [False, True]
    assert "secret" not in caplog.text
    fields = caplog.records[0].__dict__["llm_provider"]
    assert (fields["model"], fields["usd"], fields["cached"]) == (MODEL, 0.00007, False)


def test_a_shared_request_is_paid_once(
    client: Client, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "llm_provider")
    simulator.configure(latency=0.5)
    with ThreadPoolExecutor(3) as threads:
        list(threads.map(lambda _: client.call(MODEL, "Hi"), range(3)))
    assert sorted((" cached=true " in line, " attempts=1" in line) for line in lines(caplog)) == [
        (False, True), (True, False), (True, False)
    ]  # fmt: skip


def test_a_line_of_samples_and_of_a_deadline(
    client: Client, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "llm_provider")
    client.call(MODEL, "Hi", n=2, temperature=1)
    client.call(MODEL, "Hi", n=2, temperature=1)
    simulator.configure(latency=30)
    with pytest.raises(APITimeoutError):
        client.call(MODEL, "late", deadline=0.2)
    first, hit, late = lines(caplog)
    assert " outcome=ok " in first
    assert " cached=true attempts=0 " in hit
    assert " outcome=APITimeoutError " in late
    assert 'reason="timeout of 0.2 s (deadline)"' in late
    assert reason(KeyboardInterrupt("secret")) == "KeyboardInterrupt"


def test_requests_are_logged_for_debugging(
    client: Client, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "llm_provider")
    simulator.inject(Fault(status=500), times=1)
    client.call(MODEL, "Hi")
    failed, answered = lines(caplog, logging.DEBUG)
    assert " attempt=1 outcome=InternalServerError status=500 waited=" in failed
    assert " retry_in=" in failed
    assert " attempt=2 outcome=ok waited=" in answered


def test_content_only_with_its_switch(
    simulator: Simulator, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO, "llm_provider")
    monkeypatch.setenv("LLM_PROVIDER_LOG_CONTENT", "1")
    with Client(cache="off") as client:
        client.call(MODEL, "a question")
    (line,) = lines(caplog)
    assert '\\"content\\":\\"a question\\"' in line
    assert '\\"content\\":\\"echo: a question\\"' in line


@pytest.mark.usefixtures("restored")
def test_the_environment_installs_a_handler_once(
    simulator: Simulator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LLM_PROVIDER_LOG", "INFO")
    with Client(cache="off"), Client(cache="off") as client:
        client.call(MODEL, "Hi")
    (line,) = capsys.readouterr().err.splitlines()
    assert f" INFO llm_provider.calls: call operation=chat model={MODEL} " in line


def test_a_wrong_level_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_PROVIDER_LOG", "verbose")
    with pytest.raises(
        RequestError, match="LLM_PROVIDER_LOG must be one of debug, info, warning, not 'verbose'"
    ):
        Client()


def test_who_configures_logging() -> None:
    parent, child = logging.getLogger("a_parent"), logging.getLogger("a_parent.child")
    parent.propagate = False
    child.addHandler(logging.NullHandler())
    assert not is_configured(child)
    parent.addHandler(logging.StreamHandler())
    assert is_configured(child)
    child.propagate = False
    assert not is_configured(child)
