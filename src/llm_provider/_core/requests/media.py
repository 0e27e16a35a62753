"""Files, bytes and images in the content of a message → content parts in OpenAI's form.

A file is recognised by its first bytes, as `bytes` have no name. The suffix of a path counts for text, and
for formats without a signature. No name of a file becomes part of a request, so the cache key depends on
contents only. A file that is too large for a request is not read here, because it is uploaded.
"""

import base64
import hashlib
import io
import os
import re
import stat
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeAlias

from .. import doors
from ..errors import RequestError, cite
from ..json_values import JSONMapping
from ..runtime.json_pieces import canonical
from ..types.messages import Message
from .attachments import Attachment, attachments_of, with_references

Part: TypeAlias = JSONMapping
"""A content part in OpenAI's form."""

MOST_BYTES = 22_000_000
"""The largest file that a request holds. In base64 it nearly fills the largest request."""

_TAKEN = (
    "images (PNG, JPEG, WebP, GIF), PDF, audio (WAV, MP3, FLAC, Ogg, AAC, AIFF), video (MP4, MPEG, MOV, "
    "WebM, AVI) and text"
)

PART_TYPES = frozenset({"text", "image_url", "input_audio", "file"})
"""The content parts of OpenAI's messages."""

_SIGNATURES = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
    (b"FLV\x01", "video/x-flv"),
    (b"\x00\x00\x01\xba", "video/mpeg"),
    (b"\x00\x00\x01\xb3", "video/mpeg"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "video/wmv"),
    (b"BM", "image/bmp"),
    (b"II*\x00", "image/tiff"),
    (b"MM\x00*", "image/tiff"),
    (b"PK\x03\x04", "application/zip"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/avi"}
_BRANDS = (
    (b"hei", "image/heic"),
    (b"hev", "image/heic"),
    (b"mif1", "image/heif"),
    (b"msf1", "image/heif"),
    (b"avi", "image/avif"),
    (b"M4A", "audio/mp4"),
    (b"qt  ", "video/quicktime"),
    (b"3g", "video/3gpp"),
)
"""The types of the ISO base media format, by the beginning of the brand that follows `ftyp`."""

_WITHOUT_SIGNATURE = {".mp3": "audio/mpeg", ".aac": "audio/aac", ".mpg": "video/mpeg", ".mpeg": "video/mpeg"}
"""Types whose files may begin with any bytes."""

# fmt: off
_MEDIA_SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".gif", ".webp", ".heic", ".heif", ".avif", ".bmp", ".tif", ".tiff",
     ".pdf", ".wav", ".flac", ".ogg", ".opus", ".aiff", ".aif", ".m4a", ".mp4", ".m4v", ".mov",
     ".avi", ".webm", ".mkv", ".flv", ".wmv", ".3gp"}
)
_TEXT_SUFFIXES = frozenset(
    {".txt", ".text", ".md", ".markdown", ".rst", ".csv", ".tsv", ".json", ".jsonl", ".ndjson",
     ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".xml", ".html", ".htm", ".svg", ".css",
     ".py", ".pyi", ".ipynb", ".js", ".ts", ".tsx", ".jsx", ".java", ".kt", ".c", ".h", ".cc",
     ".cpp", ".hpp", ".cs", ".rs", ".go", ".rb", ".php", ".swift", ".scala", ".r", ".jl", ".m",
     ".lua", ".pl", ".sh", ".sql", ".tex", ".bib", ".log", ".srt", ".vtt", ".diff", ".patch"}
)
# fmt: on

_HEAD_BYTES = 64
"""The beginning of a file that tells its kind."""

_AUDIO_FORMATS = {"mpeg": "mp3", "mp4": "m4a"}
"""OpenAI's names of audio formats, where the media type has another name."""

OTHER_TYPES = {"image/jpg": "image/jpeg"}
"""Common names of types that are not registered. Claude and Gemini refuse them:
NousResearch/hermes-agent#55432, ogkalu2/comic-translate#399."""

_REMEDIES = {
    **dict.fromkeys(
        ("image/bmp", "image/tiff", "image/avif"), "convert it, or give it as PIL.Image.open(path)"
    ),
    "application/zip": "export an office document as PDF, or give its text",
    "video/x-matroska": "convert it to MP4",
}
"""Types that no provider takes."""


def prompt_message(prompt: Sequence[object]) -> Message:
    """The user message for a list of contents that is given as the prompt."""
    roles = [isinstance(content, Mapping) and "role" in content for content in prompt]
    if any(roles):
        other = roles.index(False)
        raise RequestError(
            f"messages[{roles.index(True)}] is a message with a role and messages[{other}] is a "
            f"{type(prompt[other]).__name__}: give a list of messages, such as "
            "[{'role': 'user', 'content': ['What is this?', Path('a.png')]}], or a list of contents, "
            "such as ['What is this?', Path('a.png')]"
        )
    if all(isinstance(content, str) for content in prompt):
        raise RequestError(
            "messages[0] must be a dict with 'role' and 'content', not str: a list of texts alone is no "
            "prompt; join them to one str, or give several prompts to call_many()"
        )
    return {"role": "user", "content": _encode_parts(prompt, "messages")}


def with_parts(message: Message, where: str) -> Message:
    """A message whose content is a list of OpenAI's parts; a `RequestError` if one cannot be sent."""
    content = message["content"]
    where = f"{where}.content"
    is_list = isinstance(content, (list, tuple))
    return {**message, "content": _encode_parts(content, where) if is_list else [part_of(content, where)]}


def prompt_remedy(prompt: object) -> str:
    """How to write a prompt that is neither text nor a list."""
    if is_medium(prompt):
        return ": give a list, as in ['What is this?', Path('a.png')]"
    return _suggest(prompt) or doors.remedies.prompt_remedy(prompt)


def is_medium(content: object) -> bool:
    """Whether a value is a file or an image that a message may hold."""
    return isinstance(content, (os.PathLike, bytes, bytearray, memoryview)) or is_image(content)


def _encode_parts(contents: Sequence[object], where: str) -> list[Part]:
    return [part_of(content, f"{where}[{position}]") for position, content in enumerate(contents)]


class Contents(str):
    """The contents that `embed` makes one vector of, where one is no text. Equal contents have equal texts.

    `parts` are in OpenAI's form, and `size` is the bytes of their JSON without files that are uploaded.
    """

    __slots__ = ("parts", "size")

    parts: tuple[Part, ...]
    size: int

    def __new__(cls, parts: Sequence[Part]) -> Self:
        message = {"role": "user", "content": parts}
        # The text of a file that no request can hold does not tell its content.
        files = {id(file): file.reference for _, file in attachments_of([message]) if not file.in_text}
        body = canonical(with_references([message], files)[0]["content"])
        made = super().__new__(cls, f"contents:sha256:{hashlib.sha256(body).hexdigest()}")
        made.parts, made.size = tuple(parts), len(body)
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (self.parts,)

    @property
    def tokens(self) -> int:
        """About how many tokens they have, to compare them with texts."""
        # 258 are those of an image for gemini-embedding-2.
        return sum(len(part["text"]) // 4 + 1 if part["type"] == "text" else 258 for part in self.parts)


def contents_of(value: Any, where: str) -> str:
    """What `embed` makes one vector of: a text, or `Contents`. `value` is one content, or a list of them."""
    listed = isinstance(value, (list, tuple))
    parts = _encode_parts(value, where) if listed else [part_of(value, where)]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return str(parts[0]["text"])
    return Contents(parts)


def part_of(content: object, where: str) -> Part:
    """One content as a part in OpenAI's form. A dict with a type stays as it is."""
    if isinstance(content, Mapping):
        return _check_part(content, where)
    if isinstance(content, str):
        if not content:
            raise RequestError(f"{where} is an empty text; leave it out")
        return {"type": "text", "text": content}
    if isinstance(content, os.PathLike):
        return _encode_file(os.fspath(content), where)
    if isinstance(content, (bytes, bytearray, memoryview)):
        return _encode_bytes(bytes(content), where)
    if is_image(content):
        return _encode_bytes(_encode_png(content, where), where)
    fields = doors.sdk_messages.plain_part(content)
    if isinstance(fields, Mapping):
        # A part or a block of an SDK.
        return _check_part(fields, where)
    raise RequestError(
        f"{where} must be a str, a Path, bytes, a PIL image or a dict with a 'type', not "
        f"{type(content).__name__}{_suggest(content) or doors.remedies.part_remedy(content)}"
    )


def _check_part(part: Part, where: str) -> Part:
    """A content part as the user wrote it. Providers check the parts of other types than OpenAI's."""
    kind = part.get("type")
    if not isinstance(kind, str):
        raise RequestError(f"{where} must be a dict with a 'type', such as {{'type': 'text', 'text': '...'}}")
    if kind == "text" and not isinstance(part.get("text"), str):
        raise RequestError(
            f"{where}.text must be a str, not {cite(part.get('text'))}: write "
            "{'type': 'text', 'text': '...'}"
        )
    if kind == "image_url":
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, Mapping) else image
        scheme = url.partition(":")[0] if isinstance(url, str) else url
        if not isinstance(url, Attachment) and scheme in (url, "file"):
            raise RequestError(
                f"{where}.image_url must have an https or data:image URL, not {cite(url)}: write "
                "{'url': 'https://...'}, or Path('cat.png') in place of the part for a file"
            )
        if image is url:  # litellm's form, which Chat Completions refuses
            return {**part, "image_url": {"url": url}}
    return part


def _suggest(content: object) -> str:
    """How to write a value that is no content, where its class suggests what is meant."""
    package = type(content).__module__.partition(".")[0]
    if package == "numpy":
        return ": write PIL.Image.fromarray(array) for an image, or array.tolist() as text"
    if package in ("torch", "tensorflow", "jax", "jaxlib"):
        return ": for an image, convert it to a NumPy array and write PIL.Image.fromarray(array)"
    if package == "matplotlib":
        return ": write it to a buffer with savefig(buffer, format='png') and give buffer.getvalue()"
    if isinstance(content, io.BytesIO):
        return ": write buffer.getvalue()"
    if isinstance(content, io.IOBase):
        return ": give the path as a Path, or the bytes that read() returns"
    return ""


def _encode_file(path: str | bytes, where: str) -> Part:
    path = os.fsdecode(path)
    data, size = _read(path, where)
    suffix = os.path.splitext(path)[1].lower()  # noqa: PTH122 - pathlib is slow
    kind = media_type(data)
    if suffix in _TEXT_SUFFIXES and (kind is None or kind == "image/bmp"):
        if size > MOST_BYTES:
            raise RequestError(
                f"{where}: the text file {path!r} has {size / 1e6:.1f} MB, and the limit is "
                f"{MOST_BYTES / 1e6:.0f} MB: give the part of it that matters"
            )
        try:
            return {"type": "text", "text": data.decode("utf-8-sig")}
        except UnicodeDecodeError:
            raise RequestError(f"{where}: the file {path!r} is not UTF-8 text") from None
    if kind is None:
        kind = _WITHOUT_SIGNATURE.get(suffix)
    if kind is None and suffix in _MEDIA_SUFFIXES:
        raise RequestError(f"{where}: the content of {path!r} is not of the kind that its name says")
    if kind is None or kind in _REMEDIES:
        remedy = _REMEDIES.get(kind or "", "for a text file, give path.read_text()")
        raise RequestError(
            f"{where}: the file {path!r} is {kind or 'of an unknown kind'}. A Path may be {_TAKEN}: {remedy}"
        )
    return _attach(data, kind, size, path)


def _read(path: str, where: str) -> tuple[bytes, int]:
    """The content of a file, or its beginning if it is larger than a request can hold, and its size."""
    try:
        status = os.stat(path)  # noqa: PTH116 - pathlib is slow
        problem = None
        if stat.S_ISDIR(status.st_mode):
            problem = "is a folder; give one Path for each file in it"
        elif not stat.S_ISREG(status.st_mode):
            problem = "is not a regular file"
        else:
            with open(path, "rb") as file:  # noqa: PTH123 - pathlib is slow
                data = file.read(-1 if status.st_size <= MOST_BYTES else _HEAD_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        hint = "" if os.path.isabs(path) else f" in {os.getcwd()!r}"  # noqa: PTH109, PTH117 - as above
        hint = ": write Path(...).expanduser()" if path.startswith("~") else hint
        raise RequestError(f"{where}: there is no file {path!r}{hint}") from None
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    if problem is not None:
        raise RequestError(f"{where}: {path!r} {problem}")
    if not data:
        raise RequestError(f"{where}: the file {path!r} is empty")
    return data, max(len(data), status.st_size)


def _encode_bytes(data: bytes, where: str) -> Part:
    if not data:
        raise RequestError(f"{where} is empty bytes; leave it out")
    kind = media_type(data)
    if kind is None or kind in _REMEDIES:
        remedy = _REMEDIES.get(kind or "", "for text, give data.decode()")
        raise RequestError(
            f"{where} is bytes of {kind or 'an unknown kind'}. Bytes may be "
            f"{_TAKEN.removesuffix(' and text')}: {remedy}"
        )
    return _attach(data, kind, len(data))


def media_type(data: bytes) -> str | None:
    """The media type of a file by its first bytes; None where they tell none."""
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    if data[:4] == b"FORM" and data[8:12] in (b"AIFF", b"AIFC"):
        return "audio/aiff"
    if data[4:8] == b"ftyp":
        brand = data[8:12]
        return next((kind for start, kind in _BRANDS if brand.startswith(start)), "video/mp4")
    if data[:4] == b"\x1a\x45\xdf\xa3":
        return "video/webm" if b"webm" in data[:64] else "video/x-matroska"
    if data[:1] == b"\xff" and len(data) > 2:
        if data[1] & 0xF6 == 0xF0:
            return "audio/aac"
        # A frame of MPEG's layer III, with a bit rate and a sampling rate that exist.
        if data[1] & 0xE6 == 0xE2 and data[2] >> 4 not in (0, 15) and data[2] >> 2 & 3 != 3:
            return "audio/mpeg"
    return next((kind for start, kind in _SIGNATURES if data.startswith(start)), None)


def image_type(declared: str, data: str) -> str:
    """The type of an image in base64, by its first bytes if they tell one.

    Claude refuses another type than the image has: anthropics/claude-code#35234.

    >>> image_type("image/png", "/9j/4AAQSkZJRgABAQAAAQABAAD"), image_type("image/jpg", "aGk=")
    ('image/jpeg', 'image/jpeg')
    """
    try:
        seen = media_type(base64.b64decode(data[: min(len(data), _HEAD_BYTES) // 4 * 4]))
    except ValueError:
        seen = None
    return seen if seen is not None and seen.startswith("image/") else OTHER_TYPES.get(declared, declared)


def _attach(data: bytes, kind: str, size: int, path: str | None = None) -> Part:
    """The part of a file. One that no request can hold is uploaded: from its path if it has one."""
    family, _, name = kind.partition("/")
    if size > MOST_BYTES:
        # An absolute path, as the working directory may change before the file is uploaded.
        where = None if path is None else os.path.abspath(path)  # noqa: PTH100 - pathlib is slow
        attachment = Attachment(f"{kind} of {size} bytes", kind, size, where, data if path is None else None)
    else:
        text = base64.b64encode(data).decode()
        attachment = Attachment(text if family == "audio" else f"data:{kind};base64,{text}", kind, size)
    if family == "audio":
        form = _AUDIO_FORMATS.get(name, name)
        return {"type": "input_audio", "input_audio": {"data": attachment, "format": form}}
    if family in ("image", "video"):
        return {"type": f"{family}_url", f"{family}_url": {"url": attachment}}
    # OpenAI requires a name. The file's own name would make the cache key depend on the path.
    return {"type": "file", "file": {"filename": "document.pdf", "file_data": attachment}}


def is_image(content: object) -> bool:
    """Whether a value is an image of Pillow, which is imported if there is one."""
    pillow = sys.modules.get("PIL.Image")
    return pillow is not None and isinstance(content, pillow.Image)


def _encode_png(image: Any, where: str) -> bytes:
    buffer = io.BytesIO()
    try:
        image.save(buffer, format="PNG")
    except (OSError, ValueError) as error:
        mode = re.sub(r"\s+", " ", str(error))
        raise RequestError(
            f"{where} is a PIL image that has no form as PNG ({mode}): write image.convert('RGB')"
        ) from None
    return buffer.getvalue()
