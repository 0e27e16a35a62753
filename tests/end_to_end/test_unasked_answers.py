"""Servers that answer one request twice: the second answer is never taken for that of the next request."""

import asyncio
import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client
from raw_server import RawServer
from support import ask
from wire_shapes import SHAPES, Shape

MODELS = {
    "gpt-6.1-sol": "openai",
    "gpt-5.5-pro": "responses",
    "claude-sonnet-5-5": "anthropic",
    "gemini/gemini-4-argon": "gemini",
}
WAYS = ["call", "stream", "acall", "call_many"]
SURPLUSES = ["together", "head", "later", "split"]
"""With the answer; the head alone with it; after it; in two parts."""


class TwiceServer(RawServer):
    """Answers every request on a connection that stays open, and then once more.

    The text of an answer is the number in the prompt.
    """

    def __init__(self, shape: Shape, surplus: str, cut: int = 40, identifier: bytes = b"") -> None:
        super().__init__(self._nothing)
        self._shape, self._surplus, self._cut, self._identifier = shape, surplus, cut, identifier
        self._writers: list[tuple[asyncio.StreamWriter, bytes]] = []

    async def _nothing(self, writer: asyncio.StreamWriter) -> None: ...

    def _answer(self, request: bytes) -> tuple[bytes, bytes]:
        number = re.findall(rb"number (\d+)", request)[-1]
        streamed = b'"stream":true' in request or b"alt=sse" in request
        body = self._shape.stream() if streamed else json.dumps(self._shape.whole).encode()
        for piece, text in ((b"echo:", number), (b" one", b""), (b" two", b""), (b" three", b"")):
            body = body.replace(piece, text)
        kind = b"text/event-stream" if streamed else b"application/json"
        head = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\ncontent-length: %d\r\n" % (kind, len(body))
        return head + b"x-request-id: %b\r\n\r\n" % (self._identifier or b"req_%032d" % self.requests), body

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"content-length: (\d+)", head.lower())
                body = await reader.readexactly(int(length[1]) if length else 0)
                self.requests += 1
                answer = b"".join(self._answer(head + body))
                now, later = {
                    "never": (answer, b""),
                    "together": (answer + answer, b""),
                    "head": (answer + answer[: answer.index(b"\r\n\r\n")], b""),
                    "later": (answer, answer),
                    "split": (answer + answer[: self._cut], answer[self._cut :]),
                }[self._surplus]
                writer.write(now)
                await writer.drain()
                self._writers.append((writer, later))
        writer.close()

    def send_the_rest(self) -> None:
        """Send what is left of the second answers."""
        self._run(self._send_the_rest())

    async def _send_the_rest(self) -> None:
        for writer, later in self._writers:
            with contextlib.suppress(ConnectionError):
                if later and not writer.is_closing():
                    writer.write(later)
                    await writer.drain()
        self._writers.clear()


def shape_of(model: str) -> Shape:
    return SHAPES[MODELS[model]][0]


@pytest.mark.sampled(11)
@pytest.mark.parametrize("surplus", SURPLUSES)
@pytest.mark.parametrize("transport", ["aiohttp", "http1", "http2"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", MODELS)
def test_every_answer_is_that_of_its_question(
    model: str, way: str, transport: Any, surplus: str, own_cache: Path
) -> None:
    count = 60 if way == "call" else 8
    with (
        TwiceServer(shape_of(model), surplus) as server,
        Client(cache_dir=own_cache, transport=transport, api_key="sk-test") as client,
    ):
        for number in map(str, range(count)):
            assert ask(client, way, model, f"number {number}", base_url=server.root).text == number
            server.send_the_rest()
        assert server.requests == count


def test_an_id_that_all_answers_of_a_server_have_tells_nothing(own_cache: Path) -> None:
    with (
        TwiceServer(shape_of("gpt-6.1-sol"), "never", identifier=b"req_1") as server,
        Client(cache="off", api_key="sk-test") as client,
    ):
        answers = [client.call("gpt-6.1-sol", "number 1", base_url=server.root) for _ in range(3)]
    assert [answer.timing.attempts for answer in answers] == [1, 1, 1]
