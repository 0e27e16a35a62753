"""Twelve cells of the grid over sockets, with the real client and clock, and a server in its own process.

`random_grid --sockets` calls this. The server has the provider of the cell and answers in OpenAI's format.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import multiprocessing
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from llm_provider import Client
from llm_provider._core.pace.headers import Allowance

from .random_grid import FIRST_SEED, Cell, measure, provider

MODEL = "gpt-6.1-sol"
HEADERS = ("none", "right", "stale", "tokens only")
CELLS = [
    Cell(share, headers, retry_after, latency, calls, "independent")
    for (share, retry_after, latency, calls), headers in itertools.product(
        ((0.01, 0.1, 0.1, 2400), (0.05, 1.0, 0.5, 300), (0.05, 0.1, 0.5, 2400)), HEADERS
    )
]
ROUNDS = 3
_SPREAD, _REFUSAL_SECONDS = 0.3, 0.05
"""The simulation's spread of latencies, and its time of a refusal."""
_TOKENS = 100


def _told(kind: str, allowance: Allowance | None) -> str:
    """The headers of one limit, which refills within a minute."""
    if allowance is None:
        return ""
    limit = round(60 * allowance.rate)
    reset = max(limit - allowance.remaining, 0) / allowance.rate
    values = {"limit": limit, "remaining": int(allowance.remaining), "reset": f"{reset:.3f}s"}
    return "".join(f"x-ratelimit-{name}-{kind}: {value}\r\n" for name, value in values.items())


async def _serve(cell: Cell, seed: int, port: Connection) -> None:
    server, chance, count = provider(cell), random.Random(seed), itertools.count()
    mean = math.log(cell.latency) - _SPREAD**2 / 2
    if cell.headers == "tokens only":
        usage = {"prompt_tokens": _TOKENS - 1, "completion_tokens": 1, "total_tokens": _TOKENS}
    else:
        usage = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}

    async def answer(writer: asyncio.StreamWriter) -> None:
        reply: dict[str, object]
        now, lines, seconds = time.monotonic(), "", chance.lognormvariate(mean, _SPREAD)
        refusal: float | None = None
        refused = server.shedding is not None and server.shedding.refuses(now, chance)
        if refused:
            assert server.shedding is not None
            refusal = server.shedding.retry_after
        elif (wait := server.offer(now, _TOKENS)) > 0:
            refused, refusal = True, server.told(wait)
        if server.headers is not None:
            headroom = server.headers(now, chance)
            lines += _told("requests", headroom.requests) + _told("tokens", headroom.tokens)
        if refused:
            seconds, status = _REFUSAL_SECONDS, "429 Too Many Requests"
            lines += "" if refusal is None else f"retry-after: {refusal:g}\r\n"
            reply = {
                "error": {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}
            }
        else:
            status = "200 OK"
            message = {"role": "assistant", "content": "4"}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            reply = {
                "id": f"chatcmpl-{next(count)}",
                "object": "chat.completion",
                "created": 1,
                "model": MODEL,
            }
            reply |= {"choices": [choice], "usage": usage}
        await asyncio.sleep(seconds)
        body = json.dumps(reply)
        lines += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        writer.write(f"HTTP/1.1 {status}\r\n{lines}\r\n{body}".encode())

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next(
                int(line.partition(b":")[2])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            )
            await reader.readexactly(length)
            await answer(writer)

    opened = await asyncio.start_server(read, "127.0.0.1", 0, backlog=2048)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
    port.send(opened.sockets[0].getsockname()[1])
    await opened.serve_forever()


def _run(cell: Cell, seed: int, port: Connection) -> None:
    asyncio.run(_serve(cell, seed, port))


@contextmanager
def serving(cell: Cell, seed: int) -> Iterator[str]:
    """The base URL of a server with the provider of a cell. Nobody has learned anything of it."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_run, args=(cell, seed, there), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}/v1"
    finally:
        process.kill()
        process.join()


def seconds(cell: Cell, seed: int) -> float:
    """The time of `call_many` over sockets."""
    prompts = [f"What is {number}+1?" for number in range(cell.calls)]
    with (
        serving(cell, seed) as base_url,
        Client(cache="off", keys={"openai": "sk-any"}, rate_control="independent") as client,
    ):
        client.call(MODEL, "Hi", base_url=base_url)
        started = time.perf_counter()
        results = client.call_many(MODEL, prompts, base_url=base_url, progress=False)
        duration = time.perf_counter() - started
    assert not any(isinstance(result, Exception) for result in results)
    return duration


def table() -> list[str]:
    """The rows of the table, which are printed as they are measured."""
    lines = [
        "| calls, latency, headers, refused, Retry-After | none refused, s | s | speed, % | simulated, % |",
        "|---|---|---|---|---|",
    ]
    print("\n".join(lines), flush=True)
    seeds = range(FIRST_SEED, FIRST_SEED + ROUNDS)
    for cell in CELLS:
        whole = cell._replace(share=0.0)
        # Interleaved, as the speed of the machine changes.
        times = [(seconds(whole, seed), seconds(cell, seed)) for seed in seeds]
        before, after = (statistics.median(each) for each in zip(*times, strict=True))
        simulated = 100 * measure(whole, seeds) / measure(cell, seeds)
        lines.append(
            f"| {cell.calls:,}, {cell.latency:g} s, {cell.headers}, {cell.share:.0%}, {cell.retry_after:g} s "
            f"| {before:.1f} | {after:.1f} | {100 * before / after:.0f} | {simulated:.0f} |"
        )
        print(lines[-1], flush=True)
    return lines
