"""What the tests of embeddings share."""

import asyncio
import json
from typing import Any

from llm_provider._core.formats.protocol import EmbeddingFormat, Outgoing
from llm_provider._core.pace.call_limits import Timeouts
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.request import EmbedRequest
from llm_provider._core.requests.routing import resolve
from llm_provider._core.runtime.json_pieces import canonical

TEXTS = ("What is 2+2?", "Four.", "é")


def outgoing(
    form: EmbeddingFormat, base_url: str, model: str, texts: tuple[str, ...] = TEXTS, **parameters: Any
) -> Outgoing:
    request = EmbedRequest.build(model, texts, parameters)  # type: ignore[arg-type]  # names are checked there
    target = resolve(model, base_url)
    encoded = form.encode(request, target)
    body = canonical(form.payload_of(encoded, request.inputs))
    return Outgoing(encoded, body, target, APIKey("sk-secret"), Timeouts(total=30, connect=15))


def send(connection: Any, *requests: Outgoing) -> list[Any]:
    """The replies to requests that a connection sends one after another."""

    async def work() -> list[bytes]:
        try:
            return [await connection.send(request) for request in requests]
        finally:
            await connection.close()

    return [json.loads(body) for body in asyncio.run(work())]
