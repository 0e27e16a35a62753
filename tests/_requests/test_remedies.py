"""What a message tells the user to write, where the wrong value suggests it."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider._requests.remedies import (
    model_remedy,
    number_remedy,
    part_remedy,
    role_remedy,
    text_remedy,
    word_remedy,
)


@pytest.mark.parametrize(
    ("value", "whole", "remedy"),
    [
        ("7", True, ": write n=7, without quotes"), (7.0, True, ": write n=7"), (7.5, True, ""),
        ("seven", True, ""), ("700", True, ""), ("nan", False, ""), ([7], False, ""),
    ],
)  # fmt: skip
def test_a_number_is_suggested_only_if_it_is_allowed(value: Any, whole: bool, remedy: str) -> None:
    assert number_remedy("n", value, 0, 10, whole=whole) == remedy


def test_a_word_is_suggested_only_if_it_is_near() -> None:
    assert word_remedy("verbosity", " Low", ["low", "high"]) == ": write verbosity='low'"
    assert word_remedy("verbosity", "blue", ["low", "high"]) == ""
    # Nothing is suggested where nothing is meant.
    assert role_remedy("xyz", ["user", "assistant"]) == ""
    assert part_remedy(object()) == ""
    assert model_remedy("/gpt") == ""


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("user", "", ": leave user out, or give some text"),
        ("user", b"u", ": write user=value.decode()"),
        ("user", 7, ": write user='7'"),
        ("user", None, ""),
        ("api_key", ["sk-a"], ": several keys go into Client(keys={'openai': ['sk-...', 'sk-...']})"),
        ("api_key", 7, ""),
        ("system", {"role": "system", "content": "Hi"}, ": write system='Hi'"),
        ("system", ["a", "b"], ": join the texts to one"),
    ],
)
def test_a_text_is_suggested_where_the_value_has_one(name: str, value: Any, remedy: str) -> None:
    assert text_remedy(name, value) == remedy
