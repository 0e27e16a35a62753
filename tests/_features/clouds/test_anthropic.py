import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import APIResponseValidationError
from llm_provider._features.clouds.anthropic import read_frames
from llm_provider.simulator.formats.aws_frames import frame_error, write_frame

EVENTS = [
    {"type": "ping"},
    {"type": "message_stop", "amazon-bedrock-invocationMetrics": {"inputTokenCount": 3}},
]
STREAM = b"".join(
    write_frame(
        {":message-type": "event"}, orjson.dumps({"bytes": base64.b64encode(orjson.dumps(event)).decode()})
    )
    for event in EVENTS
)


def read(body: bytes, cuts: list[int]) -> list[Any]:
    """The events of a body that arrives in pieces."""

    async def pieces() -> AsyncIterator[bytes]:
        for start, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
            yield body[start:end]

    async def collect() -> list[Any]:
        return [event async for batch in read_frames(pieces()) for event in batch]

    return asyncio.run(collect())


@given(st.lists(st.integers(0, len(STREAM)), max_size=20).map(sorted))
def test_frames_are_read_from_pieces_of_any_size(cuts: list[int]) -> None:
    assert read(STREAM, cuts) == EVENTS
    assert read(STREAM[:-1], []) == EVENTS[:1]


def test_an_exception_is_an_error_event_and_damage_an_error() -> None:
    error = frame_error(b'data: {"type":"error","error":{"message":"slow"}}\n\n')
    assert read(STREAM + error, [])[-1] == {
        "type": "error", "error": {"type": "modelStreamErrorException", "message": "slow"}
    }  # fmt: skip
    for place in (9, 30, len(STREAM) - 2):
        damaged = bytearray(STREAM)
        damaged[place] ^= 1
        with pytest.raises(APIResponseValidationError, match="damaged"):
            read(bytes(damaged), [])
