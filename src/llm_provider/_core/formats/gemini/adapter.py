"""Gemini's `generateContent` format, as the protocol names its parts."""

from .continuation import continuation, join
from .decode import decode, map_error, split, usage
from .encode import encode
from .request_facts import facts, variant
from .stream import assembler

__all__ = [
    "assembler", "continuation", "decode", "encode", "facts", "join", "map_error", "split", "usage",
    "variant",
]  # fmt: skip
