"""How the rows of Anthropic's batches end."""

from typing import Any

import orjson
import pytest

from llm_provider import APITimeoutError, BadRequestError, OverloadedError, ProviderError
from llm_provider._providers.anthropic.batches import _reply


def row(**result: Any) -> bytes:
    return orjson.dumps({"custom_id": "a", "result": result})


def failure(kind: str) -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": "no"}, "request_id": "req_1"}


@pytest.mark.parametrize(
    ("line", "kind", "retryable"),
    [
        (row(type="expired"), APITimeoutError, True),
        (row(type="canceled"), ProviderError, False),
        (row(type="errored", error=failure("invalid_request_error")), BadRequestError, False),
        (row(type="errored", error=failure("overloaded_error")), OverloadedError, True),
    ],
)
def test_a_row_without_an_answer_has_a_typed_error(line: bytes, kind: type, retryable: bool) -> None:
    error = _reply(line).error
    assert type(error) is kind
    assert (error.retryable, error.maybe_billed) == (retryable, False)


def test_an_answer_is_the_message_itself() -> None:
    reply = _reply(row(type="succeeded", message={"id": "msg_1"}))
    assert (reply.custom_id, reply.body) == ("a", b'{"id":"msg_1"}')


def test_a_cut_line_is_read_again() -> None:
    with pytest.raises(ConnectionResetError):
        _reply(row(type="expired")[:-4])
