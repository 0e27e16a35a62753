"""What an observer gets of a call in the rarer cases: shared requests, several samples, deadlines."""

import logging
from concurrent.futures import ThreadPoolExecutor

import pytest

from llm_provider import APITimeoutError, Client
from llm_provider.simulator import Simulator

MODEL = "gpt-6.1-sol"


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "llm_provider.calls"]


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


def test_a_deadline_and_samples(
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
