"""One process of the soak: it runs batch after batch through the public API, until a file tells it to stop.

    python -m benchmarks.soak.worker '{"name": "w1", …}'

A killed worker is started again and goes on with the batch that it had not finished. Each line of its output
file is one `write`: the time in monotonic seconds, what happened, and to which prompt.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from llm_provider import Client, LLMError, Timeouts

TOOLS = [{"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}]
BATCH = 12
SHARED_EVERY = 5
"""Every fifth batch of all workers is the same: they ask for it at the same time or find it in the cache."""
WAYS = ("iterated", "called", "streamed", "awaited")
AT_ONCE = 8
STREAMS_AT_ONCE = 4
TOTAL_SECONDS = 6.0
ROUNDS = 500
"""Repetitions of a batch after which its errors count as final."""
PAUSE = 0.5
"""Seconds before a batch is repeated."""


class Route(NamedTuple):
    """A wire format with its model."""

    name: str
    model: str
    parameters: Mapping[str, Any] = {}


ROUTES = (
    Route("openai", "gpt-5.5"),
    Route("openai, Responses", "gpt-6.1-sol", {"tools": TOOLS, "reasoning_effort": "low"}),
    Route("anthropic", "claude-sonnet-5-5"),
    Route("gemini", "gemini-3.8-flash"),
)
WARM_BATCHES = 8
"""After this many batches every route was used twice."""
Outcome = tuple[int, str | LLMError]


def way_of(batch: int) -> str:
    """How a batch is asked: every way has each route in turn."""
    return WAYS[batch // len(ROUTES) % len(WAYS)]


def tags(worker: str, batch: int) -> list[str]:
    """The names of the prompts of a batch.

    >>> tags("w1", 0)[0], tags("w1", 4)[0], tags("w1", 9)[0]
    ('w1-0-0', 'all-4-0', 'w1-9-0')
    """
    # Streams do not share a request with equal calls at the same time, so no streamed batch is shared.
    shared = batch % SHARED_EVERY == SHARED_EVERY - 1 and way_of(batch) != "streamed"
    owner = "all" if shared else worker
    return [f"{owner}-{batch}-{number}" for number in range(BATCH)]


def prompt(tag: str) -> str:
    """The prompt of a name, from 3 to 35 words long."""
    words = random.Random(tag).randrange(1, 33)
    return f"[{tag}] Please repeat: {'word ' * words}end"


def expected(tag: str) -> str:
    """The only right answer: the simulator repeats 200 characters."""
    return f"echo: {prompt(tag)[:200]}"


def route_of(tag: str) -> Route:
    """The route of a prompt: it depends on the batch alone, so that workers share whole batches."""
    return ROUTES[int(tag.split("-")[1]) % len(ROUTES)]


class Worker:
    """The batches of one process.

    Args:
        name: Name of the worker.
        folder: The folder of the run, with its state and its output.
        client: The client.
    """

    def __init__(self, name: str, folder: Path, client: Client) -> None:
        self._name = name
        self._parent = os.getppid()
        self._client = client
        self._stop = folder / "stop"
        self._progress = folder / f"{name}.finished"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._output = os.open(folder / f"{name}.jsonl", flags, 0o600)

    def log(self, what: str, tag: str = "", **facts: Any) -> None:
        """Write a line."""
        line = json.dumps({"at": time.monotonic(), "what": what, "tag": tag, **facts})
        os.write(self._output, f"{line}\n".encode())

    def run(self) -> None:
        """Run batches until the file `stop` exists; a batch that has begun is finished."""
        self.log("ready", pid=os.getpid())
        done = int(self._progress.read_text()) if self._progress.exists() else 0
        while not self._stop.exists() and os.getppid() == self._parent:
            for turn in range(ROUNDS):
                if not self._round(done, turn) or os.getppid() != self._parent:
                    break
                time.sleep(PAUSE)
            done += 1
            beside = self._progress.with_suffix(".new")
            beside.write_text(str(done))
            beside.replace(self._progress)

    def check(self, names: Iterable[str]) -> None:
        """Read every answer from the cache."""
        found = sorted(names)
        for place, route in enumerate(ROUTES):
            own = [tag for tag in found if int(tag.split("-")[1]) % len(ROUTES) == place]
            asked = [prompt(tag) for tag in own]
            answers = self._client.iter_many(
                route.model, asked, max_tokens=256, cache="only", progress=False, **route.parameters
            )
            self._judge(own, self._outcomes(answers))

    def _round(self, batch: int, turn: int) -> int:
        """Run a batch once; the number of its calls that failed."""
        names = tags(self._name, batch)
        way = way_of(batch)
        self.log("batch", way=way, batch=batch, turn=turn)
        ask: Callable[[Route, list[str]], Iterable[Outcome]] = getattr(self, f"_{way}")
        return self._judge(names, ask(route_of(names[0]), [prompt(tag) for tag in names]))

    def _judge(self, names: list[str], outcomes: Iterable[Outcome]) -> int:
        """Write down what came for each prompt; the number of errors."""
        seen, failed = [0] * len(names), 0
        for place, outcome in outcomes:
            seen[place] += 1
            tag = names[place]
            if isinstance(outcome, LLMError):
                failed += 1
                facts = {"error": type(outcome).__name__, "message": str(outcome)[:300]}
                self.log("error", tag, status=outcome.status, **facts)
            elif outcome == expected(tag):
                self.log("right", tag)
            else:
                self.log("wrong", tag, text=outcome[:300])
        for tag, times in zip(names, seen, strict=True):
            if times != 1:
                self.log("wrong", tag, text=f"{times} results for one input")
        return failed

    @staticmethod
    def _outcomes(results: Iterable[tuple[int, Any]]) -> Iterator[Outcome]:
        for place, result in results:
            yield place, result if isinstance(result, LLMError) else result.text

    def _given(self, route: Route) -> dict[str, Any]:
        return {"max_tokens": 256, "progress": False, "max_concurrent": AT_ONCE, **route.parameters}

    def _iterated(self, route: Route, prompts: list[str]) -> Iterator[Outcome]:
        return self._outcomes(self._client.iter_many(route.model, prompts, **self._given(route)))

    def _called(self, route: Route, prompts: list[str]) -> Iterator[Outcome]:
        results = self._client.call_many(route.model, prompts, **self._given(route))
        return self._outcomes(enumerate(results))

    def _awaited(self, route: Route, prompts: list[str]) -> Iterator[Outcome]:
        async def all_of_them() -> list[tuple[int, Any]]:
            found = self._client.aiter_many(route.model, prompts, **self._given(route))
            return [one async for one in found]

        return self._outcomes(asyncio.run(all_of_them()))

    def _streamed(self, route: Route, prompts: list[str]) -> Iterator[Outcome]:
        def read(numbered: tuple[int, str]) -> Outcome:
            place, asked = numbered
            try:
                with self._client.stream(route.model, asked, max_tokens=256, **route.parameters) as deltas:
                    shown = "".join(delta.text for delta in deltas)
                whole = deltas.response.text
            except LLMError as error:
                return place, error
            return place, shown if shown == whole else f"shown {shown!r}, in the end {whole!r}"

        with ThreadPoolExecutor(STREAMS_AT_ONCE) as pool:
            yield from pool.map(read, enumerate(prompts))


def main() -> None:
    order = json.loads(sys.argv[1])
    folder = Path(order["folder"])
    with Client(
        cache_dir=order["cache"], ledger=folder / "ledger.jsonl", timeout=Timeouts(total=TOTAL_SECONDS)
    ) as client:
        worker = Worker(order["name"], folder, client)

        def told(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            worker.log("warning", category=category.__name__, message=str(message)[:300])

        warnings.showwarning = told
        warnings.simplefilter("always")
        if "check" in order:
            worker.check(json.loads(Path(order["check"]).read_text()))
        else:
            worker.run()


if __name__ == "__main__":
    main()
