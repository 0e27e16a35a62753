"""The bodies of Gemini's errors."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gemini_payloads import PIECES
from llm_provider._errors import LLMError
from llm_provider._providers.gemini.decode import error_of


@given(PIECES, st.sampled_from([None, 200, 302, 400, 429, 500]))
def test_no_error_body_breaks_the_mapping(body: Any, status: int | None) -> None:
    assert isinstance(error_of(body, status=status), LLMError)
