"""A store that fails is left alone until it works again, and gets then what it missed."""

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from llm_provider._features.second_level import access
from llm_provider._features.second_level.access import SecondLevelAccess, Write
from llm_provider._features.second_level.settings import SecondLevel
from second_level_support import SqliteStore
from support import wait_until


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "shared.sqlite")


class Local(dict[str, bytes]):
    """The local store of a test, and the warnings of the access."""

    def __init__(self) -> None:
        self.warnings: list[str] = []


@pytest.fixture
def local() -> Local:
    return Local()


@pytest.fixture
def leasing(store: SqliteStore, local: Local, monkeypatch: pytest.MonkeyPatch) -> Iterator[SecondLevelAccess]:
    """It has the lease of `a`."""
    monkeypatch.setattr(access, "LEASE_SECONDS", 0.3)
    leasing = SecondLevelAccess(SecondLevel(store, leases=True), local.get, local.warnings.append)
    assert leasing.take_lease("a").result()
    yield leasing
    leasing.close()


@pytest.fixture
def behind(store: SqliteStore, local: Local) -> Iterator[SecondLevelAccess]:
    level = SecondLevel(store, wait_for_writes=True)
    behind = SecondLevelAccess(level, local.get, local.warnings.append)
    yield behind
    behind.close()


def test_readers_at_the_same_time_share_a_round_trip(store: SqliteStore, behind: SecondLevelAccess) -> None:
    behind.write([Write(f"{number}", b"v", local=True) for number in range(300)])
    assert behind.read([f"{number}" for number in range(300)]) == dict.fromkeys(map(str, range(300)), b"v")
    assert store.gets == [128, 128, 44]
    store.gets.clear()
    with store._lock:  # the first reader waits for it, the others come together
        readers = [threading.Thread(target=behind.read, args=([f"{number}"],)) for number in range(30)]
        for reader in readers:
            reader.start()
        assert wait_until(lambda: len(behind._reads) == 30)
    for reader in readers:
        reader.join()
    assert sum(store.gets) == 30
    assert len(store.gets) <= 3


def test_an_outage_is_bridged(
    store: SqliteStore, behind: SecondLevelAccess, local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_LONGEST_RETRY", 0.05)
    behind._retry_after = 0.05
    store.fails = OSError("the cable is out")
    local["b"] = b"from the local store"
    assert behind.read(["a"]) == {}
    behind.write([Write("a", b"from memory", local=False), Write("b", b"not kept", local=True)])
    assert behind.read(["a"]) == {}
    [warning] = local.warnings
    assert "SqliteStore; calls go on with the local store" in warning
    assert "OSError: the cable is out" in warning
    statistics = behind.statistics()
    assert (statistics.pending, statistics.available, statistics.store) == (2, False, {})
    store.fails = None
    assert wait_until(lambda: behind.statistics().available)
    assert behind.read(["a", "b"]) == {"a": b"from memory", "b": b"from the local store"}
    assert behind.statistics().pending == 0
    assert len(local.warnings) == 1


def test_a_lease_is_renewed_until_it_is_released(store: SqliteStore, leasing: SecondLevelAccess) -> None:
    for _ in range(3):
        before = store.leases["a"]
        assert wait_until(lambda before=before: store.leases["a"] > before)  # type: ignore[misc]  # bound here
    assert not store.take_lease("a", "another machine", 1)
    leasing.write([Write("k", b"v", local=True)])
    leasing.release_lease("a")
    assert wait_until(lambda: not store.leases)
    # The answer was there before the lease ended.
    assert dict(store.export()) == {"k": b"v"}


def test_closing_names_the_answers_that_were_not_sent_also_those_that_could_not_be_kept(
    store: SqliteStore, local: Local, behind: SecondLevelAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_MOST_PENDING", 2)
    store.fails = OSError("gone")
    behind.write([Write(f"{number}", b"v", local=True) for number in range(5)])
    behind.flush()
    assert behind.statistics().pending == 2
    behind.close()
    assert local.warnings[1].startswith("5 answers are in the local store and not in the second level")
    assert store.closed == 1


@pytest.mark.parametrize(
    ("answer", "message"),
    [([b"v"], "returned list, not a mapping"), ({"a": "v"}, "a value of str, not of bytes")],
)
def test_a_store_that_returns_something_else_is_named(
    answer: object, message: str, local: Local, store: SqliteStore, behind: SecondLevelAccess
) -> None:
    store.get_many = lambda keys: answer  # type: ignore[method-assign]  # the store is one of the test
    assert behind.read(["a"]) == {}
    assert message in local.warnings[0]


def test_a_store_that_hangs_does_not_hold_its_reader(
    store: SqliteStore, local: Local, behind: SecondLevelAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "_LONGEST_READ", 0.05)
    with store._lock:
        assert behind.read(["a"]) == {}
        assert behind.read(["b"]) == {}
    assert local.warnings[0].startswith("cannot read")
    assert "no answer within 0.05 s" in local.warnings[0]


def release_lease(behind: SecondLevelAccess) -> None:
    assert behind.take_lease("a").result()
    behind.release_lease("a")
    behind._writer.submit(lambda: None).result()


def close_with_answers_that_are_not_sent(behind: SecondLevelAccess) -> None:
    behind._keep([Write("a", b"v", local=False)])
    behind.close()


@pytest.mark.parametrize(
    ("method", "use", "fails"),
    [
        ("get_many", lambda behind: behind.read(["a"]), "read"),
        ("stats", SecondLevelAccess.statistics, "read"),
        ("take_lease", lambda behind: behind.take_lease("a").result(), "read"),
        ("put_many", lambda behind: behind.write([Write("a", b"v", local=False)]), "write"),
        ("release_lease", release_lease, "write"),
        ("put_many", close_with_answers_that_are_not_sent, "write"),
        ("close", SecondLevelAccess.close, "write"),
    ],
)
def test_a_failure_stops_and_names_what_failed(
    method: str,
    use: Callable[[SecondLevelAccess], object],
    fails: str,
    store: SqliteStore,
    local: Local,
    behind: SecondLevelAccess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise OSError("gone")

    assert behind.read(["a"]) == {}
    monkeypatch.setattr(store, method, fail)
    use(behind)
    assert (behind._read_fails, behind._write_fails) == (fails == "read", fails == "write")
    assert local.warnings[0].startswith(f"cannot {fails} the second level")


def test_closing_sends_what_came_while_the_store_was_busy(
    store: SqliteStore, local: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = SecondLevelAccess(SecondLevel(store), local.get, local.warnings.append)
    put, close, steps, gate = store.put_many, store.close, list[object](), threading.Event()

    def put_late(values: Mapping[str, bytes]) -> None:
        steps.append(dict(values))
        assert gate.wait(60)
        put(values)

    monkeypatch.setattr(store, "put_many", put_late)
    monkeypatch.setattr(store, "close", lambda: (steps.append("closed"), close()))
    behind.write([Write("a", b"v", local=False)])
    assert wait_until(lambda: bool(steps))
    behind.write([Write("b", b"w", local=False)])
    threading.Timer(0.05, gate.set).start()
    behind.close()
    assert steps == [{"a": b"v"}, {"b": b"w"}, "closed"]


def test_a_lease_that_is_released_while_it_is_renewed_ends(
    store: SqliteStore, leasing: SecondLevelAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, renewed = store.take_lease, threading.Event()

    def renew_late(name: str, owner: str, seconds: float) -> bool:
        if not renewed.is_set():
            leasing.release_lease(name)
            assert wait_until(lambda: not store.leases)
        granted = take(name, owner, seconds)
        renewed.set()
        return granted

    monkeypatch.setattr(store, "take_lease", renew_late)
    assert renewed.wait(60)
    assert wait_until(lambda: not store.leases)
