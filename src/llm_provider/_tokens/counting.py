"""How many tokens a call reads and writes, told before it is sent.

Three answers for three askers: `likely_input_tokens` costs next to nothing, for rate control; `input_tokens`
looks at the text, for estimates; `most_input_tokens` and `most_output_tokens` are never too low, for budgets.
docs/estimates.md says where the figures come from and how far off they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .._requests.routing import priced_as
from .._runtime.canonical_json import canonical
from .images import image_tokens
from .model_limits import limits_of
from .range import Range
from .text import text_tokens

if TYPE_CHECKING:
    from .._calls.call import Call
    from .model_limits import ModelLimits

_BYTES_PER_TOKEN = 4
"""Of a request's body. In o200k_base texts of all scripts have 3 to 5: Chinese has more tokens to the
character than English has, and more bytes too."""

_LONG_BODY = 8192
"""Bytes, below which a body holds no picture worth looking for."""

_MOST_TEMPLATE_TOKENS = 2048
"""What a provider may write around a conversation by itself. The largest that one has published is the 804
tokens of Anthropic's oldest system prompt for tools; open models' chat templates begin with some dozens."""

_MOST_TOKENS_PER_IMAGE = {"anthropic": 4784, "gemini": 2240, "openai": 48169}
"""The largest image that a published rule allows: Anthropic's high resolution, Gemini 3's "ultra high", eight
tiles of gpt-4o-mini."""

_MOST_TOKENS_FIELDS = ("max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens")

# What these models are asked, they look up before they answer.
_SEARCHING_MODEL = re.compile(r"search|sonar|compound|:online")

_LIKELY_TOKENS = {"image": 1120, "audio": 1500, "video": 10_000, "application": 10_000}
"""Of a medium, for adding up: Gemini 3's default for an image, a minute of sound, five pages."""


class _Tokenizer(NamedTuple):
    """How many tokens a provider's tokenizer makes of what `text_tokens` counts as one: see `TextTokens`."""

    english: Range
    other: Range


_TOKENIZERS = {
    "openai": _Tokenizer(Range(0.85, 1.0, 1.15), Range(0.7, 1.0, 1.45)),
    # Anthropic says that its tokenizer of 2026 makes up to 1.35 times as many tokens as the one before, and
    # that made somewhat more than OpenAI's.
    "anthropic": _Tokenizer(Range(0.95, 1.2, 1.6), Range(0.9, 1.4, 3.0)),
    "gemini": _Tokenizer(Range(0.85, 1.0, 1.25), Range(0.65, 1.0, 1.5)),
}
_OTHER_TOKENIZER = _Tokenizer(Range(0.85, 1.05, 1.4), Range(0.65, 1.1, 2.5))

_TEMPLATE, _PER_TURN = Range(0, 3, 30), Range(2, 4, 8)
"""What is written around a conversation, and around each of its messages; OpenAI publishes 3 and 3 to 4."""

_STRUCTURE = Range(0.5, 0.9, 1.5)
_ANTHROPIC_TOOLS = Range(159, 346, 804)
"""The system prompt that Anthropic adds where there are tools, by its published table."""

_UNSEEN = Range(0.1, 1.0, 10.0)
"""For sounds and documents, whose length is not looked up."""

_DATA_URL = re.compile(r"data:[^;,]*;[^,]*base64,")

# Names of fields by which providers do things of their own that add to the input: searches, files, the
# conversation so far.
_ADDS_INPUT = frozenset(
    {"web_search_options", "plugins", "previous_response_id", "conversation", "prompt", "container",
     "mcp_servers", "cachedContent", "search_parameters"}
)  # fmt: skip


class Medium(NamedTuple):
    """An image, a recording or a document in a request.

    `kind` is "image", "audio", "video" or "application"; `data` is its base64, None where it is elsewhere;
    `detail` is OpenAI's word for how closely to look.
    """

    kind: str
    data: str | None
    detail: str = "auto"


@dataclass(slots=True)
class Contents:
    """What of a request's payload becomes tokens."""

    texts: list[str] = field(default_factory=list)
    media: list[Medium] = field(default_factory=list)
    structures: list[Any] = field(default_factory=list)
    """Tools and schemas, which a model is shown as some kind of code."""
    turns: int = 0


def contents(payload: Mapping[str, Any]) -> Contents:
    """What of a payload becomes tokens, on any wire format.

    >>> found = contents({"model": "m", "messages": [{"role": "user", "content": "Hi"}]})
    >>> found.texts, found.turns
    (['Hi'], 1)
    """
    found = Contents()
    config = payload.get("generationConfig")
    formats = payload.get("response_format"), payload.get("output_config"), payload.get("text")
    schema = config.get("responseJsonSchema") if isinstance(config, Mapping) else None
    found.structures += [part for part in (payload.get("tools"), *formats, schema) if part]
    for name in ("system", "instructions", "systemInstruction", "messages", "input", "contents"):
        value = payload.get(name)
        if value is not None:
            found.turns += len(value) if isinstance(value, (list, tuple)) else 1
            _collect(value, found)
    return found


def _collect(value: Any, found: Contents) -> None:
    if isinstance(value, str):
        # Also where it is the address of some data: what is not in its place is read as text.
        found.texts.append(value)
    elif isinstance(value, Mapping):
        medium = _medium(value)
        if medium is None:
            for name, inner in value.items():
                if name not in ("role", "type", "id", "tool_call_id", "tool_use_id", "call_id", "detail"):
                    _collect(inner, found)
        else:
            found.media.append(medium)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            _collect(inner, found)


def _medium(part: Mapping[str, Any]) -> Medium | None:
    """What a part of a message holds besides text; None where it holds text."""
    kind = part.get("type")
    if "inlineData" in part or "fileData" in part:
        inner = part.get("inlineData") or part.get("fileData") or {}
        return Medium(str(inner.get("mimeType", "application")).partition("/")[0], inner.get("data"))
    if kind in ("image", "document") and isinstance(part.get("source"), Mapping):
        source = part["source"]
        if source.get("type") in ("text", "content"):
            return None
        return Medium("image" if kind == "image" else "application", source.get("data"))
    if kind in ("image_url", "input_image"):
        image = part.get("image_url")
        place = image if isinstance(image, Mapping) else {**part, "url": image}
        url = str(place.get("url"))
        data = _DATA_URL.match(url)
        return Medium("image", url[data.end() :] if data else None, str(place.get("detail", "auto")))
    if kind == "input_audio":
        return Medium("audio", "")
    if kind in ("file", "input_file", "video_url"):
        return Medium("application", None)
    return None


def likely_input_tokens(call: Call[Any]) -> int:
    """A first guess of the tokens that one request of a call reads, in a microsecond.

    It is for adding up: a single one may be off by half.
    """
    body = call.body
    if len(body) < _LONG_BODY and b"image" not in body:
        return len(body) // _BYTES_PER_TOKEN + 1
    found = contents(call.encoded.payload)
    size = sum(_size(text) for text in found.texts) + sum(len(canonical(part)) for part in found.structures)
    return size // _BYTES_PER_TOKEN + 1 + sum(_LIKELY_TOKENS.get(medium.kind, 0) for medium in found.media)


def input_tokens(call: Call[Any], count: Callable[[str], int] | None = None) -> Range:
    """About how many tokens one request of a call reads.

    Args:
        call: The call.
        count: What counts a text's tokens exactly, if there is such a thing for the model.
    """
    return payload_tokens(call.encoded.payload, *priced_as(call.target), count)


def payload_tokens(
    payload: Mapping[str, Any], provider: str, model: str, count: Callable[[str], int] | None = None
) -> Range:
    """`input_tokens` of a payload.

    Args:
        payload: What is sent, in any wire format.
        provider: The provider by whom the model is priced.
        model: The model's name there.
        count: What counts a text's tokens exactly, if there is such a thing for the model.
    """
    found = contents(payload)
    tokenizer = _TOKENIZERS.get(provider, _OTHER_TOKENIZER)
    total = _TEMPLATE.plus(_PER_TURN.times(found.turns))
    for text in found.texts:
        total = total.plus(Range.exactly(count(text)) if count else _estimated(text, tokenizer))
    for structure in found.structures:
        # What a model is shown of tools and schemas is not published.
        total = total.plus(_estimated(canonical(structure).decode(), tokenizer).times(_STRUCTURE))
    if payload.get("tools") and provider == "anthropic":
        total = total.plus(_ANTHROPIC_TOOLS)
    config = payload.get("generationConfig")
    level = str(config.get("mediaResolution", "")) if isinstance(config, Mapping) else ""
    for medium in found.media:
        if medium.kind == "image":
            image = image_tokens(provider, model, medium.data, detail=medium.detail, level=level)
            total = total.plus(image)
        else:
            total = total.plus(Range.exactly(_LIKELY_TOKENS.get(medium.kind, 0)).times(_UNSEEN))
    return total


def _estimated(text: str, tokenizer: _Tokenizer) -> Range:
    english, other = text_tokens(text)
    return tokenizer.english.times(english).plus(tokenizer.other.times(other))


def most_input_tokens(call: Call[Any], samples: int | None = None) -> int | None:
    """Tokens that a call is billed for reading at most; None where no bound is known.

    A tokenizer that falls back to bytes makes no more tokens of a text than it has bytes, also after the
    normalization (NFKC) that some of them begin with. Images are bounded by their provider's rule; other
    files, and images of providers without a rule, by the model's context window. There is no bound for what a
    provider fetches by itself, as its web searches do.

    Args:
        call: The call.
        samples: How many samples are asked for; default all of the call's.
    """
    payload, model = call.encoded.payload, call.target.model
    if not _ADDS_INPUT.isdisjoint(payload) or _SEARCHING_MODEL.search(model) is not None:
        return None
    if any(_runs_by_itself(tool) for tool in payload.get("tools") or ()):
        return None
    body, found = call.body, contents(payload)
    size = len(body)
    if not body.isascii():
        size = max(size, len(unicodedata.normalize("NFKC", body.decode()).encode()))
    # The model may be shown tools and schemas in a longer form, such as one with indentation.
    most = size + _MOST_TEMPLATE_TOKENS + sum(len(canonical(part)) for part in found.structures)
    for medium in found.media:
        bound = _most_of_medium(call, medium)
        if bound is None:
            window = _limits(call)
            if window is None or window.context_window is None:
                return None
            most = window.context_window
            break
        most += bound - len(medium.data or "")
    return most * _requests(call, samples)


def most_output_tokens(call: Call[Any], samples: int | None = None) -> int | None:
    """Tokens that a call is billed for writing at most, reasoning included; None where no bound is known.

    The limit that the request sets, under whatever name, else the model's own.

    Args:
        call: The call.
        samples: How many samples are asked for; default all of the call's.
    """
    payload = call.encoded.payload
    most = _asked_limit(payload)
    if most is None:
        limits = _limits(call)
        most = None if limits is None else limits.max_output_tokens
    if most is None:
        return None
    # What of a predicted output is wrong is billed as output too.
    prediction = payload.get("prediction")
    return (most + (len(canonical(prediction)) if prediction else 0)) * (samples or call.request.n)


def _asked_limit(payload: Mapping[str, Any]) -> int | None:
    """The largest answer that a payload allows."""
    config = payload.get("generationConfig")
    places = (payload, config if isinstance(config, Mapping) else {})
    asked = [place.get(name) for place in places for name in _MOST_TOKENS_FIELDS]
    return max((limit for limit in asked if isinstance(limit, int)), default=None)


def _limits(call: Call[Any]) -> ModelLimits | None:
    return limits_of(*priced_as(call.target))


def _requests(call: Call[Any], samples: int | None) -> int:
    """Requests that so many samples take."""
    return -(-(samples or call.request.n) // call.encoded.most_samples)


def _runs_by_itself(tool: Any) -> bool:
    """Whether a tool is run by the provider, which then reads what it found."""
    if not isinstance(tool, Mapping):
        return True
    if "functionDeclarations" in tool:
        return len(tool) > 1
    return tool.get("type", "custom" if "name" in tool else None) not in ("function", "custom")


def _most_of_medium(call: Call[Any], medium: Medium) -> int | None:
    if medium.kind != "image":
        return None
    provider, model = priced_as(call.target)
    # Earlier ones cut images into tiles, and no largest number of them is published.
    tiled = provider == "gemini" and re.match(r"(models/)?gemini-[12]\b", model) is not None
    return None if tiled else _MOST_TOKENS_PER_IMAGE.get(provider)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
