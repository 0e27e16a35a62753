"""The MCP servers that a client uses: each is started once, lists its tools once, and runs them.

A session lives on the event loop of the requests, and ends with the client. A server that has ended is
started again by the next call of a tool. A call that was under way is repeated only if the server says that
the tool only reads, or that to repeat it has no further effect: it may have run.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._core.errors import RequestError
from ..._core.json_values import JSONObject
from ..._core.requests.tools import FunctionTool, ToolSchema, name_of
from ..._core.runtime import event_loop
from ..._core.runtime.imports import import_optional, install_command
from .connection import Connection, is_unknown_session
from .results import ToolError, read_result, shorten
from .server import MCPServer

if TYPE_CHECKING:
    from ..._core.journey.engine import Engine, LoopState

_MOST_TOOLS, _MOST_PAGES, _MOST_LISTED = 1_000, 100, 2_000_000
"""The tools, the pages and the characters of the list of a server."""

_MOST_NAME = 64


class Session:
    """A server of a client. Its connection is opened when it is needed."""

    def __init__(self, server: MCPServer) -> None:
        self._server = server
        self._connection: Connection | None = None
        self._connecting, self._listing = asyncio.Lock(), asyncio.Lock()
        self._listed: list[Any] | None = None

    async def list_tools(self) -> list[Any]:
        """The tools as the server describes them, listed once; `RequestError` if that fails."""
        async with self._listing:
            if self._listed is None:
                problem = f"has not listed its tools within {self._server.timeout:g} s (timeout=)"
                try:
                    async with asyncio.timeout(self._server.timeout):
                        self._listed = await self._read_pages((await self._connect()).client)
                except RequestError:
                    raise
                except Exception as error:
                    assert self._connection is not None
                    if not isinstance(error, TimeoutError):
                        problem = f"does not list its tools: {error}"
                    raise self._connection.explain(problem) from None
            return self._listed

    async def _connect(self) -> Connection:
        async with self._connecting:
            if self._connection is None or self._connection.has_ended:
                await self.close()
                self._connection = Connection(self._server)
                await self._connection.wait_for_start()
            return self._connection

    async def _read_pages(self, client: Any) -> list[Any]:
        listed: list[Any] = []
        cursor, size = None, 0
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            listed += page.tools
            size += sum(
                len(tool.description or "") + len(json.dumps(tool.input_schema)) for tool in page.tools
            )
            cursor = page.next_cursor
            if len(listed) > _MOST_TOOLS or size > _MOST_LISTED:
                break
            if not cursor:
                return listed
        raise RequestError(
            f"mcp: the server {self._server.label!r} lists more than {_MOST_TOOLS} tools, "
            f"{_MOST_LISTED / 1e6:.0f} million characters or {_MOST_PAGES} pages, which no model reads"
        )

    async def call_tool(self, name: str, arguments: JSONObject, *, repeatable: bool) -> Any:
        """The result of a tool. A `ToolError` has what the model reads."""
        limit = self._server.timeout
        for is_last in (False, True):
            connection: Connection | None = None
            try:
                async with asyncio.timeout(limit):
                    connection = await self._connect()
                    return await connection.client.call_tool(name, arguments)
            except TimeoutError:
                raise ToolError(f"the tool has not answered within {limit:g} s; it may still run") from None
            except Exception as error:
                message = self._server.hide_secrets(shorten(str(error) or type(error).__name__))
                if connection is None or not connection.is_lost_by(error):
                    raise ToolError(message) from None
                if is_last or not (repeatable or is_unknown_session(error)):
                    problem = connection.explain("was lost while the tool ran, which may have had its effect")
                    raise ToolError(problem.message) from None
        raise AssertionError

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


class Sessions:
    """The servers of one client in one process, by what they are started with."""

    def __init__(self, state: LoopState) -> None:
        self.state = state
        self._by_key: dict[tuple[object, ...], Session] = {}
        state.to_close.append(self.close)

    def find(self, server: MCPServer) -> Session:
        return self._by_key.setdefault(server.connection_key, Session(server))

    async def close(self) -> None:
        await asyncio.gather(*(session.close() for session in self._by_key.values()))


_sessions: weakref.WeakKeyDictionary[Engine, Sessions] = weakref.WeakKeyDictionary()


def _sessions_of(engine: Engine) -> Sessions:
    """The sessions of a client, on the loop. A forked child has others: the parent has the processes."""
    engine.refuse_closed()
    state, found = engine.loop_state(), _sessions.get(engine)
    if found is None or found.state is not state:
        found = _sessions[engine] = Sessions(state)
    return found


async def list_servers(engine: Engine, tools: Sequence[Any]) -> list[Any]:
    """The tools of a call, on the loop: the tools of each server in its place.

    Raises `RequestError` if a server does not list its tools, or two have a tool with the same name.
    """
    import_optional("mcp", install_command("mcp"))
    sessions = _sessions_of(engine)
    servers = [tool for tool in tools if isinstance(tool, MCPServer)]
    listed = iter(await asyncio.gather(*(sessions.find(server).list_tools() for server in servers)))
    owners: dict[str | None, str] = {}
    given: list[Any] = []
    for tool in tools:
        if not isinstance(tool, MCPServer):
            given.append(tool)
            continue
        for each in _make_tools(weakref.ref(engine), tool, next(listed)):
            if (name := name_of(each)) in owners:
                raise RequestError(
                    f"mcp: the servers {owners[name]!r} and {tool.label!r} both have a tool {name!r}: give one "
                    "of them a prefix, as in mcp(..., prefix='two'), or choose tools by allowed_tools="
                )
            owners[name] = tool.label
            given.append(each)
    return given


def _make_tools(
    engine: Callable[[], Engine | None], server: MCPServer, listed: Sequence[Any]
) -> Iterator[FunctionTool]:
    """The tools of a server that a call takes, as functions that run them."""
    known = {tool.name: tool for tool in listed}
    wanted = known if server.allowed_tools is None else server.allowed_tools
    missing = [name for name in wanted if name not in known]
    if missing or not known:
        which = f"no tool {missing[0]!r}" if missing else "no tools"
        names = ", ".join(known)[:1_000] or "none"
        raise RequestError(f"mcp: the server {server.label!r} has {which}; its tools are: {names}")
    return (_make_tool(engine, server, known[name]) for name in wanted)


def _make_tool(engine: Callable[[], Engine | None], server: MCPServer, tool: Any) -> FunctionTool:
    hints = tool.annotations
    repeatable = hints is not None and bool(hints.read_only_hint or hints.idempotent_hint)

    async def ask(arguments: JSONObject) -> Any:
        here = engine()
        if here is None or here.closed:
            raise ToolError("the client is closed")
        return await _sessions_of(here).find(server).call_tool(tool.name, arguments, repeatable=repeatable)

    async def run(**arguments: Any) -> Any:
        return read_result(await event_loop.run(ask(arguments)))

    parameters = {"type": "object", "properties": {}, **tool.input_schema}
    parameters.pop("$schema", None)
    schema = ToolSchema(tool.description or "", parameters, _parse)
    return FunctionTool(name_for_models(tool.name, server.prefix), schema, run)


def _parse(text: str) -> JSONObject:
    """The arguments that a model wrote. The server checks them by its schema."""
    arguments = json.loads(text)
    if not isinstance(arguments, Mapping):
        raise ValueError("they are no JSON object")  # noqa: TRY004  # as of every text that is not valid
    return dict(arguments)


def name_for_models(name: str, prefix: str | None = None) -> str:
    """A name that every provider accepts: other characters become "_", and a long name ends with its hash.

    >>> name_for_models("files.read"), name_for_models("read", "files"), len(name_for_models("a" * 128))
    ('files_read', 'files_read', 64)
    """
    full = name if prefix is None else f"{prefix}_{name}"
    accepted = re.sub(r"^(?=[^A-Za-z_])", "_", re.sub(r"[^A-Za-z0-9_-]", "_", full))
    if len(accepted) <= _MOST_NAME:
        return accepted
    return f"{accepted[: _MOST_NAME - 9]}_{hashlib.sha256(full.encode()).hexdigest()[:8]}"
