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

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
FORMS: dict[str, Any] = {
    "no_content": {"structuredContent": {"rows": 3}},
    "nothing": {},
    "null_content": {"content": None, "structuredContent": {"rows": 3}},
    "empty": {"content": []},
    "same_twice": {"content": [{"type": "text", "text": '{ "rows":  3 }'}], "structuredContent": {"rows": 3}},
    "summary": {"content": [{"type": "text", "text": "3 rows"}], "structuredContent": {"rows": 3}},
    "data_uri": {
        "content": [{"type": "image", "data": f"data:image/png;base64,{PNG}", "mimeType": "image/png"}]
    },
    "lines": {"content": [{"type": "image", "data": f"{PNG[:60]}\n{PNG[60:]}\n", "mimeType": "image/png"}]},
    "unpadded": {"content": [{"type": "image", "data": PNG.rstrip("="), "mimeType": "image/png"}]},
    "blob": {"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": PNG}}]},
    "no_uri": {"content": [{"type": "resource", "resource": {"text": "t", "mimeType": "text/plain"}}]},
    "spaces": {"content": [{"type": "text", "text": " \n"}]},
    "failed": {"isError": True},
    "failed_with_data": {"isError": True, "content": [], "structuredContent": {"reason": "late"}},
    "failed_with_both": {
        "isError": True,
        "content": [{"type": "text", "text": "refused"}],
        "structuredContent": {"answer": 42},
    },
    "dangling_output": {"content": [], "structuredContent": {"rows": 3}},
    "other_output": {"content": [], "structuredContent": {"rows": "three"}},
    "missing_output": {"content": [{"type": "text", "text": "3 rows"}]},
}
"""Results by mode."""


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
    if MODE == "stuck_cursor":
        return {"tools": [ECHO], "nextCursor": "1"}
    if MODE == "shuffled":
        names = [f"echo_{letter}" for letter in os.environ["ORDER"]]
        return {"tools": [{**ECHO, "name": name} for name in names]}
    if MODE == "clash":
        return {"tools": [{**ECHO, "name": name} for name in ("a.b", "a/b", "a_b")]}
    if MODE.endswith("_output"):
        rows = {"properties": {"rows": {"type": "integer"}}, "required": ["rows"]}
        # This reference leads nowhere.
        schema = {"$ref": "#/$defs/Rows"} if MODE == "dangling_output" else rows
        return {"tools": [{**ECHO, "outputSchema": {"type": "object", **schema}}]}
    if MODE == "references":
        query = {"type": "object", "properties": {"text": {"type": "string"}}}
        properties = {"query": {"anyOf": [{"$ref": "#/$defs/Query"}, {"type": "null"}]}}
        schema = {"type": "object", "properties": properties, "$defs": {"Query": query}}
        return {"tools": [{**ECHO, "inputSchema": schema}]}
    if MODE == "long_names":
        return {"tools": [{**ECHO, "name": f"{'workspace_' * 8}{end}"} for end in ("read", "write")]}
    if MODE == "untyped":
        return {"tools": [{**ECHO, "inputSchema": {"properties": {"text": {"type": "string"}}}}]}
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
        sys.stdout.write("[" * 200_000 + "\n" + '{"a":' * 200_000 + "\n")
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
    if MODE in FORMS:
        return FORMS[MODE]
    if MODE == "chatty":
        for number, method in enumerate(
            ("ping", "roots/list", "sampling/createMessage", "elicitation/create", "x")
        ):
            write({"jsonrpc": "2.0", "id": f"s{number}", "method": method, "params": {}})
        for method in (
            "notifications/tools/list_changed",
            "notifications/message",
            "notifications/progress",
            "y",
        ):
            write(
                {
                    "jsonrpc": "2.0",
                    "method": method,
                    "params": {"progressToken": 1, "progress": 0.5, "data": 1},
                }
            )
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
        if MODE in ("latin", "batch"):
            answer = {
                "jsonrpc": "2.0",
                "id": identifier,
                "result": {"content": [{"type": "text", "text": "Zürich"}]},
            }
            text = json.dumps([answer] if MODE == "batch" else answer, ensure_ascii=False)
            sys.stdout.buffer.write(f"{text}\n".encode("latin-1" if MODE == "latin" else "utf-8"))
            sys.stdout.flush()
            return
        same = str(identifier) if MODE == "string_id" else identifier
        write({"jsonrpc": "2.0", "id": same, "result": call_tool(parameters.get("arguments") or {})})
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
