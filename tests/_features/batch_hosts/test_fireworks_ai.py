"""Fireworks' jobs, datasets and accounts."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, RequestError
from llm_provider._core.formats.openai.batches import connect
from llm_provider._core.formats.shared.batches import BatchSpec, write_name
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.routing import resolve
from llm_provider._features.batch_hosts.fireworks_ai import FireworksBatches
from llm_provider.simulator import Fault, Simulator

MODEL = "fireworks_ai/accounts/fireworks/models/gpt-oss-120b"
NAME = write_name(BatchSpec(operation="chat/completions", label="l", content="c", origin="o"))

pytestmark = pytest.mark.filterwarnings("ignore::llm_provider.PriceWarning")


def read(**fields: Any) -> Any:
    return FireworksBatches.read_batch(
        {"name": "accounts/a/batchInferenceJobs/j", "displayName": NAME, **fields}
    )


@pytest.mark.parametrize(
    ("state", "expected", "ended"),
    [
        *((word, word.lower(), False) for word in ("VALIDATING", "PENDING", "CREATING", "RUNNING", "PAUSED")),
        ("WRITING_RESULTS", "writing_results", False),
        ("CANCELLING", "cancelling", False),
        ("COMPLETED", "completed", True),
        ("FAILED", "failed", True),
        ("EXPIRED", "expired", True),
        ("EARLY_STOPPED", "expired", True),
        ("CANCELLED", "cancelled", True),
        ("DELETING_CLEANING_UP", "cancelled", True),
    ],
)
def test_every_word_of_a_job_is_known(state: str, expected: str, ended: bool) -> None:
    job = read(state=f"JOB_STATE_{state}", outputDatasetId="accounts/a/datasets/out")
    assert (job.identifier, job.state, job.ended) == ("j", expected, ended)
    # The dataset of a job that failed does not exist.
    assert job.results == (("out",) if ended and state != "FAILED" else ())
    assert (job.label, job.content, job.origin) == ("l", "c", "o")


def test_the_words_and_the_counts_of_a_job_are_read() -> None:
    # The first count is what the dataset was said to have.
    progress = {"totalInputRequests": 1, "totalProcessedRequests": "3", "successfullyProcessedRequests": 2}
    status = {"code": "INVALID_ARGUMENT", "message": "invalid role"}
    job = read(state="JOB_STATE_FAILED", jobProgress=progress, status=status)
    assert (job.total, job.done, job.failed, job.problem) == (3, 2, 0, "invalid role")
    assert read(state="JOB_STATE_COMPLETED", status={"code": "OK", "message": "fine"}).problem is None


@pytest.mark.parametrize(
    ("line", "body", "message"),
    [
        (b'{"custom_id":"r","response":{"id":"x","choices":[]}}', b'{"id":"x","choices":[]}', None),
        (
            b'{"custom_id":"r","response":{"body":{"id":"x","choices":[]}}}',
            b'{"id":"x","choices":[]}',
            None,
        ),
        (b'{"custom_id":"r","response":{"status_code":200,"body":{"id":"x"}}}', b'{"id":"x"}', None),
        (b'{"custom_id":"r","error":{"message":"too long","code":400}}', None, "too long"),
        (b'{"custom_id":"r","error":"too long"}', None, "too long"),
        (b'{"custom_id":"r","response":null}', None, "an error without a message"),
    ],
)
def test_an_answer_may_stand_without_a_status(line: bytes, body: bytes | None, message: str | None) -> None:
    reply = FireworksBatches.read_line(line)
    assert (reply.custom_id, reply.body) == ("r", body)
    assert (None if reply.error is None else reply.error.message) == message


def test_the_account_is_the_only_one_of_the_key_or_that_of_the_variable(
    client: Client, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert client.call_many(MODEL, ["1+1?"], delivery="batch").texts == ["2"]
    two = '{"accounts":[{"name":"accounts/a"},{"name":"accounts/b"}]}'
    simulator.inject(Fault(body=two), match="batches.retrieve")
    with Client(cache_dir=tmp_path / "two") as other:
        (error,) = other.call_many(MODEL, ["2+2?"], delivery="batch", on_error="return")
    assert isinstance(error, RequestError)
    assert "2 accounts at Fireworks: set FIREWORKS_ACCOUNT_ID" in error.message
    monkeypatch.setenv("FIREWORKS_ACCOUNT_ID", "simulator")
    with Client(cache_dir=tmp_path / "named") as other:
        assert other.call_many(MODEL, ["3+3?"], delivery="batch").texts == ["6"]


def test_a_second_submission_of_a_batch_is_refused_by_its_name(client: Client, simulator: Simulator) -> None:
    # The answer is lost and the list is behind, so the batch is submitted again.
    simulator.inject(Fault(abort_after=0), match="batches.create")
    assert client.call_many(MODEL, ["1+1?"], delivery="batch").texts == ["2"]
    connection = connect(resolve(MODEL, base_url=simulator.url("fireworks_ai")), APIKey("simulator-key"))

    async def identify_all() -> list[str]:
        try:
            return [batch.identifier async for batch in connection.recent()]
        finally:
            await connection.close()

    (name,) = asyncio.run(identify_all())
    assert name == f"llm-provider-{client.batches()[0].record_ids[0]}"


def test_an_address_of_results_that_is_too_old_is_asked_for_anew(
    client: Client, simulator: Simulator
) -> None:
    simulator.inject(Fault(status=400, body="<Error>ExpiredToken</Error>"), match="files.download")
    assert client.call_many(MODEL, ["1+1?"], delivery="batch").texts == ["2"]


@pytest.mark.parametrize("fault", [Fault(status=503), Fault(abort_after=0)])
def test_a_dataset_without_its_file_gets_it_by_the_next_upload(
    client: Client, simulator: Simulator, fault: Fault
) -> None:
    simulator.inject(fault, match="files.store")
    assert client.call_many(MODEL, ["1+1?"], delivery="batch").texts == ["2"]
    made = [each.status for each in simulator.requests() if each.path.endswith("/datasets")]
    assert made == [200, 409]


@pytest.mark.parametrize("account", ["../x", "a b", "a/b"])
def test_an_account_is_a_name(client: Client, monkeypatch: pytest.MonkeyPatch, account: str) -> None:
    monkeypatch.setenv("FIREWORKS_ACCOUNT_ID", account)
    (error,) = client.call_many(MODEL, ["1+1?"], delivery="batch", on_error="return")
    assert isinstance(error, RequestError)
    assert "FIREWORKS_ACCOUNT_ID must be the name of an account" in error.message
