"""Requests with small bodies, which `http_client` writes by itself, are those of aiohttp."""

import asyncio
import contextlib
import json
import ssl
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yarl import URL

import raw_server
from llm_provider import Client, LLMError
from llm_provider._core.formats.transport import http_client
from loop_support import LoopServer
from raw_server import Behaviour, RawServer
from wire_shapes import SHAPES, TEXT

MODEL = "gpt-6.1-sol"
WHOLE = json.dumps(SHAPES["openai"][0].whole).encode()
SMALL = http_client._SMALL_BYTES


class Listener(LoopServer):
    """Keeps every request as it came, and answers it."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[list[bytes], bytes]] = []
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(raw_server._content_length(head))
                first, *lines = head.split(b"\r\n")
                pairs = [line.partition(b": ") for line in lines]
                self.heard.append(
                    ([first, *sorted(b"".join((n.lower(), *rest)) for n, *rest in pairs)], body)
                )
                await raw_server.answering(b"{}")(writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()


async def post(url: str, requests: list[tuple[dict[str, str], bytes]]) -> None:
    """Send some requests by one client."""
    client = http_client.AioHttp(httpx2, "aiohttp", 10**6, ssl.create_default_context)
    outgoing: Any = SimpleNamespace(timeouts=SimpleNamespace(connect=5.0))
    try:
        for headers, body in requests:
            answer = await client.post(url, headers, body, outgoing)
            await http_client.read(answer)
            assert answer.content == b"{}"
    finally:
        await client.aclose()


async def post_by_aiohttp(url: str, requests: list[tuple[dict[str, str], bytes]]) -> None:
    async with http_client.session(ssl.create_default_context()) as session:
        for headers, body in requests:
            async with session.post(URL(url, encoded=True), headers=headers, data=body or None):
                pass


NAMES = ("host", "accept", "accept-encoding", "user-agent", "content-type", "authorization", "x-own")
HEADERS = st.dictionaries(
    st.sampled_from(NAMES), st.text("abcXYZ019-/*;=. ", min_size=1).map(str.strip), max_size=len(NAMES)
).map(lambda headers: {"content-type": "application/json", **headers})
SIZES = st.sampled_from([0, 1, SMALL, SMALL + 1, 10 * SMALL])
BODIES = st.one_of(st.binary(max_size=100), SIZES.map(lambda size: b"x" * size))


@settings(max_examples=60)
@given(
    requests=st.lists(st.tuples(HEADERS, BODIES), min_size=2, max_size=5),
    path=st.sampled_from(["/", "/v1/chat/completions", "/v1/models/a%2Fb:generate?alt=sse", "/ü"]),
    user=st.sampled_from(["", "user:pass%20word@"]),
)
def test_each_request_is_written_as_aiohttp_writes_it(
    listener: Listener, requests: list[tuple[dict[str, str], bytes]], path: str, user: str
) -> None:
    url = listener.root.replace("//", f"//{user}") + path
    for headers, _ in requests if user else ():
        headers.pop("authorization", None)  # aiohttp refuses both
    listener.heard.clear()
    asyncio.run(post(url, requests))
    together = list(listener.heard)
    listener.heard.clear()
    asyncio.run(post_by_aiohttp(url, requests))
    assert together == listener.heard


@pytest.fixture(scope="module")
def listener() -> Any:
    with Listener() as server:
        yield server


def test_requests_to_one_address_share_a_connection(listener: Listener) -> None:
    listener.heard.clear()
    before = listener.connections
    asyncio.run(post(listener.root, [({}, b"1"), ({}, b"2"), ({}, b"x" * (SMALL + 1)), ({}, b"4")]))
    assert [body for _, body in listener.heard] == [b"1", b"2", b"x" * (SMALL + 1), b"4"]
    assert listener.connections == before + 1


async def refuse_as_too_large(writer: asyncio.StreamWriter) -> None:
    await raw_server.answering(b'{"error": {"message": "too large"}}', status=413)(writer)
    writer.close()


BEHAVIOURS: list[Behaviour] = [
    raw_server.reset_before_headers,
    raw_server.close_before_headers,
    raw_server.reset_mid_headers,
    raw_server.reset_mid_body,
    raw_server.reset_mid_chunk,
    raw_server.close_mid_body,
    raw_server.garbage_chunk_size,
    raw_server.garbage_encoding,
    raw_server.garbage_status_line,
    raw_server.huge_header,
    raw_server.stall_mid_body,
    raw_server.slow_drip,
    refuse_as_too_large,
    raw_server.answering(b"{}", status=503),
    raw_server.answering(b"not JSON"),
    raw_server.answering(b""),
    raw_server.answering(b" " * 300_000),
]


def find_failure(behaviour: Behaviour, size: int, *, first: bool) -> tuple[type, bool, float | None]:
    """The error of a call with a prompt of a size, which is the first to its address or a later one."""
    answers: list[Behaviour] = [] if first else [raw_server.answering(WHOLE)]

    async def behave(writer: asyncio.StreamWriter) -> None:
        await (answers.pop() if answers else behaviour)(writer)

    with RawServer(behave) as server, Client(cache="off", max_response_bytes=200_000) as client:
        options: dict[str, Any] = {"base_url": f"{server.root}/v1", "max_retries": 0, "timeout": 0.5}
        if not first:
            assert client.call(MODEL, "Hi", **options).text == TEXT
        with pytest.raises(LLMError) as caught:
            client.call(MODEL, "x" * size, **options)
        return type(caught.value), caught.value.maybe_billed, caught.value.cost


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_a_small_request_fails_as_a_large_one_that_aiohttp_writes(behaviour: Behaviour, first: bool) -> None:
    assert find_failure(behaviour, 1, first=first) == find_failure(behaviour, 10 * SMALL, first=first)


class Echo(LoopServer):
    """Answers each question with itself, in one of the ways of the servers that people report."""

    def __init__(self, way: str) -> None:
        super().__init__()
        self.way = way
        self.questions: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                version, headers = ("1.0", b"") if self.way == "http/1.0" else ("1.1", b"")
                if self.way == "keeps alive and closes":
                    headers = b"connection: keep-alive\r\n"
                body = await reader.readexactly(raw_server._content_length(head))
                question = json.loads(body)["messages"][0]["content"]
                self.questions.append(question)
                if self.way == "is late once" and len(self.questions) == 2:
                    await asyncio.sleep(0.6)
                reply = json.loads(WHOLE)
                reply["choices"][0]["message"]["content"] = question
                text = json.dumps(reply).encode()
                if self.way == "chunked":
                    headers += b"transfer-encoding: chunked\r\n"
                    text = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (text[:9], text[9:], b""))
                else:
                    headers += b"content-length: %d\r\n" % len(text)
                writer.write(b"HTTP/%b 200 OK\r\n%b\r\n" % (version.encode(), headers))
                if self.way == "in two pieces":
                    await writer.drain()
                    await asyncio.sleep(0.01)
                writer.write(text)
                await writer.drain()
                if self.way in ("keeps alive and closes", "http/1.0"):
                    break
        writer.close()


WAYS = ("plain", "keeps alive and closes", "http/1.0", "chunked", "in two pieces", "is late once")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("concurrent", [1, 8])
def test_each_call_gets_the_answer_to_its_own_question(way: str, concurrent: int) -> None:
    prompts = [f"{number} {'x' * (number % 3 * SMALL)}" for number in range(24)]
    with Echo(way) as server, Client(cache="off") as client:
        options: dict[str, Any] = {"base_url": f"{server.root}/v1", "timeout": 0.3, "max_retries": 3}
        results = client.call_many(MODEL, prompts, max_concurrent=concurrent, progress=False, **options)
        assert [result.text for result in results] == prompts
        # A request that got no answer in time was sent again.
        assert len(server.questions) == len(prompts) + (way == "is late once")
