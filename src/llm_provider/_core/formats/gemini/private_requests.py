"""Requests through google-genai below its typed models, by methods that are private.

They take 47 % off a call by the SDK's public methods: 12,300 bytecode instructions instead of 23,200 (Python
3.11, google-genai 3.4, `python -m benchmarks.hot_path`), and 89 % off a stream of 30 chunks: 1.3 ms instead
of 11.7. The SDK still chooses the address and the headers, keeps the key, and raises its errors. A release
whose private methods are not known is used through `typed_requests`.
"""

import functools
from collections.abc import AsyncGenerator, Iterable
from typing import Any

from ..protocol import OnHeaders, Outgoing
from ..transport.sse import events
from .sdk_http_clients import chunks_of, close_response, exchanging
from .typed_requests import MOST_PREPARED, http_options

KNOWN_RELEASES = ((3, 0), (3, 4))
"""The first and the last release of the SDK with the private methods that are used here."""


def is_known(version: str) -> bool:
    """Whether a release of the SDK has the private methods that are used here."""
    first, last = KNOWN_RELEASES
    numbers = version.split(".")[:2]
    return all(map(str.isdigit, numbers)) and first <= tuple(map(int, numbers)) <= last


class PrivateRequests:
    """Requests of one connection, of at most `most_bytes` an answer.

    The SDK prepares a request once, without its body, for all that follow. This saves a fifth of a call.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self.prepare = functools.lru_cache(MOST_PREPARED)(_prepare)

    async def send(self, client: Any, outgoing: Outgoing) -> Any:
        """Post and return the HTTP response before its body has arrived."""
        return await self._post(client, outgoing, streamed=False)

    async def send_in_chunks(
        self, client: Any, outgoing: Outgoing, on_headers: OnHeaders
    ) -> AsyncGenerator[bytes, None]:
        """Post and yield the body of a successful answer as it arrives."""
        response = await self._post(client, outgoing, streamed=False)
        try:
            on_headers(response.headers)
            async for chunk in chunks_of(response, self._most_bytes):
                yield chunk
        finally:
            await close_response(response)

    async def stream(
        self, client: Any, outgoing: Outgoing, on_headers: OnHeaders
    ) -> AsyncGenerator[Iterable[Any], None]:
        """Post and yield the JSON of the events, in batches of those that arrived together."""
        response = await self._post(client, outgoing, streamed=True)
        try:
            on_headers(response.headers)
            async for batch in events(chunks_of(response, self._most_bytes)):
                yield batch
        finally:
            await close_response(response)

    async def _post(self, client: Any, outgoing: Outgoing, *, streamed: bool) -> Any:
        api = client._api_client  # noqa: SLF001  # see KNOWN_RELEASES
        encoded = outgoing.encoded
        headers = tuple(sorted(encoded.headers.items()))
        prepared = self.prepare(api, encoded.operation, headers, outgoing.timeout, streamed)
        # A copy, since the SDK may add to the headers while it sends. `dataclasses.replace` takes far longer.
        request = type(prepared)(**{**vars(prepared), "headers": dict(prepared.headers)})
        with exchanging(outgoing) as exchange:
            # True: the SDK reads no body, which it would decode to text.
            await api._async_request_once(request, True, implicit_retry=False)  # noqa: SLF001  # the same
        return exchange.response


def _prepare(
    api: Any, operation: str, headers: tuple[tuple[str, str], ...], timeout: float, streamed: bool
) -> Any:
    version, _, resource = operation.partition("/")
    if streamed:
        resource = resource.removesuffix(":generateContent") + ":streamGenerateContent?alt=sse"
    options = http_options(version, headers, timeout)
    return api._build_request("post", resource, {}, options)  # noqa: SLF001  # see KNOWN_RELEASES
