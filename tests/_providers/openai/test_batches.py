"""The lines of OpenAI's batch files, and how rows end."""

from typing import Any

import orjson
import pytest

from llm_provider import APITimeoutError, BadRequestError, Client, RateLimitError
from llm_provider._providers.openai.batches import _reply, connect
from llm_provider._providers.shared.batches import BatchSpec
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.routing import resolve
from llm_provider.simulator import Simulator


def row(**fields: Any) -> bytes:
    return orjson.dumps({"custom_id": "a", "response": None, "error": None, **fields})


@pytest.mark.parametrize(
    ("line", "kind", "retryable"),
    [
        (row(error={"code": "batch_expired", "message": "late"}), APITimeoutError, True),
        (row(response={"status_code": 400, "body": {"error": {"message": "no"}}}), BadRequestError, False),
        (row(response={"status_code": 429, "body": {}}), RateLimitError, True),
    ],
)
def test_a_row_without_an_answer_has_a_typed_error(line: bytes, kind: type, retryable: bool) -> None:
    error = _reply(line).error
    assert type(error) is kind
    assert (error.retryable, error.maybe_billed) == (retryable, False)


def test_a_cut_line_is_read_again() -> None:
    with pytest.raises(ConnectionResetError):
        _reply(row()[:-4])


def test_a_line_holds_the_bytes_of_a_live_request() -> None:
    connection = connect(resolve("gpt-5.5"), APIKey("sk-test"))
    spec = BatchSpec(operation="chat/completions", label="l", content="c")
    line = connection.line(spec, "id", b'{"temperature":1.0}')
    assert line.endswith(b',"body":{"temperature":1.0}}')
    assert orjson.loads(line)["url"] == "/v1/chat/completions"


def test_the_label_goes_along(client: Client, simulator: Simulator) -> None:
    client.call_many("gpt-5.5", ["a"], delivery="batch")
    (batch,) = client.batches()
    (created,) = [
        request for request in simulator.requests() if request.path.endswith("/batches") and request.body
    ]
    assert created.body["metadata"]["llm_provider"] in batch.record_ids
