"""Calls and streams through an SDK's low-level `post`, over every transport."""

import pytest

from anthropic_support import exchange, outgoing
from llm_provider._core.formats.anthropic import adapter
from llm_provider.simulator import Simulator


@pytest.mark.parametrize("transport", ["aiohttp", "http1", "http2"])
def test_a_call_and_a_stream_give_the_same_answer(simulator: Simulator, transport: str) -> None:
    order = outgoing(simulator, "What is 2 + 2?", reasoning_effort="high")
    whole, streamed_ = (
        adapter.decode(exchange(order, stream=stream, transport=transport)) for stream in (False, True)
    )
    assert whole.choices[0].text == streamed_.choices[0].text == "4"
    assert whole.choices[0].reasoning == streamed_.choices[0].reasoning != ""
    assert whole.usage == streamed_.usage
    first, second = simulator.requests("anthropic")
    assert first.body == order.encoded.payload
    assert second.body == {**order.encoded.payload, "stream": True}
