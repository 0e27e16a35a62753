"""The counts of tokens of OpenAI's formats, and of hosts that leave some of them out."""

import dataclasses
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.formats.openai_chat.usage import read_usage
from openai_support import JSON_VALUES

COUNTS = (
    "prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details",
    "completion_tokens_details",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(COUNTS), JSON_VALUES))
def test_nonsense_counts_as_nothing(counts: dict[str, Any]) -> None:
    for tokens in dataclasses.asdict(read_usage(counts)).values():
        assert type(tokens) is int
        assert tokens >= 0
