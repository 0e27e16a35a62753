"""Batches: bounded memory, errors of the inputs, interruption."""

import itertools
import re
import signal
import subprocess
from collections.abc import Iterator

import pytest

from llm_provider import Client
from llm_provider.simulator import Fault, Simulator
from support import RunScript, TooSlowError, patiently, wait_until

MODEL = "gpt-6.1-sol"


def test_an_endless_generator_is_read_only_as_results_are_taken(client: Client, simulator: Simulator) -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        for number in itertools.count():
            read += 1
            yield f"endless {number}"

    results = client.iter_many(MODEL, endless(), max_concurrent=4)
    for _ in range(50):
        next(results)
    assert read <= 50 + 2 * 4 + 16 + 1
    results.close()  # type: ignore[attr-defined]  # it is a generator
    assert wait_until(lambda: simulator.ledger().in_flight == 0)
    assert simulator.ledger().peak_in_flight <= 4


def test_an_error_of_the_inputs_is_raised_after_what_was_started(client: Client) -> None:
    def broken() -> Iterator[str]:
        yield from ("one", "two")
        raise OSError("the file ended")

    results = client.iter_many(MODEL, broken())
    seen = []
    with pytest.raises(OSError, match="the file ended"):
        for index, _ in results:
            seen.append(index)
    assert sorted(seen) == [0, 1]


def test_max_concurrent_bounds_a_batch_and_may_exceed_a_clients(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=0.05)
    client.call_many(MODEL, [f"few {number}" for number in range(20)], max_concurrent=3)
    assert simulator.ledger().peak_in_flight <= 3

    def attempt(longer: float) -> None:
        simulator.configure(latency=0.3 * longer)
        questions = [f"many {number}" for number in range(50)]
        client.call_many(MODEL, questions, max_concurrent=50, cache="off")
        assert simulator.ledger().peak_in_flight <= 50
        if simulator.ledger().peak_in_flight <= 32:
            raise TooSlowError("the first were answered before the last were sent")

    patiently(attempt)


@pytest.mark.long
def test_ten_thousand_calls_in_little_memory(simulator: Simulator, run_script: RunScript) -> None:
    grown = run_script(
        """
        import os
        from llm_provider import Client

        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

        with Client(max_concurrent=64) as client:
            client.call_many("gpt-6.1-sol", ["warm up", "twice"])
            before = resident()
            results = client.call_many("gpt-6.1-sol", (f"question {number}" for number in range(10_000)))
            assert [result.text for result in results] == [f"echo: question {n}" for n in range(10_000)]
            print(resident() - before)
        """
    )
    assert float(grown.stdout) < 50


@pytest.mark.parametrize(
    "statement",
    [
        "llm_provider.call_many(['gpt-6.1-sol', 'gpt-5.5'], ['1+1?', 'late'], cache='off')",
        "asyncio.run(llm_provider.acall_many(['gpt-6.1-sol', 'gpt-5.5'], ['1+1?', 'late'], cache='off'))",
    ],
)
def test_ctrl_c_says_what_is_answered(simulator: Simulator, statement: str, warm_python: list[str]) -> None:
    simulator.inject(Fault(hang=True), times=None, match="late")
    code = f"import asyncio, llm_provider; {statement}"
    program = subprocess.Popen([*warm_python, "-c", code], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: simulator.ledger().answered == 2 and simulator.ledger().in_flight == 2)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    said = r"^[012] of 4 calls are answered; the same call asks all of them, as cache='off' stores nothing$"
    assert re.search(said, errors, re.MULTILINE)
