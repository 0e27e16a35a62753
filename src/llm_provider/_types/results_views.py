"""`Results` as data frames, JSON lines and HTML. Imported when the first of these is made."""

from __future__ import annotations

import contextlib
import html
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._errors import LLMError, RequestError
from .._json_values import json_value
from .._runtime.imports import imported
from .response import Result, result_from_dict

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

_SHOWN_ROWS = 20
"""Rows of the HTML table. Errors come before responses if there are more results."""
_SHOWN_CHARACTERS = 200

_COLUMNS = (
    "text", "error", "error_message", "finish_reason", "model", "provider", "cost", "cached", "input_tokens",
    "output_tokens", "reasoning_output_tokens", "seconds", "attempts", "response_id",
)  # fmt: skip


def _row(result: Result) -> dict[str, Any]:
    """The columns of one result without its metadata."""
    if isinstance(result, LLMError):
        return {
            "error": type(result).__name__,
            "error_message": str(result),
            "model": result.model,
            "provider": result.provider,
            "cost": result.cost,
            "cached": False,
            "attempts": result.attempts,
            "response_id": result.request_id,
        }
    return {
        "text": result.text,
        "finish_reason": result.finish_reason,
        "model": result.model,
        "provider": result.provider,
        "cost": result.cost,
        "cached": result.cached,
        "input_tokens": result.usage.input_tokens,
        "output_tokens": result.usage.output_tokens,
        "reasoning_output_tokens": result.usage.reasoning_output_tokens,
        "seconds": result.timing.total,
        "attempts": result.timing.attempts,
        "response_id": result.id,
    }


def _metadata(result: Result) -> dict[str, Any]:
    """The metadata of a result as columns."""
    found = result.metadata
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        return {"metadata": found}
    # A name that is taken gets a prefix, so that neither value is lost.
    return {f"metadata_{name}" if name in _COLUMNS else str(name): value for name, value in found.items()}


def columns(results: Sequence[Result]) -> dict[str, list[Any]]:
    """The results by column, metadata first."""
    metadata = [_metadata(result) for result in results]
    rows = [_row(result) for result in results]
    names = dict.fromkeys(name for facts in metadata for name in facts)
    own = {name: [facts.get(name) for facts in metadata] for name in names}
    return own | {name: [row.get(name) for row in rows] for name in _COLUMNS}


def to_pandas(results: Sequence[Result]) -> pd.DataFrame:
    """See `Results.to_pandas`."""
    frame: pd.DataFrame = imported("pandas", "pip install pandas").DataFrame(columns(results))
    return frame


def to_polars(results: Sequence[Result]) -> pl.DataFrame:
    """See `Results.to_polars`."""
    # Metadata may mix numbers and text in a column.
    frame: pl.DataFrame = imported("polars", "pip install polars").DataFrame(columns(results), strict=False)
    return frame


def to_jsonl(results: Iterable[Result], path: str | os.PathLike[str]) -> None:
    """See `Results.to_jsonl`."""
    lines = (json.dumps(result.to_dict(), ensure_ascii=False) + "\n" for result in results)
    # A link is kept, and the file behind it is replaced.
    goal = Path(os.path.realpath(Path(path).expanduser()))
    if goal.exists() and not stat.S_ISREG(goal.stat().st_mode):
        # A pipe or a device cannot be replaced.
        with goal.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(lines)
        return
    part = goal.with_name(f".{goal.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(file.fileno())
        part.replace(goal)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def from_jsonl(path: str | os.PathLike[str]) -> Iterator[Result]:
    """See `Results.from_jsonl`."""
    with Path(path).expanduser().open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                try:
                    yield result_from_dict(json.loads(line))
                except (ValueError, AttributeError) as error:
                    raise RequestError(f"{path}, line {number}: {error}") from None


_FIGURES: dict[str, Callable[[Any], str]] = {
    "input_tokens": lambda tokens: f"{tokens:,}",
    "output_tokens": lambda tokens: f"{tokens:,}",
    "cost": lambda cost: f"{cost:.6f}",
    "seconds": lambda seconds: f"{seconds:.2f}",
}
_TITLES = {"input_tokens": "in", "output_tokens": "out", "cost": "cost $", "seconds": "s"}


def as_html(results: Sequence[Result], summary: str) -> str:
    """The results as an HTML table for a notebook: a line that sums them up, and the first of them.

    Colours are those of the page, so that it can be read on a light and on a dark background.
    """
    chosen = list(range(len(results)))
    if len(results) > _SHOWN_ROWS:
        # The sort keeps the order among errors and among responses.
        errors_first = sorted(chosen, key=lambda index: not isinstance(results[index], LLMError))
        chosen = sorted(errors_first[:_SHOWN_ROWS])
    shown = [results[index] for index in chosen]
    cells = columns(shown)
    metadata = [name for name in cells if name not in _COLUMNS]
    titles = [*metadata, "text", "finish_reason", *_FIGURES]
    head = "".join(f"<th>{html.escape(_TITLES.get(title, title))}</th>" for title in ("", *titles))
    body = "".join(
        f"<tr><td>{index}</td>{''.join(_cell(title, cells, place) for title in titles)}</tr>"
        for place, index in enumerate(chosen)
    )
    rest = len(results) - len(shown)
    more = f"<small>{rest:,} more are not shown</small>" if rest else ""
    return (
        f"<div><div>{html.escape(summary)}</div><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{more}</div>"
    )


def _cell(title: str, cells: Mapping[str, list[Any]], place: int) -> str:
    value, error = cells[title][place], cells["error"][place]
    style = "text-align: left; white-space: pre-wrap; overflow-wrap: anywhere; max-width: 40em"
    if title == "text" and error is not None:
        text = _cut(f"{error}: {cells['error_message'][place]}")
        return f'<td style="{style}"><b>⚠</b> <i>{html.escape(text)}</i></td>'
    if title in _FIGURES:
        if title == "cost" and cells["cached"][place]:
            return "<td>cached</td>"
        unknown = "?" if title == "cost" else ""
        return f"<td>{unknown if value is None else _FIGURES[title](value)}</td>"
    text = "" if value is None else value if isinstance(value, str) else str(json_value(value))
    return f'<td style="{style}">{html.escape(_cut(text))}</td>'


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
