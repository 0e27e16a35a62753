"""What the decoders of replies share: JSON values of any type, words for the end of an answer, and usage.

What single hosts say of searches, tools and costs is in `quirks.bills`.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ... import doors
from ...errors import APIResponseValidationError, LLMError
from ...json_values import JSONMapping, JSONObject
from ...runtime.json_pieces import JSONLimitError, loads, write_exactly
from ...runtime.warning import warn_user
from ...types.messages import FinishReason, Step, ToolCall, delta_of, make_delta
from ...types.usage import Usage, make_usage
from ..transport.wire import BYTE_ORDER_MARK
from .errors import error_fields, from_answer

if TYPE_CHECKING:
    from decimal import Decimal


def split_reply(reply: JSONObject, samples: str, usage: str) -> list[Any]:
    """Divide a reply with several samples, in the field `samples`, into one reply for each.

    The field `usage` has their tokens, which no provider counts by sample. The first reply keeps it.

    >>> reply = {"choices": [{"index": 0}, {"index": 1}], "usage": {"total_tokens": 9}}
    >>> split_reply(reply, "choices", "usage")
    [{'choices': [{'index': 0}], 'usage': {'total_tokens': 9}}, {'choices': [{'index': 0}], 'usage': {}}]
    """
    replies: list[Any] = []
    for number, sample in enumerate(sorted(reply[samples], key=lambda sample: count(sample, "index"))):
        shared = reply if number == 0 or usage not in reply else {**reply, usage: {}}
        replies.append({**shared, samples: [{**sample, "index": 0}]})
    return replies


def reply_body(reply: object) -> bytes:
    """A reply as JSON, at most 254 levels deep; an `APIResponseValidationError` where it is none."""
    try:
        return write_exactly(reply)
    except (TypeError, ValueError, RecursionError) as error:
        # It came whole and was billed, so it is not asked for again.
        raise APIResponseValidationError(
            f"the answer is no JSON that can be kept: {error}", retryable=False
        ) from None


def expect_dict(value: object, what: str) -> JSONObject:
    """`value` if it is a JSON object; an `APIResponseValidationError` if it is anything else."""
    if not isinstance(value, dict):
        raise APIResponseValidationError(
            f"the provider's {what} is {type(value).__name__}, not a JSON object"
        )
    return value


_MESSAGES = ("message", "Message", "msg", "error_msg", "detail", "errors")
"""A body of status 200 that has no answer reports a failure in one of these fields."""


def error_in(body: JSONMapping, answer: str) -> LLMError | None:
    """The failure in a body of status 200 or an event, else None. Every answer has the field `answer`."""
    if not reports_error(body, answer):
        return None
    codes, message = error_fields(body)
    # On the top level, "type" is the name of an event and not a code of the failure.
    codes = tuple(code for code in codes if code != "error")
    return from_answer(200, codes=codes, message=message, headers=doors.failures.headers_in(body))


def reports_error(body: JSONMapping, answer: str) -> bool:
    """Whether a body of status 200 or an event of a stream reports a failure; see `error_in`."""
    if body.get("error") or body.get("type") == "error" or body.get("object") == "error":
        return True
    if "base_resp" in body and not body.get(answer) and doors.failures.minimax_failure(body):
        return True
    if answer in body:
        return False
    messages = (body.get(name) for name in _MESSAGES)
    return any(value and isinstance(value, (str, list)) for value in messages)


def read_object(value: object, answer: str, what: str = "answer") -> JSONObject:
    """A reply or an event as an object; raises the failure that `error_in` finds."""
    body = value if type(value) is dict else expect_dict(value, what)
    if reports_error(body, answer) and (failure := error_in(body, answer)) is not None:
        raise failure
    return body


def count(container: JSONMapping, name: str) -> int:
    """A count of tokens from a usage object; 0 where it is absent, null or not a positive whole number."""
    value = container.get(name)
    # `isinstance` would accept True.
    if type(value) is int and value > 0:
        return value
    return int(value) if value and type(value) is float and value > 0 and value.is_integer() else 0


def keep_whole(reply: Any) -> list[Any]:
    """The reply itself: a request asks for one sample."""
    return [reply]


def part(container: JSONMapping, name: str) -> JSONMapping:
    """A nested object; empty where it is absent or not an object."""
    value = container.get(name)
    return value if isinstance(value, dict) else {}


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def find_counts(reply: object, name: str) -> JSONObject | None:
    """The usage object in a reply; None where it has none."""
    reported = reply.get(name) if isinstance(reply, dict) else None
    return reported if isinstance(reported, dict) else None


def call_entry(call: ToolCall) -> JSONObject:
    """A call of a function as an entry of a message's `tool_calls`."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def join_counts(before: Any, after: Any) -> Any:
    """The usage that a stream has told so far: counts grow, so a later 0, or none, says nothing."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return before if after is None else after
    return before | {name: count for name, count in after.items() if count or before.get(name) is None}


def join_steps(steps: Iterable[Step]) -> Step:
    """Several steps of one sample as one."""
    filled = [step for step in steps if step]
    if len(filled) < 2:
        return filled[0] if filled else ""
    deltas = list(map(delta_of, filled))
    return make_delta(
        text="".join([delta.text for delta in deltas]),
        reasoning="".join([delta.reasoning for delta in deltas]),
        tool_calls=tuple([call for delta in deltas for call in delta.tool_calls]),
    )


def number_step(step: Step, index: int) -> Step:
    """A step of a stream of several samples, with the number of its sample."""
    delta = delta_of(step)
    return make_delta(text=delta.text, reasoning=delta.reasoning, tool_calls=delta.tool_calls, index=index)


def same(first: object, second: object) -> bool:
    """Whether two JSON values are equal. Values that are nested too deep to be compared are not."""
    try:
        return bool(first == second)
    except RecursionError:
        return False


def dicts(value: Any) -> list[JSONObject]:
    """The objects in a list; empty where it is no list."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def text(container: JSONMapping, *names: str) -> str | None:
    """The first of some fields that is a text which is not empty."""
    return next((value for name in names if isinstance(value := container.get(name), str) and value), None)


# Why an answer ended: the words of all providers and hosts in one table. Case does not count. Gateways pass
# their upstream's words on, so every format reads all of them. A word that is not here is "unknown": a
# warning names it once, and the answer is not stored, as it may be cut. So are Google's words that leave open
# what is missing, without a warning. Sources of the words:
#
# - OpenAI's reference of Chat Completions, Anthropic's of `stop_reason`, Google's of `FinishReason`, and the
#   references of Mistral's, Cohere's and Bedrock's (`guardrail_intervened`) chat APIs.
# - TGI's `eos_token` and `stop_sequence`; `eos` of Together; `tool_call` of hosts that bubble up one call.
# - Z.ai's `sensitive` and `model_context_window_exceeded`: its page of error codes.
_WORDS: tuple[tuple[FinishReason, str], ...] = (
    ("stop", "stop end_turn stop_sequence eos eos_token complete"),
    ("length", """length model_length max_tokens max_output_tokens model_context_window_exceeded continuation
        too_many_tool_calls pause_turn compaction malformed_function_call unexpected_tool_call"""),
    ("tool_calls", "tool_calls tool_call tool_use function_call"),
    ("content_filter", """content_filter content_filtered guardrail_intervened sensitive safety recitation
        language blocklist prohibited_content spii escalation pup_limited_disabled model_armor image_safety
        image_prohibited_content image_recitation image_other"""),
    ("refusal", "refusal"),
    ("unknown", "other malformed_response missing_thought_signature no_image finish_reason_unspecified"),
)  # fmt: skip
FINISH_WORDS: Mapping[str, FinishReason] = {
    word: reason for reason, words in _WORDS for word in words.split()
}


ABORTED = ("abort", "error", "error_finish", "insufficient_system_resource", "network_error")
"""The words of vLLM, SGLang, OpenRouter, Mistral, DeepSeek and Z.ai for an answer that they aborted."""


def read_finish_word(word: str | None) -> FinishReason:
    """The finish reason of a word. Without one, the answer is whole too, as its body or its stream has ended.

    >>> read_finish_word("MAX_TOKENS"), read_finish_word(None)
    ('length', 'stop')
    """
    if not word:
        return "stop"
    reason = FINISH_WORDS.get(word) or FINISH_WORDS.get(word.lower())
    if reason is None:
        warn_of_unknown(f"an answer ended for the reason {word[:80]!r}, which is not known")
    return reason or "unknown"


def judge_calls(reason: FinishReason, *, calls: bool, text: bool) -> FinishReason:
    """The reason of an answer with or without calls, whatever its word says of them."""
    if calls and reason == "stop":
        return "tool_calls"
    return ("stop" if text else "unknown") if reason == "tool_calls" and not calls else reason


def warn_of_unknown(problem: str) -> None:
    """Warn of an answer that is "unknown". Python's default filter shows each text once."""
    # A filter that raises must not lose a paid answer.
    with contextlib.suppress(UserWarning):
        warn_user(
            f"{problem}: its finish_reason is 'unknown', and it is not stored unless "
            "cache_finish_reasons has 'unknown'"
        )


# --- the tokens in the usage of OpenAI's formats
#
# Totals include cached and reasoning tokens, as the totals of `Usage` do. Some hosts leave tokens out of both
# counts, and name them in the details or count them in `total_tokens` alone:
#
# - A part of the prompt, such as audio, that is larger than the prompt's count is not in it.
# - Tokens that only the total has are input if they are as many as parts of the prompt together, such as
#   audio, or if the prompt has no count.
# - All others are reasoning, which is billed as output: the providers hide it, and not what they were sent.
#
# A total that is smaller than the sum, or zero, says nothing. Nor does a total alone, or one count alone:
# input and output have different prices. A server may follow the other format in its names of counts.

_NAMES = {"prompt": ("prompt_tokens", "completion_tokens"), "input": ("input_tokens", "output_tokens")}
"""The names of the two counts in Chat Completions, and in Responses."""

_MEDIA = ("audio_tokens", "image_tokens", "video_tokens")
_CACHED = ("cached_tokens", "cache_write_tokens", "cache_creation_tokens")
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens", "citation_tokens")

_HITS = frozenset({"prompt_cache_hit_tokens", "cached_tokens"})


def read_usage(usage: JSONMapping, form: str = "prompt") -> Usage:
    """The usage in an object of Chat Completions, or with the form "input" of Responses."""
    names, other = _NAMES[form], "input" if form == "prompt" else "prompt"
    read, written = count(usage, names[0]), count(usage, names[1])
    if not (read and written):
        others = _NAMES[other]
        if not (read or written) and (count(usage, others[0]) or count(usage, others[1])):
            return read_usage({name: value for name, value in usage.items() if name not in names}, other)
        read, written = read or count(usage, others[0]), written or count(usage, others[1])
        known = [any(_is_count(usage.get(name)) for name in pair) for pair in zip(names, others, strict=True)]
        if not (all(known) or count(usage, "total_tokens")):
            return Usage()
    details, written_details = part(usage, f"{names[0]}_details"), part(usage, f"{names[1]}_details")
    # Some hosts report cache hits in a field of their own instead of in the details.
    hits = 0
    if not _HITS.isdisjoint(usage):
        hits = count(usage, "prompt_cache_hit_tokens") or count(usage, "cached_tokens")
    if not (any(details.values()) or any(written_details.values())) and (
        count(usage, "total_tokens") <= read + written
    ):
        return make_usage(input_tokens=read, output_tokens=written, cache_read_input_tokens=hits)
    reasoning = count(written_details, "reasoning_tokens")
    media = {name: count(details, name) for name in _MEDIA}
    outside = [name for name, tokens in media.items() if tokens > read]
    read += sum(media[name] for name in outside)
    unnamed = count(usage, "total_tokens") - read - written
    if unnamed > 0 and (read or written):
        parts = [tokens for name, tokens in media.items() if name not in outside]
        parts += [count(details, name) for name in _CACHED] + [count(usage, name) for name in _BESIDE]
        sums = {sum(some) for size in (1, 2) for some in itertools.combinations(filter(None, parts), size)}
        if unnamed != reasoning and (not read or unnamed in sums):
            read += unnamed
        else:
            written += unnamed
            reasoning = reasoning or unnamed
    lifetimes = part(details, "cache_creation_token_details")
    return make_usage(
        input_tokens=read,
        output_tokens=written,
        cache_read_input_tokens=count(details, "cached_tokens") or hits,
        cache_write_input_tokens=count(details, "cache_write_tokens")
        or count(details, "cache_creation_tokens"),
        cache_write_1h_input_tokens=count(lifetimes, "ephemeral_1h_input_tokens"),
        cache_write_12h_input_tokens=count(lifetimes, "ephemeral_12h_input_tokens")
        or count(part(details, "cache_write_tokens_details"), "ttl_12h_tokens"),
        reasoning_output_tokens=reasoning,
        audio_input_tokens=media["audio_tokens"],
        audio_output_tokens=count(written_details, "audio_tokens"),
        image_output_tokens=count(written_details, "image_tokens"),
    )


def _is_count(value: object) -> bool:
    return type(value) is int or (type(value) is float and value.is_integer())


# --- searches and other tools that are billed

# The fields of a chat completion's usage, of its message, and of the prompt's counts that tell of tools.
_TOOL_COUNTS = frozenset({"num_sources_used", "server_tool_use", "num_search_queries", "iterations"})
_TOOL_FIELDS = frozenset({"executed_tools", "provider_specific_fields"})
_TOOL_DETAILS = frozenset({"web_search_requests", "google_maps_grounding_requests"})

_SEARCH_MODEL = re.compile(r"-search-(preview|api)\b")
BILLED_BY_PROMPT = re.compile(r"(models/)?gemini-[12]\b")


def with_tools(usage: Usage, searches: int, unpriced: int) -> Usage:
    """A usage with some more searches and uses of other tools; the usage itself if there are none."""
    if not (searches or unpriced):
        return usage
    return replace(
        usage, web_searches=usage.web_searches + searches, unpriced_tools=usage.unpriced_tools + unpriced
    )


def chat_usage(reply: Any) -> Usage | None:
    """The usage of a chat completion; None where it has none."""
    reported = reply.get("usage") if isinstance(reply, dict) else None
    if not isinstance(reported, dict):
        return None
    searches, unpriced = chat_tools(reply, reported)
    usage = read_usage(reported)
    return with_tools(usage, searches, unpriced) if searches or unpriced else usage


def chat_tools(reply: JSONMapping, usage: JSONMapping) -> tuple[int, int]:
    """The searches of a chat completion, and its uses of tools without a known price.

    OpenAI bills one search for each request to a search model.
    """
    try:
        # As most answers are: without a sign of a tool.
        if (
            _TOOL_COUNTS.isdisjoint(usage)
            and _TOOL_FIELDS.isdisjoint(reply["choices"][0]["message"])
            and "search" not in reply["model"]
            and _TOOL_DETAILS.isdisjoint(usage.get("prompt_tokens_details") or ())
        ):
            return 0, 0
    except (AttributeError, KeyError, IndexError, TypeError):
        pass
    searches, unpriced = doors.bills.count_tools(reply, usage)
    if searches is None:
        searches = int(_SEARCH_MODEL.search(str(reply.get("model"))) is not None)
    return searches, unpriced + count_other_models(usage)


def count_other_models(usage: JSONMapping) -> int:
    """The iterations of advisors, and of models that declined before the one that answered."""
    entries = dicts(usage.get("iterations"))
    if not entries:
        return 0
    served = next((entry.get("model") for entry in entries if entry.get("type") == "fallback_message"), None)
    return sum(
        entry.get("type") == "advisor_message" or served not in (None, entry.get("model") or served)
        for entry in entries
    )


def gemini_tools(reply: JSONMapping) -> tuple[int, int]:
    """The billed searches of a Gemini reply, and the candidates that Google Maps grounded.

    Code, pages and stored files are billed as tokens.
    """
    queries = maps = 0
    for candidate in dicts(reply.get("candidates")):
        if "groundingMetadata" not in candidate:
            continue
        grounding = part(candidate, "groundingMetadata")
        for name in ("webSearchQueries", "imageSearchQueries"):
            searched = grounding.get(name)
            queries += sum(map(bool, searched)) if isinstance(searched, list) else 0
        maps += bool(grounding.get("googleMapsWidgetContextToken")) or any(
            chunk.get("maps") is not None for chunk in dicts(grounding.get("groundingChunks"))
        )
    if queries > 1 and BILLED_BY_PROMPT.match(str(reply.get("modelVersion"))):
        queries = 1
    return queries, maps


_COSTS = frozenset({"cost", "cost_in_usd_ticks", "estimated_cost"})


def cost_in(usage: Any) -> Decimal | None:
    """The USD that a usage object says the request cost; None if it says none."""
    return doors.bills.read_cost(usage) if isinstance(usage, dict) and not _COSTS.isdisjoint(usage) else None


def cost_in_headers(headers: Mapping[str, str]) -> Decimal | None:
    """The USD that litellm's proxy says a whole answer cost; None if it does not know."""
    text = headers.get("x-litellm-response-cost") or headers.get("llm_provider-x-litellm-response-cost")
    return None if text is None else doors.bills.read_number(text)


def without_cost(usage: Any) -> Any:
    """A usage object without its cost, which belongs to the request and not to each of its texts."""
    if not isinstance(usage, dict):
        return usage
    return {name: value for name, value in usage.items() if "cost" not in name}


def parse_reply(body: bytes) -> Any:
    """The reply in a body; an `APIResponseValidationError` where it is not JSON, too deep or too large."""
    try:
        return loads(body.removeprefix(BYTE_ORDER_MARK))
    except JSONLimitError as error:
        # The next answer would be as large, and be billed.
        raise APIResponseValidationError(f"the answer cannot be read: {error}", retryable=False) from None
    except ValueError:
        beginning = body[:60].decode("utf-8", "replace")
        raise APIResponseValidationError(
            f"the answer is not JSON: {beginning!r}" if body else "the answer is empty"
        ) from None
