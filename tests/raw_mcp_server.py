"""An MCP server without the official package, which behaves badly in the way that its argument names.

`python raw_mcp_server.py MODE` reads a JSON-RPC message per line, as servers before 2026 did. The tool `echo`
returns its argument `text`.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODE = sys.argv[1] if len(sys.argv) > 1 else ""
ECHO = {
    "name": "echo",
    "description": os.environ.get("DESCRIPTION", "Echo a text."),
    "inputSchema": {"type": "object"},
}
INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}


def write(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def list_tools(parameters: dict[str, Any]) -> object:
    page = int(parameters.get("cursor") or 0)
    if MODE == "hang_in_list":
        time.sleep(600)
    if MODE == "pages":
        return {
            "tools": [{**ECHO, "name": f"echo_{page}"}],
            **({"nextCursor": str(page + 1)} if page < 4 else {}),
        }
    if MODE == "endless_pages":
        return {"tools": [{**ECHO, "name": f"echo_{page}"}], "nextCursor": str(page + 1)}
    if MODE == "long_list":
        return {"tools": [{**ECHO, "description": "x" * 3_000_000}]}
    if MODE == "no_tools":
        return {"tools": []}
    if MODE == "bad_list":
        return {"tools": [{"name": 5}]}
    if MODE == "safe_dies":
        return {"tools": [{**ECHO, "annotations": {"idempotentHint": True}}]}
    if MODE == "schemas":
        schema = {**ECHO["inputSchema"], "$schema": "https://json-schema.org/draft/2020-12/schema"}
        return {
            "tools": [{**ECHO, "inputSchema": schema}, {**ECHO, "name": "é" * 100}, {**ECHO, "name": "1/a"}]
        }
    return {"tools": [ECHO]}


def call_tool(arguments: dict[str, Any]) -> object:
    text = arguments.get("text", "")
    if MODE in ("dies", "safe_dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    if MODE == "hang":
        time.sleep(600)
    if MODE == "junk":
        sys.stdout.write('a line that is no message\n\n[1, 2]\n{"jsonrpc": "2.0"}\n')
        sys.stderr.write("x" * 200_000)
        sys.stderr.flush()
    if MODE == "huge":
        text = "x" * 17_000_000
    if MODE == "secret":
        return {"content": [{"type": "text", "text": f"wrong key {os.environ['API_KEY']}"}], "isError": True}
    if MODE == "child":
        command = [sys.executable, "-c", "import time; time.sleep(600)"]
        text = str(subprocess.Popen(command).pid)
    if MODE == "bad_result":
        return {"content": [{"type": "hologram"}]}
    if MODE == "half":
        text = "\ud800"
    return {"content": [{"type": "text", "text": text}]}


def answer(message: dict[str, Any]) -> None:
    method, identifier = message.get("method"), message.get("id")
    if MODE == "strict" and method not in ("initialize", "notifications/initialized") and not state:
        sys.exit("expected initialize")
    state.append(method)
    if identifier is None or method is None:
        return
    parameters = message.get("params") or {}
    if method == "initialize":
        write({"jsonrpc": "2.0", "id": identifier, "result": INITIALIZED})
    elif method == "tools/list":
        write({"jsonrpc": "2.0", "id": identifier, "result": list_tools(parameters)})
    elif method == "tools/call" and MODE == "error":
        error = {"code": -32000, "message": f"quota of {os.environ.get('API_KEY', 'nobody')}"}
        write({"jsonrpc": "2.0", "id": identifier, "error": error})
    elif method == "tools/call":
        write({"jsonrpc": "2.0", "id": identifier, "result": call_tool(parameters.get("arguments") or {})})
    else:
        write({"jsonrpc": "2.0", "id": identifier, "error": {"code": -32601, "message": "unknown method"}})


state: list[Any] = []
"""The methods so far."""

if __name__ == "__main__":
    if MODE in ("deaf", "hang_at_start"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if MODE == "hang_at_start":
        time.sleep(600)
    if MODE == "ends_at_start":
        sys.exit(f"no module for {os.environ.get('API_KEY')}")
    if MODE == "junk":
        sys.stdout.write("Welcome!\n")
        sys.stdout.flush()
    if "PIDS" in os.environ:
        with Path(os.environ["PIDS"]).open("a") as file:
            file.write(f"{os.getpid()}\n")
    for line in sys.stdin:
        answer(json.loads(line))
    while MODE == "deaf":
        time.sleep(600)
