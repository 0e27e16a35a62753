"""Citations, images, audio and server tools in stored replies, for the properties of `Response`.

A module `rich_content` beside each adapter has the functions `citations`, `images`, `audio` and
`server_tool_calls`. They raise nothing, because an answer with other shapes than theirs is valid.
"""

import base64
import importlib
from typing import Any

from ...json_values import JSONMapping, JSONObject
from ...requests.routing import ROUTES
from ...types.rich_content import GeneratedAudio, GeneratedImage

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
    module = importlib.import_module(f"llm_provider._core.formats.{folder}.rich_content")
    read_part = getattr(module, name, None)
    return None if read_part is None else read_part(reply if isinstance(reply, dict) else {})


def dicts(value: Any) -> list[JSONObject]:
    """The objects in a list; empty where it is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text(container: JSONMapping, *names: str) -> str | None:
    """The first of some fields that is a text which is not empty."""
    return next((value for name in names if isinstance(value := container.get(name), str) and value), None)


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
