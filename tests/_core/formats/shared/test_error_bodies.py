"""What the bodies of failures say, in the forms of many hosts: the golden pairs have each with status 200."""

from typing import Any

import pytest

from golden import read
from llm_provider import BadRequestError, InternalServerError, PermissionDeniedError, RateLimitError
from llm_provider._core.formats.shared import errors

BODIES: dict[str, Any] = {
    sentence: pair for sentence, pair in read("shared/error_bodies").items() if "body" in pair.inputs
}


@pytest.mark.parametrize("status", [400, 422, None])
@pytest.mark.parametrize("sentence", BODIES)
def test_a_wrong_key_and_an_unknown_model_are_told_with_any_status(sentence: str, status: int | None) -> None:
    pair = BODIES[sentence]
    codes, message = errors.error_fields(pair.inputs["body"])
    error = errors.from_answer(status, codes=codes, message=message)
    if sentence.startswith("a prompt"):
        assert status is None or type(error) is BadRequestError
    else:
        assert (type(error).__name__, error.retryable) == (pair.expected["gives"]["raises"], False)


def test_a_status_with_a_meaning_counts() -> None:
    for status, kind in ((403, PermissionDeniedError), (429, RateLimitError), (500, InternalServerError)):
        assert type(errors.from_answer(status, message="Invalid API key")) is kind


def test_words_of_any_length_are_read_in_no_time() -> None:
    for text in ("model" + "`" * 100_000, "the " * 100_000, "invalid model " + "x" * 100_000 + " y"):
        assert errors.from_answer(400, message=text)
