"""The states of xAI's batches, of which there are counts alone."""

from typing import Any

import pytest

from llm_provider import BadRequestError, Client, LLMError, ProviderError, RateLimitError
from llm_provider._core.formats.shared.batches import BatchSpec, write_name
from llm_provider._features.batch_hosts import xai
from llm_provider.simulator import Simulator

MODEL = "xai/grok-4.20"
NAME = write_name(BatchSpec(operation="chat/completions", label="l", content="c", origin="o")) + " 3"


def read(counts: dict[str, int] | None = None, **fields: Any) -> Any:
    state = None if counts is None else {f"num_{name}": number for name, number in counts.items()}
    return xai.XAIBatches.read_batch({"batch_id": "b", "name": NAME, "state": state, **fields})


@pytest.mark.parametrize(
    ("counts", "fields", "state", "results"),
    [
        (None, {}, "validating", ()),
        ({"requests": 0, "pending": 0}, {}, "validating", ()),
        # The file is being read.
        ({"requests": 1, "success": 1}, {}, "validating", ()),
        ({"requests": 3, "pending": 1, "success": 2}, {}, "in_progress", ()),
        ({"requests": 3, "success": 2, "error": 1}, {}, "completed", ("b",)),
        ({"requests": 3, "pending": 2}, {"cancel_time": "2026-11-29"}, "cancelling", ()),
        ({"requests": 3, "success": 1, "cancelled": 2}, {"cancel_time": "2026-11-29"}, "cancelled", ("b",)),
        ({"requests": 0}, {"cancel_time": "2026-11-29"}, "cancelled", ()),
        ({"requests": 3, "pending": 1}, {"expire_time": "2026-11-20"}, "expired", ("b",)),
        ({"requests": 3, "pending": 1}, {"expire_time": "2999-01-01"}, "in_progress", ()),
    ],
)
def test_the_state_follows_from_the_counts(
    counts: dict[str, int] | None, fields: dict[str, str], state: str, results: tuple[str, ...]
) -> None:
    batch = read(counts, **fields)
    assert (batch.state, batch.results) == (state, results)
    assert batch.ended is (state not in ("validating", "in_progress", "cancelling"))


def test_a_refused_file_says_why() -> None:
    words = "JSONL file validation failed: Model grok-4.6 is not supported for batch processing."
    batch = read({"requests": 0}, cancel_time="2026-09-27", cancel_by_xai_message=words)
    assert (batch.state, batch.ended, batch.problem, batch.results) == ("failed", True, words, ())


def test_a_date_without_a_time_ends_with_the_day() -> None:
    # Else a batch of today seems older than its submission, and is not found in the list.
    assert read(create_time="2026-11-28").created == 1_795_910_399.0
    assert read(create_time="2026-11-28T00:00:00Z").created == 1_795_824_000.0


def test_the_name_has_what_identifies_a_batch() -> None:
    batch = read({"requests": 3})
    assert (batch.label, batch.content, batch.origin) == ("l", "c", "o")
    assert read(name="mine").label is None


def test_rows_come_in_pages(client: Client, simulator: Simulator) -> None:
    inputs = [f"{number}+1?" for number in range(205)]
    results = client.call_many(MODEL, inputs, delivery="batch")
    assert results.texts == [str(number + 1) for number in range(205)]
    pages = [request for request in simulator.requests() if request.path.endswith("/results")]
    assert len(pages) >= 3


@pytest.mark.parametrize(
    ("row", "kind", "retryable"),
    [
        ({"batch_result": {"error": {"code": 8, "message": "later"}}}, RateLimitError, True),
        ({"batch_result": {"error": {"code": 3, "message": "wrong"}}}, BadRequestError, False),
        ({"batch_result": {"error": {"code": 1, "message": "ended"}}}, ProviderError, False),
        ({"batch_result": {"error": {"code": "400", "message": "wrong"}}}, BadRequestError, False),
        ({"batch_result": {"error": {"code": "invalid-argument", "message": "wrong"}}}, LLMError, True),
        ({"error_message": "wrong"}, LLMError, True),
        ({}, LLMError, True),
    ],
)
def test_a_row_that_failed_has_its_class(row: dict[str, Any], kind: type[LLMError], retryable: bool) -> None:
    reply = xai._read_row({"batch_request_id": "r", **row}, 1000)
    assert isinstance(reply.error, kind)
    assert (reply.error.retryable, reply.error.maybe_billed) == (retryable, False)
    assert (reply.custom_id, reply.body) == ("r", None)


def test_an_answer_is_behind_the_name_of_its_endpoint_and_has_a_longest_size() -> None:
    for name in ("chat_get_completion", "responses"):
        row = {"batch_request_id": "r", "batch_result": {"response": {name: {"id": "x", "seed": 2**64}}}}
        assert xai._read_row(row, 1000) == ("r", b'{"id":"x","seed":18446744073709551616}', None, "x")
        assert xai._read_row(row, 9).body == b'{"id":"x"'
