"""The file that `llm-provider map` writes: a line for each row, which a later run continues.

Each line is one write, made when its answer arrives, so a killed process leaves whole lines. At the end of a
run the lines are put into the order of the input, and of a row that failed before only the last line stays.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, cast

import orjson

from ..._core.errors import OutputError, RequestError
from ..._core.json_values import JSONObject, json_value
from ..._core.runtime import files
from ..._core.runtime.files import encode_line, lines_of
from ..._core.runtime.imports import import_optional, install_command
from ..._core.runtime.locks import lock_file
from ..._core.types.response import Response, Result
from .map_rows import COMPRESSED, Row
from .map_tally import Tally
from .number_set import NumberSet

_BEGINNING = b'{"index":'
"""The beginning of every line of JSON."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins with one of these for a formula, and executes it."""
_TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "reasoning_output_tokens")
_EARLIER = "earlier_failures"
"""The field of a line that has what earlier failures of its row may have cost."""
_LAST_COLUMNS = (
    "finish_reason", "model", "provider", *_TOKENS, "cost", "cost_bounds", "price", "prompt", "served_by",
    "cached", "cache_keys", "error", "error_message", _EARLIER, "request",
)  # fmt: skip
_OF_FAILURES = ("model", "provider", "usage", "cost", "cost_bounds", "cached", "passed_over", "error")
"""The fields of a failed line that stay in the line which takes its place."""
_STORED = ("stored_price", "stored_usages")
"""The fields of a line with several samples, if some of them were stored."""
_JSON_CELLS = ("cost", "cost_bounds", "price", "served_by", "passed_over", "cache_keys", _EARLIER, *_STORED)
"""The columns of a table whose cells are JSON."""

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_LINES = ("", ".jsonl", ".ndjson")
_TABLE = ".parquet"


def choose_form(path: Path, *, strict: bool = False) -> JsonLines | Table:
    """The form of a file by its name; if strict, `RequestError` for a name that promises another one."""
    suffix = path.suffix.lower()
    if suffix == _TABLE:
        raise RequestError(f"{path} is the table of answers whose lines are in {path}.jsonl: give that file")
    if strict and suffix not in (*_LINES, *_DELIMITERS) and (path.is_file() or not path.exists()):
        raise RequestError(
            f"{path}: answers are written as JSON lines ({', '.join(_LINES[1:])}) or as a table "
            f"({', '.join((*_DELIMITERS, _TABLE))}), not as {suffix}; pandas reads these and writes others"
        )
    return Table(_DELIMITERS[suffix]) if suffix in _DELIMITERS else JsonLines()


class JsonLines:
    """A line of JSON for each row."""

    head = b""

    def encode(self, line: JSONObject) -> bytes:
        """A line as UTF-8, with its line break."""
        return encode_line(line)

    def read(self, file: IO[bytes]) -> Iterator[tuple[bytes, JSONObject | None]]:
        """Each whole line and its content, which is None if this command wrote no such line."""
        for text in lines_of(file, getattr(file, "name", "the file")):
            # A power cut may leave NULs in the place of a line.
            begin = text.rstrip(b"\0")[: len(_BEGINNING)]
            if not text.endswith(b"\n") and begin == _BEGINNING[: len(begin)]:
                # The disk or the machine failed while this line was written.
                return
            yield text, _decode_json(text)

    def name(self, value: object) -> object:
        """The id or the position of a row, as a line that was read has it."""
        return value


class Table:
    """Comma- or tab-separated values under a header, as RFC 4180 describes them."""

    def __init__(self, delimiter: str = ",") -> None:
        self._delimiter = delimiter
        self.columns: Sequence[str] = ()
        """The columns that are written."""
        self.columns_read: Sequence[str] = ()
        """The columns of the file that was read."""
        self.cut = b""
        """The piece of a line at the end of that file."""

    @property
    def head(self) -> bytes:
        return self._encode_record(self.columns)

    def name_columns(
        self,
        inputs: Iterable[str],
        parsed: Iterable[str],
        *,
        by_id: bool,
        samples: bool,
        tools: bool,
        fallback: bool = False,
        scored: bool = False,
    ) -> None:
        """Choose the columns: one for each field of the rows and of the answers, where these are known."""
        fields = [f"input.{name}" for name in inputs] or ["input"]
        answers = [f"parsed.{name}" for name in parsed] or ["parsed"]
        more = [*["texts", *_STORED] * samples, *["tool_calls"] * tools, *["passed_over"] * fallback]
        names = [
            "index",
            *["id"] * by_id,
            *fields,
            "text",
            *more,
            *answers,
            *["score"] * scored,
            *_LAST_COLUMNS,
        ]
        self.columns = list(map(_encode_cell, names))

    def encode(self, line: JSONObject) -> bytes:
        """A line as UTF-8, with its line break. A text that a spreadsheet would execute begins with '."""
        flat = dict(line)
        for name in ("input", "parsed"):
            if isinstance(line.get(name), dict) and name not in self.columns:
                flat |= {f"{name}.{field}": value for field, value in line[name].items()}
        flat |= line.get("usage") or {}
        if isinstance(line.get("error"), dict):
            flat |= {"error": line["error"]["type"], "error_message": line["error"]["message"]}
        cells = {_encode_cell(name): _encode_cell(value) for name, value in flat.items()}
        return self._encode_record([cells.get(name, "") for name in self.columns])

    def read(self, file: IO[bytes]) -> Iterator[tuple[bytes, JSONObject | None]]:
        """The header with no content, and each whole line with its content, but no piece at the end."""
        csv.field_size_limit(2**31 - 1)
        record, quotes = b"", 0
        self.columns_read = ()
        for text in file:
            record += text
            quotes += text.count(b'"')
            if quotes % 2 or not record.endswith(b"\r\n"):
                # The cell goes on in the next line.
                continue
            cells = self._decode_record(record)
            if self.columns_read:
                yield record, _decode_line(self.columns_read, cells)
            else:
                known = cells[:1] == ["index"] and {"error", "request", "cost"} <= set(cells)
                self.columns_read = cells if known else ()
                yield record, {} if known else None
            record, quotes = b"", 0
        if record and not self.columns_read and record[:5] != b"index"[: len(record)]:
            yield record, None
        self.cut = record if self.columns_read else b""

    def name(self, value: object) -> str:
        return _encode_cell(value)

    def _encode_record(self, cells: Iterable[str]) -> bytes:
        text = io.StringIO()
        csv.writer(text, delimiter=self._delimiter).writerow(cells)
        return text.getvalue().encode("utf-8", "backslashreplace")

    def _decode_record(self, record: bytes) -> list[str]:
        try:
            text = io.StringIO(record.decode("utf-8-sig"), newline="")  # Excel writes a mark
            return next(csv.reader(text, delimiter=self._delimiter, strict=True), [])
        except (csv.Error, UnicodeDecodeError):
            return []


def _encode_cell(value: object) -> str:
    """A value as the text of a cell. Numbers stay numbers."""
    if isinstance(value, str):
        return f"'{value}" if value.lstrip("'").startswith(_FORMULA) else value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _decode_cell(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and cell.lstrip("'").startswith(_FORMULA) else cell


def _decode_line(columns: Sequence[str], cells: list[str]) -> JSONObject | None:
    """The content of a line of a table, with the types that this command wrote."""
    if len(cells) != len(columns):
        return None
    line: JSONObject = dict(zip(columns, map(_decode_cell, cells), strict=True))
    try:
        line["index"] = int(line["index"])
        for name in (*_JSON_CELLS, *_TOKENS):
            line[name] = json.loads(line[name]) if line.get(name) else None
    except (ValueError, RecursionError):
        return None
    line["cached"] = line.get("cached") == "true"
    if not line.get("parsed", True):
        line["parsed"] = None
    line["error"] = (
        {"type": line["error"], "message": line.get("error_message", "")} if line["error"] else None
    )
    line["usage"] = {name: line.pop(name) or 0 for name in _TOKENS}
    return line


def _decode_json(text: bytes) -> JSONObject | None:
    """The content of a line of JSON; None if it is no line of this command."""
    try:
        line = orjson.loads(text)
    except ValueError:
        try:
            line = json.loads(text)
        except (ValueError, RecursionError):
            return None
    if not isinstance(line, dict) or type(line.get("index")) is not int:
        return None
    is_known = isinstance(line.get("request"), str) and isinstance(line.get("error", 0), dict | None)
    return line if is_known else None


_INDEX = re.compile(rb'^(\{"index": ?)?\d+')
"""The index at the beginning of a line of either form."""


def request_name(model: str, prompt: object, parameters: JSONObject) -> str:
    """A short hash of a request, which tells a later run that a line answers the same request."""
    request = json.dumps([model, prompt, parameters], sort_keys=True, default=str)
    return hashlib.blake2b(request.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def line_token(name: object, request: str) -> int:
    """The row and the request of a line, in 64 bits: an input may have millions of rows."""
    text = f"{json.dumps(name)} {request}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), signed=True)


def line_of(row: Row, request: str, result: Result, model: str, id_column: str | None) -> JSONObject:
    """The line of the result for a row, whose `request` is its `request_name`."""
    line: JSONObject = {"index": row.index}
    if id_column is not None:
        line["id"] = row.fields[id_column]
    line |= {"input": row.value, "text": None, "parsed": None, "finish_reason": None}
    error = None if isinstance(result, Response) else result
    served_by = price = keys = None
    if isinstance(result, Response):
        line |= {"text": result.text, "finish_reason": result.finish_reason}
        line |= {"texts": result.texts} if len(result.choices) > 1 else {}
        if result.stored_usages:
            line |= {name: json_value(getattr(result, name)) for name in _STORED}
        line |= {"tool_calls": json_value(result.tool_calls)} if result.tool_calls else {}
        model, served_by, price = result.model, result.served_by, result.price
        keys = list(result.cache_keys)
        try:
            line["parsed"] = json_value(result.parsed)
        except OutputError as problem:
            error = problem
    if result.passed_over:
        line["passed_over"], model = json_value(result.passed_over), result.model or model
    names = ("status", "code", "provider", "request_id", "attempts", "retryable", "maybe_billed")
    fields = {name: getattr(error, name, None) for name in names}
    return line | {
        "model": model,
        "provider": result.provider,
        "usage": None if result.usage is None else json_value(result.usage),
        "cost": result.cost,
        "cost_bounds": result.cost_bounds,
        "price": price,
        "prompt": json_value(result.prompt),
        "served_by": None if served_by is None else served_by.to_dict(),
        "cached": result.cached,
        "cache_keys": keys,
        "error": None if error is None else {"type": type(error).__name__, "message": str(error)} | fields,
        "request": request,
    }


def _list_failures(line: JSONObject) -> list[JSONObject]:
    """What failed requests for a row may have cost: those that its line knows, and the line itself."""
    earlier: list[JSONObject] = line.get(_EARLIER) or []
    if line["error"] is None or line.get("cost") == 0:
        return earlier
    return [*earlier, {name: line.get(name) for name in _OF_FAILURES}]


class StandardOutput:
    """Prints lines."""

    name, is_kept, size = "standard output", False, 0

    def write(self, line: JSONObject) -> None:
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()


class OutputFile:
    """A file of lines: JSON, or a table if its name ends in .csv or .tsv.

    If it ends in .parquet, the file of lines has `.jsonl` after that, and `write_table` writes the table.
    """

    def __init__(self, path: Path) -> None:
        self.table: Path | None = None
        if path.suffix.lower() == _TABLE:
            import_optional("pyarrow", install_command("parquet"))
            self.table, path = path, path.with_name(f"{path.name}.jsonl")
        self.name = str(path)
        if path.suffix.lower() in COMPRESSED:
            raise RequestError(f"{path}: a compressed file cannot be continued; leave out {path.suffix}")
        self.form = choose_form(path, strict=True)
        # A link keeps pointing to the file that replaces the old one. That to a pipe resolves to no path.
        self.path = path if path.exists() and not path.is_file() else path.resolve()
        if self.path.is_dir():
            raise RequestError(f"{path} is a folder; give the name of a file")
        if not self.path.parent.is_dir():
            raise RequestError(f"there is no folder {path.parent} for {path.name}")
        self._descriptor: int | None = None
        self._whole = 0
        self._read: os.stat_result | None = None
        self.positions = 0

    @property
    def is_kept(self) -> bool:
        """Whether lines can be read again. A device or a pipe keeps nothing."""
        return self.path.is_file()

    def check_names(self, source: str, *, overwrite: bool) -> None:
        """Raise an error if it is the file of the rows, or if the table is not of its lines."""
        files_of_answers = [path for path in (self.path, self.table) if path is not None and path.is_file()]
        if source != "-" and any(path.samefile(source) for path in files_of_answers):
            raise RequestError("IN and OUT are the same file")
        if self.table in files_of_answers and not (self.is_kept or overwrite):
            raise RequestError(
                f"{self.table} is there, but not the lines that `map` would continue, {self.name}: choose "
                "another OUT, or give --overwrite to replace the file"
            )

    def write_table(self) -> None:
        """Write the lines as a Parquet file, if that is what is asked for."""
        if self.table is not None:
            from .parquet import write_parquet

            write_parquet(lambda: (line for _, _, line in self._lines()), self.table)

    def read_answered(self, *, by_id: bool) -> NumberSet:
        """The tokens of the rows that the file answers, by their ids or positions. A failed row has none."""
        self._whole = self.positions = 0
        if not self.is_kept:
            return NumberSet()
        self._read = self.path.stat()
        return NumberSet(token for _, token, _ in self._tokens(by_id=by_id))

    def first_other(self, known: NumberSet, *, by_id: bool) -> tuple[int, object] | None:
        """The number of the first line that answers none of the known tokens, and the name of its row."""
        lines = self._tokens(by_id=by_id)
        return next(((number, name) for number, token, name in lines if token not in known), None)

    def _tokens(self, *, by_id: bool) -> Iterator[tuple[int, int, object]]:
        for number, _, line in self._lines():
            if line["error"] is None:
                self.positions = max(self.positions, line["index"] + 1)
                name = self.form.name(line.get("id") if by_id else line["index"])
                yield number, line_token(name, line["request"]), name

    def _lines(self) -> Iterator[tuple[int, int, JSONObject]]:
        """The number, the offset and the content of each whole line."""
        offset = 0
        with files.open_data(self.path) as file:
            for number, (text, line) in enumerate(self.form.read(file), start=1):
                if line is None:
                    raise RequestError(
                        f"{self.name} line {number} is not a line of `map`: choose another OUT, or give "
                        "--overwrite to replace the file"
                    )
                self._whole = offset + len(text)
                if line:
                    yield number, offset, line
                offset = self._whole

    def open(self, *, overwrite: bool) -> None:
        """Begin to write: after the whole lines of the file, or in an empty file. No other process may."""
        descriptor, table = self._lock(overwrite=overwrite), self.form
        if isinstance(table, Table) and self._whole and not overwrite:
            new = [name for name in table.columns if name not in table.columns_read]
            old = [name for name in table.columns_read if name not in table.columns]
            table.columns = [*table.columns, *old] if new else table.columns_read
            if new:
                # A new file gets the new columns, and keeps those that were there.
                with files.replace_file(self.path) as wider:
                    wider.write(table.head)
                    for _, _, line in self._lines():
                        wider.write(table.encode(line))
                    self._whole = wider.tell()
                self.close()
                self._read = self.path.stat()
                descriptor = self._lock(overwrite=False)
        if self.is_kept:
            files.ftruncate(descriptor, 0 if overwrite else self._whole)
            if os.fstat(descriptor).st_size:
                return
        self._append(self.form.head)

    def _lock(self, *, overwrite: bool) -> int:
        """Open the file for this process alone; an error if another one has written it since it was read."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)
        self._descriptor = descriptor = files.open_descriptor(self.path, flags, 0o666)
        if self.is_kept:
            if not lock_file(descriptor):
                raise RequestError(f"another process writes {self.name}; wait for its end")
            now, read = os.fstat(descriptor), self._read
            known = now.st_size == (read.st_size if read else 0) and os.path.samestat(now, read or now)
            if not (known or overwrite) or not os.path.samestat(now, self.path.stat()):
                raise RequestError(f"another process has written {self.name}; run the same command again")
        return descriptor

    @property
    def size(self) -> int:
        """Bytes of the open file, into which `write` puts whole lines."""
        return os.fstat(cast("int", self._descriptor)).st_size

    def write(self, line: JSONObject) -> None:
        self._append(self.form.encode(line))

    def _append(self, text: bytes) -> None:
        assert self._descriptor is not None
        data, begin = memoryview(text), self.size
        try:
            while data:
                data = data[files.write(self._descriptor, data) :]
        except OSError:
            # The disk took a part of the line.
            if self.is_kept:
                files.ftruncate(self._descriptor, begin)
            raise

    def close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def arrange(self, rows: int, order: Mapping[int, int] | None = None) -> Tally:
        """Put the lines into the order of the input, one for each of so many rows, and count them.

        `order` has the index of each row by its token, where rows have ids: the input may have changed.
        """
        tally = Tally()
        if not self.is_kept:
            return tally
        offsets = array("q", [-1]) * rows
        lengths = array("q", [0]) * rows
        last, ordered = -1, True
        # By index, what failed lines may have cost: those that are the last, and those that have a successor.
        failed: dict[int, list[JSONObject]] = {}
        replaced: dict[int, list[JSONObject]] = {}
        for _, offset, line in self._lines():
            index = line["index"]
            if order is not None:
                index = order.get(line_token(self.form.name(line.get("id")), line["request"]), rows)
            ordered = ordered and line["index"] == index > last
            last = index
            if index < rows:
                offsets[index], lengths[index] = offset, self._whole - offset
                if index in failed:
                    replaced.setdefault(index, []).extend(failed.pop(index))
                if costs := _list_failures(line):
                    failed[index] = costs
        if not ordered:
            with files.replace_file(self.path) as new, self.path.open("rb") as old:
                new.write(self.form.head)
                for index, (offset, length) in enumerate(zip(offsets, lengths, strict=True)):
                    if offset >= 0:
                        old.seek(offset)
                        new.write(_INDEX.sub(rb"\g<1>%d" % index, old.read(length), count=1))
        if replaced:
            self.rewrite(
                lambda line: line | {_EARLIER: each} if (each := replaced.get(line["index"])) else line
            )
        for _, _, line in self._lines():
            tally.add(line)
        return tally

    def rewrite(self, change: Callable[[JSONObject], JSONObject]) -> None:
        """Change each line. The file is replaced when all are on disk."""
        with files.replace_file(self.path) as new:
            new.write(self.form.head)
            for _, _, line in self._lines():
                new.write(self.form.encode(change(line)))
