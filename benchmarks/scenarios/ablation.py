"""What each mechanism of the rate control is worth: the simulated scenarios with one mechanism switched off.

Nothing in `_core/pace` knows of this. A switch replaces a constant, a method or a field of a class.
"""

from __future__ import annotations

import functools
import json
import math
import statistics
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from importlib import import_module
from typing import Any, NamedTuple
from unittest.mock import patch

from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.limits import ConcurrencyWindow
from llm_provider._core.pace.random_refusals import RandomRefusals
from llm_provider._core.pace.state import Ticket

from ..rate_control import outages, random_refusals, simulation
from ..rate_control.baselines import Ours
from ..rate_control.scenarios import FINITE, HELD_OUT, HELD_OUT_2, HELD_OUT_3, SCENARIOS
from ..rate_control.simulation import Scenario, Simulation
from ..report import RESULTS, Cell, Result, Table
from . import Options

INF = math.inf
FIRST_SEED = 2000
SUSPECTS = 3
"""Scenarios in which the first seed shows the greatest loss; other seeds measure these again."""
MOST_REQUESTS = 6_000
"""A run ends after so many requests: its figures are rates, which are known by then."""

TEXT = (
    "Each mechanism of `_core/pace` is switched off alone. One seed of every scenario finds the three that "
    "most; other seeds measure these again, and the table shows the one that loses most. Speed is answers "
    "per second (of a finite batch: its whole time) in % of the complete rate control; refusals are per "
    "1,000 answers; in outages, requests beyond one per call. A mechanism stays if leaving it out costs 2 % "
    "of speed, 0.02 of Jain's index, 20 refusals per 1,000, or twice as many, by more than two standard "
    "errors."
)
REMOVED = "Removed, as measured before that"
COLUMNS = (
    "left out", "scenario", "speed, %", "refusals with it", "without", "fairness with it", "without", "stays",
)  # fmt: skip


BATCHES = [
    random_refusals.scenario(share, kind, calls, most)
    for calls, most in random_refusals.BATCHES[:1]
    for share in (0.05, 0.3)
    for kind in random_refusals.KINDS
]
WORLDS: dict[str, Scenario | outages.Outage] = {
    world.name: world
    for world in (
        *SCENARIOS, *HELD_OUT, *HELD_OUT_2, *HELD_OUT_3, *BATCHES, *random_refusals.HOPELESS,
        *outages.OUTAGES,
    )
}  # fmt: skip
TIMED = FINITE | {world.name for world in (*BATCHES, *random_refusals.HOPELESS)}


class Figures(NamedTuple):
    """The result of a run: answers per second, refusals per 1,000 answers, and Jain's index."""

    speed: float
    refused: float
    jain: float


def measure(name: str, seed: int) -> Figures:
    """One run of a scenario."""
    world = WORLDS[name]
    if isinstance(world, outages.Outage):
        run = outages.run(world, seed)
        more = 1000 * (run.requests - world.calls) / world.calls
        return Figures((world.calls - run.lost) / run.seconds, more, 1.0)
    outcome = Simulation(world, Ours, seed).run()
    if name in TIMED:
        ended = sum(outcome.done) + outcome.lost == world.calls * world.processes
        speed = 1 / (outcome.last_done if ended else world.duration)
    else:
        speed = outcome.units / outcome.seconds
    jain = 1.0 if world.processes == 1 or math.isnan(outcome.jain) else outcome.jain
    return Figures(speed, outcome.refused_per_thousand, jain)


_close_gate = AdaptiveController._close_gate  # noqa: SLF001  # a switch wraps it
_begin_window, _follow_rate = ConcurrencyWindow.__init__, RandomRefusals.follow_rate


def _without_gate(self: Any, now: float, ticket: Ticket, retry_after: float | None) -> None:
    self._estimator.resume(self.gate, self._charge(ticket.tokens))


def _failures_as(most: int, *, with_hint: bool = False) -> Any:
    """A `_close_gate` to which there were at most so many failures in a row."""

    def close(self: Any, now: float, ticket: Ticket, retry_after: float | None) -> None:
        failures = self._failures
        if not with_hint or retry_after is not None:
            self._failures = min(most, failures)
        _close_gate(self, now, ticket, retry_after)
        self._failures = failures

    return close


def _without_jitter(self: Any, *arguments: Any) -> None:
    with patch.object(self, "_random") as even:
        even.uniform = lambda low, high: (low + high) / 2
        _close_gate(self, *arguments)


def _without_guess(self: Any) -> None:
    _begin_window(self)
    self._guesses = False


def _constant(value: object) -> property:
    """In place of a field that then never changes."""
    return property(lambda _: value, lambda *_: None)


def _always(value: object) -> Any:
    return lambda *_, **__: value


GATE, WINDOW, RATE, REFUSALS = (
    "controller.AdaptiveController._close_gate", "limits.ConcurrencyWindow.", "limits.",
    "random_refusals.RandomRefusals.",
)  # fmt: skip
PARTS: dict[str, dict[str, Any]] = {
    # the gate
    "the gate after a refusal": {GATE: _without_gate},
    "Retry-After": {GATE: lambda self, now, ticket, _: _close_gate(self, now, ticket, None)},
    "jitter of the gate": {GATE: _without_jitter},
    "a gate that doubles": {GATE: _failures_as(1)},
    "a gate that doubles in spite of Retry-After": {GATE: _failures_as(1, with_hint=True)},
    "single probes": {"controller._FAST_REFUSAL": 0},
    "no more credit until a probe's answer": {RATE + "RateEstimator.hold": _always(None)},
    "giving up a scope that refuses everything": {
        "controller._HOPELESS": INF,
        "controller._HOPELESS_AT_FIRST": INF,
    },
    # headers
    "headers": {"controller.AdaptiveController.on_headers": _always(None)},
    "distrust of headers": {
        "controller.AdaptiveController._distrust_headers": lambda self: not self._heeds_headers
    },
    "distrust of headers where much is refused": {"controller._MOST_REFUSED": INF},
    "a window that begins anew after distrust": {WINDOW + "restart": _always(None)},
    "headers forgiven": {"controller._FORGIVE": 0},
    "headers in the tokens of answers": {"controller._SETTLED": 1e15},
    # the window
    "a first window of 256": {"limits.FIRST_WINDOW": 10**9, "controller.FIRST_WINDOW": 10**9},
    "proved caps": {"limits._CAP_PROOF": INF},
    "guessed caps": {WINDOW + "__init__": _without_guess},
    "spaced requests below a high guess": {"limits._MOST_AT_ONCE": INF},
    "requests whose refusal is on its way": {WINDOW + "_count_admitted": lambda _, ticket: ticket.in_flight},
    "refusals that a cap may explain": {WINDOW + "may_explain": _always(False)},
    "caps within 1.5 %": {"limits._CAP_CLOSENESS": 0},
    "attempts above a cap": {"limits._CAP_PROBE": INF},
    "caps disproved": {WINDOW + "_refused_below": _constant(0)},
    "the brake on latency": {"limits._SLOWED": INF},
    "a brake that does not help": {WINDOW + "_braked_at": _constant(INF)},
    "a smaller window after 503 and 529": {"limits._OVERLOADED_CUT": 1},
    # random refusals
    "random refusals": {REFUSALS + "follow_rate": _always(True), REFUSALS + "worth_a_trial": _always(False)},
    "Page's test": {
        REFUSALS + "follow_rate": lambda self, number, *, opening=True: (
            opening or _follow_rate(self, number, opening=False)
        )
    },
    "trials": {REFUSALS + "worth_a_trial": _always(False)},
    "random 503 and 529": {"controller.OVERLOAD_PROOF": -1e9},
    "more proof for 503 and 529": {"controller.OVERLOAD_PROOF": 0},
    "more proof after each random refusal": {"random_refusals._EACH": 0},
    "refusals in the order of sending": {"random_refusals._RECENT": 1},
    "a share that forgets": {"random_refusals._MEMORY": 1e9},
    "a share of 35 % at most": {"random_refusals._MOST_SHARE": 1.0},
    "two accepted before a trial": {"controller._ISOLATED": 0},
    "Retry-After of 5 s apart": {"controller._LONG_WAIT": INF},
    "growth after passed trials": {"random_refusals._GROWING": INF},
    "passed trials that hold for 24 requests": {"random_refusals._REPEATED": 0},
    "rarer trials after failed ones": {"random_refusals._AFTER_FAILURE": 0},
    "no early trial without random refusals": {"random_refusals._SURE": 0},
    "a pause after each of few refusals": {"random_refusals._FEW": 0},
    # the rate
    "a first rate that doubles": {RATE + "_DOUBLING": INF},
    "half of the first rate": {RATE + "_FIRST_CUT": 1},
    "the rate that was served": {"controller._PROOF": INF},
    "shorter sweeps while wide": {RATE + "_CYCLE_WIDE": 18.0},
    "shorter sweeps after a fall": {RATE + "_FALLEN": 0},
    "falls that are forgotten": {RATE + "_FORMER": 1e9},
    "narrower sweeps": {RATE + "_SHRINK": 1},
    "narrower sweeps step by step": {RATE + "_SHRINK": 100},
    "following": {RATE + "_AGREEING": -1},
    "following until refusals are due": {RATE + "_DUE_FROM": 0, RATE + "_DUE_UNTIL": INF},
    "growth beyond a sweep": {RATE + "_LATE": INF},
    "gentle growth": {RATE + "_GENTLE_GROWTH": 2},
    "growth of its own after trials": {RATE + "_RESTORED_GROWTH": 2},
    "growth by requests": {RATE + "_GROWTH_REQUESTS": 0},
    "another limit at 2.2 times the rate": {RATE + "_ANOTHER": INF},
    "a cut to 40 % at most": {RATE + "_LEAST_CUT": 0},
    "averaging": {RATE + "RateEstimator._weight": _constant(1.0)},
    "limits of tokens": {RATE + "_BEYOND_DOUBT": INF},
    "the newest rate after a late refusal": {RATE + "_DUE": INF},
    # outages and retries
    "outages": {"failures.Outage.record_failure": _always(None)},
    "a share of failures": {"failures._SHARE": 0},
    "twelve failures at once": {"failures._ENOUGH_FAILURES": INF},
    "five failures over a second": {"failures._LEAST_SECONDS": 0},
    "probes that become rarer": {"failures._GROWTH": 1},
    "the ramp": {"failures._RAMP": 1e9},
    "the retry budget": {"failures.RetryBudget.spend": _always(0.0)},
    "back-off of a call that doubles": {"failures._LONGEST_DELAY": 0.5},
}


STAYS = {
    "a share of 35 % at most": "a bound of the test",
    "five failures over a second": "five at once would be called an outage where 30 % fail at random",
    "back-off of a call that doubles": "docs/retries.md promises it; no scenario has single calls",
    "gentle growth": "third 3 at full length: 99 refusals instead of 72",
    "narrower sweeps step by step": "random 4 at full length: fairness 0.952 instead of 0.992",
    "following until refusals are due": "64 processes at full length: fairness 0.942 instead of 0.970",
    "falls that are forgotten": "after a fall for good, refusals stay twice as many",
    "caps within 1.5 %": "third 9 with 20 other seeds: fairness 0.721 instead of 0.770",
    "headers forgiven": "one line; a process of days would never believe headers again",
    "jitter of the gate": "second 3 at full length: 319 refusals instead of 283",
    "growth by requests": "random 3 with 20 other seeds: 2,346 refusals instead of 1,570",
}
"""Why a mechanism stays that is not worth anything here."""


def measure_without(part: str, names: Iterable[str], seeds: Mapping[str, range]) -> dict[str, list[Figures]]:
    """The figures of scenarios, one for each seed, without a mechanism; "" for the complete rate control."""
    with ExitStack() as switched, patch.object(simulation, "MOST_REQUESTS", MOST_REQUESTS):
        for path, value in PARTS.get(part, {}).items():
            module, *owners, name = path.split(".")
            owner: Any = import_module(f"llm_provider._core.pace.{module}")
            for each in owners:
                owner = getattr(owner, each)
            switched.enter_context(patch.object(owner, name, value, create=True))
        return {name: [measure(name, seed) for seed in seeds[name]] for name in names}


def judge(part: str, whole: Mapping[str, Figures], seeds: Mapping[str, range]) -> tuple[list[Cell], bool]:
    """The row of a mechanism, and whether it is worth something."""
    about_outages = any(path.startswith("failures.") for path in PARTS[part])
    fit = [name for name in whole if isinstance(WORLDS[name], outages.Outage) == about_outages]
    first = measure_without(part, fit, _first(fit))
    losses = {name: max(_losses(whole[name], figures)) for name, (figures,) in first.items()}
    suspects = sorted(fit, key=losses.__getitem__, reverse=True)[:SUSPECTS]
    before = {name: _complete(name, seeds[name]) for name in suspects}
    after = measure_without(part, suspects, seeds)
    found = []
    for name in suspects:
        pairs = list(zip(before[name], after[name], strict=True))
        means = [
            Figures(*map(statistics.fmean, zip(*side, strict=True))) for side in (before[name], after[name])
        ]
        errors = [
            2 * statistics.stdev(values) / math.sqrt(len(pairs)) if len(pairs) > 1 else 0.0
            for values in zip(*(_losses(*pair) for pair in pairs), strict=True)
        ]
        lost = _losses(*means)
        proved = max(loss if loss > error else 0.0 for loss, error in zip(lost, errors, strict=True))
        found.append((proved, max(lost), name, means))
    proved, _, name, (complete, without) = max(found)
    row: list[Cell] = [part, name, 100 * without.speed / complete.speed, complete.refused, without.refused]
    row += [complete.jain, without.jain]
    print(*row, f"{proved:.2f}", sep=" | ", file=sys.stderr, flush=True)
    return row, proved >= 1


@functools.cache
def _complete(name: str, seeds: range) -> list[Figures]:
    return measure_without("", [name], {name: seeds})[name]


def _losses(whole: Figures, without: Figures) -> tuple[float, float, float]:
    """The losses of speed, of refusals and of fairness; 1 is the least that counts."""
    more = without.refused - whole.refused
    doubled = more / max(5.0, whole.refused)
    return 50 * (1 - without.speed / whole.speed), max(more / 20, doubled), 50 * (whole.jain - without.jain)


def run(options: Options) -> Result:
    """Switch every mechanism off in turn, or in a quick run one of them."""
    parts = ["the ramp"] if options.quick else list(PARTS)
    with ProcessPoolExecutor(2) as pool:
        names = [
            name for name, world in WORLDS.items() if not options.quick or isinstance(world, outages.Outage)
        ]
        whole = {name: figures for name, (figures,) in measure_without("", names, _first(names)).items()}
        judged = pool.map(functools.partial(judge, whole=whole, seeds=_others(whole)), parts)
        rows = [[*row, "yes" if proved else STAYS.get(str(row[0]), "no")] for row, proved in judged]
    tables = [Table(title="Mechanisms", columns=COLUMNS, rows=rows)]
    removed = [[*row[:-1], "no"] for row in _known() if row[0] not in PARTS]
    if removed:
        tables.append(Table(title=REMOVED, columns=COLUMNS, rows=removed))
    return Result(title="What each mechanism of the rate control is worth", text=TEXT, tables=tables)


def _known() -> list[list[Cell]]:
    """The rows of the committed result."""
    path = RESULTS / "ablation.json"
    facts = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"tables": []}
    return [row for table in facts["tables"] for row in table["rows"]]


def _first(names: Iterable[str]) -> dict[str, range]:
    return dict.fromkeys(names, range(1000, 1001))


def _others(whole: Mapping[str, Figures]) -> dict[str, range]:
    """The seeds of the second measurement: more where few requests leave much to chance."""
    seeds = {}
    for name in whole:
        world = WORLDS[name]
        few = isinstance(world, Scenario) and (name in TIMED or whole[name].speed * world.duration < 2000)
        seeds[name] = range(FIRST_SEED, FIRST_SEED + (16 if few else 5))
    return seeds
