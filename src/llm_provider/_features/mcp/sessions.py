"""The MCP servers that a client uses: each is started once, lists its tools once, and runs them.

A session lives on the event loop of the requests, and ends with the client. A server that has ended is
started again by the next call of a tool. A call that was under way is repeated only if the server says that
the tool only reads, or that to repeat it has no further effect: it may have run.
"""

from __future__ import annotations

import asyncio
import json
import weakref
from typing import TYPE_CHECKING, Any

from ..._core.errors import RequestError
from ..._core.json_values import JSONObject
from .connection import Connection, is_unknown_session
from .results import ToolError, shorten
from .server import MCPServer

if TYPE_CHECKING:
    from ..._core.journey.engine import Engine, LoopState

_MOST_TOOLS, _MOST_PAGES, _MOST_LISTED = 1_000, 100, 2_000_000
"""The tools, the pages and the characters of the list of a server."""


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
                        problem = f"does not list its tools: {self._connection.describe(error)}"
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
        cursor, cursors, size = None, set[str](), 0
        for _ in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            listed += page.tools
            size += sum(
                len(tool.description or "") + len(json.dumps(tool.input_schema)) for tool in page.tools
            )
            cursor = page.next_cursor
            if len(listed) > _MOST_TOOLS or size > _MOST_LISTED:
                break
            # Some servers give the same cursor for ever.
            if not cursor or cursor in cursors:
                return listed
            cursors.add(cursor)
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
                if connection is None or not connection.is_lost_by(error):
                    message = shorten(str(error)) if connection is None else connection.describe(error)
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


def sessions_of(engine: Engine) -> Sessions:
    """The sessions of a client, on the loop. A forked child has others: the parent has the processes."""
    engine.refuse_closed()
    state, known = engine.loop_state(), _sessions.get(engine)
    if known is None or known.state is not state:
        known = _sessions[engine] = Sessions(state)
    return known
