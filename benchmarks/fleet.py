"""Worker processes, one per client, and the measurement of many cells in turn, round after round."""

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

from llm_provider._core.requests.routing import COMPATIBLE_HOSTS

from .clients import Target, offers
from .environments import ROOT, interpreter
from .provider import MODELS, Provider, cores

Key = TypeVar("Key", bound=Hashable)

SUM = "What is {n}+{n}?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The work of a worker in one round.

    `load` is the name of a load in `loads` and its parameters, `count` the number of its calls, `warm` the
    number of calls before the clock starts. With `fresh` a new client is created after the clock has
    started, without open connections. `question` and `answer` may contain {n}, a number that differs from
    call to call, and {twice}, its double; an `answer` of None accepts any text. `messages` is the length of
    each conversation.
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
    """One cell of a table: a client, its job, and the settings of the provider."""

    client: str
    job: Job
    settings: Mapping[str, Any] = field(default_factory=dict)
    provider: Provider | None = None
    """The provider it asks, where that is not the fleet's own."""
    checkout: Path = ROOT
    """The working copy of this repository whose library and worker run."""
    python: Path | None = None
    """The interpreter, where that is not the one of the client's environment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """The figures of a cell: medians over its rounds, except for the sums and peaks at the end.

    Only right answers count: `cpu` is CPU time of the client's process per right answer, in microseconds,
    `rate` right answers a second, and latencies are those of right answers. Without a right answer they are
    not a number. `wall`, latencies and times to the first token are in seconds; `slow` is the fraction of
    calls above ten seconds. `server_share` is the fraction of one core that the provider used.
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
        """A figure to compare with a goal; not a number if calls failed, as it proves nothing then."""
        value: float = getattr(self, name)
        return math.nan if self.failed else value


class WorkerError(RuntimeError):
    """A worker ended before it answered."""


class _Process:
    """The worker of one client, with the library and the `benchmarks` package of one checkout."""

    def __init__(self, client: str, python: str, environment: Mapping[str, str], checkout: Path) -> None:
        chosen = cores()
        # Messages of SDKs are of interest only where the worker fails.
        descriptor, log = tempfile.mkstemp(suffix=".log", dir=environment["TMPDIR"])
        self._log = Path(log)
        command = [python, "-m", "benchmarks.worker", client]
        with os.fdopen(descriptor, "wb") as output:
            self._process = subprocess.Popen(
                command if chosen is None else [*command, str(chosen[1])],
                cwd=checkout,
                env={**environment, "PYTHONPATH": str(checkout / "src")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
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
            log = self._log.read_text(encoding="utf-8", errors="replace")[-3000:]
            raise WorkerError(f"{self._process.args}: exit code {self._process.wait()}\n{log}")
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
    """The workers of a scenario, each started by its first job.

    Args:
        provider: The simulated provider; None for real providers, with the API keys of the environment.
        here: Run every client in the current environment, with its packages, instead of the client's own.
    """

    def __init__(self, provider: Provider | None, *, here: bool = False) -> None:
        self._provider = provider
        self._here = here
        self.problems: list[str] = []
        self._rounds = 0
        self._samples: dict[str, Any] = {}
        self._workers: dict[tuple[str, Path, Path | None], _Process] = {}
        self._directory = tempfile.TemporaryDirectory(prefix="benchmark-", ignore_cleanup_errors=True)
        self._environment = {**os.environ, "TMPDIR": self._directory.name}
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
        """The Python and the packages of every client that was asked, by its name."""
        return {
            f"{client}, {python.parts[-3].removeprefix('.venv-')}" if python else client: worker.versions
            for (client, _, python), worker in self._workers.items()
        }

    @property
    def facts(self) -> dict[str, Any]:
        """The fields that every `Result` takes from its fleet."""
        return {
            "versions": self.versions,
            "problems": self.problems,
            "rounds": self._rounds,
            "data": self._samples,
        }

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
        """A cell for the simulated provider, or for a proxy in front of it on another port."""
        asked = provider or self._provider
        assert asked is not None
        target = Target(route=route, model=MODELS[route], base_url=asked.url(route, port))
        made = Job(target=target, load=load, count=count, **{**job, "warm": min(job.get("warm", 0), count)})
        return Cell(client=client, job=made, settings=settings or {}, provider=provider)

    def measure(
        self, cells: Mapping[Key, Cell], rounds: int, *, alternate: bool = False
    ) -> dict[Key, Measurement]:
        """Measure every cell once a round, in turn, so that a disturbance of the machine affects all alike.

        Args:
            cells: The cells by key.
            rounds: The number of rounds.
            alternate: Reverse the order in every second round.
        """
        taken: dict[Key, list[dict[str, Any]]] = {key: [] for key in cells}
        for number in range(rounds):
            order = list(cells.items())
            if alternate and number % 2:
                order.reverse()
            for place, (key, cell) in enumerate(order):
                progress = f"round {number + 1}/{rounds}, {place + 1}/{len(cells)}: {cell.client}"
                print(f"\r{progress:60}", end="", file=sys.stderr, flush=True)
                taken[key].append(self._once(cell))
        print(f"\r{'':60}\r", end="", file=sys.stderr)
        found = {key: _summary(cell.job.count, taken[key]) for key, cell in cells.items()}
        self._rounds = rounds
        self._samples = {
            key if isinstance(key, str) else " / ".join(map(str, key)): one.samples
            for key, one in found.items()
        }
        for key, one in found.items():
            if one.failed:
                asked = f"{cells[key].client}, {cells[key].job.target.route}"
                self.problems.append(f"{asked}: {one.failed} of {rounds * one.calls} failed: {one.error}")
        return found

    def _once(self, cell: Cell) -> dict[str, Any]:
        name = cell.client, cell.checkout, cell.python
        worker = self._workers.get(name)
        if worker is None:
            python = cell.python or Path(sys.executable)
            if not self._here and cell.python is None:
                python = interpreter(offers()[cell.client].environment)
            worker = self._workers[name] = _Process(
                cell.client, str(python), self._environment, cell.checkout
            )
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
    """The load of a fixed number of concurrent calls."""
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
    """The value below which a fraction of the values lies; not a number without values.

    >>> quantile([4.0, 1.0, 3.0, 2.0], 0.5), quantile([], 0.5)
    (3.0, nan)
    """
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))] if ordered else math.nan
