"""Facts about requests in OpenAI's two wire formats, Chat Completions and Responses. Pure.

Hosts such as OpenRouter and litellm pass fields and content blocks of Anthropic's on, so these count too.
"""

import functools
import re
from typing import Any

from ...json_values import JSONObject
from ..anthropic import request_facts as anthropic
from ..protocol import EncodedRequest
from ..shared import request_facts as shared

_DATA_URL = re.compile(r"data:[^;,]*;[^,]*base64,")

_LABELS = frozenset({"role", "type", "id", "tool_call_id", "call_id", "detail"})

_ADDS_INPUT = anthropic.ADDS_INPUT | {
    "web_search_options",
    "previous_response_id",
    "conversation",
    "prompt",
    "plugins",  # OpenRouter
    "search_parameters",  # xAI
    "cached_content",  # litellm, for Gemini
}
"""Fields that let a provider search, or add input that it has stored."""


def facts(encoded: EncodedRequest) -> shared.RequestFacts:
    payload = encoded.payload
    groups = map(payload.get, ("instructions", "messages", "input"))
    conversation = shared.Conversation(_LABELS, _medium, groups)
    tools = payload.get("tools") or ()
    formats = payload.get("response_format"), payload.get("text")
    return shared.RequestFacts(
        variant=variant(encoded),
        max_output_tokens=shared.largest_limit(
            payload.get("max_tokens"), payload.get("max_completion_tokens"), payload.get("max_output_tokens")
        ),
        texts=conversation.texts,
        media=conversation.media,
        turns=conversation.turns,
        tools=tools,
        schemas=[schema for schema in formats if schema],
        prediction=payload.get("prediction"),
        adds_input=not _ADDS_INPUT.isdisjoint(payload)
        or anthropic.compacts(payload)
        or any(map(_runs_at_provider, tools)),
        special_prices=functools.partial(_special_prices, payload),
    )


def _special_prices(payload: JSONObject) -> shared.SpecialPrices:
    words = shared.find_words(payload, "1h", "audio")
    return shared.SpecialPrices(
        # Hosts take the lifetime of Anthropic's cache entries in several places.
        caches_for_an_hour="1h" in words,
        # The same word asks for speech, as a field and as a modality, and refers to an earlier answer's.
        speaks="audio" in words,
        continues_speech="audio" in words,
    )


def variant(encoded: EncodedRequest) -> str:
    payload = encoded.payload
    if payload.get("speed") == "fast":
        return "fast"
    return tier_variant(payload.get("service_tier")) or "standard"


def tier_variant(tier: object) -> str | None:
    """The name in `prices.csv` of the service tier in a request or an answer; None if it names none.

    OpenAI renamed "priority" to "fast" in 2026. Requests may use either word, and answers say "priority".
    """
    return "priority" if tier == "fast" else shared.variant_of(tier)


def _medium(part: JSONObject) -> shared.Medium | None:
    """The medium in a part of a message, None if the part holds text."""
    kind = part.get("type")
    if kind is None:
        return None
    if kind in ("image_url", "input_image"):
        image = part.get("image_url")
        fields = image if isinstance(image, dict) else {**part, "url": image}
        url = str(fields.get("url"))
        data = _DATA_URL.match(url)
        return shared.Medium("image", url[data.end() :] if data else None, str(fields.get("detail", "auto")))
    if kind == "input_audio":
        return shared.Medium("audio", None)
    if kind in ("file", "input_file", "video_url"):
        return shared.Medium("application", None)
    return anthropic.medium(part)


def _runs_at_provider(tool: Any) -> bool:
    """Whether the provider runs a tool by itself, and then reads its results."""
    if not isinstance(tool, dict):
        return True
    return tool.get("type", "custom" if "name" in tool else None) not in ("function", "custom")
