"""The choice between the deliveries, and bad input."""

from typing import Any

import pytest

from llm_provider import Client, RequestError
from llm_provider._batches.choice import uses_batch_api
from llm_provider._providers.shared.batches import DAY
from llm_provider.simulator import Simulator


@pytest.mark.parametrize(
    ("model", "parameters", "batch"),
    [
        ("gpt-5.5", {}, True),
        ("gpt-5.5", {"deadline": 3600.0}, False),
        ("gpt-5.5", {"deadline": DAY}, True),
        ("gpt-5.5", {"cache": "off"}, False),
        ("claude-haiku-5-5", {}, True),
        ("gemini/gemini-3.8-flash", {}, True),
        ("deepseek/deepseek-v4-pro", {}, False),
        ("together_ai/zai-org/GLM-5.3", {}, False),
        ("local/any", {}, False),
    ],
)
def test_auto_goes_by_deadline_and_price(model: str, parameters: dict[str, Any], batch: bool) -> None:
    with Client() as client:
        assert uses_batch_api(client._engine, client._runner.prices, model, "auto", parameters) is batch


def test_auto_sends_live_what_must_be_back_soon(client: Client, simulator: Simulator) -> None:
    client.call_many("gpt-5.5", ["a"], delivery="auto", deadline=60.0)
    client.call_many("gpt-5.5", ["b"], delivery="auto")
    paths = [
        request.path.rpartition("/")[2] for request in simulator.requests() if request.path.endswith("s")
    ]
    assert paths.count("completions") == 1
    assert paths.count("batches") >= 1


@pytest.mark.parametrize(
    ("model", "parameters", "message"),
    [
        ("gpt-5.5", {"delivery": "batch", "cache": "off"}, "needs the cache"),
        ("deepseek/deepseek-v4-pro", {"delivery": "batch"}, "has no batch API"),
        ("groq/openai/gpt-oss-120b", {"delivery": "batch", "endpoint": "responses"}, "responses"),
        ("litellm/openai/gpt-5.5", {"delivery": "batch"}, "has no batch API"),
    ],
)
def test_a_batch_that_cannot_be_is_refused_by_name(
    client: Client, simulator: Simulator, model: str, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(RequestError, match=message):
        client.call_many(model, ["a"], **parameters)
    assert simulator.ledger().requests == 0


def test_an_input_that_is_not_valid_fails_in_its_place(client: Client) -> None:
    good, bad = client.call_many("gpt-5.5", ["1+1?", [{"role": "nobody"}]], delivery="batch")  # type: ignore[list-item]  # wrong on purpose
    assert good.text == "2"  # type: ignore[union-attr]  # it did not fail
    assert isinstance(bad, RequestError)


@pytest.mark.parametrize("delivery", ["auto", "live"])
def test_a_submission_is_a_batch(client: Client, simulator: Simulator, delivery: Any) -> None:
    with pytest.raises(RequestError, match=rf"submit_many\(\) submits a batch, and '{delivery}'"):
        client.submit_many("gpt-5.5", ["a"], delivery=delivery)
    assert simulator.ledger().requests == 0
    assert client.submit_many("gpt-5.5", ["1+1?"], delivery="batch").results().texts == ["2"]


def test_an_estimate_shows_both_prices(client: Client, simulator: Simulator) -> None:
    estimate = client.estimate("gpt-5.5", ["a"], delivery="auto")
    assert {"standard", "batch"} <= set(estimate.costs)
    assert simulator.ledger().requests == 0
    texts = client.estimate("text-embedding-3-small", ["a"], delivery="batch")
    assert "batch" in texts.costs
