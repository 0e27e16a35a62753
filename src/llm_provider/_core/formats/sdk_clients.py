"""Clients of the SDKs as they are, for files, batches and lists. Calls go through `transport` instead."""

import contextlib
import importlib
import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from types import ModuleType
from typing import Any

from .. import doors
from ..requests.api_keys import Credential
from ..requests.request import read_headers
from ..requests.routing import Target
from ..settings import MAX_RESPONSE_BYTES

SECONDS_OF_A_FILE = 900.0
"""Seconds for an upload or a download: up to 2 GB."""

SECONDS_OF_A_QUESTION = 60.0
"""Seconds for every other request about a file or a batch."""

_MOST_ITEMS = 1_000_000
"""Items of a list that are read."""


def openai_client(target: Target, key: Credential) -> Any:
    """A client of the openai SDK for large bodies."""
    return _client("openai", "AsyncOpenAI", target, key)


def anthropic_client(target: Target, key: Credential) -> Any:
    """A client of the anthropic SDK for large bodies."""
    import anthropic

    from .anthropic.connection import without_spans

    options = without_spans(anthropic.AsyncAnthropic)
    return _client("anthropic", "AsyncAnthropic", target, key, **options)


def _http_client(library: ModuleType, target: Target, *trusted: Callable[[], Any]) -> Any:
    """An HTTP client for large bodies, which the SDKs' bridges to aiohttp would copy."""
    from .transport.environment import check_proxy
    from .transport.httpx_client import build_client

    check_proxy(target.base_url, "http1")
    http_client = build_client(library, "http1", 2**40, *trusted)
    http_client.most_whole = MAX_RESPONSE_BYTES
    return http_client


def _client(name: str, client_class: str, target: Target, key: Credential, **options: Any) -> Any:
    from .transport.connection import replace_headers
    from .transport.http_client import library_of

    sdk = importlib.import_module(name)
    http_client = _http_client(library_of(sdk.DefaultAsyncHttpxClient), target)
    doors.authorization.authorise_all(http_client, target, key)
    client = getattr(sdk, client_class)(
        base_url=target.base_url,
        api_key=key.reveal(),
        http_client=http_client,
        max_retries=0,
        timeout=SECONDS_OF_A_QUESTION,
        **options,
    )
    return replace_headers(client, read_headers(target), target)


def gemini_client(target: Target, key: Credential) -> tuple[Any, Any]:
    """A client for requests with large bodies, and its HTTP client."""
    from .gemini.connection import certificates, http_library, sdk_client
    from .gemini.encode import split_version

    trusted = certificates()
    http_client = _http_client(http_library(), target, lambda: trusted)
    version = split_version(target.base_url)[1] or "v1beta"
    timeout = int(1000 * SECONDS_OF_A_QUESTION)
    client = sdk_client(
        target.base_url, key.reveal(), http_client, trusted, api_version=version, timeout=timeout
    )
    return client, http_client


def plain_client(target: Target, key: Credential) -> Any:
    """An HTTP client with the key in each request, for a cloud's services that no SDK here speaks to."""
    import httpx2

    from .gemini.connection import certificates

    http_client = _http_client(httpx2, target, certificates)
    doors.authorization.authorise_all(http_client, target, key)
    return http_client


async def pages_of(pager: Any) -> AsyncIterator[Sequence[Any]]:
    """The pages of a list of the SDK."""
    with contextlib.suppress(IndexError):  # there is no next one
        while True:
            yield pager.page
            await pager.next_page()


async def close_gemini_client(client: Any, http_client: Any) -> None:
    """Close a client of `gemini_client`."""
    await client.aio.aclose()
    await close_clients(http_client, names=("aclose",))
    await close_clients(client)


async def items_of(pages: AsyncIterator[Sequence[Any]], name: str = "id") -> AsyncIterator[Any]:
    """The items of a list in pages. It ends at a page without new ones: its server gives that for ever."""
    seen: set[object] = set()
    async for page in pages:
        new = {getattr(item, name, None) for item in page} - seen
        if page and (not new or len(seen) > _MOST_ITEMS):
            return
        seen |= new
        for item in page:
            yield item


async def close_clients(*clients: Any, names: Sequence[str] = ("close", "aclose")) -> None:
    """Close SDK clients. Nothing can be done about a failure."""
    for client in clients:
        methods = (getattr(client, name, None) for name in names)
        close: Callable[[], Any] | None = next(filter(None, methods), None)
        with contextlib.suppress(Exception):
            closing = close() if close is not None else None
            if inspect.isawaitable(closing):
                await closing
