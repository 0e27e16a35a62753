"""`kill -9` at every step of a batch: rows lost, rows paid twice, and the ledger against the bill."""

from __future__ import annotations

import random
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ..batch_kills import MODELS, STEPS, Found
from ..batch_kills import run as trials_of
from ..report import Result, Table
from . import Options

ROUNDS = 10
"""Kills at each step, with every provider."""
AT_ONCE = 3
"""Providers whose processes are killed at the same time: most of a trial is waiting."""
COUNTS = ("kills", "rows", "lost", "wrong", "paid")


def run(options: Options) -> Result:
    """Kill processes with every provider, and count."""
    providers = options.chosen(list(MODELS))
    kills = len(STEPS) * options.rounds_or(ROUNDS)

    def count(number: int) -> Found:
        with tempfile.TemporaryDirectory() as folder:
            return trials_of(providers[number], Path(folder), steps_of(kills, number))

    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(count, range(len(providers))))
    return result(dict(zip(providers, found, strict=True)), kills)


def steps_of(kills: int, seed: int) -> list[tuple[str, ...]]:
    """The trials: one to three kills each, every step equally often."""
    chance = random.Random(seed)
    steps = [step for _ in range(1 + kills // len(STEPS)) for step in STEPS][:kills]
    chance.shuffle(steps)
    trials = []
    while steps:
        count = chance.choice((1, 1, 1, 2, 3))
        trials.append(tuple(steps[:count]))
        steps = steps[count:]
    return trials


def result(found: dict[str, Found], kills: int) -> Result:
    """The page of a run."""
    return Result(
        title="Killed batches",
        text="A process runs `call_many(..., delivery='batch')` on the simulator, or on the server of a "
        "cloud with buckets. There it is held at a step and killed with `kill -9`, or killed at a random "
        "moment. Another process runs the same call, perhaps to be killed too, and the last one to its "
        "end. Cache, journal and ledger are the same for all trials of a provider. Lost answers of "
        "submissions, half-read results and submissions that were never accepted are among the steps.",
        tables=[
            Table(
                title=f"{kills} kills per provider",
                columns=("provider", *COUNTS, "billed, USD", "in the ledger"),
                rows=[
                    (name, *(getattr(one, count) for count in COUNTS), str(one.billed), str(one.spent))
                    for name, one in found.items()
                ],
            ),
            Table(
                title="Kills by step",
                columns=("step", *found),
                rows=[(step, *(one.by_step.get(step, 0) for one in found.values())) for step in STEPS],
            ),
        ],
        problems=[problem for one in found.values() for problem in one.problems],
    )
