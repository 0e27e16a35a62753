"""The standard path reads what OpenAI's API writes as the path of any server, and counts of tokens."""

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golden import Pair, read
from llm_provider import LLMError
from llm_provider._core.formats.openai_chat.decode import decode
from llm_provider._core.formats.shared.replies import read_usage
from openai_support import JSON_VALUES, completion

PAIRS = {**read("shapes/openai"), **read("_features/quirks/any_server")}

OF_OTHER_SERVERS = (
    "a call may have any index", "a thought that is signed is whole", "a tool that groq ran is one entry",
    "an only sample may have the index 1", "arguments may be an object",
    "calls with one index are told apart",
    "content in parts", "content that is JSON is its text", "fields that a host adds are folded",
    "log probabilities that are bare numbers are joined", "the error of a choice is an error",
    "the error of a streamed choice is an error",
)  # fmt: skip
"""What OpenAI's API never writes: the beginnings of the sentences."""

STANDARD = {
    "_features.quirks.any_server.decode": "openai_chat.decode.decode",
    "_features.quirks.any_server.Assembler": "openai_chat.stream.Assembler",
}
"""Function for any server → the function that reads OpenAI's API."""


@pytest.mark.parametrize("sentence", [name for name in PAIRS if not name.startswith(OF_OTHER_SERVERS)])
def test_openais_answers_are_read_as_those_of_any_server(sentence: str) -> None:
    pair = PAIRS[sentence]
    Pair(STANDARD.get(pair.function, pair.function), pair.inputs, pair.expected).check()


@pytest.mark.parametrize("sentence", [name for name in PAIRS if name.startswith(OF_OTHER_SERVERS)])
def test_the_standard_path_has_no_code_for_others(sentence: str) -> None:
    pair = PAIRS[sentence]
    with pytest.raises(AssertionError):
        Pair(STANDARD[pair.function], pair.inputs, pair.expected).check()


COUNTS = (
    "prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details",
    "completion_tokens_details",
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(COUNTS), JSON_VALUES))
def test_nonsense_counts_as_nothing(counts: dict[str, Any]) -> None:
    for tokens in dataclasses.asdict(read_usage(counts)).values():
        assert type(tokens) is int
        assert tokens >= 0


EMPTY = st.sampled_from([None, "", [], {}, 0, False])
MESSAGES = st.fixed_dictionaries(
    {"content": st.text(min_size=1) | JSON_VALUES},
    optional={
        "role": st.just("assistant") | EMPTY,
        "refusal": EMPTY | st.just("I will not."),
        "annotations": EMPTY | st.just([{"type": "url_citation"}]),
        "audio": EMPTY | st.just({"transcript": "Hi"}),
        "reasoning": EMPTY | st.just("Hm"),
        "tool_calls": EMPTY | st.just([{"id": "a", "function": {"name": "f", "arguments": "{}"}}]),
        "mood": JSON_VALUES,
    },
)
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "finish_reason": st.sampled_from([None, "stop", "STOP", "eos", "length", "tool_calls", "odd", 1]),
        "logprobs": EMPTY | st.just({"content": [{"token": "a", "logprob": -1.0}]}),
        "stop_reason": JSON_VALUES,
    },
)


def read_message(message: dict[str, Any], choice: dict[str, Any]) -> object:
    try:
        return decode(completion(message, **choice))
    except LLMError as error:
        return str(error)


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(MESSAGES, CHOICES)
def test_a_plain_message_is_read_as_one_with_a_field_that_says_nothing(
    message: dict[str, Any], choice: dict[str, Any]
) -> None:
    """The field keeps the message from the short way, which most answers take."""
    assert read_message(message, choice) == read_message({**message, "unused": None}, choice)
