"""Server-sent events: which are handed on together; golden pairs have the events of streams."""

from collections.abc import AsyncIterator

import pytest

from llm_provider import APIResponseValidationError
from llm_provider._core.formats.transport.sse import events


async def arriving(chunks: list[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_what_comes_before_a_broken_event_is_handed_on() -> None:
    seen: list[object] = []
    with pytest.raises(APIResponseValidationError, match="not JSON"):
        async for batch in events(arriving([b"data: 1\n\ndata: 2\n\ndata: {\n\ndata: 4\n\n"])):
            seen.extend(batch)
    assert seen == [1, 2]


async def test_what_arrives_together_is_handed_on_together() -> None:
    stream = events(arriving([b"data: 1\n\ndata: 2\n\nda", b"ta: 3\n\n"]))
    assert [list(batch) async for batch in stream] == [[1, 2], [3]]


@pytest.mark.parametrize("body", [b"<!DOCTYPE html><p>Sign in", b"null", b": waiting\n\n"])
async def test_a_body_that_is_no_stream_is_named(body: bytes) -> None:
    stream = events(arriving([body[:3], body[3:]]))
    if body.startswith(b":"):
        assert [batch async for batch in stream] == []
    else:
        with pytest.raises(APIResponseValidationError, match=r"the answer is not JSON: '(<!D|nul)"):
            _ = [batch async for batch in stream]
