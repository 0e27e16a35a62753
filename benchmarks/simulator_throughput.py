"""How many small answers a second the simulator gives on one core.

The server runs on one core and the client on another. The client is a bare asyncio protocol that finds the
end of an answer and sends the next request: it costs a fraction of what an SDK costs, so that the figure is
the server's. CPU time is what the server process used, all its threads together, and holds better than the
rate on a busy machine.

    python benchmarks/simulator_throughput.py [--answers 20000] [--connections 32] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import ssl
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from llm_provider.simulator import Simulator

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
    "openai stream of 30": (
        "/openai/v1/chat/completions",
        {"model": "gpt-6.1-sol", "stream": True, "messages": [{"role": "user", "content": "w " * 29}]},
    ),
}
SECONDS_AT_MOST = 60.0


class Result(NamedTuple):
    """Answers per second, and microseconds of the server's CPU per answer."""

    rate: float
    cpu: float


class Load:
    """So many requests over so many connections, each sending the next as soon as it has its answer."""

    def __init__(self, request: bytes, answers: int) -> None:
        self.request = request
        self.left = answers
        self.missing = answers
        self.done = asyncio.get_running_loop().create_future()

    def connection(self) -> _Connection:
        """A connection that takes part."""
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


def cpu_seconds(pid: int) -> float:
    """CPU time a process has used, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(simulator: Simulator, case: str, answers: int, connections: int) -> Result:
    """Run one case."""
    path, fields = CASES[case]
    body = json.dumps(fields).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    head += f"authorization: Bearer test-key\r\ncontent-length: {len(body)}\r\n\r\n"
    context = None
    if simulator.certificate is not None:
        context = ssl.create_default_context(cafile=str(simulator.certificate))
    load = Load(head.encode() + body, answers)
    assert simulator.pid is not None
    loop = asyncio.get_running_loop()
    cpu, begun = cpu_seconds(simulator.pid), time.perf_counter()
    transports = [
        (await loop.create_connection(load.connection, "127.0.0.1", simulator.port, ssl=context))[0]
        for _ in range(connections)
    ]
    await asyncio.wait_for(load.done, SECONDS_AT_MOST)
    seconds = time.perf_counter() - begun
    used = cpu_seconds(simulator.pid) - cpu
    for transport in transports:
        transport.close()
    return Result(answers / seconds, used / answers * 1e6)


def pin(simulator: Simulator) -> str:
    """Give server and client a core each where there are two."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return "server and client share one core"
    for thread in Path(f"/proc/{simulator.pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), {cores[0]})
    os.sched_setaffinity(0, {cores[1]})
    return f"server on core {cores[0]}, client on core {cores[1]}"


def main() -> int:
    """Measure every case over HTTP and HTTPS."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, default=20_000)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3, help="the best one counts")
    arguments = parser.parse_args()
    cores = os.sched_getaffinity(0)
    packages = ", ".join(f"{name} {version(name)}" for name in ("granian", "orjson"))
    print(f"python {platform.python_version()}, {packages}, {arguments.connections} connections, HTTP/1.1")
    for tls in (False, True):
        os.sched_setaffinity(0, cores)
        with Simulator(tls=tls) as simulator:
            print(f"{'TLS' if tls else 'no TLS'}, {pin(simulator)}")
            asyncio.run(measure(simulator, "openai", 2000, arguments.connections))
            for case in CASES:
                answers = arguments.answers // (4 if "stream" in case else 1)
                results = [
                    asyncio.run(measure(simulator, case, answers, arguments.connections))
                    for _ in range(arguments.rounds)
                ]
                best, least = max(one.rate for one in results), min(one.cpu for one in results)
                print(f"  {case:20} {best:7.0f} answers/s   {least:6.1f} µs CPU each")
            assert simulator.ledger().in_flight == 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
