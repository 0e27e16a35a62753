"""One database of the cache: its reader, its writer, and the rescue of its rows."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import diskcache
import pytest

from llm_provider._cache.storage.row_format import BytesDisk
from llm_provider._cache.storage.shard import (
    DATABASE,
    Reader,
    ReplacedFileError,
    Row,
    Writer,
    identity_of,
    is_corrupt,
    rescue,
)
from llm_provider._runtime.databases import is_busy

PATIENCE = 0.1


def create(folder: Path) -> Path:
    """A new database, as a store creates it."""
    diskcache.Cache(str(folder), disk=BytesDisk, eviction_policy="none", sqlite_journal_mode="wal").close()
    return folder


def rows(count: int, tag: str | None = None) -> list[Row]:
    return [(f"key-{number:04d}", b"value-%d" % number, tag) for number in range(count)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return create(tmp_path / "000")


@pytest.fixture
def reader(folder: Path) -> Iterator[Reader]:
    reader = Reader(folder)
    yield reader
    reader.close()


@pytest.fixture
def writer(folder: Path) -> Iterator[Writer]:
    writer = Writer(folder, "wal")
    yield writer
    writer.close()


def change(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / DATABASE)
    with connection:
        connection.execute(statement)
    connection.close()


def test_a_missing_shard_is_empty_and_cannot_be_written(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "000")
    assert (reader.read("k"), reader.read_many(["k"], 100), reader.items_after("")) == (None, {}, [])
    assert (reader.newest("tag", 5), reader.count(), reader.bytes_on_disk()) == ([], 0, 0)
    assert reader.check() == "ok"
    with pytest.raises(ReplacedFileError, match="does not exist"):
        Writer(tmp_path / "000", "wal").write(rows(1), PATIENCE)
    assert not (tmp_path / "000").exists()


def test_a_reader_sees_every_write_at_once(folder: Path, reader: Reader, writer: Writer) -> None:
    assert reader.read("key-0000") is None
    writer.write(rows(3), PATIENCE)
    assert reader.read("key-0000") == b"value-0"
    assert reader.read_many(["key-0001", "key-0002", "missing"], 100) == {
        "key-0001": b"value-1",
        "key-0002": b"value-2",
    }
    writer.write([("key-0000", b"later", None)], PATIENCE)
    assert (reader.read("key-0000"), reader.count()) == (b"later", 3)
    writer.delete(["key-0000", "key-0001"], PATIENCE)
    assert (reader.read("key-0000"), reader.count()) == (None, 1)
    assert reader.bytes_on_disk() >= (folder / DATABASE).stat().st_size
    writer.write(rows(450), PATIENCE)
    assert len(reader.items_after("key-0100")) == 200, "what is read at once has a bound"


def test_a_batch_is_stored_whole_or_not_at_all(folder: Path, reader: Reader, writer: Writer) -> None:
    change(folder, "CREATE UNIQUE INDEX refuse ON Cache (size)")
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        writer.write(rows(10), PATIENCE)
    change(folder, "DROP INDEX refuse")
    assert reader.count() == 0
    # The transaction that failed is over, and keeps nobody out.
    writer.write(rows(5), PATIENCE)
    assert reader.count() == 5


def test_rows_of_other_kinds_are_neither_read_nor_rescued(
    folder: Path, reader: Reader, writer: Writer
) -> None:
    writer.write(rows(4), PATIENCE)
    change(folder, "UPDATE Cache SET mode = 4, value = x'80034b012e' WHERE key = 'key-0000'")
    change(folder, "UPDATE Cache SET mode = 2, filename = '/etc/hostname' WHERE key = 'key-0001'")
    change(folder, "UPDATE Cache SET value = 'text' WHERE key = 'key-0002'")
    keys = [key for key, _, _ in rows(4)]
    assert [reader.read(key) for key in keys] == [None, None, None, b"value-3"]
    assert reader.read_many(keys, 1000) == {"key-0003": b"value-3"}
    assert reader.items_after("") == [("key-0003", b"value-3")]
    assert list(rescue(folder)) == [[("key-0003", b"value-3", None)]]


_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
_COLUMNS = "rowid, key, raw, store_time, expire_time, access_time, access_count, tag, size, mode, filename"
PLANTED = {
    "a view in the place of the table": (
        "ALTER TABLE Cache RENAME TO Moved",
        f"CREATE VIEW Cache AS SELECT {_COLUMNS}, x'00' AS value FROM Moved",
    ),
    "a view without an end": (
        "ALTER TABLE Cache RENAME TO Moved",
        f"CREATE VIEW Cache AS SELECT {_COLUMNS}, value FROM Moved, ({_ENDLESS}) WHERE i < 0",
    ),
    "a view of the counts": (
        "ALTER TABLE Settings RENAME TO Moved",
        f"CREATE VIEW Settings AS SELECT 'count' AS key, (SELECT max(i) FROM ({_ENDLESS})) AS value",
    ),
    "a trigger that deletes": (
        "CREATE TRIGGER planted AFTER INSERT ON Cache BEGIN DELETE FROM Cache WHERE key != NEW.key; END",
    ),
    "a trigger that changes answers": (
        "CREATE TRIGGER planted AFTER INSERT ON Cache BEGIN UPDATE Cache SET value = x'00'; END",
    ),
    "a trigger without an end": (
        f"CREATE TRIGGER planted BEFORE INSERT ON Cache BEGIN SELECT count(*) FROM ({_ENDLESS}); END",
    ),
    "a trigger with the name of one of diskcache's": (
        "DROP TRIGGER Settings_count_insert",
        "CREATE TRIGGER Settings_count_insert AFTER INSERT ON Cache BEGIN DELETE FROM Cache; END",
    ),
    "a trigger before deletions": (
        "CREATE TRIGGER planted AFTER DELETE ON Cache BEGIN DELETE FROM Cache; END",
    ),
    "a computed column": (
        "ALTER TABLE Cache ADD COLUMN huge AS (zeroblob(1000000000))",
        "CREATE INDEX planted ON Cache (hex(key))",
    ),
}  # fmt: skip


@pytest.mark.parametrize("statements", PLANTED.values(), ids=PLANTED)
def test_nothing_that_was_put_into_a_database_runs(
    folder: Path, reader: Reader, writer: Writer, statements: tuple[str, ...]
) -> None:
    writer.write(rows(3), PATIENCE)
    reader.close()
    writer.close()
    before = {key: value for key, value, _ in rows(3)}
    for statement in statements:
        change(folder, statement)
    uses: list[Callable[[], object]] = [
        lambda: reader.read("key-0001") in (None, b"value-1"),
        lambda: reader.read_many(list(before), 1000).items() <= before.items(),
        lambda: {*reader.items_after("")} <= {*before.items()},
        lambda: reader.newest("none", 3) == [],
        lambda: reader.count() in range(5),
        lambda: reader.check() != "",
        lambda: writer.write([("key-0009", b"value-9", None)], PATIENCE) is None,
        lambda: writer.delete(["key-0000"], PATIENCE) is None,
        lambda: (
            {(key, value) for batch in rescue(folder) for key, value, _ in batch}
            <= {*before.items(), ("key-0009", b"value-9")}
        ),
    ]
    for use in uses:
        try:
            assert use()
        except sqlite3.DatabaseError as error:
            assert is_corrupt(error)  # noqa: PT017  # some uses read nothing that was put there
    name = "Moved" if "Moved" in statements[0] and "Cache" in statements[0] else "Cache"
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as database:
        left = dict(database.execute(f"SELECT key, value FROM {name} WHERE key > 'key-0000'"))
    assert {key: value for key, value in before.items() if key > "key-0000"}.items() <= left.items()


def test_another_processs_lock_is_busy_and_not_corrupt(folder: Path, writer: Writer, reader: Reader) -> None:
    writer.write(rows(1), PATIENCE)
    other = sqlite3.connect(folder / DATABASE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(sqlite3.OperationalError) as caught:
        writer.write(rows(2), PATIENCE)
    assert (is_busy(caught.value), is_corrupt(caught.value)) == (True, False)
    assert reader.count() == 1
    other.execute("ROLLBACK")
    other.close()
    writer.write(rows(2), PATIENCE)
    assert reader.count() == 2


@pytest.mark.parametrize("content", [b"", b"this was a database"])
def test_a_file_that_is_no_database_is_corrupt(folder: Path, content: bytes) -> None:
    (folder / DATABASE).write_bytes(content)
    with pytest.raises(sqlite3.DatabaseError) as caught:
        Reader(folder).read("k")
    assert (is_busy(caught.value), is_corrupt(caught.value)) == (False, True)
    assert not is_corrupt(OSError("the disk is full"))
    assert Reader(folder).check() != "ok"


def test_a_database_that_is_replaced_is_noticed_by_both_sides(
    folder: Path, tmp_path: Path, reader: Reader, writer: Writer
) -> None:
    writer.write(rows(1), PATIENCE)
    assert reader.read("key-0000") == b"value-0"
    before = identity_of(folder / DATABASE)
    folder.rename(tmp_path / "aside")
    create(folder)
    assert identity_of(folder / DATABASE) != before
    other = Writer(folder, "wal")
    other.write([("new", b"new", None)], PATIENCE)
    other.close()
    assert reader.read("new") == b"new"
    with pytest.raises(ReplacedFileError, match="deleted or replaced"):
        writer.write(rows(1), PATIENCE)
    assert identity_of(tmp_path / "nothing") is None


def test_the_journal_follows_the_file_system(folder: Path) -> None:
    for journal, has_log in (("delete", False), ("wal", True)):
        writer = Writer(folder, journal)
        writer.write(rows(1), PATIENCE)
        assert (folder / f"{DATABASE}-wal").exists() == has_log
        writer.close()


def test_a_damaged_database_is_rescued_from_both_ends(folder: Path, writer: Writer) -> None:
    stored = [(key, value * 300, "tag") for key, value, _ in rows(800)]
    writer.write(stored, PATIENCE)
    writer.close()
    size = (folder / DATABASE).stat().st_size
    with (folder / DATABASE).open("r+b") as file:
        file.seek(size // 2 // 4096 * 4096)
        file.write(b"\xff" * 4096)
    rescued = [row for batch in rescue(folder) for row in batch]
    assert max(len(batch) for batch in rescue(folder)) == 200
    assert {row for row in rescued if row in stored} >= {stored[0], stored[-1]}
    assert 700 < len({key for key, _, _ in rescued}) < 800
