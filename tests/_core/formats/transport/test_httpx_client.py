"""TCP keepalive of every transport. tests/end_to_end/test_http2.py has what HTTP/2 lacked."""

import asyncio
import contextlib
import sys
from pathlib import Path

import pytest

from llm_provider import BadRequestError, Client
from llm_provider.simulator import Simulator
from loop_support import LoopServer
from support import ask

MODELS = ["gpt-6.1-sol", "claude-sonnet-5-5", "gemini-3.8-flash"]
OPEN, KEEPALIVE_TIMER = "01", "02"


def timers(port: int) -> list[str]:
    """The kinds of the timers of the open connections to a port, as the kernel tells them."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[5].split(":")[0] for row in rows if row[2].endswith(f":{port:04X}") and row[3] == OPEN]


class Tunnel(LoopServer):
    """A proxy that connects to one server, whatever it is asked for."""

    def __init__(self, to: int) -> None:
        super().__init__()
        self._to = to

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        there, back = await asyncio.open_connection("127.0.0.1", self._to)
        if head.startswith(b"CONNECT"):
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        else:
            back.write(head)

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                while data := await source.read(65536):
                    target.write(data)
            target.close()

        try:
            await asyncio.gather(copy(reader, back), copy(there, writer))
        finally:
            back.close()


@pytest.mark.skipif(sys.platform != "linux", reason="only its kernel tells the timers of sockets")
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("transport", ["aiohttp", "http1", "http2"])
@pytest.mark.parametrize("way", ["direct", "proxy"])
def test_every_connection_is_kept_alive(
    simulator: Simulator,
    own_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    transport: str,
    model: str,
) -> None:
    with contextlib.ExitStack() as stack:
        port = simulator.port
        if way == "proxy":
            tunnel = stack.enter_context(Tunnel(simulator.port))
            monkeypatch.setenv("HTTP_PROXY", tunnel.root)
            monkeypatch.setenv("NO_PROXY", "")
            port = tunnel.port
        client = stack.enter_context(Client(cache_dir=own_cache, transport=transport))
        client.call(model, "Hi")
        # Others than this client's have an end here too, and none is kept alive.
        assert timers(port).count(KEEPALIVE_TIMER) == 1


class RefusesEarly(LoopServer):
    """Answers 413 to the headers of a request, and reads no more of it."""

    requests = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.requests += 1
        body = b'{"error": {"message": "Request too large"}}'
        head = b"HTTP/1.1 413 Too Large\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        writer.write(head % len(body) + body)
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)
        writer.transport.abort()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("way", ["call", "stream"])
def test_a_refusal_before_the_end_of_the_body_is_told_at_once(
    own_cache: Path, way: str, transport: str, model: str
) -> None:
    with RefusesEarly() as server, Client(cache_dir=own_cache, transport=transport, api_key="key") as client:
        root = f"{server.root}/v1" if model.startswith("gpt") else server.root
        with pytest.raises(BadRequestError, match="Request too large"):
            ask(client, way, model, "x" * 9_000_000, base_url=root)
        assert server.requests == 1
