"""The workers of a live batch.

Inputs that are waited for hold no result back.
What Ctrl-C says of a batch: as many answered calls as a second run finds stored.
"""

import asyncio
import itertools
import queue
import re
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, RateLimitError, Response
from llm_provider._core.batches.driver import Observers, iterate
from llm_provider._core.batches.worker_pool import LiveWork, StoredAnswers
from llm_provider._core.runtime import event_loop
from llm_provider._core.store.response_cache import Entry
from llm_provider._core.types.messages import Prompt
from llm_provider.simulator import Simulator
from support import RunScript, wait_until


def test_a_call_that_arrives_while_all_workers_end_is_served() -> None:
    gate, waiting = asyncio.Event(), 0

    async def send(prompt: Prompt) -> Response:
        nonlocal waiting
        waiting += 1
        if waiting < 10:  # the workers for two requests in flight
            await gate.wait()
        # One worker lets the others go and does the rest. All end in one event-loop iteration. Before that
        # the reader has time to send the last inputs on their way.
        gate.set()
        time.sleep(0.01)  # noqa: ASYNC251 -- the loop is to be busy
        raise RateLimitError(str(prompt))

    with Client() as client:
        stored = StoredAnswers(client._engine, "off")
    work = LiveWork(iter, send, event_loop.cancel_task, 2, lambda *_: None, stored)
    with ThreadPoolExecutor(1) as reader:
        inputs = (str(number) for number in range(25))
        results = reader.submit(list, iterate([(work, inputs)], Observers())).result(30)
    assert len(results) == 25


@pytest.mark.parametrize("way", ["batch", "tasks"])
def test_what_is_on_its_way_to_a_loop_is_not_sent_after_an_interrupt(simulator: Simulator, way: str) -> None:
    prompts = [f"What is {number}+1?" for number in range(4000)]
    with Client(cache=False) as client:
        if way == "batch":
            results = client.iter_many("gpt-6.1-sol", prompts)
            next(results)
            results.close()
        else:

            async def ask_all() -> None:
                tasks = [asyncio.ensure_future(client.acall("gpt-6.1-sol", prompt)) for prompt in prompts]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

            asyncio.run(ask_all())
        # The loop does what was posted to it before.
        event_loop.submit(asyncio.sleep(0.1)).result(60)
    # Some were under way. The rest had been read, and would have been sent for seconds.
    assert simulator.ledger().requests < len(prompts) / 8


MODEL = "gpt-5.5"
NAME = ContextVar("NAME", default="none")


@pytest.fixture
def uncached(simulator: Simulator) -> Iterator[Client]:
    with Client(cache="off", base_url=simulator.url("openai")) as uncached:
        yield uncached


def gather(client: Client, way: str, inputs: Any, take: Any = lambda index, result: None, **more: Any) -> Any:
    """The results by index, each of which `take` gets as soon as it is handed out."""
    results = {}

    async def work() -> None:
        async for index, result in client.aiter_many(MODEL, inputs, **more):
            results[index] = result
            take(index, result)

    if way == "iter_many":
        for index, result in client.iter_many(MODEL, inputs, **more):
            results[index] = result
            take(index, result)
    else:
        asyncio.run(work())
    return results


@pytest.mark.parametrize("way", ["iter_many", "aiter_many", "asynchronous"])
def test_a_question_may_follow_from_an_earlier_answer(uncached: Client, way: str) -> None:
    answers: queue.Queue[str] = queue.Queue()

    def questions() -> Iterator[str]:
        text = "0"
        for _ in range(4):
            yield f"{text}+1?"
            text = answers.get(timeout=60)

    async def ask() -> AsyncIterator[str]:
        text = "0"
        for _ in range(4):
            yield f"{text}+1?"
            while answers.empty():
                await asyncio.sleep(0.001)
            text = answers.get()

    inputs: Any = ask() if way == "asynchronous" else questions()
    results = gather(uncached, way, inputs, lambda _, result: answers.put(result.text))
    assert [results[index].text for index in range(4)] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("way", ["iter_many", "aiter_many"])
def test_inputs_are_read_no_further_than_results_are_taken(uncached: Client, way: str) -> None:
    read = Counted()
    taken = []

    def check(index: int, result: Any) -> None:
        taken.append(index)
        assert read.count <= len(taken) + 2 * 4 + 16 + 1

    results = gather(
        uncached, way, (f"question {number}" for number in read.up_to(200)), check, max_concurrent=4
    )
    assert [results[index].text for index in range(200)] == [
        f"echo: question {index}" for index in range(200)
    ]


class Counted:
    """Counts what was read of it."""

    def __init__(self) -> None:
        self.count = 0

    def up_to(self, most: int) -> Iterator[int]:
        for number in range(most):
            self.count += 1
            yield number


@pytest.mark.parametrize("way", ["iter_many", "aiter_many", "asynchronous"])
@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_the_error_of_an_iterator_is_raised(uncached: Client, way: str, error: type[BaseException]) -> None:
    if way != "iter_many" and not issubclass(error, Exception):
        pytest.skip("asyncio ends its loop for these")

    def questions() -> Iterator[str]:
        yield "a"
        raise error("broken")

    async def ask() -> AsyncIterator[str]:
        yield "a"
        raise error("broken")

    seen: list[Any] = []
    with pytest.raises(error, match="broken"):
        gather(
            uncached, way, ask() if way == "asynchronous" else questions(), lambda *pair: seen.append(pair)
        )
    if issubclass(error, Exception):
        assert [index for index, _ in seen] == [0]


def test_a_wrong_input_ends_the_reading(uncached: Client) -> None:
    with pytest.raises(TypeError, match="one conversation"):
        gather(uncached, "iter_many", iter([{"role": "user", "content": "a"}]))


def test_an_iterator_has_the_variables_of_its_user(uncached: Client) -> None:
    NAME.set("mine")
    results = gather(
        uncached, "iter_many", (NAME.get() for _ in range(2)), metadata=(NAME.get() for _ in range(2))
    )
    assert [(each.text, each.metadata) for each in results.values()] == [("echo: mine", "mine")] * 2


def test_an_iterator_that_belongs_to_a_thread_says_what_to_do(uncached: Client) -> None:
    database = sqlite3.connect(":memory:")
    rows = (row[0] for row in database.execute("SELECT 'a'"))
    with pytest.raises(sqlite3.ProgrammingError) as caught:
        gather(uncached, "iter_many", rows)
    assert "give a list" in caught.value.__notes__[0]
    assert uncached.call_many(MODEL, (row[0] for row in database.execute("SELECT 'a'"))).texts == ["echo: a"]
    database.close()


@pytest.mark.parametrize("way", ["iter_many", "aiter_many", "asynchronous"])
def test_leaving_early_ends_the_reading(uncached: Client, way: str) -> None:
    ended, read = threading.Event(), 0

    def questions() -> Iterator[str]:
        nonlocal read
        try:
            for read in range(100_000):
                yield f"question {read}"
        finally:
            ended.set()

    async def ask() -> AsyncIterator[str]:
        for question in questions():
            yield question

    async def work(inputs: Any) -> None:
        results = uncached.aiter_many(MODEL, inputs)
        async for _ in results:
            break
        await results.aclose()  # type: ignore[attr-defined]  # it is a generator

    if way == "iter_many":
        for _, result in uncached.iter_many(MODEL, questions()):
            assert isinstance(result, Response)
            break
    else:
        asyncio.run(work(ask() if way == "asynchronous" else questions()))
    if way == "asynchronous":
        assert ended.is_set()
    assert wait_until(lambda: all(each.name != "llm_provider-inputs" for each in threading.enumerate()))
    assert read < 10_000


async def test_an_iterator_that_sleeps_does_not_stop_the_loop(uncached: Client) -> None:
    ticks, is_over = 0, False

    async def tick() -> None:
        nonlocal ticks
        while not is_over:
            ticks += 1
            await asyncio.sleep(0.001)

    ticking = asyncio.create_task(tick())

    def questions() -> Iterator[str]:
        for number in range(2):
            begin = ticks
            while ticks < begin + 5:
                time.sleep(0.001)
            yield str(number)

    assert len([pair async for pair in uncached.aiter_many(MODEL, questions())]) == 2
    is_over = True
    await ticking


@pytest.mark.parametrize("way", ["iter_many", "aiter_many", "asynchronous"])
def test_stored_answers_are_read_one_by_one(simulator: Simulator, way: str, tmp_path: Path) -> None:
    prompts, read = [str(number) for number in range(9)], 0

    def questions() -> Iterator[str]:
        nonlocal read
        for prompt in prompts:
            read += 1
            yield prompt

    async def ask() -> AsyncIterator[str]:
        for question in questions():
            yield question

    with Client(cache_dir=tmp_path, base_url=simulator.url("openai")) as client:
        client.call_many(MODEL, prompts)
        seen: list[int] = []

        def check(index: int, result: Any) -> None:
            seen.append(index)
            assert read == len(seen)

        gather(client, way, ask() if way == "asynchronous" else questions(), check)
    assert seen == list(range(9))


PROGRAM = """
import asyncio, os, pathlib, time
from llm_provider import Client

client, model, prompts = Client(), "gpt-6.1-sol", [f"question {{number}}" for number in range(400)]

def slowly():
    for prompt in prompts:
        time.sleep(0.002)
        yield prompt

async def soon():
    for prompt in prompts:
        await asyncio.sleep(0.001)
        yield prompt

def flat(results):
    return [answer for answers in results.values() for answer in answers]

options = {{"cache": os.environ.get("MODE", "use"), **{options}}}
print(sum(getattr(result, "cached", False) for result in {run}))
"""

RUNS = {
    "a list": ("client.call_many(model, prompts, **options)", "{}"),
    "few at once": ("client.call_many(model, prompts, **options)", "{'max_concurrent': 4}"),
    "samples": ("client.call_many(model, prompts, **options)", "{'n': 2}"),
    "a generator": ("client.call_many(model, slowly(), **options)", "{}"),
    "a loop": ("[each for _, each in client.iter_many(model, prompts, **options)]", "{}"),
    "two models": ("flat(client.call_many([model, 'gpt-5.5'], prompts, **options))", "{}"),
    "a task": ("asyncio.run(client.acall_many(model, prompts, **options))", "{}"),
    "an asynchronous iterable": ("asyncio.run(client.acall_many(model, soon(), **options))", "{}"),
    "rows": (
        "client.call_many('{}'.format(model), '{q}', rows=[{'q': p} for p in prompts], **options)",
        "{}",
    ),
}


@pytest.mark.parametrize(("kind", "after"), list(zip(RUNS, itertools.cycle((1, 150, 60)))))
def test_ctrl_c_counts_what_a_second_run_finds(
    kind: str,
    after: int,
    client: Client,
    simulator: Simulator,
    warm_python: list[str],
    run_warm_script: RunScript,
) -> None:
    run, options = RUNS[kind]
    code = PROGRAM.format(run=run, options=options)
    if kind not in ("a generator", "an asynchronous iterable"):
        # A run before this one has stored the answers to inputs that may not be read before the interrupt.
        client.call_many("gpt-6.1-sol", [f"question {number}" for number in range(380, 400)], n=2)
    before = simulator.ledger().answered
    simulator.configure(latency=0.02)
    program = subprocess.Popen([*warm_python, "-c", code], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: simulator.ledger().answered >= before + after)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    said = re.search(
        r"^([\d,]+)(?: of [48]00)? calls are answered; the same call asks the rest", errors, re.MULTILINE
    )
    assert said is not None, errors
    assert run_warm_script(code, MODE="only").stdout == f"{said[1]}\n"


def test_results_are_handed_out_while_other_calls_of_the_batch_begin(
    client: Client, simulator: Simulator
) -> None:
    """Stored answers do not wait in the inbox of the loop behind the calls that were read ahead."""
    client.call_many("gpt-6.1-sol", ["warm up", "twice"])

    def count_early(run: int) -> int:
        sent = len(simulator.requests())
        prompts = [f"many {number} of {run}" for number in range(600)]
        results = client.iter_many("gpt-6.1-sol", prompts, max_concurrent=400)
        handed_out = [time.time() for _ in results]
        begun = sorted(request.time for request in simulator.requests()[sent:])
        return sum(moment < begun[550] for moment in handed_out)

    # A run on a busy machine may have 150, and most have 300 to 550.
    assert any(count_early(run) > 250 for run in range(8))


@pytest.mark.parametrize(
    ("mode", "rest"),
    [
        ("off", "asks all of them, as cache='off' stores nothing"),
        ("refresh", "asks all of them again, and with cache='use' only the rest"),
    ],
)
def test_the_mode_of_the_cache_says_what_the_next_run_does(
    mode: str, rest: str, simulator: Simulator, warm_python: list[str]
) -> None:
    code = PROGRAM.format(run=RUNS["a list"][0], options=repr({"cache": mode}))
    program = subprocess.Popen([*warm_python, "-c", code], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: simulator.ledger().answered > 100)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    assert f"of 400 calls are answered; the same call {rest}\n" in errors


def test_answers_that_are_being_written_count_as_stored(client: Client) -> None:
    engine, gate = client._engine, threading.Event()
    engine.cache._writer.submit(lambda: gate.wait(60))
    engine.cache.put("key", Entry(b"{}", 0.1, 1.0))
    threading.Timer(0.1, gate.set).start()
    StoredAnswers(engine, "use").settle()
    assert engine.cache.peek("key") is not None


def test_ctrl_c_counts_the_texts_of_one_call(
    client: Client, simulator: Simulator, warm_python: list[str]
) -> None:
    client.embed("text-embedding-3-small", ["a", "b"])
    code = "import llm_provider; llm_provider.embed('text-embedding-3-small', ['a', 'b', 'c'])"
    simulator.configure(latency=60)
    program = subprocess.Popen([*warm_python, "-c", code], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: simulator.ledger().in_flight == 1)
    program.send_signal(signal.SIGINT)
    _, errors = program.communicate(timeout=60)
    assert (
        "2 of 3 parts are answered; the same call asks the rest and takes the answers from the cache"
        in errors
    )
