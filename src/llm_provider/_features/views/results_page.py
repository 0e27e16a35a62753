"""`Results` as a page: a table to filter, sort and search, whose rows open. Imported when one is written.

The page is one file. Its style, its script and the components in `page/vendor` are copied into it, and its
policy lets nothing else run and nothing be fetched. It has no text of a model but in its JSON.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import math
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain, repeat, zip_longest
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ..._core import doors
from ..._core.errors import LLMError, RequestError, cite
from ..._core.json_values import JSONObject, json_value
from ..._core.types.messages import INCOMPLETE
from ..._core.types.response import Response
from ..._core.types.results_table import (
    USD,
    AnyResult,
    OtherResult,
    columns_with_index,
    name_models,
    row_count,
)
from ..._core.types.score_values import with_scores
from ..._core.types.usage import Cost
from .results_views import is_score, write_file

State: TypeAlias = Literal["failed", "incomplete", "single", "different", "same", "ok"]
STATES: tuple[State, ...] = ("failed", "incomplete", "single", "different", "same", "ok")
"""The states of rows in the order of the page. The last is of a single run, the three before of two."""

_FOLDER = Path(__file__).parent / "page"
_COMPONENTS = ("ag-grid-community", "markdown-it", "diff")
"""The packages in `page/vendor`: the table, Markdown, and the differences of two answers, for two runs."""
_POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Images of other types, such as SVG, may hold addresses."""
_EXACT = 2**53
"""JavaScript has no larger integers."""
_ZEROS = ("sample", "seconds", "attempts", "cache_read_input_tokens", "reasoning_output_tokens")
"""Columns that a page leaves out if they have nothing but zeros."""
_SHARED = (
    *USD, "input_tokens", "output_tokens", "cache_read_input_tokens", "reasoning_output_tokens", "attempts",
    "seconds",
)  # fmt: skip
"""Columns of the call: only the row that carries them has them, and further samples have nothing, not 0."""
_EXPECTED = ("expected", "target", "reference", "gold", "ideal", "correct", "answer", "label")
"""Names of metadata for the answer that was expected: it stands beside the answer."""
_BARS = 12
"""Bars of a histogram."""
_MEDIA = 200
"""Characters of a part of a message that is no text."""


def check_results(name: str, results: object) -> None:
    kinds = (Response, LLMError, OtherResult)
    if not isinstance(results, list) or not all(isinstance(each, kinds) for each in results):
        example = f", such as results[{next(iter(results), '')!r}]" if isinstance(results, Mapping) else ""
        raise RequestError(f"{name} takes the Results of one run{example}, not {cite(results)}")


def _name_runs(runs: Sequence[Sequence[AnyResult]], chosen_names: Sequence[str]) -> Sequence[str]:
    """The names that were chosen, one for each run, else its models, and its number if that is needed."""
    if chosen_names:
        if isinstance(chosen_names, str) or len(chosen_names) != len(runs):
            raise RequestError(
                f"names takes a list with a name for each of {len(runs)} runs, not {cite(chosen_names)}"
            )
        return chosen_names
    names = [", ".join(dict.fromkeys(name_models(run))) or "no results" for run in runs]
    alike = len(set(names)) < len(names)
    return [f"{name} ({number})" if alike else name for number, name in enumerate(names, start=1)]


def write_page(
    runs: Sequence[Sequence[AnyResult]], names: Sequence[str], sums: Sequence[str],
    path: str | os.PathLike[str],
) -> None:  # fmt: skip
    """Write the page of one run, or of two side by side. If that fails, an earlier file is as it was.

    `names` are empty, or one for each run. `sums` has a line that sums up each.
    """
    tables = list(map(_Table, runs, _name_runs(runs, names), sums))
    rows = sorted(_join_rows(tables), key=lambda row: STATES.index(row[0]))
    states = Counter(state for state, *_ in rows)
    write_file(_page_parts(tables, rows, states), path)


@functools.cache
def _read_scripts(runs: int) -> tuple[tuple[str, ...], str]:
    """The scripts of a page of so many runs, and their digests for its content policy."""
    scripts = []
    for name in _COMPONENTS[: 1 + runs]:
        ends = (".min.js", ".LICENSE.txt")
        code, licence = ((_FOLDER / "vendor" / f"{name}{end}").read_text(encoding="utf-8") for end in ends)
        # Each copy of a component must have its licence.
        scripts.append(f"/*! {name}\n\n{licence}*/\n{code}")
    scripts.append((_FOLDER / "page.js").read_text(encoding="utf-8"))
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    return tuple(scripts), " ".join(f"'sha256-{value}'" for value in hashes)


def _page_parts(tables: list[_Table], rows: list[_Row], states: Counter[State]) -> Iterator[bytes]:
    scripts, hashes = _read_scripts(len(tables))
    page = (_FOLDER / "page.html").read_text(encoding="utf-8")
    head, _, rest = page.partition("{data}")
    policy = _POLICY.format(scripts=hashes)
    style = (_FOLDER / "page.css").read_text(encoding="utf-8")
    yield head.replace("{policy}", policy).replace("{style}", style).encode()
    line = 1
    for table in tables:
        table.head["first_prompt"] = line if table.prompts else None
        line += len(table.prompts)
    about: JSONObject = {
        "first_row": max(line, 2) + 1,
        "runs": [table.head for table in tables],
        "states": {name: states[name] for name in STATES},
        "expected": _EXPECTED,
    }
    # A prompt or a row is a line, which the page reads when it needs it.
    yield embed_json(about | {"same": list(_same_columns(tables, rows))})[:-1]
    yield b',"prompts":[\n'
    yield from _lines(prompt for table in tables for prompt in table.prompts)
    yield b'],"rows":[\n'
    yield from _lines(
        [None if at is None else table.row(at) for table, at in zip(tables, positions, strict=True)]
        for _, *positions in rows
    )
    yield b"]}\n"
    # A replacement of `str.replace` is taken as it is, whatever is in the scripts.
    yield rest.replace("{scripts}", "".join(f"<script>{script}</script>\n" for script in scripts)).encode()


def _lines(values: Iterable[object]) -> Iterator[bytes]:
    for number, value in enumerate(values):
        yield (b",\n" if number else b"") + embed_json(value)
    yield b"\n"


def embed_json(value: object) -> bytes:
    r"""JSON that ends no element of HTML: no text in it can close the script around it."""
    text = json.dumps(_page_value(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    # A lone surrogate has no UTF-8. It is escaped in JSON as Python does.
    return text.encode("utf-8", "backslashreplace")


def _page_value(value: object) -> Any:
    """A value as JavaScript has it. A number that it lacks becomes text."""
    plain = value if isinstance(value, (dict, list, str, bool)) or value is None else json_value(value)
    if isinstance(plain, dict):
        return {str(name): _page_value(part) for name, part in plain.items()}
    if isinstance(plain, list):
        return [_page_value(part) for part in plain]
    is_exact = (
        math.isfinite(plain) if isinstance(plain, float) else type(plain) is not int or abs(plain) <= _EXACT
    )
    return plain if is_exact else str(plain)


def _page_atom(value: object) -> Any:
    """A cell as JavaScript has it. A list or an object is its JSON."""
    plain = value if type(value) is str else _page_value(value)
    return json.dumps(plain, ensure_ascii=False) if isinstance(plain, (dict, list)) else plain


_Row: TypeAlias = tuple[State, *tuple[int | None, ...]]
"""The state of a row of the page, and the row of each table in it; None if it has none."""


def _says_something(name: str, cell: object) -> bool:
    """Whether a cell is neither empty nor a zero. A user's value may have no truth value."""
    if isinstance(cell, (str, int, float)):
        return cell != "" and (name not in _ZEROS or cell != 0)
    return cell is not None


class _Table:
    """The rows of one run."""

    def __init__(self, results: Sequence[AnyResult], name: str, summary: str) -> None:
        self.results, table = results, columns_with_index(results)
        prompts = table.pop("prompt")
        names = [name for name, cells in table.items() if any(map(_says_something, repeat(name), cells))]
        for twin, other in (("index", "input_index"), ("cost_at_least", "cost"), ("cost_at_most", "cost")):
            if twin in names and list(map(str, table[twin])) == list(map(str, table[other])):
                names.remove(twin)
        names = sorted([*names, "prompt"], key=_reading_order)
        self.names = names
        self.cells = table
        self.prompts = [_shorten_media(each.prompt) for each in (results if any(prompts) else ())]
        paid = Cost.of(result.price for result in results if not isinstance(result, LLMError))
        summary = f"{summary} paid · {paid} price of all rows when bought"
        self.head: JSONObject = {"name": name, "summary": summary, "columns": names}
        self.samples: list[AnyResult] = []
        self.of_result: list[list[int]] = []
        for result in results:
            samples, begin = [*getattr(result, "samples", ())], len(self.samples)
            # The row of an error, or the rows of a result that has no samples.
            samples += [result] * (row_count(result) - len(samples))
            self.of_result.append([*range(begin, begin + len(samples))])
            self.samples += samples
        self.carriers = {rows[0] for rows in self.of_result if rows}
        self.head["models"] = list(self.sum_up_models())
        self.head["numbers"] = dict(self.find_numbers())
        self.head["constants"] = dict(self.find_constants())

    def find_numbers(self) -> Iterator[tuple[str, float | None]]:
        """The columns with numbers, and the least amount above 0 of each column of USD."""
        for name in self.names:
            cells = (cell for cell in self.cells.get(name, ()) if not isinstance(cell, (str, list, dict)))
            numbers = (atom for atom in map(_page_value, cells) if _is_number(atom))
            if (first := next(numbers, None)) is not None:
                amounts = (abs(each) for each in chain([first], numbers) if each)
                yield name, min(amounts, default=None) if name in USD else None

    def find_constants(self) -> Iterator[tuple[str, object]]:
        """The columns that have one value in all rows, failed rows apart, and this value."""
        answered = [at for at, error in enumerate(self.cells["error"]) if error is None]
        for name in self.names if answered else ():
            # The other samples of a call lack what they share with its first one.
            cells = ((self.cell(name, at), at in self.carriers) for at in answered)
            atoms = (_page_atom(cell) for cell, is_carrier in cells if is_carrier or cell is not None)
            first = next(atoms, None)
            if all(atom == first for atom in atoms):
                yield name, first

    def cell(self, name: str, position: int) -> Any:
        """What a row shows in a column; a prompt is a line of its own."""
        is_shared = name in _SHARED and position not in self.carriers
        return None if name not in self.cells or is_shared else self.cells[name][position]

    def prompt(self, position: int) -> Any:
        return self.prompts[self.cells["input_index"][position]] if self.prompts else None

    def row(self, position: int) -> JSONObject:
        """What the page gets of a row: its cells, and what it shows when it is open."""
        is_carrier = position in self.carriers
        cells = [self.cell(name, position) for name in self.names]
        return {"cells": cells, "extra": _read_extra(self.samples[position], is_carrier)}

    def sum_up_models(self) -> Iterator[JSONObject]:
        """The strip above the table: what each model did, and the lengths of its answers or its scores."""
        scores, scored = doors.score_summaries, self._list_scored_results()
        groups: defaultdict[str, list[int]] = defaultdict(list)
        for index, model in enumerate(name_models(self.results)):
            groups[model].append(index)
        name, means = "answer length", dict[str, JSONObject]()
        if scored:
            table = scores.summarize_scores(scored, None, None)
            name = table.rows[0]["score"]
            texts = zip(table.rows, table.texts(), strict=True)
            means = {row["model"]: text for row, text in texts if row["score"] == name}
        for model, indices in groups.items():
            each = [self.results[index] for index in indices]
            answers = [result for result in each if not isinstance(result, LLMError)]
            rows = [self.of_result[index] for index in indices]
            line: JSONObject = {
                "model": "no model" if model == "None" else model, "errors": len(each) - len(answers),
                "price": str(Cost.of(result.price for result in answers)),
                "cost": str(Cost.of(map(Cost.of_result, each))),
                "counts": {
                    "questions": len({*map(scores.identify, each, indices)}), "samples": sum(map(len, rows)),
                },
            }  # fmt: skip
            # Lines of `map` have no time.
            seconds = sorted(each.timing.total for each in answers if not each.cached and each.timing.total)
            stored = "stored" if answers and all(each.cached for each in answers) else "\N{EN DASH}"
            line["seconds"] = seconds[len(seconds) // 2] if seconds else stored
            if scored:
                line |= {part: means[model][part] for part in ("mean", "interval", *line["counts"])}
                numbers = [value for index in indices for value in scores.read_values(scored[index], name)]
            else:
                answer_texts = (self.cells["text"][at] for at in chain(*rows))
                numbers = [float(len(text)) for text in answer_texts if isinstance(text, str)]
            yield line | {"bars": _count_bars(numbers), "bars_of": name}

    def _list_scored_results(self) -> Sequence[AnyResult]:
        """The results, if one has a score; else with the scores in their metadata, and none without these."""
        has_scores = doors.score_summaries.has_scores
        if has_scores(self.results):
            return self.results
        name = next((name for name in self.names if is_score(name)), None)
        atoms = map(_page_atom, [None] * len(self.samples) if name is None else self.cells[name])
        cells = [float(atom) if isinstance(atom, bool) or _is_number(atom) else None for atom in atoms]
        pairs = zip(self.results, self.of_result, strict=True)
        scored = [with_scores(result, [cells[at] for at in part]) for result, part in pairs]
        return scored if has_scores(scored) else []

    def answer(self, position: int) -> tuple[object, ...]:
        """What makes two answers different."""
        sample = self.samples[position]
        calls = [(call.name, call.arguments) for call in _parts(sample, "tool_calls")]
        return (*(self.cells[name][position] for name in ("text", "error")), calls)

    def state(self, position: int) -> State:
        if self.cells["error"][position] is not None:
            return "failed"
        return "incomplete" if self.cells["finish_reason"][position] in INCOMPLETE else "ok"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _reading_order(name: str) -> int:
    """The place of a column: question, answer, scores, who answered, the price, and then what is left."""
    answer = ("text", *_EXPECTED, "metadata", "parsed", "score", "scores")
    order = ("input_index", "sample", "prompt", *answer, "model", "price", "cost")
    first = name if name in order else name.lower().partition(".")[0]
    return order.index(first) if first in order else len(order)


def _count_bars(numbers: list[float]) -> JSONObject | None:
    """How many numbers lie in each part of their range."""
    if not numbers:
        return None
    low, high = min(numbers), max(numbers)
    # In halves, as the distance of two floats may be none.
    half = high / 2 - low / 2 or 1.0
    counts = Counter(min(_BARS - 1, int((number / 2 - low / 2) / half * _BARS)) for number in numbers)
    return {"low": low, "high": high, "counts": [counts[bar] for bar in range(_BARS)]}


def _join_rows(tables: list[_Table]) -> Iterator[_Row]:
    if len(tables) == 1:
        yield from ((tables[0].state(row), row) for row in range(len(tables[0].samples)))
        return
    first, second = tables
    for left, right in pair_results(first.results, second.results):
        ours = [] if left is None else first.of_result[left]
        theirs = [] if right is None else second.of_result[right]
        for row, other in zip_longest(ours, theirs):
            ends = [table.state(at) for table, at in ((first, row), (second, other)) if at is not None]
            worst = min(ends, key=STATES.index)
            if worst == "ok" and len(ends) == 1:
                worst = "single"
            elif worst == "ok":
                worst = "same" if first.answer(row) == second.answer(other) else "different"
            yield worst, row, other


def _same_columns(tables: Sequence[_Table], rows: Sequence[_Row]) -> Iterator[str]:
    """The columns whose cells are equal in both runs. A failed row may lack its prompt."""
    if len(tables) < 2:
        return
    first, second = tables
    # A state, and the row of each run.
    pairs: list[Any] = [row[1:] for row in rows if None not in row]
    for name in dict.fromkeys([*first.names, *second.names]):
        if name == "prompt":
            prompts = ((first.prompt(left), second.prompt(right)) for left, right in pairs)
            same = all(None in both or both[0] == both[1] for both in prompts)
        else:
            cells = ((first.cell(name, left), second.cell(name, right)) for left, right in pairs)
            same = all(_page_atom(left) == _page_atom(right) for left, right in cells)
        if same:
            yield name


def _shorten_media(prompt: object) -> object:
    """A prompt, in which a file is a short text."""
    messages = json_value(prompt)
    if not isinstance(messages, list):
        return messages
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list):
            for index, part in enumerate(content):
                if not isinstance(part, dict) or not isinstance(part.get("text"), str):
                    content[index] = {"text": f"[{json.dumps(part, ensure_ascii=False)[:_MEDIA]}]"}
    return messages


def _parts(sample: object, name: str) -> Iterable[Any]:
    """A list of a response; empty where it has none, or where the reply cannot be read."""
    if not isinstance(sample, Response):
        return ()
    try:
        return getattr(sample, name) or ()
    except (ValueError, TypeError, KeyError, AttributeError):
        # A program may have made the response, with a reply that is none.
        return ()


def _read_extra(sample: AnyResult, is_carrier: bool) -> JSONObject:
    """What an open row shows besides its cells. What is empty is left out."""
    usage = sample.usage if is_carrier else None
    counts = {} if usage is None else asdict(usage)
    cells = ("input_tokens", "output_tokens")
    facts = {name: count for name, count in counts.items() if count and name not in cells}
    details: JSONObject = {"facts": facts}
    details["failures"] = [asdict(failure) for failure in sample.failures]
    if isinstance(sample, Response):
        rounds = sample.tool_rounds
        details |= {
            "reasoning": sample.reasoning,
            "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in sample.tool_calls],
            "messages": None if rounds is None else _shorten_media(list(rounds.messages)),
            "server_tool_calls": json_value(list(_parts(sample, "server_tool_calls"))),
            "citations": [
                {name: getattr(source, name) for name in ("title", "url", "quote") if getattr(source, name)}
                for source in _parts(sample, "citations")
            ],
            "images": [
                {
                    "description": repr(image),
                    "address": f"data:{image.media_type};base64,{base64.b64encode(image.data).decode()}"
                    if image.data and image.media_type in _PICTURES
                    else None,
                }
                for image in _parts(sample, "images")
            ],
        }
        details["facts"] |= {
            "cost_source": sample.cost_source or sample.cost_unknown,
            "dropped": ", ".join(sample.dropped) or None,
        }
    elif isinstance(sample, LLMError):
        details["facts"] |= {"status": sample.status, "code": sample.code, "retryable": sample.retryable}
    return {name: value for name, value in details.items() if value}


def pair_results(
    first: Sequence[AnyResult], second: Sequence[AnyResult]
) -> Iterator[tuple[int | None, int | None]]:
    """The positions of results that belong together, in the order of the first run; None where one is alone.

    Results belong together if prompt and metadata are equal, else if they alone have their metadata, else if
    their prompts are equal, else if they have the same position in runs of the same length. Equal inputs are
    paired in their order.
    """
    left, right = (
        [_Input(result, position) for position, result in enumerate(run)] for run in (first, second)
    )
    keys: list[tuple[Callable[[_Input], Hashable], bool]] = [
        (lambda each: each.prompt and (each.prompt, each.identity), False),
        (lambda each: each.identity, True),
        (lambda each: each.prompt, False),
    ]
    if len(left) == len(right):
        keys.append((lambda each: each.position, False))
    partners: dict[int, int] = {}
    for key, only_unique in keys:
        matched = set(partners.values())
        ours = _group([each for each in left if each.position not in partners], key)
        theirs = _group([each for each in right if each.position not in matched], key)
        for value, positions in ours.items():
            if not only_unique or len(positions) == len(theirs[value]) == 1:
                partners.update(zip(positions, theirs[value], strict=False))
    yield from ((each.position, partners.get(each.position)) for each in left)
    matched = set(partners.values())
    yield from ((None, each.position) for each in right if each.position not in matched)


class _Input:
    """What is known of the input of a result."""

    def __init__(self, result: AnyResult, position: int) -> None:
        self.position = position
        self.prompt = None if result.prompt is None else _write(result.prompt)
        label = None if result.row_label is None else result.row_label.value
        known = (result.metadata, label)
        # A user's value may have no truth value.
        self.identity = None if all(each is None for each in known) else _write(known)


def _write(value: object) -> str:
    return json.dumps(json_value(value), sort_keys=True)


def _group(inputs: Sequence[_Input], key: Callable[[_Input], Hashable]) -> defaultdict[Hashable, list[int]]:
    groups: defaultdict[Hashable, list[int]] = defaultdict(list)
    for each in inputs:
        if (value := key(each)) is not None:
            groups[value].append(each.position)
    return groups
