"""The rows of a check, as lines of a terminal, JSON and Markdown."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import distributions
from typing import Literal, TypeAlias

from .._json_values import JSONObject
from .._runtime import clock

Verdict: TypeAlias = Literal["ok", "note", "skipped", "differs", "failed"]

BAD = frozenset({"differs", "failed"})
"""The verdicts that make the exit code 1."""

_PACKAGES = frozenset({"llm-provider-call", "openai", "anthropic", "google-genai"})


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was looked at."""

    verdict: Verdict
    provider: str
    name: str
    expected: str
    observed: str
    meaning: str = ""

    def __str__(self) -> str:
        line = f"{self.verdict:8} {self.provider:10} {self.name:20} {self.observed}"
        return (
            line
            if self.verdict in ("ok", "skipped")
            else f"{line}\n{'':40} expected: {self.expected}; {self.meaning}"
        )


def describe_run(rows: Sequence[Row], models: Iterable[str], cost: float) -> JSONObject:
    """The whole report as JSON values. The cost is in USD."""
    packages = {package.name: package.version for package in distributions() if package.name in _PACKAGES}
    return {
        "report": "llm-provider check 1",
        "date": time.strftime("%Y-%m-%d", time.gmtime(clock.time())),
        "versions": {
            "python": platform.python_version(),
            "system": platform.system(),
            **dict(sorted(packages.items())),
        },
        "models": sorted(models),
        "cost": cost,
        "counts": Counter(row.verdict for row in rows),
        "rows": [asdict(row) for row in rows],
    }


def write_markdown(report: JSONObject) -> str:
    """A report that can be read, and pasted into the form for reports."""
    counts = ", ".join(f"{number} {word}" for word, number in report["counts"].items())
    versions = ", ".join(" ".join(pair) for pair in report["versions"].items())
    lines = [
        f"{report['date']}: {', '.join(report['models'])}: {counts}; ${report['cost']:.6f}",
        "",
        versions,
        "",
    ]
    lines += ["| verdict | provider | row | expected | found | meaning |", "|---|---|---|---|---|---|"]
    lines += [f"| {' | '.join(cell.replace('|', '/') for cell in row.values())} |" for row in report["rows"]]
    return "\n".join(["# llm-provider check", "", *lines, ""])
