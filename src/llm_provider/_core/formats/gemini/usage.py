"""The tokens that a request of Gemini's `generateContent` may use, and that its reply says it used. Pure."""

import functools
import re
from collections.abc import Mapping
from typing import Any

from ...json_values import JSONMapping, JSONObject
from ...runtime.canonical_json import canonical
from ...types.usage import Usage
from ..protocol import EncodedRequest
from ..shared import request_facts as shared
from ..shared.replies import count, find_counts
from ..shared.tool_charges import gemini_tools, with_tools

_LABELS = frozenset({"role", "id"})
_MEDIA = ("inlineData", "fileData", "inline_data", "file_data")


def facts(encoded: EncodedRequest) -> shared.RequestFacts:
    payload = encoded.payload
    settings = _field(payload, "generationConfig")
    resolution = str(_field(settings, "mediaResolution")).lower().removeprefix("media_resolution_")
    groups = (_field(payload, name) for name in ("systemInstruction", "contents"))
    conversation = shared.Conversation(_LABELS, functools.partial(_medium, resolution=resolution), groups)
    tools, schema = _field(payload, "tools") or (), _field(settings, "responseJsonSchema")
    return shared.RequestFacts(
        variant=variant(encoded),
        max_output_tokens=shared.largest_limit(_field(settings, "maxOutputTokens")),
        texts=conversation.texts,
        media=conversation.media,
        turns=conversation.turns,
        tools=tools,
        schemas=(schema,) if schema else (),
        adds_input=_field(payload, "cachedContent") is not None or any(map(_runs_at_google, tools)),
        special_prices=lambda: shared.SpecialPrices(
            speaks="AUDIO" in str(_field(settings, "responseModalities"))
        ),
        continued=0 if encoded.continues is None else _count_written(encoded.continues),
    )


def variant(encoded: EncodedRequest) -> str:
    tier = encoded.payload.get("serviceTier") or encoded.payload.get("service_tier")
    return shared.variant_of(str(tier).lower() if tier else None) or "standard"


def _medium(part: JSONObject, resolution: str) -> shared.Medium | None:
    """The medium in a part of a turn, None if the part holds text."""
    for name in _MEDIA:
        inner = part.get(name)
        if isinstance(inner, dict):
            kind = str(_field(inner, "mimeType") or "application").partition("/")[0]
            return shared.Medium(kind, inner.get("data"), resolution)
    return None


def _runs_at_google(tool: Any) -> bool:
    """Whether Google runs a tool by itself, and then reads its results."""
    declared = isinstance(tool, dict) and _field(tool, "functionDeclarations") is not None
    return not declared or len(tool) > 1


def find_declared_functions(payload: JSONObject) -> set[str] | None:
    """The names of the functions that the user runs; None for an empty payload, which tells nothing.

    An MCP server has functions of its own, which may have any name.
    """
    names = set[str]()
    for tool in _field(payload, "tools") or ():
        if _field(tool, "mcpServers"):
            return set()
        names.update(str(_field(each, "name")) for each in _field(tool, "functionDeclarations") or ())
    return names if payload else None


def _count_written(reply: JSONMapping) -> int:
    """The tokens of an answer so far, which a request that goes on may read; a bound where none are told."""
    reported = usage(reply)
    return len(canonical(reply)) if reported is None else reported.output_tokens


def _field(container: Any, name: str) -> Any:
    """A field by its name. Google's JSON allows the same name in snake_case."""
    if not isinstance(container, dict):
        return None
    value = container.get(name)
    return container.get(_snake_case(name)) if value is None else value


@functools.cache
def _snake_case(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def usage(reply: Any) -> Usage | None:
    reported = find_counts(reply, "usageMetadata")
    return None if reported is None else with_tools(decode_usage(reported), *gemini_tools(reply))


def decode_usage(usage: JSONMapping) -> Usage:
    """Gemini's counts of tokens with inclusive totals: Gemini counts thoughts and tool prompts separately.

    >>> decode_usage({"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 5})
    Usage(input_tokens=9, output_tokens=7, reasoning_output_tokens=5)
    """
    thoughts = count(usage, "thoughtsTokenCount")
    if _DETAILS.isdisjoint(usage):
        read = cached = written = _NO_DETAILS
    else:
        read, cached, written = map(_by_modality, map(usage.get, _DETAIL_FIELDS))
    return Usage(
        input_tokens=count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
        output_tokens=count(usage, "candidatesTokenCount") + thoughts,
        cache_read_input_tokens=count(usage, "cachedContentTokenCount"),
        reasoning_output_tokens=thoughts,
        audio_input_tokens=read.get("AUDIO", 0),
        cache_read_audio_input_tokens=cached.get("AUDIO", 0),
        image_input_tokens=read.get("IMAGE", 0),
        audio_output_tokens=written.get("AUDIO", 0),
        image_output_tokens=written.get("IMAGE", 0),
    )


_DETAIL_FIELDS = ("promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails")


_DETAILS = frozenset(_DETAIL_FIELDS)


_WITH_OWN_PRICE = ("AUDIO", "IMAGE")


_NO_DETAILS: Mapping[str, int] = {}


def _by_modality(details: Any) -> Mapping[str, int]:
    """The tokens of audio and of images in the details of a count."""
    tokens: dict[str, int] = {}
    for entry in details if isinstance(details, list) else ():
        modality = entry.get("modality") if isinstance(entry, dict) else None
        if modality in _WITH_OWN_PRICE:
            tokens[modality] = tokens.get(modality, 0) + count(entry, "tokenCount")
    return tokens
