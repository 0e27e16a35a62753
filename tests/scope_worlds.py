"""Which call gets which slot, of which account or server, and when: in virtual time, and always the same.

As in `pace_worlds`, a change of any decision changes a golden pair.
"""

import asyncio
import contextlib
import random
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

from llm_provider._core import errors
from llm_provider._core.errors import LLMError
from llm_provider._core.journey.key_pool import Account, KeyPool, KeySelection, PooledAccount
from llm_provider._core.journey.server_scope import Servers
from llm_provider._core.pace.aimd import AIMD
from llm_provider._core.pace.call_limits import IN_FLIGHT, Patience
from llm_provider._core.pace.controller import AdaptiveController
from llm_provider._core.pace.failures import is_congestion
from llm_provider._core.pace.scopes import Controller, Scope
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.request import Request
from llm_provider._features.user_limits.limit import Limit
from llm_provider._features.user_limits.scope_limits import Counts, ScopeLimits

SAMPLES = 8
"""Rows of each story."""

FAILURES: dict[str, Callable[[], LLMError]] = {
    "refused": lambda: errors.RateLimitError("slow", status=429),
    "refused for a second": lambda: errors.RateLimitError("slow", status=429, retry_after=1.0),
    "refused for an hour": lambda: errors.RateLimitError("slow", status=429, retry_after=3600.0),
    "overloaded": lambda: errors.OverloadedError("full", status=529),
    "broken": lambda: errors.InternalServerError("broken", status=500),
    "unreachable": lambda: errors.APIConnectionError("refused"),
    "late": lambda: errors.APITimeoutError("late"),
    "invalid": lambda: errors.APIResponseValidationError("no JSON", status=200),
    "denied": lambda: errors.PermissionDeniedError("not you", status=403),
    "not accepted": lambda: errors.AuthenticationError("no", status=401),
    "empty": lambda: errors.QuotaExceededError("empty", status=429),
}


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time passes only while nothing is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        wait = self._selector.select  # type: ignore[attr-defined]  # of every loop with a selector

        def skip(timeout: float | None = None) -> Any:
            assert timeout is not None, "everybody waits for ever"
            self.now += max(0.0, timeout)
            return wait(0)

        self._selector.select = skip  # type: ignore[attr-defined]  # as above

    def time(self) -> float:
        return self.now


class Waits:
    """Keeps what calls tell of their waits."""

    def __init__(self) -> None:
        self.told: Counter[str] = Counter()
        self.digest = 0

    def tell(self, scope: str, kind: str, text: str, *, seconds: float = 0.0, attempt: int = 0) -> None:
        self.told[kind] += 1
        text = re.sub(r"\d+:\d\d(:\d\d)?", "a time", text)
        self.digest = zlib.crc32(f"{scope} {kind} {text} {seconds:.6g}".encode(), self.digest)


class World:
    """Callers, and the accounts or servers that they ask. `down` has begin, end, account and failure."""

    def __init__(self, seed: int, accounts: int = 1, *, servers: bool = False, **world: Any) -> None:
        self._chance = random.Random(seed)
        self._world = world
        self._loop = asyncio.get_running_loop()
        self._begin = self._loop.time()
        self.waits = Waits()
        self._serving = [0] * accounts
        self._levels = [(float(world.get("capacity", 5.0)), self._begin)] * accounts
        self.digest = 0
        self.ends: Counter[str] = Counter()
        self.rows: list[Any] = []
        self._events = 0
        shared = Servers()
        make: Callable[..., Scope] = shared.make_scope if servers else Scope
        self.scopes = [
            make(self._make_controller(number), f"account {number}", self.waits) for number in range(accounts)
        ]
        pooled = [
            PooledAccount(
                Account([APIKey(f"sk-{number}-{key}") for key in range(world.get("keys", 1))]), scope
            )
            for number, scope in enumerate(self.scopes)
        ]
        self._pool = KeyPool("openai", "m", pooled)
        IN_FLIGHT[self._loop].most = world.get("connections", 10**6)
        if "excused_at" in world:
            excuse = self.scopes[0].excuse
            self._loop.call_later(world["excused_at"], lambda: excuse(self._loop.time() + 3))
        if "limit" in world:
            counts = Counts(None)
            for number, scope in enumerate(self.scopes):
                names = [
                    (f"account {number}", "m", Limit(**world["limit"])),
                    ("all", "*", Limit(concurrent=9)),
                ]
                scope.limits = ScopeLimits(counts, names)

    def _make_controller(self, number: int) -> Controller:
        return AIMD() if self._world.get("aimd") else AdaptiveController(random_source=random.Random(number))

    def note(self, caller: int, event: str) -> None:
        now = self._loop.time() - self._begin
        self.digest = zlib.crc32(f"{now:.6g} {caller} {event}".encode(), self.digest)
        self._events += 1
        if self._events % 16 == 0:
            states = [
                (scope.statistics("", None, "", ""), scope.seconds_until_open()) for scope in self.scopes
            ]
            self.digest = zlib.crc32(re.sub(r"(\.\d{5})\d+", r"\1", repr(states)).encode(), self.digest)
        if self._events % self._world.get("sample", 100) == 1 and len(self.rows) < SAMPLES:
            in_flight = [scope.controller.in_flight for scope in self.scopes]
            waiting = [scope.waiting for scope in self.scopes]
            gates = [round(scope.seconds_until_open(), 5) for scope in self.scopes]
            self.rows.append([round(now, 5), in_flight, waiting, gates])

    def _judge(self, number: int, tokens: float) -> str:
        """How a request to an account ends."""
        world, now = self._world, self._loop.time()
        for begin, end, account, failure in world.get("down", ()):
            if account in (number, -1) and begin <= now - self._begin < end:
                return str(failure)
        if self._chance.random() < world.get("fails", 0.0):
            return str(self._chance.choice(world.get("failures", ["refused", "broken", "late"])))
        if self._serving[number] >= world.get("places", 10**9):
            return "refused"
        if (rate := world.get("rate")) is not None:
            level, at = self._levels[number]
            level = min(world.get("capacity", 5.0), level + (now - at) * rate)
            admitted = level >= 1
            self._levels[number] = level - admitted, now
            if not admitted:
                return "refused for a second" if world.get("retry_after") else "refused"
        return "answered"

    async def call(self, caller: int) -> None:
        """One call with all of its attempts."""
        world, chance = self._world, self._chance
        await asyncio.sleep(chance.uniform(0, world.get("arrivals", 5.0)))
        text = chance.choice([f"{name} " * 300 for name in "abcdefgh"]) + str(caller)
        messages = [{"role": "user", "content": text}]
        if world.get("conversations"):
            name = chance.choice("abcd")
            turns = [("user", name), ("assistant", "yes")] * chance.randrange(3)
            messages = [{"role": role, "content": each} for role, each in (*turns, ("user", name))]
        selection = KeySelection(self._pool, Request(model="m", messages=tuple(messages)))
        patience = Patience(chance.choice(world.get("patience", [3600.0])), self._loop.time())
        tokens = chance.choice([1.0, 100.0, 700.0]) if "limit" in world else 1.0
        for failed in range(world.get("attempts", 6)):
            most, at_once = world.get("most", 1000), world.get("at_once", 4)
            ticket = await selection.slots.acquire(
                most, at_once=at_once, tokens=tokens, first=failed > 0, patience=patience
            )
            scope, key = selection.scope, selection.key
            number = self.scopes.index(scope)
            self.note(
                caller, f"starts at {number} with {key.identity[:6]} as {ticket.number}/{ticket.in_flight}"
            )
            if chance.random() < world.get("withdrawn", 0.0):
                scope.record_withdrawal(ticket)
                self.ends["withdrawn"] += 1
                return
            end = self._judge(number, tokens)
            self._serving[number] += end == "answered"
            took = (
                world.get("latency", 0.5)
                * chance.uniform(0.6, 1.4)
                * (number + 1 if world.get("uneven") else 1)
            )
            try:
                await asyncio.sleep(took if end in ("answered", "late") else 0.05)
            except asyncio.CancelledError:
                scope.record_cancellation(ticket)
                raise
            finally:
                self._serving[number] -= end == "answered"
            error = None if end == "answered" else FAILURES[end]()
            if scope.limits is not None and error is None:
                scope.limits.charge(ticket, tokens * 1.5)
            suspect = error is not None and chance.random() < world.get("suspects", 0.0)
            backs_off = scope.record_end(ticket, error, tokens=tokens, caller=caller, suspect=suspect)
            self.ends[end] += 1
            self.note(caller, f"{end} {backs_off}")
            if error is None:
                selection.record_answer()
                return
            if not selection.record_failure(error):
                if not error.retryable:
                    return
                pause = selection.delay(0.2 * 2.0**failed) if backs_off or not is_congestion(error) else 0.0
                await asyncio.sleep(pause)
        self.ends["given up"] += 1

    async def run(self, caller: int) -> None:
        """A call, and how it ends without an answer."""
        task = asyncio.ensure_future(self.call(caller))
        if self._chance.random() < self._world.get("cancelled", 0.0):
            self._loop.call_later(self._chance.uniform(0, 8), task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            self.ends["cancelled"] += 1
            self.note(caller, "cancelled")
        except LLMError as error:
            self.ends[f"patience ends: {type(error).__name__}"] += 1
            self.note(caller, re.sub(r"\d+:\d\d(:\d\d)?", "a time", str(error)))


def tell_slot_story(seed: int = 0, calls: int = 200, **world: Any) -> dict[str, Any]:
    """What calls meet: how their requests end, samples of the scopes, and a checksum of all that happens."""

    async def tell() -> dict[str, Any]:
        told = World(seed, **world)
        await asyncio.gather(*map(told.run, range(calls)))
        await asyncio.sleep(5)  # the timers that are left
        assert not any(scope.controller.in_flight for scope in told.scopes), "every slot is given back"
        assert IN_FLIGHT[loop].count == 0, "every connection is given back"
        return {
            "ends": dict(told.ends),
            "told": dict(told.waits.told),
            "time, in flight, waiting, open in": told.rows,
            "checksums": [told.digest, told.waits.digest],
        }

    loop = VirtualLoop()
    with warnings.catch_warnings(), contextlib.closing(loop):
        warnings.simplefilter("ignore")
        return loop.run_until_complete(tell())
