"""Compares policies of rate control in simulated time: goodput and refusals.

    python -m benchmarks.rate_control [--seeds 5] [--only TEXT] [--set NAME=VALUE] [--write] [--plot]

Every cell is the mean of runs with seeds that were not used for tuning: answers as a percentage of an oracle,
which sends exactly when the provider would admit / refusals per 1,000 answers, and Jain's index of fairness
if processes share the limit. `--set` changes a constant of the controller: `_CAP_PROOF=inf` disables the
search for caps. `--write` puts the table into benchmarks/results/rate_control.md, `--plot` (which needs
matplotlib) the curves into docs/images.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
import time
from dataclasses import dataclass, replace
from pathlib import Path

from llm_provider._core.pace import controller, limits
from llm_provider._core.pace import random_refusals as refusals

from .. import report
from . import random_refusals
from .baselines import POLICIES, Oracle
from .scenarios import FINITE, HELD_OUT, HELD_OUT_2, HELD_OUT_3, SCENARIOS
from .simulation import Outcome, Scenario, Simulation

ROOT = Path(__file__).parents[2]
IMAGE = ROOT / "docs" / "images" / "rate-control.png"

HELD = "The held-out scenarios one by one:"
RANDOM = (
    "A share of all requests is refused at random, at every rate: seconds of this controller / AIMD / the "
    "bare SDK at the same number in flight until the last of the calls of 0.2 s is answered, after the ratio "
    "to the better of the two others. Calls are lost if the default of `max_retries` is not enough."
)
FIRST_SEED = 1000
"""Tuning used smaller seeds."""


@dataclass(frozen=True)
class Cell:
    """Means over the seeds of one policy in one scenario."""

    goodput: float
    """Percent of the oracle's."""
    refused: float
    """Per 1,000 answers."""
    jain: float | None
    """None for one process; not a number if a run ended within the first minute."""
    lost: float
    """Requests that were given up, per 1,000 answers."""

    def __str__(self) -> str:
        shown = f"{self.goodput:.1f} / {_count(self.refused)}"
        if self.jain is not None and not math.isnan(self.jain):
            shown += f" ({self.jain:.3f})"
        if self.lost >= 0.5:
            shown += f", {_count(self.lost)} lost"
        return shown


def _count(value: float) -> str:
    if value >= 10_000:
        return f"{value / 1000:,.0f}k"
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def goodput(scenario: Scenario, outcome: Outcome, oracle: Outcome) -> float:
    """Percent of the oracle's answers in the same time, or of its speed if the number of calls is finite."""
    if scenario.name in FINITE:
        return 100 * oracle.last_done / outcome.last_done if sum(outcome.done) == sum(oracle.done) else 0.0
    return 100 * (outcome.units / outcome.seconds) / (oracle.units / oracle.seconds)


def measure(scenario: Scenario, seeds: range) -> dict[str, Cell]:
    """Every policy in one scenario."""
    oracles = {seed: Simulation(scenario, Oracle, seed).run() for seed in seeds}
    cells = {}
    for name, policy in POLICIES.items():
        outcomes = {seed: Simulation(scenario, policy, seed).run() for seed in seeds}
        mean = statistics.fmean
        cells[name] = Cell(
            goodput=mean(goodput(scenario, outcomes[seed], oracles[seed]) for seed in seeds),
            refused=mean(outcome.refused_per_thousand for outcome in outcomes.values()),
            jain=mean(outcome.jain for outcome in outcomes.values()) if scenario.processes > 1 else None,
            lost=mean(1000 * outcome.lost / max(1, sum(outcome.done)) for outcome in outcomes.values()),
        )
    return cells


def row(name: str, cells: dict[str, str]) -> str:
    """A row of the table."""
    return f"| {name} | " + " | ".join(cells.values()) + " |"


def table(scenarios: list[Scenario], seeds: range) -> tuple[list[str], dict[str, dict[str, Cell]]]:
    """The rows of a table, and its cells."""
    lines = [f"| | {' | '.join(POLICIES)} |", "|---|" + "---|" * len(POLICIES)]
    cells: dict[str, dict[str, Cell]] = {}
    for scenario in scenarios:
        started = time.process_time()
        cells[scenario.name] = measure(scenario, seeds)
        line = row(scenario.name, {name: str(cell) for name, cell in cells[scenario.name].items()})
        lines.append(line)
        print(f"{line}  [{time.process_time() - started:.0f} s]", flush=True)
    return lines, cells


def summary(name: str, cells: dict[str, dict[str, Cell]]) -> str:
    """The held-out scenarios in one row."""
    shown = {}
    for policy in POLICIES:
        goodputs = [row[policy].goodput for row in cells.values()]
        refused = [row[policy].refused for row in cells.values()]
        shown[policy] = (
            f"{statistics.fmean(goodputs):.1f}, {min(goodputs):.1f} / "
            f"{_count(statistics.median(refused))}, {_count(max(refused))}"
        )
    return row(f"{name}: mean, worst goodput / median, most refusals", shown)


def overhead(rounds: int = 200_000) -> str:
    """CPU time of a call that does not wait, compared with a semaphore."""

    def adaptive() -> None:
        ours, now = controller.AdaptiveController(), 0.0
        for _ in range(rounds):
            now += 0.02
            if ours.ready_at(now, 1.0, 1000, 0) <= now:
                ours.record_success(now, ours.record_request(now, 1.0, 0))

    async def semaphore() -> None:
        semaphore = asyncio.Semaphore(1000)
        for _ in range(rounds):
            await semaphore.acquire()
            semaphore.release()

    times: dict[str, list[float]] = {"adaptive": [], "semaphore": []}
    for _ in range(5):
        for name, run in (("adaptive", adaptive), ("semaphore", lambda: asyncio.run(semaphore()))):
            started = time.process_time()
            run()
            times[name].append((time.process_time() - started) / rounds * 1e6)
    ours, theirs = (statistics.median(values) for values in times.values())
    return (
        f"CPU time of one call that does not wait: {ours:.1f} µs (`ready_at`, `sent`, `succeeded`), where "
        f"acquiring and releasing an `asyncio.Semaphore` takes {theirs:.1f} µs; medians of 5 interleaved "
        "rounds."
    )


def recovery(seeds: range) -> str:
    """Seconds until a limit that rises from 5 to 20 per second is used again, at any phase of a sweep."""
    scenario = next(scenario for scenario in SCENARIOS if scenario.changes)
    waits = []
    for number, seed in enumerate(seed for seed in seeds for _ in range(4)):
        fallen, raised = 100.0, 200.0 + number
        moved = replace(scenario, changes=((fallen, 0.25), (raised, 1.0)))
        trace = Simulation(moved, POLICIES["this"], seed, trace=True).run().trace
        waits.append(next(at - raised for at, _, admitted, *_ in trace if at > raised and admitted >= 18))
    return (
        f"Seconds from a step up until 90 % of the new limit was used, for {len(waits)} times at which it "
        f"came: mean {statistics.fmean(waits):.1f}, worst {max(waits):.0f}."
    )


def plot() -> None:
    """Plot the controller over time in four of the scenarios."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    chosen = {
        "600 RPM, 2 s": (60.0, 10.0),
        "step 20→5→20 a second": (300.0, 20.0),
        "concurrency cap 32": (120.0, 32.0),
        "8 processes, 3,000 RPM": (300.0, 50.0),
    }
    figure, axes = pyplot.subplots(2, 2, figsize=(12, 7), layout="constrained")
    for axis, (name, (until, limit)) in zip(axes.flat, chosen.items(), strict=True):
        scenario = next(scenario for scenario in SCENARIOS if scenario.name == name)
        trace = Simulation(scenario, POLICIES["this"], FIRST_SEED, trace=True).run().trace
        trace = [point for point in trace if point[0] <= until]
        times = [point[0] for point in trace]
        capped = "cap" in name
        levels = [limit * _factor(scenario, at) for at in times]
        axis.plot(times, levels, color="black", linewidth=1, label="cap" if capped else "limit")
        axis.plot(times, [point[1] for point in trace], color="tab:red", linewidth=1, label="sent")
        axis.plot(times, [point[2] for point in trace], color="tab:blue", linewidth=1, label="admitted")
        if scenario.processes == 1:
            rates = [min(point[3], 2 * limit) for point in trace]
            axis.plot(times, rates, color="tab:green", linewidth=1, linestyle="--", label="rate")
        if capped:
            windows = [min(point[4], 2 * limit) for point in trace]
            axis.plot(times, windows, color="tab:orange", linewidth=1, label="window")
        axis.set(title=name, xlabel="seconds", ylabel="requests per second", ylim=(0, 2.1 * limit))
        axis.legend(loc="upper right", fontsize="small")
    IMAGE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGE, dpi=90)
    print(f"wrote {IMAGE.relative_to(ROOT)}")


def _factor(scenario: Scenario, at: float) -> float:
    return next((factor for time, factor in reversed(scenario.changes) if at > time), 1.0)


def main() -> None:
    """Measure, print, and write the table or the plot if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5, help="runs per cell")
    parser.add_argument("--only", default="", help="scenarios whose name holds this text")
    parser.add_argument("--write", action="store_true", help="write the result")
    parser.add_argument("--plot", action="store_true", help=f"write {IMAGE.name}")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="another constant")
    arguments = parser.parse_args()
    for setting in arguments.set:
        name, _, value = setting.partition("=")
        modules = [module for module in (controller, limits, refusals) if hasattr(module, name)]
        assert modules, f"there is no constant {name}"
        for module in modules:
            setattr(module, name, float(value))
    if arguments.plot:
        plot()
        return
    seeds = range(FIRST_SEED, FIRST_SEED + arguments.seeds)
    lines, _ = table([scenario for scenario in SCENARIOS if arguments.only in scenario.name], seeds)
    if not arguments.only:
        held_out: list[str] = []
        for name, scenarios in (("", HELD_OUT), (", second", HELD_OUT_2), (", third", HELD_OUT_3)):
            rows, cells = table(scenarios, seeds)
            lines.append(summary(f"held out{name}", cells))
            print(lines[-1])
            held_out += rows[2:] if held_out else rows
        random_lines = random_refusals.table(seeds)
        if arguments.write:
            _write([*lines, "", HELD, "", *held_out, "", RANDOM, "", *random_lines], seeds)


def _write(lines: list[str], seeds: range) -> None:
    text = (
        "Goodput in % of the oracle / refusals per 1,000 answers (Jain's index of fairness after the first "
        "minute)."
    )
    ends = (random_refusals.hopeless(seeds), recovery(seeds), overhead())
    lines = [*lines, *(line for end in ends for line in ("", end))]
    command = f"rate_control --seeds {len(seeds)}"
    report.write_lines("rate_control", "Rate control in simulated time", command, text, lines)


if __name__ == "__main__":
    main()
