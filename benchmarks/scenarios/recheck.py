"""What `recheck` sees: false alarms and power of its tests, computed or by simulated answers."""

from __future__ import annotations

import math
from random import Random
from statistics import mean

from llm_provider._features.recheck.report import (
    ALPHA,
    compare_triples,
    compare_within,
    find_alarm,
    find_border_power,
    find_size,
    sum_tail,
)

from ..report import Cell, Result, Table
from . import Options

RUNS = 1000
YEARS = 20
ONE_ANSWER = 0.000_06
"""USD: 100 tokens in and 100 out of a small open model at 0.30 USD per million."""
BORDER_ANSWER = 0.000_003
"""USD: 9 tokens in and one out of the same model."""

TEXT = (
    "False alarms are those of a model that has not changed; power is the share of alarms after the "
    "change. An answer deviates from the usual one to its question at random, so that two answers differ "
    "with the probability of the floor. After the change, stored and new answers differ with the "
    "probability in the second column. The tests are those of the library, with alpha 0.01. Known floors "
    "are computed exactly, the other rows are simulated. Fisher's test, which the library does not have, "
    "compares the share of differing answers with that of as many pairs of new answers. Where the floor "
    "is measured, each question is asked twice."
)


def run(options: Options) -> Result:
    """Compute or simulate every row."""
    runs = 20 if options.quick else options.rounds_or(RUNS)
    rows: list[list[Cell]] = []
    for floor, share in ((0.001, 0.05), (0.01, 0.05), (0.01, 0.1), (0.01, 0.2), (0.1, 0.3)):
        size = find_size(floor, share)
        alarm = find_alarm(size, floor)
        false, power = (sum_tail(alarm, size, rate) for rate in (floor, share))
        name = f"floor {floor:.1%}, known: alarm at {alarm}"
        rows.append([name, f"{share:.0%}", size, size, size * ONE_ANSWER, f"{false:.2%}", f"{power:.1%}"])
    for name, simulate, size in (
        ("floor 1.0%, measured", simulate_measured, find_size(None, 0.05)),
        ("floor 1.0%, measured", simulate_measured, 585),
        ("floor 1.0%, measured, Fisher", simulate_fisher, 585),
    ):
        false, power = (simulate(size, 0.01, rate, runs) for rate in (0.01, 0.05))
        cost = 2 * size * ONE_ANSWER
        rows.append([name, "5%", size, 2 * size, cost, f"{false:.2%}", f"{power:.1%}"])
    shifts: list[list[Cell]] = []
    for shift in (0.0, 0.1, 0.15, 0.2, 0.3):
        alarms, estimate = simulate_border(shift, runs)
        expected = f"{find_border_power([0.6] * 20, 30, shift):.1%}" if shift else None
        shifts.append([f"{shift:.2f}", f"{alarms:.1%}", expected, f"{estimate:.3f}"])
    years = 1 if options.quick else YEARS
    days: list[list[Cell]] = [[number + 1, alarms] for number, alarms in enumerate(simulate_days(years))]
    cost = 20 * 31 * BORDER_ANSWER
    title = f"20 border prompts, 30 + 30 answers of one token, about {cost:.4f} USD a recheck"
    border = ("shift", "alarms", "as planned", "mean estimate")
    return Result(
        title="What rechecks see",
        text=TEXT,
        tables=[
            Table(
                title=f"Stored answers; {runs:,} simulated rechecks of each kind where the floor is measured",
                columns=("test", "differ", "questions", "new answers", "USD", "false alarms", "power"),
                rows=rows,
            ),
            Table(title=f"{title}; {runs:,} rechecks of each kind", columns=border, rows=shifts),
            Table(
                title=f"Daily rechecks of a model that does not change, {years} years, a reference for each",
                columns=("days in a row for an alarm", "false alarms a year"),
                rows=days,
            ),
        ],
    )


def simulate_measured(size: int, floor: float, share: float, runs: int) -> float:
    """The share of alarms where each stored answer is compared with two new ones."""
    random, deviates, changed = Random(1), 1 - math.sqrt(1 - floor), (share - floor) / (1 - floor)

    def answer(usual: str) -> str:
        return f"deviates {random.random()}" if random.random() < deviates else usual

    alarms = 0
    for _ in range(runs):
        usual = ["new" if random.random() < changed else "stored" for _ in range(size)]
        alarms += compare_triples([(answer("stored"), answer(text), answer(text)) for text in usual]) <= ALPHA
    return alarms / runs


def simulate_fisher(size: int, floor: float, share: float, runs: int) -> float:
    """The share of alarms of Fisher's exact test, one-sided, of two independent groups of answers."""
    random, alarms = Random(1), 0
    for _ in range(runs):
        first, second = (sum(random.random() < rate for _ in range(size)) for rate in (share, floor))
        both = first + second
        ways = sum(math.comb(size, k) * math.comb(size, both - k) for k in range(first, min(size, both) + 1))
        alarms += ways / math.comb(2 * size, both) <= ALPHA
    return alarms / runs


def simulate_border(shift: float, runs: int) -> tuple[float, float]:
    """The share of alarms, and the mean estimate."""
    random, alarms, estimates = Random(2), 0, []
    for _ in range(runs):
        shares = [0.5 + 0.2 * random.random() for _ in range(20)]
        estimate, p_value = compare_within(
            [(draw(random, share), draw(random, share - shift)) for share in shares]
        )
        estimates.append(estimate)
        alarms += p_value <= ALPHA
    return alarms / runs, mean(estimates)


def simulate_days(years: int) -> list[float]:
    """The false alarms a year if an alarm needs one, two or three days in a row."""
    random, alarms = Random(3), [0, 0, 0]
    for _ in range(years):
        shares, row = [0.5 + 0.2 * random.random() for _ in range(20)], 0
        reference = [draw(random, share) for share in shares]
        for _ in range(365):
            today = [(each, draw(random, share)) for each, share in zip(reference, shares, strict=True)]
            row = row + 1 if compare_within(today)[1] <= ALPHA else 0
            alarms = [number + (row == needed) for needed, number in enumerate(alarms, 1)]
    return [number / years for number in alarms]


def draw(random: Random, share: float) -> list[str]:
    """30 first tokens, of two kinds."""
    return ["yes" if random.random() < share else "no" for _ in range(30)]
