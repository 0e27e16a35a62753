"""The process of a local MCP server, as a transport of the `mcp` package.

That package's own transport has no limit for a message, logs what is no message, and lets the server write
into the user's terminal. This one ends the connection at a message that is too long, skips what is none, and
keeps the end of it for an error. The server has a process group: Ctrl-C in a terminal does not reach it, and
what it has started ends with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from ..._core.errors import RequestError
from ..._core.runtime.json_pieces import replace_halves
from .server import MCPServer

MOST_BYTES = 16_000_000
"""The longest message of a server."""

_GRACE = 1.0
"""Seconds that a server has to end once its input is closed, and then again to be reaped."""

_TERM_GRACE = 0.5
"""Seconds between SIGTERM and SIGKILL. A client closes within 3 seconds."""

_PAUSE = 0.01
_KEPT = 2_000
"""Bytes beside messages that an error quotes."""


class ServerProcess:
    """One process, and what it wrote beside messages. `on_end` is called when it writes no more."""

    def __init__(self, server: MCPServer, on_end: Callable[[], object]) -> None:
        self._server, self._on_end = server, on_end
        self.written = b""

    @contextlib.asynccontextmanager
    async def connect(self) -> AsyncIterator[Any]:
        """Run the server, with the streams of its messages."""
        import anyio
        from mcp.client.stdio import get_default_environment

        server, pipe = self._server, asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            _find_program(server), *server.command[1:], stdin=pipe, stdout=pipe, stderr=pipe, cwd=server.cwd,
            env={**get_default_environment(), **server.env}, limit=MOST_BYTES, start_new_session=True,
        )  # fmt: skip
        try:
            to_session, read_stream = anyio.create_memory_object_stream[Any](0)
            write_stream, from_session = anyio.create_memory_object_stream[Any](0)
            async with anyio.create_task_group() as group:
                group.start_soon(self._read, process.stdout, to_session)
                group.start_soon(self._keep_errors, process.stderr)
                group.start_soon(_write, process.stdin, from_session)
                with read_stream, write_stream:
                    yield read_stream, write_stream
                group.cancel_scope.cancel()
        finally:
            await _end(process)

    async def _read(self, output: Any, to_session: Any) -> None:
        import anyio
        from mcp.shared.message import SessionMessage

        with to_session, contextlib.suppress(anyio.BrokenResourceError):
            try:
                while line := await output.readline():
                    try:
                        messages = _parse(line)
                    except (ValueError, RecursionError):  # a banner, or what a program has printed
                        self._keep(line)
                        continue
                    for message in messages:
                        await to_session.send(SessionMessage(message))
            except ValueError:
                self._keep(f"\na message of more than {MOST_BYTES / 1e6:.0f} MB".encode())
            finally:
                # Before the stream ends: whoever fails by its end starts another process.
                self._on_end()

    async def _keep_errors(self, errors: Any) -> None:
        while chunk := await errors.read(65_536):
            self._keep(chunk)

    def _keep(self, written: bytes) -> None:
        self.written = (self.written + written)[-_KEPT:]


def _parse(line: bytes) -> list[Any]:
    """The messages in a line; `ValueError` if it has none. The protocol of 2025-03 has several in a list."""
    from mcp_types import jsonrpc_message_adapter

    try:
        return [jsonrpc_message_adapter.validate_json(line, by_name=False)]
    except ValueError:
        # Perhaps for bytes that are no UTF-8, or half a surrogate pair: nobody would get the answer.
        text = json.dumps(json.loads(line.decode(errors="replace")), ensure_ascii=False)
        value = json.loads(replace_halves(text))
        messages = value if isinstance(value, list) else [value]
        return [jsonrpc_message_adapter.validate_python(each, by_name=False) for each in messages]


def _find_program(server: MCPServer) -> Path:
    path = shutil.which(server.command[0], path=server.env.get("PATH"))
    if path is None:
        raise RequestError(f"there is no program {server.command[0]!r}")
    # A relative path is one from here, not from the directory of the server.
    return Path(path).absolute()


async def _write(stdin: Any, from_session: Any) -> None:
    with from_session, contextlib.suppress(ConnectionError):
        async for sent in from_session:
            stdin.write(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            await stdin.drain()


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process and what it has started: its input is closed, then SIGTERM, then SIGKILL."""
    try:
        assert process.stdin is not None
        process.stdin.close()
        if not await _has_ended(process, _GRACE):
            _signal_group(process, "SIGTERM")
            await _has_ended(process, _TERM_GRACE)
    finally:  # also where this is cancelled
        _signal_group(process, "SIGKILL")
        # A process that has left the group may hold the other ends of the pipes.
        process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
    await _has_ended(process, _GRACE)


async def _has_ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Whether a process ends in this time. `wait` would wait for the ends of its pipes too."""
    for _ in range(round(seconds / _PAUSE)):
        if process.returncode is not None:
            break
        await asyncio.sleep(_PAUSE)
    return process.returncode is not None


def _signal_group(process: asyncio.subprocess.Process, name: str) -> None:
    """Signal a process and what it has started. Windows has no groups: the process alone ends."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, getattr(signal, name))
