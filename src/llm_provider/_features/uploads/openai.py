"""Files of OpenAI, through the openai SDK: `files`.

Facts from openai 2.54: a file has up to 512 MB, and is kept until it is deleted. A message refers to it by
`file_id`: a PDF on both endpoints, an image on Responses alone. Compatible hosts have no such files.
"""

from ..._core.formats.sdk_clients import SECONDS_OF_A_FILE, openai_client
from ..._core.requests.api_keys import Credential
from ..._core.requests.attachments import Attachment
from ..._core.requests.routing import Target
from .uploads import FileConnection, FileLimits, UploadedFile

_LIMITS = FileLimits(request=30_000_000, upload=512_000_000, kinds=("application/pdf", "image/"))
"""OpenAI takes requests of 50 MB with PDF in them, and larger ones with images. Ours have the size that all
providers but Gemini take."""


def limits(target: Target) -> FileLimits | None:
    return _LIMITS if target.provider == "openai" else None


class OpenAIFiles(FileConnection):
    def __init__(self, target: Target, key: Credential) -> None:
        super().__init__(openai_client(target, key))

    async def upload(self, attachment: Attachment, name: str) -> UploadedFile:
        with attachment.open() as file:
            uploaded = await self._client.files.create(
                file=(name, file, attachment.media_type), purpose="user_data", timeout=SECONDS_OF_A_FILE
            )
        return UploadedFile(uploaded.id, uploaded.expires_at)


connect = OpenAIFiles
