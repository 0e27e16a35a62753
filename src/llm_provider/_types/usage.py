"""The tokens, the times and the cost of a call: `Usage` and `Timing`, and the results that have them."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias

from .._errors import READERS, FailedAttempt
from .._foreign_attributes import NoMapping
from .._runtime.frozen import quickly_made
from .._words import format_usd

CostSource: TypeAlias = Literal["reply", "prices", "litellm"]
"""Where a cost comes from: the reply itself, the price table, or litellm's price map."""


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Usage(NoMapping):
    """Token counts of one call, defined for every provider as in OpenTelemetry's GenAI conventions.

    Totals are inclusive: `input_tokens` contains the tokens read from and written to the provider's prompt
    cache, `output_tokens` contains reasoning. All values are tokens, except `web_searches` and
    `unpriced_tools`. A count that the provider does not report is 0.

    >>> Usage(input_tokens=10, output_tokens=5) + Usage(input_tokens=1, reasoning_output_tokens=0)
    Usage(input_tokens=11, output_tokens=5)
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    cache_write_1h_input_tokens: int = 0
    """The part of `cache_write_input_tokens` that the provider keeps for one hour."""
    reasoning_output_tokens: int = 0
    audio_input_tokens: int = 0
    """Audio and images are parts of `input_tokens`, including tokens read from the cache."""
    cache_read_audio_input_tokens: int = 0
    """The part of `audio_input_tokens` that was read from the cache."""
    image_input_tokens: int = 0
    audio_output_tokens: int = 0
    image_output_tokens: int = 0
    """Audio and images are parts of `output_tokens`."""
    web_searches: int = 0
    """Searches that the provider made for the model. They are billed by number."""
    unpriced_tools: int = 0
    """Uses of the provider's tools that it bills by prices that are not known, such as a container, a file
    search or another model. The cost is then not known either, unless the reply tells it."""

    @property
    def total_tokens(self) -> int:
        """The sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in _USAGE_FIELDS})

    def __repr__(self) -> str:
        counts = (f"{name}={getattr(self, name)}" for name in _USAGE_FIELDS if getattr(self, name))
        return f"Usage({', '.join(counts)})"


_USAGE_FIELDS = tuple(entry.name for entry in fields(Usage))


@quickly_made
@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The durations of one call, in seconds of a monotonic clock.

    `queue` is the wait before and between attempts: for a slot, for a provider's Retry-After, for a back-off.
    `first_token` is the time from the start of the last attempt to its first delta; None unless the answer
    was streamed. `total` is the time that the caller waited. `overhead` is `total` without `queue` and
    without the time inside the provider's SDK. `attempts` is the number of requests sent; 0 for a cache hit.
    """

    queue: float = 0.0
    first_token: float | None = None
    total: float = 0.0
    attempts: int = 0
    overhead: float = 0.0


NO_TIMING = Timing()
"""The timing of an answer that nobody measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidResult:
    """What the results of all operations tell of their cost, as `Response` describes it."""

    usage: Usage
    model: str
    provider: str
    cost: float | None = None
    cost_source: CostSource | None = None
    cost_unknown: str | None = None
    price: float | None = None
    cached: bool = False
    timing: Timing = NO_TIMING
    failures: tuple[FailedAttempt, ...] = field(default=(), repr=False)

    @property
    def attempts(self) -> int:
        """The number of requests that were sent for this call; 0 if all of it came from the cache."""
        return self.timing.attempts

    @property
    def maybe_billed(self) -> bool:
        """Whether the provider may have charged for this call."""
        return self.attempts > 0 or not self.cached


def cost_text(cost: float | None, *, cached: bool) -> str:
    """The cost of an answer in USD, for people."""
    if cached:
        return "cached"
    return "cost unknown" if cost is None else format_usd(cost)


READERS["usage"] = lambda counts: Usage(**counts)
