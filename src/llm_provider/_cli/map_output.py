"""The file that `llm-provider map` writes: a line of JSON for each row, which a later run continues.

Each line is one write, made when its answer arrives, so a killed process leaves whole lines. At the end of a
run the lines are put into the order of the input, and of a row that failed before only the last line stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import orjson

from .._errors import LLMError, OutputError, RequestError
from .._json_values import json_value
from .._types.response import Response, Result
from .map_rows import Row

_BEGINNING = b'{"index":'
"""The beginning of every line."""


def request_name(model: str, prompt: Any, parameters: dict[str, Any]) -> str:
    """A short hash of what is asked, by which a later run knows that a line answers the same request."""
    asked = json.dumps([model, prompt, parameters], sort_keys=True, default=str)
    return hashlib.blake2b(asked.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def line_token(name: Any, request: str) -> bytes:
    """The row and the request of a line, in a few bytes: an input may have millions of rows."""
    text = f"{json.dumps(name)} {request}"
    return hashlib.blake2b(text.encode(), digest_size=12).digest()


def line_of(row: Row, request: str, result: Result, model: str, id_column: str | None) -> dict[str, Any]:
    """The line of a result.

    Args:
        row: The row that was asked about.
        request: Its `request_name`.
        result: The response or the error.
        model: The model that was asked.
        id_column: The column of the rows' ids, or None.
    """
    line: dict[str, Any] = {"index": row.index}
    if id_column is not None:
        line["id"] = row.fields[id_column]
    line |= {"input": row.value, "text": None, "parsed": None, "finish_reason": None}
    error: LLMError | None = None
    if isinstance(result, Response):
        line |= {"text": result.text, "finish_reason": result.finish_reason}
        if len(result.choices) > 1:
            line["texts"] = result.texts
        if result.tool_calls:
            line["tool_calls"] = json_value(result.tool_calls)
        try:
            line["parsed"] = json_value(result.parsed)
        except OutputError as problem:
            error = problem
        line["model"] = result.model
    else:
        error = result
        line["model"] = model
    usage = result.usage
    return line | {
        "usage": None if usage is None else asdict(usage),
        "cost": result.cost,
        "cached": result.cached,
        "error": None if error is None else _facts(error),
        "request": request,
    }


def _facts(error: LLMError) -> dict[str, Any]:
    facts = {
        name: getattr(error, name)
        for name in ("status", "code", "provider", "request_id", "attempts", "retryable", "maybe_billed")
    }
    return {"type": type(error).__name__, "message": str(error), **facts}


def json_line(line: dict[str, Any]) -> bytes:
    """A line as UTF-8, with its line break."""
    try:
        return orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # a number of more than 64 bits, or a lone surrogate
        return f"{json.dumps(line)}\n".encode()


class StandardOutput:
    """Prints lines."""

    name = "standard output"

    def write(self, line: dict[str, Any]) -> None:
        """Print a line at once. ASCII passes every encoding."""
        sys.stdout.write(f"{json.dumps(line)}\n")
        sys.stdout.flush()


class OutputFile:
    """A file of lines.

    Args:
        path: The file.

    Raises:
        RequestError: it is a folder, or its folder does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        # A link keeps pointing to the file that replaces the old one.
        self.path = path.resolve()
        if self.path.is_dir():
            raise RequestError(f"{path} is a folder; give the name of a file")
        if not self.path.parent.is_dir():
            raise RequestError(f"there is no folder {path.parent} for {path.name}")
        self._descriptor: int | None = None
        self._whole = 0

    @property
    def is_kept(self) -> bool:
        """Whether lines can be read again. A device or a pipe keeps nothing."""
        return self.path.is_file()

    def answered(self, *, by_id: bool) -> set[bytes]:
        """The tokens of the rows that the file answers. A line of a failed row is none.

        Args:
            by_id: Whether rows are named by their ids, and not by their positions.

        Raises:
            RequestError: a line is not one of these lines.
            OSError: the file cannot be read.
        """
        self._whole = 0
        return {token for _, token in self._tokens(by_id=by_id)} if self.is_kept else set()

    def first_other(self, known: set[bytes], *, by_id: bool) -> int | None:
        """The number of the first line that answers none of the known tokens."""
        return next((number for number, token in self._tokens(by_id=by_id) if token not in known), None)

    def _tokens(self, *, by_id: bool) -> Iterator[tuple[int, bytes]]:
        for number, _, line in self._lines():
            if line["error"] is None:
                name = line.get("id") if by_id else line["index"]
                yield number, line_token(name, line["request"])

    def _lines(self) -> Iterator[tuple[int, int, dict[str, Any]]]:
        """The number, the offset and the content of each whole line."""
        offset = 0
        with self.path.open("rb") as file:
            for number, text in enumerate(file, start=1):
                if not text.endswith(b"\n") and text[: len(_BEGINNING)] == _BEGINNING[: len(text)]:
                    # The machine failed while this line was written.
                    break
                line = _parsed(text)
                if line is None:
                    raise RequestError(
                        f"{self.name} line {number} is not a line of `map`: choose another OUT, or give "
                        "--overwrite to replace the file"
                    )
                yield number, offset, line
                offset += len(text)
                self._whole = offset

    def open(self, *, overwrite: bool) -> None:
        """Begin to write: after the whole lines of the file, or in an empty file.

        Raises:
            RequestError: another process writes the file.
            OSError: the file cannot be written.
        """
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        self._descriptor = descriptor
        if self.is_kept:
            with contextlib.suppress(ImportError):
                import fcntl

                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise RequestError(f"another process writes {self.name}; wait for its end") from None
            os.ftruncate(descriptor, 0 if overwrite else self._whole)

    def write(self, line: dict[str, Any]) -> None:
        """Append a line.

        Raises:
            OSError: the disk is full, or the file cannot be written.
        """
        assert self._descriptor is not None
        data = memoryview(json_line(line))
        while data:
            data = data[os.write(self._descriptor, data) :]

    def close(self) -> None:
        """Close the file."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def arrange(self, rows: int) -> Tally:
        """Put the lines into the order of the input, one for each row, and count them.

        Args:
            rows: The number of rows.

        Raises:
            OSError: the file cannot be written.
        """
        tally = Tally()
        if not self.is_kept:
            return tally
        offsets = array("q", [-1]) * rows
        last, ordered = -1, True
        for _, offset, line in self._lines():
            index = line["index"]
            ordered = ordered and index > last
            last = index
            if index < rows:
                offsets[index] = offset
        if not ordered:
            self._rewrite(offsets)
        for _, _, line in self._lines():
            tally.add(line)
        return tally

    def _rewrite(self, offsets: array[int]) -> None:
        beside = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        try:
            with self.path.open("rb") as old, beside.open("wb") as new:
                for offset in offsets:
                    if offset >= 0:
                        old.seek(offset)
                        new.write(old.readline())
                new.flush()
                os.fsync(new.fileno())
            shutil.copymode(self.path, beside)
            beside.replace(self.path)
        finally:
            beside.unlink(missing_ok=True)


@dataclass(slots=True)
class Tally:
    """Counts the lines of an output.

    Attributes:
        rows: All lines.
        errors: The failed rows, by the class of their errors.
        incomplete: The answers that are not whole, by their finish reasons.
        first_error: The first failed row and its message.
    """

    rows: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    incomplete: Counter[str] = field(default_factory=Counter)
    first_error: str = ""

    def add(self, line: dict[str, Any]) -> None:
        """Count a line."""
        self.rows += 1
        error, reason = line["error"], line.get("finish_reason")
        if error is not None:
            self.errors[error["type"]] += 1
            if not self.first_error:
                name = f"id {line['id']!r}" if "id" in line else f"row {line['index'] + 1}"
                self.first_error = f"{name}: {error['message']}"
        elif reason in ("length", "refusal", "content_filter"):
            self.incomplete[reason] += 1


def _parsed(text: bytes) -> dict[str, Any] | None:
    """The content of a line; None if it is no line of this command."""
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
