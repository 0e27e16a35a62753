"""Requests through google-genai's public methods, for releases whose private methods are not known.

The SDK encodes a content and a configuration of its own, which are never sent: the HTTP client puts the
payload in their place. The SDK's retries, continuation of long answers and function calling are off.
"""

import functools
import math
from collections.abc import AsyncGenerator, Awaitable, Iterable, Mapping
from typing import Any

from ..protocol import OnHeaders, Outgoing
from ..transport.sse import events
from .sdk_http_clients import Exchange, close_response, exchanging

_EMBEDS = ":batchEmbedContents"
_COUNTS = ":countTokens"
_UNREADABLE = (ValueError, TypeError, AttributeError, KeyError)

MOST_PREPARED = 256
"""Requests that a connection keeps prepared, some kB each. Headers may differ with every call."""


class TypedRequests:
    """Requests of one connection, of at most `most_bytes` an answer.

    The SDK's arguments are prepared once, for all bodies.
    """

    send_in_chunks = None

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.prepare = functools.lru_cache(MOST_PREPARED)(_prepare)

    async def send(self, client: Any, outgoing: Outgoing) -> Any:
        """Post and return the HTTP response, which the SDK leaves unread."""
        arguments = self._arguments(outgoing, streamed=False)
        with exchanging(outgoing, by_sdk=True) as exchange:
            if outgoing.encoded.operation.endswith(_EMBEDS):
                await _unread(client.aio.models.embed_content(**arguments), exchange)
            elif outgoing.encoded.operation.endswith(_COUNTS):
                await _unread(client.aio.models.count_tokens(**arguments), exchange)
            else:
                await client.aio.models.generate_content(**arguments)
        return exchange.response

    async def stream(
        self, client: Any, outgoing: Outgoing, on_headers: OnHeaders
    ) -> AsyncGenerator[Iterable[Any], None]:
        """Post and yield the JSON of the events. The SDK, whose types lack some of it, reads an empty one."""
        arguments = self._arguments(outgoing, streamed=True)
        exchange = None
        try:
            with exchanging(outgoing, by_sdk=True, hidden=True) as exchange:
                # The SDK sends the request when the first event is asked for.
                async for _ in await client.aio.models.generate_content_stream(**arguments):
                    pass
            on_headers(exchange.response.headers)
            async for batch in events(exchange.chunks(self._most_bytes)):
                yield batch
        finally:
            if exchange is not None and exchange.response is not None:
                await close_response(exchange.response)

    def _arguments(self, outgoing: Outgoing, *, streamed: bool) -> dict[str, Any]:
        encoded = outgoing.encoded
        headers = tuple(sorted(encoded.headers.items()))
        prepared: dict[str, Any] = self.prepare(encoded.operation, headers, outgoing.timeout, streamed)
        return prepared


def _prepare(
    operation: str, headers: tuple[tuple[str, str], ...], timeout: float, streamed: bool
) -> dict[str, Any]:
    from google.genai import types

    version, _, resource = operation.partition("/")
    options = http_options(version, headers, timeout)
    config: Any
    if operation.endswith(_EMBEDS):
        config = types.EmbedContentConfig(http_options=options)
    elif operation.endswith(_COUNTS):
        config = types.CountTokensConfig(http_options=options)
    else:
        config = _config_class()(
            http_options=options,
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
            automatic_continuation=False,
            should_return_http_response=None if streamed else True,
        )
    # The SDK takes least time over a content without parts.
    contents = types.Content(role="user")
    return {"model": resource.rpartition(":")[0], "contents": contents, "config": config}


@functools.cache
def _config_class() -> Any:
    """A `GenerateContentConfig` that google-genai's `generate_content` handles cheaply.

    It takes 58 % off a call by the SDK's public methods: 23,200 bytecode instructions instead of 55,400
    (Python 3.11, google-genai 3.4, `python -m benchmarks.hot_path`). For each of some sixty fields the SDK
    first asks whether the configuration contains it, which pydantic answers by iterating over all fields, and
    then whether it has such an attribute. It also copies the whole configuration deeply for each call.
    """
    from google.genai import types

    class Config(types.GenerateContentConfig):
        """Claims to contain no field, so that the SDK reads attributes; copied only where it is changed."""

        def __contains__(self, name: object) -> bool:
            return False

        def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Any:
            return super().model_copy(update=update, deep=deep) if update else self

    return Config


async def _unread(call: Awaitable[Any], exchange: Exchange) -> None:
    """Await a method of the SDK that reads the body of the response. The exchange keeps the response."""
    try:
        await call
    except _UNREADABLE:
        status = getattr(exchange.response, "status", getattr(exchange.response, "status_code", None))
        # `decode` says what is wrong with a body of status 200 that the SDK cannot read.
        if status != 200:
            raise


def http_options(version: str, headers: tuple[tuple[str, str], ...], timeout: float) -> Any:
    """The SDK's options for a request to one version of the API; `timeout` is in seconds."""
    from google.genai import types

    milliseconds = max(1, math.ceil(timeout * 1000))
    return types.HttpOptions(api_version=version, headers=dict(headers), timeout=milliseconds)
