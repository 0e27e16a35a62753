"""Gemini's `generateContent` format, as the protocol names its parts."""

from .decode import decode, map_error, split, usage
from .encode import encode
from .request_facts import facts, variant
from .stream import assembler

__all__ = ["assembler", "decode", "encode", "facts", "map_error", "split", "usage", "variant"]
