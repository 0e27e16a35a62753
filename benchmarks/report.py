"""Results: one JSON file, one page and one picture per scenario, and docs/performance.md from all of them."""

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

from .goals import GOALS

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "performance.md"
TEMPLATE = HERE / "performance.template.md"

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


def write_page() -> Path:
    """Write docs/performance.md from the template and every committed result."""
    found = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))
    }
    results = {name: facts for name, facts in found.items() if "tables" in facts}
    measured: dict[str, float] = {}
    for facts in results.values():
        measured.update(facts["measured"])
    sections = [_section(name, facts) for name, facts in results.items()]
    text = TEMPLATE.read_text(encoding="utf-8")
    text = text.replace("<!-- goals -->", goals_table(None, measured))
    PAGE.write_text(text.replace("<!-- results -->", "\n\n".join(sections)), encoding="utf-8")
    return PAGE


def _section(name: str, facts: Mapping[str, Any]) -> str:
    place = "../benchmarks/results"
    parts = [f"### {facts['title']}", facts["text"]]
    for table in facts["tables"]:
        parts += [f"**{table['title']}**", _table(table["columns"], table["rows"]), *table["notes"]]
    if facts["problems"]:
        parts.append("**Some calls failed**: see the page of the result.")
    if facts["charts"]:
        parts.append(f"![{facts['title']}]({place}/{name}.png)")
    parts.append(f"`{facts['command']}`, {facts['date']}: [versions and machine]({place}/{name}.md).")
    return "\n\n".join(parts)


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
