"""A server of OpenAI's batches with a queue of limited room, as public reports describe it.

It is not the simulator, which shares the library's errors: shapes are those of the openai SDK's types.
"""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import orjson

_FIELD = re.compile(rb'name="(\w+)"[^\r\n]*\r\n(?:[\w-]+:[^\r\n]*\r\n)*\r\n')
Refusal = tuple[int, dict[str, str], bytes]
"""Status, headers and body."""


def refuse(status: int, message: str, code: str | None = None, **headers: str) -> Refusal:
    return status, headers, orjson.dumps({"error": {"message": message, "code": code, "type": "x"}})


class Queue:
    """The batches of one account. `room` is the number of rows that may be enqueued at once.

    `refusals` are the next answers to a path's POST, by its last part. A batch ends when it was shown `looks`
    times, and `others` are batches of another program, each with the number of lists until it ends.
    """

    def __init__(self, room: int = 1_000_000, looks: int = 2) -> None:
        self.room, self.looks = room, looks
        self.refusals: dict[str, list[Refusal]] = {"files": [], "batches": []}
        self.most_bytes = 1 << 30
        self.full = (
            "Enqueued token limit reached for gpt-5.5 in organization org-1. Limit: 2,000 enqueued tokens."
        )
        self.others: list[int] = []
        self.other_rows = 0
        self.wrong: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda rows: []
        """The errors of a file, by its rows. They fail the batch."""
        self.created: object = 2_000_000_000
        self.has_more = False
        self.files: dict[str, list[dict[str, Any]]] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.answered: Counter[str] = Counter()
        self.posts: Counter[str] = Counter()
        self.row_weight: Callable[[dict[str, Any]], int] = lambda row: 1
        self.lock = threading.RLock()

    def _weigh(self, rows: list[dict[str, Any]]) -> int:
        return sum(map(self.row_weight, rows))

    def post(self, kind: str, body: bytes) -> Refusal:
        self.posts[kind] += 1
        if self.refusals[kind]:
            return self.refusals[kind].pop(0)
        name = f"{kind}-{self.posts[kind]}"
        if kind == "files":
            if len(body) > self.most_bytes:
                return (
                    413,
                    {"content-type": "text/html"},
                    b"<html><title>413 Request Entity Too Large</title></html>",
                )
            content = body[next(match for match in _FIELD.finditer(body) if match[1] == b"file").end() :]
            lines = content[: content.index(b"\r\n--")].splitlines()
            self.files[name] = list(map(orjson.loads, lines))
            return 200, {}, orjson.dumps(
                {"id": name, "object": "file", "bytes": 1, "created_at": 1, "filename": "x.jsonl",
                 "purpose": "batch", "status": "processed"}
            )  # fmt: skip
        request = orjson.loads(body)
        rows = self.files[request["input_file_id"]]
        queued = sum(self._weigh(batch["rows"]) for batch in self.batches.values() if batch["left"] > 0)
        is_full = queued + self._weigh(rows) + self.other_rows * len(self.others) > self.room
        self.batches[name] = {"id": name, "rows": rows, "left": self.looks, "is_full": is_full, **request}
        self.batches[name]["wrong"] = self.wrong(rows)
        if is_full or self.batches[name]["wrong"]:
            self.batches[name]["left"] = 0
        return 200, {}, orjson.dumps(self._describe(name))

    def get(self, path: str) -> Refusal:
        *_, last = path.split("/")
        if last == "content":
            lines = [orjson.dumps(self._answer(row)) for row in self.batches[path.split("/")[-2][4:]]["rows"]]
            return 200, {}, b"\n".join(lines) + b"\n"
        if last.startswith("batches-"):
            batch = self.batches[last]
            batch["left"] -= batch["left"] > 0
            if batch["left"] == 0 and not (batch["is_full"] or batch["wrong"] or "done" in batch):
                batch["done"] = True
                self.answered.update(row["body"]["messages"][0]["content"] for row in batch["rows"])
            return 200, {}, orjson.dumps(self._describe(last))
        self.others = [left - 1 for left in self.others if left > 1]
        data = [self._describe(name) for name in reversed(self.batches)]
        data += [self._describe(f"other-{number}") for number in range(len(self.others))]
        return 200, {}, orjson.dumps({"object": "list", "data": data, "has_more": self.has_more})

    def _describe(self, name: str) -> dict[str, Any]:
        shared = {
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "errors": None,
        }
        shared |= {"created_at": self.created, "output_file_id": None, "error_file_id": None, "id": name}
        if name not in self.batches:
            return {**shared, "input_file_id": "x", "status": "in_progress"}
        batch = self.batches[name]
        status, counts = "in_progress", {"total": len(batch["rows"]), "completed": 0, "failed": 0}
        shared |= {"input_file_id": batch["input_file_id"], "metadata": batch["metadata"]}
        if batch["is_full"]:
            status, counts["total"] = "failed", 0
            error = {"code": "token_limit_exceeded", "message": self.full, "line": None, "param": None}
            shared["errors"] = {"object": "list", "data": [error]}
        elif batch["wrong"]:
            status, counts["total"] = "failed", 0
            shared["errors"] = {"object": "list", "data": batch["wrong"]}
        elif batch["left"] == 0:
            status, counts["completed"] = "completed", len(batch["rows"])
            shared["output_file_id"] = f"out-{name}"
        return {**shared, "status": status, "request_counts": counts}

    def _answer(self, row: dict[str, Any]) -> dict[str, Any]:
        text = row["body"]["messages"][0]["content"]
        choice = {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": f"to {text}"},
        }
        body = {
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-5.5",
            "choices": [choice], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
        }  # fmt: skip
        response = {"status_code": 200, "request_id": "req-1", "body": body}
        return {"id": "r", "custom_id": row["custom_id"], "error": None, "response": response}

    @contextmanager
    def serve(self) -> Iterator[str]:
        """The base URL while it answers."""
        queue = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _send(self, answer: Refusal) -> None:
                status, headers, body = answer
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_POST(self) -> None:
                if self.headers.get("transfer-encoding", "") == "chunked":
                    body = b""
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                else:
                    body = self.rfile.read(int(self.headers["content-length"]))
                with queue.lock:
                    answer = queue.post(self.path.rstrip("/").rpartition("/")[2], body)
                self._send(answer)

            def do_GET(self) -> None:
                with queue.lock:
                    answer = queue.get(self.path.partition("?")[0].removeprefix("/v1"))
                self._send(answer)

            def log_message(self, *_: object) -> None:
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = True
            threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
            try:
                yield f"http://127.0.0.1:{server.server_port}/v1"
            finally:
                server.shutdown()
