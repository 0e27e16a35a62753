"""Waits of more than a second are told once for all calls that wait for the same reason."""

import asyncio
import contextlib
import logging
import re
import sys
from collections.abc import Iterator

import pytest

from llm_provider import Client, RequestError
from llm_provider._core.events.events import LEAST_SECONDS, WAITS, Waits
from llm_provider._core.requests.checks import RateControl
from llm_provider.simulator import Fault, Simulator
from support import TooSlowError, patiently

MODEL = "gpt-6.1-sol"


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """A program that has not configured `logging`. In a fixture, pytest would add its handler afterwards."""
    WAITS.propagate = False
    yield
    WAITS.propagate = True


def test_equal_waits_are_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    with unlogged():
        waits = Waits(show=True)
        for _ in range(5):
            waits.tell_retry("openai m", 8.04, "connection refused", 3, 36)
        waits.tell("openai m", "pause", "2 calls wait")
        assert capsys.readouterr().err == (
            "llm_provider: openai m: retrying in 8 s: connection refused, attempt 3; 36 more calls wait\n"
        )
        start, more = "llm_provider: openai m", " (4 more retries since the last line)"
        # A later attempt is told at once, and so is another scope and another reason.
        waits.tell_retry("openai m", 2.1, "timeout", 4, 1)
        waits.tell_retry("openai n", 75, "overloaded (HTTP 503)", 1, 0)
        waits.tell("openai m", "budget", "no room")
        assert capsys.readouterr().err.splitlines() == [
            f"{start}: retrying in 2 s: timeout, attempt 4; 1 more call waits{more}",
            "llm_provider: openai n: retrying in 1 min 15 s: overloaded (HTTP 503), attempt 1",
            "llm_provider: openai m: no room",
        ]


def test_waits_can_be_switched_off(capsys: pytest.CaptureFixture[str]) -> None:
    with unlogged():
        waits = Waits(show=False)
        waits.tell_retry("openai m", 8, "timeout", 1, 0)
        assert (capsys.readouterr().err, waits.current) == ("", "")


def test_a_program_that_logs_has_waits_in_its_log_alone(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = Waits(show=True)
    waits.tell_retry("openai m", 8, "timeout", 1, 0)
    waits.tell("openai m", "full", "3 calls wait")
    assert [(record.name, record.levelno, record.getMessage()) for record in caplog.records] == [
        ("llm_provider.waits", logging.WARNING, "openai m: retrying in 8 s: timeout, attempt 1")
    ]
    assert capsys.readouterr().err == ""


def test_closed_standard_error_fails_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    with unlogged():
        monkeypatch.setattr(sys, "stderr", None)
        Waits(show=True).tell_retry("openai m", 8, "timeout", 1, 0)


async def test_a_block_that_takes_longer_than_a_second_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with unlogged():
        waits = Waits(show=True)
        with waits.during("openai m", "budget", "no room"):
            await asyncio.sleep(0)
        with waits.during("openai m", "elsewhere", "another process"):
            await asyncio.sleep(LEAST_SECONDS + 0.1)
        assert capsys.readouterr().err == "llm_provider: openai m: another process\n"


def test_calls_that_wait_are_told(simulator: Simulator, caplog: pytest.LogCaptureFixture) -> None:
    """One call is refused, the others wait for the end of the same pause. Shorter waits are not told."""
    with Client(cache="off") as client:
        simulator.inject(Fault(status=429, retry_after="1.3"), times=1)
        client.call_many(MODEL, [str(number) for number in range(6)], max_concurrent=1)
        simulator.inject(Fault(status=429, retry_after="0.1"), times=1)
        client.call(MODEL, "Hi")
    (line,) = [record.getMessage() for record in caplog.records if record.name == "llm_provider.waits"]
    # A slow machine has less than 1.3 s left.
    reason = r"retrying in 1\.[0-3] s: rate limited \(HTTP 429\), attempt 1; \d more calls wait"
    assert re.fullmatch(f"openai {MODEL}: {reason}", line), line


@pytest.mark.parametrize("rate_control", ["adaptive", "shared", "independent"])
@pytest.mark.sampled(3)
async def test_the_growth_of_our_own_rate_is_no_limit_of_the_provider(
    simulator: Simulator, caplog: pytest.LogCaptureFixture, rate_control: RateControl
) -> None:
    caplog.set_level(logging.DEBUG, "llm_provider.waits")
    simulator.configure(latency=1.2)

    async with Client(cache="off", rate_control=rate_control) as client:
        await asyncio.gather(*(client.acall(MODEL, str(number)) for number in range(300)))
    lines = [record.getMessage() for record in caplog.records if record.name == "llm_provider.waits"]
    assert lines
    assert not [line for line in lines if "rate limit" in line]
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("headers", [True, False])
@pytest.mark.sampled(2)
def test_a_limit_that_the_provider_shows_is_told(
    simulator: Simulator, caplog: pytest.LogCaptureFixture, headers: bool
) -> None:
    simulator.configure(requests_per_minute=240, burst=5, rate_limit_headers=headers)

    def attempt(longer: float) -> None:
        with Client(cache="off") as client:
            prompts = [str(number) for number in range(60)]
            client.call_many(MODEL, prompts, max_concurrent=60, deadline=4 * longer)
        if "for the provider's rate limit" not in caplog.text:
            raise TooSlowError("every call was refused before the limit was known")

    patiently(attempt)


def test_the_environment_switches_waits_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_PROVIDER_SHOW_WAITS", "0")
    with Client() as client, Client(show_waits=True) as other:
        assert (client._engine.settings.show_waits, other._engine.settings.show_waits) == (False, True)
    monkeypatch.setenv("LLM_PROVIDER_SHOW_WAITS", "sometimes")
    with pytest.raises(RequestError, match="LLM_PROVIDER_SHOW_WAITS must be 1 or 0, not 'sometimes'"):
        Client()
