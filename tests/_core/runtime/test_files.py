"""Paths that users give, and files that survive what a simulated disk does to them."""

import contextlib
import errno
import os
import sqlite3
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from llm_provider import RequestError
from llm_provider._core.runtime import files, json_pieces
from llm_provider._core.runtime.files import (
    append_line,
    check_path,
    encode_line,
    file_remedy,
    full_disk,
    open_data,
    read_lines,
    read_text,
    replace_file,
)


def test_a_path_stays_as_it_is_and_anything_else_is_refused() -> None:
    for path in ("a", Path("a")):
        assert check_path("ledger", path) is path
    wrong: list[tuple[Any, str]] = [("", "leave ledger out"), (5, "not 5"), (b"a", "not b'a'")]
    for value, said in wrong:
        with pytest.raises(RequestError, match=f"ledger must be a path.*{said}"):
            check_path("ledger", value)


def test_the_remedy_depends_on_what_is_there(tmp_path: Path) -> None:
    assert "name a file in it" in file_remedy(tmp_path)
    assert "make the folder" in file_remedy(tmp_path / "no" / "file")
    assert file_remedy(tmp_path / "file") == ""


@pytest.mark.parametrize("step", ["open_descriptor", "fsync", "replace"])
def test_a_failed_step_changes_no_file(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail(*_: object, **__: object) -> None:
        raise OSError(step)

    monkeypatch.setattr(files, step, fail)
    with pytest.raises(OSError, match=step), replace_file(path) as file:
        file.write(b"after")
    assert [(each.name, each.read_bytes()) for each in tmp_path.iterdir()] == [("file", b"before")]


@pytest.mark.parametrize("before", [None, b"before"])
def test_a_power_cut_takes_no_file_that_was_replaced_and_no_line(
    before: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    if before is not None:
        path.write_bytes(before)
    sync, replace, steps = files.fsync, files.replace, list[object]()

    def note_sync(descriptor: int) -> None:
        sync(descriptor)
        found = os.fstat(descriptor)
        steps.append(found.st_ino if stat.S_ISDIR(found.st_mode) else (found.st_ino, found.st_size))

    monkeypatch.setattr(files, "fsync", note_sync)
    monkeypatch.setattr(files, "replace", lambda *paths: (steps.append("replaced"), replace(*paths)))
    with replace_file(path) as file:
        file.write(b"after")
    inode = path.stat().st_ino
    assert steps == [(inode, 5), "replaced", tmp_path.stat().st_ino]
    append_line(path, b"a line\n")
    assert steps[3:] == [(inode, len(b"after\na line\n"))]
    with contextlib.closing(files.LineFile(path)) as lines:
        lines.append(b"another one\n")
    assert len(steps) == 4, "only who asks for it waits for the disk"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_what_is_made_has_its_mode_and_what_was_there_keeps_it(mask: int, tmp_path: Path) -> None:
    def mode_of(name: str) -> int:
        return stat.S_IMODE((tmp_path / name).stat().st_mode)

    before = os.umask(mask)
    try:
        for _ in range(2):
            files.make_folder(tmp_path / "a" / "b" / "own")
        files.create_file(tmp_path / "created").close()
        append_line(tmp_path / "lines", b"one\n")
        for name, *new_mode in (("replaced",), ("public", 0o666), ("replaced", 0o666)):
            with replace_file(tmp_path / name, *new_mode) as file:
                file.write(b"one\n")
    finally:
        os.umask(before)
    assert [mode_of(name) for name in ("a/b/own", "replaced")] == [0o700, 0o600]
    assert {mode_of(name) for name in ("created", "lines", "public")} == {0o666 & ~mask}


@pytest.mark.parametrize("content", [b"", b"one\n", b"one\ntw"])
def test_a_line_that_was_cut_is_ended(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(content)
    append_line(path, b"more\n")
    assert path.read_bytes() == content + b"\n" * (not content.endswith(b"\n")) * bool(content) + b"more\n"
    with pytest.raises(FileNotFoundError):
        append_line(tmp_path / "none", b"more\n", create=False)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
def test_a_disk_that_takes_a_part_of_a_line_is_told(tmp_path: Path) -> None:
    import resource

    path = tmp_path / "lines"
    append_line(path, b"whole\n")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, limits[1]))
    try:
        with pytest.raises(OSError, match="only a part of a line"):
            append_line(path, b"a long line\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    append_line(path, b"next\n")
    assert path.read_bytes() == b"whole\na lo\nnext\n"


def test_what_json_lacks_is_written_and_read(tmp_path: Path) -> None:
    for value in (2**70, "half a pair: \ud83d"):
        assert json_pieces.loads(encode_line({"input": value})) == {"input": value}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full disk to try")
def test_the_error_of_a_full_disk_names_what_is_safe() -> None:
    with (
        pytest.raises(OSError, match=r"disk of /dev/full is full .* the cache is safe; free space"),
        replace_file(Path("/dev/full"), safe="the cache is safe") as file,
    ):
        file.write(b"more")


@pytest.mark.parametrize("number", sorted({errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EACCES, errno.EIO}))
def test_the_error_of_a_full_disk_has_the_words_and_number_of_the_system(number: int) -> None:
    error = OSError(number, os.strerror(number))
    full = full_disk(error, "a.jsonl", "all is safe")
    if number in (errno.EACCES, errno.EIO):
        assert full is None
    else:
        said = f"the disk of a.jsonl is full ({os.strerror(number)}): all is safe; free space on this disk"
        assert (str(full), full and full.errno) == (said, number)


def test_the_error_of_a_full_database_has_the_words_of_sqlite() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.execute("PRAGMA max_page_count = 2")
        database.execute("CREATE TABLE rows (value)")
        with pytest.raises(sqlite3.OperationalError) as caught:
            database.execute("INSERT INTO rows VALUES (zeroblob(100000))")
        full = full_disk(caught.value, "cache.db", "all is safe")
        with pytest.raises(sqlite3.OperationalError) as other:
            database.execute("SELECT nothing")
    assert str(full).startswith("the disk of cache.db is full (database or disk is full): all is safe")
    assert full is not None
    assert full.errno == errno.ENOSPC
    assert full_disk(other.value, "cache.db", "all is safe") is None


# --- data that is read ------------------------------------------------------------------------------------
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such files")
class TestData:
    @pytest.mark.parametrize("path", ["/dev/zero", "/dev/urandom"])
    def test_a_device_is_refused(self, path: str) -> None:
        with pytest.raises(RequestError, match=f"{path} is a device"):
            open_data(path)

    def test_files_pipes_and_nothing_are_read(self, tmp_path: Path) -> None:
        path, fifo = tmp_path / "file", tmp_path / "fifo"
        path.write_bytes(b"a\nb")
        assert list(read_lines(path)) == [b"a\n", b"b"]
        assert list(read_lines(os.devnull)) == []
        with pytest.raises(IsADirectoryError):
            open_data(tmp_path)
        os.mkfifo(fifo)
        with ThreadPoolExecutor(1) as other:
            writing = other.submit(fifo.write_bytes, b"c\nd\n")
            assert list(read_lines(fifo)) == [b"c\n", b"d\n"]
            writing.result()

    @pytest.mark.parametrize("content", [b"", b"a\nb\n"])
    def test_the_pipe_of_a_shell_is_read(self, content: bytes) -> None:
        reading, writing = os.pipe()
        os.write(writing, content)
        os.close(writing)
        try:
            assert b"".join(read_lines(f"/dev/fd/{reading}")) == content
        finally:
            os.close(reading)

    @pytest.fixture
    def fifo(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A pipe, for whose first writer nobody waits."""
        monkeypatch.setattr(files, "_WRITER_SECONDS", 0)
        os.mkfifo(tmp_path / "fifo")
        return tmp_path / "fifo"

    def test_a_writer_who_is_slow_is_waited_for(self, fifo: Path) -> None:
        # Both ends, so that the pipe has a writer before anything is written.
        held = os.open(fifo, os.O_RDWR)
        with open_data(fifo) as file:
            os.write(held, b"late\n")
            os.close(held)
            assert file.read() == b"late\n"

    def test_a_pipe_without_a_writer_is_refused(self, fifo: Path) -> None:
        with pytest.raises(RequestError, match="nobody has begun to write into it"):
            open_data(fifo)

    def test_a_pipe_gives_so_many_bytes(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "_MOST_OF_PIPE", 10)
        reading, writing = os.pipe()
        os.write(writing, b"0123456789\n")
        with pytest.raises(RequestError, match="has more than 10 bytes"):
            list(read_lines(f"/dev/fd/{reading}"))
        os.write(writing, b"0123456789")
        os.close(writing)
        assert list(read_lines(f"/dev/fd/{reading}")) == [b"0123456789"]
        os.close(reading)


def test_a_line_and_a_text_have_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"\xef\xbb\xbf01234\r\n6789")
    assert read_text(path) == "01234\n6789"
    monkeypatch.setattr(files, "LONGEST_LINE", 10)
    monkeypatch.setattr(files, "_MOST_OF_TEXT", 10)
    assert len(list(read_lines(path))) == 2
    assert len(read_text(path)) == 10
    path.write_bytes(b"\0" * 11)
    with pytest.raises(RequestError, match="has a line of more than 10 bytes"):
        list(read_lines(path))
    with pytest.raises(RequestError, match="has more than 10 characters"):
        read_text(path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "nope"
    with pytest.raises(FileNotFoundError) as caught, replace_file(folder / "x.html"):
        pass
    assert f"there is no folder {folder} for x.html" in str(caught.value)
    assert ".tmp" not in str(caught.value)
