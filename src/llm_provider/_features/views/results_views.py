"""`Results` as JSON lines and HTML, and a `Response` as HTML. Imported when the first of these is made."""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from ..._core.errors import LLMError, RequestError, cite
from ..._core.json_values import JSONObject, json_value
from ..._core.runtime.files import read_lines, replace_file
from ..._core.runtime.json_pieces import LARGE, check_size
from ..._core.types.messages import INCOMPLETE, ToolCall
from ..._core.types.response import Response, Result, result_from_dict
from ..._core.types.results_table import AnyResult, OtherResult, metadata_columns, row_count, table_rows
from ..._core.types.usage import cost_text
from ..._core.words import format_usd
from . import blocks as html


def response_as_html(response: Any) -> str:
    """The samples of a `Response`, whose module imports this one, and a line about it."""
    parts: list[str] = []
    for number, sample in enumerate(response.samples[: html.ROWS], start=1):
        if len(response.choices) > 1:
            parts.append(html.small(f"sample {number} of {len(response.choices)}"))
        if sample.reasoning:
            parts.append(html.fold("reasoning", html.text(sample.reasoning)))
        if sample.text:
            parts.append(html.text(sample.text))
        parts += [html.code(call_text(call)) for call in sample.tool_calls]
        parts += [html.narrow(image._repr_html_()) for image in sample.images]
        parts.append("" if sample.audio is None else sample.audio._repr_html_())
        sources = [source.title or source.url or source.quote or "" for source in sample.citations]
        if titles := [html.cut(title) for title in dict.fromkeys(sources) if title]:
            parts.append(html.fold(f"sources: {len(titles)}", html.text("\n".join(titles))))
    return html.block(*parts, html.small(*_summarise(response)))


def _summarise(response: Any) -> Iterator[str]:
    """What a person wants to know of the answer besides its text."""
    who = response.served_by
    yield from (response.provider, response.model)
    if who is not None and who.host:
        yield f"served by {html.cut(who.host)}"
    yield f"{'' if response.finish_reason in ('stop', 'tool_calls') else '⚠ '}{response.finish_reason}"
    yield f"{response.usage.input_tokens:,} + {response.usage.output_tokens:,} tokens"
    yield from (cost_text(response), f"{response.timing.total:.2f} s")
    if len(response.rounds) > 1:
        yield f"{len(response.rounds)} rounds with {len(response.tool_results)} tool results"
    if called := dict.fromkeys(call.name for call in response.server_tool_calls):
        yield f"used {', '.join(called)}"
    if response.failures:
        yield f"{len(response.failures)} failed before"
    for passed in response.passed_over:
        yield f"instead of {passed.model} ({passed.error})"
    if response.dropped:
        yield f"dropped {', '.join(response.dropped)}"
    if response.metadata is not None:
        yield cite(response.metadata)


def call_text(call: ToolCall) -> str:
    return f"→ {call.name}({call.arguments})"


def to_jsonl(results: Iterable[AnyResult], path: str | os.PathLike[str]) -> None:
    """Write a line of JSON for each result, into a file that is then complete, or into a pipe."""
    encoder = json.JSONEncoder(ensure_ascii=False)

    def encode(result: AnyResult) -> Iterator[str]:
        is_large = isinstance(result, Response) and len(result.body) >= LARGE
        # In one part, a large one would stop the other threads for so long.
        yield from encoder.iterencode(result.to_dict()) if is_large else [encoder.encode(result.to_dict())]
        yield "\n"

    parts = (part for result in results for part in encode(result))
    write_file((part.encode("utf-8", "backslashreplace") for part in parts), path)


def write_file(lines: Iterable[bytes], path: str | os.PathLike[str]) -> None:
    """Write results into a file, or a pipe. If that fails, an earlier file is as it was."""
    safe = "the results are in memory, and an earlier file is as it was"
    with replace_file(Path(path).expanduser(), 0o666, safe) as file:
        file.writelines(lines)


_UNREADABLE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


def from_jsonl(path: str | os.PathLike[str]) -> Iterator[Result]:
    for number, line in enumerate(read_lines(Path(path).expanduser()), start=1):
        if line.strip():
            try:
                check_size(line)
                yield read_result(json.loads(line))
            except _UNREADABLE as error:
                raise RequestError(f"{path}, line {number}: {error}") from None


_DETAILS = re.compile(r" \[[^\[\]]*\]$")
"""The end of the text of an error: its provider, model and status."""
_STATUS = re.compile(r"\bHTTP (\d{3})[^\[\]]*\]$")
_OF_ERRORS = (
    "metadata", "model", "usage", "cost", "cost_bounds", "provider", "status", "code", "request_id",
    "retry_after", "prompt",
)  # fmt: skip


def read_result(fields: JSONObject) -> Any:
    """The result of a line of `to_jsonl`, or of `map`."""
    return read_map_line(fields) if "request" in fields else result_from_dict(fields)


def read_map_line(line: JSONObject) -> Result:
    """A line of `map` as the result that it was made from, whose metadata are the row."""
    row = line.get("input")
    if row is None:
        row = {name.removeprefix("input."): cell for name, cell in line.items() if name.startswith("input.")}
    metadata = row if isinstance(row, dict) else {"input": row}
    if "id" in line and metadata.get("id") != line["id"]:
        metadata = {"id": line["id"], **metadata}
    # The id of a line is the row's, and no request's.
    fields = line | {"metadata": metadata, "provider": line.get("provider") or "", "id": None}
    if "score" in line:
        # In a table a score is JSON.
        score = json.loads(line["score"] or "null") if isinstance(line["score"], str) else line["score"]
        fields["score_values"] = score if isinstance(score, list) else [score]
    # An answer that was refused has an error beside its finish reason.
    if (error := line["error"]) is not None and not line["finish_reason"]:
        shared = {name: fields.get(name) for name in _OF_ERRORS} | {"attempts": 0}
        shared |= {name: fields[name] for name in ("score_values",) if name in fields}
        # The end of the message is made of these fields again.
        message = _DETAILS.sub("", error["message"])
        if "status" not in error and (status := _STATUS.search(error["message"])):
            shared["status"] = int(status[1])  # a table has it in the message alone
        return LLMError.from_dict(shared | error | {"error": error["type"], "message": message})
    cells = (line.get(name) or [] for name in ("texts", "tool_calls", "cache_keys"))
    # In a table a list is JSON.
    texts, calls, keys = (json.loads(cell) if isinstance(cell, str) else cell for cell in cells)
    choices = [{"text": text, "tool_calls": []} for text in texts or [line["text"] or ""]]
    choices[0] |= {"tool_calls": calls, "finish_reason": line["finish_reason"]}
    served_by = line.get("served_by")
    form = None if line.get("parsed") is None and "parsed" in line else {"type": "json_object"}
    return Response.from_dict(
        fields | {"choices": choices, "origins": served_by and [served_by], "cache_keys": keys},
        response_format=form,
    )


_FIGURES: dict[str, Callable[[Any], str]] = {
    "input_tokens": lambda tokens: f"{tokens:,}",
    "output_tokens": lambda tokens: f"{tokens:,}",
    "cost": format_usd,
    "seconds": lambda seconds: f"{seconds:.2f}",
}
_TITLES = {
    "text": "answer",
    "finish_reason": "finish",
    "input_tokens": "in",
    "output_tokens": "out",
    "seconds": "s",
}


def is_score(name: str) -> bool:
    """Whether a column has scores of the answers."""
    return name.partition(".")[0] in ("score", "scores")


def as_html(results: Sequence[AnyResult], summary: str) -> str:
    """The results as an HTML table: a line that sums them up, and the first samples, or rather errors."""
    # The sort keeps the order among errors and among responses.
    errors_first = sorted(range(len(results)), key=lambda index: not isinstance(results[index], LLMError))
    samples = ((index, row) for index in errors_first for row in table_rows([results[index]]))
    rows = sorted(islice(samples, html.ROWS), key=itemgetter(0))
    own = [metadata_columns(results[index]) for index, _ in rows]
    models = dict.fromkeys(row["model"] for _, row in rows if "error" not in row)
    named = dict.fromkeys(name for values in (*own, *(row for _, row in rows)) for name in values)
    has_prompts = any(row["prompt"] is not None for _, row in rows)
    titles = [
        *(["sample"] if any(row["sample"] for _, row in rows) else ()),
        *(["prompt"] if has_prompts else ()),
        "text",
        *filter(is_score, named),
        *(["model"] if len(models) > 1 else ()),
        *dict.fromkeys(name for values in own for name in values if not is_score(name)),
        *(["finish_reason"] if any(row.get("finish_reason") in INCOMPLETE for _, row in rows) else ()),
        *_FIGURES,
    ]
    if len(models) == 1:
        summary = " · ".join((*filter(None, models), summary))
    cells = []
    for (index, row), values in zip(rows, own, strict=True):
        result = results[index]
        label = str(index if result.row_label is None else result.row_label.value)
        cells.append([html.figure(label), *(_cell(title, values | row, result) for title in titles)])
    heads = ["", *(_TITLES.get(title, title) for title in titles)]
    left_out = sum(map(row_count, results)) - len(rows)
    table = html.table(heads, cells, wide=("prompt", "answer"), left_out=left_out) if results else ""
    return html.block(html.safe(summary), table)


def _cell(title: str, row: Mapping[str, Any], result: AnyResult) -> str:
    value = row.get(title)
    if title == "text":
        if isinstance(result, OtherResult):
            return html.words(result.row_text(row))
        if "error" in row:
            return html.failure(f"{type(result).__name__}: {result}")
        return html.words(_describe_parsed(row) or _describe(result.samples[row["sample"]]))
    if title == "prompt":
        return html.words("" if result.prompt is None else _question(json_value(result.prompt)))
    if title in _FIGURES:
        if title == "cost" and row["cached"]:
            return html.figure("cached")
        unknown = "?" if title == "cost" else ""
        return html.figure(unknown if value is None else _FIGURES[title](value))
    return html.words("" if value is None else value if isinstance(value, str) else str(json_value(value)))


def _describe_parsed(row: Mapping[str, Any]) -> str:
    """The fields of a parsed answer, a line for each; empty if it was not parsed."""
    fields = {name: value for name, value in row.items() if name.partition(".")[0] == "parsed"}
    return "\n".join(f"{name.removeprefix('parsed.')}: {value}" for name, value in fields.items())


def _question(prompt: Any) -> str:
    """The text of a prompt; of messages, the last one of the user."""
    if not isinstance(prompt, list):
        return str(prompt)
    messages = [message for message in prompt if isinstance(message, dict)]
    last = next((each for each in reversed(messages) if each.get("role") == "user"), (messages or [{}])[-1])
    content = last.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return "\n".join(
        str(part.get("text") or f"[{part.get('type')}]") for part in parts if isinstance(part, dict)
    )


def _describe(sample: Response) -> str:
    """The text of a sample, or its other parts if it has none."""
    parts = [sample.text] if sample.text else [*map(call_text, sample.tool_calls)]
    return "\n".join(parts or [f"[{image.media_type}]" for image in sample.images])
