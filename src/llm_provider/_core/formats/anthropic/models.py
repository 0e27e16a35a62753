"""What each family of Claude models accepts."""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

THINKING_BUDGETS: Mapping[str, int] = {"low": 1024, "medium": 2048, "high": 4096}
"""Tokens of thinking for each `reasoning_effort` of models that accept a budget (4.5); litellm's figures."""

LEVELS = ("none", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Family:
    """What a family of Claude models accepts.

    `efforts` are its levels of `reasoning_effort`. `sampling` is how many of temperature and top_p it accepts
    at once; where that is one, it accepts neither while it thinks, and a `reasoning_effort` beside them is
    sent without thinking. `budget` means that it needs a number of thinking tokens in place of a level, which
    is always thinking; `always_thinks` that thinking cannot be switched off, which also
    excludes a tool_choice that forces a tool. `prefill` allows a conversation to end with the beginning of
    the answer, `later_system` a system message inside the conversation. `schemas` says whether it can be
    constrained to a JSON schema, `blank_stops` whether a stop text may be white space alone.
    """

    pattern: str
    efforts: tuple[str, ...] = LEVELS
    sampling: int = 0
    budget: bool = False
    always_thinks: bool = False
    prefill: bool = False
    later_system: bool = True
    schemas: bool = True
    blank_stops: bool = False


# The first match counts. Capabilities are from litellm 1.106's model table, November 2026. Stop texts:
# BerriAI/litellm#3286.
_FAMILIES = (
    Family(r"claude-((opus|sonnet)-5-5|fable|mythos).*", efforts=LEVELS[1:], always_thinks=True),
    Family(r"claude-(haiku-5-5|opus-4-8).*|claude-(opus|sonnet)-5(-\d{8}|-latest)?"),
    Family(r"claude-opus-4-7.*", later_system=False),
    Family(r"claude-(opus|sonnet)-4-6.*", efforts=("none", "low", "medium", "high", "max"), sampling=1,
           later_system=False),
    Family(r"claude-(opus|sonnet|haiku)-4-5.*", efforts=("none", *THINKING_BUDGETS), sampling=1, budget=True,
           prefill=True, later_system=False),
    # Structured outputs began with Opus 4.1, says Anthropic's guide.
    Family(r"claude-(2|3|instant).*|claude-(opus|sonnet)-4(-0|-\d{8}|-latest)?", sampling=2, prefill=True,
           schemas=False),
    # A model that is not known, or another maker's on a server with this format: the server decides.
    Family(r".*", sampling=2, prefill=True, blank_stops=True),
)  # fmt: skip


@functools.lru_cache(maxsize=1024)
def family_of(model: str) -> Family:
    return next(family for family in _FAMILIES if re.fullmatch(family.pattern, model))
