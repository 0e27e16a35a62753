"""Clients of the SDKs as they are, for files, batches and lists. Calls go through `transport` instead."""

import contextlib
import inspect
from collections.abc import AsyncIterator, Callable, Sequence
from types import ModuleType
from typing import Any

from .. import doors
from ..requests.api_keys import Credential
from ..requests.environment_headers import read_headers
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
    import openai

    return _client(openai, "AsyncOpenAI", target, key)


def anthropic_client(target: Target, key: Credential) -> Any:
    """A client of the anthropic SDK for large bodies."""
    import anthropic

    return _client(anthropic, "AsyncAnthropic", target, key, open_telemetry=False)


def _client(sdk: ModuleType, client_class: str, target: Target, key: Credential, **options: Any) -> Any:
    """A client of the openai or anthropic SDK for large bodies, which its bridge to aiohttp would copy."""
    from .transport.proxies import check_proxy
    from .transport.sdk_connection import build_http_client, replace_headers

    check_proxy(target.base_url, "http1")
    http_client = build_http_client(sdk, "http1", 2**40)
    http_client.most_whole = MAX_RESPONSE_BYTES
    doors.authorization.authorise_all(http_client, target, key)
    client = getattr(sdk, client_class)(
        base_url=target.base_url,
        api_key=key.reveal(),
        http_client=http_client,
        max_retries=0,
        timeout=SECONDS_OF_A_QUESTION,
        **options,
    )
    return replace_headers(client, read_headers(target))


def gemini_client(target: Target, key: Credential) -> tuple[Any, Any]:
    """A client for requests with large bodies, and its HTTP client."""
    import httpx2
    from google import genai
    from google.genai import types

    from .gemini.connection import without_warning
    from .gemini.models import split_version
    from .gemini.sdk_http_clients import certificates
    from .transport.proxies import all_work, check_proxy
    from .transport.sdk_connection import limit_class

    check_proxy(target.base_url, "http1")
    trusted = certificates()
    http_client = limit_class(httpx2.AsyncClient, httpx2)(
        2**40, verify=trusted, trust_env=all_work("http1"), follow_redirects=False, timeout=None
    )
    http_client.most_whole = MAX_RESPONSE_BYTES
    server, version = split_version(target.base_url)
    options = types.HttpOptions(
        base_url=server,
        api_version=version or "v1beta",
        timeout=int(1000 * SECONDS_OF_A_QUESTION),
        # A single attempt also turns off the SDK's hidden second one after a broken connection.
        retry_options=types.HttpRetryOptions(attempts=1),
        # The SDK would build one that warns about itself, and another one that is never used.
        httpx_async_client=http_client,
        client_args={"verify": trusted, "trust_env": False},
    )
    with without_warning("Both GOOGLE_API_KEY"):
        client = genai.Client(vertexai=False, api_key=key.reveal(), http_options=options)
    return client, http_client


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
