"""Parquet files of `llm-provider map`: what is read of them, and what its lines are as a table."""

import datetime
import json
import math
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from llm_provider import RequestError
from llm_provider._features.cli.map_rows import RowFile
from llm_provider._features.cli.parquet import write_parquet
from llm_provider.simulator import Fault, Simulator
from support import RunCommand

MODEL = "gpt-6.1-sol"
ROWS = [{"name": f"n{number}", "a": number} for number in range(2_500)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(ROWS[:6]), path)
    return path


def test_a_row_has_its_values_as_json_has_them(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    row = {
        "text": "Grüße", "number": 1.5, "whole": 2**62, "flag": True, "none": None, "list": [1, None],
        "group": {"x": ["a"]},
    }  # fmt: skip
    other = {
        "day": datetime.date(2026, 11, 29), "amount": Decimal("1.10"), "bytes": b"ok",
    }  # fmt: skip
    parquet.write_table(pyarrow.Table.from_pylist([row | other]), path)
    with closing(RowFile(str(path))) as file:
        (read,) = file.rows()
    assert read.value == row | {"day": "2026-11-29", "amount": "1.10", "bytes": "ok"}
    assert read.where == f"{path} row 1"


def test_all_rows_are_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path, row_group_size=700)
    with closing(RowFile(str(path))) as file:
        for _ in range(2):
            assert [row.value for row in file.rows()] == ROWS


@pytest.mark.parametrize("content", [b"", b"PAR1", b"name,a\n1,2\n", None])
def test_a_damaged_file_is_an_error(source: Path, content: bytes | None) -> None:
    source.write_bytes(source.read_bytes()[:-40] if content is None else content)
    with (
        closing(RowFile(str(source))) as file,
        pytest.raises(RequestError, match="is no whole Parquet file"),
    ):
        list(file.rows())


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(
    values=st.lists(_JSON, min_size=1, max_size=6)
    | st.lists(st.integers(0, 9) | st.floats(0, 1), min_size=1),
    parsed=st.lists(st.none() | st.dictionaries(st.sampled_from("ab"), _JSON), min_size=6, max_size=6),
)
def test_every_value_stays_what_it_was(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any], parsed: list[Any]
) -> None:
    path = tmp_path_factory.mktemp("table") / "out.parquet"
    lines: list[Any] = [
        {"index": index, "text": value, "parsed": part, "error": None, "usage": {"input_tokens": index}}
        for index, (value, part) in enumerate(zip(values, parsed, strict=False))
    ]
    write_parquet(lambda: lines, path)
    table = parquet.read_table(path)
    rows = table.to_pylist()
    assert [row["input_tokens"] for row in rows] == list(range(len(lines)))
    for line, row in zip(lines, rows, strict=True):
        assert _same(row["text"], line["text"])
        fields = line["parsed"] or {}
        for name in "ab":
            assert _same(row.get(f"parsed.{name}"), fields.get(name))


def _same(cell: Any, value: Any) -> bool:
    """Whether a cell has the value: as it is, as the text or list it is, or as JSON text."""
    text = value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value
    if cell == text or (isinstance(value, float) and cell is not None and math.isclose(float(cell), value)):
        return True
    written: bool = isinstance(cell, str) and json.loads(cell) == value
    return written


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2.5, None], "double"),
        ([1, None], "int64"),
        ([True, None], "bool"),
        ([["a"], [], None], "list<element: string>"),
        ([{"x": 1}, 2], "string"),
        ([None, None], "null"),
        ([True, 1], "string"),
    ],
)
def test_a_column_has_one_type(tmp_path: Path, values: list[Any], kind: str) -> None:
    path = tmp_path / "out.parquet"
    write_parquet(lambda: ({"index": 0, "score": {"x": value}, "error": None} for value in values), path)
    assert str(parquet.read_schema(path).field("score.x").type) == kind


def test_a_run_is_continued_by_its_lines(
    run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out.parquet"
    words = ("map", MODEL, str(source), str(target), "--template", "What is {a} + 1?", "--id", "name")
    simulator.inject(Fault(status=400))
    ended = run(*words, "--max-concurrent", "1")
    assert (ended.code, "5 of 6 rows answered in " + str(target) in ended.out) == (1, True)
    rows = parquet.read_table(target).to_pylist()
    assert [row["text"] for row in rows].count(None) == 1
    assert [row["error"] for row in rows].count("BadRequestError") == 1
    assert run(*words).code == 0
    assert simulator.ledger().requests == 7
    rows = parquet.read_table(target).to_pylist()
    assert [(row["index"], row["id"], row["input.a"], row["text"]) for row in rows] == [
        (number, f"n{number}", number, str(number + 1)) for number in range(6)
    ]
    assert run("report", str(target)).code == 2
    assert f"{target}.jsonl" in run("report", str(target)).err


def test_nothing_of_the_users_is_overwritten(
    run: RunCommand, simulator: Simulator, source: Path, tmp_path: Path
) -> None:
    before = source.read_bytes()
    ended = run("map", MODEL, str(source), str(source), "--column", "name")
    assert (ended.code, "same file" in ended.err) == (2, True)
    other = tmp_path / "other.parquet"
    other.write_bytes(before)
    ended = run("map", MODEL, str(source), str(other), "--column", "name")
    assert (ended.code, "--overwrite" in ended.err, simulator.ledger().requests) == (2, True, 0)
    assert source.read_bytes() == other.read_bytes() == before
    assert run("map", MODEL, str(source), str(other), "--column", "name", "--overwrite").code == 0
    assert parquet.read_metadata(other).num_rows == 6
