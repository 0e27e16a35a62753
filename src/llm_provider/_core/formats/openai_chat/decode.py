"""Chat completions of OpenAI and compatible hosts → `Answer`. Pure.

What OpenAI's own API never writes is read by functions of `quirks`, which stand in the place of the fields of
`Reading`.
"""

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...types.messages import AssistantMessage, ToolCall
from ...types.response import Choice, make_choice
from ...types.usage import Usage
from ..anthropic import decode as anthropic
from ..protocol import Answer, EncodedRequest
from ..shared import payload as shared
from ..shared.logprobs import read_logprobs
from ..shared.replies import (
    ABORTED,
    cost_in,
    expect_dict,
    judge_calls,
    part,
    read_finish_word,
    read_object,
    split_reply,
    text_of,
)
from ..shared.replies import chat_usage as usage

__all__ = ["decode", "facts", "split", "usage", "variant"]

# The fields in which hosts return the model's reasoning.
REASONING_FIELDS = ("reasoning_content", "reasoning")

KINDS = ("function", "custom")

_CALLS = frozenset({"tool_calls", "function_call"})

_FIELDS = frozenset({"index", "message", "finish_reason", "logprobs"})
"""The fields of a choice."""

_PLAIN = frozenset({"role", "content", "refusal", "annotations"})
"""The fields of the message of most answers. All but `content` hold nothing that is kept."""

# Fields of an answer's message that do not become part of `Choice.message` as they are.
_NOT_KEPT = frozenset({"role", "content", "provider_specific_fields", *_CALLS})


def raise_for_content(content: Any) -> tuple[Any, str, str]:
    raise APIResponseValidationError(f"the answer's content is {type(content).__name__}, not text")


def read_calls(message: JSONMapping) -> tuple[tuple[ToolCall, ...], JSONObject]:
    """The calls of a message, and the fields of the message that hold them."""
    entries, legacy = dicts(message.get("tool_calls"), "tool_calls"), message.get("function_call")
    fields: JSONObject = {"tool_calls": entries} if entries else {}
    if isinstance(legacy, dict):
        # The form before `tool_calls`, in which calls had no ids.
        fields["function_call"] = legacy
        entries = entries or [{"id": "call_0", "function": legacy}]
    return tuple(map(_call, entries)), fields


class Reading(NamedTuple):
    """How parts of a reply are read. Each field is a function; the defaults read what OpenAI's API writes."""

    word: Callable[[JSONMapping], Any] = lambda choice: choice.get("finish_reason")
    """The word for the end of a choice that has other fields than OpenAI's."""
    content: Callable[[Any], tuple[Any, str, str]] = raise_for_content
    """A content that is no text, as the next request has it, and the text and the reasoning in it."""
    calls: Callable[[JSONMapping], tuple[tuple[ToolCall, ...], JSONObject]] = read_calls


_STANDARD = Reading()


def decode(reply: object, reading: Reading = _STANDARD) -> Answer:
    reply = read_object(reply, "choices")
    choices, tier = reply.get("choices"), reply.get("service_tier")
    if not isinstance(choices, list) or not choices:
        raise APIResponseValidationError("the answer holds no choices")
    counts = usage(reply)
    return Answer(
        cost=cost_in(reply.get("usage")),
        choices=tuple([_choice(choice, counts, reading) for choice in choices]),
        usage=counts,
        model=text_of(reply.get("model")),
        id=text_of(reply.get("id")),
        service_tier=tier and shared.openai_tier(tier),
    )


def split(reply: Any) -> list[Any]:
    return split_reply(reply, "choices", "usage")


def _choice(choice: JSONObject, counts: Usage | None, reading: Reading) -> Choice:
    choice = choice if type(choice) is dict else expect_dict(choice, "choice")
    message, logprobs = choice.get("message"), choice.get("logprobs")
    word = choice.get("finish_reason") if _FIELDS.issuperset(choice) else reading.word(choice)
    if word is not None and not isinstance(word, str):
        raise APIResponseValidationError("the finish_reason of the answer is not text")
    if word in ABORTED:
        raise APIResponseValidationError(f"the host aborted the answer: its finish_reason is {word!r}")
    reason = read_finish_word(word)
    if message is None and reason == "content_filter":
        message = {}
    elif type(message) is not dict:
        raise APIResponseValidationError(f"the provider's message is {type(message).__name__}, not an object")
    content, refusal = message.get("content"), message.get("refusal")
    if (
        type(content) is str and content and reason == "stop" and logprobs is None
        and not refusal and _PLAIN.issuperset(message) and not message.get("annotations")
    ):  # fmt: skip
        return make_choice(text=content, message=AssistantMessage(role="assistant", content=content))
    text, reasoning = content, ""
    if content is not None and type(content) is not str:
        content, text, reasoning = reading.content(content)
    calls, held = ((), {}) if _CALLS.isdisjoint(message) else reading.calls(message)
    if isinstance(refusal, str) and refusal:
        reason = "refusal"
    else:
        reason = judge_calls(reason, calls=bool(calls), text=bool(text))
    # Also fields that this library does not know: some hosts need theirs to continue a conversation.
    others = {name: value for name, value in message.items() if value and name not in _NOT_KEPT}
    others.update(held)
    kept = {"role": "assistant", "content": content, **others}
    if others:
        for name in REASONING_FIELDS:
            reasoning = reasoning or text_of(others.get(name)) or ""
    if not text:
        text = text_of(part(message, "audio").get("transcript")) or text_of(refusal) or ""
    if not (word or text or calls or reasoning or content or others or (counts and counts.total_tokens)):
        raise APIResponseValidationError("the answer is empty, and has no finish reason")
    return make_choice(
        text=text,
        reasoning=reasoning,
        tool_calls=calls,
        finish_reason=reason,
        message=AssistantMessage(kept),
        logprobs=None if logprobs is None else read_logprobs(logprobs),
    )


def dicts(value: object, what: str) -> list[JSONObject]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise APIResponseValidationError(f"the answer's {what} is {type(value).__name__}, not a list")
    return [expect_dict(entry, f"entry of {what}") for entry in value]


_NOT_TEXT = "a tool call has no name, or arguments that are not text"


def kind_of(call: JSONMapping) -> str | None:
    """Which member of a call holds it; None if none is yet."""
    return "custom" if isinstance(call.get("custom"), dict) else "function"


def arguments_of(body: JSONMapping, field: str) -> str:
    """The arguments of a call; an `APIResponseValidationError` if they are not text."""
    arguments = body.get(field) or ""
    if not isinstance(arguments, str):
        raise APIResponseValidationError(_NOT_TEXT)
    return arguments


def _call(entry: JSONObject) -> ToolCall:
    kind = kind_of(entry) or "function"
    body = expect_dict(entry.get(kind), f"tool call's {kind}")
    arguments = arguments_of(body, "input") if kind == "custom" else arguments_of(body, "arguments") or "{}"
    if not isinstance(body.get("name"), str):
        raise APIResponseValidationError(_NOT_TEXT)
    return ToolCall(id=text_of(entry.get("id")) or "", name=body["name"], arguments=arguments, type=kind)


# --- what a request may use: gateways pass fields and content blocks of Anthropic's on, so these count too

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
    tools = payload.get("tools") or ()
    formats = payload.get("response_format"), payload.get("text")
    return shared.collect_facts(
        _LABELS,
        _medium,
        groups,
        variant=variant(encoded),
        max_output_tokens=shared.largest_limit(
            payload.get("max_tokens"), payload.get("max_completion_tokens"), payload.get("max_output_tokens")
        ),
        tools=tools,
        schemas=[schema for schema in formats if schema],
        prediction=payload.get("prediction"),
        adds_input=not _ADDS_INPUT.isdisjoint(payload)
        or anthropic.compacts(payload)
        # The provider runs such a tool by itself, and then reads its results.
        or any(
            not isinstance(tool, dict) or tool.get("type", "custom" if "name" in tool else None) not in KINDS
            for tool in tools
        ),
        special_prices=functools.partial(_special_prices, payload),
    )


_CACHE_OPTIONS = ("prompt_cache_options", "prompt_cache_breakpoint")


def _special_prices(payload: JSONObject) -> shared.SpecialPrices:
    words = shared.find_words(payload, "1h", "12h", "audio", *_CACHE_OPTIONS)
    # Hosts take the lifetime of Anthropic's cache entries in several places. "audio" asks for speech, as a
    # field and as a modality, and refers to an earlier answer's.
    half_day = "12h" in words and not words.isdisjoint(_CACHE_OPTIONS)
    return shared.SpecialPrices("1h" in words, "audio" in words, "audio" in words, half_day)


def variant(encoded: EncodedRequest) -> str:
    payload = encoded.payload
    if payload.get("speed") == "fast":
        return "fast"
    return shared.openai_tier(payload.get("service_tier")) or "standard"


def _medium(part: JSONObject) -> shared.Medium | None:
    """The medium in a part of a message, None if the part holds text."""
    kind = part.get("type")
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
