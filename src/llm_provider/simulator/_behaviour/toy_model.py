"""A toy language model with a tokenizer: the probability of every token follows from the tokens before it.

It exists for the scores of given texts. Its tokenizer has the traits that make these hard: tokens of several
characters, a space in front of every text, a token that begins every text, and bytes for what it has no token
for. So " world" alone has other tokens than the same text within "Hello world".

>>> decode(encode("Hello world")), len(encode("Hello world")), len(encode(" world"))
('Hello world', 3, 3)
"""

from __future__ import annotations

import math
from functools import lru_cache
from hashlib import shake_256
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["BOS", "VOCABULARY", "Alternative", "decode", "encode", "find_piece", "predict", "score"]

BOS = 1
_BYTES = 3
"""The id of byte 0."""
_MEMORY = 3
"""The tokens before it on which a token depends."""
_SPREAD = 9.0
_RARE = 6.0
"""By how much a byte or a control token is less likely than a word."""

_SYLLABLES = [first + vowel for first in "bdfghklmnprstvwz" for vowel in "aeiou"]
_WORDS = "a an and are as at be by for from Hello he in is it ld of on or that the this to was what wor world"
_PIECES = [*dict.fromkeys([*_WORDS.split(), *_SYLLABLES]), ".", ",", "?", "\n"]
VOCABULARY: tuple[bytes, ...] = (
    b"<unk>", b"<s>", b"</s>", *(bytes([byte]) for byte in range(256)),
    *(piece.encode() for piece in _PIECES), *(f" {piece}".encode() for piece in _PIECES[:-4]),
)  # fmt: skip
_IDS = {piece: token for token, piece in enumerate(VOCABULARY) if token >= _BYTES}
_LONGEST = max(map(len, VOCABULARY))


class Alternative(NamedTuple):
    """A token that may come next."""

    token: int
    logprob: float


def encode(text: str, *, special: bool = True) -> list[int]:
    """The tokens of a text: the longest that fits, from the left. A text "<s>" within it is the token."""
    tokens = [BOS] if special else []
    for index, part in enumerate(text.split("<s>")):
        tokens += [BOS] if index else []
        rest = f" {part}".encode() if part else b""
        while rest:
            size = next(size for size in range(_LONGEST, 0, -1) if rest[:size] in _IDS)
            tokens.append(_IDS[rest[:size]])
            rest = rest[size:]
    return tokens


def decode(tokens: Sequence[int]) -> str:
    """The text of some tokens, without the token that begins a text and the space in front."""
    text = b"".join(VOCABULARY[token] for token in tokens if token >= _BYTES).decode("utf-8", "replace")
    return text.removeprefix(" ")


def find_piece(token: int) -> str:
    """The text of one token; an incomplete character is U+FFFD, as servers write it."""
    return VOCABULARY[token].decode("utf-8", "replace")


@lru_cache(maxsize=4096)
def _distribute(model: str, before: tuple[int, ...]) -> tuple[float, ...]:
    """The log-probability of each token."""
    raw = shake_256(repr((model, before)).encode()).digest(2 * len(VOCABULARY))
    logits = [
        int.from_bytes(raw[2 * token : 2 * token + 2], "big") / 65_535 * _SPREAD
        - (_RARE if token < _BYTES + 256 else 0.0)
        for token in range(len(VOCABULARY))
    ]
    whole = math.log(math.fsum(map(math.exp, logits)))
    return tuple(logit - whole for logit in logits)


def predict(model: str, before: Sequence[int], count: int = 1) -> list[Alternative]:
    """The most likely next tokens, the likeliest first."""
    logprobs = _distribute(model, tuple(before[-_MEMORY:]))
    order = sorted(range(len(logprobs)), key=lambda token: -logprobs[token])
    return [Alternative(token, logprobs[token]) for token in order[:count]]


def score(model: str, tokens: Sequence[int], index: int) -> float:
    """The log-probability of the token at an index, given those before it."""
    return _distribute(model, tuple(tokens[max(0, index - _MEMORY) : index]))[tokens[index]]
