"""The nearest stored question, and where it differs."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.store.entry import elide
from llm_provider._features.cache_care.diff import ABSENT, Difference, compare, find_nearest

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([0.0, 1.0, 0.5]) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abc", min_size=1, max_size=2), inner)
    ),
    max_leaves=12,
)


def encode(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


@given(JSON, JSON)
def test_there_is_a_difference_exactly_where_two_values_differ(value: Any, other: Any) -> None:
    differences = list(compare(value, other))
    assert bool(differences) == (encode(value) != encode(other))
    assert len({difference.path for difference in differences}) == len(differences)


@given(st.lists(JSON, max_size=5), JSON, st.data())
def test_one_more_item_is_one_difference(items: list[Any], item: Any, data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(items)))
    (difference,) = compare(items, [*items[:index], item, *items[index:]])
    assert difference.stored is ABSENT
    assert encode(difference.asked) == encode(item)


@pytest.mark.parametrize("text", ["Write a poem.", "Translate into French: cat", "How high is it?"])
def test_an_unrelated_question_is_not_named(text: str) -> None:
    def question(prompt: str) -> dict[str, Any]:
        turns = [{"role": "system", "content": "You are helpful."}, {"role": "user", "content": prompt}]
        return {"payload": {"messages": turns, "model": "m"}, "model": "m"}

    explanation = find_nearest(
        question(text), [("a" * 64, question("What is 17 + 25?")), ("b" * 64, question("1, 2, 3"))]
    )
    assert str(explanation) == "none of 2 stored requests is similar"


def test_the_nearest_is_the_one_with_fewest_different_leaves() -> None:
    question = {"payload": {"messages": [{"content": "Hi", "role": "user"}], "temperature": 0.8, "seed": 1}}
    far = {"payload": {"messages": [{"content": "Ho", "role": "user"}], "temperature": 0.1}}
    near = {"payload": {"messages": [{"content": "Hi", "role": "user"}], "temperature": 0.7, "seed": 1}}
    explanation = find_nearest(question, [("a" * 64, far), ("b" * 64, near), ("c" * 64, near)])
    assert explanation is not None
    assert (explanation.key, explanation.compared) == ("b" * 64, 3)
    assert explanation.differences == (Difference("payload.temperature", 0.7, 0.8),)
    assert "payload.temperature: stored 0.7, asked 0.8" in str(explanation)
    assert find_nearest(question, []) is None


def test_long_texts_are_shown_where_they_differ() -> None:
    (difference,) = compare({"a": "x" * 500 + "red"}, {"a": "x" * 500 + "blue"})
    assert "red" in str(difference)
    assert "blue" in str(difference)
    assert len(str(difference)) < 150


def test_texts_that_were_cut_are_shown_by_length_and_digest() -> None:
    (difference,) = compare(elide({"a": "x" * 5000}), elide({"a": "x" * 5001}))
    assert difference.path == "a"
    assert "5000 characters" in str(difference)
    assert "5001 characters" in str(difference)


def test_many_differences_are_counted() -> None:
    explanation = find_nearest({str(number): 1 for number in range(9)}, [("k", {})])
    assert explanation is not None
    assert str(explanation).endswith("; and 4 more")


def test_an_equal_question_under_another_key_is_said_to_be_one() -> None:
    assert "differs in nothing" in str(find_nearest({"a": 1}, [("k", {"a": 1})]))
