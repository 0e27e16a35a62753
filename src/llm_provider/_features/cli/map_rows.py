"""The rows that `llm-provider map` reads, and the prompt of each.

A file is read twice: once to check every row before anything is sent, and once to send them; with ids once
more, to order the answers. So its rows are never in memory together. Pipes are copied to a temporary file.
"""

import contextlib
import csv
import gzip
import io
import json
import os
import re
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, TypeAlias, cast

from ..._core.errors import RequestError
from ..._core.json_values import JSONMapping
from ..._core.requests.inputs import BRACES, parse_template
from ..._core.runtime.files import LONGEST_LINE, limit_data, lines_of, open_data
from ..._core.runtime.imports import import_optional, install_command
from .parquet import read_parquet

Format: TypeAlias = Literal["jsonl", "csv", "tsv", "txt", "parquet"]
FORMATS: tuple[Format, ...] = ("jsonl", "csv", "tsv", "txt", "parquet")
_SUFFIXES: dict[str, Format] = {
    ".ndjson": "jsonl",
    ".json": "jsonl",
    **{f".{form}": form for form in FORMATS},
}

_NO_TEXT = re.compile(r"[\ud800-\udfff]")
"""Stands for bytes that are not UTF-8."""

COMPRESSED = (".gz", ".zst")
"""The last suffixes of compressed files."""

DEFAULT_COLUMNS = ("prompt", "text", "messages")
"""The columns that hold the prompt where none is named; the first that a row has."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the input."""

    index: int
    """Its position among the rows, from 0."""
    where: str
    """The file, the row and the line, for messages."""
    value: Any
    """The row as the output repeats it."""
    fields: JSONMapping
    """Its values by column."""
    problem: RequestError | None = None
    """Why it cannot be read; None if it can."""

    @property
    def columns(self) -> str:
        return ", ".join(self.fields) + _explain_delimiter([*self.fields]) or "nothing"


class RowFile:
    """A file of rows, or "-" for standard input, that is read twice. By default the suffix is the form."""

    def __init__(self, path: str, form: Format | None = None) -> None:
        self.name = "standard input" if path == "-" else path
        suffixes = [] if path == "-" else [suffix.lower() for suffix in Path(path).suffixes]
        compressed = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSED else ""
        suffix = suffixes[-1] if suffixes else ""
        if form is None and suffix not in _SUFFIXES:
            known = f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
            raise RequestError(f"the format of {self.name} is not known by its name: give --format {known}")
        self.form: Format = form or _SUFFIXES[suffix]
        with ExitStack() as stack:
            packed = stack.enter_context(_open_source(path))
            self._source, self._damages = _decompress(packed, compressed)
            stack.callback(self._source.close)
            self._files = stack.pop_all()

    def rows(self) -> Iterator[Row]:
        """The rows from the beginning. One that cannot be read has a problem."""
        try:
            self._source.seek(0)
            for index, (line, value) in enumerate(_READERS[self.form](self._source, self.name)):
                where = f"{self.name} row {index + 1}"
                where += "" if self.form == "parquet" else f" (line {line})"
                if isinstance(value, RequestError):
                    yield Row(index, where, None, {}, value)
                elif isinstance(value, Mapping):
                    yield Row(index, where, value, value)
                else:
                    names = ("text", "prompt") if isinstance(value, str) else ("messages",)
                    yield Row(index, where, value, dict.fromkeys(names, value))
        except self._damages as error:
            raise RequestError(f"{self.name} is damaged or cut off: {error}") from None

    def close(self) -> None:
        self._files.close()


def _open_source(path: str) -> IO[bytes]:
    """A file that can be read from its beginning again."""
    with ExitStack() as stack:
        if path == "-" and sys.stdin is None:
            raise RequestError("standard input is closed")
        if path == "-":
            source = limit_data(sys.stdin.buffer, "standard input")
        else:
            source = stack.enter_context(open_data(path))
            if source.seekable():
                stack.pop_all()
                return source
        return io.BufferedReader(_Copied(source, stack.pop_all()))


class _Copied(io.RawIOBase):
    """A pipe that is read no further than needed, and again: what was read of it is in a temporary file."""

    def __init__(self, source: Any, opened: ExitStack) -> None:
        self._source, self._opened = source, opened
        self._copy = opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # `close` does
        self._position = self._size = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        if whence == os.SEEK_END:
            while self.read(io.DEFAULT_BUFFER_SIZE):
                pass
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def readinto(self, buffer: Any) -> int:
        self._copy.seek(self._position)
        if self._position < self._size:
            data = self._copy.read(len(buffer))
        else:
            data = self._source.read1(len(buffer))
            self._copy.write(data)
            self._size += len(data)
        self._position += len(data)
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._opened.close()
        super().close()


def _decompress(source: IO[bytes], suffix: str) -> tuple[IO[bytes], tuple[type[Exception], ...]]:
    """What a compressed file contains, and the errors of one that is damaged."""
    if suffix == ".gz":
        unpacked = cast("IO[bytes]", gzip.GzipFile(fileobj=source, mode="rb"))
        return unpacked, (gzip.BadGzipFile, EOFError, zlib.error)
    if suffix == ".zst":
        name = "backports.zstd" if sys.version_info < (3, 14) else "compression.zstd"
        zstd = import_optional(name, install_command("zstd"))
        return zstd.ZstdFile(source), (zstd.ZstdError, EOFError)
    return source, ()


Lines: TypeAlias = Iterator[tuple[int, Any]]
"""The number of each line, and its value or the `RequestError` that says why it has none."""


def _explain_delimiter(columns: list[str]) -> str:
    """What to do where a header has one column with the delimiters of another form; empty for any other."""
    delimiter = next((mark for mark in ";\t|" if len(columns) == 1 and mark in columns[0]), None)
    if delimiter is None or delimiter == "\t":
        return "" if delimiter is None else "; columns are separated by tabs: give --format tsv"
    convert = f"csv.writer(sys.stdout).writerows(csv.reader(sys.stdin, delimiter='{delimiter}'))"
    command = f'python -c "import csv, sys; {convert}" < IN > NEW'
    return f"; columns are separated by {delimiter!r}, not by commas: convert it by {command}"


_OTHER_FILES = {
    b"\x1f\x8b": "compressed by gzip: give it a name with .gz, or decompress it",
    b"PK\x03\x04": "a zip file or a spreadsheet: save it as CSV",
}
"""The first bytes of files that have no lines, and what to do with them."""


def decode_text(data: bytes, where: str) -> str:
    """A text in UTF-8 in every locale: the locale's encoding may decode other bytes without an error."""
    with contextlib.suppress(UnicodeDecodeError):
        if b"\0" not in data:
            return data.decode("utf-8-sig")
    raise wrong_encoding(where, data)


def wrong_encoding(where: str, data: bytes) -> RequestError:
    """The error for bytes that are not UTF-8, or have NULs between their characters."""
    if remedy := next((remedy for begin, remedy in _OTHER_FILES.items() if data.startswith(begin)), None):
        return RequestError(f"{where} is no text, but {remedy}")
    code = "UTF-16" if b"\0" in data else "WINDOWS-1252"
    return RequestError(
        f"{where} is not UTF-8 text: if it is {code}, convert it by iconv -f {code} -t UTF-8 IN > NEW"
    )


def _read_text(source: IO[bytes], name: str) -> Lines:
    for number, line in enumerate(lines_of(source, name), start=1):
        where = f"{name} line {number}"
        if number == 1 and b"\0" in line:
            # Else each line, and a prompt, would be characters with NULs between them.
            raise wrong_encoding(where, line)
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            yield number, wrong_encoding(where, line)
            continue
        if text.strip():
            yield number, text


_LINES = {
    "[": "jq -c '.[]' IN > NEW makes lines of an array",
    "{": "jq -c . IN > NEW makes a line of each object",
}
"""What to do, by the first character of a file that has not one value in a line."""


def _is_message(value: object) -> bool:
    return isinstance(value, dict) and not {"role", "type"}.isdisjoint(value)


def _read_json(source: IO[bytes], name: str) -> Lines:
    for number, value in _read_text(source, name):
        if isinstance(value, str):
            try:
                value = json.loads(text := value)  # noqa: PLW2901  # the value of the line
            except (ValueError, RecursionError) as error:
                lines = f"; {hint}" if number == 1 and (hint := _LINES.get(text[:1])) else ""
                problem = str(error)
                if isinstance(error, json.JSONDecodeError):  # whose message counts lines within the value
                    problem = f"{error.msg} at character {error.pos + 1}"
                yield number, RequestError(f"{name} line {number} is not JSON: {problem}{lines}")
                continue
            if number == 1 and isinstance(value, list) and not all(map(_is_message, value)):
                raise RequestError(f"{name} line 1 is a list, and not of messages: {_LINES['[']}")
            if not isinstance(value, (dict, str, list)):
                value = RequestError(  # noqa: PLW2901  # the error takes its place
                    f"{name} line {number} must be an object, a text or a list of messages, "
                    f"not {type(value).__name__}"
                )
        yield number, value


def _read_table(source: IO[bytes], name: str, delimiter: str = ",") -> Lines:
    csv.field_size_limit(LONGEST_LINE)
    # What is not UTF-8 spoils its own row only.
    text = io.TextIOWrapper(source, encoding="utf-8-sig", errors="surrogateescape", newline="")
    try:
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        header = _read_record(reader, name)
        if isinstance(header, RequestError):
            raise header
        if header is None:
            raise RequestError(f"{name} is empty: the first line names the columns")
        if _NO_TEXT.search(first := "".join(header)) or "\0" in first:
            raise wrong_encoding(f"{name} line 1", first.encode("utf-8", "surrogateescape"))
        twice = [column for index, column in enumerate(header) if column in header[:index]]
        if twice:
            raise RequestError(f"{name} has the column {twice[0]!r} twice")
        while (cells := _read_record(reader, name)) is not None:
            where, row, hint = f"{name} line {reader.line_num}", cells, _explain_delimiter(header)
            if isinstance(cells, RequestError):
                row = RequestError(f"{cells.message}{hint}")
            elif len(cells) != len(header):
                row = RequestError(f"{where} has {len(cells)} values for {len(header)} columns{hint}")
            elif _NO_TEXT.search("".join(cells)):
                row = wrong_encoding(where, b"")
            if cells:
                yield reader.line_num, dict(zip(header, row, strict=True)) if isinstance(row, list) else row
    finally:
        # The file stays open for the next reader. After an interrupt it is closed first.
        if not source.closed:
            text.detach()


def _read_record(reader: Any, name: str) -> list[str] | RequestError | None:
    """The cells of the next line; None at the end of the file."""
    begin = reader.line_num + 1
    try:
        return next(reader, None)
    except csv.Error as error:
        # A quote that is not closed takes in all further lines.
        return RequestError(f"{name} line {begin} is not valid CSV: {error}")


_READERS: dict[Format, Callable[[IO[bytes], str], Lines]] = {
    "jsonl": _read_json, "csv": _read_table, "tsv": partial(_read_table, delimiter="\t"), "txt": _read_text,
    "parquet": read_parquet,
}  # fmt: skip


class PromptMaker:
    """Makes the prompt of a row: by a template, from a column, or the first of `DEFAULT_COLUMNS`."""

    def __init__(self, template: str | None = None, column: str | None = None) -> None:
        self._column = column
        self._template, self._fields = template, list[str]()
        if template is not None:
            self._template, self._fields = parse_template(template, "the template", "{text}")

    def __call__(self, row: Row) -> str | list[Any]:
        """The prompt: a text, or a list of messages. An error names the row, or says why it was not read."""
        if row.problem is not None:
            raise row.problem
        if self._template is not None:
            return self._fill(self._template, row)
        column = self._column
        if column is None:
            column = next((name for name in DEFAULT_COLUMNS if name in row.fields), None)
        if column is None or column not in row.fields:
            defaults, remedy = ", ".join(DEFAULT_COLUMNS), ": name one with --column, or give a --template"
            wanted = f"no column {column!r}" if column else f"none of the columns {defaults}{remedy}"
            raise RequestError(f"{row.where} has {wanted}; it has: {row.columns}")
        value = row.fields[column]
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

    def _fill(self, template: str, row: Row) -> str:
        for name in self._fields:
            if name not in row.fields:
                raise RequestError(
                    f"{row.where} has no field {name!r}, which the template needs; it has: "
                    f"{row.columns} ({BRACES})"
                )
            if row.fields[name] is None:
                raise RequestError(f"{row.where} has no value for {name!r}, which the template needs")
        try:
            return template.format_map(row.fields)
        except (ValueError, TypeError, AttributeError, LookupError) as error:
            raise RequestError(f"{row.where} cannot fill the template: {error!r}") from None


def read_prompts(path: Path | None, template: str | None = None, column: str | None = None) -> Iterator[Any]:
    """The prompts of a file, as `map` reads it. Standard input and files of other names are texts."""
    is_named = path is not None and path.suffix.lower() in (*_SUFFIXES, *COMPRESSED)
    with closing(RowFile("-" if path is None else str(path), None if is_named else "txt")) as file:
        yield from map(PromptMaker(template, column), file.rows())
