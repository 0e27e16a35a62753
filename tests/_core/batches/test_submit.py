"""Submissions: none twice, whatever the provider and the journal have been through.

Budgets: reserved at batch prices, counted when the rows are back.
Batches for which a provider has no room, or which it refuses: none is lost, and none is paid for twice.
"""

import asyncio
import contextlib
import itertools
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from batch_queue import Queue, Refusal, refuse
from llm_provider import (
    APITimeoutError,
    BadRequestError,
    Budget,
    BudgetExceededError,
    Client,
    Ledger,
    LLMError,
    RateLimitError,
    RequestError,
    Response,
    Results,
    UncertainBatchError,
    UnknownPriceError,
)
from llm_provider._core.batches import submit
from llm_provider._core.batches.job import Wanted
from llm_provider._core.batches.journal import Journal
from llm_provider._core.batches.submit import _ROW_OVERHEAD, fill_last, split_by_limits
from llm_provider._core.formats.shared.batches import BatchLimits
from llm_provider.simulator import Fault, Simulator
from support import wait_until

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


@given(
    rows=st.lists(
        st.tuples(st.integers(1, 400), st.integers(1, 4), st.sampled_from([4, 9, sys.maxsize])), max_size=25
    ),
    most=st.integers(4, 12),
    size=st.integers(700, 2000),
    least=st.integers(1, 5),
)
def test_groups_of_rows_are_as_large_as_a_batch_may_be(
    rows: list[tuple[int, int, int]], most: int, size: int, least: int
) -> None:
    all_rows = [wanted(bytes_, parts) for bytes_, parts, _ in rows]
    for row, (_, _, together) in zip(all_rows, rows, strict=True):
        row.together = together

    def fits(group: list[Wanted]) -> bool:
        parts = sum(len(row.keys) for row in group)
        return parts <= min(most, *(row.together for row in group)) and (
            sum(row.size + _ROW_OVERHEAD for row in group) <= size
        )

    groups = list(split_by_limits(all_rows, BatchLimits(most, size)))
    assert [row for group in groups for row in group] == all_rows
    assert all(map(fits, groups))
    for group, later in itertools.pairwise(groups):
        assert not fits([*group, later[0]])
    lengths = [len(group) for group in groups]
    filled = fill_last(groups, least)
    assert [row for group in filled for row in group] == all_rows
    if len(lengths) > 1 and lengths[-1] < least <= lengths[-2] + lengths[-1] - least:
        lengths[-2:] = [lengths[-2] + lengths[-1] - least, least]
    assert [len(group) for group in filled] == lengths


def test_a_last_group_that_is_too_small_gets_the_last_rows_of_the_one_before() -> None:
    for before, last, least in itertools.product(range(1, 8), range(1, 5), range(1, 6)):
        rows = [wanted(number) for number in range(before + last)]
        filled = fill_last([rows[:before], rows[before:]], least)
        assert [row for group in filled for row in group] == rows
        missing = max(0, least - last)
        moved = missing if before >= least + missing else 0
        assert list(map(len, filled)) == [before - moved, last + moved]
    assert fill_last([[wanted(1)]], 5) == [[wanted(1)]]
    assert fill_last([], 5) == []


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


async def test_a_list_may_lack_a_new_batch_and_is_not_read_before(
    client: Client, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submit, "_SETTLING_SECONDS", 3_600.0)
    simulator.inject(Fault(abort_after=0), match="batches.create")
    simulator.inject(Fault(body='{"data":[]}'), match="batches.list", times=None)
    sending = asyncio.create_task(
        client.acall_many("gpt-5.5", INPUTS, delivery="batch", cache="refresh"),
    )
    await asyncio.to_thread(wait_until, lambda: simulator.ledger().faults)
    assert not (await asyncio.wait((sending,), timeout=0.5))[0]
    assert simulator.ledger().faults == 1
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending


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


@pytest.mark.parametrize("counts", ["all", "none"])
@pytest.mark.parametrize("rows", [1, 2])
def test_whole_results_are_read_once_to_tell_batches_apart(
    client: Client, simulator: Simulator, rows: int, counts: str
) -> None:
    simulator.configure(batch_counts=counts, batch_seconds=1.0)
    client.submit_many("claude-haiku-5-5", INPUTS[:rows])
    cut_journal(client, 0.8)
    with Client(cache_dir=client.cache.directory, outage_patience=3.0) as another:
        answers = another.call_many("claude-haiku-5-5", INPUTS[:rows], delivery="batch")
    assert answers.texts == ["2", "4"][:rows]
    # Once to find out whose they are, and once for the answers.
    assert sum(request.path.endswith("/results") for request in simulator.requests()) == 2


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


def test_a_budget_that_is_too_small_for_live_may_do_for_a_batch(client: Client, simulator: Simulator) -> None:
    with pytest.raises(BudgetExceededError):
        client.call_many("gpt-5.5", ["1+1?"], max_tokens=100, budget=1e-6, delivery="batch")
    assert client.batches() == []
    live, batch = 0.0164, 0.0082
    bound = (live + batch) / 2
    (refused,) = client.call_many("gpt-5.5", ["1+1?"], max_tokens=100, budget=bound)
    assert isinstance(refused, BudgetExceededError)
    assert client.call_many("gpt-5.5", ["1+1?"], max_tokens=100, budget=bound, delivery="batch")


def test_an_unknown_price_is_refused(client: Client, simulator: Simulator) -> None:
    model = "together_ai/zai-org/GLM-5.3"
    with pytest.raises(UnknownPriceError, match="batch"):
        client.call_many(model, ["a"], max_tokens=9, budget=1.0, delivery="batch")
    allowed = Budget(1.0, allow_unknown=True)
    assert client.call_many(model, ["a"], max_tokens=9, budget=allowed, delivery="batch")


def test_a_budget_counts_a_batch_of_an_earlier_process(client: Client, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=20_000.0)
    client.submit_many("gpt-5.5", ["1+1?", "2+2?"])
    with Client(cache_dir=client.cache.directory, budget=1.00) as another:
        results = another.call_many("gpt-5.5", ["1+1?", "2+2?"], delivery="batch")
        assert another.budget is not None
        assert float(another.budget.spent) == pytest.approx(sum(result.cost or 0 for result in results))  # type: ignore[union-attr]  # known to be set here
        assert another.budget.reserved == 0


@pytest.mark.parametrize("path", [None, "run.tokens"])
@pytest.mark.parametrize("model", ["gpt-5.5", "claude-haiku-5-5", "gemini-3.8-flash"])
def test_a_token_budget_counts_a_batch_of_an_earlier_process_once(
    client: Client, simulator: Simulator, tmp_path: Path, model: str, path: str | None
) -> None:
    simulator.configure(batch_seconds=20_000.0)
    budget = Budget(50_000, unit="tokens", path=path and tmp_path / path)
    client.submit_many(model, INPUTS, max_tokens=99, token_budget=budget)
    assert budget.spent == 0
    assert 2 * 99 < budget.reserved < 10_000
    with Client(cache_dir=client.cache.directory, token_budget=budget) as another:
        results = another.call_many(model, INPUTS, max_tokens=99, delivery="batch")
    assert not results.errors
    assert (budget.spent, budget.reserved) == (sum(each.usage.total_tokens for each in results), 0)
    assert budget._store.read().parked == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no shared budgets")
@pytest.mark.parametrize("submitter_lives", [True, False])
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_shared_budget_counts_a_batch_once(
    client: Client, simulator: Simulator, tmp_path: Path, submitter_lives: bool, in_memory: bool
) -> None:
    simulator.configure(batch_seconds=20_000.0)
    path = None if in_memory else tmp_path / "run.budget"
    first = Budget(1.0, path=path)
    second = first if in_memory else Budget(1.0, path=path)
    client.submit_many("gpt-5.5", ["1+1?"], max_tokens=99, budget=first)
    if not submitter_lives:
        client.close()
        first._store.close()
        Budget(1.0, path=path)
    assert (second.spent, second.reserved > 0) == (0, True)
    with Client(cache_dir=client.cache.directory, budget=second) as another:
        (result,) = another.call_many("gpt-5.5", ["1+1?"], max_tokens=99, delivery="batch")
    assert (float(second.spent), second.reserved, second.uncertain) == (result.cost, 0, 0)
    assert second._store.read().parked == 0


PROMPTS = [f"question {number}" for number in range(24)]
MODEL = "gpt-5.5"

Way = Callable[[Client, str, dict[str, Any]], Results[Any]]


def call_many(client: Client, url: str, more: dict[str, Any]) -> Results[Any]:
    return client.call_many(MODEL, PROMPTS, base_url=url, delivery="batch", **more)


def iter_many(client: Client, url: str, more: dict[str, Any]) -> Results[Any]:
    pairs = dict(client.iter_many(MODEL, PROMPTS, base_url=url, delivery="batch", **more))
    return Results(pairs[index] for index in range(len(PROMPTS)))


def submit_many(client: Client, url: str, more: dict[str, Any]) -> Results[Any]:
    return client.submit_many(MODEL, PROMPTS, base_url=url, **more).results()


def acall_many(client: Client, url: str, more: dict[str, Any]) -> Results[Any]:
    return asyncio.run(client.acall_many(MODEL, PROMPTS, base_url=url, delivery="batch", **more))


WAYS = [call_many, iter_many, acall_many, submit_many]


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Client]:
    with Client(cache_dir=tmp_path / "cache", keys={"openai": "k"}, outage_patience=30.0) as client:
        yield client


@pytest.fixture
def impatient(tmp_path: Path) -> Iterator[Client]:
    with Client(cache_dir=tmp_path / "cache", keys={"openai": "k"}, outage_patience=0.3) as client:
        yield client


def check_whole(queue: Queue, results: Results[Any], client: Client) -> None:
    """Every prompt has its own answer, was answered once, and is in the ledger once."""
    assert results.texts == [f"to {prompt}" for prompt in PROMPTS]
    assert dict(queue.answered) == dict.fromkeys(PROMPTS, 1)
    assert (client.usage.requests, client.usage.unknown) == (len(PROMPTS), 0)
    assert results.cost.unknown == 0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("room", [24, 17, 6, 3])
@pytest.mark.parametrize("batch_size", [None, 5, 8])
@pytest.mark.sampled(8)
def test_a_full_queue_divides_batches_and_waits(
    own: Client, way: Way, room: int, batch_size: int | None
) -> None:
    queue = Queue(room)
    with queue.serve() as url:
        results = way(own, url, {} if batch_size is None else {"batch_size": batch_size})
    check_whole(queue, results, own)
    sizes = [len(batch["rows"]) for batch in queue.batches.values()]
    assert max(sizes) <= (batch_size or len(PROMPTS))
    # Those of another process do not see the refused ones.
    (batch,) = own.batches()
    later = batch.results()
    assert not later.errors, later.errors
    assert sorted(later.texts) == sorted(results.texts)


def test_the_queue_is_that_of_other_programs_too(own: Client) -> None:
    queue = Queue(room=24)
    queue.others, queue.other_rows = [4, 5], 24
    with queue.serve() as url:
        results = call_many(own, url, {})
    check_whole(queue, results, own)
    assert {len(batch["rows"]) for batch in queue.batches.values()} == {24}


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_that_is_claimed_while_it_is_looked_for_is_not_forgotten(own: Client, way: Way) -> None:
    class Unlisted(Queue):
        """Takes a batch without saying so, and has no list of batches."""

        def post(self, kind: str, body: bytes) -> Refusal:
            answer = super().post(kind, body)
            return refuse(500, "oops") if kind == "batches" else answer

        def get(self, path: str) -> Refusal:
            if not path.endswith("/batches"):
                return super().get(path)
            if self.batches:
                with Client(cache_dir=own.cache.directory) as other:
                    other.batches()[0].claim("batches-1")
            return refuse(404, "there is no such path")

    queue = Unlisted()
    with queue.serve() as url:
        with contextlib.suppress(UncertainBatchError):
            way(own, url, {})
        check_whole(queue, call_many(own, url, {}), own)
    assert queue.posts["batches"] == 1


def test_a_row_that_does_not_fit_alone_fails_in_its_place(own: Client) -> None:
    queue = Queue(room=12)
    queue.row_weight = lambda row: 13 if row["body"]["messages"][0]["content"] == PROMPTS[7] else 1
    with queue.serve() as url:
        results = call_many(own, url, {})
    ((index, error),) = results.errors_by_index.items()
    assert (index, type(error), error.code) == (7, BadRequestError, "token_limit_exceeded")
    assert "Enqueued token limit reached" in error.message
    assert not error.maybe_billed
    assert len(queue.answered) == 23
    assert set(queue.answered.values()) == {1}


def test_a_file_that_is_too_large_is_divided(own: Client) -> None:
    queue = Queue()
    queue.most_bytes = 2_500
    with queue.serve() as url:
        check_whole(queue, call_many(own, url, {}), own)


PASSING: list[tuple[str, list[Refusal]]] = [
    ("batches", [refuse(429, "slow down", retry_after="0.3")] * 3),
    ("batches", [refuse(429, "Enqueued token limit reached for gpt-5.5")]),
    ("batches", [refuse(400, "the request has too many requests in the file", "too_many_tasks")]),
    ("batches", [refuse(400, "Cannot find file file-1, or project p does not have access to it.")]),
    ("batches", [refuse(400, "The input file 'file-1' is in 'pending' state. Only 'Processed' is accepted")]),
    ("batches", [refuse(400, "File is too large.")]),
    ("batches", [refuse(500, "oops"), refuse(503, "oops")]),
    ("files", [refuse(500, "oops"), refuse(429, "slow down")]),
    ("files", [refuse(413, "entity too large")]),
]


@pytest.mark.parametrize(("kind", "refusals"), PASSING)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sampled(9)
def test_a_refusal_that_passes_costs_nothing(
    own: Client, kind: str, refusals: list[Refusal], way: Way
) -> None:
    queue = Queue()
    queue.refusals[kind] = list(refusals)
    with queue.serve() as url:
        check_whole(queue, way(own, url, {}), own)


LASTING = [
    ("files", 401), ("files", 403), ("files", 404), ("files", 500), ("batches", 400), ("batches", 401),
    ("batches", 403), ("batches", 404), ("batches", 429), ("batches", 500), ("batches", 503),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "status"), LASTING)
@pytest.mark.parametrize("accepted", [0, 1])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sampled(20)
def test_a_refusal_that_lasts_is_an_error_in_its_places(
    impatient: Client, kind: str, status: int, accepted: int, way: Way
) -> None:
    queue = Queue()
    with queue.serve() as url:
        stored = impatient.call_many(MODEL, PROMPTS[:3], base_url=url, delivery="batch")
        post = queue.post

        def answer(path: str, body: bytes) -> Refusal:
            if path == kind and queue.posts[kind] >= 1 + accepted:
                return refuse(status, "not today")
            return post(path, body)

        queue.post = answer  # type: ignore[method-assign]  # on purpose
        options = {"batch_size": 7}
        if way is submit_many and not accepted:
            with pytest.raises(LLMError, match="not today"):
                way(impatient, url, options)
            return
        results = way(impatient, url, options)
    known = 3 + 7 * accepted
    assert results.texts == [f"to {prompt}" for prompt in PROMPTS[:known]] + [None] * (24 - known)
    assert {(error.status, error.message, error.cost) for error in results.errors} == {
        (status, "not today", 0.0)
    }
    assert all(isinstance(result, Response) and result.cached for result in results[:3])
    assert set(queue.answered.values()) == {1}
    assert impatient.usage.requests == len(stored) + 7 * accepted


@pytest.mark.parametrize("size", [0, -1, 1.5, "many", True])
def test_the_size_of_batches_is_a_number(own: Client, size: object) -> None:
    with pytest.raises(RequestError, match="batch_size"):
        own.call_many(MODEL, ["a"], delivery="batch", batch_size=size)  # type: ignore[call-overload]  # wrong
    with pytest.raises(RequestError, match="max_concurrent"):
        own.call_many(MODEL, ["a"], batch_size=5)


REFUSED = [(413, 0), (413, 1), (429, 0), (500, 0), (401, None), (403, None), (404, None)]
"""Each status with the number of refusals before that are of another kind; None for one that lasts."""


@pytest.mark.parametrize("model", ["claude-haiku-5-5", "gemini-3.8-flash", "groq/llama", "together_ai/llama"])
@pytest.mark.parametrize(("status", "later"), REFUSED)
@pytest.mark.parametrize("where", ["batches.create", "files.upload"])
@pytest.mark.sampled(6)
def test_every_provider_refuses(
    client: Client, simulator: Simulator, model: str, status: int, later: int | None, where: str
) -> None:
    client.call(model, "1+1?")
    where = "batches.create" if model.startswith("claude") else where
    simulator.inject(Fault(status=500), times=later or 0, match=where)
    simulator.inject(Fault(status=status), times=1 if later is not None else None, match=where)
    questions = [f"{number}+{number}?" for number in range(1, 6)]
    results = client.call_many(model, questions, delivery="batch", outage_patience=20.0)
    assert results[0].cached
    if later is None:
        assert {error.status for error in results[1:].errors} == {status}
        assert len(results.errors) == 4
        assert not results[1:].maybe_billed
    else:
        assert results.texts == ["2", "4", "6", "8", "10"]
    assert simulator.ledger().answered == 5 - len(results.errors)
    assert client.usage.requests == simulator.ledger().answered
