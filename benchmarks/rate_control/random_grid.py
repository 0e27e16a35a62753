"""A grid of batches against a provider with rate-limit headers that also refuses a share at random.

    python -m benchmarks.rate_control.random_grid [--seeds 5] [--calls N …] [--sockets] [--write]

The provider allows 10,000 requests a minute and saves up a minute's. Each cell has the medians of runs with
seeds that were not used for tuning: the speed as a percentage of the same controller's at the same provider
without random refusals / as a percentage of an oracle's. The oracle has the same controller, which it does
not tell of random refusals, and sends each refused request again after its own Retry-After. `--write` puts
the table into benchmarks/results/random_grid.md. With `--sockets`, twelve of the cells are measured with the
real client over sockets, and are a section of that page.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import os
import platform
import random
import statistics
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from typing import NamedTuple

from llm_provider._core.pace.headers import Allowance, Headroom
from llm_provider._core.pace.state import Ticket

from .. import report
from .baselines import Ours
from .simulation import Bucket, Provider, Scenario, Shedding, Simulation

SHARES = (0.002, 0.01, 0.02, 0.05)
HEADERS = ("none", "right", "generous", "stale", "absent on the 429", "tokens only")
RETRY_AFTERS = (None, 0.1, 1.0, 20.0)
LATENCIES = (0.1, 0.5, 3.0)
CALLS = (300, 2400, 20_000)
CONTROLLERS = {"independent": 1, "shared": 4}
"""Processes that send the calls; several share one controller."""
WAYS = list(itertools.product(LATENCIES, CONTROLLERS))
FIRST_SEED = 5000
"""Tuning used smaller seeds."""
GOAL_WITHOUT, GOAL_ORACLE = 90, 95

_LIMIT, _AT_ONCE, _TOKENS = 10_000, 8, 100.0
_STALE = 10.0
"""Seconds between two readings of the counters that stale headers tell."""
_ASK_AGAIN = 0.03
"""Seconds after which a process looks whether another one has made room."""
_RANDOM = 503
"""A status that tells the oracle which refusals are random."""


class Cell(NamedTuple):
    """A provider, and who sends how many calls to it."""

    share: float
    headers: str
    retry_after: float | None
    latency: float
    calls: int
    controllers: str


class Shared(Ours):
    """One of several processes that have one controller, as the file between them makes it."""

    def __init__(self, provider: Provider, max_in_flight: int, source: random.Random) -> None:
        super().__init__(provider, max_in_flight, source)
        first: Shared = provider.__dict__.setdefault("first", self)
        self.controller = first.controller
        self.succeeded = self.controller.record_success

    def ready_at(self, now: float, tokens: float) -> float:
        ready = self.controller.ready_at(now, tokens, sys.maxsize, self.at_once)
        return ready if ready <= now else min(ready, now + _ASK_AGAIN)


class Informed(Shared):
    """The oracle: its controller hears nothing of random refusals."""

    def overloaded(
        self, now: float, ticket: Ticket, retry_after: float | None, headroom: Headroom | None, attempts: int
    ) -> float:
        self.controller.record_cancellation(ticket)
        return self.delay(retry_after, attempts)


def provider(cell: Cell, *, status: int = 429) -> Provider:
    """The provider of a cell."""
    requests = Bucket(_LIMIT / 60, _LIMIT)
    tokens = Bucket(2 * _TOKENS * _LIMIT / 60, 2 * _TOKENS * _LIMIT, of_tokens=True)
    told, told_at = Headroom(requests.allowance()), 0.0

    def headers(now: float, chance: random.Random) -> Headroom:
        nonlocal told, told_at
        if cell.headers == "tokens only":
            tokens.refill(now)
            return Headroom(None, tokens.allowance())
        requests.refill(now)
        truth = requests.allowance()
        if cell.headers == "generous":
            return Headroom(Allowance(10 * truth.rate, truth.remaining + 9 * _LIMIT))
        if cell.headers != "stale" or now - told_at >= _STALE:
            told, told_at = Headroom(truth), now
        return told

    present = cell.headers != "absent on the 429"
    shed = Shedding(((0.0, cell.share),), status, cell.retry_after, present)
    return Provider(
        [requests, tokens] if cell.headers == "tokens only" else [requests],
        latency=cell.latency,
        shedding=shed if cell.share else None,
        retry_after="none" if cell.retry_after is None else "exact",
        headers=None if cell.headers == "none" else headers,
        headers_on_refusals=present,
    )


def seconds(cell: Cell, seed: int, *, oracle: bool = False) -> float:
    """The time until the last call of a batch is answered."""
    processes = CONTROLLERS[cell.controllers]
    batch = Scenario(
        str(cell),
        lambda chance: provider(cell, status=_RANDOM if oracle else 429),
        duration=1e5,
        processes=processes,
        calls=cell.calls // processes,
        at_once=_AT_ONCE,
        fixed_fates=True,
        tokens=(lambda chance: _TOKENS) if cell.headers == "tokens only" else None,
    )
    policy = Informed if oracle else Shared if processes > 1 else Ours
    outcome = Simulation(batch, policy, seed).run()
    return outcome.last_done if sum(outcome.done) == cell.calls else batch.duration


def measure(cell: Cell, seeds: range, *, oracle: bool = False) -> float:
    """The median of the runs of a cell."""
    return statistics.median(seconds(cell, seed, oracle=oracle) for seed in seeds)


class Figures(NamedTuple):
    """Speeds in percent."""

    without: float
    """Of the same controller's at the same provider without random refusals."""
    oracle: float
    """Of the oracle's."""
    possible: float
    """The oracle's, of the controller's without random refusals."""

    @property
    def missed(self) -> bool:
        """Whether a goal is missed that the oracle reaches."""
        return self.oracle < GOAL_ORACLE or (self.without < GOAL_WITHOUT <= self.possible)

    def __str__(self) -> str:
        shown = f"{self.without:.0f} / {self.oracle:.0f}"
        return f"**{shown}**" if self.missed else shown


Row = tuple[str, int, float, str]
"""Controllers, calls, latency and headers."""


def row(seeds: range, key: Row) -> dict[Cell, Figures]:
    """The cells of a row. The largest batches have one latency and one way of sharing for each provider."""
    controllers, calls, latency, headers = key
    before: dict[bool, float] = {}
    measured = {}
    for share, retry_after in itertools.product(SHARES, RETRY_AFTERS):
        turn = SHARES.index(share) + RETRY_AFTERS.index(retry_after) + HEADERS.index(headers)
        if calls == CALLS[-1] and WAYS[turn % len(WAYS)] != (latency, controllers):
            continue
        cell = Cell(share, headers, retry_after, latency, calls, controllers)
        told = retry_after is not None
        if told not in before:
            before[told] = measure(cell._replace(share=0.0), seeds)
        ours, oracle = measure(cell, seeds), measure(cell, seeds, oracle=True)
        measured[cell] = Figures(100 * before[told] / ours, 100 * oracle / ours, 100 * before[told] / oracle)
    return measured


def table(rows: Iterable[tuple[Row, dict[Cell, Figures]]]) -> list[str]:
    """The table, how many cells miss a goal, and which."""
    columns = list(itertools.product(SHARES, RETRY_AFTERS))
    names = [f"{share:.1%}, {'no' if wait is None else f'{wait:g} s'}" for share, wait in columns]
    lines = [f"| controllers, calls, latency, headers | {' | '.join(names)} |", "|---|" + "---|" * len(names)]
    print("\n".join(lines), flush=True)
    everything: dict[Cell, Figures] = {}
    for (controllers, calls, latency, headers), measured in rows:
        everything |= measured
        at = {(cell.share, cell.retry_after): str(figures) for cell, figures in measured.items()}
        shown = " | ".join(at.get(column, "") for column in columns)
        lines.append(f"| {controllers}, {calls:,}, {latency:g} s, {headers} | {shown} |")
        print(lines[-1], flush=True)
    missed = {cell: figures for cell, figures in everything.items() if figures.missed}
    late = sum(figures.possible < GOAL_WITHOUT for figures in everything.values())
    summary = (
        f"{len(missed)} of {len(everything)} cells miss a goal that the oracle reaches (bold). In {late} "
        f"cells the oracle itself has less than {GOAL_WITHOUT} % of the speed without random refusals: the "
        "last Retry-After or back-off is longer than the rest of the batch."
    )
    named = [
        f"- {cell.controllers}, {cell.calls:,} calls of {cell.latency:g} s, {cell.headers}, "
        f"{cell.share:.1%}, Retry-After {cell.retry_after}: {figures.without:.1f} / {figures.oracle:.1f}"
        for cell, figures in missed.items()
    ]
    lines += ["", summary, "", *named]
    return lines


OVER_SOCKETS = "\n## Over sockets\n"


def write(lines: list[str], *, sockets: bool, seeds: int) -> None:
    """Write the page, or its section. The other one stays as it is."""
    page = report.RESULTS / "random_grid.md"
    grid, _, section = page.read_text(encoding="utf-8").partition(OVER_SOCKETS)
    if sockets:
        versions = ", ".join(f"{name} {version(name)}" for name in ("openai", "aiohttp"))
        made = (
            "\nMade by `python -m benchmarks.rate_control.random_grid --sockets --write` on "
            f"{datetime.now(UTC).date()}, Python {platform.python_version()}, {versions}, {os.cpu_count()} "
            f"cores, load {os.getloadavg()[2]:.1f} at the end. `call_many` with the client's default "
            "settings asks a server in a process of its own; medians of three interleaved rounds. Speed in % "
            "of the same calls to the same provider without random refusals, and the same in simulated "
            "time.\n\n"
        )
        page.write_text(grid + OVER_SOCKETS + made + "\n".join(lines) + "\n", encoding="utf-8")
        return
    report.write_lines(
        "random_grid",
        "Random refusals beside rate-limit headers, in simulated time",
        f"rate_control.random_grid --seeds {seeds}",
        "Speed in % of the same controller's without random refusals / in % of the oracle's. The columns "
        "have the share that is refused and its Retry-After. Of the largest batches every sixth cell is "
        "measured, so that every pair of values occurs.",
        [*lines, *([OVER_SOCKETS + section.rstrip("\n")] if section else [])],
    )


def main() -> None:
    """Measure, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="runs per cell")
    parser.add_argument("--calls", type=int, nargs="*", default=CALLS, help="calls of a batch")
    parser.add_argument("--write", action="store_true", help="write the result")
    parser.add_argument("--sockets", action="store_true", help="measure twelve cells over sockets instead")
    arguments = parser.parse_args()
    if arguments.sockets:
        from . import grid_sockets

        lines = grid_sockets.table()
    else:
        seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
        keys = list(itertools.product(CONTROLLERS, arguments.calls, LATENCIES, HEADERS))
        with ProcessPoolExecutor(2) as pool:
            lines = table(zip(keys, pool.map(functools.partial(row, seeds), keys), strict=True))
    if arguments.write:
        write(lines, sockets=arguments.sockets, seeds=arguments.seeds)


if __name__ == "__main__":
    main()
