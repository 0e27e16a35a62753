"""The rows that `map` reads from files of each format, and their prompts."""

import contextlib
import gzip
import io
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from llm_provider import RequestError
from llm_provider._features.cli.map_rows import Format, PromptMaker, Row, RowFile


def compressed_zstd(content: bytes) -> bytes:
    name = "backports.zstd" if sys.version_info < (3, 14) else "compression.zstd"
    data: bytes = pytest.importorskip(name).compress(content)
    return data


def values(path: Path, content: bytes, form: Format | None = None) -> list[Any]:
    path.write_bytes(content)
    file = RowFile(str(path), form)
    try:
        rows = list(file.rows())
        first = [row.value for row in rows]
        for problem in filter(None, (row.problem for row in rows)):
            raise problem
        assert [row.value for row in file.rows()] == first
        return first
    finally:
        file.close()


def row(**fields: Any) -> Row:
    return Row(2, "in.jsonl row 3 (line 4)", fields, fields)


def test_each_format_has_rows(tmp_path: Path) -> None:
    assert values(tmp_path / "a.txt", "\ufeffone\r\n\n  \ntwö".encode()) == ["one", "twö"]
    lines = b'\xef\xbb\xbf{"a": 1}\n\n"two"\n[{"role": "user", "content": "x"}]\n'
    assert values(tmp_path / "a.JSONL", lines) == [{"a": 1}, "two", [{"role": "user", "content": "x"}]]
    table = '\ufeffid,text\n1,"a, ""b""\nand c"\n\n2,\n'.encode()
    assert values(tmp_path / "a.csv", table) == [
        {"id": "1", "text": 'a, "b"\nand c'},
        {"id": "2", "text": ""},
    ]
    assert values(tmp_path / "a.tsv", b"a\tb\n1\t2\n") == [{"a": "1", "b": "2"}]
    assert values(tmp_path / "a.dat", b"x\n", "txt") == ["x"]
    long = "x" * 200_000
    assert values(tmp_path / "b.csv", f"text\n{long}\n".encode()) == [{"text": long}]


@pytest.mark.parametrize(
    ("name", "content"), [("a.jsonl", b'\n"\xff"\n'), ("a.csv", b"a\n1\n\xff\n"), ("a.txt", b"Hi\n\xff")]
)
def test_a_line_that_is_no_text_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(RequestError, match="is not UTF-8 text"):
        values(tmp_path / name, content)


@pytest.mark.parametrize("form", ["txt", "jsonl", "csv"])
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (gzip.compress(b"a\nb\n", mtime=0), "compressed by gzip"),
        (b"PK\x03\x04\0", "a zip file or a spreadsheet"),
    ],
)
def test_a_file_that_is_no_text_is_told_what_it_is(
    tmp_path: Path, form: str, content: bytes, problem: str
) -> None:
    with pytest.raises(RequestError, match=rf"a\.{form} line 1 is no text, but {problem}"):
        values(tmp_path / f"a.{form}", content)


@pytest.mark.parametrize(
    "rows", [[{"prompt": "a"}], [{"role": "user", "content": "a"}, 1], ["a", "b"], [["a"]]]
)
@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_is_told_to_become_lines(tmp_path: Path, rows: list[Any], indent: int | None) -> None:
    with pytest.raises(RequestError, match=r"jq -c '\.\[\]' IN > NEW makes lines of an array"):
        values(tmp_path / "a.jsonl", json.dumps(rows, indent=indent).encode())
    with pytest.raises(RequestError, match=r"jq -c \. IN > NEW makes a line of each object"):
        values(tmp_path / "a.json", json.dumps({"prompt": rows}, indent=2).encode())
    assert values(tmp_path / "a.json", b'{"prompt": "a"}\n"b"\n') == [{"prompt": "a"}, "b"]
    messages = [[{"role": "user", "content": "a"}]]
    assert values(tmp_path / "a.jsonl", json.dumps(messages[0]).encode()) == messages


@pytest.mark.parametrize(("name", "compress"), [(".gz", gzip.compress), (".zst", compressed_zstd)])
@pytest.mark.parametrize(
    ("form", "content"),
    [
        ("txt", b"a b\n\nc\n"),
        ("jsonl", b'"a b"\n{"x": 1}\n'),
        ("csv", b'q,r\n"a\nb",1\n'),
        ("tsv", b"q\tr\n1\t2\n"),
    ],
)
def test_a_compressed_file_has_the_rows_of_its_content(
    tmp_path: Path, name: str, compress: Callable[[bytes], bytes], form: Format, content: bytes
) -> None:
    packed = compress(content)
    assert values(tmp_path / f"a.{form}{name}", packed) == values(tmp_path / f"a.{form}", content)
    assert values(tmp_path / f"a{name}", packed, form) == values(tmp_path / f"a.{form}", content)
    for damaged in (packed[:-3], b"\x00" * 20):
        with pytest.raises(RequestError, match="is damaged or cut off"):
            values(tmp_path / f"a.{form}{name}", damaged)


def test_what_can_be_read_once_is_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo\n")))
    file = RowFile("-", "txt")
    assert [[row.value for row in file.rows()] for _ in range(2)] == [["one", "two"]] * 2
    file.close()
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_bytes, args=(b"three\n",), daemon=True).start()
    file = RowFile(str(pipe))
    assert [[row.where for row in file.rows()] for _ in range(2)] == [[f"{pipe} row 1 (line 1)"]] * 2
    file.close()


@pytest.mark.parametrize("form", ["txt", "jsonl", "csv"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_pipe_is_read_no_further_than_its_rows(
    tmp_path: Path, form: Literal["txt", "jsonl", "csv"], is_packed: bool
) -> None:
    if is_packed and form != "csv":
        pytest.skip("one form shows it")
    pipe = tmp_path / f"pipe.{form}{'.gz' if is_packed else ''}"
    os.mkfifo(pipe)
    ends = threading.Event()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), pipe.open("wb") as file:
            while not ends.is_set():
                text = b'"a"\n' * 20_000
                file.write(gzip.compress(text) if is_packed else text)

    writer = threading.Thread(target=write)
    writer.start()
    file = RowFile(str(pipe))
    for _ in range(2):
        assert len(list(itertools.islice(file.rows(), 3))) == 3
    ends.set()
    file.close()
    writer.join()


def test_a_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(RequestError, match="standard input is closed"):
        RowFile("-", "txt")


def test_a_prompt_is_a_column_or_a_filled_template() -> None:
    maker = PromptMaker("{a}: {b[c]} {{x}} {d:.1f}")
    assert maker(row(a="A", b={"c": 1}, d=2.25)) == "A: 1 {x} 2.2"
    assert PromptMaker(column="q")(row(q="Why?", prompt="no")) == "Why?"
    assert PromptMaker()(row(text="T", prompt="P")) == "P"
    assert PromptMaker()(row(text="T", messages=[])) == "T"
    messages = [{"role": "user", "content": "x"}]
    assert PromptMaker()(row(messages=messages)) == messages
    assert PromptMaker()(row(messages='[{"role": "user", "content": "x"}]')) == messages


ENCODINGS = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252")
CONTENTS: dict[Format, str] = {
    "txt": "caf\xe9\nname\n", "jsonl": '"caf\xe9"\n"name"\n', "csv": "text,n\ncaf\xe9,1\n",
    "tsv": "text\tn\ncaf\xe9\t1\n",
}  # fmt: skip


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("form", CONTENTS)
def test_a_file_in_another_encoding_names_it_and_how_to_convert_it(
    tmp_path: Path, form: Format, encoding: str
) -> None:
    path, content = tmp_path / f"in.{form}", CONTENTS[form].encode(encoding)
    if encoding.startswith("utf-8"):
        assert "caf\xe9" in str(values(path, content))
        return
    name = "UTF-16" if encoding.startswith("utf-16") else "WINDOWS-1252"
    with pytest.raises(RequestError, match=rf"is not UTF-8 text: .*iconv -f {name} -t UTF-8 IN > NEW"):
        values(path, content)


@pytest.mark.parametrize("delimiter", [";", "|", "\t", ","])
@pytest.mark.parametrize("cell", ["a", '"a, b"', "a, b"])
@pytest.mark.parametrize("prompt", [{}, {"template": "{text}"}, {"column": "text"}])
def test_a_table_with_another_delimiter_says_so(
    tmp_path: Path, delimiter: str, cell: str, prompt: dict[str, str]
) -> None:
    content = f"text{delimiter}n\n{cell}{delimiter}1\n".encode()
    make = PromptMaker(**prompt)

    def read() -> list[Any]:
        path = tmp_path / "in.csv"
        path.write_bytes(content)
        with contextlib.closing(RowFile(str(path))) as file:
            return [make(row) for row in file.rows()]

    if delimiter == ",":
        if cell == "a, b":
            with pytest.raises(RequestError, match=r"has 3 values for 2 columns$"):
                read()
        else:
            assert read() == [cell.strip('"')]
        return
    with pytest.raises(RequestError) as caught:
        read()
    remedy = "give --format tsv" if delimiter == "\t" else f"delimiter='{delimiter}'"
    assert "columns are separated by" in str(caught.value)
    assert remedy in str(caught.value)


def test_the_command_that_converts_a_table_works(tmp_path: Path) -> None:
    (tmp_path / "IN").write_text('text;n\n"a; b";1\n')
    with pytest.raises(RequestError) as caught:
        values(tmp_path / "in.csv", b"text;n\na, b;1\n")
    (command,) = re.findall("convert it by (.*)$", str(caught.value))
    command = command.replace("python", shlex.quote(sys.executable), 1)
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert values(tmp_path / "new.csv", (tmp_path / "NEW").read_bytes()) == [{"text": "a; b", "n": "1"}]


def test_a_quote_that_is_not_closed_is_told_with_its_own_line(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"in\.csv line 3 is not valid CSV: unexpected end of data"):
        values(tmp_path / "in.csv", b'text\na\n"open\nb\nc\n')


def test_an_array_of_json_says_how_it_becomes_lines(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match=r"line 1 is not JSON: .*jq -c '\.\[\]' IN > NEW"):
        values(tmp_path / "in.jsonl", b'[\n {"text": "a"}\n]\n')
    with pytest.raises(RequestError, match=r"line 2 is not JSON: Expecting value at character \d+$"):
        values(tmp_path / "in.jsonl", b'{"text": "a"}\n[\n')
