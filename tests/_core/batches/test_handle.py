"""`Batch`: left by one client, found by another."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from llm_provider import BatchError, Client, RequestError
from llm_provider.simulator import Simulator
from support import wait_until


def test_a_batch_is_left_and_found_again(client: Client, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=40_000.0)
    client.call("gpt-5.5", "stored before")
    batch = client.submit_many("gpt-5.5", ["1+1?", "stored before", "2+2?"])
    assert (batch.status, batch.done, batch.counts.total) == ("in_progress", False, 2)
    with Client(cache_dir=client.cache.directory) as another:
        (same,) = another.batches()
        assert (same.id, same.batch_ids, same.model) == (batch.id, batch.batch_ids, "gpt-5.5")
        requests = simulator.ledger().requests
        html = same._repr_html_()
        assert f"Batch {same.id}: in_progress, {same.counts.done} of 2 rows done" in html
        assert same.batch_ids[0] in html
        assert simulator.ledger().requests == requests, "a view sends nothing"
        with pytest.raises(TimeoutError, match=f"not done after 0.01 s.*batches wait {same.id}"):
            same.wait(0.01)
        with pytest.raises(RequestError, match="timeout must be a positive number of seconds, not '60'"):
            same.wait("60")  # type: ignore[arg-type]  # what users write
        assert same.results().texts == ["2", "4"]
        assert (same.status, same.counts.done) == ("completed", 2)
    assert batch.results().texts == ["2", "echo: stored before", "4"]
    assert simulator.ledger().answered == 3


def test_metadata_reaches_whoever_collects(client: Client, simulator: Simulator, tmp_path: Path) -> None:
    simulator.configure(batch_seconds=10_000.0)
    ids = [{"id": 1, "payload": '"'}, object()]
    client.submit_many("gpt-5.5", ["1+1?", "2+2?"], metadata=ids, n=2)
    with Client(cache_dir=client.cache.directory, ledger=tmp_path / "ledger.jsonl") as another:
        results = another.batches()[0].results()
    assert (results.texts, results[0].metadata) == (["2", "4"], ids[0])
    assert [len(result.choices) for result in results] == [2, 2]
    assert results[1].metadata.startswith("<object object")
    lines = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert ids[0] in [line.get("metadata") for line in lines]


def test_the_same_call_attaches(client: Client, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=20_000.0)
    first = client.submit_many("claude-haiku-5-5", ["1+1?", "2+2?"])
    second = client.submit_many("claude-haiku-5-5", ["2+2?", "3+3?"])
    assert first.batch_ids[0] in second.batch_ids
    assert second.results().texts == ["4", "6"]
    assert simulator.ledger().answered == 3


def test_a_cancelled_batch_says_so(client: Client, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=86_000.0, batch_clock=1.0)
    for model in ("gpt-5.5", "claude-haiku-5-5", "gemini/gemini-3.8-flash"):
        batch = client.submit_many(model, ["Hi"], on_error="raise")
        batch.cancel()
        with pytest.raises(BatchError, match="cancelled"):
            batch.results()
    assert simulator.ledger().answered == 0


@pytest.mark.parametrize("model", ["gpt-5.5", "claude-haiku-5-5", "gemini/gemini-3.8-flash"])
@pytest.mark.sampled(3)
def test_only_a_batch_under_way_is_cancelled(client: Client, simulator: Simulator, model: str) -> None:
    ended = client.submit_many(model, ["1+1?"])
    assert wait_until(lambda: ended.status == "ended")
    assert (ended.cancel(), ended.last_status) == (False, "ended")
    assert ended.results().texts == ["2"]
    assert (asyncio.run(ended.acancel()), ended.last_status) == (False, "completed")
    ended.forget()
    assert not ended.cancel()
    # The journal does not know yet that this one has ended.
    simulator.configure(batch_seconds=0.0)
    unknown = client.submit_many(model, ["2+2?"])
    assert (unknown.cancel(), unknown.last_status) == (False, "ended")
    assert [request.path for request in simulator.requests() if request.path.endswith("cancel")] == []


def test_everything_stored_needs_no_batch(client: Client, simulator: Simulator) -> None:
    client.call("gpt-5.5", "Hi")
    batch = client.submit_many("gpt-5.5", ["Hi"])
    assert (batch.status, batch.batch_ids, batch.model) == ("completed", (), None)
    assert batch.results().texts == ["echo: Hi"]
    assert client.batches() == []


async def test_it_works_in_a_loop(client: Client, simulator: Simulator) -> None:
    batch = await client.asubmit_many("gpt-5.5", ["1+1?"])
    assert (await batch.aresults()).texts == ["2"]
    await batch.acancel()


def test_a_forgotten_batch_is_submitted_again(client: Client, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=10_000.0)
    batch = client.submit_many("claude-haiku-5-5", ["1+1?"])
    with pytest.raises(RequestError, match="0 batches of unknown outcome"):
        batch.claim("msgbatch_1")
    batch.forget()
    assert batch.status == "forgotten"
    assert client.call_many("claude-haiku-5-5", ["1+1?"], delivery="batch")
    assert len([request for request in simulator.requests() if request.path.endswith("/batches")]) >= 2


def test_embeddings_are_found_again(client: Client, simulator: Simulator) -> None:
    vectors = client.embed("text-embedding-3-small", ["a", "b"], delivery="batch").vectors
    (batch,) = client.batches()
    (embeddings,) = batch.results()
    assert embeddings.vectors == vectors
    assert repr(batch).startswith(f"Batch({batch.id}, openai, text-embedding-3-small, completed")


@pytest.mark.parametrize("model", ["gpt-5.5", "claude-haiku-5-5", "gemini/gemini-3.8-flash"])
@pytest.mark.parametrize("way", ["results", "aresults", "wait", "twice"])
@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.sampled(5)
def test_whoever_collects_has_paid_and_no_answer_is_a_hit(
    client: Client, simulator: Simulator, model: str, way: str, samples: int, is_kept: bool
) -> None:
    simulator.configure(
        prices="prices.csv", batch_seconds=20_000.0, **({} if is_kept else {"output_tokens": 50})
    )
    more: dict[str, Any] = {"max_tokens": 5, **({"n": samples} if samples > 1 else {})}
    client.submit_many(model, ["1+1?", "2+2?"], **more)
    with Client(cache_dir=client.cache.directory) as another:
        (batch,) = another.batches()
        if way == "wait":
            batch.wait()
        results = asyncio.run(batch.aresults()) if way == "aresults" else batch.results()
        if way == "twice":
            assert batch.results().cost == results.cost
        bill = simulator.ledger().billed
        assert bill
        assert float(results.cost) == pytest.approx(float(bill), rel=1e-12)
        assert another.usage.spent == bill
        assert not another.usage.hits
    with Client(cache_dir=client.cache.directory) as late:
        (batch,) = late.batches()
        assert (batch.results().cost, late.usage.spent, late.usage.hits) == (0, 0, 0)
        assert batch.results().texts == results.texts
