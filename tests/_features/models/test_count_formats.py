"""The request for a count has the fields of the SDK's types, and goes through each of the SDK's methods."""

import asyncio
import json

from anthropic.types import MessageCountTokensParams

from llm_provider._core.formats import registry
from llm_provider._core.formats.gemini.connection import connect
from llm_provider._core.formats.protocol import Outgoing
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.pace.call_limits import Timeouts
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._core.runtime.canonical_json import canonical
from llm_provider._features.models import count_formats as token_counts
from llm_provider.simulator import Simulator
from support import ignore


def test_fields_of_the_answer_are_left_out() -> None:
    target = resolve("claude-sonnet-4-5")
    request = Request.build(
        "claude-sonnet-4-5",
        "hello",
        {"system": "Be brief.", "max_tokens": 5000, "stop": "END", "thinking_budget": 2000}
        | {"metadata": None, "tools": ["web_search"], "extra_headers": {"X-A": "b"}},
    )
    encoded = token_counts.FORMATS["anthropic"].encode(
        CHAT.encode(request, target, registry.load("anthropic")), target
    )
    assert encoded.operation == "messages/count_tokens"
    assert encoded.payload.keys() == {"model", "messages", "system", "tools", "thinking"}
    assert encoded.headers["x-a"] == "b"
    assert MessageCountTokensParams.__annotations__.keys() >= token_counts._COUNTED


def test_the_whole_request_is_counted(simulator: Simulator) -> None:
    target = resolve("gemini/gemini-3.8-flash", simulator.url("gemini"))
    request = Request.build("gemini/gemini-3.8-flash", "hello", {"system": "Be brief.", "max_tokens": 5})
    encoded = token_counts.FORMATS["gemini"].encode(
        CHAT.encode(request, target, registry.load("gemini")), target
    )
    assert encoded.operation.endswith("/models/gemini-3.8-flash:countTokens")

    async def main() -> bytes:
        connection = connect("aiohttp")
        outgoing = Outgoing(encoded, canonical(encoded.payload), target, APIKey("key"), Timeouts(total=30))
        try:
            return await connection.send(outgoing, ignore)
        finally:
            await connection.close()

    assert token_counts.FORMATS["gemini"].decode(json.loads(asyncio.run(main()))) > 2
    (sent,) = simulator.requests()
    assert sent.body.keys() == {"generateContentRequest"}
    whole = sent.body["generateContentRequest"]
    assert whole["model"] == "models/gemini-3.8-flash"
    assert {"contents", "systemInstruction", "generationConfig"} <= whole.keys()
