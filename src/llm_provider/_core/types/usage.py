"""The tokens, the times and the cost of a call: `Usage` and `Timing`, and the results that have them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, TypeAlias

from ..errors import READERS, FailedAttempt
from ..hints import NoMapping
from ..json_values import check_fields
from ..runtime.frozen import quick_maker, read_old_state
from ..words import format_cost, format_usd
from .score_values import Scorable

CostSource: TypeAlias = Literal["reply", "prices", "litellm"]
"""Where a cost comes from: the reply itself, the price table, or litellm's price map."""

CostBounds: TypeAlias = tuple[float, float | None]
"""The least and the most USD of a cost that is not known. The second is None where nothing bounds it."""


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
    cache_write_12h_input_tokens: int = field(default=0, metadata={"late": True})
    """The part of `cache_write_input_tokens` that OpenAI keeps for twelve hours. JSON has it above 0 only."""

    __setstate__ = read_old_state

    @property
    def total_tokens(self) -> int:
        """The sum of input and output tokens."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        if not isinstance(other, Usage):
            return NotImplemented
        return make_usage(**{name: getattr(self, name) + getattr(other, name) for name in COUNTS})

    def __repr__(self) -> str:
        counts = (f"{name}={getattr(self, name)}" for name in COUNTS if getattr(self, name))
        return f"Usage({', '.join(counts)})"


make_usage = quick_maker(Usage)

COUNTS = tuple(entry.name for entry in fields(Usage))
"""The names of the counts of a `Usage`."""


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


make_timing = quick_maker(Timing)

NO_TIMING = Timing()
"""The timing of an answer that nobody measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidResult(Scorable):
    """What the results of all operations tell of their cost, as `Response` describes it."""

    usage: Usage
    model: str
    provider: str
    cost: float | None = None
    cost_source: CostSource | None = None
    cost_unknown: str | None = None
    cost_bounds: CostBounds | None = None
    price: float | None = None
    stored_price: float | None = 0.0
    """The part of the `price` of an answer that is not `cached` as a whole which was stored or shared."""
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


def read_bounds(value: object) -> CostBounds | None:
    """The bounds of a cost as JSON has them; None for any other value."""
    match value:
        case [int() | float() as least, None | int() | float() as most]:
            return float(least), most
    return None


class Cost(float):
    """A sum of costs in USD: the float is what is known, and `unknown` counts the costs that are not.

    Costs can be added, with `sum()` too. A cost of None counts as unknown. `at_most` is the most USD that the
    unknown costs are; None where one of them has no bound.

    >>> Cost(0.0123), Cost(0.0123) + Cost(0.5, unknown=2, at_most=0.25)
    (Cost(0.0123), Cost(0.5123, unknown=2, at_most=0.25))
    >>> print(Cost(0.0123), Cost(0.0123, unknown=2), Cost(0.5, unknown=2, at_most=0.25), sep=" | ")
    $0.0123 | ≥ $0.0123, 2 costs unknown | $0.50 + at most $0.25 (2 costs unknown)
    """

    __slots__ = ("at_most", "unknown")
    unknown: int
    at_most: float | None

    def __new__(cls, known: float = 0.0, *, unknown: int = 0, at_most: float | None = None) -> Self:
        self = super().__new__(cls, known)
        self.unknown, self.at_most = unknown, at_most if unknown else 0.0
        return self

    @classmethod
    def of(cls, costs: Iterable[float | None]) -> Cost:
        """The sum of some costs, each in USD or None if it is unknown.

        >>> Cost.of([0.5, None, 0.25])
        Cost(0.75, unknown=1)
        """
        each = [cost if isinstance(cost, Cost) else Cost(cost or 0.0, unknown=cost is None) for cost in costs]
        bounds = [cost.at_most for cost in each]
        at_most = None if None in bounds else math.fsum(bound or 0.0 for bound in bounds)
        return cls(math.fsum(each), unknown=sum(cost.unknown for cost in each), at_most=at_most)

    @classmethod
    def of_result(cls, result: Any) -> Cost:
        """The cost of a result or an error, with its bounds where it is not known.

        >>> Cost.of_result(PaidResult(usage=Usage(), model="m", provider="p", cost_bounds=(0.5, 0.75)))
        Cost(0.5, unknown=1, at_most=0.25)
        """
        return cls.between(result.cost, result.cost_bounds)

    @classmethod
    def between(cls, cost: float | None, bounds: object) -> Cost:
        """A cost in USD; where it is None, what is known of it and at most how much is not."""
        if cost is not None:
            return cls(cost)
        from decimal import Decimal

        least, most = read_bounds(bounds) or (0.0, None)
        at_most = None if most is None else float(Decimal(repr(most)) - Decimal(repr(least)))
        return cls(least, unknown=1, at_most=at_most)

    def __add__(self, other: float | None) -> Cost:
        return Cost.of((self, other)) if other is None or isinstance(other, (int, float)) else NotImplemented

    __radd__ = __add__

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, float | None]]:
        return (float(self),), {"unknown": self.unknown, "at_most": self.at_most}

    def __repr__(self) -> str:
        unknown = f", unknown={self.unknown}" if self.unknown else ""
        bound = f", at_most={self.at_most!r}" if self.unknown and self.at_most is not None else ""
        return f"Cost({float(self)!r}{unknown}{bound})"

    def __str__(self) -> str:
        return format_usd(float(self), self.unknown, self.at_most)


def cost_text(result: PaidResult) -> str:
    """The cost of an answer in USD, for people."""
    if result.cached and not result.attempts:
        return "cached"
    return format_cost(result.cost, result.cost_bounds)


READERS["usage"] = lambda counts: Usage(**check_fields(counts, counts=True))
READERS["stored_usages"] = lambda usages: tuple(map(READERS["usage"], usages))
READERS["cost_bounds"] = read_bounds


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedBy:
    """The machine that answered, as far as the reply and its headers tell. What they do not tell is None.

    `host` is the host that a router chose, or the deployment of a cloud. `model` is the name in the reply,
    and `snapshot` a name with a date, or a version of the weights. `fingerprint` is the provider's identifier
    of its configuration; several are in use at the same time. `engine` and `engine_version` are the server's
    software, such as "vllm" and "0.21.0". `region` is where the answer was computed. `request_id` is the
    identifier that the provider's support asks for. No reply tells the `quantization` today.

    >>> ServedBy(host="DeepInfra", fingerprint="fp_1").to_dict()
    {'host': 'DeepInfra', 'fingerprint': 'fp_1'}
    """

    host: str | None = None
    model: str | None = None
    snapshot: str | None = None
    fingerprint: str | None = None
    engine: str | None = None
    engine_version: str | None = None
    region: str | None = None
    service_tier: str | None = None
    quantization: str | None = None
    request_id: str | None = None

    def to_dict(self) -> dict[str, str]:
        """The fields that are not None."""
        values = ((name, getattr(self, name)) for name in FIELDS)
        return {name: value for name, value in values if value is not None}


FIELDS = tuple(entry.name for entry in fields(ServedBy))

_MONTH = r"(?:0[1-9]|1[0-2])"
SNAPSHOT = re.compile(
    rf"[-@](?:\d{{4}}-\d{{2}}-\d{{2}}|\d{{8}}|2\d{_MONTH}|{_MONTH}(?:[0-2]\d|3[01])|00\d)(?:-v\d.*)?$"
)
"""The date that ends a snapshot's name, also Mistral's `-2512`, DeepSeek's `-0528` and Gemini's `-001`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """One token of an answer with its log probability, as in `Response.logprobs`.

    `id` is the token's number in the model's vocabulary, None where the provider does not say it. `top` are
    the likeliest tokens at this place, this one among them if it is likely enough; they are as many as
    `top_logprobs` asked for.

    >>> TokenLogprob(token="Bern", logprob=-0.1, top=(TokenLogprob(token="Bern", logprob=-0.1),)).top[0].token
    'Bern'
    """

    token: str
    logprob: float
    id: int | None = None
    top: tuple[TokenLogprob, ...] = ()


def token_from_dict(fields: Mapping[str, Any]) -> TokenLogprob:
    return TokenLogprob(**{**fields, "top": tuple(map(token_from_dict, fields["top"]))})


@dataclass(frozen=True, slots=True)
class RowLabel:
    """The label of an input in the index of a pandas object: a tuple, if the index has several levels."""

    value: Any
    names: tuple[object, ...] = (None,)

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> RowLabel:
        value, names = fields["value"], tuple(fields["names"])
        return cls(tuple(value) if len(names) > 1 else value, names)
