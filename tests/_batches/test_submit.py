"""Submissions: none twice, whatever the provider and the journal have been through."""

from __future__ import annotations

import shutil
from pathlib import Path

import anthropic
import pytest

from llm_provider import BadRequestError, Client, RateLimitError, UncertainBatchError
from llm_provider._batches.journal import Journal
from llm_provider._batches.rows import Wanted
from llm_provider._batches.submit import chunks
from llm_provider._providers.batches import BatchLimits
from llm_provider.simulator import Fault, Simulator

MODELS = ["gpt-5.5", "claude-haiku-5-5"]
INPUTS = ["1+1?", "2+2?"]


def wanted(size: int, parts: int = 1) -> Wanted:
    return Wanted("name", ("key",) * parts, (), (0, 0), size, [])


def test_rows_are_divided_by_their_number_and_their_bytes() -> None:
    rows = [wanted(100) for _ in range(5)]
    assert [len(group) for group in chunks(rows, BatchLimits(2, 10_000))] == [2, 2, 1]
    assert [len(group) for group in chunks(rows, BatchLimits(100, 1_100))] == [3, 2]
    # OpenAI counts the texts of embeddings.
    assert [len(group) for group in chunks([wanted(1, 3), wanted(1, 3)], BatchLimits(5, 10_000))] == [1, 1]
    assert list(chunks([], BatchLimits(1, 1))) == []
    assert [len(group) for group in chunks([wanted(99_999)], BatchLimits(1, 1))] == [1]


@pytest.mark.parametrize("model", [*MODELS, pytest.param("gemini/gemini-3.8-flash", marks=pytest.mark.long)])
def test_a_submission_whose_answer_is_lost_is_found(client: Client, simulator: Simulator, model: str) -> None:
    simulator.inject(Fault(abort_after=0), match="batches.create")
    results = client.call_many(model, INPUTS, delivery="batch")
    assert [one.text for one in results] == ["2", "4"]  # type: ignore[union-attr]  # none failed
    assert simulator.ledger().answered == 2


def test_a_refusal_is_tried_again_and_a_mistake_is_not(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, retry_after="0.01"), match="batches.create")
    assert len(client.call_many("gpt-5.5", ["a"], delivery="batch")) == 1
    simulator.inject(Fault(status=400, message="no batches for you"), match="batches.create")
    with pytest.raises(BadRequestError, match="no batches for you"):
        client.call_many("gpt-5.5", ["b"], delivery="batch")
    assert all(batch.done for batch in client.batches())


def test_a_day_long_refusal_is_reported(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, retry_after="0.01"), match="batches.create", times=None)
    with pytest.raises(RateLimitError):
        client.call_many("gpt-5.5", ["c"], delivery="batch")


@pytest.mark.parametrize(
    ("model", "keep"),
    [
        ("gpt-5.5", 0.3),
        ("claude-haiku-5-5", 1.0),
        # Each waits two seconds for the provider's list to settle.
        pytest.param("gpt-5.5", 0.0, marks=pytest.mark.long),
        pytest.param("gpt-5.5", 1.0, marks=pytest.mark.long),
        pytest.param("claude-haiku-5-5", 0.3, marks=pytest.mark.long),
        pytest.param("gemini/gemini-3.8-flash", 0.0, marks=pytest.mark.long),
        pytest.param("gemini/gemini-3.8-flash", 1.0, marks=pytest.mark.long),
    ],
)
def test_a_journal_that_was_cut_pays_nothing_twice(
    client: Client, simulator: Simulator, model: str, keep: float
) -> None:
    """The events are cut off, or rows too, or everything."""
    simulator.configure(batch_seconds=20_000.0)
    client.call_many(model, INPUTS, delivery="batch", wait=False)
    (record,) = Journal(client.cache.directory / "batches").records()
    whole = record.path.read_bytes()
    length = int(keep * (whole.index(b'{"sealed"'))) if keep < 1 else whole.index(b'{"event"')
    record.path.write_bytes(whole[:length])
    with Client(cache_dir=client.cache.directory) as another:
        if model.startswith("claude") and keep < 1:
            # Anthropic keeps no label, and the number of rows is lost too: the user decides.
            with pytest.raises(UncertainBatchError) as caught:
                another.call_many(model, INPUTS, delivery="batch")
            assert caught.value.batch == record.id
            assert len(caught.value.candidates) == 1
            (found,) = another.batches()
            found.forget()
        else:
            results = another.call_many(model, INPUTS, delivery="batch")
            assert [one.text for one in results] == ["2", "4"]  # type: ignore[union-attr]  # none failed
            assert simulator.ledger().answered == 2


def test_a_journal_that_is_lost_is_written_anew(client: Client, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=20_000.0)
    client.call_many("gpt-5.5", INPUTS, delivery="batch", wait=False)
    shutil.rmtree(client.cache.directory / "batches")
    with Client(cache_dir=client.cache.directory) as another:
        assert len(another.call_many("gpt-5.5", INPUTS, delivery="batch")) == 2
    assert simulator.ledger().answered == 2


def test_a_moved_cache_directory_takes_its_batches_along(
    client: Client, simulator: Simulator, tmp_path: Path
) -> None:
    simulator.configure(batch_seconds=20_000.0)
    client.call_many("claude-haiku-5-5", INPUTS, delivery="batch", wait=False)
    client.close()
    moved = Path(shutil.move(client.cache.directory, tmp_path / "moved"))
    with Client(cache_dir=moved) as another:
        (batch,) = another.batches()
        assert [one.text for one in batch.results()] == ["2", "4"]
        assert another.call_many("claude-haiku-5-5", INPUTS)[0].cached  # type: ignore[union-attr]  # stored
    assert simulator.ledger().answered == 2


def test_a_batch_of_another_program_is_given_back(client: Client, simulator: Simulator) -> None:
    """It has as many rows, and was created at the same time as a submission of unknown outcome."""
    key = simulator.environment()["ANTHROPIC_API_KEY"]
    with anthropic.Anthropic(base_url=simulator.url("anthropic"), api_key=key) as sdk:
        message = {"role": "user", "content": "theirs"}
        params = {"model": "claude-haiku-5-5", "max_tokens": 9, "messages": [message]}
        rows = [{"custom_id": f"r{n}", "params": params} for n in range(2)]
        sdk.messages.batches.create(requests=rows)  # type: ignore[arg-type]  # plain dicts
    simulator.inject(Fault(status=500), match="batches.create")
    results = client.call_many("claude-haiku-5-5", INPUTS, delivery="batch")
    assert [one.text for one in results] == ["2", "4"]  # type: ignore[union-attr]  # none failed
    assert simulator.ledger().answered == 4
