"""The files of the cache: no acknowledged write is lost, whatever happens to processes and disk."""

import contextlib
import fcntl
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import diskcache
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from llm_provider._core.runtime import files
from llm_provider._core.store import entry
from llm_provider._core.store.entry import DATABASE
from llm_provider._core.store.row_format import BytesDisk
from llm_provider._core.store.store import CacheRefusedError, Store
from loop_support import run_threads
from support import RunScript

PATIENCE = 0.1


def rows(count: int, start: int = 0) -> list[tuple[str, bytes, str | None]]:
    return [(f"key-{number}", b"value-%d" % number, None) for number in range(start, start + count)]


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, messages: list[str]) -> Iterator[Store]:
    store = Store(tmp_path / "cache", messages.append)
    yield store
    store.close()


def missing(store: Store, count: int) -> list[str]:
    return [key for key, value, _ in rows(count) if store.read(key) != value]


def database_of(directory: Path, key: str) -> Path:
    """The database that holds a key."""
    for path in directory.glob(f"v2/*/{DATABASE}"):
        with sqlite3.connect(path) as connection:
            row = connection.execute("SELECT 1 FROM Cache WHERE key = ?", (key,)).fetchone()
        connection.close()
        if row:
            return path
    raise LookupError(key)


def open_databases(directory: Path) -> list[str]:
    """The files below a directory that this process has open, where the system tells."""
    names = []
    for link in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):
            names.append(str(link.readlink()))
    return [name for name in names if name.startswith(str(directory))]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of two megabytes."""
    disk = tmp_path / "disk"
    disk.mkdir()
    options = ["-t", "tmpfs", "-o", "size=2m,mode=0700", "tmpfs", str(disk)]
    try:
        subprocess.run(["mount", *options], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this user may not mount a small file system here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


# --- the layout ------------------------------------------------------------------------------------------
def test_it_is_a_fanout_cache(tmp_path: Path, store: Store) -> None:
    assert store.write(rows(40)) == {}
    store.close()
    with diskcache.FanoutCache(str(tmp_path / "cache" / "v2"), shards=8, disk=BytesDisk) as fanout:
        assert [fanout.get(key) for key, _, _ in rows(40)] == [value for _, value, _ in rows(40)]
        assert len(fanout) == store.count() == 40
        assert sorted(fanout) == sorted(key for key, _, _ in rows(40))
        assert (fanout.eviction_policy, fanout.cull_limit, fanout.statistics) == ("none", 0, 0)
        assert fanout.set("another", b"by diskcache")
        assert not fanout.check()
    assert store.read("another") == b"by diskcache"


def test_a_power_cut_undoes_no_folder_of_the_cache(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename, sync, unsafe = files.rename, files.fsync, set[int]()

    def note_rename(source: Path, target: Path) -> None:
        rename(source, target)
        unsafe.add(target.parent.stat().st_ino)

    def note_sync(descriptor: int) -> None:
        sync(descriptor)
        unsafe.discard(os.fstat(descriptor).st_ino)

    monkeypatch.setattr(files, "rename", note_rename)
    monkeypatch.setattr(files, "fsync", note_sync)
    store.write(rows(50), PATIENCE)
    assert unsafe == set()
    shutil.rmtree(next((tmp_path / "cache").glob("v2/*")))
    store.write(rows(50), PATIENCE)
    assert missing(store, 50) == []
    assert unsafe == set()


def test_all_items_are_listed_in_order_however_many_there_are(store: Store) -> None:
    written = rows(4000)
    assert store.write(written) == {}
    assert list(store.items()) == sorted((key, value) for key, value, _ in written)


def test_each_database_is_opened_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    opened, open_database = Counter[str](), entry.open_database

    def count_opened(path: str, **settings: Any) -> sqlite3.Connection:
        opened[path] += 1
        return open_database(path, **settings)

    monkeypatch.setattr(entry, "open_database", count_opened)
    for _ in range(3):
        assert store.write(rows(50)) == {}
        assert missing(store, 50) == []
        assert len(store.read_many([key for key, _, _ in rows(50)], 10**6)) == 50
        assert (store.count(), len(list(store.items())), store.check()) == (50, 50, [])
        assert store.bytes_on_disk() > 0
        store.delete(["key-7"])
    # One connection reads and one writes.
    assert set(opened.values()) <= {1, 2}
    # A power cut may lose the last transactions, and damages nothing.
    for writer in store._writers or ():
        connection = writer._connection
        assert connection is None or connection.execute("PRAGMA synchronous").fetchone() == (1,)


def test_reading_makes_nothing(tmp_path: Path, store: Store) -> None:
    assert store.read("key-0") is None
    assert (store.count(), store.bytes_on_disk(), list(store.items())) == (0, 0, [])
    assert not (tmp_path / "cache").exists()


def test_of_many_no_more_are_read_than_fit(store: Store) -> None:
    keys = [f"key-{number}" for number in range(100)]
    store.write([(key, bytes(1000), None) for key in keys])
    # The first one that does not fit is read too, and is the last.
    for most in (0, 1, 999, 1_000, 9_999, *range(10_000, 100_001, 1_000)):
        assert len(store.read_many(keys, most)) == min(most // 1_000 + 1, 100)
    # A reader that stopped early blocks neither writers nor the truncation of the log.
    assert store.write(rows(100)) == {}
    for path in store._directory.glob(f"v2/*/{DATABASE}"):
        connection = sqlite3.connect(path)
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        connection.close()


def test_the_newest_of_a_tag_come_first(store: Store) -> None:
    for number in range(60):
        store.write([(f"key-{number}", b"%d" % number, "odd" if number % 2 else "even")])
    numbers = [int(value) for _, value in next(store.newest("odd", 24))]
    assert numbers == sorted(numbers, reverse=True)
    assert (numbers[0], {number % 2 for number in numbers}) == (59, {1})
    assert len(numbers) <= 24
    assert sum(map(len, store.newest("odd", 8))) == len(next(store.newest("odd", 1000))) == 30


def test_a_moved_cache_works(tmp_path: Path, store: Store, messages: list[str]) -> None:
    store.write(rows(40))
    store.close()
    (tmp_path / "cache").rename(tmp_path / "else where?#%41")
    moved = Store(tmp_path / "else where?#%41", messages.append)
    assert missing(moved, 40) == []
    assert moved.write(rows(10, 40)) == {}
    moved.close()
    assert messages == []


class AsADict(RuleBasedStateMachine):
    """The store behaves like a dict, in any order of writing, deleting, closing and losing the files."""

    keys = st.integers(0, 20).map(lambda number: f"key-{number}")

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.path = Path(self.directory.name) / "cache"
        self.stores = [Store(self.path, print), Store(self.path, print)]
        self.expected: dict[str, bytes] = {}

    @rule(which=st.integers(0, 1), pairs=st.dictionaries(keys, st.binary(max_size=20), min_size=1))
    def write(self, which: int, pairs: dict[str, bytes]) -> None:
        assert self.stores[which].write([(key, value, None) for key, value in pairs.items()]) == {}
        self.expected |= pairs

    @rule(which=st.integers(0, 1), doomed=st.lists(keys, min_size=1))
    def delete(self, which: int, doomed: list[str]) -> None:
        self.stores[which].delete(doomed)
        for key in doomed:
            self.expected.pop(key, None)

    @rule(which=st.integers(0, 1))
    def close(self, which: int) -> None:
        self.stores[which].close()

    @rule()
    def lose_everything(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        # Open files would still be read; a miss or a write notices the loss.
        for store in self.stores:
            store.close()
        self.expected.clear()

    @invariant()
    def both_agree(self) -> None:
        for store in self.stores:
            assert dict(store.items()) == self.expected
            assert store.count() == len(self.expected)
            keys = [*(f"key-{number}" for number in range(21)), "key-0", ""]
            assert store.read_many(keys, 10**6) == self.expected
            assert store.read_many([], 10**6) == {}
            assert [store.read(f"key-{number}") for number in range(21)] == [
                self.expected.get(f"key-{number}") for number in range(21)
            ]

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        self.directory.cleanup()


TestAsADict = AsADict.TestCase
TestAsADict.settings = settings(max_examples=10, stateful_step_count=12, deadline=None)


# --- whose directory it is -------------------------------------------------------------------------------
def test_only_the_user_can_look_into_it(tmp_path: Path, store: Store) -> None:
    store.write(rows(1))
    for path in (tmp_path / "cache", tmp_path / "cache" / "v2"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


@pytest.mark.parametrize("fault", ["link", "file", "open", "foreign"])
def test_a_directory_that_is_not_the_users_own_is_refused(
    tmp_path: Path, fault: str, messages: list[str]
) -> None:
    directory = tmp_path / "cache"
    if fault == "link":
        (tmp_path / "real").mkdir(mode=0o700)
        directory.symlink_to(tmp_path / "real")
    elif fault == "file":
        directory.touch()
    else:
        directory.mkdir(mode=0o700)
    if fault == "open":
        directory.chmod(0o777)
    if fault == "foreign":
        if os.getuid() != 0:
            pytest.skip("only root can give a directory away")
        os.chown(directory, 12345, 12345)
    store = Store(directory, messages.append)
    with pytest.raises(CacheRefusedError):
        store.read("key-0")
    with pytest.raises(CacheRefusedError):
        store.write(rows(1))
    assert fault == "file" or list(directory.iterdir()) == []


def test_another_versions_answers_are_left_alone_and_told_once(tmp_path: Path, messages: list[str]) -> None:
    (tmp_path / "v1").mkdir()
    for _ in range(2):
        store = Store(tmp_path, messages.append)
        store.write(rows(1))
        store.close()
    assert len(messages) == 1
    assert "v1" in messages[0]


# --- several processes -----------------------------------------------------------------------------------
WRITER = """
import os, sys
from pathlib import Path
from llm_provider._core.store.store import Store
directory, processes, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
for process in range(processes):
    if not os.fork():
        store = Store(directory, print)
        for number in range(count):
            key = f"{process}-{number}"
            failures = store.write([(key, key.encode() * 50, None)], 60.0)
            assert not failures, failures
        os._exit(0)
statuses = [os.wait()[1] for _ in range(processes)]
assert not any(statuses), statuses
"""


def test_many_processes_write_at_once(tmp_path: Path, store: Store) -> None:
    processes, count = 24, 20
    # All of them find no cache, and make it.
    arguments = [str(tmp_path / "cache"), str(processes), str(count)]
    ended = subprocess.run([sys.executable, "-c", WRITER, *arguments], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    keys = [f"{process}-{number}" for process in range(processes) for number in range(count)]
    assert [key for key in keys if store.read(key) != key.encode() * 50] == []
    assert store.count() == len(keys)
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["v2"]


def test_a_lock_that_is_held_is_waited_for_within_a_bound(tmp_path: Path, store: Store) -> None:
    store.write(rows(100))
    other = sqlite3.connect(database_of(tmp_path / "cache", "key-0"), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    fresh = Store(tmp_path / "cache", print)
    # Opening does not wait, reading does not either, and only the locked shard cannot be written.
    assert missing(fresh, 100) == []
    failures = fresh.write(rows(100, 100), PATIENCE)
    assert 0 < len(failures) < 50
    assert all("locked" in str(error) for error in failures.values())
    other.execute("ROLLBACK")
    other.close()
    assert fresh.write(rows(100, 100), PATIENCE) == {}
    assert missing(store, 200) == []
    fresh.close()


def test_a_fork_in_the_middle_of_reading_and_writing(run_script: RunScript, tmp_path: Path) -> None:
    run_script(
        f"""
        import os, threading
        from pathlib import Path
        from llm_provider._core.store.store import Store
        store, stop = Store(Path({str(tmp_path / "cache")!r}), print), threading.Event()
        def work(name):
            number = 0
            while not stop.is_set():
                assert not store.write([(f"{{name}}-{{number}}", b"x" * 100, None)], 60.0)
                assert store.read(f"{{name}}-{{number}}") == b"x" * 100
                number += 1
        threads = [threading.Thread(target=work, args=(name,)) for name in range(3)]
        for thread in threads: thread.start()
        for child in range(40):
            if not os.fork():
                own = Store(Path({str(tmp_path / "cache")!r}), print)
                assert not own.write([(f"child-{{child}}", b"y", None)], 60.0)
                os._exit(0)
        assert not any(os.wait()[1] for _ in range(40))
        stop.set()
        for thread in threads: thread.join()
        assert all(store.read(f"child-{{child}}") == b"y" for child in range(40))
        store.close()
        """
    )


def test_a_hundred_threads_share_the_files(tmp_path: Path, store: Store) -> None:
    store.write(rows(200))
    results: list[list[str]] = []
    run_threads(*[lambda: results.append(missing(store, 200))] * 100)
    assert results == [[]] * 100
    # Eight shards: the database and its log for two connections, and their shared memory.
    assert len(open_databases(tmp_path)) <= 40
    store.close()
    assert open_databases(tmp_path) == []


# --- damage ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("content", [b"", b"this was a database", b"\0" * 8192])
@pytest.mark.parametrize("meets", ["reading", "writing"])
def test_a_destroyed_database_is_put_aside(
    tmp_path: Path, store: Store, messages: list[str], content: bytes, meets: str
) -> None:
    store.write(rows(100))
    damaged = database_of(tmp_path / "cache", "key-0")
    store.close()
    damaged.write_bytes(content)
    if meets == "reading":
        lost = missing(store, 100)
        assert 0 < len(lost) < 40
        assert "key-0" in lost
    assert store.write(rows(100)) == {}
    assert missing(store, 100) == []
    assert len(messages) == len(store.list_damaged()) == 1
    assert str(store.list_damaged()[0]) in messages[0]


def test_rows_of_a_damaged_database_are_rescued(tmp_path: Path, store: Store, messages: list[str]) -> None:
    big = [(key, value * 300, "tag") for key, value, _ in rows(800)]
    store.write(big)
    damaged = database_of(tmp_path / "cache", "key-0")
    store.close()
    content = bytearray(damaged.read_bytes())
    leaves = [start for start in range(4096, len(content), 4096) if content[start] == 13]
    for start in (leaves[3], leaves[len(leaves) // 2], leaves[-3]):
        content[start : start + 4096] = b"\xff" * 4096
    damaged.write_bytes(content)
    for key, _, _ in big:
        store.read(key)
    list(store.items())
    unread = [key for key, value, _ in big if store.read(key) != value]
    assert 0 < len(unread) <= 3 * 2, "two rows lie in a page"
    assert store.check() == []
    assert len(messages) == 1
    assert "0 of its answers were rescued" not in messages[0]
    assert store.write(big) == {}
    assert [key for key, value, _ in big if store.read(key) != value] == []


@pytest.mark.parametrize("what", ["", "v2", "v2/*", "v2/*/cache.db"])
def test_files_deleted_while_they_are_open_are_created_again(tmp_path: Path, store: Store, what: str) -> None:
    store.write(rows(100))
    assert missing(store, 100) == []
    other = Store(tmp_path / "cache", print)
    assert missing(other, 100) == []
    for path in (tmp_path / "cache").glob(what) if what else [tmp_path / "cache"]:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert store.write(rows(100)) == {}
    # A store that had the files open sees the new ones, and so does a new store.
    fresh = Store(tmp_path / "cache", print)
    assert missing(fresh, 100) == []
    assert other.write(rows(100, 100)) == {}
    assert missing(store, 200) == []
    fresh.close()
    other.close()


@pytest.mark.parametrize("shared", [False, True])
def test_the_folders_above_a_cache_are_made_and_made_again(
    tmp_path: Path, messages: list[str], shared: bool
) -> None:
    store = Store(tmp_path / "a" / "b" / "cache", messages.append, shared=shared)
    for _ in range(2):
        assert store.write(rows(3)) == {}
        assert missing(store, 3) == []
        shutil.rmtree(tmp_path / "a")
    store.close()
    assert messages == []


def test_a_cache_that_was_left_half_made_is_swept(tmp_path: Path, store: Store) -> None:
    for name, age in (("new-1-old", 60), ("new-2-young", 0), ("new-3-held", 60)):
        left = tmp_path / "cache" / name
        left.mkdir(mode=0o700, parents=True)
        (left / "cache.db").touch()
        os.utime(left, (time.time() - age,) * 2)
    (tmp_path / "cache").chmod(0o700)
    descriptor = os.open(tmp_path / "cache" / "new-3-held", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    store.write(rows(1))
    names = sorted(path.name for path in (tmp_path / "cache").iterdir())
    os.close(descriptor)
    assert names == ["new-2-young", "new-3-held", "v2"]


# --- disks -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("clean", [True, False])
def test_a_read_only_disk_is_read(small_disk: Path, messages: list[str], clean: bool) -> None:
    writer = Store(small_disk / "cache", messages.append)
    writer.write(rows(50))
    if clean:
        writer.close()
    else:
        # As after a crash: some answers are in the log only.
        copy = small_disk / "copy"
        shutil.copytree(small_disk / "cache", copy)
        writer.close()
        shutil.rmtree(small_disk / "cache")
        copy.rename(small_disk / "cache")
        for shared in (small_disk / "cache").glob("v2/*/*-shm"):
            shared.unlink()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    store = Store(small_disk / "cache", messages.append)
    if clean:
        assert missing(store, 50) == []
    assert len(store.write(rows(10, 50))) == 10
    assert messages == []
    store.close()
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    assert missing(store, 50) == []
    store.close()


def test_a_directory_that_forbids_writing_is_read(tmp_path: Path, store: Store, messages: list[str]) -> None:
    store.write(rows(50))
    store.close()
    paths = [tmp_path / "cache", *(tmp_path / "cache").rglob("*")]
    for path in paths:
        path.chmod(0o500 if path.is_dir() else 0o400)
    if os.access(tmp_path / "cache", os.W_OK):
        pytest.skip("root may write everywhere")
    assert missing(store, 50) == []
    assert len(store.write(rows(10, 50))) == 10
    for path in paths:
        path.chmod(0o700)
    assert messages == []


def test_a_network_disk_has_one_shard_and_no_log(tmp_path: Path, messages: list[str]) -> None:
    mounts = tmp_path / "mounts"
    directory = tmp_path / "on nfs"
    mounts.write_text(
        f"/dev/vda / ext4 rw 0 0\nserver:/home {str(directory).replace(' ', chr(92) + '040')} nfs4 rw 0 0\n"
    )
    store = Store(directory, messages.append, mounts)
    assert store.write(rows(40)) == {}
    assert missing(store, 40) == []
    assert len(messages) == 1
    assert "network" in messages[0]
    (shard,) = directory.glob("v2-network/*")
    assert [path.name for path in shard.iterdir()] == [DATABASE]
    store.close()
    # Moved to a local disk, it keeps its one shard, and gets the log.
    local = tmp_path / "local"
    directory.rename(local)
    store = Store(local, messages.append, mounts)
    assert store.write(rows(40, 40)) == {}
    assert missing(store, 80) == []
    assert len(messages) == 1
    store.close()
