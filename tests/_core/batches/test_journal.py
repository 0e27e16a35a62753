"""The files of batches: what survives, and what a damaged file still tells."""

import copy
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from batch_records import MakeRecord, header
from llm_provider._core.batches.journal import KEPT_SECONDS, Journal, Record, RowLine, content_hash
from llm_provider._core.runtime import clock, files


def test_a_row_keeps_its_bytes_and_a_damaged_one_is_told() -> None:
    for line in (
        RowLine("a", (0,), b'{"x":[1.50,"\\"payload\\":"]}', None, ("a",)),
        RowLine("b", (0, 1), b"{}", None, ("k0", "k1")),
        RowLine("c", (0, 1), None, ('one ,"payload":', "two"), ("k0", "k1")),
        RowLine("d", (0,), b"{}", None, ("d",), {"id": 7, "payload": '"payload":{'}),
    ):
        assert RowLine.decode(line.encode()) == line
    for damaged in (b"", b"[]", b'{"row":"a"}', b'{"row":"a","parts":[0],"payload":{'):
        with pytest.raises(KeyError):
            RowLine.decode(damaged)


def test_another_process_reads_what_was_written(journal: Journal, make_record: MakeRecord) -> None:
    record = make_record("a", "b")
    record.append("uploaded", file="file-1")
    record.append("submitting")
    (again,) = Journal(journal.directory).records()
    assert (again.id, again.header, list(again.rows)) == (record.id, header(), ["a", "b"])
    assert (again.file, again.state, again.is_uncertain) == ("file-1", "submitting", True)
    record.append("submitted", remote="batch_1", state="in_progress")
    again.reload()
    assert (again.remote, again.is_uncertain, again.is_open) == ("batch_1", False, True)
    assert again.row("b").payload == b'{"model":"gpt-5.5"}'


def test_a_power_cut_loses_no_line_of_the_journal(
    journal: Journal, make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk: dict[int, int] = {}
    """Bytes of each file that are flushed, by its inode."""

    def flush(descriptor: int, sync: Callable[[int], None] = files.fsync) -> None:
        sync(descriptor)
        found = os.fstat(descriptor)
        on_disk[found.st_ino] = found.st_size

    def is_on_disk(path: Path) -> bool:
        found = path.stat()
        return on_disk.get(found.st_ino) == found.st_size

    monkeypatch.setattr(files, "fsync", flush)
    record = make_record("a", "b")
    assert is_on_disk(record.path)
    assert journal.directory.stat().st_ino in on_disk, "the name of the file is in the folder"
    for step in (
        lambda: record.append("submitting"),
        lambda: record.append("submitted", remote="batch_1", state="in_progress"),
        lambda: record.keep("b", b'{"answer":1}', None),
        lambda: record.append("collected", done=2, failed=0),
        record.shrink,
    ):
        step()
        assert is_on_disk(record.path)


SENT = ("submitted", {"remote": "b1", "state": "in_progress"})
ENDED = ("state", {"state": "ended", "ended": True, "done": 1, "failed": 2})
EVENTS: list[tuple[list[tuple[str, dict[str, Any]]], dict[str, Any]]] = [
    ([("uploaded", {"file": "f1"})], {"file": "f1"}),
    ([("submitting", {})], {"submitting": 7.0, "state": "submitting"}),
    ([("submitting", {}), ("not_submitted", {})], {}),
    ([("submitting", {}), SENT], {"remote": "b1", "submitted": 7.0, "state": "in_progress"}),
    (
        [("submitted", {"remote": "b1", "state": "x", "label": "l", "elsewhere": True, "guess": True})],
        {
            "remote": "b1", "submitted": 7.0, "state": "x", "ledger_name": "l", "paid_elsewhere": True,
            "is_guess": True,
        },
    ),
    (
        [SENT, ENDED],
        {"remote": "b1", "submitted": 7.0, "state": "ended", "ended": True, "counts": (1, 2)},
    ),
    (
        [SENT, ENDED, ("not_ours", {"remote": "b1"})],
        {"not_ours": {"b1"}, "submitted": 7.0, "submitting": 7.0, "state": "submitting"},
    ),
    (
        [SENT, ("not_ours", {"remote": "b2"})],
        {"not_ours": {"b2"}, "remote": "b1", "submitted": 7.0, "state": "in_progress"},
    ),
    ([("collected", {"done": 2, "failed": 0})], {"collected": 7.0, "counts": (2, 0), "is_open": False}),
    ([("forgotten", {})], {"state": "forgotten", "ended": True, "is_open": False}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("events", "changed"), EVENTS, ids=[str([name for name, _ in row]) for row, _ in EVENTS]
)
def test_events_change_a_record_as_a_table_says(
    make_record: MakeRecord,
    monkeypatch: pytest.MonkeyPatch,
    events: list[tuple[str, dict[str, Any]]],
    changed: dict[str, Any],
) -> None:
    record = make_record("a", "b")
    before = {name: copy.copy(value) for name, value in vars(record).items()}
    monkeypatch.setattr(clock, "time", lambda: 7.0)
    for name, fields in events:
        record.append(name, **fields)
    for each in (record, Record(record.path)):
        after = vars(each)
        assert {
            name: value for name, value in after.items() if value != before[name] and name != "_read"
        } == changed
        assert each._read == record.path.stat().st_size


def test_the_hash_does_not_depend_on_the_order() -> None:
    assert content_hash(["a", "b"]) == content_hash(["b", "a"]) != content_hash(["a"])


def test_a_collected_batch_has_no_payloads_and_keeps_the_rest(make_record: MakeRecord) -> None:
    record = make_record("a", "b")
    record.append("submitted", remote="batch_1", state="in_progress")
    record.keep("a", None, {"class": "BadRequestError", "message": "no", "retryable": False})
    record.keep("b", b'{"answer":1}', None)
    record.append("collected", done=1, failed=1)
    before = record.path.stat().st_size
    record.shrink()
    assert record.path.stat().st_size < before
    for each in (record, Record(record.path)):
        assert (each.remote, each.is_open, each.counts) == ("batch_1", False, (1, 1))
        assert each.row("a") == RowLine("a", (0,), None, None, ("a",))
        assert (each.read_row("b") or {})["body"] == '{"answer":1}'
        assert (each.read_row("a") or {})["error"]["message"] == "no"
        assert each.read_row("c") is None


def test_rows_are_read_while_another_process_shrinks_the_file(
    journal: Journal, make_record: MakeRecord
) -> None:
    record = make_record("a", "b", "c")
    record.keep("b", None, {"message": "no"})
    (reader,) = Journal(journal.directory).records()
    record.append("collected", done=2, failed=1)
    names = list(reader.rows)
    assert reader.row("a").payload is not None
    record.shrink()
    assert [(reader.row(name).custom_id, reader.row(name).payload) for name in names] == [
        (name, None) for name in names
    ]
    assert reader.read_row("b") == record.read_row("b")
    assert reader.collected == record.collected is not None


def test_a_file_that_is_cut_anywhere_can_be_read_and_continued(make_record: MakeRecord) -> None:
    record = make_record("a", "b")
    record.append("submitting")
    record.append("submitted", remote="batch_1", state="in_progress")
    whole = record.path.read_bytes()
    for length in range(0, len(whole), 3):
        record.path.write_bytes(whole[:length])
        cut = Record(record.path)
        assert cut.remote in (None, "batch_1")
        # Whatever is missing, it may have been submitted, so it is looked for before anything else.
        assert cut.remote == "batch_1" or cut.is_uncertain
        cut.append("submitted", remote="batch_2", state="in_progress")
        assert Record(record.path).remote == "batch_2"


def test_old_files_are_deleted(journal: Journal, make_record: MakeRecord, tmp_path: Path) -> None:
    record = make_record("a")
    record.append("collected", done=1, failed=0)
    lost = journal.directory / "1-x.tmp"
    lost.write_bytes(b"")
    journal.tidy()
    assert record.path.exists()
    assert lost.exists()
    old = time.time() - 2 * KEPT_SECONDS
    os.utime(lost, (old, old))
    record.collected = old
    journal.tidy()
    assert journal.records() == []
    assert not lost.exists()
