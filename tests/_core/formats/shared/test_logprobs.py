"""Log probabilities in every provider's form."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import TokenLogprob
from llm_provider._core.formats.shared import logprobs
from llm_provider._core.formats.shared.logprobs import read_logprobs
from llm_provider._core.types.response import Choice
from openai_support import JSON_VALUES

tokens = st.builds(
    TokenLogprob,
    token=st.text(min_size=1, max_size=3),
    logprob=st.floats(-20, 0),
    id=st.none() | st.integers(0, 10**6),
)
answers = st.lists(
    st.tuples(tokens, st.lists(tokens, max_size=3, unique_by=lambda entry: entry.token)),
    min_size=1,
    max_size=4,
)


def write_form(form: str, answer: Any) -> Any:
    """The tokens in a provider's form."""
    if form == "columns":
        return {
            "tokens": [token.token for token, _ in answer],
            "token_logprobs": [token.logprob for token, _ in answer],
            "token_ids": [token.id for token, _ in answer],
            "top_logprobs": [{entry.token: entry.logprob for entry in top} or None for _, top in answer],
        }
    if form == "gemini":

        def encode(token: TokenLogprob) -> Any:
            return {"token": token.token, "tokenId": token.id, "logProbability": token.logprob}

        return {
            "chosenCandidates": [encode(token) for token, _ in answer],
            "topCandidates": [{"candidates": [encode(entry) for entry in top]} for _, top in answer],
        }

    def encode_named(token: TokenLogprob) -> Any:
        return {"token": token.token, "logprob": token.logprob, "bytes": [], "id": token.id}

    entries = [
        {**encode_named(token), "top_logprobs": [encode_named(entry) for entry in top]}
        for token, top in answer
    ]
    return (
        {"content": entries, "refusal": None} if form == "content" else {"content": None, "refusal": entries}
    )


@given(st.sampled_from(["content", "refusal", "columns", "gemini"]), answers, st.sampled_from([0, 2000]))
def test_every_form_is_read(form: str, answer: Any, many: int) -> None:
    expected = tuple(
        TokenLogprob(
            token=token.token,
            logprob=token.logprob,
            id=token.id,
            top=tuple(
                TokenLogprob(
                    token=entry.token, logprob=entry.logprob, id=None if form == "columns" else entry.id
                )
                for entry in top
            ),
        )
        for token, top in answer
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logprobs, "_MANY", many)
        assert Choice(logprobs=read_logprobs(write_form(form, answer))).logprobs == expected


@given(st.dictionaries(st.sampled_from(["content", "refusal", "tokens", "token_logprobs", "top_logprobs",
                                        "chosenCandidates", "topCandidates"]), JSON_VALUES))  # fmt: skip
def test_what_is_malformed_is_absent(field: Any) -> None:
    for value in (field, list(field)):
        tokens = read_logprobs(value)
        assert tokens is None or all(isinstance(token, TokenLogprob) for token in tokens)


@pytest.mark.parametrize("value", [None, {}, [], 5, {"content": []}, {"content": [{"token": "a"}]}])
def test_nothing_is_none(value: Any) -> None:
    assert read_logprobs(value) is None
