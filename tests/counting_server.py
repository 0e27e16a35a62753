"""A raw server that answers each request by a function, and counts the requests."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from loop_support import LoopServer

Reply = Callable[[str, Mapping[str, str], Any], tuple[int, Mapping[str, str], Any]]
"""Path, headers and body of a request → status, headers and body of the answer."""


def _read(body: bytes, headers: Mapping[str, str]) -> Any:
    """The value of a JSON body; the bytes of an uploaded file."""
    return json.loads(body) if body and "x-goog-upload-offset" not in headers else body or None


class CountingServer(LoopServer):
    """Answers each request by a function, and counts the requests by method and path.

    After a body that is shorter than its header `content-length` says, the connection breaks.
    """

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self.reply = reply
        self.paths: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
                method, path, _ = first.split()
                pairs = (line.partition(":") for line in lines)
                headers = {name.lower(): value.strip() for name, _, value in pairs}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.paths[f"{method} {path}"] += 1
                status, fields, answer = self.reply(path, headers, _read(body, headers))
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                length = str(len(data))
                fields = {"content-type": "application/json", "content-length": length, **fields}
                head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
                writer.write(f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + data)
                if fields["content-length"] != length:
                    await writer.drain()
                    # A client loses what it has not read when the connection breaks.
                    await asyncio.sleep(0.05)
                    writer.close()
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()

    @property
    def requests(self) -> int:
        return sum(number for name, number in self.paths.items() if not name.startswith("GET"))


def failing(status: int, body: Any, **headers: str) -> Reply:
    return lambda *_: (status, {name.replace("_", "-"): value for name, value in headers.items()}, body)
