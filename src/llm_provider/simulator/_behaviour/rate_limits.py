"""Rate limits like those of the providers: token buckets that refill continuously."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..formats.wire_format import LimitState

if TYPE_CHECKING:
    from .._settings import Settings

__all__ = ["RateLimits", "TokenBucket"]

SECONDS_PER_MINUTE = 60.0


class TokenBucket:
    """A bucket that refills at a constant rate up to its capacity. Callers pass the time in seconds.

    >>> bucket = TokenBucket(per_minute=60, capacity=2, now=0.0)
    >>> bucket.wait(1, now=0.0), bucket.take(2, now=0.0), bucket.wait(1, now=0.5)
    (0.0, None, 0.5)
    """

    __slots__ = ("_level", "_rate", "_seen", "capacity", "per_minute")

    def __init__(self, per_minute: float, capacity: float, now: float) -> None:
        self.per_minute = per_minute
        self.capacity = capacity
        self._rate = per_minute / SECONDS_PER_MINUTE
        self._level = capacity
        self._seen = now

    def level(self, now: float) -> float:
        """The content of the bucket; negative after a request that was larger than the bucket."""
        if now > self._seen:
            self._level = min(self.capacity, self._level + (now - self._seen) * self._rate)
            self._seen = now
        return self._level

    def wait(self, amount: float, now: float) -> float:
        """Seconds until ``amount`` may be taken; 0 for now, infinite if the rate is zero.

        An amount larger than the bucket may be taken from a full bucket; otherwise it would wait for ever.
        """
        missing = min(amount, self.capacity) - self.level(now)
        if missing <= 0:
            return 0.0
        return missing / self._rate if self._rate else math.inf

    def take(self, amount: float, now: float) -> None:
        """Remove ``amount``, even if the bucket holds less."""
        self._level = self.level(now) - amount

    def state(self, now: float) -> tuple[float, float, float]:
        """The limit per minute, the whole units left, and the seconds until the bucket is full."""
        level = self.level(now)
        missing = self.capacity - level
        reset = 0.0 if missing <= 0 else missing / self._rate if self._rate else math.inf
        return self.per_minute, max(0.0, math.floor(level)), reset


class RateLimits:
    """The request and token buckets of one scope (provider, model or key)."""

    __slots__ = ("_requests", "_tokens")

    def __init__(self, settings: Settings, now: float) -> None:
        self._requests: TokenBucket | None = None
        self._tokens: TokenBucket | None = None
        if settings.requests_per_minute is not None:
            self._requests = TokenBucket(settings.requests_per_minute, settings.burst_requests, now)
        if settings.tokens_per_minute is not None:
            self._tokens = TokenBucket(settings.tokens_per_minute, settings.burst_tokens, now)

    def admit(self, tokens: int, now: float) -> float:
        """Charge a request with this number of tokens and return 0, or return the seconds until it passes."""
        charges = [
            (bucket, amount) for bucket, amount in ((self._requests, 1), (self._tokens, tokens)) if bucket
        ]
        wait = max((bucket.wait(amount, now) for bucket, amount in charges), default=0.0)
        if wait == 0.0:
            for bucket, amount in charges:
                bucket.take(amount, now)
        return wait

    def state(self, now: float) -> LimitState:
        """The values for the rate-limit headers."""
        return LimitState(
            None if self._requests is None else self._requests.state(now),
            None if self._tokens is None else self._tokens.state(now),
        )
