"""Uploads of files that are too large for a request: each once for a key, and remembered on disk.

A file is known by the SHA-256 of its content. Its id at the provider is remembered by provider, base URL, key
and content, in a small JSON file, until the provider deletes the file. Calls that need the same file at the
same time share one upload, in this process and, by a lease, in the others of the machine.

Contents and documented limits alone decide which files are uploaded, so a cache key does not depend on what
`Uploads` remembers.

Facts from openai 2.54, anthropic 2.11, google-genai 3.4 and the guides of the providers. OpenAI: a message
refers to a PDF on both endpoints, to an image on Responses alone; requests of 50 MB with PDF in them are
taken, and larger ones with images, so ours have the size that Anthropic takes too. Anthropic: a request has
up to 32 MB, and an image in it up to 5 MiB in base64. Both keep a file until it is deleted, Google for 48
hours. Google processes a video first, and requests may refer to it once its state is ACTIVE.
"""

import abc
import asyncio
import contextlib
import hashlib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import orjson

from ..._core.errors import (
    APITimeoutError,
    BadRequestError,
    LLMError,
    NotFoundError,
    PermissionDeniedError,
    RequestError,
)
from ..._core.formats import sdk_clients
from ..._core.formats.protocol import EncodedRequest
from ..._core.journey.call import Call
from ..._core.journey.free_requests import send_with_retries
from ..._core.requests.api_keys import Credential
from ..._core.requests.attachments import Attachment, attachments_of, with_references
from ..._core.requests.media import MOST_BYTES
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from ..._core.runtime import clock, files
from ..._core.runtime.imports import when_imported
from ..._core.runtime.leases import Leases

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
    "gemini_interactions": GeminiFiles,
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
        lease = self._leases.take(name) or await self._leases.wait(name)
        try:
            # Another process may have uploaded it meanwhile.
            uploaded = self._find_remembered(name)
            if uploaded is None:
                # The name tells people who look at their files where it is from, and OpenAI the kind.
                kind, _, suffix = attachment.media_type.partition("/")
                others = {"jpeg": "jpg", "mpeg": "mp3" if kind == "audio" else "mpg"}
                file_name = f"llm_provider-{attachment.reference[-64:-48]}.{others.get(suffix, suffix)}"
                uploaded = await send_with_retries(
                    lambda: self._connection(call, key).upload(attachment, file_name),
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
            kind = files_of(target)
            assert kind is not None, "`refer_to_files` has asked for its limits"
            connection = self._connections[account] = when_imported(partial(kind, target, key))
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
            files.make_folder(self._directory)
            with files.replace_file(self._path(name)) as file:
                file.write(orjson.dumps({"id": uploaded.identifier, "expires": uploaded.expires}))


def _name(call: Call[Any], key: Credential, attachment: Attachment) -> str:
    target = call.target
    parts = [target.provider, target.base_url, key.identity, attachment.media_type, attachment.reference]
    return hashlib.sha256(orjson.dumps(parts, default=str)).hexdigest()


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
