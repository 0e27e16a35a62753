"""The journal: which rows were submitted as which batch, in a directory beside the cache.

Each batch has one file of JSON lines, to which lines are only ever appended:

    {"v": 1, "id": ..., "provider": ..., ...}    the batch
    {"row": ..., "parts": ..., ...}              one line for each row
    {"sealed": HASH, "rows": N}                  the intent is complete
    {"event": "submitting", "at": ...}           and what happened since

A file gets its name once its intent is complete and on disk, so a batch without a file was never submitted.
Every event is on disk before the step that it announces. A line that cannot be read, such as a cut one, is
left out; one damaged page would make a whole database of SQLite unreadable.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import orjson

from ..errors import RequestError
from ..formats.shared.batches import Part
from ..json_values import JSONMapping, JSONObject
from ..requests.base_url import check_base_url
from ..runtime import clock, files
from ..runtime.files import LONGEST_LINE, TEMPORARY, full_disk, replace_file
from ..runtime.json_pieces import loads

VERSION = 1
_SUFFIX = ".jsonl"
_PAYLOAD = b',"payload":'

KEPT_SECONDS = 30 * 86_400.0
"""Seconds for which the file of a finished batch is kept. No provider keeps results for longer."""

_STALE_SECONDS = 86_400.0
"""Age of a temporary file that no living process can still be writing."""


Destination: TypeAlias = tuple[str, str | None, str]
"""An account: the provider, the server, and the fingerprint of the API key."""


class RowLine(NamedTuple):
    """One row as the journal has it."""

    custom_id: str
    """The cache key of its only part; for several parts, a hash of their keys."""
    parts: tuple[int, ...]
    payload: bytes | None
    """The payload as JSON, without labels and the number of samples; None for texts, and once it is
    collected. A schema keeps the order of its fields."""
    texts: tuple[str, ...] | None = None
    """The texts of an embedding."""
    keys: tuple[str, ...] = ()
    """The cache keys of the parts."""
    metadata: object = None
    """The user's value for the first input that waits for the row, as JSON holds it."""

    def encode(self) -> bytes:
        """The line, without its line break."""
        fields: dict[str, object] = {"row": self.custom_id, "parts": self.parts}
        if self.keys != (self.custom_id,):
            fields["keys"] = self.keys
        if self.texts is not None:
            fields["texts"] = self.texts
        if self.metadata is not None:
            # As text, in which a quotation mark is escaped.
            fields["metadata"] = orjson.dumps(self.metadata).decode()
        line = orjson.dumps(fields)
        return line if self.payload is None else b'%s,"payload":%s}' % (line[:-1], self.payload)

    @classmethod
    def decode(cls, line: bytes) -> RowLine:
        """The inverse of `encode`, with the payload's bytes; a `KeyError` if the line is damaged."""
        # The fields before it are numbers, keys and texts, in which a quotation mark is escaped.
        end = line.find(_PAYLOAD)
        try:
            fields = _check(orjson.loads(line if end < 0 else line[:end] + b"}"))
            if end >= 0:
                loads(line[end + len(_PAYLOAD) : -1])
            custom_id, texts, metadata = fields["row"], fields.get("texts"), fields.get("metadata")
            return cls(
                custom_id,
                tuple(fields["parts"]),
                None if end < 0 else line[end + len(_PAYLOAD) : -1],
                None if texts is None else tuple(texts),
                tuple(fields.get("keys", (custom_id,))),
                None if metadata is None else orjson.loads(metadata),
            )
        except (ValueError, TypeError, AttributeError):
            raise KeyError("a line of the journal is damaged") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The facts of a batch that all its rows share."""

    id: str
    job: str
    """The call of the user to which it belongs."""
    created: float
    kind: str
    """The name of the operation: "chat" or "embed"."""
    provider: str
    model: str
    """The model as the user named it."""
    name: str
    """The model as the provider knows it."""
    base_url: str | None
    custom_base_url: bool
    account: str
    """The fingerprint of the API key."""
    operation: str
    headers: Mapping[str, str] = field(default_factory=dict)
    samples_field: tuple[str, ...] = ()
    most_samples: int = 1
    payload: JSONMapping | None = None
    """The fields beside the texts of an embedding."""
    deployed: str = ""
    """The model that the deployment is, where the user said so."""
    labels: JSONMapping | None = None
    """Fields that are sent with each row and are no part of its keys."""
    tag: str = ""
    background: JSONMapping | None = None
    """The options of a background job, which is a batch of one row; None for a batch."""

    @property
    def delivery(self) -> str:
        """Its delivery in the ledger."""
        window = (self.background or {}).get("completion_window", "soonest")
        way = "batch" if self.background is None else "background"
        return way if window == "soonest" else f"{way}-{window}"

    @property
    def part(self) -> Part:
        """The module that speaks to its provider."""
        return "batches" if self.background is None else "background"


_TYPES: tuple[tuple[str, Any], ...] = (
    ("id job kind provider model name account operation deployed tag", str),
    ("row sealed event file remote state body", str),
    ("base_url label metadata", str | None),
    ("payload labels background", dict | None),
    ("headers error", dict),
    ("samples_field parts keys", list),
    ("texts", list | None),
    ("most_samples rows done failed", int),
    ("custom_base_url ended", bool),
    ("created at", int | float),
)
"""Names of fields in the lines of a file, and the types of their values."""

_LATEST = 1e11
"""A time in the year 5138."""


def _check(fields: Any) -> JSONObject:
    """The fields of a line; a `TypeError` for what this library has not written."""
    for names, kind in _TYPES:
        for name in fields.keys() & names.split():
            if not isinstance(fields[name], kind):
                raise TypeError(name)
    texts = (each for name in ("samples_field", "keys", "texts") for each in fields.get(name) or ())
    is_whole = all(type(part) is int for part in fields.get("parts", ()))
    times = (fields[name] for name in ("created", "at") if name in fields)
    if not (is_whole and all(isinstance(text, str) for text in texts)) or any(
        not 0 <= each < _LATEST for each in times
    ):
        raise TypeError("a list or a time")
    checked: JSONObject = fields
    return checked


def content_hash(custom_ids: Iterable[str]) -> str:
    """A hash of the rows of a batch, in any order. Their names are hashes of their contents."""
    return hashlib.sha256("\n".join(sorted(custom_ids)).encode()).hexdigest()[:32]


class Record:
    """One batch of the journal, and its file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.id = path.stem.rpartition("-")[2]
        self.header: Header | None = None
        """None if the file is damaged at its beginning."""
        self.destination: Destination | None = None
        """The account to which it was submitted; None as above."""
        self.sealed: str | None = None
        """The hash of its rows; None if the file is damaged."""
        self.remote: str | None = None
        """The provider's name of the batch, once it is known."""
        self.file: str | None = None
        self.submitting: float | None = None
        """When a submission was begun whose outcome is not known."""
        self.submitted: float | None = None
        self.is_guess = False
        """Whether `remote` may be another program's batch, until its rows are read."""
        self.ledger_name = self.id
        """Its name in the ledger: the name of the journal which submitted it."""
        self.paid_elsewhere = False
        """Whether it belongs to another cache directory, whose ledger has its cost."""
        self.state = "planned"
        """The provider's last word, or "planned", "submitting", "forgotten" or "refused"."""
        self.ended = False
        """Whether the provider has ended the batch."""
        self.collected: float | None = None
        """When all its rows were stored."""
        self.is_open = True
        """Whether answers may still come from it."""
        self.not_ours: set[str] = set()
        """Batches of the provider that turned out to be others."""
        self.kept: dict[str, tuple[int, int]] = {}
        """The lines of rows that the cache does not keep: errors, refused answers, and such."""
        self.counts = (0, 0)
        """Rows that have an answer and rows that failed, as the provider told last."""
        self.rows: dict[str, tuple[int, int]] = {}
        """Offset and length of the line of each row."""
        self._read = self._inode = 0
        self.reload()

    def reload(self) -> None:
        """Read the lines that were appended since the last time, perhaps by another process."""
        try:
            with self.path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                if inode != self._inode:
                    # It is read for the first time, or was written anew by `shrink`.
                    self.rows, self.kept, self._read, self._inode = {}, {}, 0, inode
                file.seek(self._read)
                offset = self._read
                # As `files.lines_of`, which would be entered again for each line.
                for line in iter(functools.partial(file.readline, LONGEST_LINE), b""):
                    if line.endswith(b"\n"):
                        self._take(line, offset)
                        self._read = offset + len(line)
                    elif len(line) == LONGEST_LINE:
                        raise RequestError(f"{self.path} has a line of more than {LONGEST_LINE:,} bytes")
                    offset += len(line)
        except FileNotFoundError:
            self.state, self.ended = "forgotten", True
        self.is_open = self.collected is None and self.state != "forgotten"

    def _take(self, line: bytes, offset: int) -> None:
        # Most lines are rows, whose payload need not be parsed.
        if line.startswith(b'{"row":"'):
            end = line.find(b'"', 8)
            self.rows[line[8:end].decode("utf-8", "replace")] = offset, len(line)
            return
        try:
            fields = _check(orjson.loads(line))
        except (ValueError, TypeError, AttributeError):
            return
        with contextlib.suppress(KeyError, TypeError, ValueError, RequestError):
            if fields.get("v") == VERSION:
                if fields["base_url"] is not None:
                    check_base_url(fields["base_url"])
                known = {name: fields[name] for name in Header.__dataclass_fields__ if name in fields}
                known["samples_field"] = tuple(known.get("samples_field", ()))
                self.header = header = Header(**known)
                self.destination = header.provider, header.base_url, header.account
            elif "sealed" in fields:
                self.sealed = fields["sealed"] if fields["rows"] == len(self.rows) else None
            elif "event" in fields:
                self._event(fields, offset, len(line))

    def _event(self, fields: JSONMapping, offset: int, length: int) -> None:
        match fields["event"]:
            case "uploaded":
                self.file = fields["file"]
            case "submitting":
                self.submitting, self.state = fields["at"], "submitting"
            case "submitted":
                self.remote, self.submitted, self.state = fields["remote"], fields["at"], fields["state"]
                self.submitting = None
                self.ledger_name = fields.get("label") or self.id
                self.paid_elsewhere = fields.get("elsewhere") is True
                self.is_guess = fields.get("guess") is True
            case "not_submitted":
                self.submitting, self.state = None, "planned"
            case "not_ours":
                self.not_ours.add(fields["remote"])
                if self.remote == fields["remote"]:
                    self.remote, self.state, self.ended = None, "submitting", False
                    self.counts, self.submitting = (0, 0), self.submitted
            case "state":
                self.state, self.ended = fields["state"], fields["ended"]
                self.counts = fields["done"], fields["failed"]
            case "kept":
                self.kept[fields["row"]] = offset, length
            case "collected":
                self.collected, self.counts = fields["at"], (fields["done"], fields["failed"])
            case "forgotten":
                self.state, self.ended = "forgotten", True

    def may_have(self, rows: Collection[str]) -> bool:
        """Whether one of some rows may be in it. The only row of a background job is known."""
        is_job = self.header is not None and self.header.background is not None and self.sealed is not None
        return not is_job or not self.rows.keys().isdisjoint(rows)

    @property
    def is_uncertain(self) -> bool:
        """Whether its process or its file was cut short, so that its name at the provider is not known."""
        return self.is_open and (self.remote is None or self.is_guess)

    @property
    def created(self) -> float:
        """Unix time at which the intent was written."""
        if self.header is not None:
            return self.header.created
        with contextlib.suppress(ValueError):
            return float(self.path.stem.partition("-")[0])
        return 0.0

    def row(self, custom_id: str) -> RowLine:
        """A row; a `KeyError` if there is none of this name, or its line is damaged."""
        return RowLine.decode(self._line(custom_id).rstrip(b"\n"))

    def has_any(self, keys: Collection[str]) -> bool:
        """Whether a row answers one of some cache keys."""
        if not self.rows.keys().isdisjoint(keys):
            return True
        if self.header is None or (self.header.kind == "chat" and self.header.most_samples == 1):
            return False
        return any(not set(keys).isdisjoint(row.keys) for row in rows_of(self))

    def read_row(self, custom_id: str) -> JSONObject | None:
        """The end of a row that the cache does not keep: its `body`, or its `error`."""
        if custom_id not in self.kept:
            return None
        with contextlib.suppress(ValueError, TypeError, AttributeError):
            return _check(orjson.loads(self._line(custom_id, kept=True)))
        raise KeyError(f"a line of {self.path} is damaged")

    def _line(self, custom_id: str, *, kept: bool = False) -> bytes:
        while True:
            with self.path.open("rb") as file:
                # `shrink`, perhaps of another process, moves the lines.
                if os.fstat(file.fileno()).st_ino == self._inode:
                    offset, length = (self.kept if kept else self.rows)[custom_id]
                    file.seek(offset)
                    return file.read(length)
            self.reload()

    def append(self, event: str, **fields: object) -> None:
        """Write an event. It is on disk when this returns, and an `OSError` says that it is not."""
        line = orjson.dumps({"event": event, "at": clock.time(), **fields}) + b"\n"
        try:
            files.append_line(self.path, line, create=False)
        except OSError as error:
            raise full_disk(error, self.path, "the batch is safe") or error from None
        self.reload()

    def keep(self, custom_id: str, body: bytes | None, error: Mapping[str, object] | None) -> None:
        """Write the end of a row that the cache does not keep."""
        fields = {"error": error} if body is None else {"body": body.decode()}
        self.append("kept", row=custom_id, **fields)

    def shrink(self) -> None:
        """Write the file anew without the payloads, once all rows are stored."""
        with replace_file(self.path) as file, self.path.open("rb") as source:
            for line in files.lines_of(source, self.path):
                end = line.find(_PAYLOAD) if line.startswith(b'{"row":"') else -1
                file.write(line if end < 0 else line[:end] + b"}\n")

    def remove(self) -> None:
        """Delete the file: nothing was submitted, or nothing more will come."""
        files.remove_file(self.path)
        self.state, self.ended, self.is_open = "forgotten", True, False


class Journal:
    """The files of all batches of one cache, in a directory that the first batch makes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._records: dict[str, Record] = {}

    @functools.cached_property
    def origin(self) -> str:
        """A hash of the machine and the directory, which a batch carries along to its provider."""
        address = f"{platform.node()} {self.directory.resolve()}"
        return hashlib.sha256(address.encode()).hexdigest()[:16]

    def records(self) -> list[Record]:
        """Every batch, oldest first."""
        records = {}
        for path in sorted(self.directory.glob(f"*{_SUFFIX}")) if self.directory.is_dir() else ():
            known = self._records.get(path.name)
            if known is not None:
                known.reload()
            records[path.name] = known or Record(path)
        self._records = records
        return list(records.values())

    def open_records(self) -> list[Record]:
        """The batches from which answers may still come."""
        return [record for record in self.records() if record.is_open]

    def write(self, header: Header, rows: Iterable[tuple[str, bytes]]) -> Record:
        """Write the intent to submit a batch, on disk when this returns. `rows` are names and lines."""
        files.make_folder(self.directory)
        path = self.directory / f"{int(header.created):010d}-{header.id}{_SUFFIX}"
        names: list[str] = []
        fields = {name: getattr(header, name) for name in Header.__dataclass_fields__}
        if header.background is None:
            del fields["background"]
        with replace_file(path, safe="nothing was submitted") as file:
            file.write(orjson.dumps({"v": VERSION, **fields}) + b"\n")
            for name_of_row, line in rows:
                names.append(name_of_row)
                file.write(line + b"\n")
            file.write(orjson.dumps({"sealed": content_hash(names), "rows": len(names)}) + b"\n")
        record = self._records[path.name] = Record(path)
        return record

    def tidy(self) -> None:
        """Delete temporary files of processes that were killed, and the files of batches of long ago."""
        now = clock.time()
        for path in self.directory.glob(f"*{TEMPORARY}"):
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > _STALE_SECONDS:
                    files.remove_file(path)
        for record in self.records():
            if not record.is_open and now - (record.collected or record.created) > KEPT_SECONDS:
                record.remove()


def rows_of(record: Record) -> Iterator[RowLine]:
    """The rows of a batch in their order, without damaged ones."""
    for custom_id in record.rows:
        with contextlib.suppress(KeyError):
            yield record.row(custom_id)
