"""Four unequal servers of one `Host`, beside an oracle: one dies, one joins and one slows down.

Each server is a simulator in a process of its own. Two have places and a queue, as vLLM has, and never
refuse. One refuses above a number of requests in progress, and one above a number a second. Each keeps the
beginnings of the prompts that it read last, two thirds of all, and a prompt whose beginning is not kept takes
longer. At the start nobody listens at the address of the server that joins; the one that dies is killed with
`kill -9`. The seed draws which servers these are.

The oracle knows what each server can serve, and keeps every living one busy. Its time is the smallest T for
which the sum over the servers of (answers a second, with a kept prompt) · (seconds alive until T) is the
number of prompts. It loses nothing by the death, waits for no first and no last answer, and reads each
beginning once at no cost. Goodput is this time as a share of the real one. The ideal of hits is every prompt
but the first of each beginning.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_provider import Client, Host
from llm_provider.simulator import Simulator

from ..report import Result, Table
from . import Options

PROMPTS, BEGINNINGS = 4000, 48
BEGINNING, KEPT, READ_PER_SECOND = 1500, 50_000, 10_000.0
"""Tokens of the beginnings of prompts, tokens that a server keeps, and those that it reads a second."""
JOINS, SLOWS, DIES = 15.0, 20.0, 25.0
"""Seconds after the first request."""
SLOWER = 4


@dataclass(frozen=True, slots=True)
class _Kind:
    """A server: how many it serves at once or a second, and how many seconds an answer takes on average."""

    name: str
    seconds: float
    places: int | None = None
    most: int | None = None
    per_second: float | None = None

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.per_second or (self.places or self.most or 0) / self.seconds

    def settings(self, slower: float = 1.0) -> dict[str, Any]:
        """The settings of its simulator. The latency varies by 30 %, as the lengths of answers do."""
        reading = 40 / READ_PER_SECOND
        per_minute = None if self.per_second is None else 60 * self.per_second / slower
        return {
            "latency": 0.7 * slower * self.seconds - reading,
            "latency_jitter": 0.6 * slower * self.seconds,
            "served_at_once": self.places,
            "max_concurrent": self.most,
            "requests_per_minute": per_minute,
            "burst": self.per_second,
            "rate_limit_headers": False,
            "prefix_tokens": KEPT,
            "prompt_speed": READ_PER_SECOND,
        }


KINDS = (
    _Kind("24 places and a queue", 1.0, places=24),
    _Kind("6 places and a queue", 0.75, places=6),
    _Kind("refuses above 12 in progress", 0.6, most=12),
    _Kind("refuses above 12 a second", 0.5, per_second=12.0),
)


@dataclass(slots=True)
class _Server:
    """A server of one round, and what happens to it."""

    kind: _Kind
    simulator: Simulator
    fate: str
    spans: list[tuple[float, float]] = field(default_factory=list)
    """Answers a second from a time on."""
    answered: list[int] = field(default_factory=list)
    """Answers at the end of each second."""

    def count(self) -> int:
        """Answers so far; those at the last look once it is dead."""
        if self.simulator.pid is not None and self.fate != "dead":
            self.answered.append(self.simulator.ledger().statuses.get(200, 0))
        return self.answered[-1] if self.answered else 0


def run(options: Options) -> Result:
    """Measure a number of seeds, one after the other."""
    rounds = [_measure(seed, options) for seed in range(options.rounds_or(5))]
    measured = {
        f"hosts_{name}": bring([one[name] for one in rounds])
        for name, bring in (
            ("goodput", statistics.median), ("hits", statistics.median), ("lost", sum), ("twice", sum)
        )
    }  # fmt: skip
    names = ("goodput", "hits", "lost", "twice", "cut", "seconds", "oracle", "dies", "joins", "slows")
    columns = (
        "seed", "goodput, of the oracle's", "hits, of the ideal", "failed", "answered twice",
        "cut by the death", "seconds", "of the oracle", "dies", "joins", "slows down",
    )  # fmt: skip
    return Result(
        title="Several servers of one host",
        text=f"{options.count(PROMPTS):,} prompts in `call_many` with default settings, over {BEGINNINGS} "
        f"beginnings of {BEGINNING:,} tokens, in random order. A server joins after {JOINS:g} s, one takes "
        f"{SLOWER} times as long from {SLOWS:g} s on, and one is killed after {DIES:g} s. The docstring of "
        "benchmarks/scenarios/hosts.py defines the oracle and the ideal.",
        tables=[
            Table(
                title="One seed a row",
                columns=columns,
                rows=[[seed, *(one[name] for name in names)] for seed, one in enumerate(rounds)],
            ),
            Table(
                title="The servers",
                columns=("server", "seconds per answer", "answers a second"),
                rows=[[kind.name, kind.seconds, kind.rate] for kind in KINDS],
            ),
        ],
        measured=measured,
        rounds=len(rounds),
        problems=[problem for one in rounds for problem in one["problems"]],
    )


def _measure(seed: int, options: Options) -> dict[str, Any]:
    """One round with servers of its own."""
    draw = random.Random(seed)
    fates = draw.sample(["dies", "joins", "slows", ""], len(KINDS))
    servers = [
        _Server(kind, Simulator(port=_find_port(), seed=seed, **kind.settings()), fate)
        for kind, fate in zip(KINDS, fates, strict=True)
    ]
    count, shorter = options.count(PROMPTS), 10 if options.quick else 1
    prompts = _write_prompts(count, draw)
    results: list[Any] = []
    try:
        for server in servers:
            if server.fate != "joins":
                server.simulator.start()
        with tempfile.TemporaryDirectory() as directory:
            lab = Host(
                "lab", [server.simulator.url("lab") for server in servers], "vllm",
                prices={"*": {"input": 0, "output": 0, "cache_read": 0}},
            )  # fmt: skip
            with Client(cache="off", hosts=[lab]) as client:
                client.call("lab/mine", "What is 1+1?")  # the SDK is imported before the clock starts
            with Client(cache_dir=directory, hosts=[lab]) as client:
                calling = threading.Thread(
                    target=lambda: results.append(client.call_many("lab/mine", prompts, progress=False))
                )
                begun = time.monotonic()
                calling.start()
                _play(servers, begun, shorter, calling.is_alive)
                calling.join()
                seconds = time.monotonic() - begun
        answered = sum(server.count() for server in servers) - 1
    finally:
        for server in servers:
            server.simulator.close()
    oracle = _find_oracle_time(servers, count)
    wrong = sum(text != str(number + 1) for number, text in enumerate(results[0].texts))
    hits = sum(response.usage.cache_read_input_tokens >= BEGINNING for response in results[0].ok)
    failures = [failure for response in results[0].ok for failure in response.failures]
    return {
        "goodput": oracle / seconds,
        "hits": hits / (count - min(count, BEGINNINGS)),
        "lost": wrong,
        "twice": max(0, answered - count),
        "cut": sum(failure.maybe_billed for failure in failures),
        "seconds": seconds,
        "oracle": oracle,
        **{server.fate: server.kind.name for server in servers if server.fate in ("joins", "slows")},
        "dies": next(server.kind.name for server in servers if server.fate == "dead"),
        "problems": [f"seed {seed}: {error!r}" for error in results[0].errors[:3]],
    }


def _write_prompts(count: int, draw: random.Random) -> list[str]:
    words = [f"word{number}" for number in range(1000)]
    beginnings = [" ".join(draw.choices(words, k=BEGINNING))[: 4 * BEGINNING] for _ in range(BEGINNINGS)]
    order = [number % BEGINNINGS for number in range(count)]
    draw.shuffle(order)
    return [f"{beginnings[place]} What is {number}+1?" for number, place in enumerate(order)]


def _play(servers: Sequence[_Server], begun: float, shorter: float, is_alive: Callable[[], bool]) -> None:
    """Let the fates happen at their times, and look at the servers once a second."""
    for server in servers:
        server.spans = [(0.0, 0.0 if server.fate == "joins" else server.kind.rate)]
    times: Mapping[str, float] = {"joins": JOINS, "slows": SLOWS, "dies": DIES}
    fated = sorted((times[server.fate] / shorter, n) for n, server in enumerate(servers) if server.fate)
    second = 1.0
    while is_alive():
        time.sleep(0.02)
        now = time.monotonic() - begun
        if fated and now >= fated[0][0]:
            server = servers[fated.pop(0)[1]]
            if server.fate == "joins":
                server.simulator.start()
                server.spans.append((time.monotonic() - begun, server.kind.rate))
            elif server.fate == "slows":
                server.simulator.configure(**server.kind.settings(SLOWER))
                server.spans.append((now, server.kind.rate / SLOWER))
            else:
                server.count()
                assert server.simulator.pid is not None
                os.kill(server.simulator.pid, signal.SIGKILL)
                server.spans.append((now, 0.0))
                server.fate = "dead"
        if now >= second:
            second += 1.0
            for server in servers:
                server.count()


def _find_oracle_time(servers: Sequence[_Server], count: int) -> float:
    """The time at which the servers could have given so many answers."""
    changes = sorted({at for server in servers for at, _ in server.spans})
    done = 0.0
    for start, end in zip(changes, [*changes[1:], float("inf")], strict=True):
        rate = sum(next(r for at, r in reversed(server.spans) if at <= start) for server in servers)
        if done + rate * (end - start) >= count:
            return start + (count - done) / rate
        done += rate * (end - start)
    raise AssertionError


def _find_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])
