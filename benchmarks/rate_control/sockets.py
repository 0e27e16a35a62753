"""Compares the controller over real sockets, with the SDKs against the simulator, with simulated time.

    python -m benchmarks.rate_control.sockets [--seconds 60] [--only TEXT] [--write]

For each limit, an endless batch is sent for a fixed time through `aiter_many`, with the client's default
settings, to a simulator in a process of its own. Goodput is the number of its answers, in % of the number
that the limit allowed in that time. The table also has the same minute in simulated time. `--write` puts it
into benchmarks/results/rate_control_sockets.md.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from llm_provider import Client
from llm_provider.simulator import Simulator

from .. import report
from .baselines import POLICIES
from .scenarios import truthful
from .simulation import Bucket, Cap, Provider, Scenario, Simulation

MARGIN = 0.5
"""Seconds before a run's end at which its answers are counted."""
MODELS = {"openai": "gpt-6.1-sol", "anthropic": "claude-sonnet-5-5"}


@dataclass(frozen=True)
class World:
    """A provider's limit, for the simulator's sockets and for simulated time."""

    name: str
    latency: float
    per_minute: float | None = None
    cap: int | None = None
    headers: bool = False
    processes: int = 1
    rate_control: str = "adaptive"

    @property
    def warm_up(self) -> float:
        """Seconds before the count begins: sixteen processes load an SDK, and learn a cap."""
        return 0.0 if self.processes == 1 else 60.0

    @property
    def spare(self) -> float:
        """Seconds that a process sends longer than counted, because its clock runs while it loads the SDK."""
        return 0.0 if self.processes == 1 else 20.0

    def allowed(self, seconds: float) -> float:
        """Requests that can be answered in so many seconds."""
        if self.cap is not None:
            return self.cap * (seconds / self.latency if self.warm_up else seconds // self.latency)
        assert self.per_minute is not None
        rate = self.per_minute / 60
        return rate + rate * (seconds - self.latency)

    def settings(self) -> dict[str, Any]:
        """For the simulator."""
        settings: dict[str, Any] = {"latency": self.latency, "rate_limit_headers": self.headers}
        if self.cap is not None:
            return {**settings, "max_concurrent": self.cap}
        assert self.per_minute is not None
        # A bucket of one second, as in simulated time.
        return {**settings, "requests_per_minute": self.per_minute, "burst": self.per_minute / 60}

    def scenario(self, seconds: float) -> Scenario:
        """For simulated time."""

        def build(chance: random.Random) -> Provider:
            if self.cap is not None:
                return Provider([Cap(self.cap)], latency=self.latency, spread=0.0, retry_after="seconds")
            assert self.per_minute is not None
            rate = self.per_minute / 60
            provider = Provider(
                [Bucket(rate, max(1.0, rate))], latency=self.latency, spread=0.0, retry_after="seconds"
            )
            return truthful(provider) if self.headers else provider

        return Scenario(self.name, build, seconds, self.processes)


WORLDS = (
    World("600 RPM, 2 s", 2.0, per_minute=600),
    World("600 RPM, 2 s, headers", 2.0, per_minute=600, headers=True),
    World("6,000 RPM, 6 s", 6.0, per_minute=6_000),
    World("6,000 RPM, 1 s, headers", 1.0, per_minute=6_000, headers=True),
    World("concurrency cap 32, 2 s", 2.0, cap=32),
    World("cap 40, 2 s, 16 processes, one killed", 2.0, cap=40, processes=16),
    World("the same, independent", 2.0, cap=40, processes=16, rate_control="independent"),
    World("cap 40, 2 s", 2.0, cap=40),
)


def prompts() -> Iterator[str]:
    """Endless inputs."""
    return (f"What is {number}+1?" for number in itertools.count())


async def send(server: str, url: str, seconds: float, **settings: Any) -> tuple[int, int]:
    """Send an endless batch for so many seconds. Returns the numbers of answers and of calls that failed."""
    count = [0, 0]
    with Client(cache="off", **settings) as client:
        results = client.aiter_many(MODELS[server], prompts(), base_url=url, max_retries=20, progress=False)
        try:
            async with asyncio.timeout(seconds):
                async for _, result in results:
                    count[isinstance(result, Exception)] += 1
        except TimeoutError:
            pass
        finally:
            await results.aclose()  # type: ignore[attr-defined]  # a generator, though its type says less
    return count[0], count[1]


def over_sockets(world: World, server: str, seconds: float) -> tuple[int, int]:
    """Answers and refusals of a simulator while the processes of a world send to it for so many seconds."""
    with Simulator() as simulator, tempfile.TemporaryDirectory() as directory:
        simulator.configure(**world.settings())
        total = str(seconds + world.warm_up + world.spare)
        arguments = ["--send", server, simulator.url(server), total, world.rate_control]
        command = [sys.executable, "-m", __spec__.name, *arguments]
        environment = {**os.environ, "LLM_PROVIDER_CACHE_DIR": directory}
        programs = [subprocess.Popen(command, env=environment) for _ in range(world.processes)]
        while not simulator.ledger().requests:
            time.sleep(0.01)
        time.sleep(world.warm_up)
        if world.processes > 1:
            programs[0].kill()
        before, started = simulator.ledger(), time.monotonic()
        # Requests in flight at the end of a process are not answered, so the count ends just before.
        time.sleep(max(0.0, started + seconds - MARGIN - time.monotonic()))
        ledger = simulator.ledger()
        for program in programs:
            program.wait()
    return ledger.answered - before.answered, ledger.rate_limited - before.rate_limited


def measure(world: World, server: str, seconds: float) -> str:
    """A row of the table."""
    counted = seconds - MARGIN
    answered, refused = over_sockets(world, server, seconds)
    allowed = world.allowed(counted)
    cells = [
        world.name,
        server,
        f"{100 * answered / allowed:.1f}",
        f"{1000 * refused / max(1, answered):.1f}",
    ]
    if world.processes == 1:
        outcome = Simulation(world.scenario(counted), POLICIES["this"], 1000).run()
        cells.append(f"{100 * sum(outcome.done) / allowed:.1f}")
        cells.append(f"{outcome.refused_per_thousand:.1f}")
    return f"| {' | '.join([*cells, '', ''][:6])} |"


def main() -> None:
    """Measure, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each run")
    parser.add_argument("--only", default="", help="worlds whose name holds this text")
    parser.add_argument("--servers", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--write", action="store_true", help="write the result")
    parser.add_argument("--send", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.send:
        server, url, seconds, rate_control = arguments.send
        settings = {"keys": {server: "sk-any-key"}, "rate_control": rate_control}
        _, failed = asyncio.run(send(server, url, float(seconds), **settings))
        if failed:
            print(f"{failed} calls failed for good", flush=True)
        return
    lines = [
        "| | SDK | goodput, % | refusals per 1,000 | simulated: goodput, % | refusals per 1,000 |",
        "|---|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    for world in WORLDS:
        if arguments.only in world.name:
            for server in arguments.servers if world.processes == 1 else arguments.servers[:1]:
                lines.append(measure(world, server, arguments.seconds))
                print(lines[-1], flush=True)
    if arguments.write:
        report.write_lines(
            "rate_control_sockets",
            "Rate control over real sockets",
            "rate_control.sockets",
            "Runs of 60 s with the client's own defaults against the simulator, several processes after 60 s "
            "of warming up, and the same minute in simulated time.",
            lines,
        )


if __name__ == "__main__":
    main()
