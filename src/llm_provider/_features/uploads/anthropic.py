"""Files of Anthropic, through the anthropic SDK: `beta.files`.

Facts from anthropic 2.11 and Anthropic's guides: a file has up to 500 MB, and is kept until it is deleted. A
request has up to 32 MB, and an image in it up to 5 MiB in base64.
"""

from types import MappingProxyType

from ..._core.formats.sdk_clients import SECONDS_OF_A_FILE, anthropic_client
from ..._core.requests.api_keys import Credential
from ..._core.requests.attachments import Attachment
from ..._core.requests.routing import Target
from .uploads import FileConnection, FileLimits, UploadedFile

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
    return _LIMITS if target.route.cloud is None else None


class AnthropicFiles(FileConnection):
    def __init__(self, target: Target, key: Credential) -> None:
        super().__init__(anthropic_client(target, key))

    async def upload(self, attachment: Attachment, name: str) -> UploadedFile:
        with attachment.open() as file:
            uploaded = await self._client.beta.files.upload(
                file=(name, file, attachment.media_type), betas=[_BETA], timeout=SECONDS_OF_A_FILE
            )
        expires = getattr(uploaded, "expires_at", None)
        return UploadedFile(uploaded.id, None if expires is None else expires.timestamp())


connect = AnthropicFiles
