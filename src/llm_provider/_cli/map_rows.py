"""The rows that `llm-provider map` reads, and the prompt of each.

A file is read twice: once to check every row before anything is sent, and once to send them. So its rows are
never in memory together. Standard input and other pipes are copied to a temporary file first.
"""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import string
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias

from .._errors import RequestError

Format: TypeAlias = Literal["jsonl", "csv", "tsv", "txt"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "tsv", "txt")
_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".txt": "txt",
}  # fmt: skip

DEFAULT_COLUMNS = ("prompt", "text", "messages")
"""The columns that hold the prompt where none is named; the first that a row has."""

_BRACES = "a brace that is text is written twice, as {{ or }}"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the input.

    Attributes:
        index: Its position among the rows, from 0.
        where: Its place for messages.
        value: The row as the output repeats it.
        fields: Its values by column.
    """

    index: int
    where: str
    value: Any
    fields: Mapping[str, Any]


class RowFile:
    """A file of rows that can be read several times.

    Args:
        path: The file, or "-" for standard input.
        form: Its format; None decides by the suffix.

    Raises:
        RequestError: the format is not known.
        OSError: the file cannot be read.
    """

    def __init__(self, path: str, form: Format | None = None) -> None:
        self.name = "standard input" if path == "-" else path
        suffix = "" if path == "-" else Path(path).suffix.lower()
        if form is None and suffix not in _SUFFIXES:
            known = "jsonl, csv, tsv or txt"
            raise RequestError(f"the format of {self.name} is not known by its name: give --format {known}")
        self.form: Format = form or _SUFFIXES[suffix]
        self._source = open_source(path)

    def rows(self) -> Iterator[Row]:
        """The rows from the beginning.

        Raises:
            RequestError: a row cannot be read. The message names it.
        """
        self._source.seek(0)
        for index, (line, value) in enumerate(_READERS[self.form](self._source, self.name)):
            if isinstance(value, Mapping):
                fields = value
            elif isinstance(value, str):
                fields = {"text": value, "prompt": value}
            else:
                fields = {"messages": value}
            yield Row(index, f"{self.name} row {index + 1} (line {line})", value, fields)

    def close(self) -> None:
        """Close the file."""
        self._source.close()


def open_source(path: str) -> IO[bytes]:
    """A file that can be read from its beginning again.

    Raises:
        OSError: it cannot be read.
    """
    with ExitStack() as stack:
        if path != "-" and Path(path).is_file():
            return Path(path).open("rb")
        source = sys.stdin.buffer if path == "-" else stack.enter_context(Path(path).open("rb"))
        copy = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
        shutil.copyfileobj(source, copy)
        return copy


def _lines(source: IO[bytes], name: str) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    for number, line in enumerate(source, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            raise RequestError(f"{name} line {number} is not UTF-8 text") from None
        if text.strip():
            yield number, text


def _json_lines(source: IO[bytes], name: str) -> Iterator[tuple[int, Any]]:
    for number, text in _lines(source, name):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"{name} line {number} is not JSON: {error}") from None
        if not isinstance(value, (dict, str, list)):
            raise RequestError(
                f"{name} line {number} must be an object, a text or a list of messages, "
                f"not {type(value).__name__}"
            )
        yield number, value


def _table(source: IO[bytes], name: str, delimiter: str = ",") -> Iterator[tuple[int, dict[str, str]]]:
    csv.field_size_limit(2**31 - 1)
    text = io.TextIOWrapper(source, encoding="utf-8-sig", newline="")
    try:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        header = next(reader, None)
        if header is None:
            raise RequestError(f"{name} is empty: the first line names the columns")
        twice = [column for place, column in enumerate(header) if column in header[:place]]
        if twice:
            raise RequestError(f"{name} has the column {twice[0]!r} twice")
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise RequestError(
                    f"{name} line {reader.line_num} has {len(cells)} values for {len(header)} columns"
                )
            yield reader.line_num, dict(zip(header, cells, strict=True))
    except UnicodeDecodeError as error:
        raise RequestError(f"{name} is not UTF-8 text: {error.reason} after line {reader.line_num}") from None
    except csv.Error as error:
        raise RequestError(f"{name} line {reader.line_num} is not valid CSV: {error}") from None
    finally:
        # The file stays open for the next reader.
        text.detach()


def _tab_table(source: IO[bytes], name: str) -> Iterator[tuple[int, dict[str, str]]]:
    return _table(source, name, "\t")


_READERS = {"jsonl": _json_lines, "csv": _table, "tsv": _tab_table, "txt": _lines}


class PromptMaker:
    """Makes the prompt of each row.

    Args:
        template: Text with `{fields}` that name columns; None for a column.
        column: The column that holds the prompt; None for the first of `DEFAULT_COLUMNS` that a row has.

    Raises:
        RequestError: the template is not valid, or both are given.
    """

    def __init__(self, template: str | None = None, column: str | None = None) -> None:
        if template is not None and column is not None:
            raise RequestError("give --template or --column, not both")
        self._template = template
        self._column = column
        self._fields = [] if template is None else _fields(template)

    def __call__(self, row: Row) -> Any:
        """The prompt: a text, or a list of messages.

        Raises:
            RequestError: the row has no prompt. The message names the row.
        """
        if self._template is not None:
            return self._filled(self._template, row)
        column = self._column
        if column is None:
            column = next((name for name in DEFAULT_COLUMNS if name in row.fields), None)
        if column is None or column not in row.fields:
            wanted = (
                f"no column {column!r}" if column else f"none of the columns {', '.join(DEFAULT_COLUMNS)}"
            )
            remedy = "" if column else ": name one with --column, or give a --template"
            raise RequestError(f"{row.where} has {wanted}{remedy}; it has: {_names(row.fields)}")
        return _prompt(row, column, row.fields[column])

    def _filled(self, template: str, row: Row) -> str:
        for name in self._fields:
            if name not in row.fields:
                raise RequestError(
                    f"{row.where} has no field {name!r}, which the template needs; it has: "
                    f"{_names(row.fields)} ({_BRACES})"
                )
            if row.fields[name] is None:
                raise RequestError(f"{row.where} has no value for {name!r}, which the template needs")
        try:
            text = template.format_map(row.fields)
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            raise RequestError(f"{row.where} cannot fill the template: {error!r}") from None
        return text


def _prompt(row: Row, column: str, value: Any) -> Any:
    if column == "messages" and isinstance(value, str) and value.lstrip().startswith("["):
        # The cell of a CSV file.
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise RequestError(f"{row.where}: its messages are not JSON: {error}") from None
    if not isinstance(value, (str, list)):
        kind = "nothing" if value is None else type(value).__name__
        raise RequestError(f"{row.where}: {column!r} must be a text or a list of messages, not {kind}")
    return value


def _names(fields: Iterable[str]) -> str:
    return ", ".join(fields) or "nothing"


def _fields(template: str) -> list[str]:
    """The names of the fields of a template.

    Raises:
        RequestError: the template is not valid, or has no field.
    """
    try:
        found = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise RequestError(f"the template is not valid: {error}; {_BRACES}") from None
    names = list(dict.fromkeys(re.split(r"[.\[]", name)[0] for name in found))
    if not names:
        raise RequestError("the template has no field such as {text}, so all prompts would be equal")
    if any(not name or name.isdigit() for name in names):
        raise RequestError("every field of the template must name a column, as in {text}")
    return names
