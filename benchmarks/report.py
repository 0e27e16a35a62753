"""Results: one JSON file, one page and one picture per scenario, and two pages of docs/ from all of them."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .goals import GOALS, Goal

HERE = Path(__file__).parent
RESULTS = HERE / "results"
DOCS = HERE.parent / "docs"
SUMMARY = "performance"
DATA = "performance-data"
"""The names of the two pages in `DOCS`, and of their templates."""

SHOWN_CLIENTS = {
    "raw aiohttp": "raw aiohttp",
    "this library": "this library",
    "this library, with a stored write": "this library, with a stored write",
    **dict.fromkeys(
        ("openai 3 as documented", "anthropic as documented", "google-genai as documented"),
        "the provider's SDK as documented",
    ),
    "litellm": "litellm",
}
"""The clients in the summary, and their names there."""
HEADLINES = (
    "rate_of_litellm",
    "rate_of_sdk",
    "latency_of_litellm",
    "stream_of_sdk",
    "threads_of_sdk",
    "import_of_litellm",
    "first_call_of_sdk",
    "many_hits",
    "rerun",
    "memory_growth",
    "kills_lost",
    "ledger_difference",
)
"""The goals in the summary, besides those that are missed."""

Cell = str | int | float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A printed table; None is an empty cell."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture: one line, or one group of bars, per series over the labels of the x axis."""

    title: str
    x: Sequence[str | int | float]
    y_label: str
    series: Mapping[str, Sequence[float | None]]
    x_label: str = ""
    kind: str = "bars"
    """"bars" or "lines"."""
    logarithmic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a scenario.

    `measured` holds values by the names of `goals.GOALS`. `versions` maps a client or environment to the
    versions of its packages. `data` holds further figures for readers who compute with them.
    """

    title: str
    text: str
    tables: Sequence[Table]
    charts: Sequence[Chart] = ()
    measured: Mapping[str, float] = field(default_factory=dict)
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    rounds: int | None = None
    problems: Sequence[str] = ()
    """Descriptions of failures."""
    data: Any = None


def machine() -> str:
    """A description of the machine: processor, cores, system, interpreter.

    >>> "core" in machine()
    True
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{_processor()}, {cores} cores, {platform.system()} {platform.release()}, {interpreter}"


def document(result: Result, command: str) -> dict[str, Any]:
    """The content of the JSON file: the result with its date, machine and command."""
    stamp = {"command": command, "date": datetime.now(UTC).date().isoformat(), "machine": machine()}
    facts = {**stamp, **_finite(asdict(result))}
    facts["measured"] = {name: value for name, value in facts["measured"].items() if value is not None}
    return facts


def write_results(name: str, result: Result, command: str) -> Path:
    """Write `results/<name>.json`, `.md` and, where there are charts, `.png`.

    Args:
        name: The name of the scenario.
        result: Its result.
        command: The command line that measures it again.

    Returns:
        The page.
    """
    RESULTS.mkdir(exist_ok=True)
    facts = document(result, command)
    source = RESULTS / f"{name}.json"
    source.write_text(_json(facts), encoding="utf-8")
    if result.charts:
        # Imported here, because most runs need no picture; matplotlib is in a separate environment.
        from .environments import run_in

        run_in("plot", "-m", "benchmarks.plot", str(source), str(RESULTS / f"{name}.png"))
    page = RESULTS / f"{name}.md"
    page.write_text(markdown(name, facts), encoding="utf-8")
    return page


def write_lines(name: str, title: str, command: str, text: str, lines: Sequence[str]) -> None:
    """Write `results/<name>.md` of a program that is no scenario: a title, how it was made, and its lines."""
    stamp = f"{datetime.now(UTC).date()}, Python {platform.python_version()}, {os.cpu_count()} cores"
    head = f"# {title}\n\nMade by `python -m benchmarks.{command} --write` on {stamp}. {text}\n\n"
    (RESULTS / f"{name}.md").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


def markdown(name: str, facts: Mapping[str, Any]) -> str:
    """The page of a result."""
    rounds = "" if facts["rounds"] is None else f" Medians of {facts['rounds']} interleaved rounds."
    parts = [
        f"# {facts['title']}",
        facts["text"],
        f"Measured by `{facts['command']}` on {facts['date']}: {facts['machine']}.{rounds}",
    ]
    if facts["charts"]:
        parts.append(f"![{facts['title']}]({name}.png)")
    for table in facts["tables"]:
        parts += [f"## {table['title']}", _table(table["columns"], table["rows"]), *table["notes"]]
    if facts["problems"]:
        parts += ["## Failures", "\n".join(f"- {one}" for one in facts["problems"])]
    compared = goals_table(name, facts["measured"])
    if compared:
        parts += ["## Goals", compared]
    if facts["versions"]:
        rows = [
            [client, ", ".join(f"{package} {version}" for package, version in packages.items())]
            for client, packages in facts["versions"].items()
        ]
        parts += ["## Versions", _table(("client", "packages"), rows)]
    return "\n\n".join(parts) + "\n"


def goals_table(scenario: str | None, measured: Mapping[str, float]) -> str:
    """The goals of a scenario (None: of all) beside the measured values; empty without goals."""
    rows = [
        [goal.statement, goal.shown_limit, *_compared(goal.name, measured)]
        for goal in GOALS
        if scenario in (None, goal.scenario)
    ]
    return _table(("goal", "limit", "measured", ""), rows) if rows else ""


def write_pages() -> tuple[Path, Path]:
    """Write the two pages of docs/ from their templates and every committed result."""
    found = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))
    }
    results = {name: facts for name, facts in found.items() if "tables" in facts}
    measured: dict[str, float] = {}
    for facts in results.values():
        measured.update(facts["measured"])
    missed = [goal for goal in GOALS if goal.name in measured and not goal.met(measured[goal.name])]
    met = sum(goal.name in measured for goal in GOALS) - len(missed)
    summary = {
        "cpu": _cpu_of_a_call(results.get("calls")),
        "headlines": _measured([goal for goal in GOALS if goal.name in HEADLINES], measured),
        "met": str(met),
        "all": str(len(GOALS)),
        "missed": _measured(missed, measured),
    }
    data = {"goals": goals_table(None, measured), "results": _results_table(results)}
    return _fill(SUMMARY, summary), _fill(DATA, data)


def _measured(goals: Sequence[Goal], measured: Mapping[str, float]) -> str:
    rows = [[goal.statement, goal.shown_limit, _compared(goal.name, measured)[0]] for goal in goals]
    return _table(("", "goal", "measured"), rows)


def _fill(name: str, parts: Mapping[str, str]) -> Path:
    """Write a page from its template, with each comment replaced by the part of that name."""
    text = (HERE / f"{name}.template.md").read_text(encoding="utf-8")
    for part, content in parts.items():
        text = text.replace(f"<!-- {part} -->", content)
    page = DOCS / f"{name}.md"
    page.write_text(text, encoding="utf-8")
    return page


def _cpu_of_a_call(facts: Mapping[str, Any] | None) -> str:
    """The CPU time of a call by client and provider; empty if the scenario was not measured."""
    columns: dict[str, dict[str, float]] = {}
    for table in facts["tables"][:3] if facts else ():
        column = columns[table["title"].partition(":")[0]] = {}
        for client, cpu, *_ in table["rows"]:
            if client in SHOWN_CLIENTS:
                column[SHOWN_CLIENTS[client]] = cpu
    clients = dict.fromkeys(SHOWN_CLIENTS.values())
    rows = [[client, *(column.get(client) for column in columns.values())] for client in clients]
    return _table(("client", *columns), rows)


def _results_table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """A row for each result, with a link to its page."""
    rows = [
        [f"[{facts['title']}](../benchmarks/results/{name}.md)", f"`{facts['command']}`", facts["date"]]
        for name, facts in results.items()
    ]
    return _table(("result", "command", "date"), rows)


def _compared(name: str, measured: Mapping[str, float]) -> list[Cell]:
    goal = next(goal for goal in GOALS if goal.name == name)
    value = measured.get(name)
    if value is None:
        return [None, "not measured"]
    return [f"{shown(value)} {goal.unit}".strip(), "" if goal.met(value) else "**missed**"]


def _table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A Markdown table; figures are aligned to the right.

    >>> print(_table(("client", "µs"), [("ours", 390.4), ("litellm", None)]))
    | client | µs |
    |---|---:|
    | ours | 390 |
    | litellm |  |
    """
    figures = [any(isinstance(row[place], int | float) for row in rows) for place in range(len(columns))]
    lines = [f"| {' | '.join(columns)} |", f"|{'|'.join('---:' if one else '---' for one in figures)}|"]
    lines += [f"| {' | '.join(shown(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def shown(cell: Cell) -> str:
    """The text of a cell: floats with about three figures, None as an empty text.

    >>> shown(0.1234), shown(12.345), shown(1234.5), shown(None), shown(7)
    ('0.123', '12.3', '1,234', '', '7')
    """
    if cell is None:
        return ""
    if not isinstance(cell, float):
        return f"{cell:,}" if isinstance(cell, int) else cell
    size = abs(cell)
    return f"{cell:,.0f}" if size >= 100 else f"{cell:.1f}" if size >= 10 else f"{cell:.3g}"


def _finite(value: Any) -> Any:
    """The same value with None in place of floats that JSON cannot represent.

    >>> _finite({"a": [1.5, float("nan")]})
    {'a': [1.5, None]}
    """
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _json(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, indent=1, sort_keys=False) + "\n"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
