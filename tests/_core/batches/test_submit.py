"""Submissions: none twice, whatever the provider and the journal have been through."""

import contextlib
import shutil
from pathlib import Path

import anthropic
import pytest

from llm_provider import (
    APITimeoutError,
    BadRequestError,
    Budget,
    Client,
    Ledger,
    RateLimitError,
    Response,
    UncertainBatchError,
)
from llm_provider._core.batches.journal import Journal
from llm_provider._core.batches.rows import Wanted
from llm_provider._core.batches.submit import split_by_limits
from llm_provider._core.formats.shared.batches import BatchLimits
from llm_provider.simulator import Fault, Simulator

MODELS = ["gpt-5.5", "claude-haiku-5-5", "gemini/gemini-3.8-flash"]
INPUTS = ["1+1?", "2+2?"]
ODD_BODIES = ("{}", "null", '{"data":{"id":"x"}}', "<html>a proxy</html>")
ODD_LISTS = (
    *ODD_BODIES,
    "[]",
    '{"data":[],"has_more":true}',
    '{"data":[{"id":"x"}],"operations":[{"name":"x"}]}',
)


def wanted(size: int, parts: int = 1) -> Wanted:
    return Wanted("name", ("key",) * parts, (), (0, 0), size, [])


def test_rows_are_divided_by_their_number_and_their_bytes() -> None:
    def sizes(rows: list[Wanted], most_rows: int, most_bytes: int) -> list[int]:
        return [len(group) for group in split_by_limits(rows, BatchLimits(most_rows, most_bytes))]

    assert sizes([wanted(100)] * 5, 2, 10_000) == [2, 2, 1]
    assert sizes([wanted(100)] * 5, 100, 1_100) == [3, 2]
    # OpenAI counts the texts of embeddings.
    assert sizes([wanted(1, 3)] * 2, 5, 10_000) == [1, 1]
    assert sizes([], 1, 1) == []
    assert sizes([wanted(99_999)], 1, 1) == [1]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("fault", [Fault(abort_after=0), *(Fault(body=body) for body in ODD_BODIES)])
@pytest.mark.parametrize("listed", ODD_LISTS)
@pytest.mark.sampled(8)
def test_a_submission_whose_answer_is_lost_is_found(
    client: Client, simulator: Simulator, model: str, fault: Fault, listed: str
) -> None:
    simulator.inject(fault, match="batches.create")
    simulator.inject(Fault(body=listed), match="batches.list")
    # A refresh looks for no batch of another directory, so the list is first read after the submission.
    assert client.call_many(model, INPUTS, delivery="batch", cache="refresh").texts == ["2", "4"]
    assert simulator.ledger().answered == 2
    # Another one is not submitted before the provider's list was read.
    assert simulator.ledger().faults == 2


def test_a_refusal_is_tried_again_and_a_mistake_is_not(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, retry_after="0.01"), match="batches.create")
    assert len(client.call_many("gpt-5.5", ["a"], delivery="batch")) == 1
    simulator.inject(Fault(status=400, message="no batches for you"), match="batches.create")
    (error,) = client.call_many("gpt-5.5", ["b"], delivery="batch")
    assert isinstance(error, BadRequestError)
    assert error.message == "no batches for you"
    assert all(batch.done for batch in client.batches())
    # A refusal that lasts is reported.
    simulator.inject(Fault(status=429, retry_after="0.01"), match="batches.create", times=None)
    (error,) = client.call_many("gpt-5.5", ["c"], delivery="batch", outage_patience=0.1)
    assert isinstance(error, RateLimitError)
    with pytest.raises(RateLimitError):
        client.submit_many("gpt-5.5", ["c"], outage_patience=0.1)


def cut_journal(client: Client, rows: float) -> str:
    """Cut off the events of the only batch, and all rows but this share; returns the name of the batch."""
    (record,) = Journal(client.cache.directory / "batches").records()
    whole = record.path.read_bytes()
    length = int(rows * whole.index(b'{"sealed"')) if rows < 1 else whole.index(b'{"event"')
    record.path.write_bytes(whole[:length])
    return record.id


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("keep", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.sampled(5)
def test_a_cut_journal_pays_none_twice(client: Client, simulator: Simulator, model: str, keep: float) -> None:
    simulator.configure(batch_seconds=1.0)  # a batch of Anthropic is known by its rows, once it has ended
    client.submit_many(model, INPUTS)
    cut_journal(client, keep)
    with Client(cache_dir=client.cache.directory) as another:
        assert another.call_many(model, INPUTS, delivery="batch").texts == ["2", "4"]
        assert simulator.ledger().answered == 2


def test_a_damaged_journal_leaves_the_decision_to_the_user(client: Client, simulator: Simulator) -> None:
    """Anthropic keeps no label, the number of rows is lost, and there are no results yet to recognise it."""
    simulator.configure(batch_seconds=86_000.0, batch_clock=1.0)
    client.submit_many("claude-haiku-5-5", INPUTS)
    name = cut_journal(client, 0.3)
    with Client(cache_dir=client.cache.directory) as another:
        with pytest.raises(UncertainBatchError) as caught:
            another.call_many("claude-haiku-5-5", INPUTS, delivery="batch")
        assert (caught.value.batch, len(caught.value.candidates)) == (name, 1)
        (batch,) = another.batches()
        batch.forget()


def test_a_moved_cache_takes_its_batches_along(client: Client, simulator: Simulator, tmp_path: Path) -> None:
    simulator.configure(batch_seconds=20_000.0)
    client.submit_many("claude-haiku-5-5", INPUTS)
    client.close()
    moved = Path(shutil.move(client.cache.directory, tmp_path / "moved"))
    with Client(cache_dir=moved) as another:
        (batch,) = another.batches()
        assert batch.results().texts == ["2", "4"]
        assert another.call_many("claude-haiku-5-5", INPUTS)[0].cached  # type: ignore[union-attr]  # stored
    assert simulator.ledger().answered == 2


def submit_theirs(simulator: Simulator, batches: int) -> None:
    """Batches of another program with as many rows, which were created at the same time."""
    key = simulator.environment()["ANTHROPIC_API_KEY"]
    message = {"role": "user", "content": "theirs"}
    params = {"model": "claude-haiku-5-5", "max_tokens": 9, "messages": [message]}
    rows = [{"custom_id": f"r{n}", "params": params} for n in range(len(INPUTS))]
    with anthropic.Anthropic(base_url=simulator.url("anthropic"), api_key=key) as sdk:
        for _ in range(batches):
            sdk.messages.batches.create(requests=rows)  # type: ignore[arg-type]  # plain dicts


def test_another_programs_batch_is_not_cancelled(client: Client, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=86_000.0, batch_clock=1.0)
    submit_theirs(simulator, 1)
    simulator.inject(Fault(status=500), match="batches.create")
    batch = client.submit_many("claude-haiku-5-5", INPUTS)
    with pytest.raises(UncertainBatchError, match="another program's batch, which is not cancelled"):
        batch.cancel()
    assert batch.status == "in_progress"
    batch.claim(batch.batch_ids[0])
    assert batch.cancel()


@pytest.mark.parametrize("theirs", [1, 3])
@pytest.mark.parametrize("accepted", [True, False])
@pytest.mark.parametrize("fault", [None, Fault(status=404), Fault(cut_after=0)])
@pytest.mark.sampled(5)
def test_an_ended_batch_is_recognised_by_its_rows(
    client: Client, simulator: Simulator, theirs: int, accepted: bool, fault: Fault | None
) -> None:
    submit_theirs(simulator, theirs)
    if fault is not None:
        simulator.inject(fault, match="batches.results")
        simulator.configure(batch_results_late=2)
    simulator.inject(Fault(abort_after=0) if accepted else Fault(status=500), match="batches.create")
    budget = Budget(1.0)
    results = client.call_many(
        "claude-haiku-5-5", INPUTS, max_tokens=9, delivery="batch", budget=budget, max_retries=0
    )
    assert results.texts == ["2", "4"]
    assert simulator.ledger().answered == 2 * (theirs + 1)
    assert (float(budget.spent), budget.reserved) == (pytest.approx(float(results.cost)), 0)


@pytest.mark.parametrize("model", ["gpt-5.5", "gemini/gemini-3.8-flash"])
@pytest.mark.parametrize("submitter_first", [True, False])
@pytest.mark.parametrize("one_ledger", [True, False])
@pytest.mark.sampled(3)
def test_two_cache_directories_enter_one_batch_once(
    simulator: Simulator, tmp_path: Path, model: str, submitter_first: bool, one_ledger: bool
) -> None:
    simulator.configure(prices="prices.csv", batch_results_late=3)
    paths = [tmp_path / f"{0 if one_ledger else number}.jsonl" for number in range(3)]
    clients = [
        Client(cache_dir=tmp_path / str(number), ledger=path, budget=Budget(1.0))
        for number, path in enumerate(paths)
    ]
    with contextlib.ExitStack() as stack:
        for each in clients:
            stack.enter_context(each)
        clients[0].submit_many(model, INPUTS, max_tokens=9)
        order = clients if submitter_first else clients[::-1]
        answers = [each.call_many(model, INPUTS, max_tokens=9, delivery="batch") for each in order]
        assert [[each.text for each in results] for results in answers] == [["2", "4"]] * 3  # type: ignore[union-attr]  # none failed
        billed = simulator.ledger().billed
        assert simulator.ledger().answered == 2
        assert Ledger.read(*dict.fromkeys(paths)).spent == sum(each.usage.spent for each in clients) == billed
        assert sum(results.cost for results in answers) == pytest.approx(float(billed or 0))
        assert [each.usage.spent for each in clients] == [billed, 0, 0]


def test_a_lost_journal_loses_no_cost(simulator: Simulator, tmp_path: Path) -> None:
    """The directory that submitted a batch has its cost in its ledger, once."""
    simulator.configure(prices="prices.csv")
    for _ in range(2):
        with Client(cache_dir=tmp_path / "cache", ledger=tmp_path / "ledger.jsonl") as client:
            assert client.submit_many("gpt-5.5", INPUTS).results().texts == ["2", "4"]
            client.cache.prune(model="gpt-5.5")
        shutil.rmtree(tmp_path / "cache" / "batches")
    assert simulator.ledger().answered == 2
    assert Ledger.read(tmp_path / "ledger.jsonl").spent == simulator.ledger().billed


def test_a_batch_that_was_planned_and_not_submitted_is_removed(client: Client, simulator: Simulator) -> None:
    client.submit_many("gpt-5.5", INPUTS)
    cut_journal(client, 1.0)
    simulator.clear()  # as if its process had died before it submitted anything
    with Client(cache_dir=client.cache.directory) as another:
        assert another.call_many("gpt-5.5", INPUTS, delivery="batch").texts == ["2", "4"]
        assert len(another.batches()) == 1


def test_a_deadline_ends_a_submission_that_hangs(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(hang=True), times=None)
    (refused,) = client.call_many("gpt-5.5", ["1+1?"], delivery="batch", deadline=0.3)
    assert isinstance(refused, APITimeoutError)
    simulator.drop_faults()
    (answer,) = client.call_many("gpt-5.5", ["1+1?"], delivery="batch")
    assert isinstance(answer, Response)
    assert len(client.batches()) == 1
