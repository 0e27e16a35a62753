"""The number of a request's input tokens, found on this machine without network."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from .._requests.routing import maker_names
from .._tokens.counting import adds_input, input_tokens
from .._tokens.range import Range
from .._tokens.tokenizer import counter_of_target
from .._types.token_count import TokenCount

if TYPE_CHECKING:
    from .._calls.call import Call

_PUBLISHED_RULE = re.compile(r"(ft:)?gpt-(3\.5|4)[-.o0-9].*|(ft:)?gpt-4")
"""Models for which OpenAI publishes the tokens around messages (openai-cookbook, How to count tokens)."""

_PER_CONVERSATION, _PER_MESSAGE = 3, 4
"""The tokens around messages: 3 and the name of the role, which is one token, and 3 before the answer."""


def local_count(call: Call[Any]) -> TokenCount:
    """Count the input of a chat call: exactly if the model's vocabulary is here, else as an estimate.

    Only texts are counted exactly, and only for models whose tokens around messages are published.
    """
    facts = call.facts()
    provider, model = maker_names(call.target)
    count = counter_of_target(call.target)
    if count is not None and not (facts.media or facts.structures or adds_input(facts, model)):
        if provider == "openai" and _PUBLISHED_RULE.fullmatch(model):
            texts = sum(map(count, facts.texts))
            return TokenCount(texts + _PER_MESSAGE * facts.turns + _PER_CONVERSATION, method="tiktoken")
        return _count(input_tokens(facts, call.target, count), "tiktoken")
    return _count(input_tokens(facts, call.target, count), "estimate")


def _count(tokens: Range, method: str) -> TokenCount:
    low, high = math.floor(tokens.low), math.ceil(tokens.high)
    # A range of one number would pass for an exact count.
    return TokenCount(
        round(tokens.likely),
        method="tiktoken" if method == "tiktoken" else "estimate",
        low=low,
        high=max(high, low + 1),
    )
