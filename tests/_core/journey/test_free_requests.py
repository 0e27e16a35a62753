"""Requests that nobody bills: what their errors say. Tests of lists, files and reports make such requests."""

import traceback

import pytest

from llm_provider import LLMError, RateLimitError
from llm_provider._core.journey.free_requests import scrub_error
from llm_provider._core.requests.api_keys import APIKey

KEY = "sk-canary-0123456789-abcdefghijklmnop"


@pytest.mark.parametrize("remedy", ["", "; try it later"])
def test_an_error_says_what_failed_and_has_no_key(remedy: str) -> None:
    with pytest.raises(LLMError) as caught:
        raise RateLimitError(f"{KEY} is too fast", status=429) from OSError(KEY)
    shown = scrub_error(caught.value, APIKey(KEY), "the list of models", "openai", remedy)
    assert shown.message == f"the list of models failed: *** is too fast{remedy}"
    assert (shown.args, shown.provider) == ((shown.message,), "openai")
    assert KEY not in "".join(traceback.format_exception(shown))
    assert shown.__traceback__ is None
