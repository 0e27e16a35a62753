"""Models that do not answer in a conversation, known by their names."""

import functools
import re
from typing import Literal, TypeAlias

from ..errors import RequestError

# Families of models by the last part of the name.
_NOT_COVERED = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        (r"dall-e.*|(chat)?gpt-image.*|imagen-.*", "makes images"),
        (r"sora.*|veo-.*", "makes videos"),
        (r"tts-.*|gpt-.*-tts(-.*)?", "speaks"),
        (r"whisper.*|.*-transcribe(-.*)?", "transcribes speech"),
        (r"(omni|text|mistral)-moderation.*", "judges content for moderation"),
        (r"rerank.*|.*-rerank(er)?(-.*)?", "ranks documents"),
        (r"gpt-(.*-)?realtime.*|gpt-live.*|gemini-(.*-)?live-.*|.*-native-audio.*", "talks in real time"),
    )
)
_EMBEDS = re.compile(r"text-embedding-.*|.*\bembed.*|embed-.*")

_LIKELY_EMBEDS = re.compile(r"embed|(^|[/-])(bge|gte|uae|voyage|clip)-", re.IGNORECASE)

ModelKind: TypeAlias = Literal["chat", "embedding"]
EstimateKind: TypeAlias = Literal["chat", "embedding", "score", "decision"]


def kind_of(model: str) -> ModelKind:
    """The kind of a model by its name. Only embedding models have names that tell it.

    >>> kind_of("text-embedding-3-small"), kind_of("together_ai/BAAI/bge-large-en"), kind_of("local/mine")
    ('embedding', 'embedding', 'chat')
    """
    return "embedding" if _LIKELY_EMBEDS.search(model) else "chat"


def find_uncovered_kind(model: str) -> str | None:
    """What a model does that this library does not cover; None for every other model."""
    name = model.rpartition("/")[2].lower()
    return next((what for pattern, what in _NOT_COVERED if pattern.fullmatch(name)), None)


@functools.lru_cache(maxsize=1024)
def check_answers(model: str, provider: str, name: str) -> None:
    """Refuse a model that does something other than answer messages. `name` is its name at the provider."""
    if provider in ("local", "litellm"):  # where the user gives the names
        return
    if _EMBEDS.fullmatch(name.rpartition("/")[2].lower()):
        problem = "embeds texts and does not answer: call embed()"
    else:
        what = find_uncovered_kind(name)
        # OpenRouter serves models for images by the same endpoint as all others.
        if what is None or (provider == "openrouter" and what == "makes images"):
            return
        problem = not_covered(what)
    raise RequestError(f"{model} {problem}", provider=provider, model=model)


def not_covered(what: str) -> str:
    """The end of the error for a model that does `what`."""
    return f"{what}, which this library does not cover: use the provider's own SDK"
