"""The counts of tokens of OpenAI's formats, and of hosts that leave some of them out."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._providers.openai_chat.usage import read_usage
from openai_support import JSON_VALUES

NAMES = {"chat": ("prompt", "completion"), "responses": ("input", "output")}


COUNTS = (
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "prompt_tokens_details",
    "completion_tokens_details",
)


@given(st.dictionaries(st.sampled_from(COUNTS), JSON_VALUES))
def test_nonsense_counts_as_nothing(counts: dict[str, Any]) -> None:
    for tokens in dataclasses.asdict(read_usage(counts)).values():
        assert type(tokens) is int
        assert tokens >= 0


def usage_of(form: str, read: Any, written: Any, total: Any, parts: Any = None, reasoning: Any = None) -> Any:
    """A usage object of a format, without the counts that are `...`."""
    prompt, answer = NAMES[form]
    counts = {
        f"{prompt}_tokens": read,
        f"{answer}_tokens": written,
        "total_tokens": total,
        f"{prompt}_tokens_details": parts,
        f"{answer}_tokens_details": {"reasoning_tokens": reasoning} if reasoning else None,
    }
    return {name: value for name, value in counts.items() if value is not ...}


READ, WRITTEN, MORE = 300, 70, 25
BOTH = READ + WRITTEN


@pytest.mark.parametrize("form", NAMES)
@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        # Counts that add up stay, and a total that is no sum says nothing.
        ((READ, WRITTEN, BOTH, {"audio_tokens": MORE}, MORE), (READ, WRITTEN, MORE)),
        *(((READ, WRITTEN, total), (READ, WRITTEN, 0)) for total in (0, None, ..., 1, "401", -5)),
        # Tokens that only the total has are thinking, which may be named and left out,
        ((READ, WRITTEN, BOTH + MORE), (READ, WRITTEN + MORE, MORE)),
        ((READ, WRITTEN, BOTH + MORE, None, MORE), (READ, WRITTEN + MORE, MORE)),
        # or as many as a part of the prompt, or the prompt itself.
        *(
            ((READ, WRITTEN, BOTH + MORE, {f"{part}_tokens": MORE}), (READ + MORE, WRITTEN, 0))
            for part in ("audio", "cached", "image")
        ),
        *(((nothing, WRITTEN, BOTH), (READ, WRITTEN, 0)) for nothing in (..., None, 0)),
        # A part that is larger than the prompt is beside it.
        *(
            ((MORE, WRITTEN, total, {"audio_tokens": READ}), (MORE + READ, WRITTEN, 0))
            for total in (MORE + BOTH, 0, None, ..., 1, "401", -5)
        ),
        ((MORE, 5, MORE + READ + 5 + WRITTEN, {"audio_tokens": READ}), (MORE + READ, 5 + WRITTEN, WRITTEN)),
    ],
)
def test_counts_that_do_not_add_up(form: str, counts: Any, expected: tuple[int, int, int]) -> None:
    usage = read_usage(usage_of(form, *counts), *NAMES[form])
    assert (usage.input_tokens, usage.output_tokens, usage.reasoning_output_tokens) == expected
