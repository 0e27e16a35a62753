"""Streams that are complete, and are written in unusual ways: each is an answer, sent and paid for once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, Delta
from raw_server import Behaviour, RawServer
from support import ask
from wire_shapes import SHAPES, TEXT

STREAMS = {
    "gpt-6.1-sol": ("openai", SHAPES["openai"][0]),
    "gpt-5.5-pro": ("openai", SHAPES["responses"][0]),
    "claude-sonnet-5-5": ("anthropic", SHAPES["anthropic"][0]),
}


def going_on(events: bytes, after: bytes, *, together: bool) -> Behaviour:
    """A stream, and more after its end; the connection stays open."""

    async def behaviour(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
        writer.write(head + events + (after if together else b""))
        await writer.drain()
        if not together:
            await asyncio.sleep(0.05)
            writer.write(after)
        # The loop's timer keeps the task alive.
        await asyncio.sleep(3600)

    return behaviour


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("name", ["text", "error", "array", "garbage"])
@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
@pytest.mark.parametrize("model", STREAMS)
@pytest.mark.sampled(5)
def test_nothing_is_read_after_the_last_event(
    own_cache: Path, model: str, transport: Any, name: str, together: bool
) -> None:
    server, shape = STREAMS[model]
    after = {
        "text": shape.stream(shape.events[1:4], ending=b""),
        "error": shape.event({"type": "error", "error": {"type": "overloaded_error", "message": "full"}}),
        "array": b"data: [1, 2]\n\n",
        "garbage": b"data: %$#@!\n\n\xff\xfe",
    }[name]
    with (
        RawServer(going_on(shape.stream(), after, together=together)) as raw,
        Client(cache_dir=own_cache, transport=transport, api_key="sk-test") as client,
    ):
        deltas: list[Delta] = []
        base_url = raw.root + ("" if server == "anthropic" else "/v1")
        answer = ask(client, "stream", model, deltas=deltas, base_url=base_url, timeout=30)
        assert raw.requests == 1
    assert "".join(delta.text for delta in deltas) == answer.text == TEXT
    assert (answer.finish_reason, answer.timing.attempts) == ("stop", 1)
