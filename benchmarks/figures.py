"""The columns of measured figures, and the comparison of two cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .fleet import Key, Measurement
from .report import Cell, Table

FIGURES: Mapping[str, Callable[[Measurement], Cell]] = {
    "calls/s": lambda one: one.rate,
    "streams/s": lambda one: one.rate,
    "CPU µs per call": lambda one: one.cpu,
    "CPU µs per stream": lambda one: one.cpu,
    "CPU ms per stream": lambda one: one.cpu / 1e3,
    "wall s": lambda one: one.wall,
    "wall ms": lambda one: one.wall * 1e3,
    "mean ms": lambda one: one.mean * 1e3,
    "p50 ms": lambda one: one.p50 * 1e3,
    "p95 ms": lambda one: one.p95 * 1e3,
    "p99 ms": lambda one: one.p99 * 1e3,
    "first token p50 ms": lambda one: one.first_p50 * 1e3,
    "first token p95 ms": lambda one: one.first_p95 * 1e3,
    "connections": lambda one: one.connections or None,  # unknown at a real provider
    "peak in flight": lambda one: one.peak,
    "provider's core": lambda one: one.server_share,
    "failed": lambda one: one.failed,
}
"""By the name of a column."""

Column = str | tuple[str, Callable[[Measurement], Cell]]
"""A name of `FIGURES`, or a column of one table alone."""


def tabulate(
    title: str,
    labels: Sequence[str],
    rows: Mapping[tuple[Cell, ...], Measurement],
    columns: Sequence[Column],
    notes: Sequence[str] = (),
) -> Table:
    """A table with one row for each cell: its labels, then its figures."""
    figures = dict((one, FIGURES[one]) if isinstance(one, str) else one for one in columns)
    made = [[*label, *(figure(one) for figure in figures.values())] for label, one in rows.items()]
    return Table(title=title, columns=(*labels, *figures), rows=made, notes=notes)


def ratios(
    taken: Mapping[Key, Measurement], figure: str, pairs: Mapping[str, tuple[Key, Key]]
) -> dict[str, float]:
    """A figure of one cell over that of another, by the name of a goal, of the pairs that were measured."""
    return {
        name: taken[one].figure(figure) / taken[other].figure(figure)
        for name, (one, other) in pairs.items()
        if one in taken and other in taken
    }
