"""Messages, as the anthropic SDK asks for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anthropic

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post


def test_an_error_has_the_identifier_of_its_request(post: Post) -> None:
    answer = post("/anthropic/v1/messages", {"model": "claude-sonnet-5-5", "messages": []})
    assert answer.status == 400
    assert answer.json["request_id"] == answer.headers["request-id"]


def test_the_sdk_puts_a_stream_together(simulator: Simulator) -> None:
    async def final() -> Any:
        url = simulator.url("anthropic")
        question: Any = [{"role": "user", "content": "hello there"}]
        async with (
            anthropic.AsyncAnthropic(base_url=url, api_key="test-key", max_retries=0) as client,
            client.messages.stream(model="claude-haiku-5-5", max_tokens=99, messages=question) as stream,
        ):
            return await stream.get_final_text()

    assert asyncio.run(final()) == "echo: hello there"
