"""Files of Gemini, through the google-genai SDK: `files`.

Facts from google-genai 3.4 and Google's guides: a file has up to 2 GB and is deleted after 48 hours. A video
is processed first, and requests may refer to it once its state is ACTIVE. A request has up to 20 MB.
"""

import asyncio
from typing import Any

from ..._core.errors import APITimeoutError, BadRequestError
from ..._core.formats.sdk_clients import SECONDS_OF_A_FILE, close_gemini_client, gemini_client
from ..._core.requests.api_keys import Credential
from ..._core.requests.attachments import Attachment
from ..._core.requests.routing import Target
from ..._core.runtime import clock
from . import uploads as shared

_LIMITS = shared.FileLimits(
    request=20_000_000, upload=2_000_000_000, kinds=("application/pdf", "image/", "audio/", "video/")
)

_KEPT_SECONDS = 48 * 3600.0
"""Seconds after which Google deletes a file, where its answer does not tell."""

_PAUSES = (0.2, 5.0)
"""The first and the longest pause between two questions for the state of a file, in seconds."""


def limits(target: Target) -> shared.FileLimits | None:
    return _LIMITS if target.route.cloud is None else None


class GeminiFiles(shared.FileConnection):
    def __init__(self, target: Target, key: Credential) -> None:
        from google.genai import types

        client, self._http_client = gemini_client(target, key)
        super().__init__(client)
        self._types = types

    async def upload(self, attachment: Attachment, name: str) -> shared.UploadedFile:
        config = self._types.UploadFileConfig(
            display_name=name,
            mime_type=attachment.media_type,
            http_options=self._types.HttpOptions(timeout=int(1000 * SECONDS_OF_A_FILE)),
        )
        with attachment.open() as file:
            uploaded: Any = await self._client.aio.files.upload(file=file, config=config)
        pause, until = _PAUSES[0], clock.monotonic() + SECONDS_OF_A_FILE
        while (state := str(getattr(uploaded.state, "name", uploaded.state))) == "PROCESSING":
            if clock.monotonic() > until:
                raise APITimeoutError(
                    f"Google has not processed the file within {SECONDS_OF_A_FILE:g} s",
                    phase="total",
                    limit=SECONDS_OF_A_FILE,
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
        await close_gemini_client(self._client, self._http_client)


connect = GeminiFiles
