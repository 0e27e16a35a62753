"""The longest stall of the loop of all calls by what runs on it: replies, streams, prompts, media, checks.

Each row is one call of the given size, to a server in another process. Meanwhile a task on the loop sleeps
for 1 ms again and again. Its longest oversleep is the stall that another call would see.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from llm_provider import Client, LLMError
from llm_provider._core.runtime import event_loop

from ..report import Cell, Result, Table
from . import Options

SIZES = (1, 8, 32, 60)
"""MB. An answer may have 64 MB, and a request 30 MB."""
MODEL = "gpt-5.5"
MOST_REQUEST = 20
PACKAGES = ("aiohttp", "jsonschema-rs", "openai", "orjson", "pydantic-core")

SERVER = """
import asyncio, json, sys

def head(kind, length=None):
    end = "transfer-encoding: chunked" if length is None else f"content-length: {length}"
    return f"HTTP/1.1 200 OK\\r\\ncontent-type: {kind}\\r\\n{end}\\r\\n\\r\\n".encode()

def reply(shape, size):
    choice = {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}
    if shape == "text":
        choice["message"]["content"] = "word " * (size // 5)
    if shape == "numbers":
        choice["message"]["content"] = json.dumps(list(range(size // 10)))
    if shape == "logprobs":
        other = {"token": "x", "logprob": -1.23, "bytes": [1]}
        token = {"token": "abc", "logprob": -0.1234567, "bytes": [97, 98, 99], "top_logprobs": [other] * 5}
        choice["logprobs"] = {"content": [token] * (size // len(json.dumps(token)))}
    if shape == "vectors":
        vector = [number * 0.000123456789 for number in range(1536)]
        data = [{"object": "embedding", "index": place, "embedding": vector} for place in range(COUNT(size))]
        usage = {"prompt_tokens": 5, "total_tokens": 5}
        return {"object": "list", "data": data, "model": "m", "usage": usage}
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    made = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
    return {**made, "choices": [choice], "usage": usage}

# Shapes of a field that nobody reads: their JSON, and how often it comes in so many bytes.
MORE = {
    "lists": "[]", "objects": '{"a":1}', "deep": "[" * 190 + "]" * 190,
    "integers": "1" * 18, "floats": "0.123456789",
    "escapes": '"' + '\\\\"' * 9 + '"', "names": None, "surrogates": '"\\\\ud83d\\\\ude00"',
}

def more(shape, size):
    if shape == "names":
        return "{" + ",".join('"name %d":0' % number for number in range(size // 16)) + "}"
    # At most 10,000,000 values are read.
    values = MORE[shape].count("[") + 2 * MORE[shape].count("{") or 1
    count = min(size // (len(MORE[shape]) + 1), 9_900_000 // values)
    return "[" + ",".join([MORE[shape]] * count) + "]"

def COUNT(size):
    return max(1, size // 32_000)

def events(size, piece):
    def chunk(delta, reason):
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        made = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
        return b"data: " + json.dumps(made).encode() + b"\\n\\n"
    for _ in range(size // piece):
        yield chunk({"content": "w" * piece}, None)
    yield chunk({}, "stop") + b"data: [DONE]\\n\\n"

async def serve(reader, writer):
    while True:
        try:
            lines = (await reader.readuntil(b"\\r\\n\\r\\n")).decode().lower().split("\\r\\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        left = int(next((line.split(":")[1] for line in lines if line.startswith("content-length:")), 0))
        while left:
            left -= len(await reader.read(min(left, 1 << 20)))
        _, shape, size, *_ = lines[0].split(" ")[1].split("/")
        if shape.isdecimal():
            writer.write(head("text/event-stream"))
            for event in events(int(size), int(shape)):
                writer.write(b"%x\\r\\n%s\\r\\n" % (len(event), event))
                await writer.drain()
            writer.write(b"0\\r\\n\\r\\n")
        else:
            body = json.dumps(reply(shape, int(size)))
            if shape in MORE:
                body = body[:-1] + ', "more": ' + more(shape, int(size)) + "}"
            body = body.encode()
            writer.write(head("application/json", len(body)) + body)
        await writer.drain()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""

Ask = Callable[[Client, str, int, str], object]
"""Makes a call to a base URL, with so many bytes, and a word that makes it new."""


def _call(prompt: Any = "", **parameters: Any) -> Ask:
    return lambda client, url, size, word: client.call(
        MODEL,
        prompt(size, word) if callable(prompt) else word,
        base_url=url,
        reasoning_effort="none",
        max_repairs=0,
        timeout=600,
        **parameters,
    )


def _stream(client: Client, url: str, size: int, word: str) -> None:
    for _ in client.stream(MODEL, word, base_url=url, reasoning_effort="none", timeout=600):
        pass


def _embed(client: Client, url: str, size: int, word: str) -> None:
    texts = [f"{word} {number}" for number in range(max(1, size // 32_000))]
    client.embed("text-embedding-3-small", texts, base_url=url, timeout=600)


def _long(size: int, word: str) -> str:
    return word + " word" * (size // 5)


def _image(size: int, word: str) -> list[Any]:
    return [word, b"\x89PNG\r\n\x1a\n" + os.urandom(size * 3 // 4)]


ARRAY = {"type": "array", "items": {"type": "integer"}}
CASES: dict[str, tuple[str, Ask]] = {
    "reply: text, decoded and stored": ("text", _call()),
    "hit: the same, in the user's thread": ("text", _call(lambda size, word: "again")),
    "hit: two samples, on the loop": ("text", _call(lambda size, word: "again", n=2)),
    "reply: log probabilities": ("logprobs", _call(logprobs=True)),
    "reply: embeddings": ("vectors", _embed),
    "reply: empty lists": ("lists", _call()),
    "reply: small objects": ("objects", _call()),
    "reply: lists 190 deep": ("deep", _call()),
    "reply: integers of 18 digits": ("integers", _call()),
    "reply: numbers with a fraction": ("floats", _call()),
    "reply: texts of escapes": ("escapes", _call()),
    "reply: texts of surrogate pairs": ("surrogates", _call()),
    "reply: an object of many names": ("names", _call()),
    "check: a JSON schema": ("numbers", _call(response_format=ARRAY)),
    "check: a Python type": ("numbers", _call(response_format=list[int])),
    "check: text that is no JSON": ("text", _call(response_format=ARRAY)),
    "stream: events of 40 characters": ("40", _stream),
    "stream: events of 100,000 characters": ("100000", _stream),
    "prompt: tokens estimated, sent, stored": ("short", _call(_long)),
    "prompt: with a budget": ("short", _call(_long, budget=1000.0)),
    "prompt: with `prompt_caching`": ("short", _call(_long, prompt_caching=True)),
    "media: an image of random bytes": ("short", _call(_image)),
}


def run(options: Options) -> Result:
    """Measure every case at every size."""
    rounds = options.rounds_or(3)
    sizes = SIZES[:1] if options.quick else SIZES
    stalls: dict[tuple[str, int], list[float]] = {}
    problems = []
    with server() as port, tempfile.TemporaryDirectory() as directory:
        pulse = _Pulse()
        with Client(cache_dir=Path(directory), keys={"openai": "key"}) as client:
            _call()(client, f"http://127.0.0.1:{port}/short/1", 1, "warm")
            for number in range(rounds):
                for size in sizes:
                    for name, (shape, ask) in CASES.items():
                        if size > MOST_REQUEST and shape in {"short", "40"}:
                            continue
                        url = f"http://127.0.0.1:{port}/{shape}/{size * 1_000_000}"
                        pulse.reset()
                        try:
                            ask(client, url, size * 1_000_000, f"{name} {number}")
                        except LLMError as error:
                            if "does not match" not in str(error):
                                problems.append(f"{name}, {size} MB: {error}"[:200])
                        time.sleep(0.05)
                        stalls.setdefault((name, size), []).append(pulse.longest * 1e3)
    rows: list[list[Cell]] = []
    for name in CASES:
        least = [min(stalls[name, size]) if (name, size) in stalls else None for size in sizes]
        per_mb = [stall / size for stall, size in zip(least, sizes, strict=True) if stall is not None]
        rows.append(
            [name, *(None if stall is None else round(stall) for stall in least), round(per_mb[-1], 1)]
        )
    return Result(
        title="Stalls of the loop",
        text="One event loop serves all calls of a process. The figures say how long another call waits at "
        "most while one is served that has so many MB: the lowest of the rounds, as other processes of the "
        "machine only add to it.",
        tables=[
            Table(
                title="Longest stall, in ms",
                columns=["what runs on the loop", *(f"{size} MB" for size in sizes), "ms per MB above"],
                rows=rows,
            )
        ],
        versions={"ours": {name: importlib.metadata.version(name) for name in PACKAGES}},
        rounds=rounds,
        problems=sorted(set(problems)),
    )


class _Pulse:
    """A task on the loop of all calls that notes how late it wakes."""

    def __init__(self) -> None:
        self.longest = 0.0
        event_loop.submit(self._beat())

    def reset(self) -> None:
        """Forget what was noted."""
        time.sleep(0.05)
        self.longest = 0.0

    async def _beat(self) -> None:
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now = time.perf_counter()
            self.longest, last = max(self.longest, now - last - 0.001), now


@contextmanager
def server() -> Iterator[int]:
    """The port of a server that answers with what its path says."""
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()
