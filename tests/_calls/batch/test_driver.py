"""Batches: order, bounded memory, failures in place, interruption."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_provider import APIConnectionError, Client, LLMError, MissingAPIKeyError, Response
from llm_provider._calls.batch.driver import END, Driver, Lane, Observers, iterate
from llm_provider._calls.batch.worker_pool import LiveWork
from llm_provider._calls.early_stop import EarlyStop
from llm_provider._runtime import event_loop
from llm_provider._types.messages import Prompt
from llm_provider.simulator import Fault, Simulator
from support import RunScript, TooSlowError, finish, patiently, wait_until

MODEL = "gpt-6.1-sol"


def texts(results: list[Response | LLMError]) -> list[str]:
    assert all(isinstance(result, Response) for result in results), results
    return [result.text for result in results if isinstance(result, Response)]


def test_results_are_in_the_order_of_the_inputs(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=0.01, latency_jitter=0.05)
    questions = [f"What is {number}+1?" for number in range(60)]
    expected = [str(number + 1) for number in range(60)]
    assert texts(client.call_many(MODEL, questions)) == expected
    assert texts(asyncio.run(client.acall_many(MODEL, iter(questions)))) == expected
    assert simulator.ledger().requests == 60


def test_asynchronous_inputs(client: Client) -> None:
    async def questions() -> AsyncIterator[str]:
        for number in range(5):
            await asyncio.sleep(0.001)
            yield f"What is {number}+0?"

    assert texts(asyncio.run(client.acall_many(MODEL, questions()))) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize("way", ["call_many", "acall_many"])
def test_a_failure_does_not_end_the_batch(client: Client, simulator: Simulator, way: str) -> None:
    simulator.inject(Fault(status=400), times=None, match="number 3")
    inputs: list[Prompt] = [f"number {number}" for number in range(6)]
    inputs[5] = None  # type: ignore[call-overload]  # what a careless script passes
    results = finish(getattr(client, way)(MODEL, inputs))
    assert [type(result).__name__ for result in results] == [
        *["Response"] * 3, "BadRequestError", "Response", "RequestError"
    ]  # fmt: skip
    assert simulator.ledger().requests == 5


def test_a_missing_key_is_a_result_of_the_calls_that_need_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    (result,) = client.call_many(MODEL, ["Hi"])
    assert isinstance(result, MissingAPIKeyError)
    assert "OPENAI_API_KEY" in str(result)


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


def test_an_endless_generator_from_a_loop(client: Client) -> None:
    async def first_fifty() -> int:
        count = 0
        results = client.aiter_many(MODEL, (f"endless {number}" for number in itertools.count()))
        async for _ in results:
            count += 1
            if count == 50:
                await results.aclose()  # type: ignore[attr-defined]  # it is a generator
                break
        return count

    assert asyncio.run(first_fifty()) == 50


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


def test_max_concurrent_bounds_a_batch_and_may_exceed_the_clients(
    client: Client, simulator: Simulator
) -> None:
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


def test_an_interrupted_batch_keeps_what_was_answered(
    simulator: Simulator, own_cache: Path, warm_python: list[str]
) -> None:
    # The last ones have no answer while the batch runs for the first time.
    simulator.inject(Fault(hang=True), times=None, match="late")
    prompts = [*(f"item {number}" for number in range(150)), *(f"late {number}" for number in range(100))]
    code = f"from llm_provider import call_many; call_many('gpt-6.1-sol', {prompts}, max_concurrent=32)"
    program = subprocess.Popen([*warm_python, "-c", code], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: simulator.ledger().answered == 150)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    answered, said = re.findall(r"^(\d+) of 250 calls (.*)$", errors, re.MULTILINE)[0]
    assert said == "are answered; the same call asks the rest and takes the answers from the cache"
    # Some answers may have come that the batch has not handed out yet.
    assert 0 < int(answered) <= 150
    simulator.clear()
    subprocess.run([*warm_python, "-c", code], check=True, env=dict(os.environ))
    # Not one that was answered and had reached the process is asked for again; those whose answer was
    # on the wire when the signal came are.
    assert 100 <= simulator.ledger().requests <= 100 + 32


@pytest.mark.parametrize(
    "statement",
    [
        "llm_provider.call_many(['gpt-6.1-sol', 'gpt-5.5'], ['1+1?', 'late'], cache='off')",
        "asyncio.run(llm_provider.acall_many(['gpt-6.1-sol', 'gpt-5.5'], ['1+1?', 'late'], cache='off'))",
    ],
)
def test_an_interrupt_says_what_is_answered(
    simulator: Simulator, statement: str, warm_python: list[str]
) -> None:
    simulator.inject(Fault(hang=True), times=None, match="late")
    code = f"import asyncio, llm_provider; {statement}"
    program = subprocess.Popen([*warm_python, "-c", code], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: simulator.ledger().answered == 2 and simulator.ledger().in_flight == 2)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    said = r"^[012] of 4 calls are answered; the same call asks all of them, as cache='off' stores nothing$"
    assert re.search(said, errors, re.MULTILINE)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["hit", "late", "failing", "bad", "broken"]), max_size=40), st.integers(1, 7))
def test_every_input_has_one_result(kinds: list[str], max_in_flight: int) -> None:
    ready = Response(choices=(), usage=None, model="m", provider="p")  # type: ignore[arg-type]  # not looked at
    started = finished = 0

    def begin(prompts: Iterable[Prompt]) -> Iterator[Response | LLMError | str]:
        nonlocal started
        for prompt in prompts:
            started += 1
            assert started - finished <= work.width + 1
            if prompt == "bad":
                yield APIConnectionError("broken")
            else:
                yield ready if prompt == "hit" else str(prompt)

    async def send(kind: str) -> Response:
        await asyncio.sleep(0)
        if kind == "failing":
            raise APIConnectionError("broken")
        if kind == "broken":
            raise ZeroDivisionError
        return ready

    work = LiveWork(begin, send, event_loop.cancel_task, max_in_flight, lambda *_: None)
    results: dict[int, object] = {}
    try:
        for index, result in iterate([(work, kinds)], Observers()):
            finished += 1
            assert index not in results
            results[index] = result
    except ZeroDivisionError:
        # A fault of our own is no result: it is raised, and ends the batch.
        assert "broken" in kinds
    else:
        assert "broken" not in kinds
        assert sorted(results) == list(range(len(kinds)))
    for index, result in results.items():
        assert isinstance(result, APIConnectionError) == (kinds[index] in ("bad", "failing"))


class Recorder:
    """A model whose calls are noted, and a carrier that answers nothing by itself."""

    max_in_flight, width, sends_as_whole = 2, 3, False

    def __init__(self) -> None:
        self.early_stop, self.lookup, self.done = EarlyStop(), iter, list[object]()

    def open(self, call: Any, deliver: Any, *, is_list: bool, waits: bool) -> Recorder:
        self.deliver = deliver
        self.done.append("open")
        return self

    def give(self, index: int, call: object) -> None:
        self.done.append(index)

    def flush(self) -> None:
        self.done.append("flush")

    def cancel(self) -> None:
        self.done.append("cancel")


class Whole(Recorder):
    sends_as_whole = True


ANSWER = Response(choices=(), usage=None, model="m", provider="p")  # type: ignore[arg-type]  # not looked at


def drive(driver: Driver, arrivals: list[Any], inputs: dict[int, Any]) -> Iterator[Any]:
    """What a driver says is to be done. `inputs` has those of each lane, `arrivals` what finishes."""
    sources = [enumerate(inputs[number], lane.offset) for number, lane in enumerate(driver.lanes)]
    for step in driver.steps(lambda: True):
        if isinstance(step, Lane):
            number, answered = driver.lanes.index(step), None
            try:
                answered = step.take(next(sources[number], None))
            except OSError as error:
                step.end(error)
            yield ("read", number)
            if answered is not None:
                yield answered
        elif step is None:
            driver.arrived = arrivals.pop(0)
            yield "wait"
        else:
            yield step


def test_the_driver_reads_ahead_hands_out_and_collects() -> None:
    work: Any = Recorder()
    driver = Driver([(work, ["a", "b", "c", "d", "e"])], print, waits=True)
    (lane,) = driver.lanes
    arrivals = [(lane, [(0, ANSWER), (2, ANSWER)]), (lane, [(3, ANSWER), (4, ANSWER)])]
    steps = list(drive(driver, arrivals, {0: ["call", ANSWER, "call", "call", "call"]}))
    read = ("read", 0)
    # Three calls are under way, so the fifth input waits until one of them has ended.
    assert steps[:6] == [read, read, (1, ANSWER), read, read, "wait"]
    assert steps[6:] == [(0, ANSWER), (2, ANSWER), read, read, "wait", (3, ANSWER), (4, ANSWER)]
    driver.close()
    assert work.done == ["open", 0, 2, 3, "flush", 4, "flush", "cancel"]
    assert (work.early_stop.stored, work.early_stop.to_send) == (1, 4)


def test_a_batch_is_sent_as_a_whole_and_its_error_comes_when_the_others_have_ended() -> None:
    works: Any = [Whole(), Whole()]
    driver = Driver([(works[0], ["a"]), (works[1], ["b", "c"])], print, waits=True)
    first, second = driver.lanes
    failed = APIConnectionError("broken")
    arrivals = [(first, [(END, failed)]), (second, [(1, ANSWER), (2, ANSWER)]), (second, [(END, None)])]
    steps: list[Any] = []
    with pytest.raises(APIConnectionError):
        steps.extend(drive(driver, arrivals, {0: ["call"], 1: ["call", "call"]}))
    assert works[0].done == ["open", 0, "flush", "flush", "flush"]
    assert works[1].done == ["open", 1, 2, "flush", "flush", "flush"]
    assert arrivals == []


def test_an_error_of_the_inputs_comes_before_a_batch_is_sent_and_after_live_calls() -> None:
    def inputs() -> Iterator[Any]:
        yield "call"
        raise OSError("the disk")

    for kind, waited in ((Whole, 0), (Recorder, 1)):
        work: Any = kind()
        driver = Driver([(work, iter("ab"))], print, waits=True)
        steps: list[Any] = []
        with pytest.raises(OSError, match="the disk"):
            for step in drive(driver, [(driver.lanes[0], [(0, ANSWER)])], {0: inputs()}):
                steps.append(step)  # noqa: PERF402  # those before the error
        assert steps.count("wait") == waited
        assert ("flush" in work.done) == bool(waited)
