"""Files and batches of the simulator, without a server."""

import time
from typing import Any

import pytest

from llm_provider.simulator._batches.jobs import Batch, BatchStore, Row
from llm_provider.simulator._settings import Settings
from llm_provider.simulator.formats import openai_chat

PATH = "/v1/chat/completions"


def store_with(**changes: Any) -> tuple[BatchStore, list[str]]:
    """A store, and the list in which it notes the models that it bills."""
    billed: list[str] = []
    settings = Settings(**{"batch_seconds": 0.0, **changes})
    store = BatchStore(
        lambda provider: settings,
        lambda provider, path: openai_chat,
        lambda prompt, served, key, usage: billed.append(prompt.model),
    )
    return store, billed


def add(store: BatchStore, count: int, *more: Row) -> Batch:
    def row(number: int) -> Row:
        messages = [{"role": "user", "content": f"{number}+1?"}]
        return Row(f"r{number}", PATH, {"model": "gpt-5.5", "messages": messages})

    return store.add(store.next_identifier(), "openai", "k", [*map(row, range(count)), *more])


def names(batch: Batch, *kinds: str) -> list[str]:
    return [outcome.custom_id for outcome in batch.outcomes or () if outcome.kind in kinds]


def test_a_slow_batch_is_not_done_yet_and_a_cancelled_one_keeps_what_is_done() -> None:
    store, billed = store_with(batch_seconds=86_000.0, batch_clock=1.0)
    batch = add(store, 4)
    store.advance()
    assert batch.outcomes is None
    store.cancel(batch)
    store.advance()
    assert (batch.count["canceled"], billed) == (4, [])


def test_an_exact_share_of_the_rows_fails_and_only_once() -> None:
    store, billed = store_with(batch_errored=0.05, batch_expired=0.05)
    first, second = add(store, 100), add(store, 100)
    store.advance()
    assert first.count == {"succeeded": 90, "errored": 5, "expired": 5, "canceled": 0}
    # Other rows may fail now, but none of those that have failed before.
    assert not set(names(first, "errored", "expired")) & set(names(second, "errored", "expired"))
    assert len(billed) == 90 + second.count["succeeded"]


def test_rows_that_a_day_does_not_suffice_for_expire() -> None:
    store, billed = store_with(batch_seconds=2 * 86_400.0, batch_clock=86_400_000.0, batch_unordered=False)
    batch = add(store, 10)
    time.sleep(0.002)
    store.advance()
    assert (batch.count["expired"], len(billed)) == (5, 5)


@pytest.mark.parametrize(
    ("settings", "body"),
    [
        ({}, {"model": "gpt-5.5"}),
        ({}, {"model": "m", "messages": [{"role": "user"}], "response_format": 5}),
        ({"context_window": 2}, {"model": "m", "messages": [{"role": "user", "content": "x" * 9}]}),
    ],
)
def test_an_invalid_row_fails_alone(settings: dict[str, Any], body: dict[str, Any]) -> None:
    store, billed = store_with(**settings)
    batch = add(store, 1, Row("bad", PATH, body))
    store.advance()
    assert {outcome.custom_id: outcome.status for outcome in batch.outcomes or ()} == {"r0": 200, "bad": 400}
    assert len(billed) == 1


@pytest.mark.parametrize("gone", [None, 0.0])
def test_results_may_expire_and_their_batch_is_old_then(gone: float | None) -> None:
    store, _ = store_with(batch_results_seconds=gone)
    batch = add(store, 1)
    assert batch.submitted == batch.created
    store.advance()
    store.add_file("f", "results", "batch_output", b"", gone=batch.gone)
    assert (store.find_file("f") is None) == (gone is not None)
    assert (batch.created - batch.submitted > 30 * 86_400) == (gone is not None)
