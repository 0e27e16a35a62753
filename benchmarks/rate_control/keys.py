"""Compares the throughput of several keys together with the sum of each key alone.

    python -m benchmarks.rate_control.keys [--seconds 30] [--seeds 5] [--write]

Each key has a limit of its own, with a bucket of six seconds. An endless batch is sent for a fixed time with
all keys, and with each key alone, by the same controllers and the same choice between them: in simulated
time, and through the openai SDK to a simulator in a process of its own. `--write` puts the table into
benchmarks/results/rate_control_keys.md.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from llm_provider._core.journey.key_pool import by_headroom
from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.headers import Headroom
from llm_provider._core.pace.state import Ticket
from llm_provider.simulator import Simulator

from .. import report
from .simulation import Bucket, Policy, Provider, Scenario, Simulation
from .sockets import send


@dataclass(frozen=True)
class Keys:
    """Keys of one provider, with separate limits."""

    name: str
    per_minute: tuple[int, ...]
    """Requests per minute of each key."""
    latency: float = 1.0
    headers: bool = False

    def alone(self) -> dict[Keys, int]:
        """Each different limit as a single key, and how many keys have it."""
        return Counter(replace(self, per_minute=(limit,)) for limit in self.per_minute)


WORLDS = (
    Keys("3 keys, 600 RPM each", (600, 600, 600)),
    Keys("3 keys, 600 RPM each, truthful headers", (600, 600, 600), headers=True),
    Keys("3 keys, 120, 600 and 1,800 RPM", (120, 600, 1800)),
)


class KeyedProvider(Provider):
    """A limit for each key. `key` is the index of the next request's key."""

    key = 0

    def offer(self, now: float, tokens: float) -> float:
        limit = self.limits[self.key]
        wait = limit.wait(now, tokens)
        if wait == 0.0:
            limit.take(now, tokens, refused=False)
        return wait


class Pool(Policy):
    """Our choice between our controllers, one for each key."""

    def __init__(self, provider: Provider, max_in_flight: int, source: random.Random) -> None:
        super().__init__(provider, max_in_flight, source)
        self._controllers = [AdaptiveController(random_source=source) for _ in provider.limits]
        self._next = 0

    def ready_at(self, now: float, tokens: float) -> float:
        return min(
            controller.ready_at(now, tokens, self.max_in_flight, 0) for controller in self._controllers
        )

    def sent(self, now: float, tokens: float) -> tuple[AdaptiveController, Ticket]:
        self._next += 1
        key = next(
            place
            for place in by_headroom(self._controllers, self._next)
            if self._controllers[place].ready_at(now, tokens, self.max_in_flight, 0) <= now
        )
        assert isinstance(self.provider, KeyedProvider)
        self.provider.key = key
        return self._controllers[key], self._controllers[key].record_request(now, tokens, 0)

    def succeeded(
        self,
        now: float,
        ticket: tuple[AdaptiveController, Ticket],
        headroom: Headroom | None,
        used: float | None,
    ) -> None:
        controller, own = ticket
        controller.record_success(now, own, headroom, used)

    def refused(
        self,
        now: float,
        ticket: tuple[AdaptiveController, Ticket],
        retry_after: float | None,
        headroom: Headroom | None,
        attempts: int,
    ) -> float:
        controller, own = ticket
        alone = controller.record_refusal(now, own, retry_after, headroom)
        return max(retry_after or 0.0, 0.1) if alone else 0.0

    def failed(self, now: float, ticket: tuple[AdaptiveController, Ticket]) -> None:
        controller, own = ticket
        controller.record_failure(now, own)

    def shown(self, now: float) -> tuple[float, float]:
        return sum(controller.rate for controller in self._controllers), math.inf


def simulated(keys: Keys, seconds: float, seed: int) -> tuple[int, int]:
    """Answers and refusals in simulated time."""

    def build(chance: random.Random) -> Provider:
        buckets = [Bucket(limit / 60, limit / 10) for limit in keys.per_minute]
        provider = KeyedProvider([*buckets], latency=keys.latency, spread=0.0, retry_after="seconds")

        def headers(now: float, chance: random.Random) -> Headroom:
            bucket = buckets[provider.key]
            bucket.refill(now)
            return Headroom(requests=bucket.allowance())

        if keys.headers:
            provider.headers = headers
        return provider

    outcome = Simulation(Scenario(keys.name, build, seconds), Pool, seed).run()
    return sum(outcome.done), outcome.refused


def over_sockets(keys: Keys, seconds: float) -> tuple[int, int]:
    """Answers and refusals of a simulator."""
    limits = {f"sk-key-{number}": limit for number, limit in enumerate(keys.per_minute)}
    settings: dict[str, Any] = {
        "latency": keys.latency,
        "limits_per": "key",
        "key_limits": ",".join(f"{name}={limit}" for name, limit in limits.items()),
        "rate_limit_headers": keys.headers,
    }
    with Simulator(**settings) as simulator:
        keyed = {"keys": {"openai": list(limits)}}
        answered, _ = asyncio.run(send("openai", simulator.url("openai"), seconds, **keyed))
        return answered, simulator.ledger().rate_limited


def measure(keys: Keys, seconds: float, seeds: int) -> str:
    """A row of the table."""
    cells = [keys.name]
    for run in (lambda one: _mean(one, seconds, seeds), lambda one: over_sockets(one, seconds)):
        answered, refused = run(keys)
        alone = sum(count * run(one)[0] for one, count in keys.alone().items())
        cells += [f"{answered:,.0f}", f"{alone:,.0f}", f"{answered / alone:.3f}"]
        cells.append(f"{1000 * refused / answered:.1f}")
    return f"| {' | '.join(cells)} |"


def _mean(keys: Keys, seconds: float, seeds: int) -> tuple[float, float]:
    runs = [simulated(keys, seconds, 1000 + seed) for seed in range(seeds)]
    return sum(answered for answered, _ in runs) / seeds, sum(refused for _, refused in runs) / seeds


def main() -> None:
    """Measure, print, and write the table if asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=30.0, help="length of each run")
    parser.add_argument("--seeds", type=int, default=5, help="runs per cell in simulated time")
    parser.add_argument("--write", action="store_true", help="write the result")
    arguments = parser.parse_args()
    columns = ("together", "each alone", "ratio", "refused per 1,000")
    titles = [f"{where}: {column}" for where in ("simulated", "sockets") for column in columns]
    lines = [f"| | {' | '.join(titles)} |", "|---" * 9 + "|"]
    with Simulator() as simulator:
        # The SDK is loaded before the first run.
        asyncio.run(send("openai", simulator.url("openai"), 1.0, keys={"openai": "sk-key-0"}))
    for world in WORLDS:
        lines.append(measure(world, arguments.seconds, arguments.seeds))
        print(lines[-1], flush=True)
    if arguments.write:
        report.write_lines(
            "rate_control_keys",
            "Several keys",
            f"rate_control.keys --seconds {arguments.seconds:g} --seeds {arguments.seeds}",
            f"Answers within {arguments.seconds:g} s to all keys together, and the sum of each key's alone; "
            "latency 1 s, refusals with a Retry-After in whole seconds.",
            lines,
        )


if __name__ == "__main__":
    main()
