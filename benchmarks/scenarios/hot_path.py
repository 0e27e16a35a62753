"""The path of a call in counts: instructions, garbage and blocks, the same on every run and machine.

In every environment that `make` has built; what is known of others is kept. A test compares with these.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from .. import callgrind
from ..hot_path import RENEW, ROOT, Count, baselines, environment, measured
from ..report import Cell, Result, Table
from . import Options

BUILT = (".venv", ".venv-highest", ".venv-with-litellm-3.*", ".venv-highest-3.*")

TEXT = (
    "Bytecode instructions are those of all threads, SDK and transport included; garbage is objects that "
    "only the garbage collector frees; blocks is the memory that a call holds while it waits for its "
    "answer, with its connection. `tests/test_hot_path.py` fails where one has grown by more than a tenth; "
    f"`{RENEW}` makes what is counted then the new measure."
)


def run(options: Options) -> Result:
    """Count everywhere, or, to see that it works, in this environment."""
    interpreters = [Path(sys.executable)] if options.quick or options.here else built()
    counts = {**baselines(), **dict(measured(interpreter) for interpreter in interpreters)}
    here = environment()
    tables = [_table(here, counts[here]), _packages(here, counts[here])]
    tables += [_table(name, counts[name]) for name in sorted(counts) if name != here]
    if callgrind.available() and not options.quick:
        tables.insert(1, _machine(here))
    return Result(title="The hot path in counts", text=TEXT, tables=tables, data={"counts": counts})


def built() -> list[Path]:
    """The interpreter of each environment of the project that is there."""
    found = [
        ready.parent / "bin" / "python" for name in BUILT for ready in sorted(ROOT.glob(f"{name}/.ready"))
    ]
    return found or [Path(sys.executable)]


def _table(name: str, counts: Mapping[str, Count]) -> Table:
    columns = ("per call", "instructions", "garbage", "blocks")
    rows: list[list[Cell]] = [
        [case, *(count.get(column) for column in columns[1:])] for case, count in counts.items()
    ]
    return Table(title=name, columns=columns, rows=rows)


def _packages(name: str, counts: Mapping[str, Count]) -> Table:
    packages: dict[str, int] = {}
    for count in counts.values():
        for package, executed in count["packages"].items():
            packages[package] = max(packages.get(package, 0), executed)
    order = sorted(packages, key=lambda package: -packages[package])
    rows = [[package, *(count["packages"].get(package) for count in counts.values())] for package in order]
    return Table(title=f"Whose instructions, {name}", columns=("package", *counts), rows=rows)


def _machine(name: str) -> Table:
    columns = ("per call", "machine instructions", "allocations")
    rows: list[list[Cell]] = [[case, *found] for case, found in callgrind.measured().items()]
    return Table(title=f"By callgrind, {name}", columns=columns, rows=rows)
