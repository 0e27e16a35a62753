"""Files of Gemini, through the google-genai SDK: `files`.

Facts from google-genai 3.4 and Google's guides: a file has up to 2 GB and is deleted after 48 hours. A video
is processed first, and requests may refer to it once its state is ACTIVE. A request has up to 20 MB.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

from ..._core.errors import APITimeoutError, BadRequestError
from ..._core.formats.gemini.connection import without_warning
from ..._core.formats.gemini.models import split_version
from ..._core.formats.gemini.sdk_http_clients import certificates
from ..._core.formats.transport.proxies import all_work, check_proxy
from ..._core.formats.transport.sdk_connection import limit_class
from ..._core.requests.api_keys import Credential
from ..._core.requests.attachments import Attachment
from ..._core.requests.routing import Target
from ..._core.runtime import clock
from ..._core.settings import MAX_RESPONSE_BYTES
from . import references as shared

_LIMITS = shared.FileLimits(
    request=20_000_000, upload=2_000_000_000, kinds=("application/pdf", "image/", "audio/", "video/")
)

_KEPT_SECONDS = 48 * 3600.0
"""Seconds after which Google deletes a file, where its answer does not tell."""

_PAUSES = (0.2, 5.0)
"""The first and the longest pause between two questions for the state of a file, in seconds."""


def limits(target: Target) -> shared.FileLimits | None:
    return _LIMITS if target.route.cloud is None else None


def sdk_client(target: Target, key: Credential) -> tuple[Any, Any]:
    """A client for requests with large bodies, and its HTTP client."""
    import httpx2
    from google import genai
    from google.genai import types

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
        timeout=int(1000 * shared.SECONDS_OF_A_QUESTION),
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


async def close_client(client: Any, http_client: Any) -> None:
    await client.aio.aclose()
    await shared.close_clients(http_client, names=("aclose",))
    await shared.close_clients(client)


class GeminiFiles(shared.FileConnection):
    def __init__(self, target: Target, key: Credential) -> None:
        from google.genai import types

        client, self._http_client = sdk_client(target, key)
        super().__init__(client)
        self._types = types

    async def upload(self, attachment: Attachment, name: str) -> shared.UploadedFile:
        config = self._types.UploadFileConfig(
            display_name=name,
            mime_type=attachment.media_type,
            http_options=self._types.HttpOptions(timeout=int(1000 * shared.SECONDS_OF_A_FILE)),
        )
        with attachment.open() as file:
            uploaded: Any = await self._client.aio.files.upload(file=file, config=config)
        pause, until = _PAUSES[0], clock.monotonic() + shared.SECONDS_OF_A_FILE
        while (state := str(getattr(uploaded.state, "name", uploaded.state))) == "PROCESSING":
            if clock.monotonic() > until:
                raise APITimeoutError(
                    f"Google has not processed the file within {shared.SECONDS_OF_A_FILE:g} s",
                    phase="total",
                    limit=shared.SECONDS_OF_A_FILE,
                    maybe_billed=False,
                )
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])
            uploaded = await self._client.aio.files.get(name=uploaded.name)
        if state == "FAILED":
            reason = getattr(uploaded.error, "message", None)
            raise BadRequestError(f"Google cannot process the file: {reason or 'it gives no reason'}")
        expires = uploaded.expiration_time
        return shared.UploadedFile(
            uploaded.uri, clock.time() + _KEPT_SECONDS if expires is None else expires.timestamp()
        )

    async def close(self) -> None:
        await close_client(self._client, self._http_client)


connect = GeminiFiles
