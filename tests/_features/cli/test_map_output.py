"""The lines that `map` writes, and the file that a later run continues."""

import csv
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Choice, RequestError, Response, Usage
from llm_provider._features.cli.map_output import JsonLines, OutputFile, Table, line_of
from llm_provider._features.cli.map_rows import Row

LINE: dict[str, Any] = {
    "index": 0, "input": {"q": "-1+cmd|' /C calc'!A0"}, "text": '=1+1\r\n"é"', "parsed": {"a": -5, "b": "@x"},
    "usage": {"input_tokens": 3}, "cost": 0.25, "price": 0.5, "cached": True, "error": None, "request": "r",
}  # fmt: skip


def table() -> Table:
    form = Table()
    form.name_columns(["q"], ["a", "b"], by_id=False, samples=False, tools=False)
    return form


def test_no_cell_is_a_formula_and_numbers_stay_numbers() -> None:
    form = table()
    text = (form.head + form.encode(LINE)).decode()
    (row,) = csv.DictReader(io.StringIO(text, newline=""))
    assert (row["input.q"], row["text"]) == ("'-1+cmd|' /C calc'!A0", '\'=1+1\r\n"é"')
    assert (row["parsed.a"], row["parsed.b"], row["cost"], row["cached"]) == ("-5", "'@x", "0.25", "true")


@pytest.mark.parametrize("form", [JsonLines(), table()])
def test_every_cut_leaves_the_whole_lines(form: JsonLines | Table) -> None:
    whole = form.head + form.encode(LINE)
    last = form.encode(LINE | {"index": 1})
    for end in range(len(last)):
        # A power cut may leave NULs in the place of what was not written.
        for nulls in (b"", b"\0" * 50) if isinstance(form, JsonLines) and end < len(last) else (b"",):
            read = form.read(io.BytesIO(whole + last[:end] + nulls))
            indexes = [line["index"] for _, line in read if line]
            assert indexes == [0]
    row = [line for _, line in form.read(io.BytesIO(whole + last)) if line][1]
    assert [row[name] for name in ("index", "cost", "price", "cached", "error", "request")] == [
        1, 0.25, 0.5, True, None, "r",
    ]  # fmt: skip


json_line = JsonLines().encode

ROW = Row(3, "row 4", {"n": 7, "q": "Why?"}, {"n": 7, "q": "Why?"})


def line(index: int, *, failed: bool = False, **fields: Any) -> dict[str, Any]:
    error = {"type": "RateLimitError", "message": "slow down"} if failed else None
    return {"index": index, "error": error, "finish_reason": "stop", "request": f"r{index}", **fields}


def written(path: Path, *lines: dict[str, Any], tail: bytes = b"") -> OutputFile:
    path.write_bytes(b"".join(map(json_line, lines)) + tail)
    return OutputFile(path)


def test_an_answer_that_cannot_be_parsed_is_an_error_with_its_text() -> None:
    cut = Response(
        choices=(Choice(text='{"a', finish_reason="length"),), usage=Usage(), model="m", provider="p",
        response_format={"type": "object"},
    )  # fmt: skip
    row = line_of(ROW, "abc", cut, "m", None)
    assert (row["text"], row["error"]["type"]) == ('{"a', "LengthFinishReasonError")


def test_any_text_and_number_has_a_line() -> None:
    assert json.loads(json_line({"a": "\udc80", "b": 2**70})) == {"a": "\udc80", "b": 2**70}
    assert json_line({"a": "é\n"}) == '{"a":"é\\n"}\n'.encode()


@pytest.mark.parametrize(
    "content", [b"notes\n", b"notes", b'{"index": "x"}\n', b'{"text": "a"}\n', b"\xff\n"]
)
def test_another_file_is_refused_and_stays(tmp_path: Path, content: bytes) -> None:
    file = written(tmp_path / "out", line(0), tail=content)
    with pytest.raises(RequestError, match="line 2 is not a line of `map`: choose another OUT"):
        file.read_answered(by_id=False)
    assert (tmp_path / "out").read_bytes().endswith(content)


def test_lines_get_the_order_of_the_input(tmp_path: Path) -> None:
    path, link = tmp_path / "out", tmp_path / "link"
    written(
        path, line(2), line(0, failed=True), line(1, finish_reason="length"), line(0), line(3, failed=True)
    )
    path.chmod(0o640)
    link.symlink_to(path)
    tally = OutputFile(link).arrange(4)
    lines = [json.loads(text) for text in path.read_text().splitlines()]
    assert [row["index"] for row in lines] == [0, 1, 2, 3]
    assert lines[0]["error"] is None
    assert (tally.rows, tally.errors, tally.incomplete) == (4, {"RateLimitError": 1}, {"length": 1})
    assert tally.first_error == "row 4: slow down"
    assert path.stat().st_mode & 0o777 == 0o640
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, path]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    first, second = OutputFile(tmp_path / "out"), OutputFile(tmp_path / "out")
    first.open(overwrite=False)
    with pytest.raises(RequestError, match="another process writes"):
        second.open(overwrite=False)
    second.read_answered(by_id=False)
    for number in (1, 0):
        first.write(line(number))
    third = OutputFile(tmp_path / "out")
    third.read_answered(by_id=False)
    first.arrange(2)
    first.close()
    whole = (tmp_path / "out").read_bytes()
    for stale in (second, third, first):
        with pytest.raises(RequestError, match="another process has written"):
            stale.open(overwrite=False)
        stale.close()
    assert (tmp_path / "out").read_bytes() == whole


def test_the_place_of_the_file_must_exist(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="is a folder"):
        OutputFile(tmp_path)
    with pytest.raises(RequestError, match="there is no folder"):
        OutputFile(tmp_path / "absent" / "out")
    nowhere = OutputFile(Path(os.devnull))
    nowhere.open(overwrite=True)
    nowhere.write(line(0))
    nowhere.close()
    assert (len(nowhere.read_answered(by_id=False)), nowhere.arrange(1).rows) == (0, 0)


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "out"
    file = OutputFile(path)
    file.open(overwrite=False)
    file.write(line(0))
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 9, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            file.write(line(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    file.write(line(1))
    file.close()
    assert file.arrange(2).rows == 2
