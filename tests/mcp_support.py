"""What the tests of MCP servers share: a server that behaves badly, and what runs of its processes."""

import gzip
import json
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

from llm_provider import Client, Response, mcp
from llm_provider._features.mcp.server import MCPServer
from raw_mcp_server import INITIALIZED
from support import wait_until

RAW = str(Path(__file__).with_name("raw_mcp_server.py"))
ECHO_TOOL = {"name": "echo", "description": "Echo a text.", "inputSchema": {"type": "object"}}
NO_METHOD = {"code": -32601, "message": "unknown method"}
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


class RemoteServer:
    """An MCP server by HTTP that behaves badly in the way of its `mode`, which may change; `echo` as above.

    It gives each client a session. `headers` has those of its last request, `tools` the number of calls.
    """

    def __init__(self) -> None:
        self.mode = ""
        self.sessions: set[str] = set()
        self.headers: dict[str, str] = {}
        self.tools = self.started = 0
        remote = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def reply(self, status: int, body: bytes = b"", **headers: str) -> None:
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_GET(self) -> None:
                self.reply(405)

            def do_DELETE(self) -> None:
                self.reply(200)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                remote.headers = {name.lower(): value for name, value in self.headers.items()}
                remote.answer(self, json.loads(body))

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that closes early
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/mcp"

    def answer(self, handler: Any, message: dict[str, Any]) -> None:
        method, identifier = message.get("method"), message.get("id")
        if self.mode.isdigit():
            return handler.reply(int(self.mode), b"<html>no</html>", content_type="text/html")
        if self.mode == "html":
            return handler.reply(200, b"<html>hello</html>", content_type="text/html")
        if self.mode == "elsewhere":
            return handler.reply(307, location="http://127.0.0.2:9/mcp")
        session = {}
        if method == "initialize":
            self.started += 1
            session = {"mcp_session_id": f"session-{self.started}"}
            self.sessions.add(session["mcp_session_id"])
            result: Any = INITIALIZED
        elif method == "server/discover":
            return handler.reply(
                400, json.dumps({"jsonrpc": "2.0", "id": identifier, "error": NO_METHOD}).encode()
            )
        elif handler.headers["mcp-session-id"] not in self.sessions:
            return handler.reply(404)
        elif identifier is None:
            return handler.reply(202)
        elif method == "tools/list":
            hints = {"annotations": {"readOnlyHint": True}} if self.mode == "cut_once" else {}
            result = {"tools": [{**ECHO_TOOL, **hints}]}
        else:
            self.tools += 1
            text = message["params"]["arguments"].get("text", "")
            if self.mode == "cut" or (self.mode == "cut_once" and self.tools == 1):
                handler.connection.shutdown(socket.SHUT_RDWR)
                return None
            if self.mode == "failing":
                return handler.reply(500, b"broken")
            if self.mode == "huge":
                text = "x" * 17_000_000
            result = {"content": [{"type": "text", "text": text}]}
        body = json.dumps({"jsonrpc": "2.0", "id": identifier, "result": result}).encode()
        if self.mode == "gzip" and method == "tools/call":
            return handler.reply(200, gzip.compress(body), content_encoding="gzip")
        return handler.reply(200, body, **session)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
