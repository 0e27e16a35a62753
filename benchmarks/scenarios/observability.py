"""The overhead of hooks, metrics and logging, with a new random user id in every call."""

from __future__ import annotations

from ..clients import describe
from ..fleet import Fleet, closed
from ..provider import Provider
from ..report import Result, Table
from . import Options

CLIENTS = (
    ("ours_user", "ours_metered", "ours_observed"),
    ("litellm_user", "litellm_metered", "litellm_observed"),
)
"""Each without observers, with a counting hook, and with a hook and a log."""
REPORTED = (27.0, 42.0)
"""Reports about a proxy with a metrics callback: per cent more mean and p95 latency with random user ids."""


def run(options: Options) -> Result:
    """Measure each client with and without observers."""
    with Provider() as provider, Fleet(provider, here=options.here) as fleet:
        cells = {
            client: fleet.cell(
                client, "openai", closed(32), options.count(640), warm=32, settings={"latency": 0.020}
            )
            for clients in CLIENTS
            for client in options.chosen(clients)
        }
        taken = fleet.measure(cells, options.rounds_or(7))
    rows = []
    measured = {}
    for clients in CLIENTS:
        for client in options.chosen(clients):
            one, before = taken[client], taken.get(clients[0], taken[client])
            more = [_more(getattr(one, name), getattr(before, name)) for name in ("cpu", "mean", "p95")]
            rows.append([describe(client), one.cpu, one.mean * 1e3, one.p95 * 1e3, *more, one.failed])
            if client == "ours_metered":
                measured["observed"] = 100 * (one.figure("cpu") / before.figure("cpu") - 1)
    rows.append(["the proxy reported", None, None, None, None, *(f"{one:+.0f} %" for one in REPORTED), None])
    columns = (
        "client",
        "CPU µs per call",
        "mean ms",
        "p95 ms",
        "more CPU",
        "more mean",
        "more p95",
        "failed",
    )
    return Result(
        title="Observability",
        text="32 calls at a time to a provider that answers in 20 ms, each with a new random user id. The "
        "hook counts calls, tokens and time. The log is one line of Python's `logging` in a file for each "
        "call. Users of a proxy reported that it was 27 % slower with a metrics callback, because each new "
        "id missed a cache and caused a database query within the call.",
        tables=[Table(title="With and without observers", columns=columns, rows=rows)],
        measured=measured,
        **fleet.facts,
    )


def _more(on: float, off: float) -> str:
    return f"{100 * (on / off - 1):+.1f} %"
