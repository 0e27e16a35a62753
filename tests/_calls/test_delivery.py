"""The interface between the engine and a delivery: the engine works with any object that has it."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine, Sequence
from decimal import Decimal
from typing import Any

import orjson
import pytest

from llm_provider import BadRequestError, Client, Response
from llm_provider._calls.call import Call, Sample
from llm_provider._calls.chat import CHAT
from llm_provider._calls.delivery import Delivery, Emit
from llm_provider._calls.sender import Sender
from llm_provider._calls.sent_requests import Charge
from llm_provider._limits.concurrency import UNBOUNDED
from llm_provider._limits.scopes import ScopeStatistics
from llm_provider._requests.request import Request
from llm_provider.simulator import Simulator

MODEL = "gpt-6.1-sol"


class Table:
    """A delivery that answers from a dictionary."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.closed = False

    def send(self, call: Call[Any], parts: Sequence[int], emit: Emit | None) -> Coroutine[Any, Any, Sample]:
        return self._send(call, parts)

    async def _send(self, call: Call[Any], parts: Sequence[int]) -> Sample:
        prompt = call.request.messages[-1]["content"]
        self.asked.append(prompt)
        await asyncio.sleep(0)
        if prompt not in self.answers:
            raise BadRequestError(f"there is no answer to {prompt!r}")
        message = {"role": "assistant", "content": self.answers[prompt]}
        reply = {
            "id": "an id",
            "model": call.target.model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3},
        }
        answer = call.operation.decode(call, reply, len(parts))
        call.sent.attempts += 1
        call.sent.charges += (Charge(Decimal("0.25"), answer.usage, "prices"),)
        return Sample(answer, orjson.dumps(reply), cached=False)

    def affordable(self, call: Call[Any], parts: Sequence[int]) -> bool:
        return True

    def statistics(self) -> list[ScopeStatistics]:
        return []

    async def close(self) -> None:
        self.closed = True


def ask(client: Client, table: Table, *prompts: str) -> list[Response | BaseException]:
    """The results of calls that an engine makes through a table, all at the same time."""
    engine = client._engine

    async def main() -> list[Response | BaseException]:
        engine.here().delivery = table
        calls = [engine.prepare(CHAT, Request.build(MODEL, prompt, {}), UNBOUNDED) for prompt in prompts]
        try:
            return await asyncio.gather(*map(engine.run, calls), return_exceptions=True)
        finally:
            await engine.close()

    return asyncio.run(main())


@pytest.mark.parametrize("other", [Sender, Table])
def test_a_delivery_has_every_method_of_the_interface(other: type) -> None:
    names = [name for name in vars(Delivery) if inspect.isfunction(vars(Delivery)[name]) and name[0] != "_"]
    assert sorted(names) == ["affordable", "close", "send", "statistics"]
    for name in names:
        assert inspect.signature(getattr(other, name)) == inspect.signature(getattr(Delivery, name))


def test_an_answer_of_another_delivery_answers_a_live_call(client: Client, simulator: Simulator) -> None:
    table = Table({"sky": "blue"})
    (answer,) = ask(client, table, "sky")
    assert isinstance(answer, Response)
    assert (answer.text, answer.cost, answer.cached, answer.timing.attempts) == ("blue", 0.25, False, 1)
    assert table.closed
    live = client.call(MODEL, "sky")
    assert (live.text, live.cached, live.cost) == ("blue", True, 0.0)
    assert not simulator.requests()


def test_equal_calls_share_what_another_delivery_sends(client: Client, simulator: Simulator) -> None:
    table = Table({"sky": "blue", "grass": "green"})
    answers = ask(client, table, "sky", "grass", "sky", "sky")
    assert table.asked == ["sky", "grass"]
    assert [(answer.text, answer.cost) for answer in answers if isinstance(answer, Response)] == [
        ("blue", 0.25),
        ("green", 0.25),
        ("blue", 0.0),
        ("blue", 0.0),
    ]


def test_its_errors_are_those_of_the_calls(client: Client, simulator: Simulator) -> None:
    answer, error = ask(client, Table({"sky": "blue"}), "sky", "sea")
    assert isinstance(answer, Response)
    assert isinstance(error, BadRequestError)
    assert "there is no answer to 'sea'" in str(error)
