"""Messages of servers that deviate from the protocol are mended, on their way from a pipe or from HTTP."""

from typing import Any

import anyio
import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCNotification, JSONRPCResponse

from llm_provider._features.mcp.messages import MendedStream


@pytest.mark.parametrize(
    ("result", "mended"),
    [
        ({"tools": [{"name": "a"}]}, {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}),
        ({"tools": [{"inputSchema": {"type": 5}}]}, {"tools": [{"inputSchema": {"type": 5}}]}),
        ({"tools": [{"inputSchema": 5}, 5]}, {"tools": [{"inputSchema": 5}, 5]}),
        ({"tools": 5}, {"tools": 5}),
        (
            {"tools": [{"inputSchema": {"type": "object"}, "outputSchema": {"$ref": "#/$defs/a"}}]},
            {"tools": [{"inputSchema": {"type": "object"}}]},
        ),
        ({"isError": True}, {"isError": True, "content": []}),
        ({"structuredContent": None, "content": None}, {"structuredContent": None, "content": []}),
        ({"isError": False, "content": [1]}, {"isError": False, "content": [1]}),
        ({}, {}),
    ],
)
async def test_what_servers_leave_out_is_added(result: dict[str, Any], mended: dict[str, Any]) -> None:
    send, receive = anyio.create_memory_object_stream[Any](5)
    error = ValueError("no message")
    send.send_nowait(SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/message")))
    send.send_nowait(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result=result)))
    send.send_nowait(error)
    send.close()
    async with MendedStream(receive) as stream:
        first, second = [item async for item in stream]
    assert (first.message.result, second) == (mended, error)
