"""The ledger against the simulator's bill: 10,000 calls over all direct routes, with many kinds of faults."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from llm_provider import Client, Ledger, LedgerRow, LLMError, Response, Usage, track
from llm_provider._core.money.pricing import default_prices_path
from llm_provider._core.requests.routing import COMPATIBLE_HOSTS
from llm_provider.simulator import Fault, Simulator
from llm_provider.simulator._records.ledger import ModelLedger

from ..environments import variables
from ..report import Result, Table
from . import Options

CALLS = 10_000
AT_ONCE = 24
LIMIT = 64
"""`max_tokens` of every call: without it the price of an unfinished answer has no upper bound."""

TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]


class Route(NamedTuple):
    """A route, with a model for calls that end by themselves and another one for abandoned calls."""

    name: str
    ended: str
    left: str
    parameters: Mapping[str, Any] = {}


# Without DeepSeek: its price depends on the hour, and the simulator always bills the standard price.
ROUTES = (
    Route("openai", "gpt-5.5", "gpt-6-astra"),
    Route("openai, Responses", "gpt-6.1-sol", "gpt-6-sol", {"tools": TOOLS, "reasoning_effort": "low"}),
    Route("anthropic", "claude-sonnet-5-5", "claude-haiku-5-5"),
    Route("gemini", "gemini-3.8-flash", "gemini-4-argon"),
    Route("together_ai", "together_ai/zai-org/GLM-5.3", "together_ai/zai-org/GLM-5.3-Flash"),
    Route("openrouter", "openrouter/anthropic/claude-sonnet-5.5", "openrouter/openai/gpt-5.5"),
    Route("groq", "groq/openai/gpt-oss-120b", "groq/openai/gpt-oss-20b"),
    Route("xai", "xai/grok-4.7", "xai/grok-4.6"),
    Route("mistral", "mistral/mistral-large-4", "mistral/mistral-medium-3.5"),
    Route("fireworks_ai", "fireworks_ai/kimi-k3", "fireworks_ai/glm-5p3"),
)


@dataclass
class Chaos:
    """Calls of every kind on one route, in a random order that is the same every time.

    Each kind is a method that returns how many calls it made.
    """

    client: Client
    simulator: Simulator
    route: Route
    random: random.Random
    made: Counter[str] = field(default_factory=Counter)
    costs: list[float] = field(default_factory=list)
    """What the responses of calls that end by themselves report; an abandoned call has no response."""
    number: int = 0

    async def run(self, calls: int) -> None:
        """Make about this many calls: some kinds make several."""
        kinds: dict[Callable[[], Awaitable[int]], int] = {
            self.plain: 26,
            self.threaded: 8,
            self.streamed: 14,
            self.again: 10,
            self.at_once: 3,
            self.samples: 4,
            self.failed_first: 8,
            self.refused_first: 1,
            self.unusable_first: 5,
            self.broken_first: 5,
            self.cut: 4,
            self.cancelled: 6,
            self.stopped: 6,
        }
        room = asyncio.Semaphore(AT_ONCE)

        async def one(kind: Callable[[], Awaitable[int]]) -> None:
            async with room:
                made = await kind()
                self.made[kind.__name__] += made

        chosen = self.random.choices(list(kinds), weights=list(kinds.values()), k=calls)
        await asyncio.gather(*map(one, chosen))

    def prompt(self, fault: Fault | None = None) -> str:
        """A new prompt, and a fault for its first request."""
        self.number += 1
        name = f"{self.route.name} #{self.number}#"
        if fault is not None:
            # A call that is cancelled early may never send its request. The fault must not match another one.
            self.simulator.inject(fault, match=name)
        return f"{name}: {'word ' * self.random.randrange(40)}"

    async def call(self, prompt: str, model: str | None = None, **parameters: Any) -> None:
        given = {"max_tokens": LIMIT, **self.route.parameters, **parameters}
        with contextlib.suppress(LLMError):
            answer = await self.client.acall(model or self.route.ended, prompt, **given)
            if model is None:
                self.note(answer)

    def note(self, answer: Response) -> None:
        """Note the cost of a response; the price of its tokens if a failed request has no known cost."""
        priced = self.client.price(f"{answer.provider}/{answer.model}", answer.usage)
        self.costs.append(float(priced or 0) if answer.cost is None else answer.cost)

    async def plain(self) -> int:
        await self.call(self.prompt())
        return 1

    async def threaded(self) -> int:
        prompt, given = self.prompt(), {"max_tokens": LIMIT, **self.route.parameters}
        arguments = (self.route.ended, prompt)
        # The threads of this pool do not copy the context.
        answer = await asyncio.get_running_loop().run_in_executor(
            None, lambda: self.client.call(*arguments, **given)
        )
        self.note(answer)
        return 1

    async def again(self) -> int:
        prompt = self.prompt()
        await self.call(prompt)
        await self.call(prompt)
        return 2

    async def at_once(self) -> int:
        prompt = self.prompt()
        await asyncio.gather(*(self.call(prompt) for _ in range(4)))
        return 4

    async def samples(self) -> int:
        prompt = self.prompt()
        await self.call(prompt, n=2)
        await self.call(prompt, n=4)
        return 2

    async def streamed(self) -> int:
        await self._read(self.prompt())
        return 1

    async def cut(self) -> int:
        fault = self.random.choice([Fault(cut_after=2), Fault(abort_after=1), Fault(error_after=2)])
        await self._read(self.prompt(fault))
        return 1

    async def failed_first(self) -> int:
        await self.call(self.prompt(Fault(status=self.random.choice((500, 502)), retry_after="0.01")))
        return 1

    async def refused_first(self) -> int:
        await self.call(self.prompt(Fault(status=429, retry_after="0.01")))
        return 1

    async def unusable_first(self) -> int:
        await self.call(self.prompt(Fault(finish="no_choices")))
        return 1

    async def broken_first(self) -> int:
        await self.call(self.prompt(Fault(abort_after=1)))
        return 1

    async def cancelled(self) -> int:
        fault = self.random.choice([None, Fault(delay=0.05), Fault(hang=True)])
        call = self.call(
            self.prompt(fault), self.route.left, timeout=self.random.choice((30, 0.1)), max_retries=1
        )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(call, self.random.uniform(0, 0.1))
        return 1

    async def stopped(self) -> int:
        prompt = self.prompt(Fault(stall_after=2, delay=0.05))
        await self._read(prompt, self.route.left, stop=True)
        return 1

    async def _read(self, prompt: str, model: str | None = None, *, stop: bool = False) -> None:
        given = {"max_tokens": LIMIT, **self.route.parameters}
        with contextlib.suppress(LLMError):
            async with self.client.astream(model or self.route.ended, prompt, **given) as deltas:
                async for _ in deltas:
                    if stop:
                        return
            if model is None:
                self.note(deltas.response)


class Checked(NamedTuple):
    """The sums of a route in USD: those of the ledger beside those of the simulator."""

    route: str
    requests: int
    hits: int
    failed: int
    spent: Decimal
    wasted: Decimal
    billed: Decimal
    unfinished: Decimal
    """The part of the bill for answers that did not reach their end, as counted by the simulator."""
    left: Decimal
    """The bill for the model whose calls were abandoned."""
    left_known: Decimal
    unknown_at_most: Decimal | None

    @property
    def difference(self) -> Decimal:
        """The ledger's amount for calls that ended by themselves, less the bill for them."""
        return self.spent + self.wasted - (self.billed - self.unfinished)

    @property
    def within(self) -> bool:
        """Whether the unknown amount is between zero and the ledger's upper bound."""
        gap = self.unfinished + self.left - self.left_known
        bounded = self.unknown_at_most is not None and gap <= self.unknown_at_most
        return bounded and self.left_known <= self.left


@dataclass
class Findings:
    """The findings of a run of chaos."""

    made: Counter[str]
    routes: list[Checked]
    problems: list[str]
    usage: Ledger


def chaos(calls: int, folder: Path, seed: int = 1) -> Findings:
    """Make calls over all routes and compare the client's ledger with the bill.

    Args:
        calls: The approximate number of calls.
        folder: The folder for the cache and the ledger's file.
        seed: Seed of all random choices.
    """
    made: Counter[str] = Counter()
    costs: list[float] = []
    with (
        Simulator(prices=default_prices_path(), chunk_interval=0.001) as simulator,
        variables(simulator.environment(*COMPATIBLE_HOSTS)),
    ):
        simulator.configure(cached_tokens=3, reasoning_tokens=2)
        file = folder / "calls.jsonl"
        with Client(cache_dir=folder / "cache", ledger=file) as client:
            with track("chaos") as tracked:
                for place, route in enumerate(ROUTES):
                    run = Chaos(client, simulator, route, random.Random(seed + place))
                    asyncio.run(run.run(calls // len(ROUTES)))
                    made += run.made
                    costs += run.costs
            # Abandoned calls end by themselves a moment later.
            client.close()
        bill = {(entry.provider, entry.model): entry for entry in simulator.ledger().models}
    rows = {(row.provider, row.model): row for row in client.usage.rows("provider", "model")}
    checked = [_checked(route, rows, bill) for route in ROUTES]
    problems = [f"{one.route}: {one.difference} USD more than the bill" for one in checked if one.difference]
    problems += [
        f"{one.route}: the rest of the bill is outside the bounds" for one in checked if not one.within
    ]
    problems += _disagreements(client.usage, {"the track": tracked, "the file": Ledger.read(file)})
    reported, spent = sum(costs), float(sum(one.spent + one.wasted for one in checked))
    # These are sums of rounded floats.
    if not math.isclose(reported, spent, rel_tol=1e-9):
        problems.append(f"the responses report {reported} USD, the ledger {spent}")
    return Findings(made, checked, problems, client.usage)


def _checked(
    route: Route, rows: Mapping[tuple[str, str], LedgerRow], bill: Mapping[tuple[str, str], ModelLedger]
) -> Checked:
    zero = Decimal(0)
    nothing = LedgerRow(usage=Usage(), spent=zero, wasted=zero, saved=zero, unknown_at_most=zero)
    no_bill = ModelLedger(provider="", model="", billed=zero, unfinished_billed=zero)
    names = [_names(model) for model in (route.ended, route.left)]
    ended, left = (rows.get(name, nothing) for name in names)
    billed, left_billed = (bill.get(name, no_bill) for name in names)
    bounds = [row.unknown_at_most for row in (ended, left)]
    return Checked(
        route=route.name,
        requests=ended.requests + left.requests,
        hits=ended.hits + left.hits,
        failed=ended.failed + left.failed,
        spent=ended.spent,
        wasted=ended.wasted,
        billed=billed.billed,
        unfinished=billed.unfinished_billed,
        left=left_billed.billed,
        left_known=left.spent + left.wasted,
        unknown_at_most=None if None in bounds else sum(filter(None, bounds), Decimal(0)),
    )


def _names(model: str) -> tuple[str, str]:
    from llm_provider._core.requests.routing import resolve

    target = resolve(model)
    return target.provider, target.model


def _disagreements(usage: Ledger, others: Mapping[str, Ledger]) -> list[str]:
    by = ("provider", "model")
    return [f"{name} has other sums" for name, other in others.items() if other.rows(*by) != usage.rows(*by)]


def _shown(checked: Checked) -> tuple[str | int | None, ...]:
    amounts = [amount if amount is None else format(amount.normalize(), "f") for amount in (
        checked.spent, checked.wasted, checked.difference, checked.unfinished, checked.left,
        checked.left_known, checked.unknown_at_most,
    )]  # fmt: skip
    return checked.route, checked.requests, checked.hits, checked.failed, *amounts


def run(options: Options) -> Result:
    """Make the calls, and compare the sums."""
    with tempfile.TemporaryDirectory() as folder:
        found = chaos(options.count(CALLS), Path(folder))
    usage = found.usage
    return Result(
        title="The ledger against the bill",
        text=f"{sum(found.made.values()):,} calls over {len(ROUTES)} routes through one client: with and "
        "without streaming, single and concurrent, some with stored answers; refused, failed, broken off, "
        "with unusable answers; cancelled, timed out, abandoned. The simulator bills them with its own price "
        "arithmetic. For calls that end by themselves, the ledger's spent and wasted USD are compared with "
        "the bill, without its part for answers that did not reach their end. That part, and the bill for "
        "abandoned calls, are compared with the ledger's upper bound of unknown costs. The sums of a track "
        "around all calls, and of the ledger's file, must equal those of the client.",
        tables=[
            Table(
                title="USD by route",
                columns=(
                    "route", "answered", "hits", "failed", "spent", "wasted", "difference from the bill",
                    "billed for broken answers", "billed for calls that were left", "known of that",
                    "unknown, at most",
                ),
                rows=[_shown(one) for one in found.routes],
            ),
            Table(title="Calls by kind", columns=("kind", "calls"), rows=sorted(found.made.items())),
            Table(
                title="All together, USD",
                columns=("spent", "wasted", "saved", "unknown requests"),
                rows=[(str(usage.spent), str(usage.wasted), str(usage.saved), usage.unknown)],
            ),
        ],
        problems=found.problems,
        measured={
            "ledger_difference": float(sum((abs(one.difference) for one in found.routes), Decimal(0))),
            "ledger_problems": len(found.problems),
        },
    )  # fmt: skip
