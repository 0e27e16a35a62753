"""The growth of latency with concurrency: 100 requests, 1, 10, 30, 50 and 100 at a time."""

from __future__ import annotations

from collections.abc import Mapping

from ..clients import describe
from ..figures import ratios
from ..fleet import Fleet, Measurement, closed
from ..provider import Provider
from ..report import Chart, Result, Table
from . import Options

LEVELS = (1, 10, 30, 50, 100)
CLIENTS = ("aiohttp", "openai3", "litellm", "ours")
LATENCY = 0.050

REPORTED: Mapping[int, tuple[float, float, int]] = {
    1: (12, 7, 0),
    10: (144, 1195, 0),
    30: (833, 3861, 0),
    50: (2087, 6975, 0),
    100: (7721, 14019, 33),
}
"""Reports about a proxy in front of a local mock: mean ms, p95 ms, per cent above 10 s."""


def run(options: Options) -> Result:
    """Measure every level."""
    with Provider() as provider, Fleet(provider, here=options.here) as fleet:
        cells = {}
        for client in options.chosen(CLIENTS):
            for level in LEVELS:
                how = {"warm": level, "settings": {"latency": LATENCY}}
                cells[client, level] = fleet.cell(client, "openai", closed(level), options.count(100), **how)
        taken = fleet.measure(cells, options.rounds_or(3))
    clients = options.chosen(CLIENTS)
    return Result(
        title="How latency grows with concurrency",
        text="100 requests at each level to a provider that answers in 50 ms, over TLS, connections warm. "
        "The users of a proxy reported a mean latency of 12 ms for one at a time and of 7.7 s for a hundred.",
        tables=[_table(clients, taken)],
        charts=[
            Chart(
                title="Mean latency",
                x=LEVELS,
                x_label="requests at a time",
                y_label="ms",
                series={
                    **{describe(one): [taken[one, level].mean * 1e3 for level in LEVELS] for one in clients},
                    "the proxy reported": [figures[0] for figures in REPORTED.values()],
                },
                kind="lines",
                logarithmic=True,
            )
        ],
        measured=ratios(taken, "mean", {"sweep_growth": (("ours", 100), ("ours", 1))}),
        **fleet.facts,
    )


def _table(clients: list[str], taken: Mapping[tuple[str, int], Measurement]) -> Table:
    rows = []
    for client in clients:
        for level in LEVELS:
            one = taken[client, level]
            growth = one.mean / taken[client, 1].mean
            row = [describe(client), level, one.mean * 1e3, one.p95 * 1e3, growth]
            rows.append([*row, f"{100 * one.slow:.0f} %", one.failed])
    for level, (mean, p95, slow) in REPORTED.items():
        rows.append(["the proxy reported", level, mean, p95, mean / REPORTED[1][0], f"{slow} %", None])
    columns = ("client", "at a time", "mean ms", "p95 ms", "mean, of that at 1", "above 10 s", "failed")
    return Table(title="100 requests at each level", columns=columns, rows=rows)
