"""Why an answer ended: the words of all providers and hosts in one table. Case does not count.

Gateways pass their upstream's words on, so every format reads all of them. A word that is not here is
"unknown": a warning names it once, and the answer is not stored, as it may be cut. So are Google's words that
leave open what is missing, without a warning. Sources of the words:

- OpenAI's reference of Chat Completions, Anthropic's of `stop_reason`, Google's of `FinishReason`, Mistral's,
  Cohere's and Bedrock's (`guardrail_intervened`) of their chat APIs.
- TGI's `eos_token` and `stop_sequence`; `eos` of Together; `tool_call` of hosts that bubble up one call.
- Z.ai's `sensitive` and `model_context_window_exceeded`: its page of error codes.
"""

import contextlib
from collections.abc import Mapping
from typing import Any

from ...runtime.warning import warn_user
from ...types.messages import FinishReason

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


def read_native_word(word: object, native: object, *, replaced: bool) -> Any:
    """The word of a gateway, or its upstream's word where the gateway took it for a whole answer's.

    OpenRouter has words of upstreams that are in no table, which say nothing, and litellm only those that it
    has `replaced` by "stop".

    >>> read_native_word("stop", "MAX_TOKENS", replaced=False), read_native_word("stop", "ok", replaced=False)
    ('MAX_TOKENS', 'stop')
    """
    if not (isinstance(native, str) and native) or word not in (None, "stop", "tool_calls"):
        return word
    meaning = "unknown" if replaced or native in ABORTED else "stop"
    return word if FINISH_WORDS.get(native.lower(), meaning) in ("stop", "tool_calls") else native


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
