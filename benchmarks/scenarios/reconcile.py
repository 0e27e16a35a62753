"""`reconcile` against simulated reports: 100,000 mixed calls with faults over days, keys and models."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llm_provider import Client, LLMError
from llm_provider._core.money.pricing import default_prices_path
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.runtime import clock
from llm_provider._features.cli.main import main
from llm_provider.simulator import Fault, Simulator
from llm_provider.simulator._records.books import name_key

from ..environments import variables
from ..report import Result, Table
from . import Options

CALLS, PHASES, KILLS_OF_A_PHASE = 100_000, 5, 2
AT_ONCE, AT_ONCE_OF_A_VICTIM, ROWS_OF_A_BATCH = 24, 8, 500
BEFORE_MIDNIGHT, AHEAD = 20.0, 5.0
"""Seconds from the begin of a phase to midnight, and seconds that the providers' clock is ahead."""
FOREIGN = 50
"""Requests of another program, in the last run."""
MODELS = ("gpt-6.1-sol", "gpt-5.5", "claude-sonnet-5-5", "claude-haiku-5-5", "openrouter/openai/gpt-5.5")
KEYS = {"openai": ["sk-one", "sk-two"], "anthropic": ["sk-ant-one"], "openrouter": ["sk-or-one"]}
ADMIN = {
    "OPENAI_ADMIN_KEY": "sk-admin", "ANTHROPIC_ADMIN_KEY": "sk-ant-admin",
    "OPENROUTER_PROVISIONING_KEY": "sk-or-provisioning",
}  # fmt: skip
FAULTS = {
    "broken": Fault(abort_after=1), "cut": Fault(cut_after=2),
    "failed": Fault(status=500, retry_after="0.01"), "refused": Fault(status=429, retry_after="0.01"),
    "unusable": Fault(finish="no_choices"),
}  # fmt: skip
KINDS = {
    "plain": 40, "streamed": 18, "long": 8, "embedded": 8, "sampled": 4, "again": 6, "broken": 3, "cut": 3,
    "failed": 3, "refused": 2, "unusable": 2, "cancelled": 3,
}  # fmt: skip
LONG = "The same beginning of many prompts, which a provider keeps in its cache. " * 120


async def make_calls(client: Client, calls: int, source: random.Random, at_once: int) -> Counter[str]:
    """Make calls of random kinds; of the kinds that name a fault half of the requests meet it."""
    room, made = asyncio.Semaphore(at_once), Counter[str]()

    async def one(kind: str) -> None:
        async with room:
            made[kind] += 1
            if sum(made.values()) % 200 == 0:
                print(sum(made.values()), flush=True)
            with contextlib.suppress(LLMError, TimeoutError):
                await ask(client, kind, source)

    await asyncio.gather(*map(one, source.choices(list(KINDS), weights=list(KINDS.values()), k=calls)))
    return made


async def ask(client: Client, kind: str, source: random.Random) -> None:
    """One call of a kind."""
    model, name = source.choice(MODELS), f"#{kind}# {source.getrandbits(64):x}"
    prompt = f"{name}: {'word ' * source.randrange(60)}"
    if kind == "embedded":
        await client.aembed("text-embedding-3-small", [f"{prompt} {number}" for number in range(3)])
    elif kind == "long":
        messages = [{"role": "system", "content": LONG}, {"role": "user", "content": prompt}]
        await client.acall(model, messages, max_tokens=64, prompt_caching=True)
    elif kind == "sampled":
        await client.acall(model, prompt, max_tokens=64, n=2)
    elif kind == "cancelled":
        await asyncio.wait_for(client.acall(model, prompt, max_tokens=64), source.uniform(0, 0.05))
    elif kind in ("streamed", "cut"):
        async with client.astream(model, prompt, max_tokens=64) as deltas:
            async for _ in deltas:
                pass
    else:
        for _ in range(2 if kind == "again" else 1):
            await client.acall(model, prompt, max_tokens=64)


async def run_worker(job: dict[str, Any]) -> None:
    """The calls of one process, by a clock that is ahead. It begins when it is told to."""
    source, folder = random.Random(job["seed"]), Path(job["folder"])
    import anthropic  # noqa: F401  # Importing takes seconds, and the calls begin before midnight.
    import openai  # noqa: F401

    print("ready", flush=True)
    ahead = float(sys.stdin.readline())
    clock.time = lambda: time.time() + ahead
    with Client(
        cache_dir=folder / "cache", ledger=folder / "calls.jsonl", keys=KEYS, max_retries=4
    ) as client:
        made = await make_calls(client, job["calls"], source, job["at_once"])
        for model in (MODELS[0], MODELS[3]):
            prompts = [f"row {number} of {job['seed']}" for number in range(job["rows"])]
            made["rows of batches"] += len(
                await client.acall_many(model, prompts, max_tokens=64, delivery="batch")
            )
    print(json.dumps({"made": made}), flush=True)


@contextlib.contextmanager
def start_worker(folder: str, **job: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a process that makes calls as soon as it is told how far its clock is ahead."""
    command = [sys.executable, "-m", __name__, json.dumps({"folder": folder, **job})]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        worker.stdout.readline()
        yield worker


def tell(worker: subprocess.Popen[str], ahead: float) -> None:
    """Tell a process to begin."""
    assert worker.stdin is not None
    worker.stdin.write(f"{ahead}\n")
    worker.stdin.flush()


def run_phase(simulator: Simulator, folder: str, phase: int, calls: int) -> Counter[str]:
    """Make the calls of one day and the next one, with processes that are killed among their calls."""
    midnight, made = (time.time() // 86_400 + 1 + phase) * 86_400, Counter[str]()
    main_job = {"seed": phase, "calls": calls, "at_once": AT_ONCE, "rows": ROWS_OF_A_BATCH}
    with start_worker(folder, **main_job) as worker:
        ahead = midnight - BEFORE_MIDNIGHT - time.time()
        simulator.configure(billing_clock=ahead + AHEAD)
        tell(worker, ahead)
        for kill in range(KILLS_OF_A_PHASE):
            job = {
                "seed": 1000 + 10 * phase + kill,
                "calls": calls,
                "at_once": AT_ONCE_OF_A_VICTIM,
                "rows": 0,
            }
            with start_worker(folder, **job) as victim:
                tell(victim, ahead)
                assert victim.stdout is not None
                made["of killed processes, at least"] += int(victim.stdout.readline())
                victim.kill()
        output, _ = worker.communicate()
    return made + Counter(json.loads(output.splitlines()[-1])["made"])


def reconcile(folder: str, *options: str) -> tuple[dict[str, Any], float]:
    """What the command prints, and its seconds of processor time."""
    begin, output = time.process_time(), io.StringIO()
    with contextlib.redirect_stdout(output):
        main(["reconcile", f"{folder}/calls.jsonl", "--json", *options])
    return json.loads(output.getvalue()), time.process_time() - begin


def send_foreign(simulator: Simulator) -> None:
    """Requests of another program with the same key."""
    body = {"model": "gpt-5.5", "messages": [{"role": "user", "content": "another program " * 500}]}
    headers = {"authorization": "Bearer sk-one", "content-type": "application/json"}
    for _ in range(FOREIGN):
        url = f"{simulator.url('openai')}/chat/completions"
        urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)).close()


def tabulate(name: str, report: dict[str, Any]) -> list[tuple[str | int, ...]]:
    """The rows of one report: each measure with its explanations."""
    rows = []
    for measure in ("cost", "usage"):
        part, words = report[measure], report[measure]["explained"]
        explained = (f"{words.get(word, 0):.6f}" for word in ("unknown cost", "another day", "rounding"))
        sums = (f"{part[side]:.6f}" for side in ("ledger", "report"))
        rows.append((name, measure, *sums, *explained, f"{part['unexplained']:.6f}", f"{part['share']:.4%}"))
    return rows


def run(options: Options) -> Result:
    """Make the calls, and compare."""
    calls, phases = options.count(CALLS) // PHASES, 2 if options.quick else PHASES
    settings: dict[str, Any] = {
        "latency": 0.002,
        "latency_jitter": 0.01,
        "batch_seconds": 0.0,
        "reasoning_tokens": 2,
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        Simulator(
            prices=default_prices_path(), prompt_cache=True, snapshot_suffix="-2026-10-21", **settings
        ) as simulator,
        variables({**simulator.environment("openrouter"), **ADMIN}),
    ):
        for name, fault in FAULTS.items():
            simulator.inject(fault, match=f"#{name}#", times=None, share=0.5)
        made = sum((run_phase(simulator, folder, phase, calls) for phase in range(phases)), Counter[str]())
        bill = simulator.ledger()
        everything, seconds = reconcile(folder)
        keys = [f"--key={name_key(key)}={APIKey(key).identity}" for key in KEYS["openai"]]
        by_key, _ = reconcile(folder, "--provider", "openai", *keys)
        lines = Path(folder, "calls.jsonl").read_text().splitlines()
        before = simulator.ledger().billed
        send_foreign(simulator)
        foreign, _ = reconcile(folder)
        added = float((simulator.ledger().billed or 0) - (before or 0))
    billed_lines = sum('"outcome":"hit"' not in line for line in lines)
    differing = sum(row["usd"][0] != row["usd"][1] for row in everything["rows"])
    sizes = (len({row["day"] for row in everything["rows"]}), len(everything["rows"]), differing)
    lost = max(0, bill.answered - billed_lines)
    unexplained = max(part["share"] for part in (everything["cost"], everything["usage"])) * 100
    found = (foreign["cost"]["unexplained"] - everything["cost"]["unexplained"]) / added
    return Result(
        title="The ledger beside the providers' reports",
        text=f"{sum(made.values()):,} calls to three simulated providers by {phases} processes, each over a "
        f"midnight of its own, while {phases * KILLS_OF_A_PHASE} others were killed among their calls. Of "
        "the calls that are named after a fault half of the requests met it. The clock of the providers is "
        f"{AHEAD:.0f} s ahead. `llm-provider reconcile` compares the ledger with the reports that the "
        "simulator makes of its own books; unexplained amounts are added up without their signs. A request "
        "of a killed process that was billed has no line; it is explained where another line of unknown "
        "cost was not billed, as nothing tells one from the other. The last two rows are the same with "
        f"{FOREIGN} requests of another program for {added:.6f} USD: {found:.0%} of that stay unexplained, "
        "for the same reason.",
        tables=[
            Table(
                title="USD",
                columns=(
                    "compared", "measure", "ledger", "report", "unknown cost", "another day", "rounding",
                    "unexplained", "share",
                ),
                rows=[
                    *tabulate("all keys", everything), *tabulate("OpenAI by key", by_key),
                    *tabulate("with another program", foreign),
                ],
            ),
            Table(
                title="Rows",
                columns=("days", "rows", "rows that differ", "answers billed", "lines but hits", "s of CPU"),
                rows=[(*sizes, bill.answered, billed_lines, f"{seconds:.1f}")],
            ),
            Table(title="Calls by kind", columns=("kind", "calls"), rows=sorted(made.items())),
        ],
        problems=[f"{lost} answers more than lines"] if lost > made.total() // 100 else [],
        measured={"reconcile_unexplained": unexplained},
    )  # fmt: skip


if __name__ == "__main__":
    os.environ.pop("LLM_PROVIDER_LEDGER", None)
    asyncio.run(run_worker(json.loads(sys.argv[1])))
