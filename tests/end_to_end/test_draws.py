"""Samples of one prompt: numbered, kept one by one, never paid for twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from llm_provider import CacheMissError, Client, RequestError
from llm_provider.simulator import Fault, Simulator

NATIVE = [("gpt-6.1-sol", 128), ("gemini-3.8-flash", 8)]
ONE_BY_ONE = ["claude-sonnet-5-5", "gpt-5.5-pro", "groq/openai/gpt-oss-120b"]


def wanted(simulator: Simulator) -> list[int]:
    """How many samples each request asked for."""
    bodies: list[Any] = [request.body for request in simulator.requests()]
    return [body.get("n") or body.get("generationConfig", {}).get("candidateCount", 1) for body in bodies]


@pytest.mark.parametrize(("model", "most"), NATIVE)
def test_only_what_is_missing_is_asked_for(
    client: Client, simulator: Simulator, model: str, most: int
) -> None:
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


@pytest.mark.parametrize("model", ONE_BY_ONE)
def test_without_such_a_parameter_they_are_separate_requests(
    client: Client, simulator: Simulator, model: str
) -> None:
    four = client.call(model, "Say something", n=4)
    ten = client.call(model, "Say something", n=10)
    assert wanted(simulator) == [1] * 10
    assert ten.texts[:4] == four.texts
    assert client.call(model, "Say something", n=10).texts == ten.texts
    assert len(simulator.requests()) == 10


@pytest.mark.parametrize(("model", "most"), NATIVE)
def test_no_request_asks_for_more_than_its_api_takes(
    client: Client, simulator: Simulator, model: str, most: int
) -> None:
    answer = client.call(model, "Say something", n=most + 1 if most < 100 else 20)
    assert sum(wanted(simulator)) == len(answer.texts)
    assert max(wanted(simulator)) <= most


@pytest.mark.parametrize(("model", "most"), NATIVE)
def test_the_samples_of_a_request_share_its_usage(
    client: Client, simulator: Simulator, model: str, most: int
) -> None:
    paid = client.call(model, "Say something", n=3)
    ledger = simulator.ledger()
    assert (paid.usage.input_tokens, paid.usage.output_tokens) == (ledger.input_tokens, ledger.output_tokens)
    assert paid.cost == float(client.price(model, paid.usage) or 0)
    kept = client.call(model, "Say something", n=3)
    assert kept.usage == paid.usage
    one_by_one = [client.call(model, "Say something", draw=draw).usage for draw in range(3)]
    assert sum(one_by_one[1:], one_by_one[0]) == paid.usage


def test_the_first_sample_is_the_call_without_a_number(client: Client, simulator: Simulator) -> None:
    alone = client.call("gpt-6.1-sol", "Say something")
    assert client.call("gpt-6.1-sol", "Say something", n=2).texts[0] == alone.text
    assert wanted(simulator) == [1, 1]


def test_a_server_that_gives_one_at_a_time_is_asked_again(client: Client, simulator: Simulator) -> None:
    body = {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "one"}}
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    import json

    simulator.inject(Fault(body=json.dumps(body)), times=3)
    assert client.call("gpt-6.1-sol", "Say something", n=3).texts == ["one"] * 3
    assert wanted(simulator) == [3, 2, 1]


def test_what_failed_is_asked_for_again_and_the_rest_is_kept(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400), times=1)
    with pytest.raises(RequestError):
        client.call("claude-sonnet-5-5", "Say something", n=4)
    assert len(client.call("claude-sonnet-5-5", "Say something", n=4).texts) == 4
    assert len(simulator.requests()) == 5


def test_a_replay_without_all_samples_names_the_first_that_is_missing(client: Client) -> None:
    client.call("gpt-6.1-sol", "Say something", n=2)
    with pytest.raises(CacheMissError, match="draw"):
        client.call("gpt-6.1-sol", "Say something", n=3, cache="only")


def test_asynchronously_and_in_batches(client: Client, simulator: Simulator) -> None:
    answer = asyncio.run(client.acall("gpt-6.1-sol", "Say something", n=3))
    (batched,) = client.call_many("gpt-6.1-sol", ["Say something"], n=3)
    assert not isinstance(batched, Exception)
    assert batched.texts == answer.texts
    assert wanted(simulator) == [3]


def test_a_stream_of_one_sample_has_its_number_too(client: Client, simulator: Simulator) -> None:
    with client.stream("gpt-6.1-sol", "Say something", draw=2) as stream:
        list(stream)
    assert client.call("gpt-6.1-sol", "Say something", draw=2).text == stream.response.text
    assert len(simulator.requests()) == 1


@pytest.mark.parametrize("draw", [-1, 1.5, "2", True])
def test_a_number_that_is_none(client: Client, simulator: Simulator, draw: Any) -> None:
    with pytest.raises(RequestError, match="draw"):
        client.call("gpt-6.1-sol", "Say something", draw=draw)
    assert not simulator.requests()
