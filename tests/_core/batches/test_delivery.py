"""Jobs: the same answers as live ones, under the same keys, shared between jobs and processes."""

import asyncio
from pathlib import Path

import pytest

from llm_provider import Client, PendingBatchError, RequestError, Response, track
from llm_provider.simulator import Simulator

HOSTS = [
    ("gpt-5.5", {}),
    ("gpt-5.5", {"endpoint": "responses"}),
    ("claude-haiku-5-5", {}),
    ("gemini/gemini-3.8-flash", {}),
    ("together_ai/zai-org/GLM-5.3", {}),
    ("groq/openai/gpt-oss-120b", {}),
    ("mistral/mistral-small-2603", {}),
    ("xai/grok-4.20", {}),
    ("xai/grok-4.20", {"endpoint": "responses"}),
    ("fireworks_ai/accounts/fireworks/models/gpt-oss-120b", {}),
]


@pytest.mark.parametrize(("model", "parameters"), HOSTS)
@pytest.mark.sampled(5)
def test_a_batch_answers_as_a_live_call_does(
    client: Client, simulator: Simulator, tmp_path: Path, model: str, parameters: dict[str, str]
) -> None:
    inputs = ["1+1?", "2+2?", "1+1?"]
    answers = client.call_many(model, inputs, delivery="batch", **parameters)  # type: ignore[call-overload]  # any parameters
    with Client(cache_dir=tmp_path / "live") as other:
        live = other.call_many(model, inputs, **parameters)  # type: ignore[call-overload]  # any parameters
    assert [answer.text for answer in answers] == [answer.text for answer in live] == ["2", "4", "2"]
    assert [answer.cached for answer in answers] == [False, False, True]
    assert [answer.finish_reason for answer in answers] == ["stop"] * 3
    again = client.call_many(model, inputs, **parameters)  # type: ignore[call-overload]  # any parameters
    assert all(answer.cached for answer in again)
    assert simulator.ledger().answered == 4


def test_samples_come_in_one_row_where_the_api_has_them(client: Client, simulator: Simulator) -> None:
    (result,) = client.call_many("gpt-5.5", ["Hi"], n=3, delivery="batch")
    assert isinstance(result, Response)
    assert len(result.choices) == 3
    assert client.call("gpt-5.5", "Hi", draw=2).cached
    (more,) = client.call_many("gpt-5.5", ["Hi"], n=5, delivery="batch")
    assert len(more.choices) == 5  # type: ignore[union-attr]  # no error
    assert simulator.ledger().answered == 2


def test_texts_are_in_batches_of_a_size(client: Client) -> None:
    texts = list("abcde")
    with pytest.raises(RequestError, match="batch_size is for delivery='batch'"):
        client.embed("text-embedding-3-small", texts, batch_size=2)
    embeddings = client.embed("text-embedding-3-small", texts, delivery="batch", batch_size=2)
    assert len(embeddings.vectors) == 5
    (batch,) = client.batches()
    assert len(batch.batch_ids) == 3


@pytest.mark.parametrize("model", ["text-embedding-3-small", "gemini/gemini-embedding-001"])
def test_texts_are_embedded(client: Client, tmp_path: Path, model: str) -> None:
    texts = ["a", "b", "a"]
    embeddings = client.embed(model, texts, delivery="batch")
    with Client(cache_dir=tmp_path / "live") as other:
        live = other.embed(model, texts)
    assert embeddings.vectors == live.vectors
    assert (embeddings.cost or 0) * 2 == pytest.approx(live.cost)
    assert client.embed(model, texts).cached
    assert asyncio.run(client.aembed(model, [*texts, "c"], delivery="batch")).vectors[:3] == live.vectors


def test_a_refresh_asks_anew_at_once(client: Client, simulator: Simulator) -> None:
    for _ in range(2):
        (result,) = client.call_many("gpt-5.5", ["1+1?"], delivery="batch", cache="refresh")
        assert result.cost
    assert simulator.ledger().answered == 2


def test_money_is_counted_at_batch_prices_and_apart(client: Client, simulator: Simulator) -> None:
    simulator.configure(prices="prices.csv")
    with track("night") as sums:
        client.call_many("gpt-5.5", ["1+1?", "2+2?"], delivery="batch")
        client.call("gpt-5.5", "live")
    rows = {row.delivery: row for row in sums.rows("delivery")}
    assert (rows["batch"].requests, rows["live"].requests) == (2, 1)
    assert sums.spent == simulator.ledger().billed
    assert [row.tag for row in client.usage.rows("tag")] == ["night"]
    assert "batch" in str(client.usage)


def test_a_live_call_may_wait_for_a_batch_or_be_refused(client: Client, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=40_000.0)
    client.submit_many("gpt-5.5", ["1+1?", "2+2?"])
    with pytest.raises(PendingBatchError) as caught:
        client.call("gpt-5.5", "1+1?", in_batch="refuse")
    assert caught.value.batch == client.batches()[0].id
    assert client.call("gpt-5.5", "2+2?", in_batch="live").text == "4"
    waited = client.call("gpt-5.5", "1+1?", in_batch="wait")
    assert (waited.text, waited.cached) == ("2", True)
    assert asyncio.run(client.acall("gpt-5.5", "another", in_batch="wait")).text == "echo: another"
    assert simulator.ledger().answered == 4
