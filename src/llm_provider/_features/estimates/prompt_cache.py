"""What a batch saves by the provider's prompt cache, before it is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

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

    def add(self, call: Call[Any], requests: int, tokens: int, read: float) -> None:
        """Add the requests of a call, with the rough and the likely number of tokens that each reads."""
        # It imports asyncio, which other estimates do not need.
        from ..prompt_caching.prefix_gate import prefixes_of

        self._requests += [_Request(prefixes_of(call), tokens, read)] * requests

    def tokens(self, read: Range) -> Range:
        """Tokens that are read from the prompt cache, of all that the requests read."""
        return _in_proportion(
            sum(tokens for _, tokens, is_first in self._list_shared() if not is_first), read
        )

    def cheaper(
        self, costs: Mapping[str, Range], lists: Mapping[str, Sequence[PriceRow]], read: Range
    ) -> dict[str, Range]:
        """Costs in USD with the prompt cache. The highest ones are those of a cache that keeps nothing.

        `costs` are those without it, by service level. `lists` are the rows of each service level, the
        longest prompts first. `read` are the tokens of all requests.
        """
        changed = {}
        for name, cost in costs.items():
            saved = _in_proportion(self._sum_savings(lists[name]), read)
            changed[name] = Range(max(0.0, cost.low - saved.low), cost.likely - saved.likely, cost.high)
        return changed

    def _sum_savings(self, tiers: Sequence[PriceRow]) -> float:
        saved = 0.0
        for request, tokens, is_first in self._list_shared():
            row = next((row for row in tiers if row.min_input_tokens <= request.read), tiers[-1])
            cached = row.cache_write if is_first else row.cache_read
            if row.input is not None and cached is not None:
                saved += tokens * float(row.input - cached)
        return saved / 1e6

    def _list_shared(self) -> list[tuple[_Request, float, bool]]:
        """Each request with a common prefix, the tokens of the prefix, and whether it is the first."""
        counts = Counter(prefix.digest for request in self._requests for prefix in request.prefixes)
        seen: set[bytes] = set()
        shared = []
        for request in self._requests:
            prefix = next(
                (candidate for candidate in reversed(request.prefixes) if counts[candidate.digest] > 1), None
            )
            if prefix is not None:
                tokens = min(1.0, prefix.tokens / request.tokens) * request.read
                shared.append((request, tokens, prefix.digest not in seen))
                seen.add(prefix.digest)
        return shared


def _in_proportion(number: float, read: Range) -> Range:
    """A number that is as uncertain as the tokens that are read."""
    return Range(number * read.low / read.likely, number, number * read.high / read.likely)


def collect_cached_input(call: Call[Any]) -> CachedInput | None:
    """Collects the requests of a batch like this call; None if it does not use the prompt cache."""
    options = getattr(call.request, "options", None)
    # The rounds of tools are not part of an estimate.
    if not options or not options.get("prompt_caching") or call.request.max_tool_rounds is not None:
        return None
    return CachedInput()
