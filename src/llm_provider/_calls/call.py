"""What the stages of a call hand to each other: the call itself, and its answered samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._cache.key import cache_key
from .._cache.storage.entry import Asked
from .._errors import FailedAttempt
from .._limits.timeouts import Deadline
from .._money.track import Tracks
from .._providers.adapter import Adapter, Answer, EncodedRequest
from .._requests.request import Request
from .._requests.routing import Target
from .._runtime.canonical_json import canonical

if TYPE_CHECKING:
    from decimal import Decimal

    from .._providers.facts import RequestFacts

MAX_REQUEST_BYTES = 30_000_000
"""The largest body. Gemini takes 20 MB and Anthropic 32 MB; no model has a context for as much text."""


@dataclass(slots=True)
class Call:
    """A request on its way: where it goes and the exact bytes that will be sent."""

    request: Request
    target: Target
    adapter: Adapter
    encoded: EncodedRequest
    body: bytes
    """The payload for one sample as canonical JSON."""
    started: float
    """Monotonic time at which the user asked."""
    max_concurrent: int
    at_once: int
    """So many of its kind may be sent before anything is known of the provider's limits."""
    cache: str
    """The cache mode: that of the request, else the client's."""
    tracks: Tracks
    """What it counts in, besides its client. Found where the call is made: the loop's thread is nobody's."""
    deadline: Deadline | None = None
    first_key: str | None = None
    """The cache key of the first sample, once it was asked for: to look, to share, and to store."""

    @property
    def draws(self) -> range:
        """Numbers of the samples asked for."""
        return range(self.request.draw, self.request.draw + self.request.n)

    def key(self, draw: int) -> str:
        """The cache key of one sample."""
        if draw != self.request.draw:
            return cache_key(**self.place(), body=self.body, draw=draw)
        if self.first_key is None:
            self.first_key = cache_key(**self.place(), body=self.body, draw=draw)
        return self.first_key

    def asked(self, draw: int) -> Asked:
        """What is in the key, for those who look for what was asked before."""
        return Asked(**self.place(), body=self.body, draw=draw, model=self.request.model)

    def place(self) -> dict[str, Any]:
        """Whom it asks, and how: what is in the key besides the payload and the sample's number."""
        return {
            "provider": self.target.provider,
            "base_url": self.target.base_url,
            "operation": self.encoded.operation,
            "headers": self.encoded.headers,
        }

    def facts(self) -> RequestFacts:
        """The facts about its request that estimates, budgets and rate limits need; read anew each time."""
        return self.adapter.facts(self.encoded)

    def body_for(self, samples: int) -> bytes:
        """The payload that asks for several samples in one request."""
        if samples == 1:
            return self.body
        payload: dict[str, Any] = dict(self.encoded.payload)
        inner = payload
        for name in self.encoded.samples_field[:-1]:
            inner[name] = inner = dict(inner.get(name, {}))
        inner[self.encoded.samples_field[-1]] = samples
        return canonical(payload)


@dataclass(slots=True)
class Sample:
    """One answered request, or one entry of the cache. Times are seconds."""

    answer: Answer
    body: bytes
    cached: bool
    queue: float = 0.0
    sending: float = 0.0
    attempts: int = 0
    failures: tuple[FailedAttempt, ...] = ()
    first_token: float | None = None
    cost: Decimal | None = None
    """USD of an answered request; None where it is not known."""
    served_before: str | None = None
    """The model that served before, where it has changed."""
