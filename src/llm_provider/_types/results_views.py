"""`Results` as data frames, JSON lines and HTML. Imported when the first of these is made."""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import _html
from .._errors import LLMError, RequestError
from .._json_values import json_value
from .._runtime.imports import imported
from .response import Response, Result, call_text, result_from_dict

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

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

    If there are more results than rows, errors are chosen first.
    """
    chosen = list(range(len(results)))
    if len(results) > _html.ROWS:
        # The sort keeps the order among errors and among responses.
        errors_first = sorted(chosen, key=lambda index: not isinstance(results[index], LLMError))
        chosen = sorted(errors_first[: _html.ROWS])
    cells = columns([results[index] for index in chosen])
    metadata = [name for name in cells if name not in _COLUMNS]
    answered = {result.model for result in map(results.__getitem__, chosen) if isinstance(result, Response)}
    models = ["model"] if len(answered) > 1 else []
    titles = [*metadata, *models, "text", "finish_reason", *_FIGURES]
    rows = (
        [_html.figure(str(index)), *(_cell(title, cells, place, results[index]) for title in titles)]
        for place, index in enumerate(chosen)
    )
    heads = ["", *(_TITLES.get(title, title) for title in titles)]
    left_out = len(results) - len(chosen)
    return _html.block(
        _html.safe(summary), _html.table(heads, rows, wide="text", left_out=left_out) if results else ""
    )


def _cell(title: str, cells: Mapping[str, list[Any]], place: int, result: Result) -> str:
    value = cells[title][place]
    if title == "text":
        if isinstance(result, LLMError):
            return _html.failed(f"{type(result).__name__}: {result}")
        return _html.words(_described(result))
    if title in _FIGURES:
        if title == "cost" and cells["cached"][place]:
            return _html.figure("cached")
        unknown = "?" if title == "cost" else ""
        return _html.figure(unknown if value is None else _FIGURES[title](value))
    return _html.words("" if value is None else value if isinstance(value, str) else str(json_value(value)))


def _described(result: Response) -> str:
    """The text of a response, or its other parts if it has none."""
    parts = [result.text] if result.text else [*map(call_text, result.tool_calls)]
    if not parts:
        parts = [f"[{image.media_type}]" for image in result.images]
    if len(result.choices) > 1:
        parts.append(f"(sample 1 of {len(result.choices)})")
    return "\n".join(parts)
