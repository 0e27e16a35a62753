"""The stored format of an answer, its key, and one shard of the cache on disk, which holds such values.

    16 bytes SHA-256 of key, head and reply | head: one line of JSON | reply | 16 bytes SHA-256 | question

A hit reads the first three parts only. The question serves to explain misses and to find entries by model.
The checksum includes the key, so it also detects an answer that a damaged index has put under another key.

The key is the SHA-256 of canonical JSON `[schema version, provider, base_url, operation, payload, headers,
draw]`: every field that is sent, and nothing else, such as API key, timeout, retries or transport.

A shard is a diskcache database, read and written with SQL of our own. diskcache creates it, but does not open
it. Opening a `diskcache.Cache` writes some forty settings, so it fails on a read-only disk, and waits up to a
minute per statement for another process's lock. Opening the cache and reading one answer takes 22 ms with
diskcache, and 1 ms with this module. A `diskcache.FanoutCache` with the `BytesDisk` of `row_format` can open
the same files.

Only rows that contain raw bytes are read: nothing is unpickled, and no file that a row names is opened
(CVE-2025-69872).
"""

import contextlib
import functools
import hashlib
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import orjson

from ..json_values import JSONObject
from ..runtime import clock
from ..runtime.databases import Allowed, open_database
from ..runtime.files import Identity, identity_of
from ..runtime.json_pieces import canonical

SCHEMA_VERSION = 2
"""Part of every key and of the directory's name. Every change of the hashed or stored format raises it, so
that entries of another version are left alone."""

_CHECKSUM_BYTES = 16
LONGEST_TEXT = 2048
"""Characters. A longer text of a question, such as an image or a document, is stored as a digest."""
_EXCERPT = 120
_COMPRESSED_ABOVE = 4096
"""Bytes. For a shorter question, compressing takes longer than writing the bytes that it saves."""

NOT_KEPT = "an answer that was refused, cut or empty is not stored (cache_finish_reasons)"
"""Why a question that was asked may have no entry."""

ELIDED = "$elided"
"""The only field of the object that replaces a long text."""

QuestionFields: TypeAlias = JSONObject
"""The stored JSON of a question: the fields of `Question`, where `payload` replaces `body`."""


class Question(NamedTuple):
    """The question that an answer belongs to: the contents of its key, and the model as the user named it."""

    provider: str
    """The route's name."""
    base_url: str | None
    """The server; None if the provider has only one."""
    operation: str
    """The endpoint."""
    body: bytes
    """The payload as canonical JSON."""
    headers: Mapping[str, str]
    """The extra headers that are sent."""
    draw: int
    """The number of the sample, from 0."""
    model: str
    payload: JSONObject | None = None
    """What the body was made of, if it is known. The user may have changed it since."""

    @property
    def tag(self) -> str:
        """The tag of the answer: only questions to the same provider and endpoint are compared."""
        return f"{self.provider} {self.operation}"

    def to_json(self) -> QuestionFields:
        """The question as `decode_question` gives it."""
        question: QuestionFields = orjson.loads(self.encode())
        return question

    def encode(self) -> bytes:
        """The question as JSON. Headers are stored as digests, as they may contain secrets."""
        # A short payload contains no long text, and need not be parsed.
        short = len(self.body) <= LONGEST_TEXT
        question = {
            "base_url": self.base_url,
            "draw": self.draw,
            "headers": {name: digest(value) for name, value in self.headers.items()},
            "model": self.model,
            "operation": self.operation,
            "payload": orjson.Fragment(self.body) if short else self._elide(),
            "provider": self.provider,
        }
        return orjson.dumps(question, option=orjson.OPT_SORT_KEYS)

    def _elide(self) -> object:
        """The payload without its long texts. One that is known need not be parsed, which takes longest."""
        with contextlib.suppress(TypeError, RuntimeError):  # another thread may change it meanwhile
            elided = elide(self.payload)
            if orjson.dumps(self.payload, option=orjson.OPT_SORT_KEYS) == self.body:
                return elided
        return elide(orjson.loads(self.body))


class Entry(NamedTuple):
    """A stored answer; a tuple, which a hit makes in a third of the time that a frozen dataclass takes.

    `body` is the provider's reply as it came, `seconds` the duration of the original call, `created` its Unix
    time, and `served` the model that answered, as the provider names it. `question` is for an entry to be
    stored; a hit does not read it. `price` is in USD. `origin` has the fields of `ServedBy` that the headers
    and the address told. Both are None where they are not known, as in entries of older versions. `plain` is
    whether the body is known to be plain, see `is_plain`. `decoded` is for `read_decoded`.
    """

    body: bytes
    seconds: float
    created: float
    served: str | None = None
    question: Question | None = None
    price: float | None = None
    origin: Mapping[str, str] | None = None
    plain: bool = False
    decoded: Any = None

    def list_known(self) -> dict[str, object]:
        """The fields that the head has only where they are known."""
        fields = {"served": self.served, "price": self.price, "origin": self.origin or None}
        fields |= {"plain": self.plain or None, "decoded": self.decoded}
        return {name: value for name, value in fields.items() if value is not None}


def encode_entry(key: str, entry: Entry, question: bytes | None = None) -> bytes:
    """The stored bytes of an entry; `question` replaces its question, as JSON, and may be empty."""
    if question is None:
        question = b"" if entry.question is None else entry.question.encode()
    head: dict[str, object] = {"created": entry.created, "seconds": entry.seconds, "size": len(entry.body)}
    answer = b"".join((orjson.dumps(head | entry.list_known()), b"\n", entry.body))
    parts = [_checksum(key, answer), answer]
    if question:
        packed = zlib.compress(question, 1) if len(question) > _COMPRESSED_ABOVE else question
        parts += [_checksum(key, packed), packed]
    return b"".join(parts)


def decode_entry(key: str, value: bytes) -> Entry | None:
    """The entry of a stored value; None if the value is damaged, or belongs to another key."""
    try:
        start = value.index(b"\n", _CHECKSUM_BYTES) + 1
        head = orjson.loads(value[_CHECKSUM_BYTES:start])
        end = start + head["size"]
        seconds, created = head["seconds"], head["created"]
        served, price, origin = head.get("served"), head.get("price"), head.get("origin")
        # A head that another program wrote may have a valid checksum. Only this sum needs them to be numbers.
        seconds + created + (price if "price" in head else 0) + end
    except (ValueError, KeyError, TypeError):
        return None
    if type(end) is not int or (type(served) is not str and "served" in head):
        return None
    if origin is not None and type(origin) is not dict:
        return None
    # A value that was damaged on disk counts as absent, and the call that follows writes it again.
    if not value.startswith(_checksum(key, value[_CHECKSUM_BYTES:end])):
        return None
    plain, decoded = head.get("plain") is True, head.get("decoded")
    return Entry(value[start:end], seconds, created, served, None, price, origin, plain, decoded)


def decode_question(key: str, value: bytes) -> QuestionFields | None:
    """The question of a stored value; None if there is none, or if it is damaged."""
    entry = decode_entry(key, value)
    if entry is None:
        return None
    rest = value[value.index(b"\n", _CHECKSUM_BYTES) + 1 + len(entry.body) :]
    packed = rest[_CHECKSUM_BYTES:]
    if not packed or rest[:_CHECKSUM_BYTES] != _checksum(key, packed):
        return None
    question: QuestionFields = orjson.loads(packed if packed.startswith(b"{") else zlib.decompress(packed))
    return question


def tag_of(question: QuestionFields | None) -> str | None:
    """`Question.tag`, of a stored question."""
    return None if question is None else f"{question['provider']} {question['operation']}"


def elide(value: object) -> object:
    """JSON in which an object with an excerpt, the length and a digest replaces each long text."""
    if isinstance(value, str):
        if len(value) <= LONGEST_TEXT:
            return value
        return {ELIDED: {"length": len(value), "sha256": digest(value), "start": value[:_EXCERPT]}}
    if isinstance(value, dict):
        return {name: elide(part) for name, part in value.items()}
    return [elide(part) for part in value] if isinstance(value, (list, tuple)) else value


def lacks_text(value: object) -> bool:
    """Whether `elide` has replaced a text.

    >>> lacks_text(elide(["x" * 5000])), lacks_text(["short"])
    (True, False)
    """
    if isinstance(value, dict):
        return ELIDED in value or any(map(lacks_text, value.values()))
    return isinstance(value, list) and any(map(lacks_text, value))


def digest(text: str) -> str:
    """What stands for a long text of a question."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _checksum(key: str, stored: bytes) -> bytes:
    # Processors have instructions for SHA-256: the checksum of a hit takes a third less than with BLAKE2b.
    return hashlib.sha256(key.encode() + stored).digest()[:_CHECKSUM_BYTES]


def cache_key(
    *, provider: str, base_url: str | None, operation: str, body: bytes, headers: Mapping[str, str], draw: int
) -> str:
    """The key of one sample, 64 hexadecimal digits. It takes the arguments of `Question`.

    >>> others = dict(provider="openai", base_url=None, operation="chat", headers={}, draw=0)
    >>> cache_key(body=b'{"seed":1}', **others) == cache_key(body=b'{"seed":1.0}', **others)
    False
    """
    head, tail = key_frame(
        provider=provider, base_url=base_url, operation=operation, headers=headers, draw=draw
    )
    digest = hashlib.sha256(head)
    digest.update(body)  # joined with the others, a long prompt would be copied
    digest.update(tail)
    return digest.hexdigest()


def key_frame(
    *, provider: str, base_url: str | None, operation: str, headers: Mapping[str, str], draw: int
) -> tuple[bytes, bytes]:
    """The bytes that are hashed before and after the payload."""
    # Few requests have headers.
    tail = canonical([dict(headers), draw])[1:] if headers else b"{},%d]" % draw
    return _head_of_key(provider, base_url, operation), b"," + tail


@functools.lru_cache(maxsize=256)
def _head_of_key(provider: str, base_url: str | None, operation: str) -> bytes:
    return canonical([SCHEMA_VERSION, provider, base_url, operation])[:-1] + b","


DATABASE = "cache.db"

_PLAIN = "raw = 1 AND mode = 1 AND filename IS NULL AND typeof(value) = 'blob'"
# Only the line above is inserted into these statements.
_READ = f"SELECT value FROM Cache WHERE key = ? AND {_PLAIN}"  # noqa: S608 -- see above
_READ_MANY = f"SELECT key, value FROM Cache WHERE {_PLAIN} AND key IN "  # noqa: S608 -- see above
_WRITE = (
    "INSERT INTO Cache (key, raw, store_time, access_time, mode, value, tag)"
    " VALUES (?, 1, ?, ?, 1, ?, ?)"
    " ON CONFLICT (key, raw) DO UPDATE SET store_time = excluded.store_time, expire_time = NULL,"
    " mode = 1, filename = NULL, value = excluded.value, tag = excluded.tag"
)
_DELETE = "DELETE FROM Cache WHERE key = ? AND raw = 1"
ITEMS_AFTER = f"SELECT key, value FROM Cache WHERE key > ? AND {_PLAIN} ORDER BY key LIMIT 200"  # noqa: S608 -- see above
NEWEST = (
    f"SELECT rowid, store_time, key, value FROM Cache WHERE tag = ? AND rowid < ? AND {_PLAIN}"  # noqa: S608 -- see above
    " ORDER BY rowid DESC LIMIT ?"
)
COUNT = "SELECT value FROM Settings WHERE key = 'count'"
"""diskcache's triggers maintain this number. Counting the rows would read the whole index."""
CHECK = "PRAGMA quick_check(1)"
_RESCUE = (
    f"SELECT rowid, key, value, tag FROM Cache WHERE rowid >= ? AND {_PLAIN}"  # noqa: S608 -- see above
    " ORDER BY rowid LIMIT ?"
)
_RESCUE_FROM_END = f"SELECT key, value, tag FROM Cache WHERE {_PLAIN} ORDER BY rowid DESC"  # noqa: S608 -- see above
_RESCUED_AT_ONCE = 200
_UNREADABLE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR)
_MOST_UNREADABLE = 20_000
"""Rows without one between them that can be read. A damaged page of SQLite's tree may hide thousands."""
_COUNTERS = (
    "Settings_count_insert", "Settings_count_delete", "Settings_size_insert", "Settings_size_update",
    "Settings_size_delete",
)  # fmt: skip
"""The triggers of diskcache."""

READING_PATIENCE = 1.0
"""Seconds. Readers meet a lock only if the database has no write-ahead log or is being repaired."""


Row: TypeAlias = tuple[str, bytes, str | None]
"""Key, value, and a tag to find the row by."""


class ReplacedFileError(OSError):
    """The database was deleted or replaced while it was open, so the last write is lost."""


class _File:
    """A database, and the identity of its file when it was opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.identity: Identity | None = None
        self._path = str(folder / DATABASE)
        self._connection: sqlite3.Connection | None = None

    def close(self) -> None:
        """Close the database. The next use opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class Reader(_File):
    """Reads a shard, even while another connection writes it. One thread at a time. A missing one is empty.

    All methods but `bytes_on_disk` raise `sqlite3.Error` if it cannot be read.
    """

    def read(self, key: str) -> bytes | None:
        """The value of a key; None if it has none."""
        reader = self._connection or self._open()
        row: tuple[bytes] | None = None if reader is None else reader.execute(_READ, (key,)).fetchone()
        if row is not None:
            return row[0]
        if reader is None or identity_of(self._path) == self.identity:
            return None
        # Another process has replaced the database.
        self.close()
        return self.read(key)

    def read_many(self, keys: Sequence[str], most_bytes: int) -> dict[str, bytes]:
        """The values of the keys that have one, in one statement. Stops after `most_bytes`."""
        reader = self._connection or self._open()
        values: dict[str, bytes] = {}
        if reader is not None:
            statement = f"{_READ_MANY}({','.join('?' * len(keys))})"
            # An open cursor would keep the write-ahead log from being truncated.
            with contextlib.closing(reader.execute(statement, keys)) as rows:
                for key, value in rows:
                    values[key] = value
                    most_bytes -= len(value)
                    if most_bytes < 0:
                        break
        return values

    def bytes_on_disk(self) -> int:
        """The size of the database and its write-ahead log."""
        size = 0
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                size += Path(self._path + suffix).stat().st_size
        return size

    def fetch(self, statement: str, *parameters: object) -> list[Any]:
        """The rows of one of the statements above."""
        reader = self._connection or self._open()
        return [] if reader is None else reader.execute(statement, parameters).fetchall()

    def _open(self) -> sqlite3.Connection | None:
        self.identity = identity_of(self._path)
        if self.identity is None:
            return None
        try:
            self._connection = _connect(self._path, "mode=rw", READING_PATIENCE, _read_one)
        except sqlite3.OperationalError:
            if os.access(self.folder, os.W_OK):
                raise
            # SQLite cannot create its shared-memory file here. No other process can write either.
            self._connection = _connect(self._path, "mode=ro&immutable=1", READING_PATIENCE, _read_one)
        return self._connection


class Writer(_File):
    """Writes a shard, in one of SQLite's journal modes. One thread at a time."""

    def __init__(self, folder: Path, journal: str) -> None:
        super().__init__(folder)
        self._journal = journal
        self._patience = 0.0

    def write(self, rows: Sequence[Row], patience: float) -> None:
        """Store values in one transaction, waiting at most `patience` seconds for the lock.

        A `ReplacedFileError` says that they went into a database that is deleted or replaced.
        """
        now = clock.time()
        self._transact(_WRITE, [(key, now, now, value, tag) for key, value, tag in rows], patience)
        if identity_of(self._path) != self.identity:
            raise ReplacedFileError(f"{self._path} was deleted or replaced while it was open")

    def delete(self, keys: Sequence[tuple[str]], patience: float) -> None:
        """Delete rows in one transaction; `sqlite3.Error` if they are not deleted."""
        self._transact(_DELETE, keys, patience)

    def _transact(self, statement: str, rows: Sequence[tuple[object, ...]], patience: float) -> None:
        writer = self._connection or self._open(patience)
        if patience != self._patience:
            writer.execute(f"PRAGMA busy_timeout = {round(patience * 1000)}")
            self._patience = patience
        if len(rows) == 1:
            writer.execute(statement, rows[0])  # a statement alone is a transaction
            return
        with writer:  # commits, or rolls back
            writer.execute("BEGIN IMMEDIATE")
            writer.executemany(statement, rows)

    def _open(self, patience: float) -> sqlite3.Connection:
        self.identity = identity_of(self._path)
        if self.identity is None:
            raise ReplacedFileError(f"{self._path} does not exist")
        self._connection = _connect(self._path, "mode=rw", patience, self._prepare)
        self._patience = patience
        return self._connection

    def _prepare(self, writer: sqlite3.Connection) -> None:
        # A committed write survives a kill of the process; after a power cut the last ones may be gone.
        writer.execute("PRAGMA synchronous = NORMAL")
        if writer.execute("PRAGMA journal_mode").fetchone()[0] != self._journal:
            # The cache was moved to another kind of file system.
            writer.execute(f"PRAGMA journal_mode = {self._journal}")


def rescue(folder: Path) -> Iterator[list[Row]]:
    """The rows of a damaged database that can be read, 200 at a time.

    The values may be damaged: their own checksums detect that.
    """
    rows = _read_rows(folder)
    while batch := list(islice(rows, _RESCUED_AT_ONCE)):
        yield batch


def _read_rows(folder: Path) -> Iterator[Row]:
    with (
        contextlib.suppress(sqlite3.Error, OverflowError),
        contextlib.closing(_connect(str(folder / DATABASE), "mode=rw", 5.0, bool)) as damaged,
    ):
        first, count, unreadable = 0, _RESCUED_AT_ONCE, 0
        last: set[str] = set()
        while unreadable < _MOST_UNREADABLE:
            try:
                rows = damaged.execute(_RESCUE, (first, count)).fetchall()
            except sqlite3.Error as error:
                # A key that is no UTF-8 has no code.
                if getattr(error, "sqlite_errorcode", _UNREADABLE[0]) & 0xFF not in _UNREADABLE:
                    break
                # One by one up to the damage, and past it.
                first, unreadable, count = first + (count == 1), unreadable + (count == 1), 1
                continue
            if not rows:
                break
            yield from [(key, value, tag) for _, key, value, tag in rows]
            last = {row[1] for row in rows}
            # The number of a damaged row may be any.
            first, count = max(first, rows[-1][0]) + 1, _RESCUED_AT_ONCE if unreadable else count
            unreadable = 0
        # A damaged number may have led past all rows after it.
        for row in damaged.execute(_RESCUE_FROM_END):
            if row[0] in last:
                break
            yield row


def _read_one(reader: sqlite3.Connection) -> None:
    reader.execute("SELECT 1 FROM Cache LIMIT 1").fetchone()


def _connect(
    path: str, options: str, patience: float, prepare: Callable[[sqlite3.Connection], object]
) -> sqlite3.Connection:
    # Without urllib, which nothing else on this path imports.
    for character in "%?#":
        path = path.replace(character, f"%{ord(character):02x}")
    uri, allowed = f"file:{path}?{options}", Allowed(_COUNTERS, "Settings", ("typeof",))
    return open_database(uri, timeout=patience, uri=True, allowed=allowed, prepare=prepare)
