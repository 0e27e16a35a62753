"""Verifying and pruning."""

import pickle
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from llm_provider import RequestError
from llm_provider._core.store.entry import NOT_KEPT, Entry, Question, decode_entry, elide, encode_entry
from llm_provider._core.store.store import Store
from llm_provider._features.cache_care.maintenance import (
    ABSENT,
    Difference,
    Explanation,
    Imported,
    compare,
    explain_samples,
    find_nearest,
    prune,
    read_archive,
    verify,
    write_archive,
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
    assert str(explanation) == f"none of 2 stored requests is similar; {NOT_KEPT}"


@pytest.mark.parametrize("state", [("k", (), 3), ("k", (), 3, True), ("k", (), 3, True, 1.0, 2.0)])
def test_an_explanation_of_before_has_no_samples(state: tuple[object, ...]) -> None:
    explanation = Explanation.__new__(Explanation)
    explanation.__setstate__(state)
    assert explanation == Explanation(*state)  # type: ignore[arg-type]
    again = pickle.loads(pickle.dumps(explain_samples("k", [True, False])))
    assert str(again) == f"1 of 2 samples is stored; sample 1 is not; {NOT_KEPT}"


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
    assert str(explanation).endswith(f"; and 4 more; {NOT_KEPT}")


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


OpenStore = Callable[[str], Store]


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[OpenStore]:
    opened: list[Store] = []

    def open_one(name: str) -> Store:
        opened.append(Store(tmp_path / name, print))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


def key(number: int) -> str:
    return f"{number:064x}"


def entry(number: int, body: str = '{\n "text": "caf\\u00e9 é"}') -> Entry:
    question = Question("openai", None, "chat", b'{"n":%d}' % number, {}, 0, "gpt-6.1-sol")
    return Entry(body.encode(), 0.1 * number, 1_790_000_000.1, None if number % 2 else "served", question)


def fill_by_number(store: Store, *numbers: int) -> None:
    store.write(
        [(key(number), encode_entry(key(number), entry(number)), "openai chat") for number in numbers]
    )


def test_a_round_trip_is_exact(tmp_path: Path, open_store: OpenStore) -> None:
    first, second = open_store("first"), open_store("second")
    fill_by_number(first, *range(500))
    assert write_archive(first, tmp_path / "one") == 500
    assert read_archive(second, tmp_path / "one") == Imported(added=500, kept=0)
    assert list(first.items()) == list(second.items())
    assert write_archive(second, tmp_path / "two") == 500
    whole = (tmp_path / "one").read_bytes()
    assert whole == (tmp_path / "two").read_bytes()
    assert next(second.newest("openai chat", 1))
    # Nothing is added from a file with a damaged line.
    (tmp_path / "two").write_bytes(whole[:-20])
    with pytest.raises(RequestError, match="line 501"):
        read_archive(open_store("third"), tmp_path / "two")
    assert open_store("third").count() == 0


def test_stored_answers_stay_unless_they_are_damaged(tmp_path: Path, open_store: OpenStore) -> None:
    source, target = open_store("source"), open_store("target")
    fill_by_number(source, 1, 2, 3)
    write_archive(source, tmp_path / "file")
    own = Entry(b'"own"', 1.0, 2.0)
    target.write([(key(1), encode_entry(key(1), own), None), (key(2), b"damaged", None)])
    assert read_archive(target, tmp_path / "file") == Imported(added=2, kept=1)
    twice = (tmp_path / "file").read_bytes() + (tmp_path / "file").read_bytes().splitlines(keepends=True)[-1]
    (tmp_path / "twice").write_bytes(twice)
    assert read_archive(open_store("third"), tmp_path / "twice") == Imported(added=3, kept=1)
    assert decode_entry(key(1), target.read(key(1)) or b"") == own
    assert decode_entry(key(2), target.read(key(2)) or b"") is not None


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15, deadline=None)
@given(body=st.text(max_size=50).map(lambda text: orjson.dumps(text).decode()), data=st.data())
def test_every_change_of_a_line_is_found(
    tmp_path: Path, open_store: OpenStore, body: str, data: st.DataObject
) -> None:
    store = open_store("store")
    store.write([(key(7), encode_entry(key(7), entry(7, body)), None)])
    path = tmp_path / "file"
    write_archive(store, path)
    first, line = path.read_bytes().splitlines(keepends=True)
    position = data.draw(st.integers(0, len(line) - 2))
    changed = bytearray(line)
    changed[position] = data.draw(st.integers(32, 126).filter(lambda byte: byte != changed[position]))
    path.write_bytes(first + bytes(changed))
    with pytest.raises(RequestError, match="line 2"):
        read_archive(store, path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an exported cache"),
        (b"hello\n", "not an exported cache"),
        (b"[]\n", "not an exported cache"),
        (b'{"llm_provider_cache":1}\n', "version 1, but only version 2"),
        (b'{"llm_provider_cache":99}\n', "version 99, but only version 2"),
    ],
)
def test_other_files_and_versions_are_refused(
    tmp_path: Path, open_store: OpenStore, content: bytes, message: str
) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(RequestError, match=message):
        read_archive(open_store("store"), tmp_path / "file")


def test_a_file_appears_when_it_is_complete(tmp_path: Path, open_store: OpenStore) -> None:
    store = open_store("store")
    fill_by_number(store, 1)
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"):
        write_archive(store, tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store", "taken"]
