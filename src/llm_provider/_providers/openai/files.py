"""Files of OpenAI, through the openai SDK: `files`.

Facts from openai 2.54: a file has up to 512 MB, and is kept until it is deleted. A message refers to it by
`file_id`: a PDF on both endpoints, an image on Responses alone. Compatible hosts have no such files.
"""

from __future__ import annotations

from typing import Any

from ..._requests.api_keys import APIKey
from ..._requests.attachments import Attachment
from ..._requests.environment_headers import read_headers
from ..._requests.routing import Target
from ..shared.batches import close_clients
from ..shared.files import SECONDS_OF_A_FILE, SECONDS_OF_A_QUESTION, FileLimits, UploadedFile
from ..transport.proxies import check_proxy

_LIMITS = FileLimits(request=30_000_000, upload=512_000_000, kinds=("application/pdf", "image/"))
"""OpenAI takes requests of 50 MB with PDF in them, and larger ones with images. Ours have the size that all
providers but Gemini take."""


def limits(target: Target) -> FileLimits | None:
    """How much a request and an upload to OpenAI may hold."""
    return _LIMITS if target.provider == "openai" else None


def connect(target: Target, key: APIKey) -> OpenAIFiles:
    """A connection to OpenAI's files for one account; imports the SDK."""
    return OpenAIFiles(target, key)


def sdk_client(target: Target, key: APIKey) -> Any:
    """A client for requests with large bodies: the bridge to aiohttp builds whole bodies in memory."""
    import openai

    from ..transport.sdk_connection import build_http_client, replace_headers

    check_proxy(target.base_url, "http1")
    client = openai.AsyncOpenAI(
        base_url=target.base_url,
        api_key=key.reveal(),
        http_client=build_http_client(openai, "http1", 2**40),
        max_retries=0,
        timeout=SECONDS_OF_A_QUESTION,
    )
    return replace_headers(client, read_headers(target))


class OpenAIFiles:
    """The files of one account."""

    def __init__(self, target: Target, key: APIKey) -> None:
        self._client = sdk_client(target, key)

    async def upload(self, attachment: Attachment, name: str) -> UploadedFile:
        """Upload a file to OpenAI, and wait until requests may refer to it."""
        with attachment.open() as file:
            uploaded = await self._client.files.create(
                file=(name, file, attachment.media_type), purpose="user_data", timeout=SECONDS_OF_A_FILE
            )
        return UploadedFile(uploaded.id, uploaded.expires_at)

    async def close(self) -> None:
        """Close every connection."""
        await close_clients(self._client)
