"""Results are told to `on_result`, whatever the way to call."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from llm_provider import BadRequestError, Client, LLMError, RequestError, Response
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-6.1-sol"


@pytest.mark.parametrize("front", ["call", "acall", "stream", "astream", "call_many", "acall_many"])
def test_on_result_receives_each_result(simulator: Simulator, tmp_path: Path, front: str) -> None:
    told: list[Response | LLMError] = []

    async def astreamed(prompt: str) -> None:
        async for _ in client.astream(MODEL, prompt):
            pass

    ways: dict[str, Callable[[str], object]] = {
        "call": lambda prompt: client.call(MODEL, prompt),
        "acall": lambda prompt: asyncio.run(client.acall(MODEL, prompt)),
        "stream": lambda prompt: list(client.stream(MODEL, prompt)),
        "astream": lambda prompt: asyncio.run(astreamed(prompt)),
        "call_many": lambda prompt: client.call_many(MODEL, [prompt]),
        "acall_many": lambda prompt: asyncio.run(client.acall_many(MODEL, [prompt])),
    }
    simulator.inject(Fault(status=400), times=None, match="wrong")
    with Client(cache_dir=tmp_path, on_result=told.append) as client:
        ways[front]("Hi")
        ways[front]("Hi")
        with contextlib.suppress(BadRequestError):
            ways[front]("wrong")
    first, again, failed = told
    assert isinstance(first, Response)
    assert isinstance(again, Response)
    assert (first.cached, again.cached, type(failed)) == (False, True, BadRequestError)


def test_an_on_result_that_raises_loses_no_answer(simulator: Simulator, tmp_path: Path) -> None:
    def observe(result: object) -> None:
        raise ZeroDivisionError

    with (
        Client(cache_dir=tmp_path, on_result=observe) as client,
        pytest.warns(RuntimeWarning, match="on_result raised ZeroDivisionError"),
    ):
        assert client.call(MODEL, "1+1?").text == "2"
    with pytest.raises(RequestError, match="on_result"):
        Client(on_result="print")  # type: ignore[arg-type]  # wrong on purpose
