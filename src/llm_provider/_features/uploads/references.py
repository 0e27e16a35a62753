"""Which files of a request are uploaded, as too large for it, and the files of an account through the SDKs.

Contents and documented limits alone decide it. So a cache key does not depend on what `uploads` remembers.

Facts from openai 2.54, anthropic 2.11, google-genai 3.4 and the guides of the providers. OpenAI: a message
refers to a PDF on both endpoints, to an image on Responses alone; requests of 50 MB with PDF in them are
taken, and larger ones with images, so ours have the size that Anthropic takes too. Anthropic: a request has
up to 32 MB, and an image in it up to 5 MiB in base64. Both keep a file until it is deleted, Google for 48
hours. Google processes a video first, and requests may refer to it once its state is ACTIVE.
"""

import abc
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import orjson

from ..._core.errors import APITimeoutError, BadRequestError, RequestError
from ..._core.formats import sdk_clients
from ..._core.formats.protocol import EncodedRequest
from ..._core.requests.api_keys import Credential
from ..._core.requests.attachments import Attachment, attachments_of, with_references
from ..._core.requests.media import MOST_BYTES
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from ..._core.runtime import clock

_DOCUMENTS = ("application/pdf", "image/")

_BETA = "files-api-2025-04-14"
"""The newest version of Anthropic's API needs none. Requests with sampling parameters use an older one."""

_KEPT_SECONDS = 48 * 3600.0
"""Seconds after which Google deletes a file, where its answer does not tell."""

_PAUSES = (0.2, 5.0)
"""The first and the longest pause between two questions for the state of a file, in seconds."""


class FileLimits(NamedTuple):
    """How much a request and an upload may hold, by the provider's documentation."""

    request: int
    """Bytes of a request with the files in it, which are in base64."""
    upload: int
    """Bytes of one uploaded file."""
    kinds: tuple[str, ...]
    """Beginnings of the media types that a request can refer to."""
    image: int | None = None
    """Bytes of one image of a request in base64; None where it may be as large as any file."""
    headers: Mapping[str, str] = {}
    """Headers of a request that refers to a file."""


class UploadedFile(NamedTuple):
    identifier: str
    """The text that a request names it by."""
    expires: float | None
    """Unix time at which the provider deletes it; None if it keeps it."""


class FileConnection(abc.ABC):
    """The files of one account. Its methods raise exceptions of the SDK and its transport."""

    limits: ClassVar[FileLimits]

    @staticmethod
    @abc.abstractmethod
    def make_client(target: Target, key: Credential) -> Any: ...

    def __init__(self, target: Target, key: Credential) -> None:
        """Import the SDK and make its client."""
        self._client = self.make_client(target, key)

    @abc.abstractmethod
    async def upload(self, attachment: Attachment, name: str) -> UploadedFile:
        """Upload a file under a name, and wait until requests may refer to it."""

    async def close(self) -> None:
        await sdk_clients.close_clients(self._client)


class OpenAIFiles(FileConnection):
    limits = FileLimits(request=30_000_000, upload=512_000_000, kinds=_DOCUMENTS)
    make_client = staticmethod(sdk_clients.openai_client)

    async def upload(self, attachment: Attachment, name: str) -> UploadedFile:
        with attachment.open() as file:
            sent, seconds = (name, file, attachment.media_type), sdk_clients.SECONDS_OF_A_FILE
            uploaded = await self._client.files.create(file=sent, purpose="user_data", timeout=seconds)
        return UploadedFile(uploaded.id, uploaded.expires_at)


class AnthropicFiles(FileConnection):
    limits = FileLimits(
        request=30_000_000, upload=500_000_000, kinds=_DOCUMENTS, image=5 * 2**20,
        headers=MappingProxyType({"anthropic-beta": _BETA}),
    )  # fmt: skip
    make_client = staticmethod(sdk_clients.anthropic_client)

    async def upload(self, attachment: Attachment, name: str) -> UploadedFile:
        with attachment.open() as file:
            sent, seconds = (name, file, attachment.media_type), sdk_clients.SECONDS_OF_A_FILE
            uploaded = await self._client.beta.files.upload(file=sent, betas=[_BETA], timeout=seconds)
        expires = getattr(uploaded, "expires_at", None)
        return UploadedFile(uploaded.id, None if expires is None else expires.timestamp())


class GeminiFiles(FileConnection):
    limits = FileLimits(request=20_000_000, upload=2_000_000_000, kinds=(*_DOCUMENTS, "audio/", "video/"))

    make_client = staticmethod(sdk_clients.gemini_client)

    async def upload(self, attachment: Attachment, name: str) -> UploadedFile:
        from google.genai.types import HttpOptions, UploadFileConfig

        client, _ = self._client
        seconds = sdk_clients.SECONDS_OF_A_FILE
        options = HttpOptions(timeout=int(1000 * seconds))
        kind = attachment.media_type
        config = UploadFileConfig(display_name=name, mime_type=kind, http_options=options)
        with attachment.open() as file:
            uploaded: Any = await client.aio.files.upload(file=file, config=config)
        pause, until = _PAUSES[0], clock.monotonic() + seconds
        while (state := str(getattr(uploaded.state, "name", uploaded.state))) == "PROCESSING":
            if clock.monotonic() > until:
                message = f"Google has not processed the file within {seconds:g} s"
                raise APITimeoutError(message, phase="total", limit=seconds, maybe_billed=False)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _PAUSES[1])
            uploaded = await client.aio.files.get(name=uploaded.name)
        if state == "FAILED":
            reason = getattr(uploaded.error, "message", None)
            raise BadRequestError(f"Google cannot process the file: {reason or 'it gives no reason'}")
        expires = uploaded.expiration_time
        end = clock.time() + _KEPT_SECONDS if expires is None else expires.timestamp()
        return UploadedFile(uploaded.uri, end)

    async def close(self) -> None:
        await sdk_clients.close_gemini_client(*self._client)


_CONNECTIONS: Mapping[str, type[FileConnection]] = {
    "openai": OpenAIFiles, "anthropic": AnthropicFiles, "gemini": GeminiFiles,
}  # fmt: skip
"""By the adapter."""


def files_of(target: Target) -> type[FileConnection] | None:
    """The connection to a target's files; None for clouds and compatible hosts, which have no files API."""
    connection = _CONNECTIONS.get(target.route.adapter)
    has_files = target.provider == "openai" if connection is OpenAIFiles else target.route.cloud is None
    return connection if has_files else None


def refer_to_files(
    request: Request, target: Target
) -> tuple[Request, tuple[Attachment, ...], Mapping[str, str]]:
    """A request with references to the files that are too large for it, these files, and their headers."""
    attachments = list(attachments_of(request.messages))
    if not attachments:
        return request, (), {}
    connection = files_of(target)
    limits = None if connection is None else connection.limits
    uploaded: dict[str, Attachment] = {}
    for where, attachment in attachments:
        most = None if limits is None or not attachment.media_type.startswith("image/") else limits.image
        if not attachment.in_text or (most is not None and attachment.encoded_size > most):
            _check_upload(attachment, where, target, limits)
            uploaded[where] = attachment
    if limits is not None:
        uploaded |= _largest(request, limits, [entry for entry in attachments if entry[0] not in uploaded])
    if not uploaded:
        return request, (), {}
    assert limits is not None, "without a files API nothing is chosen"
    references = {id(attachment): attachment.reference for attachment in uploaded.values()}
    # Equal files are uploaded once.
    uploads = tuple({attachment.reference: attachment for attachment in uploaded.values()}.values())
    messages = with_references(request.messages, references)
    return replace(request, messages=messages), uploads, limits.headers


def _check_upload(attachment: Attachment, where: str, target: Target, limits: FileLimits | None) -> None:
    """Raise a `RequestError`, which tells the limit and what to do, for a file that cannot be uploaded."""
    size = f"{where} is a file ({attachment.media_type}) of {attachment.size / 1e6:.1f} MB, and"
    if limits is None:
        problem = (
            f"{target.provider} takes files of up to {MOST_BYTES / 1e6:.0f} MB, as it has no files API that "
            "this library knows: make it smaller, give its address, or use OpenAI, Anthropic or Gemini, "
            "where larger files are uploaded"
        )
    elif not attachment.media_type.startswith(limits.kinds):
        problem = (
            f"a request to {target.provider} holds files of up to {MOST_BYTES / 1e6:.0f} MB. Larger ones are "
            "uploaded, which it has for PDF and images alone: make it smaller"
        )
    elif attachment.size > limits.upload:
        problem = f"{target.provider} takes files of up to {limits.upload / 1e6:,.0f} MB: make it smaller"
    else:
        return
    raise RequestError(f"{size} {problem}", provider=target.provider, model=target.model)


def _largest(
    request: Request, limits: FileLimits, attachments: Sequence[tuple[str, Attachment]]
) -> dict[str, Attachment]:
    """The files to upload so that the others fit into one request: documents first, the largest first."""
    inside = sum(len(attachment) for _, attachment in attachments)
    if inside <= limits.request // 2:
        return {}
    left = len(orjson.dumps(request.messages, default=str)) - limits.request
    uploaded: dict[str, Attachment] = {}
    for where, attachment in sorted(
        attachments, key=lambda entry: (entry[1].media_type.startswith("image/"), -entry[1].size)
    ):
        if left <= 0:
            break
        if attachment.media_type.startswith(limits.kinds) and attachment.size <= limits.upload:
            uploaded[where] = attachment
            left -= len(attachment)
    return uploaded


def fill_references(
    encoded: EncodedRequest, ids: Mapping[str, str], body: bytes
) -> tuple[EncodedRequest, bytes]:
    """A request and its `body` in which the files have the ids of the provider for their references."""
    payload = with_ids(orjson.dumps(encoded.payload), ids)
    return replace(encoded, payload=orjson.loads(payload)), with_ids(body, ids)


def with_ids(body: bytes, identifiers: Mapping[str, str]) -> bytes:
    """A JSON body in which the files have the ids that the provider gave them.

    >>> with_ids(b'{"file_id":"llm_provider:sha256:0"}', {"llm_provider:sha256:0": "file-1"})
    b'{"file_id":"file-1"}'
    """
    for reference, identifier in identifiers.items():
        # The whole text: a question may quote a reference.
        body = body.replace(orjson.dumps(str(reference)), orjson.dumps(identifier))
    return body
