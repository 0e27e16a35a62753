"""Reasons name what happened, and quote nothing that a provider wrote."""

import pytest

from llm_provider import APIConnectionError, APITimeoutError, InternalServerError, LLMError, OverloadedError
from llm_provider._telemetry.reasons import reason


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OverloadedError("the prompt was: secret", status=529), "overloaded (HTTP 529)"),
        (InternalServerError("secret"), "server error"),
        (APIConnectionError("secret", code="ECONNREFUSED"), "connection refused"),
        (APIConnectionError("secret", code="ENOTFOUND"), "name not resolved"),
        (APIConnectionError("secret"), "no connection"),
        (APIConnectionError("secret", maybe_billed=True), "connection broke"),
        (APITimeoutError("secret", phase="total", limit=0.5), "timeout of 0.5 s (total)"),
        (APITimeoutError("secret"), "timeout"),
        (LLMError("secret", status=418), "LLMError (HTTP 418)"),
        (KeyboardInterrupt("secret"), "KeyboardInterrupt"),
    ],
)
def test_a_reason_in_a_few_words(error: BaseException, words: str) -> None:
    assert reason(error) == words
