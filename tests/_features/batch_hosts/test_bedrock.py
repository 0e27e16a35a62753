"""Bedrock's jobs and rows, as it writes them, and its least number of rows."""

import json
from typing import Any

import pytest

from llm_provider import Client, RequestError
from llm_provider._core.batches.submit import fill_last
from llm_provider._features.batch_hosts import bedrock

MODEL = "bedrock/anthropic.claude-haiku-4-5-20251001-v1:0"
NAME = "0123456789abcdef" * 4
ARN = "arn:aws:bedrock:eu-west-1:123456789012:model-invocation-job/abcdefgh1234"


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch) -> None:
    """An account at AWS. Nothing is sent there."""
    variables = {
        "AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIA1", "AWS_SECRET_ACCESS_KEY": "secret",
        "BEDROCK_BATCH_BUCKET": "s3://bucket", "BEDROCK_BATCH_ROLE_ARN": "arn:aws:iam::123456789012:role/r",
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)


@pytest.mark.parametrize(
    ("status", "state", "ended"),
    [
        *((word, word.lower(), False) for word in ("Submitted", "Validating", "Scheduled", "InProgress")),
        ("Stopping", "cancelling", False),
        ("Stopped", "cancelled", True),
        ("PartiallyCompleted", "partially_completed", True),
        *((word, word.lower(), True) for word in ("Completed", "Failed", "Expired")),
    ],
)
def test_every_word_of_a_job_is_known(status: str, state: str, ended: bool) -> None:
    output = {"s3OutputDataConfig": {"s3Uri": "s3://b/f/results/"}}
    token = "llmprovider-l-c-o"
    job = bedrock._read_batch(
        {
            "jobArn": ARN,
            "status": status,
            "outputDataConfig": output,
            "message": "m",
            "clientRequestToken": token,
        }
    )
    assert (job.identifier, job.state, job.ended) == ("abcdefgh1234", state, ended)
    assert (job.label, job.content, job.origin) == ("l", "c", "o")
    assert job.results == (("s3://b/f/results/abcdefgh1234/",) if ended and status != "Failed" else ())
    assert job.problem == ("m" if status == "Failed" else None)


def test_the_name_has_the_label_too() -> None:
    assert bedrock._read_batch({"jobArn": ARN, "jobName": "llm-provider-l"}).label == "l"
    assert bedrock._read_batch({"jobArn": ARN, "jobName": "mine", "clientRequestToken": "x-y"}).label is None


@pytest.mark.parametrize(
    ("row", "body", "problem"),
    [
        ({"modelOutput": {"type": "message"}}, b'{"type":"message"}', ""),
        ({"error": {"errorCode": 400, "errorMessage": "bad request"}}, None, "bad request"),
        ({"error": None}, None, "an error without a message"),
    ],
)
def test_a_row_has_an_answer_or_an_error(row: dict[str, Any], body: bytes | None, problem: str) -> None:
    reply = bedrock.read_line(json.dumps({"recordId": NAME, "modelInput": {}, **row}).encode() + b"\n")
    assert (reply.custom_id, reply.body) == (NAME, body)
    assert problem == ("" if reply.error is None else reply.error.message)


def test_a_damaged_line_fails_its_row_alone() -> None:
    line = b'{"recordId":"%s","modelOutput":"\\ud83"}\n' % NAME.encode()
    assert bedrock.read_line(line)[:2] == (NAME, line)
    assert bedrock.read_line(line[:-1]).custom_id == ""


@pytest.mark.parametrize(
    ("variables", "options", "problem"),
    [
        ({}, {}, "100 rows at least, and 3 are to be sent"),
        ({"BEDROCK_BATCH_ROLE_ARN": "batches"}, {}, "set BEDROCK_BATCH_ROLE_ARN to a role such as"),
        ({"BEDROCK_BATCH_BUCKET": "gs://bucket"}, {}, "set BEDROCK_BATCH_BUCKET to a folder such as"),
        ({"AWS_BEARER_TOKEN_BEDROCK": "key"}, {}, "S3 takes no key of Bedrock's"),
        ({}, {"keys": {"bedrock": lambda: "token"}}, "S3 takes no key of Bedrock's"),
    ],
)
def test_what_is_missing_is_named_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], options: dict[str, Any], problem: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with Client(**options) as client, pytest.raises(RequestError, match=problem):
        client.submit_many(MODEL, ["a", "b", "c"])


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([], []),
        ([3], [3]),
        ([300], [300]),
        ([300, 50], [250, 100]),
        ([120, 90], [110, 100]),
        ([105, 90], [105, 90]),
        ([300, 100], [300, 100]),
    ],
)
def test_a_last_batch_gets_the_rows_that_it_lacks(sizes: list[int], expected: list[int]) -> None:
    groups: list[list[Any]] = [[object() for _ in range(size)] for size in sizes]
    rows = [row for group in groups for row in group]
    filled = fill_last(groups, 100)
    assert [len(group) for group in filled] == expected
    assert {id(row) for group in filled for row in group} == {id(row) for row in rows}
