"""Verifying and pruning."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.store.entry import Entry, Question, elide, encode_entry
from llm_provider._core.store.store import Store
from llm_provider._features.cache_care.maintenance import (
    ABSENT,
    Difference,
    compare,
    find_nearest,
    prune,
    verify,
)

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


NOW = time.time()
DAY = 86_400.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path / "cache", print)
    yield store
    store.close()


def fill(store: Store, count: int, *, age: float = 0.0, model: str = "gpt-6.1-sol") -> list[str]:
    keys = []
    for number in range(count):
        body = b'{"model":"%s","seed":%d}' % (model.encode(), number)
        question = Question("openai", None, "chat", body, {}, 0, model)
        keys.append(f"{model}-{age:.0f}-{number}")
        value = encode_entry(keys[-1], Entry(b"{}", 1.0, NOW - age, f"{model}-2026", question))
        store.write([(keys[-1], value, "openai chat")])
    return keys


def test_a_damaged_answer_is_named_and_removed_by_its_age(store: Store) -> None:
    fill(store, 5)
    store.write([("flipped", b"x" * 40, None)])
    verification = verify(store)
    assert (bool(verification), verification.entries, verification.damaged) == (False, 5, ("flipped",))
    assert prune(store, model="gpt-6.1-sol") == 5
    assert prune(store, older_than=0.0) == 1


def test_a_damaged_database_is_named_also_after_it_was_replaced(store: Store, tmp_path: Path) -> None:
    fill(store, 50)
    store.close()
    (tmp_path / "cache" / "v2" / "003" / "cache.db").write_bytes(b"no database" * 1000)
    verification = verify(store)
    assert not verification
    assert verification.entries < 50
    assert "003" in verification.problems[0]
    (again,) = verify(store).problems
    assert "damaged-003" in again


def test_pruning_by_age_and_model(store: Store) -> None:
    fill(store, 250, age=40 * DAY)
    kept = fill(store, 3)
    kept += fill(store, 2, age=40 * DAY, model="claude-sonnet-5-5")
    assert prune(store, older_than=50 * DAY) == 0
    assert prune(store, older_than=30 * DAY, model="gpt-6.1-sol", dry_run=True) == 250
    assert store.count() == 255
    assert prune(store, older_than=30 * DAY, model="gpt-6.1-sol") == 250
    assert sorted(key for key, _ in store.items()) == sorted(kept)
    assert prune(store, model="claude-sonnet-5-5-2026") == 2
    assert prune(store, model="") == 0
