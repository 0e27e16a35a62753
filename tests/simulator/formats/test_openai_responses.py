"""The responses format, as the openai SDK of either major version asks for it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import openai

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator


def test_the_sdk_puts_a_stream_together(simulator: Simulator) -> None:
    async def final() -> Any:
        url = simulator.url("openai")
        async with (
            openai.AsyncOpenAI(base_url=url, api_key="test-key", max_retries=0) as client,
            client.responses.stream(model="gpt-6.1-sol", input="hello there") as stream,
        ):
            async for _ in stream:
                pass
            return await stream.get_final_response()

    assert asyncio.run(final()).output_text == "echo: hello there"
