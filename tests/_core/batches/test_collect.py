"""Reading results: every row is stored once and entered once."""

import json
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, Ledger, RateLimitError, Response
from llm_provider._core.batches.collect import _encode_error, decode_error
from llm_provider._core.batches.journal import Journal
from llm_provider.simulator import Fault, Simulator


def test_rows_are_entered_once_although_they_are_read_twice(simulator: Simulator, tmp_path: Path) -> None:
    """A journal and a cache of before stand for a process that was killed while it read the results."""
    settings: dict[str, Any] = {"cache_dir": tmp_path / "cache", "ledger": tmp_path / "ledger.jsonl"}
    with Client(**settings) as first:
        batch = first.submit_many("gpt-5.5", ["1+1?", "2+2?", "3+3?"])
        (record,) = Journal(first.cache.directory / "batches").records()
        before = record.path.read_bytes()
        assert batch.results().texts == ["2", "4", "6"]
        # The contents of rows whose answers are stored are not kept twice.
        assert b"1+1?" in before
        assert b"1+1?" not in record.path.read_bytes()
        first.cache.prune(model="gpt-5.5")
    record.path.write_bytes(before)
    with Client(**settings) as second:
        assert second.batches()[0].results().texts == ["2", "4", "6"]
    assert settings["ledger"].read_text().count('"delivery":"batch"') == 3
    assert Ledger.read(settings["ledger"]).requests == 3


DOWNLOAD = {"claude-haiku-5-5": "batches.results"}
OPENAI = '{"custom_id":"%s","response":{"status_code":%d,"body":%s}}'
LINES = {
    "gpt-5.5": (OPENAI % ("%s", 200, "%s"), OPENAI % ("%s", 500, '{"error":{"message":"no"}}')),
    "claude-haiku-5-5": (
        '{"custom_id":"%s","result":{"type":"succeeded","message":%s}}',
        '{"custom_id":"%s","result":{"type":"errored","error":{"error":{"type":"api_error"}}}}',
    ),
    "gemini/gemini-3.8-flash": ('{"key":"%s","response":%s}', '{"key":"%s","error":{"code":13}}'),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", LINES)
@pytest.mark.parametrize("kinds", ["EA", "AE", "EEAE", "AB", "EAB", "AEB"])
def test_an_answer_wins_over_an_error(simulator: Simulator, tmp_path: Path, model: str, kinds: str) -> None:
    simulator.configure(prices="prices.csv")
    answered, failed = LINES[model]
    with Client(cache_dir=tmp_path / "live") as live:
        bodies = {
            name: json.dumps(live.call(model, text).raw) for name, text in {"A": "1+1?", "B": "2+2?"}.items()
        }
    live_bill = simulator.ledger().billed
    with Client(cache_dir=tmp_path / "cache") as client:
        batch = client.submit_many(model, ["1+1?"])
        (record,) = Journal(client.cache.directory / "batches").records()
        (name,) = record.rows
        lines = [failed % name if kind == "E" else answered % (name, bodies[kind]) for kind in kinds]
        simulator.inject(Fault(body="\n".join(lines)), match=DOWNLOAD.get(model, "files.download"))
        assert batch.results().texts == ["2"]
        assert simulator.ledger().answered == 3
        assert client.usage.spent == (simulator.ledger().billed or 0) - (live_bill or 0)


def test_a_row_that_is_not_valid_fails_alone(client: Client, simulator: Simulator) -> None:
    simulator.configure(context_window=20)
    short, long = client.call_many("gpt-5.5", ["1+1?", "word " * 100], delivery="batch")
    assert isinstance(short, Response)
    assert type(long).__name__ == "ContextWindowExceededError"
    assert not long.maybe_billed  # type: ignore[union-attr]  # an error


def test_an_answer_that_is_not_kept_is_given_and_not_paid_again(client: Client, simulator: Simulator) -> None:
    simulator.configure(output_tokens=50)
    (result,) = client.submit_many("gpt-5.5", ["Hi"], max_tokens=5).results()
    assert result.finish_reason == "length"
    (stored,) = client.batches()
    (again,) = stored.results()
    assert (again.finish_reason, again.text, again.cost) == ("length", result.text, 0.0)
    assert simulator.ledger().answered == 1


def test_an_error_survives_the_journal() -> None:
    error = RateLimitError("slow down", status=429, code="busy", maybe_billed=True)
    again = decode_error(_encode_error(error))
    assert type(again) is RateLimitError
    for name in ("message", "status", "code", "retryable", "maybe_billed"):
        assert getattr(again, name) == getattr(error, name), name
    assert decode_error({"class": "sys", "message": "x"}).retryable is False
