"""Uploads of files that are too large for a request: each once for a key, and remembered on disk.

A file is known by the SHA-256 of its content. Its id at the provider is remembered by provider, base URL, key
and content, in a small JSON file, until the provider deletes the file. Calls that need the same file at the
same time share one upload, in this process and, by a lease, in the others of the machine.

`refer_to_files` decides which files are too large for a request, and so uploaded, from their contents and the
documented limits alone. So a cache key does not depend on what is remembered. A provider with a files API has
a `FileConnection` in a module of its own.
"""

import abc
import asyncio
import contextlib
import hashlib
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import orjson

from ..._core.errors import BadRequestError, LLMError, NotFoundError, PermissionDeniedError, RequestError
from ..._core.formats.protocol import EncodedRequest
from ..._core.formats.registry import load_beside
from ..._core.formats.sdk_clients import close_clients
from ..._core.journey.attempt import send_with_retries
from ..._core.journey.call import Call
from ..._core.requests.api_keys import Credential
from ..._core.requests.attachments import Attachment, attachments_of, with_references
from ..._core.requests.media import MOST_BYTES
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from ..._core.runtime import clock, files
from ..._core.runtime.imports import when_imported
from ..._core.runtime.leases import Leases


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


_MARGIN_SECONDS = 1800.0
"""A file that the provider deletes sooner is uploaded again: the call may wait before it is sent."""


@dataclass(slots=True)
class _Flight:
    """An upload under way, and how many calls wait for it."""

    task: asyncio.Task[UploadedFile]
    waiting: int = 0


class Uploads:
    """The uploaded files of a client, shared by processes with the directory `leases`.

    Their ids are kept in `directory`, if there is one. A provider must keep a file for `kept` seconds.
    """

    def __init__(self, directory: Path | None, leases: Path | None, *, kept: float = 0.0) -> None:
        self._kept = kept
        self._directory = directory
        self._leases = Leases(leases)
        self._known: dict[str, UploadedFile] = {}
        self._under_way: dict[str, _Flight] = {}
        self._connections: dict[tuple[str, str | None, str], FileConnection] = {}

    def ids(self, call: Call[Any], key: Credential) -> dict[str, str] | None:
        """The id of each file of a call at the account of a key, by its reference; None if one is missing."""
        ids: dict[str, str] = {}
        for attachment in call.encoded.uploads:
            known = self._find_remembered(_name(call, key, attachment))
            if known is None:
                return None
            ids[attachment.reference] = known.identifier
        return ids

    async def upload(self, call: Call[Any], key: Credential, max_retries: int) -> dict[str, str]:
        """Upload the files of a call that a key's account lacks, and return all ids by reference."""
        ids: dict[str, str] = {}
        for attachment in call.encoded.uploads:
            name = _name(call, key, attachment)
            known = self._find_remembered(name)
            if known is not None:
                ids[attachment.reference] = known.identifier
                continue
            flight = self._under_way.get(name)
            if flight is None:
                work = self._upload_once(name, call, key, attachment, max_retries)
                flight = self._under_way[name] = _Flight(asyncio.create_task(work))
            flight.waiting += 1
            try:
                ids[attachment.reference] = (await asyncio.shield(flight.task)).identifier
            except LLMError as error:
                # The calls that share it get an exception each.
                raise copy(error) from None
            finally:
                flight.waiting -= 1
                if not flight.waiting:
                    if self._under_way.get(name) is flight:
                        del self._under_way[name]
                    flight.task.cancel()
        return ids

    def forget(self, call: Call[Any], key: Credential, used: Mapping[str, str], error: LLMError) -> bool:
        """Forget the files that a request used, if its error says that the provider has none of them."""
        if not isinstance(error, (BadRequestError, NotFoundError, PermissionDeniedError)):
            return False
        message = error.message.lower()
        named = any(identifier.rpartition("/")[2].lower() in message for identifier in used.values())
        if not named and not (isinstance(error, NotFoundError) and "file" in message):
            return False
        for attachment in call.encoded.uploads:
            name = _name(call, key, attachment)
            known = self._known.get(name)
            # Another call may have uploaded it again since.
            if known is not None and known.identifier == used.get(attachment.reference):
                del self._known[name]
                with contextlib.suppress(OSError):
                    files.remove_file(self._path(name))
        return True

    async def close(self) -> None:
        for connection in self._connections.values():
            await connection.close()
        self._connections.clear()
        self._leases.close()

    async def _upload_once(
        self, name: str, call: Call[Any], key: Credential, attachment: Attachment, max_retries: int
    ) -> UploadedFile:
        """Upload a file, unless another process does."""
        lease = self._leases.take(name) or await self._leases.wait(name)
        try:
            # Another process may have uploaded it meanwhile.
            uploaded = self._find_remembered(name)
            if uploaded is None:
                # The name tells people who look at their files where it is from.
                shown_name = f"llm_provider-{attachment.reference[-64:-48]}.{_suffix(attachment.media_type)}"
                uploaded = await send_with_retries(
                    lambda: self._connection(call, key).upload(attachment, shown_name),
                    call.adapter,
                    max_retries,
                )
                self._remember(name, uploaded)
        except LLMError as error:
            raise _explain(error, attachment, call) from None
        finally:
            if lease is not None:
                lease.release()
        return uploaded

    def _connection(self, call: Call[Any], key: Credential) -> FileConnection:
        target = call.target
        account = (target.route.adapter, target.base_url, key.identity)
        connection = self._connections.get(account)
        if connection is None:
            module = module_of(target)
            assert module is not None, "`refer_to_files` has asked for its limits"
            connect: Callable[[], FileConnection] = lambda: module.connect(target, key)  # noqa: E731  # a function would need its annotations twice
            connection = self._connections[account] = when_imported(connect)
        return connection

    def _path(self, name: str) -> Path:
        assert self._directory is not None
        return self._directory / f"{name}.json"

    def _find_remembered(self, name: str) -> UploadedFile | None:
        """The id of a file that is still at its provider."""
        known = self._known.get(name)
        if known is None and self._directory is not None:
            try:
                stored = orjson.loads(self._path(name).read_bytes())
                known = UploadedFile(str(stored["id"]), stored["expires"])
                if known.expires is not None:
                    known = known._replace(expires=float(known.expires))
            except (OSError, ValueError, KeyError, TypeError):
                # A file that another version wrote, or that was damaged, is written again.
                return None
            self._known[name] = known
        if known is None or known.expires is None:
            return known
        return known if known.expires - clock.time() >= self._kept + _MARGIN_SECONDS else None

    def _remember(self, name: str, uploaded: UploadedFile) -> None:
        self._known[name] = uploaded
        if self._directory is None:
            return
        # A full or read-only disk costs another upload in the next process, and no call.
        with contextlib.suppress(OSError):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with files.replace_file(self._path(name)) as file:
                file.write(orjson.dumps({"id": uploaded.identifier, "expires": uploaded.expires}))


def fill_references(
    encoded: EncodedRequest, ids: Mapping[str, str], body: bytes
) -> tuple[EncodedRequest, bytes]:
    """A request in which the files have the ids of the provider, by the references in `body`."""
    payload, body = fill_ids(encoded, body, ids)
    return replace(encoded, payload=payload), body


def _name(call: Call[Any], key: Credential, attachment: Attachment) -> str:
    target = call.target
    parts = [target.provider, target.base_url, key.identity, attachment.media_type, attachment.reference]
    return hashlib.sha256(orjson.dumps(parts, default=str)).hexdigest()


def _suffix(media_type: str) -> str:
    """The suffix of a file's name, by which OpenAI knows its kind."""
    name = media_type.rpartition("/")[2]
    return {"jpeg": "jpg", "mpeg": "mp3" if media_type.startswith("audio") else "mpg"}.get(name, name)


def _explain(error: LLMError, attachment: Attachment, call: Call[Any]) -> LLMError:
    """The error of an upload, which says that it is one."""
    size = f"{attachment.size / 1e6:.1f} MB"
    error.message = f"the upload of a file ({attachment.media_type}) of {size} failed: {error.message}"
    if isinstance(error, NotFoundError) and call.target.custom_base_url:
        error.message += (
            f"; {call.target.base_url} may have no files API: make the file small enough for a request"
        )
    error.args = (error.message,)
    return error
