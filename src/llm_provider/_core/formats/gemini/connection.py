"""The connection to Gemini through the google-genai SDK.

The payload that the cache key covers is sent byte for byte, by the HTTP clients of `sdk_http_clients`. The
SDK's environment variables for other endpoints have no effect, and `models` reads the one for the API's
version. Requests take one of two routes through the SDK: `private_requests` with releases that it knows, else
`typed_requests`.
"""

import asyncio
import contextlib
import importlib
import logging
import ssl
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Any

from ...settings import MAX_RESPONSE_BYTES
from ..protocol import IsComplete, OnHeaders, Outgoing, SendInChunks, never
from ..transport import http_client, proxies
from ..transport.certificates import share_context
from . import sdk_http_clients
from .models import split_version
from .private_requests import PrivateRequests, is_known
from .typed_requests import TypedRequests


class GeminiConnection:
    """google-genai clients that share one HTTP client, one client per server and key.

    `private` says whether to use the SDK's private methods; None decides by its release.
    """

    def __init__(
        self, transport: str, most_bytes: int = MAX_RESPONSE_BYTES, *, private: bool | None = None
    ) -> None:
        # Imported here and not with the first client: the import takes seconds, which would count as part of
        # the first attempt.
        sdk = importlib.import_module("google.genai")
        http_client.load(transport)
        private = is_known(sdk.__version__) if private is None else private
        self._requests = (PrivateRequests if private else TypedRequests)(most_bytes)
        self._transport = proxies.choose_client(transport)
        self._most_bytes = most_bytes
        self._http_client: Any = None
        self._clients: dict[tuple[str | None, str], Any] = {}
        self._certificates: ssl.SSLContext | None = None

    def _client(self, outgoing: Outgoing) -> Any:
        identity = (outgoing.target.base_url, outgoing.key.identity)
        client = self._clients.get(identity)
        if client is None:
            client = self._clients[identity] = self._build_client(outgoing)
        return client

    def _build_client(self, outgoing: Outgoing) -> Any:
        from google import genai
        from google.genai import types

        if self._http_client is None:
            # For all clients: the SDK would read the system's certificates four times for each.
            certificates = sdk_http_clients.certificates
            self._certificates = (
                share_context(certificates) if self._transport == "aiohttp" else certificates()
            )
            self._http_client = sdk_http_clients.build(self._transport, self._certificates, self._most_bytes)
        parameter = "aiohttp_client" if self._transport == "aiohttp" else "httpx_async_client"
        options = types.HttpOptions(
            # The operation has the version.
            base_url=split_version(outgoing.target.base_url)[0],
            # A single attempt also turns off the SDK's hidden second one after a broken connection.
            retry_options=types.HttpRetryOptions(attempts=1),
            # For clients that the SDK builds and nothing uses: they cannot fail because of a proxy.
            client_args={"verify": self._certificates, "trust_env": False},
            async_client_args={"ssl": self._certificates, "trust_env": False},
            **{parameter: self._http_client},
        )
        with without_warning("Both GOOGLE_API_KEY"):
            return genai.Client(vertexai=False, api_key=outgoing.key.reveal(), http_options=options)

    async def send(self, outgoing: Outgoing, on_headers: OnHeaders) -> bytes:
        response = await self._requests.send(self._client(outgoing), outgoing)
        try:
            on_headers(response.headers)
            return await sdk_http_clients.read(response, self._most_bytes)
        except BaseException:
            await sdk_http_clients.close_response(response)
            raise

    @property
    def send_in_chunks(self) -> SendInChunks | None:
        """`send` that yields the body as it arrives; the SDK's public methods cannot."""
        send = self._requests.send_in_chunks
        if send is None:
            return None
        return lambda outgoing, on_headers: send(self._client(outgoing), outgoing, on_headers)

    def stream(
        self, outgoing: Outgoing, on_headers: OnHeaders, is_complete: IsComplete = never
    ) -> AsyncGenerator[Iterable[Any], None]:
        """Post and yield the events to their end: Gemini's usage may come after its finish reason."""
        return self._requests.stream(self._client(outgoing), outgoing, on_headers)

    async def close(self) -> None:
        self._requests.prepare.cache_clear()
        while self._clients:
            await _close_client(self._clients.popitem()[1])
        # google-genai 3.0 starts a last task for a client that is garbage: it ends here, while the loop runs.
        await asyncio.sleep(0)
        shared, self._http_client = self._http_client, None
        if shared is not None:
            await (shared.close() if self._transport == "aiohttp" else shared.aclose())


async def _close_client(client: Any) -> None:
    # A function of its own, so that the last client is garbage when it returns.
    await client.aio.aclose()
    client.close()


@contextlib.contextmanager
def without_warning(beginning: str) -> Iterator[None]:
    """Drops a warning of the SDK's that is untrue here: the key is an argument, so no variable is read."""
    logger = logging.getLogger("google_genai._api_client")

    def keep(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith(beginning)

    logger.addFilter(keep)
    try:
        yield
    finally:
        logger.removeFilter(keep)


def connect(transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> GeminiConnection:
    return GeminiConnection(transport, most_bytes)
