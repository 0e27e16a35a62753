"""The cache key contains every field that is sent, and nothing else."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.runtime.canonical_json import canonical
from llm_provider._core.store.key import cache_key

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
