"""The bodies of Gemini's errors."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from gemini_payloads import PIECES
from llm_provider._core.errors import LLMError
from llm_provider._core.formats.gemini.decode import error_of


@settings(max_examples=15)  # to draw one takes 0.1 s; tests/fuzz changes golden errors
@given(PIECES, st.sampled_from([None, 200, 302, 400, 429, 500]))
def test_no_error_body_breaks_the_mapping(body: Any, status: int | None) -> None:
    assert isinstance(error_of(body, status=status), LLMError)
