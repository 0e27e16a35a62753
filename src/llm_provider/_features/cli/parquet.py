"""Parquet files of `llm-provider map`: the rows of one are read, and its lines are written as one.

A Parquet file cannot be continued line by line. So `map` keeps lines of JSON beside it, from which
it is written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeAlias

from ..._core.errors import RequestError
from ..._core.json_values import JSONObject, json_value
from ..._core.runtime.files import replace_file
from ..._core.runtime.imports import import_optional, install_command

_ROWS_AT_ONCE = 1_000
"""Rows that are in memory together."""

_NESTED = ("input", "parsed", "score")
"""The values of a line whose fields become columns where they are objects."""

_Kinds: TypeAlias = dict[str, str]
"""The kind of the values of each column."""


def read_parquet(source: IO[bytes], name: str) -> Iterator[tuple[int, JSONObject]]:
    """Each row of a file with its number from 1. Dates, decimal numbers and bytes become text."""
    pyarrow = import_optional("pyarrow", install_command("parquet"))
    parquet = import_optional("pyarrow.parquet", install_command("parquet"))
    try:
        # The file stays open for the next reader.
        file = parquet.ParquetFile(pyarrow.PythonFile(source, mode="r"))
        number = 0
        for batch in file.iter_batches(_ROWS_AT_ONCE):
            for row in batch.to_pylist():
                number += 1
                yield number, json_value(row)
    except (pyarrow.ArrowException, OSError) as error:
        raise RequestError(f"{name} is no whole Parquet file: {error}") from None


def write_parquet(lines: Callable[[], Iterable[JSONObject]], path: Path) -> None:
    """Write lines of `map` as a table, which replaces a file. They are read twice.

    A column has one type: number, bool, text or list of texts. Values of different kinds are JSON text.
    """
    pyarrow = import_optional("pyarrow", install_command("parquet"))
    parquet = import_optional("pyarrow.parquet", install_command("parquet"))
    kinds: dict[str, _Kinds] = {}
    for line in lines():
        for name, value in _flatten(line):
            group = kinds.setdefault(name.partition(".")[0], {})
            group[name] = _common_kind(group.get(name, "null"), _kind_of(value))
    columns = {name: kind for group in kinds.values() for name, kind in group.items()}
    types = {
        "null": pyarrow.null(), "bool": pyarrow.bool_(), "integer": pyarrow.int64(),
        "number": pyarrow.float64(), "text": pyarrow.string(), "texts": pyarrow.list_(pyarrow.string()),
        "json": pyarrow.string(),
    }  # fmt: skip
    schema = pyarrow.schema([(name, types[kind]) for name, kind in columns.items()])
    with replace_file(path, 0o666) as file, parquet.ParquetWriter(file, schema) as writer:
        rows = map(dict, map(_flatten, lines()))
        while part := list(islice(rows, _ROWS_AT_ONCE)):
            cells = [[_cell(row.get(name), kind) for row in part] for name, kind in columns.items()]
            writer.write_table(pyarrow.table(cells, schema=schema))


def _flatten(line: JSONObject) -> Iterator[tuple[str, Any]]:
    """The columns of a line and their values."""
    for name, value in line.items():
        if name == "usage":
            yield from (value or {}).items()
        elif name == "error":
            yield "error", value and value["type"]
            yield "error_message", value and value["message"]
        elif name in _NESTED and isinstance(value, dict):
            yield from ((f"{name}.{field}", part) for field, part in value.items())
        else:
            yield name, value


def _kind_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() if -(2**63) <= value < 2**63:
            return "integer"
        case float():
            return "number"
        case str():
            return "text"
        case list() if all(isinstance(part, str) for part in value):
            return "texts"
    return "json"


def _common_kind(known: str, new: str) -> str:
    if new in (known, "null"):
        return known
    if known == "null":
        return new
    return "number" if {known, new} == {"integer", "number"} else "json"


def _cell(value: Any, kind: str) -> Any:
    if kind == "json" and value is not None and not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if kind in ("json", "text") and value is not None:
        # Half a character of UTF-16, which a model may write, has no UTF-8.
        return value.encode("utf-8", "backslashreplace").decode()
    return list(map(_cell, value, ["text"] * len(value))) if kind == "texts" and value else value
