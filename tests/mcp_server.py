"""An MCP server made with the official package, for tests: `python mcp_server.py [--http PORT]`.

It adds a line to the file that `CALLS` names for each call, so that a test knows what ran.
"""

import base64
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Image
from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

server = MCPServer("tests", log_level="CRITICAL")


def note(name: str) -> int:
    """Count a call. Returns how many there were."""
    path = Path(os.environ["CALLS"])
    with path.open("a") as file:
        file.write(f"{name}\n")
    return path.read_text().splitlines().count(name)


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    note("add")
    return a + b


@server.tool()
def fail(reason: str = "no such city") -> str:
    """Fail."""
    raise ValueError(reason)


@server.tool()
def environment() -> list[str]:
    """The names of the variables of this process."""
    return sorted(os.environ)


@server.tool()
def process() -> int:
    """The number of this process."""
    return os.getpid()


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=PNG, format="png")


@server.tool()
def everything() -> CallToolResult:
    """Every kind of content."""
    return CallToolResult(
        content=[
            TextContent(type="text", text="first"),
            AudioContent(type="audio", data=base64.b64encode(b"sound").decode(), mime_type="audio/wav"),
            ResourceLink(type="resource_link", uri="file:///a.txt", name="a", description="A file"),
            EmbeddedResource(
                type="resource",
                resource=TextResourceContents(uri="file:///b.txt", text="inside", mime_type="text/plain"),
            ),
        ],
        structured_content={"rows": 3},
    )


@server.tool(structured_output=False)
def big(size: int) -> str:
    """A long text."""
    return "x" * size


@server.tool()
async def wait(seconds: float) -> str:
    """Wait."""
    note("wait")
    await anyio.sleep(seconds)
    return "waited"


def _die_first(name: str) -> str:
    if note(name) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


@server.tool()
def die() -> str:
    """End this process at the first call."""
    return _die_first("die")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def die_reading() -> str:
    """The same, of a tool that only reads."""
    return _die_first("die_reading")


@server.tool()
def start_child() -> int:
    """Start a process that would live longer than this one."""
    return subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], stdout=subprocess.DEVNULL
    ).pid


@server.tool(name="odd.name/with spaces")
def odd() -> str:
    """A tool whose name no provider accepts."""
    return "odd"


@server.tool()
def slow_thread(seconds: float) -> str:
    """Wait in a thread, as a blocking function does."""
    time.sleep(seconds)
    return "slow"


if __name__ == "__main__":
    if "--http" in sys.argv:
        port = int(sys.argv[sys.argv.index("--http") + 1])
        # A connection that the server closes while the client sends is lost, and tests may pause for seconds.
        uvicorn.run(
            server.streamable_http_app(),
            host="127.0.0.1",
            port=port,
            log_level="info",
            timeout_keep_alive=600,
        )
    else:
        server.run("stdio")
