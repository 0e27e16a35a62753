"""Samples of one prompt: numbered, kept one by one, never paid for twice."""

from typing import Any

import orjson
import pytest

from llm_provider import Client
from llm_provider.simulator import Fault, Simulator
from wire_shapes import SHAPES, TEXT

NATIVE = [("gpt-6.1-sol", 128), ("gemini-3.8-flash", 8)]


def wanted(simulator: Simulator) -> list[int]:
    """How many samples each request asked for."""
    bodies: list[Any] = [request.body for request in simulator.requests()]
    return [body.get("n") or body.get("generationConfig", {}).get("candidateCount", 1) for body in bodies]


@pytest.mark.parametrize(("model", "most"), NATIVE)
def test_only_the_missing_is_asked_for(client: Client, simulator: Simulator, model: str, most: int) -> None:
    # Wrong sums differ from one sample of a request to the next.
    simulator.configure(error_rate=1.0)
    question = "What is 100+200?"
    four = client.call(model, question, n=4)
    ten = client.call(model, question, n=10)
    assert wanted(simulator) == [4, 6]
    assert ten.texts[:4] == four.texts
    assert len(set(four.texts)) > 1
    again = client.call(model, question, n=10)
    assert (again.texts, again.cached, again.cost) == (ten.texts, True, 0)
    assert [client.call(model, question, draw=draw).text for draw in range(10)] == ten.texts
    assert client.call(model, question, n=3, draw=2).texts == ten.texts[2:5]
    assert len(simulator.requests()) == 2


@pytest.mark.parametrize(("model", "most"), NATIVE)
def test_no_request_exceeds_its_api(client: Client, simulator: Simulator, model: str, most: int) -> None:
    answer = client.call(model, "Say something", n=most + 1 if most < 100 else 20)
    assert sum(wanted(simulator)) == len(answer.texts)
    assert max(wanted(simulator)) <= most


def test_a_server_that_gives_one_at_a_time_is_asked_again(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(body=orjson.dumps(SHAPES["openai"][0].whole)), times=3)
    assert client.call("gpt-6.1-sol", "Say something", n=3).texts == [TEXT] * 3
    assert wanted(simulator) == [3, 2, 1]
