"""Equal calls under way at the same time make one request, through every front and across processes."""

from __future__ import annotations

import asyncio
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from llm_provider import BadRequestError, Client, Response
from llm_provider.simulator import Fault, Simulator
from support import wait_until

MODEL = "gpt-6.1-sol"

PROGRAM = """
import asyncio, sys
from llm_provider import Client

async def main():
    async with Client(cache_dir=sys.argv[1]) as client:
        print("ready", flush=True)
        sys.stdin.readline()
        calls = (client.acall("gpt-6.1-sol", "Hi", base_url=sys.argv[2]) for _ in range(10))
        answers = await asyncio.gather(*calls)
        paid, texts = sum(bool(answer.cost) for answer in answers), {answer.text for answer in answers}
        print(paid, len(texts), flush=True)

asyncio.run(main())
"""


def assert_paid_once(answers: list[Response], simulator: Simulator) -> None:
    assert simulator.ledger().requests == 1
    assert len({answer.text for answer in answers}) == 1
    assert sorted(answer.cached for answer in answers) == [False] + [True] * (len(answers) - 1)
    assert sum(answer.cost or 0 for answer in answers) == max(answer.cost or 0 for answer in answers)


def test_threads(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=0.2)
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: client.call(MODEL, "Hi"), range(20)))
    assert_paid_once(answers, simulator)


def test_tasks(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=0.2)

    async def main() -> list[Response]:
        return await asyncio.gather(*(client.acall(MODEL, "Hi") for _ in range(20)))

    assert_paid_once(asyncio.run(main()), simulator)


def test_a_batch_with_the_same_input_again_and_again(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=0.1)
    results = client.call_many(MODEL, ["Hi"] * 20)
    assert_paid_once([result for result in results if isinstance(result, Response)], simulator)


@pytest.mark.parametrize("latency", [0.0, 0.3])
def test_processes(simulator: Simulator, tmp_path: Path, latency: float, warm_python: list[str]) -> None:
    simulator.configure(latency=latency)
    command = [*warm_python, "-c", PROGRAM, str(tmp_path / "cache"), simulator.url("openai")]
    programs = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for program in programs:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
    for program in programs:
        assert program.stdin is not None
        program.stdin.write("\n")
        program.stdin.flush()
    outputs = [program.communicate(timeout=60)[0].split() for program in programs]
    assert sorted(paid for paid, _ in outputs) == ["0", "1"]
    assert [texts for _, texts in outputs] == ["1", "1"]
    assert simulator.ledger().requests == 1


def test_giving_up_does_not_fail_the_others(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=0.3)

    async def main() -> Response:
        first = asyncio.create_task(client.acall(MODEL, "Hi"))
        assert await asyncio.to_thread(wait_until, lambda: simulator.ledger().requests == 1)
        second = asyncio.create_task(client.acall(MODEL, "Hi"))
        await asyncio.sleep(0.05)
        first.cancel()
        return await second

    assert asyncio.run(main()).text == "echo: Hi"
    assert simulator.ledger().requests == 1


def test_a_failure_is_everybodys_and_each_has_an_error_of_its_own(
    client: Client, simulator: Simulator
) -> None:
    simulator.configure(latency=0.2)
    simulator.inject(Fault(status=400, delay=0.2), times=1)

    async def main() -> list[Response | BaseException]:
        return await asyncio.gather(*(client.acall(MODEL, "Hi") for _ in range(5)), return_exceptions=True)

    errors = asyncio.run(main())
    assert [type(error) for error in errors] == [BadRequestError] * 5
    assert len({id(error) for error in errors}) == 5
    assert simulator.ledger().requests == 1


@pytest.mark.parametrize("mode", ["refresh", "off"])
def test_who_asks_for_an_answer_of_its_own_gets_one(client: Client, simulator: Simulator, mode: str) -> None:
    simulator.configure(latency=0.1)

    async def main() -> None:
        await asyncio.gather(*(client.acall(MODEL, "Hi", cache=mode) for _ in range(3)))  # type: ignore[arg-type]  # wrong on purpose, or any value

    asyncio.run(main())
    assert simulator.ledger().requests == 3
