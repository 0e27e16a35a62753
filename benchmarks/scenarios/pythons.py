"""CPU of a call, a stored one, a hit and a stream on each version of Python, and of raw aiohttp there."""

from __future__ import annotations

import platform
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ..environments import python_of
from ..fleet import Cell, Fleet, Measurement, closed
from ..provider import Provider, text_of_tokens
from ..report import Cell as Shown
from ..report import Result, Table
from . import Options
from .calls import LATENCY

VERSIONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
CHUNKS = 30
"""Text chunks of each stream."""
WAYS = ("raw aiohttp", "`acall`", "`acall`, stored", "`call_many`", "`call_many`, stored", "`acall`, a hit")
STREAMS = ("raw aiohttp, a stream", "a stream")


def run(options: Options) -> Result:
    """Measure every version in turn, round after round, in reversed order in every second round."""
    if options.here:
        pythons = {platform.python_version(): Path(sys.executable)}
    else:
        pythons = {version: python for version in VERSIONS if (python := python_of(version)) is not None}
    with Provider() as provider, Fleet(provider) as fleet:
        cells = {
            (version, way): replace(cell, python=python)
            for way, cell in _cells(fleet, options).items()
            for version, python in pythons.items()
        }
        taken = fleet.measure(cells, options.rounds_or(7), alternate=True)
    return Result(
        title="Versions of Python",
        text="CPU is that of the client's whole process, including the load generator: 32 calls at a time "
        "over TLS to a provider that answers after 20 ms, connections warm; the same packages on every "
        "version. A version that this machine does not have is left out.",
        tables=[_costs(taken, list(pythons)), _shares(taken, list(pythons))],
        **fleet.facts,
    )


def _cells(fleet: Fleet, options: Options) -> dict[str, Cell]:
    how = {"warm": 32, "settings": LATENCY}
    loads = (closed(32), {"name": "many", "concurrency": 32})
    calls = [
        fleet.cell(client, "openai", load, options.count(640), **how)
        for load, client in (
            (loads[0], "aiohttp"),
            *((load, client) for load in loads for client in ("ours", "ours_write")),
        )
    ]
    again = {"question": "What is 1+1?", "answer": "2", "warm": 1}
    hit = fleet.cell("ours_write", "openai", closed(32), options.count(5000), **again)
    settings = {"output_tokens": CHUNKS, "chunks": CHUNKS}
    given = {"warm": 32, "answer": text_of_tokens(CHUNKS), "settings": settings}
    streams = [
        fleet.cell(client, "openai", closed(32, stream=True), options.count(160), **given)
        for client in ("aiohttp", "ours")
    ]
    return dict(zip((*WAYS, *STREAMS), (*calls, hit, *streams), strict=True))


Taken = dict[tuple[str, str], Measurement]
"""By the version and the way."""


def _costs(taken: Taken, versions: list[str]) -> Table:
    ways = (*WAYS, *STREAMS)
    rows = [[version, *(taken[version, way].cpu for way in ways)] for version in versions]
    return _with_failed("CPU µs", taken, ways, rows)


def _shares(taken: Taken, versions: list[str]) -> Table:
    bases = dict.fromkeys(WAYS[1:-1], WAYS[0]) | {STREAMS[1]: STREAMS[0]}
    rows = [
        [version, *(taken[version, way].cpu / taken[version, base].cpu for way, base in bases.items())]
        for version in versions
    ]
    return _with_failed("Of raw aiohttp on the same Python", taken, bases, rows)


def _with_failed(title: str, taken: Taken, ways: Iterable[str], rows: list[list[Shown]]) -> Table:
    """A row for each version: its figures, and how many of all its calls failed."""
    failed = Counter[Shown]()
    for (version, _), one in taken.items():
        failed[version] += one.failed
    return Table(
        title=title,
        columns=("Python", *ways, "failed"),
        rows=[[*row, failed[row[0]]] for row in rows],
    )
