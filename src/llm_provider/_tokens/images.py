"""How many tokens an image has, by the rules that OpenAI, Anthropic and Google publish. Pure.

The size is read from the first bytes of the file; an address counts as a square of 1024 pixels. The rules are
those of the providers' vision guides of November 2026, and were not compared with any invoice.
"""

import base64
import binascii
import math
import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from .range import Range

_UNKNOWN_SIZE = (1024, 1024)
_HEADER_CHARACTERS = 400_000
"""Characters of base64 within which the size is found. Cameras write a preview before the size."""

_GEMINI_DETAILS = {"low": 280, "medium": 560, "high": 1120, "ultra_high": 2240}
"""Tokens of an image for Gemini 3 and later."""

_OLD_GEMINI = re.compile(r"(models/)?gemini-[12]\b")
"""Models that cut an image into tiles. Their largest number is not published."""

_MOST_TOKENS = {"anthropic": 4784, "gemini": 2240, "openai": 48169}
"""The largest image that a published rule allows: Anthropic's high resolution, Gemini 3's "ultra high", eight
tiles of gpt-4o-mini."""


class _Tiles(NamedTuple):
    """The rule of models that see squares of 512 pixels: tokens of every image, and of each square."""

    base: int
    tile: int

    def tokens(self, width: float, height: float, detail: str) -> float:
        if detail == "low":
            return self.base
        scale = min(1, 2048 / max(width, height))
        scale = min(scale, 768 / min(width, height))
        tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
        return self.base + self.tile * tiles


class _Patches(NamedTuple):
    """The rule of models that see squares of 32 pixels: the tokens of a square, and the most squares."""

    factor: float
    most: int

    def tokens(self, width: float, height: float, detail: str) -> float:
        most = {"low": 256, "original": 10_000}.get(detail, self.most)
        return self.factor * min(most, math.ceil(width / 32) * math.ceil(height / 32))


_OPENAI: tuple[tuple[str, _Tiles | _Patches], ...] = (
    (r"gpt-4o-mini.*", _Tiles(2833, 5667)),
    (r"(gpt-4\.1|gpt-5)-mini.*", _Patches(1.62, 1536)),
    (r"(gpt-4\.1|gpt-5)-nano.*", _Patches(2.46, 1536)),
    (r"o4-mini.*", _Patches(1.72, 1536)),
    (r"(chatgpt-4o|gpt-4).*", _Tiles(85, 170)),
    (r"o[13](-.*)?", _Tiles(75, 150)),
    (r"gpt-5(-.*)?", _Tiles(70, 140)),
    (r".*-mini.*", _Patches(1.62, 1536)),
    (r".*-nano.*", _Patches(2.46, 1536)),
    (r".*", _Patches(1.0, 2500)),
)
"""The rule of a model is in the first row whose pattern matches its whole name."""


def image_tokens(provider: str, model: str, data: str | None, *, detail: str = "auto") -> Range:
    """About how many tokens an image in base64 has for a model; `detail` is that of `Medium`."""
    width, height = size_of(data) if data else _UNKNOWN_SIZE
    if provider == "openai":
        likely = next(rule for name, rule in _OPENAI if re.fullmatch(name, model)).tokens(
            width, height, detail
        )
        spread = (1.0, 1.0) if data else (0.2, 2.0)
    elif provider == "anthropic":
        old = re.match(r"claude-(3|[a-z]+-4-[0-6]\b)", model) is not None
        standard, fine = _claude(width, height, 1568, 1568), _claude(width, height, 2576, 4784)
        return Range(standard * (1 if data else 0.2), standard if old else fine, fine)
    elif provider == "gemini":
        likely = _gemini(model, width, height, detail)
        spread = (1.0, 1.0) if data else (0.25, 1.0)
    else:
        # Open models see squares of 14 to 32 pixels, and most models a bounded number of them.
        likely, spread = min(2500, math.ceil(width / 28) * math.ceil(height / 28)), (0.25, 3.0)
    return Range(likely * spread[0], likely, likely * spread[1])


def most_image_tokens(provider: str, model: str) -> int | None:
    """The most tokens that an image can have for a model; None if no published rule says."""
    tiled = provider == "gemini" and _OLD_GEMINI.match(model) is not None
    return None if tiled else _MOST_TOKENS.get(provider)


def _claude(width: int, height: int, edge: int, most: int) -> int:
    scale = min(1, edge / max(width, height))
    return min(most, math.ceil(width * scale / 28) * math.ceil(height * scale / 28))


def _gemini(model: str, width: int, height: int, detail: str) -> int:
    if _OLD_GEMINI.match(model) is None:
        return _GEMINI_DETAILS.get(detail, _GEMINI_DETAILS["high"])
    if max(width, height) <= 384:
        return 258
    unit = min(768, max(256, int(min(width, height) / 1.5)))
    return 258 * math.ceil(width / unit) * math.ceil(height / unit)


def size_of(data: str) -> tuple[int, int]:
    """Width and height in pixels of a PNG, JPEG, GIF or WebP file in base64; a guess for any other file."""
    head = data[:_HEADER_CHARACTERS]
    try:
        start = base64.b64decode(head[: len(head) // 4 * 4])
        size = next(_sizes(start), _UNKNOWN_SIZE)
    except (binascii.Error, struct.error, ValueError):
        return _UNKNOWN_SIZE
    return size if min(size) > 0 else _UNKNOWN_SIZE


def _sizes(file: bytes) -> Iterator[tuple[int, int]]:
    if file.startswith(b"\x89PNG"):
        yield struct.unpack_from(">II", file, 16)
    elif file.startswith(b"GIF8"):
        yield struct.unpack_from("<HH", file, 6)
    elif file[:4] == b"RIFF" and file[8:15] == b"WEBPVP8":
        yield _webp(file)
    elif file.startswith(b"\xff\xd8"):
        yield from _jpeg(file)


def _webp(file: bytes) -> tuple[int, int]:
    if file[15:16] == b"X":
        return 1 + int.from_bytes(file[24:27], "little"), 1 + int.from_bytes(file[27:30], "little")
    if file[15:16] == b"L":
        bits = int.from_bytes(file[21:25], "little")
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack_from("<HH", file, 26)
    return width & 0x3FFF, height & 0x3FFF


def _jpeg(file: bytes) -> Iterator[tuple[int, int]]:
    """The size in the frame header, which is one of a chain of segments that begin with their length."""
    start = 2
    while start + 9 <= len(file) and file[start] == 0xFF:
        kind, length = file[start + 1], int.from_bytes(file[start + 2 : start + 4], "big")
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", file, start + 5)
            yield width, height
        start += 2 + length
