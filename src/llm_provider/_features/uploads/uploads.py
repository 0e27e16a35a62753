"""Uploads of files that are too large for a request: each once for a key, and remembered on disk.

A file is known by the SHA-256 of its content. Its id at the provider is remembered by provider, base URL, key
and content, in a small JSON file, until the provider deletes the file. Calls that need the same file at the
same time share one upload, in this process and, by a lease, in the others of the machine.
"""

import asyncio
import contextlib
import hashlib
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from ..._core.errors import BadRequestError, LLMError, NotFoundError, PermissionDeniedError
from ..._core.journey.call import Call
from ..._core.journey.free_requests import send_with_retries
from ..._core.requests.api_keys import Credential
from ..._core.requests.attachments import Attachment
from ..._core.runtime import clock, files
from ..._core.runtime.imports import when_imported
from ..._core.runtime.leases import Leases
from .references import FileConnection, UploadedFile, files_of

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
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with files.replace_file(self._path(name)) as file:
                file.write(orjson.dumps({"id": uploaded.identifier, "expires": uploaded.expires}))


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
