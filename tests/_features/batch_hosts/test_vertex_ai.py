"""Vertex AI's jobs and rows, as it writes them."""

import json
from typing import Any

import pytest

from llm_provider import Client, RequestError
from llm_provider._core.requests.routing import resolve
from llm_provider._features.batch_hosts import vertex_ai

NAME = "0123456789abcdef" * 4
LABELS = {"llm_provider_row": NAME[:32], "llm_provider_row_end": NAME[32:]}


def read(**fields: Any) -> Any:
    return vertex_ai._read_batch({"name": "projects/1/locations/global/batchPredictionJobs/7", **fields})


@pytest.mark.parametrize(
    ("state", "ended"),
    [
        *((word, False) for word in ("QUEUED", "PENDING", "RUNNING", "PAUSED", "CANCELLING", "UPDATING")),
        *((word, True) for word in ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")),
    ],
)
def test_every_word_of_a_job_is_known(state: str, ended: bool) -> None:
    output = {"gcsDestination": {"outputUriPrefix": "gs://b/f/results"}}
    job = read(state=f"JOB_STATE_{state}", outputConfig=output, createTime="2026-11-29T10:00:00.123456Z")
    assert (job.identifier, job.state, job.ended) == ("7", state, ended)
    # A job that failed has no results, unless it says where.
    assert bool(job.results) is (ended and state != "FAILED")
    said = read(state=f"JOB_STATE_{state}", outputInfo={"gcsOutputDirectory": "gs://b/f/prediction-1/"})
    assert said.results == (("gs://b/f/prediction-1",) if ended else ())


def test_counts_are_texts_and_a_full_queue_has_its_code() -> None:
    stats = {"successfulCount": "3", "failedCount": "1", "incompleteCount": "-1"}
    job = read(state="JOB_STATE_FAILED", completionStats=stats, error={"code": 8, "message": "quota"})
    assert (job.total, job.done, job.failed, job.problem) == (4, 3, 1, "quota")
    assert job.problem_code == "token_limit_exceeded"


@pytest.mark.parametrize(
    ("row", "body", "problem"),
    [
        ({"request": {"labels": LABELS}, "status": "", "response": {"x": 1}}, b'{"x":1}', ""),
        ({"custom_id": NAME, "response": {"type": "message"}}, b'{"type":"message"}', ""),
        ({"custom_id": NAME, "status": 'Bad: {"error":{"code":400,"message":"wrong"}}'}, None, "wrong"),
        ({"custom_id": NAME, "response": {}, "status": "INTERNAL: try later"}, None, "INTERNAL: try later"),
        ({"custom_id": NAME, "error": {"code": 8, "message": "full"}}, None, "full"),
        ({"custom_id": NAME}, None, "an error without a message"),
        ({"custom_id": NAME, "response": {"error": {"code": 429, "message": "full"}}}, None, "full"),
        (
            {"custom_id": NAME, "status": "Bad: no", "response": {"error": {"message": "other"}}},
            None,
            "Bad: no",
        ),
    ],
)  # fmt: skip
def test_a_row_has_an_answer_or_an_error(row: dict[str, Any], body: bytes | None, problem: str) -> None:
    reply = vertex_ai.read_line(json.dumps(row).encode() + b"\n")
    assert (reply.custom_id, reply.body) == (NAME, body)
    assert problem == ("" if reply.error is None else reply.error.message)
    assert reply.error is None or not reply.error.maybe_billed


def test_a_damaged_line_fails_its_row_alone() -> None:
    line = json.dumps({"request": {"labels": LABELS}}).encode()[:-1] + b',"response":"\\ud83"}\n'
    assert vertex_ai.read_line(line)[:2] == (NAME, line)
    assert vertex_ai.read_line(line[:-1]).custom_id == vertex_ai.read_line(b"<html>\n").custom_id == ""


def test_the_labels_of_a_user_stay_and_numbers_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    connection = object.__new__(vertex_ai.VertexBatches)
    connection._names_rows = False
    line = connection.line(None, NAME, b'{"contents":[],"labels":{"team":"x"},"n":18446744073709551616}')  # type: ignore[arg-type]  # Gemini's rows need no spec
    assert json.loads(line)["request"] == {
        "contents": [], "labels": {"team": "x", **LABELS}, "n": 18446744073709551616
    }  # fmt: skip
    # Google's labels have 63 characters at most, in lower case.
    assert all(len(value) <= 63 and value == value.lower() for value in LABELS.values())


def test_a_key_of_the_express_mode_has_no_batches(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERTEX_API_KEY", "AQ.key")
    monkeypatch.delenv("GOOGLE_VERTEX_BASE_URL", raising=False)
    monkeypatch.setenv("VERTEX_BATCH_BUCKET", "gs://bucket")
    assert "/projects/" not in str(resolve("vertex_ai/gemini-3.8-flash").base_url)
    results = client.call_many("vertex_ai/gemini-3.8-flash", ["Hi"], delivery="batch", on_error="return")
    assert isinstance(results[0], RequestError)
    assert "express mode has no batches" in results[0].message
