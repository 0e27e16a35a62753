"""The command `llm-provider view`: a page to look through the answers of a file, or of two side by side."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import click

from .._errors import LLMError, RequestError
from .._evidence.verification import ROWS
from .._json_values import JSONObject
from .._types.response import Response, Result, result_from_dict
from .._types.results import Results
from .map_forms import Table
from .output import PROGRAM
from .parsing import Command

_EPILOG = f"""\
FILES are answers, as `map` (JSON lines or .csv) and `Results.to_jsonl` write them, or
evidence of `export`. The page is one file: it needs no server and asks none. Failed rows come first. Of two
files, rows with the same input are side by side, and those that differ come before those that are the same.

  {PROGRAM} view answers.jsonl --open
  {PROGRAM} view monday.jsonl friday.jsonl --output days.html
"""
_DETAILS = re.compile(r" \[[^\[\]]*\]$")
"""The end of the text of an error: its provider, model and status."""
_OF_ERRORS = ("metadata", "model", "usage", "cost", "provider", "status", "code", "request_id", "retry_after")
_OUTPUT = "the page; default the name of FILE with .html, beside it"


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("files", metavar="FILE [FILE]", nargs=-1, type=click.Path(path_type=Path))
@click.option("--output", metavar="PAGE", type=click.Path(path_type=Path, dir_okay=False), help=_OUTPUT)
@click.option("--open", "opens", is_flag=True, help="show the page in the browser")
def run_view(files: tuple[Path, ...], output: Path | None, *, opens: bool) -> None:
    """Write a page to look through answers, or through those of two files side by side."""
    if len(files) not in (1, 2):
        raise click.UsageError(f"one file of answers is needed, or two to compare, not {len(files)}")
    names = [path.name for path in files]
    if len(set(names)) < len(names):
        names = list(map(str, files))
    page = output or files[0].with_name(f"{'-'.join(path.stem for path in files)}.html")
    runs = [Results(read_answers(path)) for path in files]
    runs[0].to_html(page, beside=None if len(runs) == 1 else runs[1], names=names)
    print(f"{page}: {sum(map(len, runs)):,} answers, {page.stat().st_size / 1e6:,.1f} MB")
    if opens:
        import webbrowser

        if not webbrowser.open(page.resolve().as_uri()):
            raise OSError(f"no browser was found; open {page} in one")


def read_answers(path: Path) -> Iterator[Result]:
    """The answers of a file; `RequestError` if a line is none."""
    for number, (text, line) in enumerate(_read_lines(path), start=1):
        if line == {} or not text.strip():
            # The header of a table.
            continue
        try:
            fields = json.loads(text) if line is None else line
            # A line of evidence has more than the result.
            fields = fields["result"] if "requests" in fields else fields
            yield _read_map_line(fields) if "request" in fields else result_from_dict(fields)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            if not text.endswith(b"\n"):
                # It is still being written, or was when the machine failed.
                return
            reason = f" ({error})" if isinstance(error, LLMError) else ""
            raise RequestError(
                f"{path} line {number} is no answer of `{PROGRAM} map` or `Results.to_jsonl`{reason}"
            ) from None


def _read_lines(path: Path) -> Iterator[tuple[bytes, JSONObject | None]]:
    """The lines of a file, and their content where the file is a table."""
    if is_zipfile(path):
        with ZipFile(path) as archive:
            if ROWS not in archive.namelist():
                raise RequestError(f"{path} is a zip file, and no evidence that `{PROGRAM} export` wrote")
            with archive.open(ROWS) as file:
                yield from ((text, None) for text in file)
        return
    with path.open("rb") as file:
        yield from Table().read(file) if path.suffix.lower() == ".csv" else ((text, None) for text in file)


def _read_map_line(line: JSONObject) -> Result:
    """A line of `map` as the result that it was made from, whose metadata are the row."""
    row = line.get("input")
    if row is None:
        row = {name.removeprefix("input."): cell for name, cell in line.items() if name.startswith("input.")}
    metadata = row if isinstance(row, dict) else {"input": row}
    if "id" in line and line["id"] not in metadata.values():
        metadata = {"id": line["id"], **metadata}
    fields = line | {"metadata": metadata, "provider": line.get("provider") or ""}
    if (error := line["error"]) is not None:
        shared = {name: fields.get(name) for name in _OF_ERRORS} | {"attempts": 0}
        message = error["message"]
        if "status" in error:
            # The end of the message is made of these fields again. A table does not have them.
            message = _DETAILS.sub("", message)
        else:
            shared["model"] = None
        return LLMError.from_dict(shared | error | {"error": error["type"], "message": message})
    texts, calls = (_read_cell(line.get(name)) or [] for name in ("texts", "tool_calls"))
    choices = [{"text": text, "tool_calls": []} for text in texts or [line["text"] or ""]]
    choices[0] |= {"tool_calls": calls, "finish_reason": line["finish_reason"]}
    served_by = line.get("served_by")
    form = None if line.get("parsed") is None and "parsed" in line else {"type": "json_object"}
    return Response.from_dict(
        fields | {"choices": choices, "origins": served_by and [served_by]}, response_format=form
    )


def _read_cell(value: Any) -> Any:
    """The list in a cell of a table, which is JSON."""
    return json.loads(value) if value and isinstance(value, str) else value
