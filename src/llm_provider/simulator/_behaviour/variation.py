"""Answers that differ from request to request, and those of a model that was changed.

Everything follows from hashes: of the prompt, and of the answer's identifier where answers differ.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .._settings import Settings
    from ..formats.wire_format import Prompt

__all__ = ["vary"]


def vary(text: str, prompt: Prompt, settings: Settings, identifier: str) -> str:
    """An answer to a prompt: the usual one, or another by the settings for noise and changes."""
    question = f"{prompt.model}\0{prompt.text}"
    if _draw("changed", question) < settings.changed:
        text = f"{text} Changed."
    if _draw("noise", question, identifier) < settings.noise:
        text = f"{text} Noise {identifier}."
    if _draw("border", question) < settings.border:
        # The likelier first word loses what the other one gains.
        likely = 0.5 + 0.2 * _draw("likely", question) - settings.border_shift
        text = f"{'Yes.' if _draw('first', question, identifier) < likely else 'No. '}{text}"
    return text


def _draw(*parts: str) -> float:
    """A number from 0 to 1 that looks random, and is the same for the same texts."""
    digest = blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
