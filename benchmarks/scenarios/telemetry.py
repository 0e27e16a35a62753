"""The overhead of OpenTelemetry's spans and metrics, with a new random user id in every call."""

from __future__ import annotations

from ..clients import describe
from ..fleet import Fleet, closed
from ..provider import Provider
from ..report import Result, Table
from . import Options
from .profiles import count_client

CLIENTS = (
    "ours_untraced", "ours_unsampled", "ours_empty_span", "ours_spans", "ours_metrics", "ours_traced"
)  # fmt: skip
"""The first is without OpenTelemetry."""
GOALS = {"ours_unsampled": "unsampled", "ours_spans": "sampled", "ours_traced": "traced"}


def run(options: Options) -> Result:
    """Measure each client with and without OpenTelemetry."""
    chosen = options.chosen(CLIENTS)
    with Provider() as provider, Fleet(provider, here=options.here) as fleet:
        cells = {
            client: fleet.cell(
                client, "openai", closed(32), options.count(640), warm=32, settings={"latency": 0.020}
            )
            for client in chosen
        }
        taken = fleet.measure(cells, options.rounds_or(9))
        versions, problems = fleet.versions, fleet.problems
    before = taken[chosen[0]].figure("cpu")
    rows: list[list[object]] = []
    measured = {}
    for client in chosen:
        one = taken[client]
        more = one.figure("cpu") - before
        share = f"{100 * more / before:+.1f} %"
        rows.append([describe(client), one.cpu, one.mean * 1e3, round(more), share, one.failed])
        if client in GOALS:
            measured[GOALS[client]] = 100 * more / before
    counts = {client: sum(count_client(client).values()) for client in chosen}
    least = counts[chosen[0]]
    counted: list[list[object]] = [
        [describe(client), count, count - least, f"{100 * (count / least - 1):+.1f} %"]
        for client, count in counts.items()
    ]
    columns = ("client", "CPU µs per call", "mean ms", "more CPU µs", "more CPU", "failed")
    return Result(
        title="Telemetry",
        text="32 calls at a time to a provider that answers in 20 ms, each with a new random user id. Spans "
        "go in batches to an exporter that counts them. Metrics go to the reader of OpenTelemetry's exporter "
        "for Prometheus. An empty span around each call, made by the benchmark itself, is the least that "
        "OpenTelemetry's SDK costs. Bytecode instructions of all threads are counted one call after the "
        "other, 128 calls a round; they are the same on a busy machine. `profiles.md` says where they are.",
        tables=[
            Table(title="With and without OpenTelemetry", columns=columns, rows=rows),
            Table(title="In counts", columns=("client", "instructions", "more", "share"), rows=counted),
        ],
        measured=measured,
        versions=versions,
        problems=problems,
        rounds=options.rounds_or(9),
        data={client: one.samples for client, one in taken.items()},
    )
