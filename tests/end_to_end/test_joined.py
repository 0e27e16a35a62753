"""Equal calls under way at the same time make one request. The programs by seed have those of processes."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from llm_provider import BadRequestError, Client, Response
from llm_provider.simulator import Fault, Simulator
from support import finish, wait_until

MODEL = "gpt-6.1-sol"


def ask_in_threads(client: Client) -> list[Response]:
    with ThreadPoolExecutor(20) as pool:
        return list(pool.map(lambda _: client.call(MODEL, "Hi"), range(20)))


async def ask_in_tasks(client: Client) -> list[Response]:
    return await asyncio.gather(*(client.acall(MODEL, "Hi") for _ in range(20)))


def ask_in_a_batch(client: Client) -> list[Response]:
    return client.call_many(MODEL, ["Hi"] * 20).ok


@pytest.mark.parametrize("ask", [ask_in_threads, ask_in_tasks, ask_in_a_batch])
def test_equal_calls_are_one_request(client: Client, simulator: Simulator, ask: Any) -> None:
    simulator.configure(latency=0.2)
    answers = finish(ask(client))
    assert simulator.ledger().requests == 1
    assert [answer.text for answer in answers] == ["echo: Hi"] * 20
    assert sorted(answer.cached for answer in answers) == [False] + [True] * 19
    assert sum(answer.cost or 0 for answer in answers) == max(answer.cost or 0 for answer in answers)


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
