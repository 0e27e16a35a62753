"""HTTP clients for the google-genai SDK that send ready bytes in the place of the SDK's body.

The SDK takes them as `aiohttp_client=` or `httpx_async_client=`. It has no parameter for a body that is
already encoded, and does not always return the HTTP response, so both travel beside it in a context variable.
"""

import contextlib
import functools
import os
import ssl
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from ... import doors
from ..protocol import Outgoing
from ..shared.error_bodies import body_in_text
from ..shared.errors import headers_of
from ..transport import body_size, departure, http_client, http_pools, proxies
from ..transport.sdk_connection import limit_connections
from .decode import error_of


class Exchange:
    """One request and its response, which the HTTP client reads and writes while the SDK works."""

    __slots__ = ("_content", "by_sdk", "hidden", "outgoing", "response")

    def __init__(self, outgoing: Outgoing, *, by_sdk: bool, hidden: bool) -> None:
        self.outgoing = outgoing
        self.by_sdk = by_sdk
        self.hidden = hidden
        self.response: Any = None
        self._content: Any = None

    def hide_content(self, empty: Any) -> None:
        """Give the SDK the content `empty` of an aiohttp response, which it cannot release then."""
        self._content, self.response.content = self.response.content, empty
        self.response.release = lambda: None

    def chunks(self, most_bytes: int) -> AsyncIterator[bytes]:
        """The body that was hidden from the SDK, in chunks as they arrive."""
        if self._content is not None:
            self.response.content = self._content
            del self.response.release
        return chunks_of(self.response, most_bytes)


_EXCHANGE: ContextVar[Exchange] = ContextVar("exchange")


@contextlib.contextmanager
def exchanging(outgoing: Outgoing, *, by_sdk: bool = False, hidden: bool = False) -> Iterator[Exchange]:
    """Makes the HTTP client send `outgoing.body`, and keep the response in the exchange that is yielded.

    With `by_sdk`, the SDK reads the body of a success, and with `hidden` an empty one in its place. It always
    reads the body of a failure, if it can.
    """
    exchange = Exchange(outgoing, by_sdk=by_sdk, hidden=hidden)
    token = _EXCHANGE.set(exchange)
    try:
        yield exchange
    except (ValueError, RecursionError) as error:
        response = exchange.response
        status = getattr(response, "status", getattr(response, "status_code", 200))
        if status == 200:
            raise
        content = response.content if hasattr(response, "aread") else response.content.body
        body = body_in_text(content.decode("utf-8", "replace"))
        raise error_of(body, status=status, headers=headers_of(response)) from error
    finally:
        _EXCHANGE.reset(token)


def certificates() -> ssl.SSLContext:
    """The certificate authorities that the SDK trusts: certifi's, or those that OpenSSL's variables name."""
    import certifi

    return ssl.create_default_context(
        cafile=os.environ.get("SSL_CERT_FILE") or certifi.where(), capath=os.environ.get("SSL_CERT_DIR")
    )


def build(transport: str, trusted: ssl.SSLContext, most_bytes: int) -> Any:
    """The HTTP client for a transport: "aiohttp" (HTTP/1.1), "http2" or "http1" (both httpx2)."""
    if transport == "aiohttp":
        return _aiohttp_session(trusted, most_bytes)
    return _httpx_client(trusted, most_bytes, http2=transport == "http2")


def _aiohttp_session(trusted: ssl.SSLContext, most_bytes: int) -> Any:
    import aiohttp

    with warnings.catch_warnings():
        # aiohttp warns that a subclass may break with a later release. The SDK accepts a `ClientSession`
        # only.
        warnings.simplefilter("ignore", DeprecationWarning)

        class Session(aiohttp.ClientSession):
            # aiohttp returns a context manager that can be awaited. The SDK only awaits it.
            async def request(  # type: ignore[override]  # the SDK's calls only
                self, method: str, url: str, *, headers: Any, **_: Any
            ) -> Any:
                exchange = _EXCHANGE.get()
                outgoing = exchange.outgoing
                if outgoing.target.route.cloud is None:
                    exchange.response = await self.send_bytes(method, outgoing, url, headers)
                else:
                    send = functools.partial(self.send_bytes, method, outgoing)
                    exchange.response = await _send_to_cloud(outgoing, url, headers, send)
                if 200 < exchange.response.status < 300:
                    exchange.response.status = 200  # else it is an error to the SDK
                if exchange.hidden and exchange.response.status == 200:
                    exchange.hide_content(aiohttp.EMPTY_PAYLOAD)
                elif exchange.by_sdk or exchange.response.status != 200:
                    exchange.response.content = body_size.LimitedContent(exchange.response, most_bytes)
                return exchange.response

            def send_bytes(self, method: str, outgoing: Outgoing, url: str, headers: Any) -> Awaitable[Any]:
                return super().request(
                    method,
                    url,
                    data=http_client.body_of(outgoing.body),
                    headers=headers,
                    # The SDK's own timeout, for the whole request, is among the arguments that are not used.
                    timeout=http_client.connecting_within(outgoing.timeouts.connect),
                    allow_redirects=False,
                )

    return http_client.session(trusted, Session)


def _httpx_client(trusted: ssl.SSLContext, most_bytes: int, *, http2: bool) -> Any:
    import httpx2

    class Client(httpx2.AsyncClient):
        def build_request(self, method: str, url: Any, **options: Any) -> httpx2.Request:
            outgoing = _EXCHANGE.get().outgoing
            options["content"] = outgoing.body
            request = super().build_request(method, url, **options)
            request.extensions["timeout"]["connect"] = outgoing.timeouts.connect
            return request

        async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
            stream = options.pop("stream", False)

            def post(url: str, headers: Any) -> Awaitable[httpx2.Response]:
                request.url, request.headers = httpx2.URL(url), httpx2.Headers(headers)
                return super(Client, self).send(request, stream=True, **options)

            departure.watch(request)
            outgoing, url = _EXCHANGE.get().outgoing, str(request.url)
            at_cloud = outgoing.target.route.cloud is not None
            response: httpx2.Response = await (
                _send_to_cloud(outgoing, url, request.headers, post)
                if at_cloud
                else super().send(request, stream=True, **options)
            )
            if response.is_success:
                response.status_code = 200  # else it is an error to the SDK
            body_size.limit_httpx(httpx2, response, most_bytes)
            exchange = _EXCHANGE.get()
            exchange.response = response
            if exchange.hidden and response.status_code == 200:
                return httpx2.Response(200, headers=response.headers, content=b"", request=request)
            if not stream:
                try:
                    await response.aread()
                except BaseException:
                    await response.aclose()
                    raise
            return response

    return http_pools.prepare(
        Client(
            http2=http2,
            trust_env=proxies.all_work("http2" if http2 else "http1"),
            headers={"accept-encoding": body_size.ACCEPTED_ENCODINGS},
            verify=trusted,
            follow_redirects=False,
            limits=limit_connections(httpx2),
        )
    )


async def _send_to_cloud(
    outgoing: Outgoing, url: str, headers: Mapping[str, str], send: Callable[[str, Any], Awaitable[Any]]
) -> Any:
    """Call `send` with the address of a cloud and a token's headers, and with a new token after 401."""
    key, target = outgoing.key, outgoing.target
    kept = {name: value for name, value in headers.items() if name.lower() != "x-goog-api-key"}
    address = f"{target.base_url}/{outgoing.encoded.operation}"
    if ":streamGenerateContent" in url:
        address = f"{address.removesuffix(':generateContent')}:streamGenerateContent?alt=sse"
    if key.is_static and "/projects/" not in address:
        return await send(address, kept | {"x-goog-api-key": key.reveal()})
    if key.is_static:
        return await send(address, kept | {"Authorization": f"Bearer {key.reveal()}"})
    token = await doors.authorization.fetch_headers(key, "POST", address, outgoing.body)
    response = await send(address, kept | token)
    if getattr(response, "status", getattr(response, "status_code", None)) != 401:
        return response
    await close_response(response)
    key.invalidate(token)
    return await send(
        address, kept | await doors.authorization.fetch_headers(key, "POST", address, outgoing.body)
    )


def read(response: Any, most_bytes: int) -> Awaitable[bytes]:
    """The whole body of a response of either client."""
    if hasattr(response, "aread"):
        body: Awaitable[bytes] = response.aread()
    elif isinstance(response.content, body_size.LimitedContent):
        # The SDK may have read it, and the response keeps it then.
        body = response.read()
    else:
        body = body_size.of_aiohttp(response, most_bytes)
    return body


def chunks_of(response: Any, most_bytes: int) -> AsyncIterator[bytes]:
    """The body of a response of either client, in chunks as they arrive."""
    httpx = hasattr(response, "aiter_bytes")
    chunks: AsyncIterator[bytes] = (
        response.aiter_bytes() if httpx else body_size.chunks_of_aiohttp(response, most_bytes)
    )
    return chunks


async def close_response(response: Any) -> None:
    """Close a response of either client."""
    if hasattr(response, "aclose"):
        await response.aclose()
    else:
        response.close()
