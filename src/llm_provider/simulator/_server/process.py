"""The server process: granian serves the ASGI application in one process with one event loop."""

from __future__ import annotations

import asyncio
import os
import selectors
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

from granian.constants import Interfaces
from granian.http import HTTP2Settings
from granian.server.embed import Server

from .application import Application

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from .state import State

__all__ = ["serve"]

BACKLOG = 4096
CONNECTIONS = 100_000
STREAMS_PER_CONNECTION = 1000
PARENT_POLL_SECONDS = 0.25
READY_POLL_SECONDS = 0.005
GRACE_SECONDS = 0.5


def serve(
    state: State,
    *,
    host: str,
    port: int,
    certificate: tuple[Path, Path] | None,
    punctual: bool,
    parent: int | None,
    ready: Callable[[int], None],
) -> None:
    """Serve until SIGINT or SIGTERM arrives.

    Args:
        state: the state of the server.
        host: address to listen on.
        port: port to listen on; 0 for any free one.
        certificate: paths of certificate and key, for HTTPS with HTTP/2 and HTTP/1.1.
        punctual: whether to wait to the microsecond.
        parent: the process whose end, of whatever cause, ends this process.
        ready: called with the port once connections are accepted.

    Raises:
        OSError: the port is taken.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as reserved:
        # While the server runs, this socket is bound but never listens, so that no other process gets the
        # port before granian binds it. Only Linux lets two sockets share a port in this way.
        hold, option = False, socket.SO_REUSEADDR
        if sys.platform == "linux" and port == 0:
            hold, option = True, socket.SO_REUSEPORT
        reserved.setsockopt(socket.SOL_SOCKET, option, 1)
        reserved.bind((host, port))
        bound_port = reserved.getsockname()[1]
        if not hold:
            reserved.close()
        server = Server(
            Application(state),
            address=host,
            port=bound_port,
            interface=Interfaces.ASGINL,
            websockets=False,
            backlog=BACKLOG,
            backpressure=CONNECTIONS,
            http2_settings=HTTP2Settings(max_concurrent_streams=STREAMS_PER_CONNECTION),
            ssl_cert=None if certificate is None else certificate[0],
            ssl_key=None if certificate is None else certificate[1],
            log_enabled=False,
        )
        with asyncio.Runner(loop_factory=_make_punctual_loop if punctual else None) as runner:
            runner.run(_run(server, parent, _announce(host, bound_port, ready)))


def _make_punctual_loop() -> asyncio.AbstractEventLoop:
    """An event loop with punctual timers: epoll, which asyncio prefers, waits whole milliseconds.

    `select` is limited to low file numbers. That does no harm here, because the sockets belong to granian.
    """
    return asyncio.SelectorEventLoop(selectors.SelectSelector())


async def _run(server: Server, parent: int | None, announce: Coroutine[Any, Any, None]) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    serving = loop.create_task(server.serve())
    watching = loop.create_task(_stop_with_parent(parent, stop))
    announcing = loop.create_task(announce)
    stopping = loop.create_task(stop.wait())
    await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
    for task in (watching, announcing):
        task.cancel()
    if stop.is_set() and parent is None:
        server.stop()  # type: ignore[no-untyped-call]  # granian's
        # Requests that hang on order would delay a graceful shutdown for ever.
        await asyncio.wait((serving,), timeout=GRACE_SECONDS)
    if serving.done():
        serving.result()


async def _announce(host: str, port: int, ready: Callable[[int], None]) -> None:
    while True:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(READY_POLL_SECONDS)
        else:
            writer.close()
            ready(port)
            return


async def _stop_with_parent(parent: int | None, stop: asyncio.Event) -> None:
    while parent is not None:
        if os.getppid() != parent:
            stop.set()
            return
        await asyncio.sleep(PARENT_POLL_SECONDS)
