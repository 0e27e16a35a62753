"""The cache keeps complete answers, and a broken disk never breaks a call."""

import contextlib
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_provider import CacheMissError, CacheWarning, Client, Response
from llm_provider._core.store.response_cache import Entry, ResponseCache, default_directory
from llm_provider.simulator import Simulator
from support import wait_until

MODEL = "gpt-6.1-sol"
ENTRY = Entry(body=b'{"text":"caf\\u00e9"}', seconds=0.25, created=1_790_000_000.0)


def test_the_default_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(tmp_path))
    assert default_directory() == tmp_path
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", " ")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_directory().name == "llm_provider"


def test_one_changed_parameter_is_another_call(client: Client, simulator: Simulator) -> None:
    model = "together_ai/zai-org/GLM-5.3"
    variants: list[dict[str, Any]] = [
        {}, {"temperature": 0}, {"temperature": 0.0}, {"seed": 1}, {"max_tokens": 9}, {"stop": "x"},
        {"top_p": 0.5}, {"system": "Be brief."}, {"reasoning_effort": "low"}, {"extra_body": {"top_k": 1}},
        {"extra_headers": {"x-variant": "1"}}, {"n": 2}, {"response_format": {"type": "json_object"}},
    ]  # fmt: skip
    for parameters in variants:
        assert not client.call(model, "Hi", **parameters).cached, parameters
    no_change = {"timeout": 9, "max_retries": 1, "api_key": "other-key"}
    for parameters in variants:
        assert client.call(model, "Hi", **parameters, **no_change).cached, parameters
    assert simulator.ledger().requests == len(variants)


def test_only_never_sends(client: Client, simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = client.call(MODEL, "Hi")
    sent = simulator.ledger().requests
    monkeypatch.delenv("OPENAI_API_KEY")
    with Client(cache_dir=client.cache.directory, cache="only") as replay:
        assert replay.call(MODEL, "Hi").choices == paid.choices
        assert "".join(delta.text for delta in replay.stream(MODEL, "Hi")) == paid.text
        with pytest.raises(CacheMissError) as caught:
            replay.call(MODEL, "Ho")
        assert caught.value.key in str(caught.value)
        hit, miss = replay.call_many(MODEL, ["Hi", "Ho"])
        assert isinstance(hit, Response)
        assert isinstance(miss, CacheMissError)
        with pytest.raises(CacheMissError):
            replay.call("claude-sonnet-5-5", "Hi", n=2)
    assert simulator.ledger().requests == sent


def test_a_key_is_in_no_file(client: Client, own_cache: Path) -> None:
    client.call(MODEL, "Hi", api_key="sk-canary-7f3a")
    client.cache.close()
    assert not any(b"canary" in path.read_bytes() for path in own_cache.rglob("*") if path.is_file())


def find_on_disk(directory: Path) -> list[str]:
    with contextlib.closing(ResponseCache(directory)) as other:
        return sorted(other.find_keys())


@pytest.mark.parametrize(
    "count",
    [
        lambda cache, _: cache.flush() or len(find_on_disk(cache.directory)),
        lambda cache, _: len(cache.find_keys()),
        lambda cache, _: cache.verify().entries,
        lambda cache, _: cache.prune(older_than=0, dry_run=True),
        lambda cache, path: cache.export(path / "answers.jsonl"),
        lambda cache, _: cache.close() or len(find_on_disk(cache.directory)),
    ],
    ids=["flush", "find_keys", "verify", "prune", "export", "close"],
)
def test_what_a_user_asks_for_waits_for_the_answers_before_it(
    tmp_path: Path, count: Callable[[ResponseCache, Path], int]
) -> None:
    cache = ResponseCache(tmp_path / "cache")
    cache.put("first", ENTRY).result()
    # The writer is busy while the second answer comes.
    cache._writer.submit(lambda: time.sleep(0.3))
    cache.put("second", ENTRY)
    assert count(cache, tmp_path) == 2
    cache.close()


# --- when the disk is in the way -------------------------------------------------------------------------
def test_closing_writes_what_came_while_the_disk_was_busy(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path)
    cache.put("first", ENTRY).result()
    with locked(tmp_path):
        written = [cache.put("second", ENTRY)]
        assert wait_until(lambda: not cache._writes._items)
        written.append(cache.put("third", ENTRY))
        closing = threading.Thread(target=cache.close)
        closing.start()
        time.sleep(0.05)
        assert closing.is_alive()
    closing.join()
    assert [future.done() for future in written] == [True, True]
    assert find_on_disk(tmp_path) == ["first", "second", "third"]


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Every database of a cache is locked by somebody else."""
    with contextlib.ExitStack() as stack:
        for path in directory.glob("v2/*/cache.db"):
            other = stack.enter_context(contextlib.closing(sqlite3.connect(path, isolation_level=None)))
            other.execute("BEGIN IMMEDIATE")
        yield


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ResponseCache]:
    """It has one answer, and waits a tenth of a second for locks."""
    cache = ResponseCache(tmp_path, patience=0.1)
    cache.put("k", ENTRY).result()
    yield cache
    cache.close()


@pytest.mark.long
def test_an_answer_that_a_lock_keeps_out_is_written_later(tmp_path: Path, cache: ResponseCache) -> None:
    with locked(tmp_path):
        with pytest.warns(CacheWarning, match="kept in memory"):
            assert cache.put("late", ENTRY).result() is False
        # The shard is known to be locked: no further wait and no further warning.
        with warnings.catch_warnings(action="error"):
            assert [cache.put(f"later-{number}", ENTRY).result() for number in range(20)] == [False] * 20
        assert (cache.get("late"), cache.get("k")) == (ENTRY, ENTRY)
        assert cache.stats().pending == 21
    assert wait_until(lambda: cache.stats().pending == 0)
    assert len(cache) == 22


def test_a_write_that_succeeds_hastens_those_that_failed(tmp_path: Path, cache: ResponseCache) -> None:
    cache._retry_after = 3600.0  # as after many failures
    with locked(tmp_path), pytest.warns(CacheWarning, match="kept in memory"):
        assert cache.put("late", ENTRY).result() is False
    late = cache._retrying
    assert cache.put("new", ENTRY).result() is True
    assert wait_until(lambda: cache.stats().pending == 0)
    assert late is not None
    assert late.finished.is_set(), "its thread would wait for an hour"
    assert len(cache) == 3


def test_values_read_ahead_are_checked_when_they_are_used(tmp_path: Path) -> None:
    cache, new = ResponseCache(tmp_path, patience=0.1), ENTRY._replace(body=b"new")
    for name in ("k", "damaged"):
        cache.put(name, ENTRY).result()
    ahead = cache.read_ahead(["k", "damaged", "none"])
    assert ahead.keys() == {"k", "damaged"}
    assert (cache.stats().hits, cache.stats().misses) == (0, 0)
    assert cache.get("k", ahead["k"]) == ENTRY
    # If a value read ahead is damaged, the disk or the memory may have an intact one.
    assert cache.get("damaged", ahead["damaged"][:-1]) == ENTRY
    assert cache.get("k", ahead["damaged"]) == ENTRY
    assert cache.get("none", ahead["k"]) is None
    with locked(tmp_path), pytest.warns(CacheWarning):
        cache.put("k", new).result()
        assert cache.get("k", ahead["k"]) == new
    assert (cache.stats().hits, cache.stats().misses) == (4, 1)
    cache.close()


def test_calls_go_on_without_a_cache_and_its_maintenance_raises(simulator: Simulator, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("no directory")
    with (
        warnings.catch_warnings(record=True, action="always") as seen,
        Client(cache_dir=in_the_way) as client,
    ):
        assert [client.call(MODEL, "1+1?").text for _ in range(3)] == ["2", "2", "2"]
        assert client.cache.read_ahead(["k"]) == {}
        cache = client.cache
        for ask in (cache.verify, lambda: cache.export(tmp_path / "out"), lambda: cache.prune(older_than=0)):
            with pytest.raises(OSError, match=r"cannot be opened|not a directory"):
                ask()
    (warning,) = seen
    assert warning.category is CacheWarning
    assert "cannot be opened" in str(warning.message)


def test_the_answers_kept_in_memory_are_bounded(tmp_path: Path, cache: ResponseCache) -> None:
    large = Entry(b"x" * 10_000_000, 1.0, 2.0)
    with locked(tmp_path):
        with pytest.warns(CacheWarning, match="cannot write"):
            for number in range(9):
                cache.put(f"large-{number}", large).result()
        assert [cache.get(f"large-{number}") is not None for number in range(9)] == [False] * 3 + [True] * 6
        with pytest.warns(CacheWarning, match="9 answers could not be stored"):
            cache.close()


def test_an_answer_that_is_renewed_while_it_waits_is_new(tmp_path: Path, cache: ResponseCache) -> None:
    renewed = Entry(b"renewed", 1.0, 2.0)
    with locked(tmp_path), pytest.warns(CacheWarning):
        assert cache.put("k", Entry(b"old", 1.0, 2.0)).result() is False
        assert cache.put("k", renewed).result() is False
        assert cache._unwritten_bytes == len(b"renewed")
    timer = cache._retrying
    # Closing tries once more.
    cache.close()
    assert cache._unwritten_bytes == 0
    assert timer is None or timer.finished.is_set()
    assert (cache.get("k"), cache.stats().pending) == (renewed, 0)


def test_a_lock_that_stays_fails_no_call(
    client: Client, simulator: Simulator, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.call(MODEL, "Hi")
    monkeypatch.setattr(client.cache, "_patience", 0.1)
    with locked(own_cache):
        with pytest.warns(CacheWarning, match="locked"):
            assert client.call(MODEL, "1+1?").text == "2"
        assert client.call(MODEL, "1+1?").cached
    assert simulator.ledger().requests == 2


def test_a_damaged_answer_is_asked_for_again(client: Client, simulator: Simulator, own_cache: Path) -> None:
    client.call(MODEL, "1+1?")
    client.cache.close()
    for path in own_cache.glob("v2/*/cache.db"):
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute("UPDATE Cache SET value = CAST(replace(CAST(value AS TEXT), '2', '3') AS BLOB)")
    assert client.call(MODEL, "1+1?").text == "2"
    assert client.call(MODEL, "1+1?").cached
    assert simulator.ledger().requests == 2


# --- looking after it ------------------------------------------------------------------------------------
def test_the_cost_that_hits_avoid_is_counted(client: Client, simulator: Simulator) -> None:
    paid = client.call(MODEL, "Hi").cost or 0
    assert client.cache.stats().saved == 0
    for _ in range(3):
        client.call(MODEL, "Hi")
    assert client.cache.stats().saved == pytest.approx(3 * paid)
    client.call("local/unpriced", "Hi")
    client.call("local/unpriced", "Hi")
    assert client.cache.stats().saved == pytest.approx(3 * paid)
