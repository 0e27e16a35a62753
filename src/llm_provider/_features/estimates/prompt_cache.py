"""What a batch saves by the provider's prompt cache, before it is sent."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._core import doors
from ..._core.tokens.counting import Range

if TYPE_CHECKING:
    from ..._core.journey.call import Call
    from ..._core.money.price_rows import PriceRow
    from ..prompt_caching.settings import Prefix


class _Request(NamedTuple):
    prefixes: list[Prefix]
    tokens: float
    """Estimated tokens of the whole prompt, on the scale of `prefixes`."""
    read: float
    """Likely input tokens."""


class CachedInput:
    """The common prefixes of the requests of a batch, as a batch finds them while they are sent."""

    def __init__(self) -> None:
        self._requests: list[_Request] = []
        self.is_stored = False
        """Whether prefixes are stored at the provider by requests of their own, for rent."""

    def add(self, call: Call[Any], requests: int, tokens: int, read: float) -> None:
        """Add the requests of a call, with the rough and the likely number of tokens that each reads."""
        prefix = call.encoded.prefix
        self.is_stored = prefix is not None and prefix.is_stored
        self._requests += [_Request(doors.prefix_gate.prefixes_of(call), tokens, read)] * requests

    def tokens(self, read: Range) -> Range:
        """Tokens that are read from the prompt cache, of all that the requests read."""
        shared = sum(tokens for _, tokens, is_first in self._list_shared() if not is_first)
        return _in_proportion(shared, read)

    def cheaper(
        self, costs: Mapping[str, Range], lists: Mapping[str, Sequence[PriceRow]], read: Range, seconds: float
    ) -> dict[str, Range]:
        """Costs in USD with the prompt cache. The highest costs are with a cache that keeps nothing.

        `costs` are those without it, by service level; where its rent is not known, none is. `lists` are the
        rows of each service level, the longest prompts first. `read` are the tokens of all requests, and
        `seconds` is for how long a stored prefix is kept.
        """
        changed = {}
        for name, cost in costs.items():
            tiers, usd, stored = lists[name], 0.0, 0.0
            for request, tokens, is_first in self._list_shared():
                row = next((row for row in tiers if row.min_input_tokens <= request.read), tiers[-1])
                cached = row.cache_write if is_first else row.cache_read
                if self.is_stored and name != "batch":
                    cached = row.cache_read
                    if is_first:
                        rent = math.nan if row.cache_storage is None else float(row.cache_storage)
                        stored += tokens * (float(row.input or 0) + rent * seconds / 3600)
                if row.input is not None and cached is not None:
                    usd += tokens * float(row.input - cached)
            saved, more = _in_proportion(usd / 1e6, read), _in_proportion(stored / 1e6, read)
            if not math.isnan(stored):
                low = max(0.0, cost.low - saved.low + more.low)
                changed[name] = Range(low, cost.likely - saved.likely + more.likely, cost.high + more.high)
        return changed

    def _list_shared(self) -> list[tuple[_Request, float, bool]]:
        """Each request with a common prefix, the tokens of the prefix, and whether it is the first."""
        counts = Counter(prefix.digest for request in self._requests for prefix in request.prefixes)
        seen: set[bytes] = set()
        shared = []
        for request in self._requests:
            if common := [prefix for prefix in request.prefixes if counts[prefix.digest] > 1]:
                tokens = min(1.0, common[-1].tokens / request.tokens) * request.read
                shared.append((request, tokens, common[-1].digest not in seen))
                seen.add(common[-1].digest)
        return shared


def _in_proportion(number: float, read: Range) -> Range:
    """A number that is as uncertain as the tokens that are read."""
    return Range(number * read.low / read.likely, number, number * read.high / read.likely)
