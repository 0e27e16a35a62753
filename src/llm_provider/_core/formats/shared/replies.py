"""What the decoders of replies share: JSON values of any type, and the words for the end of an answer."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import APIResponseValidationError
from ...json_values import JSONMapping, JSONObject
from ...runtime.canonical_json import write_exactly
from ...runtime.warning import warn_user
from ...types.messages import Delta, FinishReason, Step, ToolCall, delta_of


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


def count(container: JSONMapping, name: str) -> int:
    """A count of tokens from a usage object; 0 where it is absent, null or not a positive whole number."""
    value = container.get(name)
    # Most counts are 0. `isinstance` would accept True.
    if value and type(value) is float and value.is_integer():
        value = int(value)
    return value if value and type(value) is int and value > 0 else 0


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
    return Delta(
        text="".join([delta.text for delta in deltas]),
        reasoning="".join([delta.reasoning for delta in deltas]),
        tool_calls=tuple([call for delta in deltas for call in delta.tool_calls]),
    )


def number_step(step: Step, index: int) -> Step:
    """A step of a stream of several samples, with the number of its sample."""
    delta = delta_of(step)
    return Delta(text=delta.text, reasoning=delta.reasoning, tool_calls=delta.tool_calls, index=index)


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
