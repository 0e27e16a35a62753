"""Mistral's words for jobs, and its pages."""

import asyncio
from typing import Any

import pytest

from llm_provider import Client, Response
from llm_provider._core.formats.openai.batches import connect
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.routing import resolve
from llm_provider._features.batch_hosts import mistral
from llm_provider.simulator import Simulator

MODEL = "mistral/mistral-small-2603"


def read(**fields: Any) -> Any:
    return mistral.MistralBatches.read_batch({"id": "j", "created_at": 1_795_824_000, **fields})


@pytest.mark.parametrize(
    ("status", "state", "ended", "early"),
    [
        ("QUEUED", "queued", False, False),
        ("RUNNING", "running", False, False),
        ("CANCELLATION_REQUESTED", "cancellation_requested", False, False),
        ("SUCCESS", "completed", True, False),
        ("FAILED", "failed", True, True),
        ("TIMEOUT_EXCEEDED", "expired", True, True),
        ("CANCELLED", "cancelled", True, True),
    ],
)
def test_every_word_of_a_job_is_known(status: str, state: str, ended: bool, early: bool) -> None:
    job = read(status=status)
    assert (job.state, job.ended, job.ended_early) == (state, ended, early)


def test_counts_files_and_the_label_are_read() -> None:
    job = read(
        status="SUCCESS",
        input_files=["in"],
        output_file="out",
        error_file=None,
        total_requests=3,
        succeeded_requests=2,
        failed_requests=1,
        metadata={"llm_provider": "l", "content": "c", "origin": "o"},
        errors=[{"message": "too long", "count": 2}],
    )
    assert (job.total, job.done, job.failed) == (3, 2, 1)
    assert (job.input_file, job.results) == ("in", ("out",))
    assert (job.label, job.content, job.origin) == ("l", "c", "o")
    assert job.problem == "too long"


def test_a_row_error_that_the_job_repeats_is_not_that_of_other_rows(
    client: Client, simulator: Simulator
) -> None:
    simulator.configure(batch_errored=0.5)
    results = client.call_many(MODEL, ["1+1?", "2+2?"], delivery="batch", max_retries=0, on_error="return")
    assert [isinstance(result, Response) for result in results] == [True, False]


def test_all_pages_of_the_list_are_read(
    client: Client, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mistral, "_PAGE", 2)
    simulator.configure(batch_seconds=40_000.0)
    client.submit_many(MODEL, [f"{number}+0?" for number in range(9)], batch_size=2)
    target = resolve(MODEL, base_url=simulator.url("mistral"))
    connection = connect(target, APIKey("simulator-key"))

    async def identify_all() -> list[str]:
        try:
            return [batch.identifier async for batch in connection.recent()]
        finally:
            await connection.close()

    names = asyncio.run(identify_all())
    assert len(set(names)) == len(names) == 5
