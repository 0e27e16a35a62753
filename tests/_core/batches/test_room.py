"""Batches for which a provider has no room, or which it refuses: none is lost, and none is paid for twice."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from batch_queue import Queue, Refusal, refuse
from llm_provider import BadRequestError, Client, LLMError, RequestError, Response, Results
from llm_provider.simulator import Fault, Simulator

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
