"""The protocol of file connections. The adapter of each provider with a files API has one in `files`.

`refer_to_files` decides which files are too large for a request, and so uploaded, from their contents and the
documented limits alone. So a cache key does not depend on what `_features/uploads/uploads` remembers.
"""

import abc
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, cast

import orjson

from ..._core.errors import RequestError
from ..._core.formats.protocol import EncodedRequest
from ..._core.formats.registry import load_beside
from ..._core.formats.sdk_clients import close_clients
from ..._core.requests.api_keys import Credential
from ..._core.requests.attachments import Attachment, attachments_of, with_references
from ..._core.requests.media import MOST_BYTES
from ..._core.requests.request import Request
from ..._core.requests.routing import Target


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

    def __init__(self, client: Any) -> None:
        self._client = client

    @abc.abstractmethod
    async def upload(self, attachment: Attachment, name: str) -> UploadedFile:
        """Upload a file under a name, and wait until requests may refer to it."""

    async def close(self) -> None:
        await close_clients(self._client)


class FileModule(Protocol):
    """A module `files` beside an adapter."""

    def limits(self, target: Target) -> FileLimits | None:
        """How much a request and an upload may hold; None where the host has no files API."""

    def connect(self, target: Target, key: Credential) -> FileConnection:
        """A connection for one account; imports the SDK."""


def module_of(target: Target) -> FileModule | None:
    """The module that uploads files to a target; None if it has no files API."""
    module = cast("FileModule | None", load_beside(target.route.adapter, "files"))
    return None if module is None or module.limits(target) is None else module


def refer_to_files(
    request: Request, target: Target
) -> tuple[Request, tuple[Attachment, ...], Mapping[str, str]]:
    """A request with references to the files that are too large for it, these files, and their headers."""
    attachments = list(attachments_of(request.messages))
    if not attachments:
        return request, (), {}
    module = module_of(target)
    limits = None if module is None else module.limits(target)
    uploaded: dict[str, Attachment] = {}
    for where, attachment in attachments:
        if _needs_upload(attachment, limits):
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


def _needs_upload(attachment: Attachment, limits: FileLimits | None) -> bool:
    if not attachment.in_text:
        return True
    most = None if limits is None else limits.image
    return most is not None and attachment.media_type.startswith("image/") and attachment.encoded_size > most


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


def fill_ids(encoded: EncodedRequest, body: bytes, identifiers: Mapping[str, str]) -> tuple[Any, bytes]:
    """The payload and `body` with the ids that the provider gave the files, instead of their references."""
    payload = with_ids(orjson.dumps(encoded.payload), identifiers)
    return orjson.loads(payload), with_ids(body, identifiers)


def with_ids(body: bytes, identifiers: Mapping[str, str]) -> bytes:
    """A JSON body in which the files have the ids that the provider gave them.

    >>> with_ids(b'{"file_id":"llm_provider:sha256:0"}', {"llm_provider:sha256:0": "file-1"})
    b'{"file_id":"file-1"}'
    """
    for reference, identifier in identifiers.items():
        # The whole text: a question may quote a reference.
        body = body.replace(orjson.dumps(str(reference)), orjson.dumps(identifier))
    return body
