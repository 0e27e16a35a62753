"""Files of Anthropic, through the anthropic SDK: `beta.files`.

Facts from anthropic 2.11 and Anthropic's guides: a file has up to 500 MB, and is kept until it is deleted. A
request has up to 32 MB, and an image in it up to 5 MiB in base64.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ..._requests.api_keys import APIKey
from ..._requests.attachments import Attachment
from ..._requests.environment_headers import read_headers
from ..._requests.routing import Target
from ..shared.batches import close_clients
from ..shared.files import SECONDS_OF_A_FILE, SECONDS_OF_A_QUESTION, FileLimits, UploadedFile
from ..transport.proxies import check_proxy

_BETA = "files-api-2025-04-14"

_LIMITS = FileLimits(
    request=30_000_000,
    upload=500_000_000,
    kinds=("application/pdf", "image/"),
    image=5 * 2**20,
    # The newest version of the API does not need it. Requests with sampling parameters use an older one.
    headers=MappingProxyType({"anthropic-beta": _BETA}),
)


def limits(target: Target) -> FileLimits | None:
    """How much a request and an upload to Anthropic may hold."""
    return _LIMITS


def connect(target: Target, key: APIKey) -> AnthropicFiles:
    """A connection to Anthropic's files for one account; imports the SDK."""
    return AnthropicFiles(target, key)


def sdk_client(target: Target, key: APIKey) -> Any:
    """A client for requests with large bodies: the bridge to aiohttp builds whole bodies in memory."""
    import anthropic

    from ..transport.sdk_connection import build_http_client, replace_headers

    check_proxy(target.base_url, "http1")
    client = anthropic.AsyncAnthropic(
        base_url=target.base_url,
        api_key=key.reveal(),
        http_client=build_http_client(anthropic, "http1", 2**40),
        max_retries=0,
        timeout=SECONDS_OF_A_QUESTION,
        open_telemetry=False,
    )
    return replace_headers(client, read_headers(target))


class AnthropicFiles:
    """The files of one workspace."""

    def __init__(self, target: Target, key: APIKey) -> None:
        self._client = sdk_client(target, key)

    async def upload(self, attachment: Attachment, name: str) -> UploadedFile:
        """Upload a file to Anthropic, and wait until requests may refer to it."""
        with attachment.open() as file:
            uploaded = await self._client.beta.files.upload(
                file=(name, file, attachment.media_type), betas=[_BETA], timeout=SECONDS_OF_A_FILE
            )
        expires = getattr(uploaded, "expires_at", None)
        return UploadedFile(uploaded.id, None if expires is None else expires.timestamp())

    async def close(self) -> None:
        """Close every connection."""
        await close_clients(self._client)
