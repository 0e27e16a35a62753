"""The text of a request and its size."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider.simulator.formats.content import convert_to_tokens, count_tokens, read_text, split_fragments

MEDIA = [
    {"type": "image_url", "image_url": {"url": "data:,"}},
    {"type": "input_audio", "input_audio": {}},
    {"type": "document", "source": {}},
    {"inlineData": {"data": ""}},
    {"file_data": {"file_uri": "gs://x"}},
]


@pytest.mark.parametrize("part", MEDIA)
def test_a_medium_counts_256_tokens(part: dict[str, Any]) -> None:
    text, characters = read_text([part, {"type": "text", "text": "1234"}])
    assert (text, convert_to_tokens(characters)) == ("1234", 257)


@given(st.text(max_size=300))
def test_fragments_make_up_the_text(text: str) -> None:
    assert "".join(split_fragments(text)) == text
    assert all(split_fragments(text))
    assert count_tokens(text) * 4 - len(text) in range(4)
