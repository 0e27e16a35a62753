"""Inputs that are waited for hold no result back."""

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, Response
from llm_provider.simulator import Simulator
from support import wait_until

MODEL = "gpt-5.5"
NAME = ContextVar("NAME", default="none")


@pytest.fixture
def client(simulator: Simulator) -> Iterator[Client]:
    with Client(cache="off", base_url=simulator.url("openai")) as client:
        yield client


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
def test_a_question_may_follow_from_an_earlier_answer(client: Client, way: str) -> None:
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
    results = gather(client, way, inputs, lambda _, result: answers.put(result.text))
    assert [results[index].text for index in range(4)] == ["1", "2", "3", "4"]


@pytest.mark.parametrize("way", ["iter_many", "aiter_many"])
def test_inputs_are_read_no_further_than_results_are_taken(client: Client, way: str) -> None:
    read = Counted()
    taken = []

    def check(index: int, result: Any) -> None:
        taken.append(index)
        assert read.count <= len(taken) + 2 * 4 + 16 + 1

    results = gather(
        client, way, (f"question {number}" for number in read.up_to(200)), check, max_concurrent=4
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
def test_the_error_of_an_iterator_is_raised(client: Client, way: str, error: type[BaseException]) -> None:
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
        gather(client, way, ask() if way == "asynchronous" else questions(), lambda *pair: seen.append(pair))
    if issubclass(error, Exception):
        assert [index for index, _ in seen] == [0]


def test_a_wrong_input_ends_the_reading(client: Client) -> None:
    with pytest.raises(TypeError, match="one conversation"):
        gather(client, "iter_many", iter([{"role": "user", "content": "a"}]))


def test_an_iterator_has_the_variables_of_its_user(client: Client) -> None:
    NAME.set("mine")
    results = gather(
        client, "iter_many", (NAME.get() for _ in range(2)), metadata=(NAME.get() for _ in range(2))
    )
    assert [(each.text, each.metadata) for each in results.values()] == [("echo: mine", "mine")] * 2


def test_an_iterator_that_belongs_to_a_thread_says_what_to_do(client: Client) -> None:
    database = sqlite3.connect(":memory:")
    rows = (row[0] for row in database.execute("SELECT 'a'"))
    with pytest.raises(sqlite3.ProgrammingError) as caught:
        gather(client, "iter_many", rows)
    assert "give a list" in caught.value.__notes__[0]
    assert client.call_many(MODEL, (row[0] for row in database.execute("SELECT 'a'"))).texts == ["echo: a"]
    database.close()


@pytest.mark.parametrize("way", ["iter_many", "aiter_many", "asynchronous"])
def test_leaving_early_ends_the_reading(client: Client, way: str) -> None:
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
        results = client.aiter_many(MODEL, inputs)
        async for _ in results:
            break
        await results.aclose()  # type: ignore[attr-defined]  # it is a generator

    if way == "iter_many":
        for _, result in client.iter_many(MODEL, questions()):
            assert isinstance(result, Response)
            break
    else:
        asyncio.run(work(ask() if way == "asynchronous" else questions()))
    if way == "asynchronous":
        assert ended.is_set()
    assert wait_until(lambda: all(each.name != "llm_provider-inputs" for each in threading.enumerate()))
    assert read < 10_000


async def test_an_iterator_that_sleeps_does_not_stop_the_loop(client: Client) -> None:
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

    assert len([pair async for pair in client.aiter_many(MODEL, questions())]) == 2
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
