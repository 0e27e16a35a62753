"""The rows that `llm-provider map` reads, and the prompt of each.

A file is read twice: once to check every row before anything is sent, and once to send them. So its rows are
never in memory together. Standard input and other pipes are copied to a temporary file first.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, cast

from .._errors import RequestError
from .._requests.row_template import BRACES, parse_template
from .._runtime.imports import imported, install_command

Format: TypeAlias = Literal["jsonl", "csv", "tsv", "txt"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "tsv", "txt")
_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".tsv": "tsv", ".txt": "txt",
}  # fmt: skip

COMPRESSED = (".gz", ".zst")
"""The last suffixes of compressed files."""

DEFAULT_COLUMNS = ("prompt", "text", "messages")
"""The columns that hold the prompt where none is named; the first that a row has."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the input.

    Attributes:
        index: Its position among the rows, from 0.
        where: Its place for messages.
        value: The row as the output repeats it.
        fields: Its values by column.
        problem: Why it cannot be read; None if it can.
    """

    index: int
    where: str
    value: Any
    fields: Mapping[str, Any]
    problem: RequestError | None = None


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
        suffixes = [] if path == "-" else [suffix.lower() for suffix in Path(path).suffixes]
        compressed = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSED else ""
        suffix = suffixes[-1] if suffixes else ""
        if form is None and suffix not in _SUFFIXES:
            known = "jsonl, csv, tsv or txt"
            raise RequestError(f"the format of {self.name} is not known by its name: give --format {known}")
        self.form: Format = form or _SUFFIXES[suffix]
        with ExitStack() as opened:
            packed = opened.enter_context(open_source(path))
            self._source, self._damages = _decompressed(packed, compressed)
            opened.callback(self._source.close)
            self._opened = opened.pop_all()

    def rows(self) -> Iterator[Row]:
        """The rows from the beginning. One that cannot be read has a problem.

        Raises:
            RequestError: the file cannot be read as a whole.
        """
        try:
            self._source.seek(0)
            yield from self._rows()
        except self._damages as error:
            raise RequestError(f"{self.name} is damaged or cut off: {error}") from None

    def _rows(self) -> Iterator[Row]:
        for index, (line, value) in enumerate(_READERS[self.form](self._source, self.name)):
            if isinstance(value, RequestError):
                yield Row(index, f"{self.name} row {index + 1} (line {line})", None, {}, value)
                continue
            if isinstance(value, Mapping):
                fields = value
            elif isinstance(value, str):
                fields = {"text": value, "prompt": value}
            else:
                fields = {"messages": value}
            yield Row(index, f"{self.name} row {index + 1} (line {line})", value, fields)

    def close(self) -> None:
        """Close the file."""
        self._opened.close()


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


def _decompressed(source: IO[bytes], suffix: str) -> tuple[IO[bytes], tuple[type[Exception], ...]]:
    """What a compressed file contains, and the errors of one that is damaged."""
    if suffix == ".gz":
        return cast("IO[bytes]", gzip.GzipFile(fileobj=source, mode="rb")), (
            gzip.BadGzipFile, EOFError, zlib.error,
        )  # fmt: skip
    if suffix == ".zst":
        zstd = imported("backports.zstd", install_command("zstd"))
        return zstd.ZstdFile(source), (zstd.ZstdError, EOFError)
    return source, ()


def _lines(source: IO[bytes], name: str) -> Iterator[tuple[int, str | RequestError]]:
    """The lines that are not blank, with their numbers."""
    for number, line in enumerate(source, start=1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            yield number, RequestError(f"{name} line {number} is not UTF-8 text")
            continue
        if text.strip():
            yield number, text


def _json_lines(source: IO[bytes], name: str) -> Iterator[tuple[int, Any]]:
    for number, text in _lines(source, name):
        if isinstance(text, RequestError):
            yield number, text
            continue
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            yield number, RequestError(f"{name} line {number} is not JSON: {error}")
            continue
        if not isinstance(value, (dict, str, list)):
            value = RequestError(
                f"{name} line {number} must be an object, a text or a list of messages, "
                f"not {type(value).__name__}"
            )
        yield number, value


def _table(
    source: IO[bytes], name: str, delimiter: str = ","
) -> Iterator[tuple[int, dict[str, str] | RequestError]]:
    csv.field_size_limit(2**31 - 1)
    # What is not UTF-8 spoils its own row only.
    text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            header = next(reader, None)
        except csv.Error as error:
            raise RequestError(f"{name} line {reader.line_num} is not valid CSV: {error}") from None
        if header is None:
            raise RequestError(f"{name} is empty: the first line names the columns")
        if not _is_text(header):
            raise RequestError(f"{name} line 1 is not UTF-8 text")
        twice = [column for place, column in enumerate(header) if column in header[:place]]
        if twice:
            raise RequestError(f"{name} has the column {twice[0]!r} twice")
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                yield (
                    reader.line_num,
                    RequestError(f"{name} line {reader.line_num} is not valid CSV: {error}"),
                )
                continue
            if cells is None:
                return
            if cells:
                yield reader.line_num, _fields(header, cells, f"{name} line {reader.line_num}")
    finally:
        # The file stays open for the next reader.
        text.detach()


def _fields(header: list[str], cells: list[str], where: str) -> dict[str, str] | RequestError:
    if len(cells) != len(header):
        return RequestError(f"{where} has {len(cells)} values for {len(header)} columns")
    if not _is_text(cells):
        return RequestError(f"{where} is not UTF-8 text")
    return dict(zip(header, cells, strict=True))


def _is_text(cells: list[str]) -> bool:
    try:
        "".join(cells).encode()
    except UnicodeEncodeError:
        return False
    return True


def _tab_table(source: IO[bytes], name: str) -> Iterator[tuple[int, dict[str, str] | RequestError]]:
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
        self._column = column
        self._template, self._fields = template, list[str]()
        if template is not None:
            self._template, self._fields = parse_template(template, "the template", "{text}")

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
                    f"{_names(row.fields)} ({BRACES})"
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
