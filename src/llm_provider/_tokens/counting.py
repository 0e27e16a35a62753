"""How many tokens a request has, before it is sent.

- `likely_input_tokens` costs almost nothing; rate control uses it.
- `input_tokens` reads the texts; estimates use it.
- `most_input_tokens` and `most_output_tokens` are upper bounds; budgets use them.

docs/estimates.md gives the sources of the figures and their errors.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from .._requests.routing import Target, maker_names
from .._runtime.canonical_json import canonical
from .images import image_tokens, most_image_tokens
from .model_limits import limits_of_target
from .range import Range
from .text import text_tokens
from .vocabularies import ENCODINGS, vocabulary_of

if TYPE_CHECKING:
    from .._providers.shared.request_facts import RequestFacts
    from .._types.usage import Usage

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
    """About how many tokens a request reads. `count` counts those of a text, if the tokenizer is here."""
    provider, model = maker_names(target)
    host = target.route.host
    vocabulary = (host and host.tokenizer) or vocabulary_of(provider, model)
    tokenizer = _tokenizer(provider, model, vocabulary)

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


def _tokenizer(provider: str, model: str, vocabulary: str | None) -> _Tokenizer:
    if vocabulary is None:
        return _ANTHROPIC if provider == "anthropic" or model.startswith("anthropic/") else _OWN
    return _MEASURED if vocabulary in ENCODINGS else _LIKE


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
    most = size + _MOST_TEMPLATE_TOKENS + sum(len(canonical(part)) for part in facts.structures)
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
