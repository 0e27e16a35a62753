"""Answers of Gemini as replies and as streams, and every way to ask for them."""

import asyncio
import json
from typing import Any

from counting_server import CountingServer
from llm_provider import (
    Client,
    LLMError,
    Response,
)

MODEL = "gemini/gemini-3.8-flash"
JSON = dict[str, Any]
WAYS = ["call", "stream", "acall", "astream", "call_many"]


def candidate(*parts: JSON, **fields: Any) -> JSON:
    return {"content": {"role": "model", "parts": list(parts)}, **fields}


def reply_of(*candidates: JSON, number: int = 1) -> JSON:
    counts = {"promptTokenCount": 10 * number, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}
    return {
        "candidates": [{**each, "index": index} for index, each in enumerate(candidates)],
        "usageMetadata": {**counts, "totalTokenCount": 5 + 10 * number},
        "modelVersion": "gemini-3.8-flash",
        "responseId": f"r{number}",
    }


def events_of(reply: JSON) -> bytes:
    """A stream with one event for each part, and a last one without parts."""
    events = [
        {**reply, "candidates": [{**candidate(entry), "index": each["index"]}]}
        for each in reply["candidates"]
        for entry in each["content"]["parts"]
    ]
    last = [{**each, "content": {"role": "model"}} for each in reply["candidates"]]
    events.append({**reply, "candidates": last})
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(event).encode() for event in events)


def ask(client: Client, way: str, server: CountingServer, prompt: str = "Count.", **more: Any) -> Response:
    """The answer to a prompt. The deltas of a stream add up to it."""
    options = {"base_url": server.root, "api_key": "k", "max_retries": 0, **more}
    if way == "call":
        return client.call(MODEL, prompt, **options)
    if way == "acall":
        return asyncio.run(client.acall(MODEL, prompt, **options))
    if way == "call_many":
        (result,) = client.call_many(MODEL, [prompt], **options)
        if isinstance(result, LLMError):
            raise result
        return result
    if way == "stream":
        with client.stream(MODEL, prompt, **options) as deltas:
            shown = list(deltas)
        response = deltas.response
    else:

        async def read() -> tuple[list[Any], Response]:
            async with client.astream(MODEL, prompt, **options) as deltas:
                return [delta async for delta in deltas], deltas.response

        shown, response = asyncio.run(read())
    for index, choice in enumerate(response.choices):
        own = [delta for delta in shown if delta.index == index and not delta.tool_results]
        if response.tool_rounds is None:
            assert "".join(delta.text for delta in own) == choice.text
            calls = [
                (call.index, call.id, call.name, call.arguments) for delta in own for call in delta.tool_calls
            ]
            assert calls == [
                (number, call.id, call.name, call.arguments) for number, call in enumerate(choice.tool_calls)
            ]
    return response
