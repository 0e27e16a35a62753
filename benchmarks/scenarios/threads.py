"""100 threads that each wait in a synchronous call: success, latency, calls a second, peak in flight."""

from __future__ import annotations

from collections.abc import Mapping

from ..clients import describe
from ..fleet import Fleet, Measurement
from ..provider import Provider
from ..report import Chart, Result, Table
from . import Options

CLIENTS = ("openai3_per_thread", "openai3_shared", "openai3_run", "litellm", "ours_default")
THREADS = 100
CALLS = {0.050: 1000, 0.300: 500}
"""The number of calls of all threads together, by the latency of the provider."""

EARLIER = {
    "openai3_run": (215, 554, 1472),
    "openai3_shared": (514, 185, 494),
    "openai3_per_thread": (1069, 92, 250),
    "ours_default": (1600, 58, 137),
}
"""Calls a second, p50 and p99 in ms, at 50 ms; those of this library are from a prototype."""


def run(options: Options) -> Result:
    """Measure both latencies."""
    load = {"name": "threads", "concurrency": THREADS}
    with Provider() as provider, Fleet(provider, here=options.here) as fleet:
        cells = {}
        for latency, calls in CALLS.items():
            for client in options.chosen(CLIENTS):
                count = max(THREADS, options.count(calls))
                how = {"settings": {"latency": latency}}
                cells[client, latency] = fleet.cell(client, "openai", load, count, **how)
        taken = fleet.measure(cells, options.rounds_or(3))
        versions, problems = fleet.versions, fleet.problems
    tables = []
    for latency, calls in CALLS.items():
        rows = []
        for (client, own), one in taken.items():
            if own == latency:
                right = 100 * (1 - one.failed / (one.calls * options.rounds_or(3)))
                earlier = EARLIER.get(client) if latency < 0.1 else None
                row = [describe(client), f"{right:.0f} %", one.mean * 1e3, one.p50 * 1e3, one.p99 * 1e3]
                row += [one.rate, one.peak, one.cpu]
                rows.append([*row, None if earlier is None else " / ".join(map(str, earlier))])
        columns = ("client", "right", "mean ms", "median ms", "p99 ms", "calls/s", "peak in flight")
        columns += ("CPU µs per call", "earlier calls/s / p50 / p99")
        title = f"Provider answering in {latency * 1e3:.0f} ms, {calls} calls"
        tables.append(Table(title=title, columns=columns, rows=rows))
    return Result(
        title="100 threads",
        text="100 threads make one synchronous call after the other, over TLS. Each thread makes one call "
        "before the clock starts. The scenario follows a report in which 100 concurrent clients failed until "
        "the pools of 10 connections and 32 threads had been enlarged to 100 and more.",
        tables=tables,
        charts=[
            Chart(
                title="100 threads, provider answering in 50 ms",
                x=[describe(client) for client, latency in taken if latency < 0.1],
                y_label="calls/s",
                series={"calls/s": [one.rate for (_, latency), one in taken.items() if latency < 0.1]},
            )
        ],
        measured=_measured(taken, options),
        versions=versions,
        problems=problems,
        rounds=options.rounds_or(3),
        data={f"{client} / {latency}": one.samples for (client, latency), one in taken.items()},
    )


def _measured(taken: Mapping[tuple[str, float], Measurement], options: Options) -> dict[str, float]:
    found: dict[str, float] = {}
    quick, slow = taken.get(("ours_default", 0.050)), taken.get(("ours_default", 0.300))
    if quick is None or slow is None:
        return found
    for name, other in (("threads_of_sdk", "openai3_per_thread"), ("threads_of_run", "openai3_run")):
        one = taken.get((other, 0.050))
        if one is not None:
            found[name] = quick.figure("rate") / one.figure("rate")
    found["threads_ok"] = 100 * (1 - slow.failed / (slow.calls * options.rounds_or(3)))
    found["threads_peak"] = slow.peak
    found["threads_p99"] = slow.figure("p99") / 0.300
    return found
