"""What the rate control does in small worlds. A change of any decision changes a golden pair.

`benchmarks/rate_control` has measured these decisions. Whoever changes one on purpose measures it there anew.
"""

import heapq
import json
import math
import random
import tempfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.headers import Allowance, Headroom
from llm_provider._core.pace.scopes import Controller
from llm_provider._core.pace.server_window import ServerWindow
from llm_provider._core.pace.state import Ticket
from llm_provider._core.runtime import randomness
from llm_provider._features.shared_pace.shared_controller import SharedController, SharedStateFile

SAMPLES = 10
"""Rows of each story."""


class Provider:
    """A provider with a bucket of requests or of tokens, a cap, a queue, and whims."""

    def __init__(self, chance: random.Random, **world: Any) -> None:
        self._chance = chance
        self._world = world
        self._level, self._at = world.get("capacity", 10.0), 0.0
        self.serving = 0

    def judge(self, now: float, ticket: Ticket, share_done: float) -> tuple[str, float | None]:
        """How a request ends, and its Retry-After."""
        world, chance = self._world, self._chance
        is_exact = world.get("retry_after") == "exact"
        waits: float | None = 1.0 if is_exact else world.get("retry_after")
        if chance.random() < world.get("ends_otherwise", 0.0):
            return chance.choice(["failure", "cancellation", "withdrawal"]), None
        if chance.random() < world.get("overloads", 0.0):
            return "overload", waits
        cap = world.get("later_cap" if "later_cap" in world and share_done > 0.4 else "cap", math.inf)
        if self.serving >= cap or chance.random() < world.get("refusals", 0.0):
            return "refusal", waits
        begin, end = world.get("down", (2.0, 2.0))
        if begin < share_done < end:
            return world.get("down_by", "refusal"), waits
        rate = world.get("rate")
        if rate is not None:
            rate *= world.get("later", 1.0) if share_done > 0.4 else 1.0
            weight = ticket.tokens if world.get("tokens") else 1.0
            capacity = world.get("capacity", 10.0)
            self._level, self._at = min(capacity, self._level + (now - self._at) * rate), now
            if self._level < weight - 1e-9:
                return "refusal", (weight - self._level) / rate if is_exact else waits
            self._level -= weight
        return "success", None

    def tell_headroom(self) -> Headroom | None:
        """What the headers of an answer say."""
        rate, told = self._world.get("rate"), self._world.get("headers")
        if told is None:
            return None
        allowance = Allowance(rate * told, max(0.0, self._level) * told)
        return Headroom(None, allowance) if self._world.get("tokens") else Headroom(allowance, None)


def tell_story(seed: int = 0, requests: int = 900, **world: Any) -> dict[str, Any]:
    """What a controller does with a backlog: samples of its state, and a checksum of all that it decides."""
    chance = random.Random(seed)
    controller = AdaptiveController(random_source=random.Random(seed))
    provider = Provider(chance, **world)
    events: list[tuple[float, int, Ticket | None, str, float | None]] = [(0.0, 0, None, "", None)]
    rows, digest, sent, steps, counts = list[Any](), 0, 0, 0, dict[str, int]()
    timer, tokens = 0.0, 1.0
    while events and sent < requests:
        now, _, ticket, how, wait = heapq.heappop(events)
        alone = None
        if ticket is not None:
            counts[how] = counts.get(how, 0) + 1
            headroom = provider.tell_headroom()
            if how == "success":
                provider.serving -= 1
                used = ticket.tokens * 1.2 if world.get("tokens") else None
                controller.record_success(now, ticket, headroom, used)
            elif how == "refusal":
                alone = controller.record_refusal(now, ticket, wait, headroom)
            else:
                alone = _record_end(controller, now, ticket, how, wait)
        at_once, most = world.get("at_once", 0), world.get("max_in_flight", 10**9)
        while (ready := controller.ready_at(now, tokens, most, at_once)) <= now and sent < requests:
            new = controller.record_request(now, tokens, at_once)
            sent += 1
            end, after = provider.judge(now, new, sent / requests)
            took = 0.05
            if end == "success":
                provider.serving += 1
                crowd = max(1.0, provider.serving / world.get("places", math.inf))
                slower = world.get("slower", 1.0) if sent > 0.4 * requests else 1.0
                took = world.get("latency", 1.0) * chance.uniform(0.7, 1.3) * crowd * slower
            heapq.heappush(events, (now + took, sent, new, end, after))
            tokens = chance.choice((20.0, 100.0, 400.0)) if world.get("tokens") else 1.0
        ready = max(ready, now + 0.001)
        if ready < math.inf and not now < timer <= ready:
            timer = ready
            heapq.heappush(events, (ready, -steps - 1, None, "", None))
        steps += 1
        digest = zlib.crc32(f"{now:.6g} {ready:.6g} {alone} {controller.is_limited(now)}".encode(), digest)
        if steps % 16 == 0:
            digest = zlib.crc32(json.dumps(_round(controller.to_state())).encode(), digest)
        if sent >= requests * (len(rows) + 1) // SAMPLES:
            rows.append(_round([now, sent, controller.rate, controller.window, controller.gate - now]))
    return {"ends": counts, "time, sent, rate, window, gate": rows, "checksum": digest}


def _record_end(controller: Controller, now: float, ticket: Ticket, how: str, wait: float | None) -> Any:
    """Give a ticket back. Returns whether the call backs off by itself."""
    if how in ("refusal", "overload"):
        return getattr(controller, f"record_{how}")(now, ticket, wait)
    if how in ("success", "failure"):
        return getattr(controller, f"record_{how}")(now, ticket)
    return getattr(controller, f"record_{how}")(ticket)


def tell_shared_story(
    processes: int, seed: int = 0, requests: int = 150, closed: float = 2.0, **world: Any
) -> dict[str, Any]:
    """What the controllers of several processes do with a backlog each, through one file.

    When so much is done as `closed` says, the first process closes its file and ends.
    """
    chance = random.Random(seed)
    provider = Provider(chance, **world)
    counts, rows, digest, sent, steps = Counter[str](), list[Any](), 0, [0] * processes, 0
    with tempfile.TemporaryDirectory() as folder:
        files = [SharedStateFile(Path(folder)) for _ in range(processes)]
        # A controller that is read from the file draws its jitter here.
        randomness.generator.seed(seed)
        controllers = [SharedController(file, "scope") for file in files]
        events = [(1000.0 + number / 10, number, number, None, "", None) for number in range(processes)]
        queue: list[tuple[float, int, int, Ticket | None, str, float | None]] = list(events)
        while queue and sum(sent) < requests:
            now, _, number, ticket, how, wait = heapq.heappop(queue)
            controller, steps = controllers[number], steps + 1
            if files[number].broken:
                continue
            if sum(sent) > closed * requests and number == 0:
                files[0].close()
                continue
            alone = None
            if ticket is not None:
                counts[how] += 1
                provider.serving -= how == "success"
                if (headroom := provider.tell_headroom()) is not None:
                    controller.on_headers(ticket, headroom)
                alone = _record_end(controller, now, ticket, how, wait)
            most, at_once = world.get("max_in_flight", 10**9), world.get("at_once", 0)
            while isinstance(new := controller.admit(now, 1.0, most, at_once), Ticket):
                sent[number] += 1
                end, after = provider.judge(now, new, sum(sent) / requests)
                provider.serving += end == "success"
                took = world.get("latency", 1.0) * chance.uniform(0.7, 1.3) if end == "success" else 0.05
                heapq.heappush(queue, (now + took, steps * 1000 + sum(sent), number, new, end, after))
            if new < math.inf and ticket is None:
                # As a scope, it has one timer.
                heapq.heappush(queue, (max(new, now + 0.001), -steps, number, None, "", None))
            state = [controller.in_flight, controller.refusals, controller.rate, controller.gate - now]
            digest = zlib.crc32(f"{now:.6g} {number} {new:.7g} {alone} {_round(state)}".encode(), digest)
            if sum(sent) >= requests * (len(rows) + 1) // SAMPLES:
                rows.append(_round([now, *sent, controller.in_flight, controller.rate]))
        for file in files:
            file.close()
    randomness.generator.seed()
    return {"ends": dict(counts), "time, sent, in flight, rate": rows, "checksum": digest}


def tell_server_story(
    places: int, seed: int = 0, slower: float = 1.0, cap: int = 10**9, requests: int = 600
) -> dict[str, Any]:
    """What the window of a server does with a backlog; in the middle the server is `slower`."""
    chance, window = random.Random(seed), ServerWindow()
    now, sent, digest, rows = 0.0, 0, 0, []
    free, ends = [0.0] * places, list[tuple[float, int, Ticket, bool]]()
    while sent < requests:
        while len(ends) < window.most:
            sent += 1
            ticket = Ticket(sent, now, len(ends) + 1, 1.0, 1.0, 1.0, 0.0, sent)
            refused = len(ends) >= cap
            factor = slower if 0.3 < sent / requests < 0.7 else 1.0
            begin = now if refused else max(now, heapq.heappop(free))
            end = begin + (0.01 if refused else factor * chance.uniform(0.6, 1.4))
            if not refused:
                heapq.heappush(free, end)
            heapq.heappush(ends, (end, sent, ticket, refused))
        now, _, ticket, refused = heapq.heappop(ends)
        failed = refused or chance.random() < 0.03
        window.record_end(ticket, sent, None if failed else now - ticket.at)
        explained = refused and window.explains(ticket, sent, len(ends))
        state = [value for name, value in sorted(vars(window).items())]
        digest = zlib.crc32(f"{now:.6g} {explained} {_round(state)}".encode(), digest)
        if sent >= requests * (len(rows) + 1) // SAMPLES:
            rows.append(_round([now, sent, window.most, window.latency]))
    return {"time, sent, window, latency": rows, "checksum": digest}


def _round(value: Any) -> Any:
    """A value of JSON with seven digits: other machines have other last ones."""
    if isinstance(value, dict):
        return {name: _round(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_round(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.7g}") if math.isfinite(value) else str(value)
    return value
