"""The stored form of answers is exact, checked, and silent about secrets; rows of a database are rescued."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import diskcache
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.runtime.databases import is_corrupt
from llm_provider._core.runtime.json_pieces import canonical
from llm_provider._core.store.entry import (
    CHECK,
    COUNT,
    DATABASE,
    ELIDED,
    ITEMS_AFTER,
    LONGEST_TEXT,
    NEWEST,
    Entry,
    Question,
    Reader,
    Row,
    Writer,
    cache_key,
    decode_entry,
    decode_question,
    digest,
    elide,
    encode_entry,
    rescue,
)
from llm_provider._core.store.row_format import BytesDisk

KEY = "k" * 64
ASKED = Question("openai", None, "chat/completions", b'{"messages":[]}', {}, 0, "gpt-6.1-sol")
SECRET = "canary-7f3a"


def make_question(payload: Any, **changes: Any) -> Question:
    return ASKED._replace(body=canonical(payload), **changes)


@given(
    st.binary(max_size=2000),
    st.floats(0, 1e6),
    st.floats(0, 4e9),
    st.none() | st.text(max_size=9),
    st.none() | st.just(ASKED),
    st.none() | st.floats(0, 1e3),
    st.booleans(),
    st.none() | st.lists(st.integers(0, 99) | st.text(max_size=9)),
)
def test_it_round_trips(
    body: bytes,
    seconds: float,
    created: float,
    served: str | None,
    question: Question | None,
    price: float | None,
    plain: bool,
    decoded: Any,
) -> None:
    entry = Entry(body, seconds, created, served, question, price, plain=plain, decoded=decoded)
    value = encode_entry(KEY, entry)
    assert decode_entry(KEY, value) == entry._replace(question=None)
    assert decode_question(KEY, value) == (question and question.to_json())


@given(st.binary(min_size=1, max_size=200), st.data())
def test_a_flipped_or_cut_value_is_a_miss(body: bytes, data: st.DataObject) -> None:
    value = encode_entry(KEY, Entry(body, seconds=1.0, created=2.0))
    position = data.draw(st.integers(0, len(value) - 1))
    flipped = bytearray(value)
    flipped[position] ^= 1 << data.draw(st.integers(0, 7))
    assert decode_entry(KEY, bytes(flipped)) is None
    assert decode_entry(KEY, value[:position]) is None


@given(st.data())
def test_a_damaged_question_leaves_the_answer_and_is_nothing(data: st.DataObject) -> None:
    whole = encode_entry(KEY, Entry(b"{}", 1.0, 2.0, None, ASKED))
    start = len(encode_entry(KEY, Entry(b"{}", 1.0, 2.0)))
    position = data.draw(st.integers(start, len(whole) - 1))
    flipped = bytearray(whole)
    flipped[position] ^= 1 << data.draw(st.integers(0, 7))
    for value in (bytes(flipped), whole[:position]):
        assert decode_entry(KEY, value) == Entry(b"{}", 1.0, 2.0)
        assert decode_question(KEY, value) is None


def test_a_value_under_another_key_is_a_miss() -> None:
    # As where a damaged index leads to another row.
    value = encode_entry(KEY, Entry(b"{}", 1.0, 2.0, None, ASKED))
    assert decode_entry("o" * 64, value) is None
    assert decode_question("o" * 64, value) is None


def test_long_texts_are_cut_and_short_ones_kept() -> None:
    image = "data:image/png;base64," + "A" * 5_000_000
    question = make_question({"messages": [{"content": [{"text": "What is it?"}, {"url": image}]}]})
    text, picture = question.to_json()["payload"]["messages"][0]["content"]
    assert text == {"text": "What is it?"}
    assert picture["url"][ELIDED]["length"] == len(image)
    assert picture["url"][ELIDED]["start"].startswith("data:image/png")
    assert len(question.encode()) < 1000


LONG = st.sampled_from(["x" * 2049, 'é\n"\\' * 700, "\U0001f600" * 2100])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(-1e9, 1e9)
    | st.text(max_size=9)
    | LONG,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=5), JSON, max_size=4),
    st.none() | JSON,
    st.none() | st.text(max_size=5),
    st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=3),
    st.integers(0, 2**40),
)
def test_a_question_is_written_in_one_way(
    payload: dict[str, Any], changed: Any, base_url: str | None, headers: dict[str, str], draw: int
) -> None:
    plain = make_question(payload, base_url=base_url, headers=headers, draw=draw)
    long = len(plain.body) > LONGEST_TEXT
    fields = {
        **{name: getattr(plain, name) for name in ("provider", "base_url", "operation", "draw", "model")},
        "headers": {name: digest(value) for name, value in headers.items()},
        "payload": elide(orjson.loads(plain.body)) if long else orjson.Fragment(plain.body),
    }
    # Its bytes do not depend on whether the payload is known, nor on what has become of it since.
    for known in (None, payload, changed, {"messages": "x" * 3000, **payload}):
        assert plain._replace(payload=known).encode() == orjson.dumps(fields, option=orjson.OPT_SORT_KEYS)


def test_a_payload_that_changes_while_it_is_read_is_left_alone() -> None:
    class Growing(dict[str, Any]):
        def items(self) -> Any:
            for item in super().items():
                self[f"more {len(self)}"] = 1
                yield item

    payload = {"messages": [{"content": "x" * 3000, "role": "user"}]}
    question = make_question(payload)
    assert question._replace(payload=Growing(payload)).encode() == question.encode()


@given(st.text(max_size=5000), st.text(max_size=5000))
def test_different_texts_stay_different(text: str, other: str) -> None:
    assert (elide(text) == elide(other)) == (text == other)


def test_a_long_conversation_is_compressed() -> None:
    conversation = make_question(
        {"messages": [{"content": "The quick brown fox. " * 50, "role": "user"}] * 40}
    )
    value = encode_entry(KEY, Entry(b"{}", 1.0, 2.0, None, conversation))
    assert len(value) < 3000
    assert decode_question(KEY, value) == conversation.to_json()


def test_of_headers_only_digests_are_kept() -> None:
    question = make_question({}, headers={"x-token": SECRET})
    value = encode_entry(KEY, Entry(b"{}", 1.0, 2.0, None, question))
    assert SECRET.encode() not in value
    assert (
        question.to_json()["headers"]
        != make_question({}, headers={"x-token": "another"}).to_json()["headers"]
    )


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
    ({}, {}, "d7481299d1a3"),
    ({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, {}, "e560f5da9692"),
    ({"model": "m", "temperature": 1.0}, {"draw": 3}, "458653bbe6e6"),
    ({"model": "m"}, {"provider": "anthropic", "base_url": None, "headers": {"a": "b"}}, "4b3ffb2e60a3"),
]


@pytest.mark.parametrize(("payload", "changes", "start"), GOLDEN)
def test_golden_keys(payload: object, changes: dict[str, Any], start: str) -> None:
    assert key(payload, **changes).startswith(start)


@given(JSON, JSON)
def test_two_payloads_share_a_key_only_if_they_are_the_same_json(payload: object, other: object) -> None:
    # Type-sensitive: 1, 1.0, "1" and true are four values.
    assert (key(payload) == key(other)) == (canonical(payload) == canonical(other))


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


def test_a_batch_is_stored_whole_or_not_at_all(folder: Path, reader: Reader, writer: Writer) -> None:
    change(folder, "CREATE UNIQUE INDEX refuse ON Cache (size)")
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        writer.write(rows(10), PATIENCE)
    change(folder, "DROP INDEX refuse")
    assert reader.fetch(COUNT) == [(0,)]
    # The transaction that failed is over, and keeps nobody out.
    writer.write(rows(5), PATIENCE)
    assert reader.fetch(COUNT) == [(5,)]


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
    assert reader.fetch(ITEMS_AFTER, "") == [("key-0003", b"value-3")]
    assert list(rescue(folder)) == [[("key-0003", b"value-3", None)]]


_ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
_COLUMNS = "rowid, key, raw, store_time, expire_time, access_time, access_count, tag, size, mode, filename"


@pytest.mark.parametrize("row", [200, 201, 400, 799])
def test_a_row_with_a_damaged_number_hides_no_other_row(folder: Path, writer: Writer, row: int) -> None:
    writer.write(rows(800), PATIENCE)
    writer.close()
    change(folder, "PRAGMA wal_checkpoint(TRUNCATE)")
    database = folder / DATABASE
    data = bytearray(database.read_bytes())
    # SQLite writes a number beyond 127 in bytes of seven bits.
    at = data.rindex(bytes([0x80 | row >> 7, row & 0x7F]), 0, data.index(b"value-%d" % (row - 1)))
    data[at : at + 2] = b"\xff\x7f"
    database.write_bytes(data)
    rescued = {key for batch in rescue(folder) for key, _, _ in batch}
    assert rescued >= {key for key, _, _ in rows(800)} - {f"key-{row - 1:04d}"}


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
        lambda: {*reader.fetch(ITEMS_AFTER, "")} <= {*before.items()},
        lambda: reader.fetch(NEWEST, "none", 2**62, 3) == [],
        lambda: sum(number for (number,) in reader.fetch(COUNT)) in range(5),
        lambda: reader.fetch(CHECK) != [],
        lambda: writer.write([("key-0009", b"value-9", None)], PATIENCE) is None,
        lambda: writer.delete([("key-0000",)], PATIENCE) is None,
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


def test_the_journal_follows_the_file_system(folder: Path) -> None:
    for journal, has_log in (("delete", False), ("wal", True)):
        writer = Writer(folder, journal)
        writer.write(rows(1), PATIENCE)
        assert (folder / f"{DATABASE}-wal").exists() == has_log
        writer.close()
