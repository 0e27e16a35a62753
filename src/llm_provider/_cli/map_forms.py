"""The two forms of the file that `llm-provider map` writes: JSON lines, and a table for spreadsheets."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

import orjson

from .._errors import RequestError
from .._json_values import JSONObject
from .._runtime.files import encode_line, lines_of

_BEGINNING = b'{"index":'
"""The beginning of every line of JSON."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that begins with one of these for a formula, and executes it."""
_TOKENS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "reasoning_output_tokens")
_LAST_COLUMNS = (
    "finish_reason", "model", *_TOKENS, "cost", "cost_bounds", "price", "prompt", "served_by",
    "cached", "cache_keys", "error", "error_message", "request",
)  # fmt: skip


_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_LINES = ("", ".jsonl", ".ndjson")


def choose_form(path: Path, *, strict: bool = False) -> "JsonLines | Table":
    """The form of a file by its name; if strict, `RequestError` for a name that promises another one."""
    suffix = path.suffix.lower()
    if strict and suffix not in (*_LINES, *_DELIMITERS) and (path.is_file() or not path.exists()):
        raise RequestError(
            f"{path}: answers are written as JSON lines ({', '.join(_LINES[1:])}) or as a table "
            f"({', '.join(_DELIMITERS)}), not as {suffix}; pandas reads both and writes other formats"
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

    @property
    def head(self) -> bytes:
        return self._encode_record(self.columns)

    def name_columns(
        self, inputs: Iterable[str], parsed: Iterable[str], *, by_id: bool, samples: bool, tools: bool
    ) -> None:
        """Choose the columns: one for each field of the rows and of the answers, where these are known."""
        fields = [f"input.{name}" for name in inputs] or ["input"]
        answers = [f"parsed.{name}" for name in parsed] or ["parsed"]
        more = [*["texts"] * samples, *["tool_calls"] * tools]
        names = ["index", *["id"] * by_id, *fields, "text", *more, *answers, *_LAST_COLUMNS]
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

    def name(self, value: object) -> str:
        return _encode_cell(value)

    def _encode_record(self, cells: Iterable[str]) -> bytes:
        text = io.StringIO()
        csv.writer(text, delimiter=self._delimiter).writerow(cells)
        return text.getvalue().encode("utf-8", "backslashreplace")

    def _decode_record(self, record: bytes) -> list[str]:
        try:
            text = io.StringIO(record.decode(), newline="")
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
        for name in ("cost", "cost_bounds", "price", "served_by", *_TOKENS):
            line[name] = json.loads(line[name]) if line.get(name) else None
    except (ValueError, RecursionError):
        return None
    line["cached"] = line.get("cached") == "true"
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
    whole = (
        isinstance(line, dict)
        and type(line.get("index")) is int
        and isinstance(line.get("request"), str)
        and isinstance(line.get("error", 0), (dict, type(None)))
    )
    return line if whole else None
