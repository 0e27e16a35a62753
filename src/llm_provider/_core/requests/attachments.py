"""Files in a message that a request holds in base64, or that are uploaded before it.

`media` makes an `Attachment` of every file: the text that a request holds, so most code takes it for a str.
`_features/uploads/uploads` replaces those that are too large for a request by an `UploadReference`.
"""

import base64
import functools
import hashlib
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any, ClassVar, Self

from ..errors import RequestError
from ..json_values import JSONObject
from ..types.messages import Message

_PREFIX = "llm_provider:sha256:"

_FIELDS = {
    "image_url": ("image_url", "url"),
    "video_url": ("video_url", "url"),
    "file": ("file", "file_data"),
    "input_audio": ("input_audio", "data"),
}
"""The place of the data in each kind of content part."""


class UploadReference(str):
    """The text that stands for an uploaded file in a payload. It depends only on the content of the file.

    The cache key is made of it. The file's id at the provider takes its place when the request is sent.
    """

    __slots__ = ("media_type",)

    media_type: str

    def __new__(cls, digest: str, media_type: str) -> Self:
        """Name a file by the SHA-256 of its content."""
        made = super().__new__(cls, _PREFIX + digest)
        made.media_type = media_type
        return made

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]  # str's own has one argument
        return self.removeprefix(_PREFIX), self.media_type


class Attachment(str):
    """A file as the text that a request holds: a data URL, or base64 for audio.

    The text of a file that no request can hold is its name in messages. `path` is None if its content was
    given, and `data` is the content where neither the text nor a path has it. `size` is in bytes.
    """

    __slots__ = ("_reference", "data", "media_type", "path", "size")

    exist: ClassVar[bool] = False
    """Whether there is an attachment in this process. Calls without files look for none."""

    media_type: str
    size: int
    path: str | None
    data: bytes | None
    _reference: UploadReference | None

    def __new__(
        cls, text: str, media_type: str, size: int, path: str | None = None, data: bytes | None = None
    ) -> Self:
        made = super().__new__(cls, text)
        made.media_type, made.size, made.path, made.data = media_type, size, path, data
        made._reference = None
        Attachment.exist = True
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), self.media_type, self.size, self.path, self.data

    @property
    def in_text(self) -> bool:
        """Whether the text holds the content."""
        return self.path is None and self.data is None

    @property
    def encoded_size(self) -> int:
        """Bytes of the content in base64."""
        return -(-self.size // 3) * 4

    @property
    def reference(self) -> UploadReference:
        """The text that stands for the file once it is uploaded; a `RequestError` if it cannot be read."""
        if self._reference is None:
            try:
                if self.path is None:
                    digest = hashlib.sha256(self._content()).hexdigest()
                else:
                    digest = _digest_of_path(self.path, _version(os.stat(self.path)))  # noqa: PTH116 - pathlib is slow
            except OSError as error:
                raise RequestError(f"{self.path!r} cannot be read: {error.strerror or error}") from None
            self._reference = UploadReference(digest, self.media_type)
        return self._reference

    def open(self) -> IO[bytes]:
        """The content, to be read and closed; a `RequestError` if it has changed since, or is gone."""
        if self.path is None:
            return io.BytesIO(self._content())
        try:
            file = open(self.path, "rb")  # noqa: PTH123, SIM115 - the caller closes it
        except OSError as error:
            raise RequestError(f"{self.path!r} cannot be read: {error.strerror or error}") from None
        if _PREFIX + _digest_of_path(self.path, _version(os.fstat(file.fileno()))) != self.reference:
            file.close()
            raise RequestError(f"{self.path!r} has changed since the call began: call again")
        return file

    def _content(self) -> bytes:
        return base64.b64decode(self.rpartition(",")[2]) if self.data is None else self.data


def _version(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


@functools.lru_cache(maxsize=1024)
def _digest_of_path(path: str, version: tuple[int, int, int]) -> str:
    """The SHA-256 of a file. The calls of a batch that share a file read it once."""
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow
        return hashlib.file_digest(file, "sha256").hexdigest()


def attachments_of(messages: Sequence[Message]) -> Iterator[tuple[str, Attachment]]:
    """The attachments of a conversation, each with its place, such as "messages[0].content[1]"."""
    for number, message in enumerate(messages):
        content = message.get("content")
        if isinstance(content, (list, tuple)):
            for position, part in enumerate(content):
                attachment = _of_part(part)
                if attachment is not None:
                    yield f"messages[{number}].content[{position}]", attachment


def _of_part(part: Any) -> Attachment | None:
    names = _FIELDS.get(str(part.get("type"))) if isinstance(part, Mapping) else None
    inner = part.get(names[0]) if names is not None else None
    data = inner.get(names[1]) if names is not None and isinstance(inner, Mapping) else None
    return data if isinstance(data, Attachment) else None


def with_references(
    messages: Sequence[Message], uploaded: Mapping[int, UploadReference]
) -> tuple[JSONObject, ...]:
    """Copies of messages with references, by the `id()` of an attachment, in place of what is uploaded."""
    changed: list[JSONObject] = []
    for message in messages:
        content = message.get("content")
        changed.append(dict(message))
        if isinstance(content, (list, tuple)):
            parts = changed[-1]["content"] = list(content)
            for position, part in enumerate(parts):
                reference = uploaded.get(id(_of_part(part)))
                if reference is not None:
                    outer, inner = _FIELDS[part["type"]]
                    parts[position] = {**part, outer: {**part[outer], inner: reference}}
    return tuple(changed)
