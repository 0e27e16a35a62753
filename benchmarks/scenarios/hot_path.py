"""Counts of a call: instructions, garbage and memory blocks, the same in every run and on every machine.

Counted in every environment that `make` has created; committed counts of other environments are kept. A test
compares with these counts.
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
    "Instructions are bytecode instructions of all threads, including SDK and transport. Garbage is the "
    "number of objects that only the garbage collector frees. Blocks are the memory blocks that a call and "
    "its connection hold while the call waits for its answer. `tests/benchmarks/test_hot_path.py` fails if a "
    f"count has grown by more than a tenth; `{RENEW}` replaces the counts that it compares with."
)


def run(options: Options) -> Result:
    """Count in every environment, or in a quick run in this one only."""
    interpreters = [Path(sys.executable)] if options.quick or options.here else built()
    counts = {**baselines(), **dict(measured(interpreter) for interpreter in interpreters)}
    here = environment()
    tables = [_table(here, counts[here]), _packages(here, counts[here])]
    tables += [_table(name, counts[name]) for name in sorted(counts) if name != here]
    if callgrind.available() and not options.quick:
        tables.insert(1, _machine(here))
    return Result(title="The hot path in counts", text=TEXT, tables=tables, data={"counts": counts})


def built() -> list[Path]:
    """The interpreter of each existing environment of the project."""
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
    return Table(title=f"Instructions by package, {name}", columns=("package", *counts), rows=rows)


def _machine(name: str) -> Table:
    columns = ("per call", "machine instructions", "allocations")
    rows: list[list[Cell]] = [[case, *found] for case, found in callgrind.measured().items()]
    return Table(title=f"By callgrind, {name}", columns=columns, rows=rows)
