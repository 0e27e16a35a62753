"""Calls of several samples of which one fails: the others are paid for, told of and stored."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from pydantic import BaseModel

from llm_provider import (
    BadRequestError,
    Budget,
    BudgetExceededError,
    Client,
    LLMError,
    ModelDriftError,
    Results,
    SchemaMismatchError,
)
from llm_provider.simulator import Fault, Simulator
from support import WAYS, ask

MODEL = "claude-haiku-5-5"
"""Each of its samples needs a request."""


class City(BaseModel):
    name: str


def error_of(client: Client, way: str = "call", **parameters: Any) -> LLMError:
    with pytest.raises(LLMError) as caught:
        ask(client, way, MODEL, **parameters)
    return caught.value


@pytest.mark.parametrize("way", WAYS)
def test_the_good_samples_of_a_call_are_told_paid_and_stored(
    client: Client, simulator: Simulator, way: str
) -> None:
    simulator.inject(Fault(status=400))
    error = error_of(client, way, n=4, max_tokens=100)
    assert isinstance(error, BadRequestError)
    assert (len(error.samples), error.attempts, error.maybe_billed) == (3, 4, True)
    assert error.cost == pytest.approx(float(client.usage.cost)) != 0
    assert error.usage == client.usage.usage
    assert [sample.text for sample in error.samples] == ["echo: Hi"] * 3
    assert all(sample.cost == error.cost for sample in error.samples)
    whole = ask(client, way, MODEL, n=4, max_tokens=100)
    assert (len(whole.choices), whole.attempts, simulator.ledger().requests) == (4, 1, 5)
    assert whole.price == pytest.approx(float(client.usage.cost))
    assert whole.cost == pytest.approx(float(client.usage.cost) - (error.cost or 0))


def test_a_sample_that_does_not_match_leaves_the_others(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(text="not JSON"), times=1)
    error = error_of(client, n=2, response_format=City, max_repairs=0)
    assert isinstance(error, SchemaMismatchError)
    assert [type(sample.parsed) for sample in error.samples] == [City]
    assert (error.attempts, error.cost) == (2, pytest.approx(float(client.usage.cost)))


def test_samples_of_one_request_are_good_one_by_one(client: Client) -> None:
    answer = client.call("gpt-5.5", "Hi", n=3, reasoning_effort="none")
    assert answer.price == answer.cost
    prices = [client.call("gpt-5.5", "Hi", draw=draw, reasoning_effort="none").price for draw in range(3)]
    assert prices == [answer.cost, 0.0, 0.0]


def test_a_changed_model_leaves_the_samples_of_the_model_before(client: Client, simulator: Simulator) -> None:
    simulator.configure(snapshot_suffix="-2026-08-01")
    client.call(MODEL, "Hi")
    simulator.configure(snapshot_suffix="-2026-10-21")
    error = error_of(client, n=3, strict_model=True)
    assert isinstance(error, ModelDriftError)
    assert (len(error.samples), error.attempts) == (1, 2)
    assert error.samples[0].model == f"{MODEL}-2026-08-01"


def test_they_survive_pickling_and_json(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400))
    error = error_of(client, n=2)
    for copy in (
        pickle.loads(pickle.dumps(error)),
        LLMError.from_dict(json.loads(json.dumps(error.to_dict()))),
    ):
        assert copy.samples == error.samples
        assert (copy.cost, copy.usage, copy.attempts) == (error.cost, error.usage, 2)


@pytest.mark.parametrize("parameters", [{}, {"n": 2}])
def test_without_a_good_sample_there_is_none(
    client: Client, simulator: Simulator, parameters: dict[str, Any]
) -> None:
    simulator.inject(Fault(status=400), times=None)
    error = error_of(client, **parameters)
    assert (error.samples, error.cost, error.maybe_billed) == ((), 0, False)


def test_a_budget_for_some_samples_is_spent_on_them(client: Client) -> None:
    refusal = error_of(client, n=4, max_tokens=500, budget=1e-9)
    assert isinstance(refusal, BudgetExceededError)
    (error,) = client.call_many(MODEL, ["Hi"], n=4, max_tokens=500, budget=Budget(refusal.needed))
    assert isinstance(error, BudgetExceededError)
    assert error.samples
    assert len(error.samples) == error.attempts < 4
    assert Results([error]).cost == pytest.approx(float(client.usage.cost)) != 0


def test_equal_calls_pay_once_also_for_a_failure(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(delay=0.05, finish="no_choices"), times=None)
    results = client.call_many("gpt-5.5", ["Hi"] * 4, max_retries=0)
    assert len(results.errors) == 4
    assert sum(error.attempts for error in results.errors) == simulator.ledger().requests
    assert float(results.cost) == pytest.approx(float(client.usage.cost))


def test_texts_share_the_price_of_their_request(client: Client) -> None:
    model = "text-embedding-3-small"
    embeddings = client.embed(model, ["one text", "and another one that is longer"])
    assert embeddings.price == embeddings.cost
    prices = [client.embed(model, [text]).price for text in ("one text", "and another one that is longer")]
    assert None not in prices
    assert sum(filter(None, prices)) == pytest.approx(embeddings.cost)
    assert 0 < (prices[0] or 0) < (prices[1] or 0)
    again = client.embed(model, ["one text", "and another one that is longer"])
    assert (again.cost, again.attempts, again.maybe_billed) == (0, 0, False)
    assert again.price == pytest.approx(embeddings.cost)
