"""One client in a separate process, which answers each job, a line of JSON, with a line of JSON.

    python -m benchmarks.worker <client> [core]

Runs in the client's environment, so it needs nothing but the standard library and that client.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

from . import loads
from .clients import Client, Messages, Target, offers

QUESTION_BEFORE = "A question before the last one, as long as the questions of a conversation are. " * 3
ANSWER_BEFORE = "An answer before the last one."


class Worker:
    """Keeps its clients and their event loop from job to job, so that they are warm."""

    def __init__(self, make: Callable[[Target], Client], runner: asyncio.Runner) -> None:
        self._make = make
        self._runner = runner
        self._clients: dict[Target, Client] = {}
        self._asked = 0

    def run(self, job: dict[str, Any]) -> dict[str, Any]:
        """Carry out a `fleet.Job`."""
        target, load, fresh = Target(**job["target"]), dict(job["load"]), job["fresh"]
        name = load.pop("name")
        client = self._clients.get(target)
        if client is None:
            client = self._clients[target] = self._make(target)
        prompts = self._prompts(client, job)
        if fresh:
            self._close(self._clients.pop(target))
        gc.collect()
        notes = loads.Notes()
        notes.start()
        if fresh:
            client = self._make(target)
        loads.run(name, client, prompts, notes, self._runner, **load)
        wall, cpu = time.perf_counter() - notes.begun, time.process_time() - notes.begun_cpu
        if fresh:
            self._close(client)
        return {
            "wall": wall,
            "cpu": cpu,
            "latencies": notes.latencies,
            "firsts": notes.firsts,
            "characters": notes.characters,
            "failed": job["count"] - notes.right,
            "error": notes.error,
        }

    def _prompts(self, client: Client, job: dict[str, Any]) -> list[loads.Prompt]:
        made = []
        for _ in range(job["count"]):
            self._asked += 1
            fields = {"n": self._asked, "twice": 2 * self._asked}
            messages = conversation(job["question"].format(**fields), job["messages"])
            answer = None if job["answer"] is None else job["answer"].format(**fields)
            made.append(loads.Prompt(client.prepare(messages), answer))
        return made

    def _close(self, client: Client) -> None:
        self._runner.run(client.close())

    def close(self) -> None:
        """Close every client."""
        for client in self._clients.values():
            self._close(client)


def conversation(question: str, length: int) -> Messages:
    """A conversation of `length` messages that ends with a question; an even length gives one message less.

    >>> [message["role"] for message in conversation("What is 1+1?", 3)]
    ['user', 'assistant', 'user']
    """
    before = [
        {"role": "user", "content": QUESTION_BEFORE},
        {"role": "assistant", "content": ANSWER_BEFORE},
    ]
    return [*before * ((length - 1) // 2), {"role": "user", "content": question}]


def main() -> None:
    """Print the versions of the packages, then carry out jobs until the standard input ends."""
    # Output of an SDK must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    offer = offers()[sys.argv[1]]
    if len(sys.argv) > 2:
        os.sched_setaffinity(0, {int(sys.argv[2])})
    versions = {name: importlib.metadata.version(name) for name in offer.packages}
    print(json.dumps({"python": platform.python_version(), **versions}), file=answers, flush=True)
    with asyncio.Runner() as runner:
        worker = Worker(offer.make, runner)
        for line in sys.stdin:
            print(json.dumps(worker.run(json.loads(line))), file=answers, flush=True)
        worker.close()


if __name__ == "__main__":
    main()
