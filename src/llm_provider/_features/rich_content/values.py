"""The parts of an answer besides its text: citations, images, audio, and tools that the provider ran.

The module of each adapter here has the functions `citations`, `images`, `audio` and `server_tool_calls`. They
raise nothing, because an answer with other shapes than theirs is valid.
"""

import base64
import html
import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._core.errors import RequestError
from ..._core.formats.shared.replies import text
from ..._core.json_values import JSONMapping, JSONObject
from ..._core.requests.routing import ROUTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A source that an answer cites. A field is None where the provider does not tell it.

    Attributes:
        start: Where the text that the source supports begins in `Response.text`, in characters.
        end: Where it ends.
        url: The address of the source.
        title: The title of the page or the document, or the name of the file.
        quote: The text of the source that is cited.
        document_index: The number of the document among the documents of the request, from 0.
        file_id: The provider's id of the file.
        raw: The citation in the provider's own form, with its other fields, such as pages.
    """

    start: int | None = None
    end: int | None = None
    url: str | None = None
    title: str | None = None
    quote: str | None = None
    document_index: int | None = None
    file_id: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def cite(entry: JSONMapping, start: int | None = None, end: int | None = None, **fields: str) -> Citation:
    """The citation of an entry. `fields` are the names of fields that may hold a text, parted by spaces."""
    texts: JSONObject = {name: text(entry, *names.split()) for name, names in fields.items()}
    return Citation(start=start, end=end, raw=entry, **texts)


_PICTURES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The types that notebooks show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedImage:
    """An image that a model made. Notebooks show it, or a link to its `url`.

    `data` is the file, which is empty if the provider gave only its `url`.

    >>> GeneratedImage(data=b"GIF89a", media_type="image/gif")
    GeneratedImage('image/gif', 6 bytes)
    """

    data: bytes = field(default=b"", repr=False)
    media_type: str = "image/png"
    url: str | None = None

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file.

        Raises:
            RequestError: the provider gave only the address of the image.
        """
        if not self.data:
            raise RequestError(f"the provider gave only the address of this image: {self.url}")
        with open(path, "wb") as file:  # noqa: PTH123 - pathlib is slow to import
            file.write(self.data)

    def __repr__(self) -> str:
        content = f"{len(self.data)} bytes" if self.data else repr(self.url)
        return f"GeneratedImage({self.media_type!r}, {content})"

    def _repr_png_(self) -> bytes | None:
        return self.data if self.data and self.media_type == "image/png" else None

    def _repr_jpeg_(self) -> bytes | None:
        return self.data if self.data and self.media_type == "image/jpeg" else None

    def _repr_html_(self) -> str:
        if self.data and self.media_type in _PICTURES:
            return f'<img src="{_address(self.media_type, self.data)}">'
        # A page would load an address by itself, and tell its server who reads the notebook. A picture of
        # another type, such as SVG, may hold such addresses.
        label = html.escape(self.url or repr(self))
        if (self.url or "").startswith(("https://", "http://")):
            return f'<a href="{label}" rel="noopener noreferrer" target="_blank">{label}</a>'
        return label


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneratedAudio:
    """Speech or sound that a model made. Notebooks have a player for it.

    Attributes:
        data: The bytes, in `format`.
        format: "wav", "mp3", "flac", "opus", "aac", or "pcm16" for samples without a header: 16 bits,
            little-endian, one channel.
        sample_rate: Samples a second, if the format is "pcm16".
        transcript: The words; empty if the provider gives none.

    >>> GeneratedAudio(data=bytes(48_000), format="pcm16", sample_rate=24_000)
    GeneratedAudio('pcm16', 48000 bytes)
    """

    data: bytes = field(default=b"", repr=False)
    format: str = "wav"
    sample_rate: int | None = None
    transcript: str = ""

    @property
    def playable(self) -> bytes:
        """The bytes of a file that players know: samples without a header get one of WAV."""
        if self.format != "pcm16":
            return self.data
        import io
        import wave

        buffer = io.BytesIO()
        with wave.open(buffer, "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(self.sample_rate or 24_000)
            file.writeframes(self.data)
        return buffer.getvalue()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `playable` to a file. Samples without a header become a WAV file."""
        with open(path, "wb") as file:  # noqa: PTH123 - pathlib is slow to import
            file.write(self.playable)

    def __repr__(self) -> str:
        said = f", {self.transcript!r}" if self.transcript else ""
        return f"GeneratedAudio({self.format!r}, {len(self.data)} bytes{said})"

    def _repr_html_(self) -> str:
        name = {"pcm16": "wav", "mp3": "mpeg", "opus": "ogg"}.get(self.format, self.format)
        return f'<audio controls src="{html.escape(_address(f"audio/{name}", self.playable))}"></audio>'


def _address(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}" if data else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerToolCall:
    """A call of a tool that the provider ran itself, such as a web search.

    Attributes:
        name: The name of the tool, such as "web_search" or "code_execution".
        arguments: The arguments as Python values, as far as the provider gives them.
        result: The result in the provider's form; None where the answer does not hold it.
        id: The provider's id of the call, or None.
    """

    name: str
    arguments: Any = None
    result: Any = None
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCacheMiss:
    """Why a provider could not read the beginning of a prompt from its prompt cache.

    Attributes:
        reason: The provider's word: at Anthropic "model_changed", "system_changed", "tools_changed",
            "messages_changed", "previous_message_not_found" or "unavailable"; OpenAI also has
            "input_changed", "prompt_cache_key_changed", "comparison_response_not_found" and others.
        missed_tokens: About how many more tokens the provider would have read from there; None where it
            does not say.
    """

    reason: str
    missed_tokens: int | None = None


_SIGNATURES = (
    (b"RIFF", "wav"), (b"fLaC", "flac"), (b"OggS", "opus"), (b"ID3", "mp3"), (b"\xff\xf1", "aac"),
    (b"\xff\xf9", "aac"), (b"\xff\xfb", "mp3"), (b"\xff\xf3", "mp3"), (b"\xff\xf2", "mp3"),
)  # fmt: skip


def read(name: str, provider: str, reply: Any) -> Any:
    """The "citations", "images", "audio", "server_tool_calls" or "prompt_cache_miss" of the first reply.

    Servers of OpenAI's format also give "token_ids" and "prompt_token_ids".
    """
    if isinstance(reply, list):
        reply = reply[0] if reply else None
    route = ROUTES.get(provider)
    folder = "openai" if route is None or route.adapter == "litellm" else route.adapter
    if folder == "gemini" and isinstance(reply, dict) and "steps" in reply:
        folder = "gemini_interactions"
    module = importlib.import_module(f"llm_provider._features.rich_content.{folder}")
    read_part = getattr(module, name, None)
    return None if read_part is None else read_part(reply if isinstance(reply, dict) else {})


def number(container: JSONMapping, name: str, offset: int = 0) -> int | None:
    """A field that is a whole number, moved by an offset."""
    value = container.get(name)
    return value + offset if type(value) is int else None


def decode_base64(data: Any) -> bytes:
    """The bytes of a text in base64; empty if it is none."""
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except ValueError:
        return b""


def image_at(address: Any) -> GeneratedImage | None:
    """The image at a data: URL or another one."""
    if not isinstance(address, str) or not address:
        return None
    head, _, data = address.partition(";base64,")
    if not address.startswith("data:"):
        return GeneratedImage(url=address)
    content = decode_base64(data)
    return GeneratedImage(data=content, media_type=head.removeprefix("data:")) if content else None


def audio_of(data: bytes, transcript: str = "") -> GeneratedAudio | None:
    """Audio whose format shows in its first bytes. Without a header it is OpenAI's PCM, of 24,000 Hz."""
    if not data:
        return GeneratedAudio(transcript=transcript) if transcript else None
    form = next((form for start, form in _SIGNATURES if data.startswith(start)), "pcm16")
    rate = 24_000 if form == "pcm16" else None
    return GeneratedAudio(data=data, format=form, sample_rate=rate, transcript=transcript)
