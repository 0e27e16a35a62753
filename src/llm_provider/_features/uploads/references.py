"""Which files of a request are too large for it and so uploaded, and the references in their place.

Contents and documented limits alone decide it. So a cache key does not depend on what `uploads` remembers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from ..._core.errors import RequestError
from ..._core.formats.protocol import EncodedRequest
from ..._core.requests.attachments import Attachment, attachments_of, with_references
from ..._core.requests.media import MOST_BYTES
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from .connections import FileLimits, files_of


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
