"""A network link with a chosen round-trip time, in user space: without privileges or a kernel module.

    with DelayLine("127.0.0.1", server_port, round_trip=0.020) as line:
        ...connect to 127.0.0.1:line.port instead...

The model: everything that one side sends reaches the other side half a round trip later, unchanged and in
order: bytes, the end of a direction, a reset. The bandwidth is unlimited and nothing is lost, so there is
no slow start. TLS passes through unchanged.

On a real link a handshake takes a round trip before the client may send. Here the kernel accepts the
connection at once, so a client that connects at time 0 also sends its first bytes at time 0. The proxy
treats them as if they were sent at the end of the handshake, one round trip later. Counted from the
connect, the first answer therefore takes two round trips over plain TCP and three with TLS 1.3, as over a
real link; only `connect` itself returns too early. A server that refuses the connection appears as a reset
after one round trip.

The proxy is a separate process, so that it costs the measured process no time. It uses the standard library
only. Its own CPU time is `cpu_seconds`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import resource
import select
import selectors
import socket
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self, cast

HOST = "127.0.0.1"
BACKLOG = 4096
ENDING_SECONDS = 5.0
NO_LINGER = struct.pack("ii", 1, 0)
"""SO_LINGER with a time of 0: a close sends a reset."""


class DelayLine:
    """A TCP proxy on the loopback address that sets clients and server `round_trip` seconds apart.

    Args:
        host: Address of the server.
        port: Port of the server.
        round_trip: Seconds from one end to the other and back.

    Raises:
        RuntimeError: the process of the proxy did not start.
    """

    def __init__(self, host: str, port: int, round_trip: float = 0.020) -> None:
        self.port = 0
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._command = [sys.executable, "-I", str(Path(__file__).resolve())]
        self._command += ["--host", host, "--port", str(port), "--round-trip", str(round_trip)]

    def __enter__(self) -> Self:
        # In a separate session Ctrl-C reaches only this process. Its end closes the pipe and ends the proxy.
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            self.port = int(self._ask("port"))
        except RuntimeError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        process, self._process = self._process, None
        if process is not None:
            try:
                process.communicate(timeout=ENDING_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()

    @property
    def connections(self) -> int:
        """Connections that clients have opened so far."""
        return int(self._ask("opened"))

    @property
    def open_connections(self) -> int:
        """Connections of clients that are open now."""
        return int(self._ask("open"))

    @property
    def cpu_seconds(self) -> float:
        """CPU time that the proxy has used so far, in seconds."""
        return self._ask("cpu")

    def _ask(self, name: str) -> float:
        if self._process is None:
            raise RuntimeError("the delay line is not running")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock, contextlib.suppress(BrokenPipeError):
            self._process.stdin.write("\n")
            self._process.stdin.flush()
            facts = self._process.stdout.readline()
            if facts:
                return cast("float", json.loads(facts)[name])
        raise RuntimeError("the process of the delay line has ended; its message is on standard error")


# --- the process of the proxy -------------------------------------------------------------------------------


class _Selector(selectors.DefaultSelector):
    """A selector that waits to the microsecond; epoll alone rounds up to the next millisecond."""

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is not None and timeout > 0:
            select.select([self], [], [], timeout)
            timeout = 0
        return super().select(timeout)


class _Direction:
    """The data in transit from one end to the other: actions in order, each with its time of arrival.

    Args:
        seconds: Time in transit.
        opens: Loop time before which nothing can have been sent.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, opens: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._opens = opens
        self._due: deque[tuple[float, Callable[[], None]]] = deque()

    def send(self, deliver: Callable[[], None]) -> None:
        """Call `deliver` when data that is sent now arrives."""
        due = max(self._loop.time(), self._opens) + self._seconds
        self._due.append((due, deliver))
        if len(self._due) == 1:
            self._loop.call_at(due, self._arrive)

    def _arrive(self) -> None:
        # A timer may fire a nanosecond early, so the first action does not check the clock.
        while True:
            self._due[0][1]()
            self._due.popleft()
            if not self._due:
                return
            if self._due[0][0] > self._loop.time():
                self._loop.call_at(self._due[0][0], self._arrive)
                return


class _End(asyncio.Protocol):
    """The connection of one side; it sends received data to the other end."""

    other: _End
    towards_other: _Direction

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self._received_all = False
        self._sent_all = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.towards_other.send(lambda: self.other.write(data))

    def eof_received(self) -> bool:
        self._received_all = True
        self.towards_other.send(self.other.finish)
        return not self._sent_all

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        if error is not None:
            self.towards_other.send(self.other.reset)

    def pause_writing(self) -> None:
        if self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other.transport is not None:
            self.other.transport.resume_reading()

    def write(self, data: bytes) -> None:
        if self.transport is not None:
            self.transport.write(data)

    def finish(self) -> None:
        """End the direction from the other side; close the connection if this side has ended too."""
        self._sent_all = True
        if self.transport is not None:
            with contextlib.suppress(OSError):  # the connection may have been reset in the meantime
                self.transport.write_eof()
            if self._received_all:
                self.transport.close()

    def reset(self) -> None:
        if self.transport is not None:
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            self.transport.abort()


class _ClientEnd(_End):
    """The accepted connection. It opens the connection to the server, and is read once that is open."""

    def __init__(self, proxy: _Proxy) -> None:
        super().__init__()
        self._proxy = proxy

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        cast("asyncio.Transport", transport).pause_reading()
        self._proxy.accepted(self)

    def connection_lost(self, error: Exception | None) -> None:
        super().connection_lost(error)
        self._proxy.open -= 1


class _Proxy:
    """Opens a connection to the server for each accepted connection, and counts them."""

    def __init__(self, loop: asyncio.AbstractEventLoop, host: str, port: int, round_trip: float) -> None:
        self.opened = 0
        self.open = 0
        self._loop = loop
        self._address = host, port
        self._round_trip = round_trip
        self._connecting: set[asyncio.Task[None]] = set()

    def accepted(self, client: _End) -> None:
        self.opened += 1
        self.open += 1
        server = client.other = _End()
        server.other = client
        now, one_way = self._loop.time(), self._round_trip / 2
        client.towards_other = _Direction(self._loop, one_way, opens=now + 2 * one_way)
        server.towards_other = _Direction(self._loop, one_way, opens=now + 3 * one_way)
        task = self._loop.create_task(self._connect(client, server))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, client: _End, server: _End) -> None:
        try:
            await self._loop.create_connection(lambda: server, *self._address)
        except OSError:
            self._loop.call_later(self._round_trip, client.reset)
        else:
            if client.transport is not None:
                client.transport.resume_reading()


async def _serve(host: str, port: int, round_trip: float) -> None:
    loop = asyncio.get_running_loop()
    proxy = _Proxy(loop, host, port, round_trip)
    server = await loop.create_server(lambda: _ClientEnd(proxy), HOST, 0, backlog=BACKLOG)
    listening = server.sockets[0].getsockname()[1]
    parent_left = asyncio.Event()
    stdin = sys.stdin.fileno()

    def answer() -> None:
        """Answer each line with the facts; stop at the end of the pipe, which the parent closes."""
        asked = os.read(stdin, 4096).count(b"\n")
        if not asked:
            loop.remove_reader(stdin)
            parent_left.set()
        facts = {"port": listening, "opened": proxy.opened, "open": proxy.open, "cpu": time.process_time()}
        for _ in range(asked):
            print(json.dumps(facts), flush=True)

    loop.add_reader(stdin, answer)
    await parent_left.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description="The process of a DelayLine; ends with its standard input.")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--round-trip", type=float, required=True, help="seconds")
    arguments = parser.parse_args()
    # Each connection takes two files, so the usual limit of 1024 would allow about 500 connections.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(_Selector())) as runner:
        runner.run(_serve(arguments.host, arguments.port, arguments.round_trip))


if __name__ == "__main__":
    main()
