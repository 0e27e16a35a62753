"""The messages of a server, mended where servers deviate and the `mcp` package is strict."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Self

from ..._core.json_values import JSONObject


class MendedStream:
    """What a session reads. Notifications are left out: nothing here needs one, and a wrong one is logged."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stream.__aexit__(*error)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while True:
            item = await self._stream.__anext__()
            message = getattr(item, "message", None)
            if isinstance(result := getattr(message, "result", None), dict):
                _mend(result)
            if message is None or hasattr(message, "id"):
                return item


def _mend(result: JSONObject) -> None:
    """Add what some servers leave out: the type of a schema, which is one only, and content that is empty.

    No tool has a schema of its results: the model reads also what does not match it, or cannot be checked.
    """
    tools = result.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(schema := tool.get("inputSchema", {}), dict):
            tool["inputSchema"] = {"type": "object", **schema}
            tool.pop("outputSchema", None)
    if result.get("content") is None and ("structuredContent" in result or "isError" in result):
        result["content"] = []


@contextlib.asynccontextmanager
async def mend_messages(transport: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
    """A transport whose messages are mended."""
    async with transport as (read_stream, write_stream):
        yield MendedStream(read_stream), write_stream
