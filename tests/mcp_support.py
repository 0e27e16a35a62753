"""What the tests of MCP servers share: a server that behaves badly, and what runs of its processes."""

import sys
from pathlib import Path
from typing import Any

from llm_provider import Client, Response, mcp
from llm_provider._features.mcp.server import MCPServer
from support import wait_until

RAW = str(Path(__file__).with_name("raw_mcp_server.py"))
MODEL, ECHO = "gpt-6.1-sol", 'use the tool echo({"text": "hello"})'


def raw(mode: str = "", **options: Any) -> MCPServer:
    return mcp([sys.executable, RAW, mode], **{"timeout": 20, **options})


def run(client: Client, server: Any, prompt: str = ECHO, **more: Any) -> Response:
    return client.call(MODEL, prompt, tools=[server], max_tool_rounds=2, **more)


def results(response: Any) -> list[Any]:
    return [result.content for result in response.tool_results]


def is_running(pid: int) -> bool:
    """Whether a process runs: not one that has ended and waits for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def pids(path: Path, count: int = 1) -> list[int]:
    wait_until(lambda: path.exists() and len(path.read_text().split()) >= count)
    return [int(line) for line in path.read_text().split()]
