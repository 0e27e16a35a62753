"""Files and batches of the simulator, without a server."""

from __future__ import annotations

import time
from typing import Any

import pytest

from llm_provider.simulator._batches.jobs import BatchStore, Row
from llm_provider.simulator._settings import Settings
from llm_provider.simulator.formats import openai_chat

PATH = "/v1/chat/completions"


def store_with(**changes: Any) -> tuple[BatchStore, list[str]]:
    """A store, and the list in which it notes the models that it bills."""
    billed: list[str] = []
    settings = Settings(**changes)
    store = BatchStore(
        lambda provider: settings,
        lambda provider, path: openai_chat,
        lambda provider, model, usage: billed.append(model),
    )
    return store, billed


def rows(count: int, first: int = 0) -> list[Row]:
    return [
        Row(f"r{n}", PATH, {"model": "gpt-5.5", "messages": [{"role": "user", "content": f"{n}+1?"}]})
        for n in range(first, first + count)
    ]


def test_a_batch_is_worked_off_when_its_time_has_come() -> None:
    store, billed = store_with(batch_seconds=0.0)
    batch = store.add("b", "openai", "k", rows(3))
    assert batch.outcomes is None
    store.advance()
    assert [one.kind for one in batch.outcomes or ()] == ["succeeded"] * 3
    assert len(billed) == 3


def test_a_slow_batch_is_not_done_yet() -> None:
    store, billed = store_with(batch_seconds=86_000.0, batch_clock=1.0)
    batch = store.add("b", "openai", "k", rows(1))
    store.advance()
    assert (batch.outcomes, billed) == (None, [])


def test_an_exact_share_of_the_rows_fails_and_only_once() -> None:
    store, billed = store_with(batch_seconds=0.0, batch_errored=0.05, batch_expired=0.05)
    batch = store.add("b", "openai", "k", rows(100))
    store.advance()
    assert batch.count == {"succeeded": 90, "errored": 5, "expired": 5, "canceled": 0}
    again = store.add("c", "openai", "k", rows(100))
    store.advance()
    # Other rows may fail now, but none of those that have failed before.
    failed = {one.custom_id for one in batch.outcomes or () if one.kind != "succeeded"}
    assert failed.isdisjoint(one.custom_id for one in again.outcomes or () if one.kind != "succeeded")
    assert len(billed) == 90 + again.count["succeeded"]


def test_rows_that_a_day_does_not_suffice_for_expire() -> None:
    store, billed = store_with(batch_seconds=2 * 86_400.0, batch_clock=86_400_000.0, batch_unordered=False)
    batch = store.add("b", "openai", "k", rows(10))
    time.sleep(0.002)
    store.advance()
    assert batch.count["expired"] == 5
    assert len(billed) == 5


def test_a_cancelled_batch_keeps_what_is_done() -> None:
    store, billed = store_with(batch_seconds=86_000.0, batch_clock=1.0)
    batch = store.add("b", "openai", "k", rows(4))
    store.cancel(batch)
    store.advance()
    assert batch.count["canceled"] == 4
    assert billed == []


def test_results_are_given_in_another_order() -> None:
    store, _ = store_with(batch_seconds=0.0)
    batch = store.add("b", "openai", "k", rows(20))
    store.advance()
    names = [one.custom_id for one in batch.outcomes or ()]
    assert names != [f"r{n}" for n in range(20)]
    assert sorted(names) == sorted(f"r{n}" for n in range(20))


def test_an_invalid_row_fails_alone() -> None:
    store, billed = store_with(batch_seconds=0.0)
    batch = store.add("b", "openai", "k", [*rows(1), Row("bad", PATH, {"model": "gpt-5.5"})])
    store.advance()
    kinds = {one.custom_id: one.status for one in batch.outcomes or ()}
    assert kinds == {"r0": 200, "bad": 400}
    assert len(billed) == 1


def test_a_full_provider_takes_no_more() -> None:
    store, _ = store_with(batch_limit=1, batch_seconds=86_000.0, batch_clock=1.0)
    assert not store.is_full("openai")
    store.add("b", "openai", "k", rows(1))
    assert store.is_full("openai")
    assert not store.is_full("groq")


@pytest.mark.parametrize("gone", [None, 0.0])
def test_results_may_expire(gone: float | None) -> None:
    store, _ = store_with(batch_seconds=0.0, batch_results_seconds=gone)
    batch = store.add("b", "openai", "k", rows(1))
    store.advance()
    file = store.add_file("f", "results", "batch_output", b"")
    file.gone = batch.gone
    assert (store.find_file("f") is None) == (gone is not None)


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("none", None),
        ("all", {"total": 3, "processing": 0, "succeeded": 3}),
        ("stale", {"total": 3, "processing": 2, "succeeded": 1}),
    ],
)
def test_counts_may_be_left_out_or_behind(told: str, expected: dict[str, int] | None) -> None:
    store, _ = store_with(batch_seconds=0.0, batch_counts=told)
    batch = store.add("b", "openai", "k", rows(3))
    store.advance()
    counts = store.count_rows(batch)
    assert (counts and {name: counts[name] for name in expected or ()}) == expected


def test_the_place_of_results_may_come_late() -> None:
    store, _ = store_with(batch_seconds=0.0, batch_results_late=2)
    batch = store.add("b", "openai", "k", rows(1))
    assert not store.shows_results(batch, "output"), "it has not ended"
    store.advance()
    assert [store.shows_results(batch, "output") for _ in range(4)] == [False, False, True, True]
    assert store.shows_results(batch, "error")


def test_a_batch_without_its_results_is_old() -> None:
    store, _ = store_with(batch_seconds=0.0, batch_results_seconds=0.0)
    batch = store.add("b", "openai", "k", rows(1))
    assert batch.submitted == batch.created
    store.advance()
    assert batch.created - batch.submitted > 30 * 86_400
