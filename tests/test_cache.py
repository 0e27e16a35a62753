"""The cache: what makes a key, what is kept, and that a broken disk never breaks a call."""

from __future__ import annotations

import sqlite3
import threading
import warnings
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import CacheMiss, CacheWarning, Client, Response
from llm_provider._cache import Entry, ResponseCache, cache_key, default_directory
from llm_provider._disk import BytesDisk
from llm_provider._json import canonical
from llm_provider.simulator import Fault, Simulator
from support import RunScript

MODEL = "gpt-6.1-sol"
ENTRY = Entry(body=b'{"text":"caf\\u00e9"}', seconds=0.25, created=1_790_000_000.0)
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
    ({}, {}, "ada4ab74b715"),
    ({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, {}, "862ec4e0c3b3"),
    ({"model": "m", "temperature": 1.0}, {"draw": 3}, "20f7e53713d6"),
    ({"model": "m"}, {"provider": "anthropic", "base_url": None, "headers": {"a": "b"}}, "a0f91d04efc6"),
]


@pytest.mark.parametrize(("payload", "changes", "start"), GOLDEN)
def test_golden_keys(payload: object, changes: dict[str, Any], start: str) -> None:
    assert key(payload, **changes).startswith(start)


@given(JSON, JSON)
def test_two_payloads_share_a_key_only_if_they_are_the_same_json(one: object, other: object) -> None:
    # Type-sensitive: 1, 1.0, "1" and true are four values.
    assert (key(one) == key(other)) == (canonical(one) == canonical(other))


@given(st.dictionaries(st.text(max_size=5), st.integers(-9, 9), min_size=2, max_size=5))
def test_the_order_of_fields_does_not_matter(payload: dict[str, int]) -> None:
    assert key(payload) == key(dict(reversed(payload.items())))


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


def test_what_is_put_is_got_by_any_thread_and_process(tmp_path: Path, run_script: RunScript) -> None:
    cache = ResponseCache(tmp_path)
    assert cache.get("k") is None
    assert cache.put("k", ENTRY).result() is True
    found = [cache.get("k"), cache.get_soon("k").result()]
    thread = threading.Thread(target=lambda: found.append(cache.get("k")))
    thread.start()
    thread.join()
    cache.close()
    assert found == [ENTRY] * 3
    run_script(
        f"""
        from llm_provider._cache import ResponseCache
        cache = ResponseCache({str(tmp_path)!r})
        assert cache.get("k").body == {ENTRY.body!r}
        cache.close()
        """
    )
    assert cache.get("k") == ENTRY
    cache.close()


@given(st.binary(max_size=2000), st.floats(0, 1e6), st.floats(0, 4e9))
def test_stored_form_round_trips(body: bytes, seconds: float, created: float) -> None:
    from llm_provider._cache import _packed, _unpacked

    entry = Entry(body=body, seconds=seconds, created=created)
    assert _unpacked(_packed(entry)) == entry


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_flipped_or_cut_value_is_a_miss(body: bytes, data: st.DataObject) -> None:
    from llm_provider._cache import _packed, _unpacked

    stored = _packed(Entry(body=body, seconds=1.0, created=2.0))
    position = data.draw(st.integers(0, len(stored) - 1))
    flipped = bytearray(stored)
    flipped[position] ^= 1 << data.draw(st.integers(0, 7))
    assert _unpacked(bytes(flipped)) is None
    assert _unpacked(stored[:position]) is None


def test_rows_that_are_not_raw_bytes_are_misses(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path)
    for number in range(20):
        cache.put(f"k{number}", ENTRY).result()
    cache.close()
    for shard in tmp_path.glob("v1/*/cache.db"):
        with sqlite3.connect(shard) as database:
            # A pickle, and a path: diskcache as it comes would run the one and read the other.
            database.execute("UPDATE Cache SET mode = 4, value = x'80034b012e' WHERE rowid % 2 = 0")
            database.execute("UPDATE Cache SET mode = 2, filename = '/etc/hostname' WHERE rowid % 2 = 1")
        database.close()
    with pytest.warns(CacheWarning, match="cannot read"):
        assert all(cache.get(f"k{number}") is None for number in range(20))
    cache.close()


def test_the_disk_takes_nothing_but_bytes(tmp_path: Path) -> None:
    disk = BytesDisk(str(tmp_path))
    for value in ("text", 1, [b"x"], None, bytearray(b"x")):
        with pytest.raises(TypeError):
            disk.store(value, read=False)
    with pytest.raises(TypeError):
        disk.put(b"key")


def test_the_directory_is_the_users_own(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path / "new")
    cache.put("k", ENTRY).result()
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    cache.close()
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    with pytest.warns(CacheWarning, match="written by other users"):
        assert ResponseCache(open_to_all).get("k") is None


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", str(tmp_path))
    assert default_directory() == tmp_path
    monkeypatch.setenv("LLM_PROVIDER_CACHE_DIR", " ")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_directory().name == "llm_provider"


def test_writes_that_pile_up_are_one_task(tmp_path: Path) -> None:
    cache, started, gate = ResponseCache(tmp_path), threading.Event(), threading.Event()
    cache._worker.submit(lambda: (started.set(), gate.wait(5)))
    assert started.wait(5)
    written = [cache.put(f"k{number}", ENTRY) for number in range(50)]
    assert not any(future.cancel() for future in written)
    waiting = cache._worker._tasks
    assert waiting is not None
    assert waiting.qsize() == 1
    gate.set()
    assert all(future.result(5) for future in written)
    cache.close()


def test_closing_finishes_every_write(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path)
    written = [cache.put(f"k{number}", ENTRY) for number in range(200)]
    cache.close()
    assert all(future.result(0) for future in written)
    assert all(cache.get(f"k{number}") == ENTRY for number in range(200))
    cache.close()


def test_calls_go_on_without_a_cache(simulator: Simulator, tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a directory")
    with warnings.catch_warnings(record=True) as seen, Client(cache_dir=in_the_way) as client:
        warnings.simplefilter("always")
        assert [client.call(MODEL, "1+1?").text for _ in range(3)] == ["2", "2", "2"]
    assert [warning.category for warning in seen] == [CacheWarning]


def test_opening_is_lazy_and_off_opens_nothing(simulator: Simulator, own_cache: Path) -> None:
    with Client(cache_dir=own_cache) as client:
        client.call(MODEL, "Hi", cache="off")
        assert not own_cache.exists()
        client.call(MODEL, "Hi")
        assert own_cache.exists()


def test_a_hit_is_the_whole_answer_and_costs_nothing(client: Client, simulator: Simulator) -> None:
    simulator.configure(reasoning_tokens=7, cached_tokens=2)
    paid = client.call("claude-sonnet-5-5", "think", reasoning_effort="low")
    hit = client.call("claude-sonnet-5-5", "think", reasoning_effort="low")
    assert paid.cost
    assert (hit.cached, hit.cost, hit.timing.attempts) == (True, 0.0, 0)
    assert (hit.choices, hit.usage, hit.raw, hit.id) == (paid.choices, paid.usage, paid.raw, paid.id)
    assert simulator.ledger().requests == 1


@pytest.mark.parametrize("finish", ["length", "content_filter", "refusal", "null_content"])
def test_what_is_not_kept(client: Client, simulator: Simulator, finish: str) -> None:
    simulator.inject(Fault(finish=finish), times=2)
    first = client.call(MODEL, "Hi")
    assert not first.cached
    assert not client.call(MODEL, "Hi").cached
    assert simulator.ledger().requests == 2


def test_one_changed_parameter_is_another_call(client: Client, simulator: Simulator) -> None:
    model = "together_ai/zai-org/GLM-5.3"
    variants: list[dict[str, Any]] = [
        {}, {"temperature": 0}, {"temperature": 0.0}, {"seed": 1}, {"max_tokens": 9}, {"stop": "x"},
        {"top_p": 0.5}, {"system": "Be brief."}, {"reasoning_effort": "low"}, {"extra_body": {"top_k": 1}},
        {"extra_headers": {"x-variant": "1"}}, {"n": 2}, {"response_format": {"type": "json_object"}},
    ]  # fmt: skip
    for parameters in variants:
        assert not client.call(model, "Hi", **parameters).cached, parameters
    for parameters in variants:
        assert client.call(model, "Hi", **parameters, timeout=9, max_retries=1, api_key="other-key").cached, (
            parameters
        )
    assert simulator.ledger().requests == len(variants)


def test_refresh_asks_anew_and_stores(client: Client, simulator: Simulator) -> None:
    client.call(MODEL, "Hi")
    assert not client.call(MODEL, "Hi", cache="refresh").cached
    simulator.configure(answer="another")
    assert client.call(MODEL, "Hi", cache="refresh").text == "another"
    assert client.call(MODEL, "Hi").text == "another"
    assert simulator.ledger().requests == 3


def test_only_never_sends(client: Client, simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = client.call(MODEL, "Hi")
    sent = simulator.ledger().requests
    monkeypatch.delenv("OPENAI_API_KEY")
    with Client(cache_dir=client.cache.directory, cache="only") as replay:
        assert replay.call(MODEL, "Hi").choices == paid.choices
        assert "".join(delta.text for delta in replay.stream(MODEL, "Hi")) == paid.text
        with pytest.raises(CacheMiss) as caught:
            replay.call(MODEL, "Ho")
        assert caught.value.key in str(caught.value)
        hit, miss = replay.call_many(MODEL, ["Hi", "Ho"])
        assert isinstance(hit, Response)
        assert isinstance(miss, CacheMiss)
        with pytest.raises(CacheMiss):
            replay.call("claude-sonnet-5-5", "Hi", n=2)
    assert simulator.ledger().requests == sent


def test_a_key_is_in_no_file(client: Client, own_cache: Path) -> None:
    client.call(MODEL, "Hi", api_key="sk-canary-7f3a")
    client.cache.close()
    assert not any(b"canary" in path.read_bytes() for path in own_cache.rglob("*") if path.is_file())


def test_a_written_entry_is_the_providers_own_bytes(client: Client) -> None:
    answer = client.call(MODEL, "Hi")
    assert orjson.loads(answer.body) == answer.raw
    assert answer.raw["choices"][0]["message"]["content"] == "echo: Hi"
