"""What the tests of the Anthropic format share."""

import asyncio
from typing import Any

import orjson

from llm_provider._core.errors import LLMError
from llm_provider._core.formats.anthropic import encode as adapter
from llm_provider._core.formats.anthropic.connection import connect
from llm_provider._core.formats.anthropic.stream import Assembler
from llm_provider._core.formats.protocol import EncodedRequest, Outgoing
from llm_provider._core.pace.call_limits import Timeouts
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import resolve
from llm_provider._core.runtime.json_pieces import canonical
from llm_provider.simulator import Simulator

OLD, CURRENT, ALWAYS = "claude-haiku-4-5", "claude-opus-5", "claude-sonnet-5-5"


def encode(messages: Any = "Hi", model: str = CURRENT, **parameters: Any) -> EncodedRequest:
    return adapter.encode(Request.build(model, messages, parameters), resolve(model))


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
SECRET = {"type": "redacted_thinking", "data": "eA=="}


def reply(*content: Any, stop_reason: str = "end_turn", **fields: Any) -> dict[str, Any]:
    usage = {"input_tokens": 5, "output_tokens": 7}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": CURRENT,
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": usage,
        **fields,
    }


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def outgoing(simulator: Simulator, messages: Any, model: str = ALWAYS, **parameters: Any) -> Outgoing:
    request = Request.build(model, messages, parameters)
    target = resolve(model, simulator.url("anthropic"))
    encoded = adapter.encode(request, target)
    return Outgoing(encoded, canonical(encoded.payload), target, APIKey("sk-secret"), Timeouts(total=20))


async def sent(connection: Any, order: Outgoing, *, stream: bool) -> Any:
    if not stream:
        return orjson.loads(await connection.send(order))
    assembler = Assembler()
    async for batch in connection.stream(order):
        for event in batch:
            assembler.feed(event)
    return assembler.reply()


def exchange(order: Outgoing, *, stream: bool = False, transport: str = "aiohttp") -> Any:
    async def run() -> Any:
        connection = connect(transport)
        try:
            return await sent(connection, order, stream=stream)
        except LLMError:
            raise
        except Exception as error:
            raise adapter.map_error(error) from error
        finally:
            await connection.close()

    return asyncio.run(run())
