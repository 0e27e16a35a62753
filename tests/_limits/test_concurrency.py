"""How many requests may be in flight: by argument, by environment, and by default."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import Client, RequestError, Response
from llm_provider._limits.concurrency import (
    UNBOUNDED,
    Concurrency,
    concurrency,
    concurrency_of_environment,
    default_concurrency,
)
from llm_provider.simulator import Simulator


@given(st.integers(1, 10**9))
def test_a_given_number_holds_from_the_first_request_on(most: int) -> None:
    assert concurrency(most) == Concurrency(most=most, at_once=most)


def test_without_a_number_there_is_no_limit_of_the_users() -> None:
    assert concurrency(None) is None


@pytest.mark.parametrize("wrong", [0, -1, True, 1.5, "8", [8]])
def test_a_number_that_is_none_is_refused(wrong: int) -> None:
    with pytest.raises(RequestError, match="max_concurrent must be an int of at least 1"):
        concurrency(wrong)


@pytest.mark.parametrize(("text", "most"), [("8", 8), (" 32 ", 32), ("", None), ("  ", None)])
def test_the_environment_sets_the_same_limit(
    monkeypatch: pytest.MonkeyPatch, text: str, most: int | None
) -> None:
    monkeypatch.setenv("LLM_PROVIDER_MAX_CONCURRENT", text)
    assert concurrency_of_environment() == concurrency(most)
    monkeypatch.delenv("LLM_PROVIDER_MAX_CONCURRENT")
    assert concurrency_of_environment() is None


@pytest.mark.parametrize("text", ["0", "-8", "8.5", "many", "٣"])
def test_a_text_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("LLM_PROVIDER_MAX_CONCURRENT", text)
    with pytest.raises(RequestError, match="LLM_PROVIDER_MAX_CONCURRENT must be an int of at least 1"):
        concurrency_of_environment()


PROGRAM = """
import resource, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), most))
from llm_provider._limits.concurrency import default_concurrency
print(*default_concurrency())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sockets are not files there")
@pytest.mark.parametrize(("files", "most"), [(32, 32), (128, 96), (400, 300)])
def test_the_default_is_bounded_by_the_files_that_a_process_may_open(files: int, most: int) -> None:
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(files)], capture_output=True, text=True, check=True
    )
    assert program.stdout.split() == [str(most), "8"]


def test_the_default_feels_its_way_and_threads_do_not() -> None:
    assert default_concurrency().at_once == 8 < default_concurrency().most <= 1000
    assert UNBOUNDED.at_once == UNBOUNDED.most == sys.maxsize


def test_a_batch_has_no_more_requests_in_flight(simulator: Simulator, own_cache: Path) -> None:
    """The simulator refuses a fourth request at once, and three are never refused."""
    simulator.configure(max_concurrent=3, latency=0.01)
    with Client(cache_dir=own_cache, max_concurrent=3) as client:
        results = client.call_many("gpt-6.1-sol", [f"What is {number}+0?" for number in range(30)])
        assert all(isinstance(result, Response) for result in results)
        assert simulator.ledger().rate_limited == 0
        results = client.call_many(
            "gpt-6.1-sol", [f"What is {number}+1?" for number in range(30)], max_concurrent=12, max_retries=30
        )
        assert all(isinstance(result, Response) for result in results)
        assert simulator.ledger().rate_limited > 0
