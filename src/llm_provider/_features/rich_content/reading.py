"""Citations, images, audio and server tools in stored replies, for the properties of `Response`.

The module of each adapter here has the functions `citations`, `images`, `audio` and
`server_tool_calls`. They raise nothing, because an answer with other shapes than theirs is valid.
"""

import base64
import importlib
from typing import Any

from ..._core.json_values import JSONMapping
from ..._core.requests.routing import ROUTES
from .values import GeneratedAudio, GeneratedImage

_SIGNATURES = (
    (b"RIFF", "wav"), (b"fLaC", "flac"), (b"OggS", "opus"), (b"ID3", "mp3"), (b"\xff\xf1", "aac"),
    (b"\xff\xf9", "aac"), (b"\xff\xfb", "mp3"), (b"\xff\xf3", "mp3"), (b"\xff\xf2", "mp3"),
)  # fmt: skip


def read(name: str, provider: str, reply: Any) -> Any:
    """The "citations", "images", "audio" or "server_tool_calls" of a reply, or of the first of several.

    Servers of OpenAI's format also give "token_ids" and "prompt_token_ids".
    """
    if isinstance(reply, list):
        reply = reply[0] if reply else None
    route = ROUTES.get(provider)
    folder = "openai" if route is None or route.adapter == "litellm" else route.adapter
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
