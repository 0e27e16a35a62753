"""The states of Gemini's batches."""

from types import SimpleNamespace

import pytest

from llm_provider._providers.gemini.batches import _remote


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
