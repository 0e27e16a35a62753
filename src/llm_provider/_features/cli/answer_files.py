"""Reads answers from what `map`, `Results.to_jsonl` and `export` write."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, is_zipfile

from ..._core.errors import LLMError, RequestError
from ..._core.json_values import JSONObject
from ..._core.runtime.files import lines_of, open_data
from ..._core.runtime.json_pieces import check_size
from ..._core.types.response import Response, Result, result_from_dict
from ..._core.types.results_table import AnyResult
from .map_output import Table, choose_form
from .output import PROGRAM

_DETAILS = re.compile(r" \[[^\[\]]*\]$")
"""The end of the text of an error: its provider, model and status."""
_OF_ERRORS = (
    "metadata", "model", "usage", "cost", "cost_bounds", "provider", "status", "code", "request_id",
    "retry_after", "prompt",
)  # fmt: skip


def read_answers(path: Path) -> Iterator[AnyResult]:
    """The answers of a file; `RequestError` if a line is none."""
    for number, (text, line) in enumerate(read_lines(path.expanduser()), start=1):
        if line == {} or not text.strip():
            # The header of a table.
            continue
        try:
            check_size(text)
            fields = json.loads(text) if line is None else line
            # A line of evidence has more than the result.
            fields = fields["result"] if "requests" in fields else fields
            yield _read_map_line(fields) if "request" in fields else result_from_dict(fields)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            if not text.endswith(b"\n") and (number > 1 or text.startswith(b"{")):
                # It is still being written, or was when the machine failed.
                return
            reason = f" ({error})" if isinstance(error, LLMError) else ""
            raise RequestError(
                f"{path} line {number} is no answer of `{PROGRAM} map` or `Results.to_jsonl`{reason}"
            ) from None


def read_lines(path: Path) -> Iterator[tuple[bytes, JSONObject | None]]:
    """The lines of a file, and their content where the file is a table."""
    with open_data(path) as file:
        if file.seekable() and is_zipfile(file):
            from ..evidence.verification import ROWS

            try:
                with ZipFile(file) as archive, archive.open(ROWS) as rows:
                    yield from ((text, None) for text in lines_of(rows, path))
            except (KeyError, BadZipFile, NotImplementedError):
                raise RequestError(
                    f"{path} is a zip file, and no evidence that `{PROGRAM} export` wrote"
                ) from None
            return
        if file.seekable():
            file.seek(0)
        form = choose_form(path)
        lines = lines_of(file, path)
        yield from form.read(file) if isinstance(form, Table) else ((text, None) for text in lines)


def _read_map_line(line: JSONObject) -> Result:
    """A line of `map` as the result that it was made from, whose metadata are the row."""
    row = line.get("input")
    if row is None:
        row = {name.removeprefix("input."): cell for name, cell in line.items() if name.startswith("input.")}
    metadata = row if isinstance(row, dict) else {"input": row}
    if "id" in line and metadata.get("id") != line["id"]:
        metadata = {"id": line["id"], **metadata}
    fields = line | {"metadata": metadata, "provider": line.get("provider") or ""}
    # An answer that was refused has an error beside its finish reason.
    if (error := line["error"]) is not None and not line["finish_reason"]:
        shared = {name: fields.get(name) for name in _OF_ERRORS} | {"attempts": 0}
        message = error["message"]
        if "status" in error:
            # The end of the message is made of these fields again. A table does not have them.
            message = _DETAILS.sub("", message)
        else:
            shared["model"] = None
        return LLMError.from_dict(shared | error | {"error": error["type"], "message": message})
    texts, calls, keys = (_read_cell(line.get(name)) or [] for name in ("texts", "tool_calls", "cache_keys"))
    choices = [{"text": text, "tool_calls": []} for text in texts or [line["text"] or ""]]
    choices[0] |= {"tool_calls": calls, "finish_reason": line["finish_reason"]}
    served_by = line.get("served_by")
    form = None if line.get("parsed") is None and "parsed" in line else {"type": "json_object"}
    return Response.from_dict(
        fields | {"choices": choices, "origins": served_by and [served_by], "cache_keys": keys},
        response_format=form,
    )


def _read_cell(value: Any) -> Any:
    """The list in a cell of a table, which is JSON."""
    return json.loads(value) if value and isinstance(value, str) else value
