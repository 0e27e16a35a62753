"""Batches in a bucket at each cloud: each row once, whatever happens to a job and its process."""

import csv
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cloud_batches import AmazonServer, CloudServer, Fault, GoogleServer
from cloud_support import FakeCloud
from llm_provider import Budget, BudgetExceededError, Client, Ledger, RequestError, Response
from llm_provider._features.batch_hosts.buckets import read_folder
from llm_provider._features.cli.main import main
from llm_provider._features.clouds import identities

GEMINI, CLAUDE = "vertex_ai/gemini-3.5-flash", "vertex_ai/claude-haiku-5-5"
BEDROCK = "bedrock/anthropic.claude-haiku-4-5-20251001-v1:0"
MODELS = [GEMINI, CLAUDE, BEDROCK]
PROMPTS = [f"prompt {number}" for number in range(101)]
ANSWERS = [f"to {prompt}" for prompt in PROMPTS]
STATES = {"expired": "Expired", "partially_succeeded": "PartiallyCompleted", "failed": "Failed"}


@pytest.fixture(autouse=True)
def cloud(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[CloudServer]:
    """The cloud of the test's model."""
    model = str(request.node.callspec.params.get("model", "")) if hasattr(request.node, "callspec") else ""
    server: CloudServer = AmazonServer() if model == BEDROCK else GoogleServer()
    identities._identity.cache_clear()
    with FakeCloud() as tokens, server.serve() as address:
        tokens.point(monkeypatch, tmp_path)
        names = (
            "GOOGLE_VERTEX_BASE_URL",
            "STORAGE_EMULATOR_HOST",
            "AWS_ENDPOINT_URL_BEDROCK",
            "AWS_ENDPOINT_URL_S3",
        )
        for name in names:
            monkeypatch.setenv(name, address)
        monkeypatch.setenv("VERTEX_BATCH_BUCKET", "gs://bucket/folder/")
        monkeypatch.setenv("BEDROCK_BATCH_BUCKET", "s3://bucket/folder")
        monkeypatch.setenv("BEDROCK_BATCH_ROLE_ARN", "arn:aws:iam::123456789012:role/batches")
        yield server
    identities._identity.cache_clear()


@pytest.fixture
def client(own_cache: Path) -> Iterator[Client]:
    with Client(cache_dir=own_cache) as client:
        yield client


def state_of(model: str, word: str) -> str:
    return STATES[word] if model == BEDROCK else word.upper()


def batch_price(model: str) -> float:
    """USD of one row: 10 tokens of input and 5 of output, by `prices.csv`."""
    provider, _, name = model.partition("/")
    text = (Path(__file__).parents[3] / "prices.csv").read_text(encoding="utf-8")
    of_batches = {"provider": provider, "model": name, "variant": "batch", "min_input_tokens": "0"}
    row = next(row for row in csv.DictReader(text.splitlines()) if of_batches.items() <= row.items())
    return (10 * float(row["input"]) + 5 * float(row["output"])) / 1e6


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "behaviour",
    [
        {},
        {"late": 2, "half": True},
        {"counts": False, "looks": 3},
        {"says_folder": False, "late": 1},
        {"refused": dict.fromkeys(PROMPTS, 1)},
        {"state": "partially_succeeded", "refused": dict.fromkeys(PROMPTS, 1)},
    ],
)
@pytest.mark.sampled(7)
def test_every_row_is_answered_once(
    cloud: Any, client: Client, model: str, behaviour: dict[str, Any]
) -> None:
    for name, value in behaviour.items():
        setattr(cloud, name, state_of(model, value) if name == "state" else value)
    cloud.refused = Counter(cloud.refused)
    assert client.call_many(model, PROMPTS, delivery="batch").texts == ANSWERS
    assert cloud.answered == dict.fromkeys(PROMPTS, 1)
    # The keys are those of calls.
    before = cloud.seen.copy()
    assert all(answer.cached for answer in client.call_many(model, PROMPTS))
    assert cloud.seen == before


# BerriAI/litellm#40469
@pytest.mark.parametrize(
    "parts",
    [
        ("predictions_00001.jsonl", "predictions_00002.jsonl"),
        ("prediction.results-00000-of-00002", "prediction.results-00001-of-00002"),
    ],
)
def test_an_output_in_several_files_is_read_whole(cloud: Any, client: Client, parts: tuple[str, ...]) -> None:
    cloud.parts = parts
    assert client.call_many(GEMINI, PROMPTS[:9], delivery="batch").texts == ANSWERS[:9]
    assert cloud.answered == dict.fromkeys(PROMPTS[:9], 1)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("body", ["{}", "null", "[]", "<html>a proxy</html>", "lost", 503])
@pytest.mark.parametrize("kind", ["upload", "create", "list", "retrieve", "objects", "download"])
@pytest.mark.sampled(20)
def test_a_lost_answer_and_a_page_of_a_proxy_lose_nothing(
    cloud: CloudServer, client: Client, model: str, body: Any, kind: str
) -> None:
    if kind == "download" and body not in ("lost", 503):
        pytest.skip("a file may have any content")
    if (model, kind) == (BEDROCK, "upload") and body not in ("lost", 503):
        pytest.skip("S3's answer has no body")
    fault: Fault = (503, b"{}") if body == 503 else body if body == "lost" else (200, body.encode())
    cloud.faults = [("create", "lost"), (kind, fault)] if kind == "list" else [(kind, fault)]
    assert client.call_many(model, PROMPTS, delivery="batch").texts == ANSWERS
    assert cloud.answered == dict.fromkeys(PROMPTS, 1)


_PROGRAM = """
import sys
from llm_provider import Client
from llm_provider._core.batches import submit
submit._SETTLING_SECONDS = 0.1
with Client(ledger=sys.argv[2]) as client:
    client.call_many(sys.argv[1], [f"prompt {number}" for number in range(101)], delivery="batch")
"""


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["upload", "create", "retrieve", "objects", "download"])
@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.sampled(16)
def test_a_killed_process_pays_nothing_twice(
    cloud: CloudServer, client: Client, model: str, kind: str, is_done: bool, tmp_path: Path
) -> None:
    """`kill -9` while a request waits, which is done in one half of the tests, and in the other is not."""
    ledger = tmp_path / "ledger.jsonl"
    cloud.faults = [(kind, "lost and hang" if is_done else "hang")]
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM, model, str(ledger)], env=dict(os.environ))
    try:
        assert cloud.held.wait(60)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    with Client(ledger=ledger) as second:
        answers = second.call_many(model, PROMPTS, delivery="batch")
    assert answers.texts == ANSWERS
    assert cloud.answered == dict.fromkeys(PROMPTS, 1)
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert sorted(Counter(line["row"] for line in lines).values()) == [1] * len(PROMPTS)
    assert {line["delivery"] for line in lines} == {"batch"}
    assert float(Ledger.read(ledger).spent) == pytest.approx(batch_price(model) * len(PROMPTS))


@pytest.mark.parametrize("model", MODELS)
def test_a_journal_that_is_gone_finds_its_batch(cloud: CloudServer, model: str, tmp_path: Path) -> None:
    for name in ("first", "second"):
        with Client(cache_dir=tmp_path / name) as client:
            assert client.call_many(model, PROMPTS, delivery="batch").texts == ANSWERS
    assert cloud.answered == dict.fromkeys(PROMPTS, 1)


@pytest.mark.parametrize("model", MODELS)
def test_a_cancelled_batch_keeps_what_is_done(
    cloud: CloudServer, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud.looks, cloud.reach = 100, 60
    with Client() as client:
        batch = client.submit_many(model, PROMPTS)
    assert main(["batches"]) == 0
    assert batch.id in capsys.readouterr().out
    assert main(["batches", "cancel", batch.id]) == 0
    with Client(max_retries=0) as client:
        results = client.call_many(model, PROMPTS, delivery="batch", on_error="return")
    assert sum(isinstance(result, Response) for result in results) == cloud.answered.total() == 60
    assert {result.code for result in results if not isinstance(result, Response)} == {"batch_cancelled"}


@pytest.mark.parametrize("model", MODELS)
def test_a_batch_that_failed_says_why(cloud: CloudServer, client: Client, model: str) -> None:
    cloud.state = state_of(model, "failed")
    results = client.call_many(model, PROMPTS, delivery="batch", on_error="return")
    assert {type(result).__name__ for result in results} == {"BadRequestError"}
    assert ("import data" in results[0].message) is (model != BEDROCK)
    assert client.usage.spent == 0


@pytest.mark.parametrize("model", MODELS)
def test_money_is_counted_at_the_batch_price(cloud: CloudServer, client: Client, model: str) -> None:
    answers = client.call_many(model, PROMPTS, delivery="batch")
    price = batch_price(model)
    assert [answer.cost for answer in answers] == pytest.approx([price] * len(answers))
    assert float(client.usage.spent) == pytest.approx(price * len(answers))
    before = cloud.seen.total()
    with pytest.raises(BudgetExceededError):
        client.call_many(
            model, ["another", *PROMPTS], delivery="batch", cache="refresh", budget=Budget(0.000_001)
        )
    assert cloud.seen.total() == before


@pytest.mark.parametrize("model", MODELS)
def test_rows_that_fail_twice_have_the_words_of_the_provider(cloud: CloudServer, model: str) -> None:
    cloud.refused = Counter({"prompt 3": 2, "prompt 4": 1})
    with Client() as client:
        results = client.call_many(model, PROMPTS, delivery="batch", on_error="return")
    error = results[3]
    assert type(error).__name__ == "RateLimitError"
    assert ("try later" in error.message) is (model != BEDROCK)
    # Two rows are no batch at Bedrock, and have their errors.
    assert isinstance(results[4], Response) is (model != BEDROCK)
    assert len(cloud.jobs) == 1 + (model != BEDROCK)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "set VERTEX_BATCH_BUCKET to a folder such as 'gs://bucket/folder'"),
        ("bucket/folder", "not 'bucket/folder'"),
        ("s3://bucket", "not 's3://bucket'"),
        ("gs://Bucket", "not 'gs://Bucket'"),
        ("gs://", "not 'gs:'"),
    ],
)
def test_a_bucket_is_an_address(monkeypatch: pytest.MonkeyPatch, text: str, problem: str) -> None:
    monkeypatch.setenv("VERTEX_BATCH_BUCKET", text)
    with pytest.raises(RequestError, match=problem):
        read_folder("VERTEX_BATCH_BUCKET", "gs", "vertex_ai")
    monkeypatch.setenv("VERTEX_BATCH_BUCKET", "gs://my-bucket.1/")
    assert read_folder("VERTEX_BATCH_BUCKET", "gs", "vertex_ai") == "gs://my-bucket.1"
