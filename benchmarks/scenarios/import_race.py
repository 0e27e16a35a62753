"""First calls while the main thread imports other SDKs: 100 processes for each SDK, and how many fail.

Two threads that import each other's modules get unfinished ones. `_core/runtime/imports` waits and tries
again.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from llm_provider.simulator import Simulator

from ..hot_path import ROOT
from ..provider import MODELS
from ..report import Result, Table
from . import Options

PROCESSES = 100
AT_ONCE = 10
LONGEST_DELAY = 1.0
"""Seconds after the start of the call at which the main thread begins to import, at most."""

SECONDS = 300.0
PACKAGES = ("openai", "anthropic", "google-genai", "httpx2")
OTHERS = ("openai", "anthropic", "google.genai", "httpx2")
ROUTES = {
    **MODELS,
    "together_ai": "together_ai/zai-org/GLM-5.3",
    "litellm": "litellm/openai/gpt-6.1-sol",
}

PROGRAM = """
import importlib, json, sys, threading, time
url, model, delay, *imported = sys.argv[1:]
if imported[0] == "openai first":
    import openai
    del imported[0]
from llm_provider import Client
told = []

def work():
    with Client(cache="off") as client:
        try:
            told.append(client.call(model, "Hi", base_url=url, api_key="k", max_retries=0).text)
        except Exception as error:
            told.append(f"{type(error).__name__}: {error}")

threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
time.sleep(float(delay))
for name in imported:
    importlib.import_module(name)
for thread in threads:
    thread.join()
print(json.dumps(told))
"""
"""Prints what four threads were answered by their first calls."""

ANSWERS = ["echo: Hi"] * 4

HASTY = f"from llm_provider._core.runtime import imports\nimports.LONGEST_IMPORT = 0.0\n{PROGRAM}"
"""The same without a second attempt, which shows how often the first one fails."""


class Race(NamedTuple):
    """One process."""

    route: str
    delay: float
    imported: tuple[str, ...]
    program: str

    def run(self, simulator: Simulator) -> str:
        """Run it; returns its problem, or an empty text."""
        url = simulator.url("openai" if self.route == "litellm" else self.route)
        arguments = [url, ROUTES[self.route], str(self.delay), *self.imported]
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ}
        ran = subprocess.run(
            [sys.executable, "-c", self.program, *arguments],
            env={**kept, "PYTHONPATH": str(ROOT / "src")},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if ran.returncode:
            problem = ran.stderr.strip().rpartition("\n")[2] or f"exit status {ran.returncode}"
        else:
            problem = next((answer for answer in json.loads(ran.stdout) if answer != ANSWERS[0]), "")
        print(self.route, self.delay, *self.imported, problem or "right", file=sys.stderr, flush=True)
        return problem


def races(routes: Sequence[str], processes: int, program: str) -> list[Race]:
    """Races with random delays and orders, the same in every run. Half of them import openai before."""
    made = []
    for number in range(processes):
        chance = random.Random(number)
        for route in routes:
            order = tuple(chance.sample(OTHERS, chance.randint(1, len(OTHERS))))
            first = ("openai first",) if number % 2 else ()
            made.append(Race(route, round(chance.uniform(0.0, LONGEST_DELAY), 3), first + order, program))
    return made


def run(options: Options) -> Result:
    """Run all processes, some at a time."""
    routes = options.chosen(list(ROUTES))
    processes = options.rounds_or(options.count(PROCESSES))
    patient = races(routes, processes, PROGRAM)
    hasty = races(routes, max(1, processes // 10), HASTY)
    with Simulator() as simulator, ThreadPoolExecutor(AT_ONCE) as pool:
        problems = list(pool.map(lambda race: race.run(simulator), [*patient, *hasty]))
    failures = _failures(patient, problems[: len(patient)])
    without = _failures(hasty, problems[len(patient) :])
    failed, failed_without = (Counter(race.route for race, _ in found) for found in (failures, without))
    return Result(
        title="Imports by several threads",
        text="In each process four threads make the first call, and up to a second later the main thread "
        f"imports one to all of {', '.join(OTHERS)} in random order. In half of the processes openai was "
        "imported before. A process fails if a call fails or an import does. *Without waiting*, there is one "
        "attempt only.",
        tables=[
            Table(
                title="Processes",
                columns=("SDK of the call", "processes", "failed", "without waiting", "failed"),
                rows=[
                    [route, processes, failed[route], len(hasty) // len(routes), failed_without[route]]
                    for route in routes
                ],
            )
        ],
        measured={"import_failures": len(failures)},
        versions={"SDKs": {name: importlib.metadata.version(name) for name in PACKAGES}},
        problems=[
            f"{race.route}, {race.delay} s, {' '.join(race.imported)}: {problem}"
            for race, problem in failures
        ],
        data={"without waiting": sorted({problem for _, problem in without})},
    )


def _failures(raced: Sequence[Race], problems: Sequence[str]) -> list[tuple[Race, str]]:
    return [(race, problem) for race, problem in zip(raced, problems, strict=True) if problem]
