"""How the rows of Gemini's batches end, and the states of a batch."""

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from llm_provider import APITimeoutError, BadRequestError, InternalServerError
from llm_provider._providers.gemini.batches import _remote, _reply


def row(**fields: Any) -> bytes:
    return orjson.dumps({"key": "a", **fields})


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        ({"code": 3, "message": "no", "status": "INVALID_ARGUMENT"}, BadRequestError),
        ({"code": 4, "message": "late", "status": "DEADLINE_EXCEEDED"}, APITimeoutError),
        ({"code": 500, "message": "failed", "status": "INTERNAL"}, InternalServerError),
        ({"code": 13}, InternalServerError),
    ],
)
def test_a_row_without_an_answer_has_a_typed_error(failure: dict[str, Any], kind: type) -> None:
    error = _reply(row(error=failure)).error
    assert type(error) is kind
    assert not error.maybe_billed


def test_a_vector_has_the_form_of_a_live_answer() -> None:
    reply = _reply(row(response={"embedding": {"values": [1.0]}}))
    assert orjson.loads(reply.body or b"") == {"embeddings": [{"values": [1.0]}]}


@pytest.mark.parametrize(
    ("state", "ended"),
    [
        ("JOB_STATE_RUNNING", False),
        ("JOB_STATE_CANCELLING", False),
        ("JOB_STATE_SUCCEEDED", True),
        ("JOB_STATE_PARTIALLY_SUCCEEDED", True),
        ("BATCH_STATE_EXPIRED", True),
    ],
)
def test_a_partial_success_is_an_end(state: str, ended: bool) -> None:
    job = SimpleNamespace(
        name="batches/1", state=SimpleNamespace(name=state), display_name="llm_provider 1f 2e",
        create_time=None, completion_stats=None, dest=SimpleNamespace(file_name="files/1"), error=None,
    )  # fmt: skip
    remote = _remote(job)
    assert (remote.ended, remote.label, remote.content, remote.results) == (ended, "1f", "2e", ("files/1",))


def test_counts_and_the_reason_of_a_failure_are_read_from_the_operation() -> None:
    """The SDK leaves them out."""
    job = SimpleNamespace(
        name="batches/1", state=SimpleNamespace(name="BATCH_STATE_FAILED"), create_time=None, dest=None,
        display_name="llm_provider 1f 2e 3d",
    )  # fmt: skip
    stats = {"requestCount": "6", "successfulRequestCount": "4", "failedRequestCount": "2"}
    remote = _remote(job, {"metadata": {"batchStats": stats}, "error": {"message": "no"}})
    assert (remote.total, remote.done, remote.failed, remote.problem) == (6, 4, 2, "no")
    assert (remote.label, remote.origin, remote.ended_early) == ("1f", "3d", True)
    assert (_remote(job).done, _remote(job).problem) == (0, None)


def test_a_cut_line_is_read_again() -> None:
    with pytest.raises(ConnectionResetError):
        _reply(row(response={})[:-3])
