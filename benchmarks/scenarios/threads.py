"""100 threads that each wait in a synchronous call: success, latency, calls a second, peak in flight."""

from __future__ import annotations

from collections.abc import Mapping

from ..clients import describe
from ..figures import ratios, tabulate
from ..fleet import Fleet, Measurement
from ..provider import Provider
from ..report import Chart, Result
from . import Options

CLIENTS = ("openai3_per_thread", "openai3_shared", "openai3_run", "litellm", "ours_default")
THREADS = 100
CALLS = {0.050: 1000, 0.300: 500}
"""The number of calls of all threads together, by the latency of the provider."""


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

    def right(one: Measurement) -> str:
        return f"{100 * (1 - one.failed / (one.calls * options.rounds_or(3))):.0f} %"

    tables = [
        tabulate(
            f"Provider answering in {latency * 1e3:.0f} ms, {calls} calls",
            ("client",),
            {(describe(client),): one for (client, own), one in taken.items() if own == latency},
            (
                ("right", right),
                *("mean ms", "p50 ms", "p99 ms", "calls/s", "peak in flight", "CPU µs per call"),
            ),
        )
        for latency, calls in CALLS.items()
    ]
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
        **fleet.facts,
    )


def _measured(taken: Mapping[tuple[str, float], Measurement], options: Options) -> dict[str, float]:
    slow = taken.get(("ours_default", 0.300))
    if slow is None:
        return {}
    others = {"threads_of_sdk": "openai3_per_thread", "threads_of_run": "openai3_run"}
    pairs = {name: (("ours_default", 0.050), (other, 0.050)) for name, other in others.items()}
    return {
        **ratios(taken, "rate", pairs),
        "threads_ok": 100 * (1 - slow.failed / (slow.calls * options.rounds_or(3))),
        "threads_peak": slow.peak,
        "threads_p99": slow.figure("p99") / 0.300,
    }
