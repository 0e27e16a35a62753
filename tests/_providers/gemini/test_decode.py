"""Gemini's replies, streams and errors."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemini_payloads import PIECES
from golden import Pair, golden
from llm_provider._errors import (
    APIResponseValidationError,
    AuthenticationError,
    ContextWindowExceededError,
    InternalServerError,
    LLMError,
    OverloadedError,
    QuotaExceededError,
    RateLimitError,
)
from llm_provider._providers.gemini.decode import decode, error_of


@golden("gemini/decode")
def test_golden_pairs(pair: Pair) -> None:
    pair.check()


@given(PIECES)
def test_no_answer_breaks_the_decoder(body: Any) -> None:
    with suppress(LLMError):
        decode(body)


@given(PIECES, st.sampled_from([None, 200, 302, 400, 429, 500]))
def test_no_error_body_breaks_the_mapping(body: Any, status: int | None) -> None:
    assert isinstance(error_of(body, status=status), LLMError)


def google_error(status: str, message: str = "m", *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"status": status, "message": message, "details": list(details)}}


PER_DAY = {"violations": [{"quotaId": "PerMinute"}, {"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}


@pytest.mark.parametrize(
    ("status", "body", "kind", "code", "wait"),
    [
        (429, google_error("RESOURCE_EXHAUSTED"), RateLimitError, "RESOURCE_EXHAUSTED", None),
        (
            429,
            google_error("RESOURCE_EXHAUSTED", "m", {"@type": "x"}, {"retryDelay": "27.39s"}),
            RateLimitError,
            "RESOURCE_EXHAUSTED",
            27.39,
        ),
        (
            429,
            google_error("RESOURCE_EXHAUSTED", "m", {"retryDelay": "9s"}, PER_DAY),
            QuotaExceededError,
            "GenerateRequestsPerDayPerProjectPerModel",
            9.0,
        ),
        (
            400,
            google_error("INVALID_ARGUMENT", "m", {"reason": "API_KEY_INVALID"}),
            AuthenticationError,
            "invalid_api_key",
            None,
        ),
        (
            400,
            google_error("INVALID_ARGUMENT", "API key expired. Please renew the API key."),
            AuthenticationError,
            "invalid_api_key",
            None,
        ),
        (
            400,
            google_error(
                "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens"
            ),
            ContextWindowExceededError,
            "INVALID_ARGUMENT",
            None,
        ),
        (503, None, OverloadedError, None, None),
        (503, "full", OverloadedError, None, None),
        (
            502,
            {"message": "<html><title>Bad</title></html>", "status": "Bad Gateway"},
            InternalServerError,
            None,
            None,
        ),
        (302, {"message": "", "status": "Found"}, APIResponseValidationError, None, None),
    ],
)
def test_googles_errors(
    status: int, body: Any, kind: type[LLMError], code: str | None, wait: float | None
) -> None:
    error = error_of(body, status=status)
    assert (type(error), error.code, error.retry_after, error.status) == (kind, code, wait, status)
