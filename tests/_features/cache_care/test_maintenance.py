"""Verifying and pruning."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from llm_provider._core.store.entry import Entry, Question, encode_entry
from llm_provider._core.store.store import Store
from llm_provider._features.cache_care.maintenance import prune, verify

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
