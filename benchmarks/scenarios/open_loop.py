"""475 requests a second at random times (Poisson): the time that a client adds to the provider's 100 ms."""

from __future__ import annotations

from ..clients import describe
from ..fleet import Fleet
from ..provider import Provider
from ..report import Chart, Result, Table
from . import Options

CLIENTS = ("aiohttp", "openai3", "openai3_best", "litellm", "ours", "ours_write")
RATE, SECONDS, LATENCY = 475, 8, 0.100
SEED = 20261120
REPORTED = (3.0, 17.0, 31.0)
"""Reports about a gateway on 2 CPUs at this rate: overhead p50, p90, p99 in ms."""


def run(options: Options) -> Result:
    """Measure latencies from the time at which each request was due."""
    load = {"name": "arrivals", "rate": RATE, "seed": SEED}
    with Provider(punctual=True) as provider, Fleet(provider, here=options.here) as fleet:
        cells = {
            client: fleet.cell(
                client, "openai", load, options.count(RATE * SECONDS), warm=100, settings={"latency": LATENCY}
            )
            for client in options.chosen(CLIENTS)
        }
        taken = fleet.measure(cells, options.rounds_or(3))
    overheads = {
        client: [1e3 * (value - LATENCY) for value in (one.p50, one.p90, one.p99)]
        for client, one in taken.items()
    }
    rows = [
        [describe(client), *overheads[client], one.cpu, one.rate, one.server_share, one.failed]
        for client, one in taken.items()
    ]
    rows.append(["the gateway reported", *REPORTED, None, None, None, None])
    columns = ("client", "overhead p50 ms", "p90 ms", "p99 ms", "CPU µs per call", "calls/s")
    columns += ("provider's core", "failed")
    measured = {}
    if "ours" in taken:
        parts = ("p50", "p90", "p99")
        measured = {f"overhead_{part}": 1e3 * (taken["ours"].figure(part) - LATENCY) for part in parts}
        for client in {"ours", "ours_write"} & overheads.keys() if "aiohttp" in overheads else ():
            for part, here, floor in zip(parts, overheads[client], overheads["aiohttp"], strict=True):
                measured[f"{client}_more_{part}"] = here - floor
    return Result(
        title="475 requests a second",
        text=f"Requests start at random times, {RATE} a second on average for {SECONDS} s, whether or not "
        "earlier ones are done. The provider answers after 100 ms, over TLS. Overhead is the latency, "
        "counted from the time at which the request was due, minus 100 ms. The overhead of raw aiohttp is "
        "that of the provider, the event loop and the machine. Neither end uses asyncio's timers, which "
        "are late by up to a millisecond.",
        tables=[Table(title="Overhead", columns=columns, rows=rows)],
        charts=[
            Chart(
                title="Overhead at 475 requests a second",
                x=["p50", "p90", "p99"],
                y_label="ms",
                series={
                    **{describe(client): found for client, found in overheads.items()},
                    "the gateway reported": REPORTED,
                },
                logarithmic=True,
            )
        ],
        measured=measured,
        **fleet.facts,
    )
