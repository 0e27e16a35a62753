"""Calls of several samples of which one fails: the others are paid for, told of and stored."""

import json
import pickle
from typing import Any

import pytest

from llm_provider import BadRequestError, Client, LLMError
from llm_provider.simulator import Fault, Simulator
from support import WAYS, ask

MODEL = "claude-haiku-5-5"
"""Each of its samples needs a request."""


def error_of(client: Client, way: str = "call", **parameters: Any) -> LLMError:
    with pytest.raises(LLMError) as caught:
        ask(client, way, MODEL, **parameters)
    return caught.value


@pytest.mark.parametrize("way", WAYS)
def test_good_samples_are_told_paid_and_stored(client: Client, simulator: Simulator, way: str) -> None:
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


def test_they_survive_pickling_and_json(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400))
    error = error_of(client, n=2)
    for copy in (
        pickle.loads(pickle.dumps(error)),
        LLMError.from_dict(json.loads(json.dumps(error.to_dict()))),
    ):
        assert copy.samples == error.samples
        assert (copy.cost, copy.usage, copy.attempts) == (error.cost, error.usage, 2)


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
