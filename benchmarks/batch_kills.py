"""`kill -9` at every step of a batch: a process is killed, another one runs the same job to its end.

`Nursery` forks the processes, so that none of them has to import an SDK. `trial` is one job with its kills;
the simulator, or the server of a cloud with buckets, holds the process at the step at which it is killed.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Self

from llm_provider import Client, Ledger, Response
from llm_provider.simulator import Fault, Simulator

from .bucket_clouds import CLOUDS, BucketCloud, open_cloud

ROOT = Path(__file__).parents[1]

MODELS = {
    "openai": "gpt-5.5",
    "anthropic": "claude-haiku-5-5",
    "gemini": "gemini/gemini-3.8-flash",
    "groq": "groq/openai/gpt-oss-120b",
    "together_ai": "together_ai/MiniMaxAI/MiniMax-M2.7",
    "mistral": "mistral/mistral-small-2603",
    "xai": "xai/grok-4.20",
    "fireworks_ai": "fireworks_ai/accounts/fireworks/models/gpt-oss-120b",
    "azure": "azure/gpt-5-mini",
    **CLOUDS,
}
"""One model of each provider."""

# prices.csv has no batch prices of these two. This is half the standard price, for simulator and clients.
_PRICES = (
    "together_ai,MiniMaxAI/MiniMax-M2.7,batch,0,0.15,0.03,,,,,0.6,,,,,,,,,,an assumption,2026-11-20\n"
    "fireworks_ai,accounts/fireworks/models/gpt-oss-120b,batch,"
    "0,0.075,,,,,,0.3,,,,,,,,,,an assumption,2026-11-20\n"
)

ROWS = {"bedrock": 101}
"""Rows of one job, where they are not 12: Bedrock takes no fewer than 100."""

_SDKS = dict.fromkeys(("anthropic", "vertex_ai (Claude)", "bedrock"), "anthropic") | dict.fromkeys(
    ("gemini", "vertex_ai"), "gemini"
)
"""The SDK of a provider, if it is not OpenAI's."""

_LONGEST_SECONDS = 600.0

_HANG, _LOST, _HALF = Fault(hang=True), Fault(stall_after=0), Fault(stall_after=1)
_UPLOAD, _CREATE, _LIST = "files.upload", "batches.create", "batches.list"
_RESULTS = dict.fromkeys(("anthropic", "xai"), "batches.results")

STEPS = {
    "before the intent": (),
    "after the intent": ((_HANG, "first"),),
    "upload, answer lost": ((_LOST, _UPLOAD),),
    "submission, not accepted": ((_HANG, _CREATE),),
    "submission, answer lost": ((_LOST, _CREATE),),
    "submission lost, looking for it": ((Fault(abort_after=0), _CREATE), (_HANG, _LIST)),
    "polling": ((_HANG, "batches.retrieve"),),
    "reading results": ((_HALF, "results"),),
    "at a random moment": (),
}
"""By step: the faults that hold the process there. A process is killed while it waits at the last of them."""


@dataclass(slots=True)
class Found:
    """The sums of many trials with one provider."""

    kills: int = 0
    rows: int = 0
    lost: int = 0
    """Rows without an answer at the end."""
    wrong: int = 0
    """Answers under another prompt."""
    paid: int = 0
    """Rows that the simulator billed."""
    billed: Decimal = Decimal(0)
    spent: Decimal = Decimal(0)
    """USD in the ledger's file."""
    by_step: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


class Nursery:
    """A process that forks the processes of the trials, after it has imported the SDK.

    Args:
        provider: One of `MODELS`.
        environment: The variables of the processes.
    """

    def __init__(self, provider: str, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.batch_kills", provider],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, **environment},
        )

    def start(self, job: dict[str, object]) -> int:
        """Fork a process that does a job, and return its number."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def wait(self) -> int:
        """The exit status of the process that was started last, once it has ended."""
        return int(self._line())

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the nursery has ended")
        return line

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def serve(provider: str) -> None:
    """The nursery's own program: fork a child for each line of the input."""
    from llm_provider._core.formats.registry import load_connection

    load_connection(_SDKS.get(provider, "openai")).connect("aiohttp")
    if provider == "bedrock":
        importlib.import_module("botocore.session").Session().create_client("s3", region_name="eu-west-1")
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                work(json.loads(line))
            finally:
                os._exit(1)
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def work(job: dict[str, object]) -> None:
    """A child: run the job, write its answers, and end."""
    # A process that hangs loses its rows, which the trial reports.
    faulthandler.dump_traceback_later(_LONGEST_SECONDS, exit=True)
    prompts = job["prompts"]
    assert isinstance(prompts, list)
    files = {name: str(job[name]) for name in ("ledger", "prices")}
    keys = {"vertex_ai": lambda: "token-of-nobody"}
    with Client(cache_dir=str(job["cache"]), keys=keys, **files) as client:
        found = client.call_many(str(job["model"]), prompts, delivery="batch", progress=False)
    texts = [one.text if isinstance(one, Response) else repr(one) for one in found]
    Path(str(job["answers"])).write_text(json.dumps(texts), encoding="utf-8")
    os._exit(0)


def trial(
    nursery: Nursery,
    simulator: Simulator | BucketCloud,
    folder: Path,
    provider: str,
    number: int,
    steps: Sequence[str],
) -> tuple[list[str], list[str]]:
    """Run one job, kill its process at each of some steps, and run it to its end.

    Returns:
        The prompts and the answers.
    """
    answers = folder / f"{number}.json"
    job: dict[str, object] = {
        "model": MODELS[provider],
        "prompts": [
            f"trial {number} row {row}: say {number * 1000 + row}" for row in range(ROWS.get(provider, 12))
        ],
        "cache": str(folder / "cache"),
        "ledger": str(folder / "ledger.jsonl"),
        "prices": str(folder / "prices.csv"),
        "answers": str(answers),
    }
    for step in steps:
        _killed(nursery, simulator, folder / "cache" / "batches", provider, step, job)
        if answers.exists():
            break
    if not answers.exists():
        nursery.start(job)
        nursery.wait()
    prompts = job["prompts"]
    assert isinstance(prompts, list)
    return prompts, json.loads(answers.read_text(encoding="utf-8")) if answers.exists() else []


def _killed(
    nursery: Nursery,
    simulator: Simulator | BucketCloud,
    journal: Path,
    provider: str,
    step: str,
    job: dict[str, object],
) -> None:
    faults, met = list(STEPS[step]), simulator.ledger().faults
    expected = met + len(faults)

    def order_next() -> None:
        fault, name = faults.pop(0)
        place = {"results": _RESULTS.get(provider, "files.download")}.get(name, name)
        if name in ("first", _UPLOAD):
            place = _CREATE if provider == "anthropic" else _UPLOAD
        simulator.inject(fault, provider=provider, match=place)

    if faults:
        order_next()
    written = len(list(journal.glob("*"))) if journal.is_dir() else 0
    process = nursery.start(job)
    held = expected > met
    until = time.monotonic() + (60.0 if held or step == "before the intent" else random.uniform(0.0, 0.8))
    while time.monotonic() < until and Path(f"/proc/{process}/stat").exists():
        if held and simulator.ledger().faults > met:
            met = simulator.ledger().faults
            if met >= expected:
                # The half of the results has to arrive and to be stored.
                time.sleep(0.05)
                break
            order_next()
        if step == "before the intent" and journal.is_dir() and len(list(journal.glob("*"))) > written:
            break
        time.sleep(0.0005 if step == "before the intent" else 0.01)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    nursery.wait()
    # A process that found its batch submitted already does not meet a fault of the submission.
    simulator.drop_faults()
    until = time.monotonic() + 10.0
    while simulator.ledger().in_flight and time.monotonic() < until:
        time.sleep(0.01)


def run(provider: str, folder: Path, trials: Sequence[Sequence[str]], seed: int = 0) -> Found:
    """Run trials with one provider, each with its steps at which a process is killed."""
    random.seed(seed)
    found = Found()
    prices = folder / "prices.csv"
    text = (ROOT / "prices.csv").read_text(encoding="utf-8") + _PRICES
    prices.write_text(text, encoding="utf-8")
    repeated = "to " if provider in CLOUDS else "echo: "
    world: AbstractContextManager[Any] = (
        open_cloud(provider, text)
        if provider in CLOUDS
        else Simulator(prices=str(prices), batch_seconds=20_000.0)
    )
    with world as simulator:
        environment = simulator.environment("groq")
        with Nursery(provider, environment) as nursery:
            for number, steps in enumerate(trials):
                prompts, answers = trial(nursery, simulator, folder, provider, number, steps)
                found.kills += len(steps)
                found.rows += len(prompts)
                for step in steps:
                    found.by_step[step] = found.by_step.get(step, 0) + 1
                for place, prompt in enumerate(prompts):
                    answer = answers[place] if place < len(answers) else "no answer"
                    if answer != f"{repeated}{prompt}":
                        kind = "wrong" if answer.startswith(repeated) else "lost"
                        setattr(found, kind, getattr(found, kind) + 1)
                        found.problems.append(f"{provider} {steps}: {prompt!r} got {answer!r}")
                paid = simulator.ledger()
                if paid.answered != found.rows:
                    found.problems.append(f"{provider} {steps}: {paid.answered} paid of {found.rows}")
            found.paid, found.billed = simulator.ledger().answered, simulator.ledger().billed or Decimal(-1)
    found.spent = Ledger.read(folder / "ledger.jsonl").spent
    if found.spent != found.billed:
        found.problems.append(f"{provider}: the ledger has {found.spent}, the bill is {found.billed}")
    return found


if __name__ == "__main__":
    serve(sys.argv[1])
