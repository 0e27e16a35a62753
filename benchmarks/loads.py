"""The loads that a worker puts on its client, and the notes on every call.

Runs in every peer's environment, so it imports only the standard library.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from .clients import Client

SECONDS_AT_MOST = 120.0
"""Time limit of a load; calls that are not done by then have failed."""


class Prompt(NamedTuple):
    """A question in the client's own form, and its right answer; None if any text is right."""

    prepared: Any
    answer: str | None


@dataclass(slots=True)
class Notes:
    """The outcome of every call. Times are in seconds; characters stand for the tokens of a stream."""

    begun: float = 0.0
    begun_cpu: float = 0.0
    latencies: list[float] = field(default_factory=list)
    firsts: list[float] = field(default_factory=list)
    characters: int = 0
    right: int = 0
    error: str | None = None

    def start(self) -> None:
        """Start or restart the clock."""
        self.begun, self.begun_cpu = time.perf_counter(), time.process_time()

    def answered(self, prompt: Prompt, text: str, begun: float) -> None:
        """Note an answer, which counts only if it is right."""
        if text and prompt.answer in (None, text):
            self.right += 1
            self.latencies.append(time.perf_counter() - begun)
            self.characters += len(text)
        else:
            self.failure(ValueError(f"expected {prompt.answer!r}, got {text!r}"))

    def failure(self, error: BaseException) -> None:
        """Note an error; only the first message is kept."""
        self.error = self.error or f"{type(error).__name__}: {error}"[:500]


async def _call(client: Client, prompt: Prompt, notes: Notes, begun: float) -> None:
    try:
        text = await client.call(prompt.prepared)
    except Exception as error:
        notes.failure(error)
    else:
        notes.answered(prompt, text, begun)


async def _stream(client: Client, prompt: Prompt, notes: Notes, begun: float) -> None:
    pieces: list[str] = []
    try:
        async for piece in client.stream(prompt.prepared):
            if piece:
                if not pieces:
                    notes.firsts.append(time.perf_counter() - begun)
                pieces.append(piece)
    except Exception as error:
        notes.failure(error)
    else:
        notes.answered(prompt, "".join(pieces), begun)


async def closed(
    client: Client, prompts: Sequence[Prompt], notes: Notes, *, concurrency: int, stream: bool
) -> None:
    """Keep `concurrency` calls in flight: each starts as soon as another one is done."""
    ask = _stream if stream else _call
    waiting = iter(prompts)

    async def one_after_another() -> None:
        for prompt in waiting:
            await ask(client, prompt, notes, time.perf_counter())

    async with asyncio.timeout(SECONDS_AT_MOST):
        await asyncio.gather(*(one_after_another() for _ in range(concurrency)))


async def arrivals(
    client: Client, prompts: Sequence[Prompt], notes: Notes, *, rate: float, seed: int
) -> None:
    """Start calls at random times, `rate` a second on average (Poisson), also while earlier ones run.

    A latency is counted from the time at which a call was due: a late start counts against the client.
    """
    draw = random.Random(seed)
    due = time.perf_counter()
    # Finished calls are dropped at once, because the garbage collector would traverse them again and again.
    calls: set[asyncio.Task[None]] = set()
    async with asyncio.timeout(SECONDS_AT_MOST):
        with _Clock() as clock:
            for prompt in prompts:
                due += draw.expovariate(rate)
                if due > time.perf_counter():
                    await clock.reach(due)
                call = asyncio.create_task(_call(client, prompt, notes, due))
                calls.add(call)
                call.add_done_callback(calls.discard)
        await asyncio.gather(*calls)


class _Clock:
    """Waits until a time of `time.perf_counter` with a timer of the kernel (timerfd_create(2)).

    asyncio's timers wait whole milliseconds, which would distort the measurement.
    """

    _ABSOLUTE = 1

    def __init__(self) -> None:
        self._kernel = ctypes.CDLL(None, use_errno=True)
        self._descriptor = self._kernel.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._loop = asyncio.get_running_loop()
        self._reached = self._loop.create_future()
        self._loop.add_reader(self._descriptor, self._tell)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)

    def _tell(self) -> None:
        os.read(self._descriptor, 8)
        if not self._reached.done():
            self._reached.set_result(None)

    async def reach(self, moment: float) -> None:
        """Wait until a time."""
        self._reached = self._loop.create_future()
        seconds, rest = divmod(moment, 1)
        # An interval of 0: the timer fires once.
        when = (ctypes.c_long * 4)(0, 0, int(seconds), max(1, int(rest * 1e9)))
        if self._kernel.timerfd_settime(self._descriptor, self._ABSOLUTE, when, None):
            raise OSError(ctypes.get_errno(), "timerfd_settime")
        await self._reached


def threads(client: Client, prompts: Sequence[Prompt], notes: Notes, *, concurrency: int) -> None:
    """Run threads that each wait for one answer at a time.

    Each thread makes one call before the clock starts, so that a client that belongs to the thread exists
    and is connected. Then all threads start together.
    """
    waiting = iter(prompts)
    start = threading.Barrier(concurrency, action=notes.start)

    def one_after_another() -> None:
        with contextlib.suppress(Exception):  # an error will occur again after the clock has started
            client.call_blocking(prompts[0].prepared)
        start.wait()
        for prompt in waiting:
            begun = time.perf_counter()
            try:
                text = client.call_blocking(prompt.prepared)
            except Exception as error:
                notes.failure(error)
            else:
                notes.answered(prompt, text, begun)

    running = [threading.Thread(target=one_after_another) for _ in range(concurrency)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(SECONDS_AT_MOST)


def many(client: Client, prompts: Sequence[Prompt], notes: Notes, *, concurrency: int) -> None:
    """Make all calls as one batch; the latency of each is that of the batch."""
    begun = time.perf_counter()
    texts = client.call_many([prompt.prepared for prompt in prompts], concurrency)
    for prompt, text in zip(prompts, texts, strict=True):
        notes.answered(prompt, text, begun)


def run(
    name: str,
    client: Client,
    prompts: Sequence[Prompt],
    notes: Notes,
    runner: asyncio.Runner,
    **how: Any,
) -> None:
    """Put a load on a client.

    Args:
        name: "closed" or "arrivals", which run in the runner's event loop, "threads" or "many".
        client: The client.
        prompts: Its prompts.
        notes: Receives the outcome of every call.
        runner: Keeps one event loop for all loads, and with it the client's connections.
        **how: The parameters of the load.
    """
    loads: dict[str, Callable[..., Any]] = {
        "closed": closed,
        "arrivals": arrivals,
        "threads": threads,
        "many": many,
    }
    started = loads[name](client, prompts, notes, **how)
    if started is not None:
        runner.run(started)
