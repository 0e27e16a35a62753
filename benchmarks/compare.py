"""Compares this checkout with another one: CPU per call, measured alternately on one machine.

The other checkout may have another layout of modules: its own `benchmarks` package runs in its workers. The
two checkouts share only the form of a job (`fleet.Job`) and the names of the clients.
"""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from .environments import ROOT
from .fleet import Cell, Fleet, Measurement, closed
from .provider import Provider, text_of_tokens
from .report import Result, Table
from .scenarios import Options
from .scenarios.calls import LATENCY, ROUTES, WAYS, cells_of_ours

CHUNKS = 30
"""Text chunks of each stream."""

Case = tuple[str, str, int]
"""The way of calling, the use of the cache, and the number of calls at a time."""


def run(options: Options, directory: Path) -> Result:
    """Measure every case with one checkout directly after the other, in reversed order in every second round.

    Raises:
        WorkerError: a worker of one of the checkouts failed.
    """
    checkouts = {"before": directory.resolve(), "now": ROOT}
    rounds = options.rounds_or(7)
    with Provider() as provider, Fleet(provider, here=options.here) as fleet:
        cells = {
            (case, name): replace(cell, checkout=checkout)
            for case, cell in _cells(fleet, options)
            for name, checkout in checkouts.items()
        }
        taken = fleet.measure(cells, rounds, alternate=True)
    return Result(
        title="Two checkouts",
        text=f"*Before* is {commit(directory)} in `{directory.name}`, *now* is {commit(ROOT)}, this one. "
        "The provider answers in 20 ms, over TLS. CPU is that of the client's whole process, including the "
        "load generator. The ratio is now / before: the median, the lowest and the highest of the rounds.",
        tables=[_table(taken)],
        **fleet.facts,
    )


def commit(checkout: Path) -> str:
    """The short name of a checkout's commit, with "modified" where files differ from it."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty=, modified"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    return shown.stdout.strip() or "no commit"


def _cells(fleet: Fleet, options: Options) -> Iterator[tuple[Case, Cell]]:
    how = {"warm": 32, "settings": LATENCY}
    for route, name in ROUTES.items():
        cell = fleet.cell("ours", route, closed(32), options.count(320), **how)
        yield (f"`acall`, {name}", "off", 32), cell
    for (_, way, width, client), cell in cells_of_ours(fleet, options):
        if (way, width, client) != ("closed", "32", "ours"):  # already measured, for every route
            yield (*WAYS[way, client], int(width)), cell
    settings = {"output_tokens": CHUNKS, "chunks": CHUNKS}
    for route, name in ROUTES.items():
        cell = fleet.cell(
            "ours",
            route,
            closed(32, stream=True),
            options.count(160),
            warm=32,
            answer=text_of_tokens(CHUNKS),
            settings=settings,
        )
        yield (f"a stream of {CHUNKS} chunks, {name}", "off", 32), cell


def _table(taken: Mapping[tuple[Case, str], Measurement]) -> Table:
    rows = []
    for case in dict.fromkeys(case for case, _ in taken):
        before, now = taken[case, "before"], taken[case, "now"]
        rounds = zip(before.samples, now.samples, strict=True)
        ratios = [later["cpu"] / earlier["cpu"] for earlier, later in rounds]
        row = [*case, before.cpu, now.cpu, statistics.median(ratios), min(ratios), max(ratios)]
        rows.append([*row, before.failed + now.failed])
    columns = ("way", "cache", "at a time", "before, CPU µs per call", "now", "ratio", "lowest", "highest")
    return Table(title="CPU per call", columns=(*columns, "failed"), rows=rows)
