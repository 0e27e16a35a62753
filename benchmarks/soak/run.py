"""Runs the workers of a soak, and disturbs them at fixed fractions of its time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from llm_provider._core.money.pricing import default_prices_path
from llm_provider.simulator import Ledger, Simulator

from ..environments import ROOT
from .clock import STEP, SteppedClock
from .proxy import Proxy, Sent

WORKERS = 4
FIRST = "w0"
"""This worker is never killed: its memory and its descriptors are watched for the whole time."""
OUTAGE_SECONDS = 60.0
OUTAGE_PART = 0.1
"""A cut, or a full disk, lasts a minute, in short runs this part of the time."""
CUT_AT, FULL_AT, STEPS_AT = 0.15, 0.4, (0.7, 0.78, 0.86)
KILL_SECONDS = (3.0, 8.0)
JUST_ENDED = 2.0
"""Seconds: an answer that arrived this shortly before a kill may not have been stored yet."""
WRITE_AGAIN_SECONDS = 35.0
READY_SECONDS, LAST_SECONDS = 120.0, 600.0
MB = 1_000_000


@dataclass
class Kill:
    """A `kill -9`, and the requests for prompts of that worker that were in flight."""

    at: float
    worker: str
    in_flight: list[Sent]


@dataclass
class Sample:
    """Memory and open files of the first worker."""

    at: float
    rss: float
    """MB."""
    descriptors: int


@dataclass
class Record:
    """Everything that a run has left behind for the checks."""

    folder: Path
    share: float = 0.0
    """Fraction of the requests that met each kind of fault."""
    began: float = 0.0
    ended: float = 0.0
    """The end of the disturbances; the workers then finish their batches."""
    sent: list[Sent] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)
    cut: tuple[float, float] | None = None
    full: tuple[float, float] | None = None
    steps: int = 0
    skipped: list[str] = field(default_factory=list)
    """Disturbances that this machine does not allow, with the reason."""
    problems: list[str] = field(default_factory=list)
    bill: Ledger | None = None


@contextlib.contextmanager
def small_disk(place: Path, size: float) -> Iterator[str]:
    """A file system of `size` MB at a place; yields why there is none, empty if there is one.

    The directory is usable in both cases.
    """
    place.mkdir(mode=0o700)
    options = f"size={int(size)}m,mode=0700"
    try:
        subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError):
        yield "this user may not mount a small file system"
        return
    try:
        yield ""
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


class Soak:
    """A run.

    Args:
        folder: An empty folder.
        minutes: How long the workers are disturbed.
        share: Fraction of the requests that meets each kind of fault.
        seed: Seed of all random choices.
    """

    def __init__(self, folder: Path, minutes: float, share: float, seed: int = 1) -> None:
        self.record = Record(folder, share)
        self._folder = folder
        self._seconds = minutes * 60
        self._seed = seed
        self._random = random.Random(seed)
        self._names = [f"w{number}" for number in range(WORKERS)]
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._clock = SteppedClock(folder)
        self._kills_paused = False
        self._environment: Mapping[str, str] = {}

    def run(self) -> Record:
        """Run everything, and return what was seen."""
        disk = self._folder / "disk"
        size = 64 + 12 * self._seconds / 60
        prices = default_prices_path()
        with small_disk(disk, size) as no_disk, Simulator(prices=prices, answer="echo") as simulator:
            simulator.configure(latency=0.05, latency_jitter=0.1, chunk_interval=0.002, cached_tokens=3)
            try:
                asyncio.run(self._run(simulator, disk, no_disk))
            finally:
                for process in self._workers.values():
                    process.kill()
                    process.wait()
            self.record.bill = simulator.ledger()
            self._check(disk)
        return self.record

    async def _run(self, simulator: Simulator, disk: Path, no_disk: str) -> None:
        proxy = Proxy(simulator.port, self.record.share, self._seed)
        self.record.sent = proxy.sent
        await proxy.open()
        variables = simulator.environment()
        old, new = f":{simulator.port}/", f":{proxy.port}/"
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            **{name: value.replace(old, new) for name, value in variables.items()},
            "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT))),
        }
        for name in self._names:
            self._start(name)
        await self._until_ready()
        self.record.began = time.monotonic()
        tasks = [self._watch(), self._kill(proxy), self._cut(proxy), self._step()]
        if no_disk:
            self.record.skipped.append(f"the disk was not filled: {no_disk}")
        else:
            tasks.append(self._fill(disk))
        running = [asyncio.create_task(task) for task in tasks]
        await self._after(1.0)
        for task in running:
            task.cancel()
        for result in await asyncio.gather(*running, return_exceptions=True):
            if isinstance(result, Exception):
                raise result
        self.record.ended = time.monotonic()
        (self._folder / "stop").touch()
        await self._until_finished()
        proxy.cut()
        await self._until(lambda: all(one.ended is not None for one in proxy.sent), READY_SECONDS)

    # --- the workers -----------------------------------------------------------------------------------

    def _start(self, name: str) -> None:
        order = {"name": name, "folder": str(self._folder), "cache": str(self._folder / "disk" / "cache")}
        with (self._folder / f"{name}.stderr").open("ab") as errors:
            self._workers[name] = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.soak.worker", json.dumps(order)],
                cwd=ROOT,
                env={**self._environment, **self._clock.environment},
                stdin=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )

    async def _until_ready(self) -> None:
        outputs = [self._folder / f"{name}.jsonl" for name in self._names]
        if not await self._until(lambda: all(one.exists() for one in outputs), READY_SECONDS):
            raise RuntimeError("the workers did not start; their messages are in *.stderr")

    async def _until_finished(self) -> None:
        if not await self._until(
            lambda: all(one.poll() is not None for one in self._workers.values()), LAST_SECONDS
        ):
            self.record.problems.append(f"a worker did not end within {LAST_SECONDS:.0f} s")
        for name, process in self._workers.items():
            if process.poll() not in (0, None):
                self.record.problems.append(f"{name} ended with {process.returncode}: {self._message(name)}")

    def _message(self, name: str) -> str:
        lines = (self._folder / f"{name}.stderr").read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "without a message"

    def _check(self, disk: Path) -> None:
        """Read every answer from the cache in a new process."""
        asked = {tag for _, tag in lines_about(self._folder, "right", "error")}
        names = self._folder / "asked.json"
        names.write_text(json.dumps(sorted(asked)))
        order = {"name": "check", "folder": str(self._folder), "cache": str(disk / "cache")}
        told = subprocess.run(
            [sys.executable, "-m", "benchmarks.soak.worker", json.dumps({**order, "check": str(names)})],
            cwd=ROOT,
            env=self._environment,
            capture_output=True,
            check=False,
        )
        if told.returncode:
            self.record.problems.append(f"the last check failed: {told.stderr.decode()[-300:]}")

    # --- the disturbances ------------------------------------------------------------------------------

    async def _kill(self, proxy: Proxy) -> None:
        await self._after(0.03)
        while True:
            pause = min(self._random.uniform(*KILL_SECONDS), self._seconds / 8)
            await asyncio.sleep(pause)
            if self._kills_paused:
                continue
            name = self._random.choice(self._names[1:])
            process = self._workers[name]
            if process.poll() is None:
                process.kill()
                await asyncio.to_thread(process.wait)
                now = time.monotonic()
                own = (name, "all")
                caught = [
                    one for one in proxy.in_flight(now - JUST_ENDED) if one.tag.partition("-")[0] in own
                ]
                self.record.kills.append(Kill(now, name, caught))
            elif process.returncode:
                self.record.problems.append(f"{name} ended with {process.returncode}: {self._message(name)}")
            self._start(name)

    async def _cut(self, proxy: Proxy) -> None:
        await self._after(CUT_AT)
        began = time.monotonic()
        proxy.cut()
        await asyncio.sleep(self._outage)
        await proxy.open()
        self.record.cut = began, time.monotonic()

    async def _fill(self, disk: Path) -> None:
        """Fill the disk. No worker is killed meanwhile: answers that are only in memory would be lost."""
        await self._after(FULL_AT)
        self._kills_paused = True
        began = time.monotonic()
        ballast = disk / "ballast"
        deadline = began + self._outage
        with ballast.open("wb", buffering=0) as file:
            while time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    while file.write(bytes(65536)):
                        pass
                await asyncio.sleep(0.05)
        ballast.unlink()
        self.record.full = began, time.monotonic()
        # The cache tries again after twice the time, up to half a minute.
        await asyncio.sleep(min(WRITE_AGAIN_SECONDS, 2 * self._outage + 2))
        self._kills_paused = False

    async def _step(self) -> None:
        if self._clock.missing:
            self.record.skipped.append(f"the clock was not stepped: {self._clock.missing}")
            return
        for at, seconds in zip(STEPS_AT, (STEP, -STEP, 0), strict=True):
            await self._after(at)
            self._clock.step(seconds)
            self.record.steps += 1

    async def _watch(self) -> None:
        process = self._workers[self._names[0]]
        facts = Path(f"/proc/{process.pid}")
        if not await asyncio.to_thread(facts.exists):
            self.record.skipped.append("memory and descriptors were not watched: there is no /proc")
            return
        while process.poll() is None:
            with contextlib.suppress(OSError):
                self.record.samples.append(_sample(facts))
            await asyncio.sleep(0.5)

    @property
    def _outage(self) -> float:
        return min(OUTAGE_SECONDS, OUTAGE_PART * self._seconds)

    async def _after(self, part: float) -> None:
        await asyncio.sleep(max(0.0, self.record.began + part * self._seconds - time.monotonic()))

    @staticmethod
    async def _until(condition: Callable[[], bool], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.1)
        return True


def _sample(facts: Path) -> Sample:
    resident = int((facts / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return Sample(time.monotonic(), resident / MB, sum(1 for _ in (facts / "fd").iterdir()))


def lines_of(folder: Path, *, checked: bool = False) -> Iterator[dict[str, object]]:
    """The lines of the workers' outputs, or those of the last check."""
    for path in sorted(folder.glob("*.jsonl")):
        if path.name == "ledger.jsonl" or (path.name == "check.jsonl") != checked:
            continue
        with path.open(encoding="utf-8") as file:
            for line in file:
                yield {**json.loads(line), "worker": path.stem}


def lines_about(folder: Path, *what: str) -> Iterator[tuple[str, str]]:
    """What happened to which prompt, of some kinds of lines."""
    for line in lines_of(folder):
        if line["what"] in what:
            yield str(line["what"]), str(line["tag"])
