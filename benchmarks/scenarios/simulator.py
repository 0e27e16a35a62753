"""The number of small answers a second that the simulator gives on one core.

The client is a bare asyncio protocol that finds the end of an answer and sends the next request. It takes a
fraction of the time of an SDK, so that the figures are those of the server.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import os
import ssl
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ..provider import Provider, cores
from ..report import Result, Table
from . import Options

HELLO = [{"role": "user", "content": "What is 2+2?"}]
CASES = {
    "openai": ("/openai/v1/chat/completions", {"model": "gpt-6.1-sol", "messages": HELLO}),
    "anthropic": (
        "/anthropic/v1/messages",
        {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": HELLO},
    ),
    "gemini": (
        "/gemini/v1/models/gemini-3.8-flash:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "What is 2+2?"}]}]},
    ),
    "openai, stream of 30": (
        "/openai/v1/chat/completions",
        {"model": "gpt-6.1-sol", "stream": True, "messages": [{"role": "user", "content": "w " * 29}]},
    ),
}
ANSWERS = 20_000
STREAMS = 5_000
CONNECTIONS = 32
SECONDS_AT_MOST = 60.0


class Load:
    """Requests over several connections, each of which sends the next request after its answer."""

    def __init__(self, request: bytes, answers: int) -> None:
        self.request = request
        self.left = answers
        self.missing = answers
        self.done = asyncio.get_running_loop().create_future()

    def connection(self) -> _Connection:
        """Create a connection that takes requests from this load."""
        return _Connection(self)


class _Connection(asyncio.Protocol):
    def __init__(self, load: Load) -> None:
        self._load = load
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def _next(self) -> None:
        if self._load.left:
            self._load.left -= 1
            self._transport.write(self._load.request)

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data if self._buffer else data
        if not _complete(data):
            self._buffer = data
            return
        if not data.startswith(b"HTTP/1.1 200"):
            self._load.done.set_exception(RuntimeError(data[:200].decode()))
            return
        self._buffer = b""
        self._load.missing -= 1
        if self._load.missing == 0:
            self._load.done.set_result(None)
        self._next()


def _complete(data: bytes) -> bool:
    end = data.find(b"\r\n\r\n")
    if end < 0:
        return False
    place = data.find(b"content-length: ", 0, end)
    if place < 0:
        return data.endswith(b"0\r\n\r\n")
    return len(data) >= end + 4 + int(data[place + 16 : data.find(b"\r\n", place)])


def run(options: Options) -> Result:
    """Measure every case over HTTP and HTTPS."""
    rounds = options.rounds_or(3)
    rows = []
    with Provider(tls=False) as plain, Provider() as encrypted, _on_the_other_core():
        for case in CASES:
            answers = options.count(STREAMS if "stream" in case else ANSWERS)
            for name, provider in (("HTTP", plain), ("HTTPS", encrypted)):
                provider.behave()
                taken = [asyncio.run(_measure(provider, case, answers)) for _ in range(rounds)]
                rate, cpu = (statistics.median(one) for one in zip(*taken, strict=True))
                rows.append([case, name, rate, cpu * 1e6])
    versions = {name: importlib.metadata.version(name) for name in ("granian", "orjson")}
    return Result(
        title="The simulator",
        text=f"{CONNECTIONS} connections of HTTP/1.1, with the server on one core and the client on the "
        "other. CPU is that of the server's process, with all its threads.",
        tables=[Table(title="Answers", columns=("case", "", "answers/s", "CPU µs per answer"), rows=rows)],
        versions={"simulator": versions},
        rounds=rounds,
    )


async def _measure(provider: Provider, case: str, answers: int) -> tuple[float, float]:
    """Answers a second, and seconds of the server's CPU for each."""
    path, fields = CASES[case]
    body = json.dumps(fields).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    head += f"authorization: Bearer test-key\r\ncontent-length: {len(body)}\r\n\r\n"
    simulator = provider.simulator
    context = None
    if simulator.certificate is not None:
        context = ssl.create_default_context(cafile=str(simulator.certificate))
    load = Load(head.encode() + body, answers)
    loop = asyncio.get_running_loop()
    cpu, begun = provider.cpu, time.perf_counter()
    transports = [
        (await loop.create_connection(load.connection, "127.0.0.1", simulator.port, ssl=context))[0]
        for _ in range(CONNECTIONS)
    ]
    await asyncio.wait_for(load.done, SECONDS_AT_MOST)
    seconds, used = time.perf_counter() - begun, provider.cpu - cpu
    for transport in transports:
        transport.abort()
    await asyncio.sleep(0)  # closes the sockets
    return answers / seconds, used / answers


@contextmanager
def _on_the_other_core() -> Iterator[None]:
    chosen = cores()
    if chosen is None:
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {chosen[1]})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
