"""The stored form of answers: exact, checked, and silent about secrets."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.runtime.canonical_json import canonical
from llm_provider._core.store.entry import (
    ELIDED,
    Entry,
    Question,
    cache_key,
    decode_entry,
    decode_question,
    elide,
    encode_entry,
)

KEY = "k" * 64
ASKED = Question("openai", None, "chat/completions", b'{"messages":[]}', {}, 0, "gpt-6.1-sol")
SECRET = "canary-7f3a"


def make_question(payload: Any, **changes: Any) -> Question:
    return ASKED._replace(body=canonical(payload), **changes)


@given(
    st.binary(max_size=2000),
    st.floats(0, 1e6),
    st.floats(0, 4e9),
    st.none() | st.text(max_size=9),
    st.none() | st.just(ASKED),
    st.none() | st.floats(0, 1e3),
)
def test_it_round_trips(
    body: bytes,
    seconds: float,
    created: float,
    served: str | None,
    question: Question | None,
    price: float | None,
) -> None:
    value = encode_entry(KEY, Entry(body, seconds, created, served, question, price))
    assert decode_entry(KEY, value) == Entry(body, seconds, created, served, price=price)
    assert decode_question(KEY, value) == (question and question.to_json())


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_flipped_or_cut_value_is_a_miss(body: bytes, data: st.DataObject) -> None:
    value = encode_entry(KEY, Entry(body, seconds=1.0, created=2.0))
    position = data.draw(st.integers(0, len(value) - 1))
    flipped = bytearray(value)
    flipped[position] ^= 1 << data.draw(st.integers(0, 7))
    assert decode_entry(KEY, bytes(flipped)) is None
    assert decode_entry(KEY, value[:position]) is None


@given(st.data())
def test_a_damaged_question_leaves_the_answer_and_is_nothing(data: st.DataObject) -> None:
    whole = encode_entry(KEY, Entry(b"{}", 1.0, 2.0, None, ASKED))
    start = len(encode_entry(KEY, Entry(b"{}", 1.0, 2.0)))
    position = data.draw(st.integers(start, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[position] ^= 1 << data.draw(st.integers(0, 7))
    for value in (bytes(flipped), whole[:position]):
        assert decode_entry(KEY, value) == Entry(b"{}", 1.0, 2.0)
        assert decode_question(KEY, value) is None


def test_a_value_under_another_key_is_a_miss() -> None:
    # As where a damaged index leads to another row.
    value = encode_entry(KEY, Entry(b"{}", 1.0, 2.0, None, ASKED))
    assert decode_entry("o" * 64, value) is None
    assert decode_question("o" * 64, value) is None


def test_long_texts_are_cut_and_short_ones_kept() -> None:
    image = "data:image/png;base64," + "A" * 5_000_000
    question = make_question({"messages": [{"content": [{"text": "What is it?"}, {"url": image}]}]})
    text, picture = question.to_json()["payload"]["messages"][0]["content"]
    assert text == {"text": "What is it?"}
    assert picture["url"][ELIDED]["length"] == len(image)
    assert picture["url"][ELIDED]["start"].startswith("data:image/png")
    assert len(question.encode()) < 1000


@given(st.text(max_size=5000), st.text(max_size=5000))
def test_different_texts_stay_different(text: str, other: str) -> None:
    assert (elide(text) == elide(other)) == (text == other)


def test_a_long_conversation_is_compressed() -> None:
    conversation = make_question(
        {"messages": [{"content": "The quick brown fox. " * 50, "role": "user"}] * 40}
    )
    value = encode_entry(KEY, Entry(b"{}", 1.0, 2.0, None, conversation))
    assert len(value) < 3000
    assert decode_question(KEY, value) == conversation.to_json()


def test_of_headers_only_digests_are_kept() -> None:
    question = make_question({}, headers={"x-token": SECRET})
    value = encode_entry(KEY, Entry(b"{}", 1.0, 2.0, None, question))
    assert SECRET.encode() not in value
    assert (
        question.to_json()["headers"]
        != make_question({}, headers={"x-token": "another"}).to_json()["headers"]
    )


FACTS: dict[str, Any] = {
    "provider": "openai",
    "base_url": "https://api.openai.com/v1",
    "operation": "chat/completions",
    "headers": {},
    "draw": 0,
}

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


def key(payload: object, **changes: Any) -> str:
    return cache_key(body=canonical(payload), **{**FACTS, **changes})


# Deliberately changed keys belong together with a new SCHEMA_VERSION and a line in the CHANGELOG.
GOLDEN = [
    ({}, {}, "d7481299d1a3"),
    ({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, {}, "e560f5da9692"),
    ({"model": "m", "temperature": 1.0}, {"draw": 3}, "458653bbe6e6"),
    ({"model": "m"}, {"provider": "anthropic", "base_url": None, "headers": {"a": "b"}}, "4b3ffb2e60a3"),
]


@pytest.mark.parametrize(("payload", "changes", "start"), GOLDEN)
def test_golden_keys(payload: object, changes: dict[str, Any], start: str) -> None:
    assert key(payload, **changes).startswith(start)


@given(JSON, JSON)
def test_two_payloads_share_a_key_only_if_they_are_the_same_json(payload: object, other: object) -> None:
    # Type-sensitive: 1, 1.0, "1" and true are four values.
    assert (key(payload) == key(other)) == (canonical(payload) == canonical(other))


@pytest.mark.parametrize(
    "changes",
    [
        {"provider": "groq"},
        {"base_url": "http://localhost:8000/v1"},
        {"base_url": None},
        {"operation": "responses"},
        {"headers": {"anthropic-beta": "x"}},
        {"draw": 1},
    ],
)
def test_everything_else_that_is_sent_is_in_the_key(changes: dict[str, Any]) -> None:
    assert key({"model": "m"}) != key({"model": "m"}, **changes)
