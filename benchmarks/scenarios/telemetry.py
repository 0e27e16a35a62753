"""The overhead of OpenTelemetry's spans and metrics, with a new random user id in every call."""

from __future__ import annotations

import asyncio
import sys

from llm_provider.simulator import Simulator

from .. import hot_path
from ..clients import Target, describe, offers
from ..fleet import Fleet, closed
from ..provider import Provider
from ..report import Result, Table
from . import Options

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
    counts = {client: instructions(client) for client in chosen}
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
        "other; they are the same on a busy machine.",
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


def instructions(client: str) -> int:
    """Bytecode instructions of a call in a new process: the least of several medians.

    Now and then the event loop goes round once more, which would hide the difference between two clients.
    """
    return int(hot_path.run(sys.executable, "-m", __name__, client))


def main() -> None:
    """Print the count of one client."""
    with Simulator() as simulator:
        hot_path.prepare(simulator, ("openai", "aiohttp"))
        target = Target(route="openai", model=hot_path.MODELS["OpenAI"])
        made = offers()[sys.argv[1]].make(target)
        case = hot_path.Case(lambda number: made.call(f"Question {number:03d}"))
        counter = hot_path.Instructions()

        async def counts() -> list[int]:
            return [(await hot_path.count(case, counter))["instructions"] for _ in range(5)]

        print(min(asyncio.run(counts())))


if __name__ == "__main__":
    main()
