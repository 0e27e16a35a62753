"""Server-sent events, however their bytes arrive."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from llm_provider import APIResponseValidationError
from llm_provider._providers.transport.sse import events


async def arriving(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


def read(*chunks: bytes) -> list[Any]:
    async def main() -> list[Any]:
        return [event async for batch in events(arriving(list(chunks))) for event in batch]

    return asyncio.run(main())


def test_what_comes_before_a_broken_event_is_handed_on() -> None:
    async def read_events() -> list[object]:
        seen: list[object] = []
        with pytest.raises(APIResponseValidationError, match="not JSON"):
            async for batch in events(arriving([b"data: 1\n\ndata: 2\n\ndata: {\n\ndata: 4\n\n"])):
                seen.extend(batch)
        return seen

    assert asyncio.run(read_events()) == [1, 2]


def test_what_arrives_together_is_handed_on_together() -> None:
    async def main() -> list[list[Any]]:
        return [list(batch) async for batch in events(arriving([b"data: 1\n\ndata: 2\n\nda", b"ta: 3\n\n"]))]

    assert asyncio.run(main()) == [[1, 2], [3]]


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (b"data:1\n\n", [1]),
        (b"data: [1,\ndata: 2]\n\n", [[1, 2]]),
        (b"id: 7\nretry: 10\ndata: 1\n\n", [1]),
        (b"data: 1\n\ndata: [DONE]\n\ndata: 2\n\n", [1]),
        (b"data: 1\n\ndata: 2", [1, 2]),
        (b"data: 1\n\ndata: [DONE]", [1]),
        (b"data:\n\ndata: 1\n\n", [1]),
        (b"data: 1\n\ndata: [DONE] \n\ndata: 2\n\n", [1]),
        (b"\xef\xbb\xbfdata: 1\r\n\r\ndata:  [DONE]\t \r\n\r\ndata: 2\r\n\r\n", [1]),
        (b"data: 1\r\rdata:[DONE]  ", [1]),
        (b"[1, 2]", [1, 2]),
        (b'\xef\xbb\xbf\n {"a": 1}\n', [{"a": 1}]),
        (b": keep-alive\n\n\n\n", []),
        (b"", []),
        (b'{"error": {"message": "no"}}', [{"error": {"message": "no"}}]),
        (b"<html></html>", []),
    ],
)
def test_streams_as_servers_send_them(stream: bytes, expected: list[Any]) -> None:
    assert read(stream) == expected
    assert read(*(stream[position : position + 1] for position in range(len(stream)))) == expected


@pytest.mark.parametrize("stream", [b"data: {\n\n", b"data: \xff\n\n", b"data: 1\n\ndata: {", b"{not JSON"])
def test_what_is_not_json_is_a_bad_answer(stream: bytes) -> None:
    with pytest.raises(APIResponseValidationError, match="not JSON"):
        read(stream)
