"""Workers, one per client, and the measurement of many cells in turn, round after round."""

from __future__ import annotations

import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from llm_provider._requests.routing import COMPATIBLE_HOSTS

from .clients import Target, offers
from .environments import ROOT, interpreter
from .provider import MODELS, Provider, cores

Key = TypeVar("Key", bound=Hashable)

SUM = "What is {n}+{n}?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a worker does in one round.

    `load` is the name of a shape in `loads` and its parameters, `count` how many calls it makes, `warm`
    how many are made before the clock starts. `fresh` has the client made anew, on the clock, so that no
    connection is open. `question` and `answer` may contain {n}, which no two calls share, and {twice};
    an `answer` of None takes any text. `messages` is the length of each conversation.
    """

    target: Target
    load: Mapping[str, Any]
    count: int
    warm: int = 0
    fresh: bool = False
    question: str = SUM
    answer: str | None = "{twice}"
    messages: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One cell of a table: who does what, and how the provider behaves meanwhile."""

    client: str
    job: Job
    settings: Mapping[str, Any] = field(default_factory=dict)
    provider: Provider | None = None
    """Whom it asks, where that is not the fleet's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a cell's rounds gave: medians over the rounds, except for the sums and peaks at the end.

    What is not right counts for nothing: `cpu` is microseconds of the client's process per right answer,
    `rate` right answers a second, latencies are those of right answers; not a number where there are none.
    `wall`, latencies and times to the first token are seconds, `slow` is the part of the calls that took
    above ten of them. `server_share` is the part of one core that the provider used meanwhile.
    """

    calls: int
    wall: float
    cpu: float
    rate: float
    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    first_p50: float
    first_p95: float
    characters_rate: float
    slow: float
    server_share: float
    failed: int
    connections: int
    peak: int
    error: str | None = None
    samples: Sequence[Mapping[str, float]] = ()

    def figure(self, name: str) -> float:
        """A figure to be compared with a goal: not a number where calls failed, which proves nothing."""
        value: float = getattr(self, name)
        return math.nan if self.failed else value


class WorkerError(RuntimeError):
    """A worker ended before it answered."""


class _Process:
    """The worker of one client."""

    def __init__(self, client: str, python: str, environment: Mapping[str, str]) -> None:
        chosen = cores()
        # What SDKs say there is of interest only where the worker fails.
        self._said = Path(environment["TMPDIR"], f"{client}.log")
        command = [python, "-m", "benchmarks.worker", client]
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                command if chosen is None else [*command, str(chosen[1])],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                text=True,
            )
        self.versions: dict[str, str] = self._answer()

    def ask(self, job: Job) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asdict(job)) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            said = self._said.read_text(encoding="utf-8", errors="replace")[-3000:]
            raise WorkerError(f"{self._process.args}: exit code {self._process.wait()}\n{said}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Fleet:
    """The workers of a scenario, started when first asked.

    Args:
        provider: Who is asked; None for real providers, whose keys are then the environment's.
        here: Run every client in this very environment, with the packages that it has, instead of its own.
    """

    def __init__(self, provider: Provider | None, *, here: bool = False) -> None:
        self._provider = provider
        self._here = here
        self.problems: list[str] = []
        self._workers: dict[str, _Process] = {}
        self._directory = tempfile.TemporaryDirectory(prefix="benchmark-", ignore_cleanup_errors=True)
        self._environment = {**os.environ, "TMPDIR": self._directory.name}
        self._environment.pop("PYTHONPATH", None)
        if provider is not None:
            self._environment |= provider.simulator.environment(*COMPATIBLE_HOSTS)
            self._environment["NO_PROXY"] = "127.0.0.1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for worker in self._workers.values():
            worker.close()
        self._directory.cleanup()

    @property
    def versions(self) -> dict[str, dict[str, str]]:
        """The packages of every client that was asked."""
        return {client: worker.versions for client, worker in self._workers.items()}

    def cell(
        self,
        client: str,
        route: str,
        load: Mapping[str, Any],
        count: int,
        *,
        provider: Provider | None = None,
        port: int | None = None,
        settings: Mapping[str, Any] | None = None,
        **job: Any,
    ) -> Cell:
        """A cell that asks the simulated provider, or what stands before it on another port."""
        asked = provider or self._provider
        assert asked is not None
        target = Target(route=route, model=MODELS[route], base_url=asked.url(route, port))
        made = Job(target=target, load=load, count=count, **{**job, "warm": min(job.get("warm", 0), count)})
        return Cell(client=client, job=made, settings=settings or {}, provider=provider)

    def measure(self, cells: Mapping[Key, Cell], rounds: int) -> dict[Key, Measurement]:
        """Measure every cell once a round, in turn, so that the machine's moods meet all of them alike."""
        taken: dict[Key, list[dict[str, Any]]] = {key: [] for key in cells}
        for number in range(rounds):
            for place, (key, cell) in enumerate(cells.items()):
                told = f"round {number + 1}/{rounds}, {place + 1}/{len(cells)}: {cell.client}"
                print(f"\r{told:60}", end="", file=sys.stderr, flush=True)
                taken[key].append(self._once(cell))
        print(f"\r{'':60}\r", end="", file=sys.stderr)
        found = {key: _summary(cell.job.count, taken[key]) for key, cell in cells.items()}
        for key, one in found.items():
            if one.failed:
                asked = f"{cells[key].client}, {cells[key].job.target.route}"
                self.problems.append(f"{asked}: {one.failed} of {rounds * one.calls} failed: {one.error}")
        return found

    def _once(self, cell: Cell) -> dict[str, Any]:
        worker = self._workers.get(cell.client)
        if worker is None:
            python = sys.executable if self._here else str(interpreter(offers()[cell.client].environment))
            worker = self._workers[cell.client] = _Process(cell.client, python, self._environment)
        provider = cell.provider or self._provider
        if provider is None:
            return {**worker.ask(cell.job), "server": 0.0, "connections": 0, "peak": 0}
        provider.behave(**cell.settings)
        if cell.job.warm:
            worker.ask(_warming(cell.job))
            provider.behave(**cell.settings)
        before = provider.cpu
        answer = worker.ask(cell.job)
        used = provider.cpu - before
        ledger = provider.simulator.ledger()
        seen = {"connections": ledger.connections, "peak": ledger.peak_in_flight}
        return {**answer, "server": used, **seen}


def closed(concurrency: int, *, stream: bool = False) -> dict[str, Any]:
    """The load of so many calls at a time."""
    return {"name": "closed", "concurrency": concurrency, "stream": stream}


def _warming(job: Job) -> Job:
    load = job.load
    if load["name"] == "arrivals":
        load = closed(job.warm)
    return replace(job, load=load, count=job.warm, warm=0, fresh=False)


def _summary(count: int, rounds: Sequence[Mapping[str, Any]]) -> Measurement:

    def median(of: Callable[[Mapping[str, Any]], float]) -> float:
        return statistics.median(of(one) for one in rounds)

    def cpu(one: Mapping[str, Any]) -> float:
        right = count - one["failed"]
        return one["cpu"] / right * 1e6 if right else math.nan

    def latency(part: float) -> float:
        return median(lambda one: quantile(one["latencies"], part))

    return Measurement(
        calls=count,
        wall=median(lambda one: one["wall"]),
        cpu=median(cpu),
        rate=median(lambda one: (count - one["failed"]) / one["wall"]),
        mean=median(lambda one: statistics.fmean(one["latencies"] or [math.nan])),
        p50=latency(0.50),
        p90=latency(0.90),
        p95=latency(0.95),
        p99=latency(0.99),
        first_p50=median(lambda one: quantile(one["firsts"], 0.50)),
        first_p95=median(lambda one: quantile(one["firsts"], 0.95)),
        characters_rate=median(lambda one: one["characters"] / one["wall"]),
        slow=median(lambda one: sum(value > 10 for value in one["latencies"]) / count),
        server_share=median(lambda one: one["server"] / one["wall"]),
        failed=sum(one["failed"] for one in rounds),
        connections=max(one["connections"] for one in rounds),
        peak=max(one["peak"] for one in rounds),
        error=next((one["error"] for one in rounds if one["error"]), None),
        samples=[{"wall": one["wall"], "cpu": cpu(one)} for one in rounds],
    )


def quantile(values: Sequence[float], part: float) -> float:
    """The value below which a part of them lies; not a number where there are none.

    >>> quantile([4.0, 1.0, 3.0, 2.0], 0.5), quantile([], 0.5)
    (3.0, nan)
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else math.nan
