"""The whole request is counted, by the SDK's public and its private methods."""

from __future__ import annotations

import asyncio
import json

import pytest

from llm_provider._calls.chat import CHAT
from llm_provider._limits.timeouts import Timeouts
from llm_provider._providers import registry
from llm_provider._providers.adapter import Outgoing
from llm_provider._providers.gemini import token_counts
from llm_provider._providers.gemini.connection import GeminiConnection
from llm_provider._requests.api_keys import APIKey
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._runtime.canonical_json import canonical
from llm_provider.simulator import Simulator
from support import ignore


@pytest.mark.parametrize("private", [True, False])
def test_the_whole_request_is_counted(simulator: Simulator, private: bool) -> None:
    target = resolve("gemini/gemini-3.8-flash", simulator.url("gemini"))
    request = Request.build("gemini/gemini-3.8-flash", "hello", {"system": "Be brief.", "max_tokens": 5})
    encoded = token_counts.encode(CHAT.encode(request, target, registry.load("gemini")), target)
    assert encoded.operation.endswith("/models/gemini-3.8-flash:countTokens")

    async def main() -> bytes:
        connection = GeminiConnection("aiohttp", private=private)
        outgoing = Outgoing(encoded, canonical(encoded.payload), target, APIKey("key"), Timeouts(total=30))
        try:
            return await connection.send(outgoing, ignore)
        finally:
            await connection.close()

    assert token_counts.decode(json.loads(asyncio.run(main()))) > 2
    (sent,) = simulator.requests()
    assert sent.body.keys() == {"generateContentRequest"}
    whole = sent.body["generateContentRequest"]
    assert whole["model"] == "models/gemini-3.8-flash"
    assert {"contents", "systemInstruction", "generationConfig"} <= whole.keys()
