"""How many tokens a request has, before it is sent.

- `likely_input_tokens` costs almost nothing; rate control uses it.
- `input_tokens` reads the texts; estimates use it.
- `most_input_tokens` and `most_output_tokens` are upper bounds; budgets use them.

docs/prices.md gives the sources of the figures and their errors.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..formats.shared.payload import RequestFacts
from ..requests.routing import Target, maker_names
from ..runtime.json_pieces import canonical
from ..types.usage import Usage
from .model_limits import limits_of_target
from .text import text_tokens
from .tokenizer import ENCODINGS, vocabulary_of

_BYTES_PER_TOKEN = 4
"""Bytes of a request's body per token. o200k_base has 3 to 5 in texts of all scripts: Chinese has more tokens
per character than English, but also more bytes."""

_COMMON_VOCABULARY = "o200k_base"
"""Tokenizers without published weights are estimated with this vocabulary."""

_LONG_BODY = 8192
"""Bytes. A shorter body holds no image that is worth searching for."""

_MOST_TEMPLATE_TOKENS = 2048
"""The most tokens that a provider may add around a conversation. The largest published figure is 804, the
system prompt for tools of Anthropic's oldest models; chat templates of open models begin with some dozens."""

_SEARCHING_MODEL = re.compile(r"search|sonar|compound|:online")
"""Names of models that search before they answer, so that the length of their input is not known."""

_LIKELY_TOKENS = {"image": 1120, "audio": 1500, "video": 10_000, "application": 10_000}
"""Tokens of a medium, for sums: an image at Gemini 3's default, a minute of sound, five pages."""

_LIMITS_COUNT_MAX_TOKENS = frozenset({"openai", "azure", "bedrock", "bedrock_mantle"})
"""Providers whose rate limits count `max_tokens`, however short the answer is (the guides to limits of
OpenAI, Azure and Bedrock)."""


class Range(NamedTuple):
    """A number that is not known exactly. It is between `low` and `high`, and probably near `likely`.

    >>> low, likely, high = Range(1, 2, 4)
    >>> Range(1, 2, 4).plus(Range(10, 10, 10)).times(2)
    Range(low=22, likely=24, high=28)
    """

    low: float
    likely: float
    high: float

    @classmethod
    def exactly(cls, number: float) -> Range:
        """A range of one number, which is known exactly.

        >>> Range.exactly(3)
        Range(low=3, likely=3, high=3)
        """
        return cls(number, number, number)

    def plus(self, other: Range) -> Range:
        """The sum of two ranges."""
        return Range(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def times(self, factor: float | Range) -> Range:
        """The product with a number, or with another range of positive numbers."""
        low, likely, high = factor if isinstance(factor, Range) else (factor, factor, factor)
        return Range(self.low * low, self.likely * likely, self.high * high)


class _Tokenizer(NamedTuple):
    """How many tokens a tokenizer makes of one of `TextTokens`."""

    english: Range
    other: Range


_MEASURED = _Tokenizer(Range(0.8, 1.0, 1.25), Range(0.8, 1.0, 1.25))
"""OpenAI's vocabularies: `python -m benchmarks tokens` compares the estimate with their counts."""

_LIKE = _Tokenizer(Range(0.75, 1.0, 1.35), Range(0.7, 1.0, 1.4))
"""Vocabularies that were measured too, where the model may have another version of them."""

_OWN = _Tokenizer(Range(0.85, 1.05, 1.4), Range(0.65, 1.1, 2.5))
"""An unknown vocabulary, compared with `o200k_base`."""

_ANTHROPIC = _Tokenizer(Range(0.95, 1.2, 1.6), Range(0.9, 1.4, 3.0))
"""Compared with `o200k_base`. Anthropic says that its tokenizer of 2026 makes up to 1.35 times as many tokens
as the one before, which made somewhat more than OpenAI's."""

_TEMPLATE, _PER_TURN = Range(0, 3, 30), Range(2, 4, 8)
"""Tokens around a conversation, and around each of its messages. OpenAI publishes 3, and 3 to 4."""

_STRUCTURE = Range(0.5, 0.9, 1.5)
"""Tokens of tools and schemas per token of their JSON. No provider publishes how a model is shown them."""

_ANTHROPIC_TOOLS = Range(159, 346, 804)
"""Tokens of the system prompt that Anthropic adds to a request with tools, from its published table."""

_UNSEEN = Range(0.1, 1.0, 10.0)
"""The doubt about sounds and documents, whose length is not read."""


def likely_input_tokens(body: bytes, facts: Callable[[], RequestFacts]) -> int:
    """About how many tokens a request reads, give or take half, in a microsecond. Images need `facts`."""
    if len(body) < _LONG_BODY and b"image" not in body:
        return len(body) // _BYTES_PER_TOKEN + 1
    request = facts()
    size = sum(len(text.encode("utf-8", "replace")) for text in request.texts)
    size += sum(len(canonical(part)) for part in request.structures)
    return size // _BYTES_PER_TOKEN + 1 + sum(_LIKELY_TOKENS.get(medium.kind, 0) for medium in request.media)


def count_charged_tokens(provider: str, usage: Usage) -> float | None:
    """Tokens of a request that the provider's rate limit has counted; None if the usage does not tell."""
    return None if provider in _LIMITS_COUNT_MAX_TOKENS else float(usage.total_tokens)


def input_tokens(facts: RequestFacts, target: Target, count: Callable[[str], int] | None = None) -> Range:
    """About how many tokens a request reads. `count` counts a text's, if the tokenizer is on this machine."""
    provider, model = maker_names(target)
    host = target.route.host
    vocabulary = (host and host.tokenizer) or vocabulary_of(provider, model)
    tokenizer = _MEASURED if vocabulary in ENCODINGS else _LIKE
    if vocabulary is None:
        tokenizer = _ANTHROPIC if provider == "anthropic" or model.startswith("anthropic/") else _OWN

    def estimate(text: str) -> Range:
        english, other = text_tokens(text, vocabulary or _COMMON_VOCABULARY)
        return tokenizer.english.times(english).plus(tokenizer.other.times(other))

    total = _TEMPLATE.plus(_PER_TURN.times(facts.turns))
    for text in facts.texts:
        total = total.plus(Range.exactly(count(text)) if count else estimate(text))
    for structure in facts.structures:
        total = total.plus(estimate(canonical(structure).decode()).times(_STRUCTURE))
    if facts.tools and provider == "anthropic":
        total = total.plus(_ANTHROPIC_TOOLS)
    for medium in facts.media:
        if medium.kind == "image":
            total = total.plus(image_tokens(provider, model, medium.data, detail=medium.detail))
        else:
            total = total.plus(Range.exactly(_LIKELY_TOKENS.get(medium.kind, 0)).times(_UNSEEN))
    return total


def adds_input(facts: RequestFacts, model: str) -> bool:
    """Whether the provider adds input by itself, such as results of web searches, or may do so."""
    return facts.adds_input or _SEARCHING_MODEL.search(model) is not None


def most_input_tokens(facts: RequestFacts, body: bytes, target: Target) -> int | None:
    """The most tokens that a provider may bill for the input of a request; None if no bound is known.

    A tokenizer that falls back to bytes makes no more tokens of a text than it has bytes, also after the
    Unicode normalization (NFKC) that some tokenizers begin with. Images are bounded by their provider's rule.
    Other files, and images of providers without a rule, may fill the model's context window. Input that a
    provider adds by itself, such as results of web searches, has no bound.
    """
    provider, model = maker_names(target)
    if adds_input(facts, model):
        return None
    size = len(body)
    if not body.isascii():
        size = max(size, len(unicodedata.normalize("NFKC", body.decode()).encode()))
    # The provider may show the model tools and schemas in a longer form, such as one with indentation.
    most = size + facts.continued + _MOST_TEMPLATE_TOKENS
    most += sum(len(canonical(part)) for part in facts.structures)
    for medium in facts.media:
        bound = most_image_tokens(provider, model) if medium.kind == "image" else None
        if bound is None:
            limits = limits_of_target(target)
            return None if limits is None else limits.context_window
        most += bound - len(medium.data or "")
    return most


def most_output_tokens(facts: RequestFacts, target: Target) -> int | None:
    """The most tokens of one answer, with reasoning: the limit in the request, else the model's; or None."""
    most = facts.max_output_tokens
    if most is None:
        limits = limits_of_target(target)
        most = None if limits is None else limits.max_output_tokens
    if most is None or not facts.prediction:
        return most
    return most + len(canonical(facts.prediction))


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
    """About how many tokens an image in base64 has for a model; `detail` is `Medium.detail`."""
    width, height = size_of(data) if data else _UNKNOWN_SIZE
    if provider == "openai":
        rule = next(rule for name, rule in _OPENAI if re.fullmatch(name, model))
        likely = rule.tokens(width, height, detail)
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
    if "embedding" in model:
        # The answer of `countTokens` in BerriAI/litellm#24339.
        return 258
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
    elif file.startswith(b"RIFF") and file[8:16] == b"WEBPVP8X":
        yield 1 + int.from_bytes(file[24:27], "little"), 1 + int.from_bytes(file[27:30], "little")
    elif file.startswith(b"RIFF") and file[8:16] == b"WEBPVP8L":
        bits = int.from_bytes(file[21:25], "little")
        yield 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    elif file.startswith(b"RIFF") and file[8:15] == b"WEBPVP8":
        width, height = struct.unpack_from("<HH", file, 26)
        yield width & 0x3FFF, height & 0x3FFF
    elif file.startswith(b"\xff\xd8"):
        # The size is in the frame header, which is one of a chain of segments that begin with their length.
        start = 2
        while start + 9 <= len(file) and file[start] == 0xFF:
            kind, length = file[start + 1], int.from_bytes(file[start + 2 : start + 4], "big")
            if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
                height, width = struct.unpack_from(">HH", file, start + 5)
                yield width, height
            start += 2 + length
