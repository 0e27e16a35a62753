"""What the providers have billed, by day, model, key and class of tokens, for their reports."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..formats.wire_format import Usage

__all__ = ["Account", "Books", "Sums", "name_key"]

_COUNTS = (
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_write_input_tokens",
    "reasoning_output_tokens", "web_searches",
)  # fmt: skip


class Account(NamedTuple):
    """One page of the books. ``day`` is an ISO date in UTC, ``kind`` is completions or embeddings."""

    provider: str
    kind: str
    day: str
    model: str
    key: str
    batch: bool


@dataclass(slots=True)
class Sums:
    """Requests and tokens of an account, and USD by class of tokens."""

    requests: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    usd: dict[str, Decimal] = field(default_factory=dict)

    def add(self, requests: int, counts: Counter[str], usd: dict[str, Decimal]) -> None:
        """Add sums to these."""
        self.requests += requests
        self.counts.update(counts)
        for name, amount in usd.items():
            self.usd[name] = self.usd.get(name, Decimal(0)) + amount


class Books(dict[Account, Sums]):
    """The accounts of all providers."""

    def enter(
        self,
        moment: float,
        names: tuple[str, str, str],
        key: str,
        usage: Usage,
        usd: dict[str, Decimal],
        *,
        batch: bool,
    ) -> None:
        """Enter one request at a time in Unix seconds; ``names`` are provider, kind and served model."""
        provider, kind, model = names
        day = f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"
        account = Account(provider, kind, day, model, name_key(key), batch)
        counts = Counter({name: getattr(usage, name) for name in _COUNTS})
        self.setdefault(account, Sums()).add(1, counts, usd)


def name_key(key: str) -> str:
    """The identifier of an API key in reports, from which the key cannot be told.

    >>> name_key("sk-a") == name_key("sk-a") != name_key("sk-b")
    True
    """
    return f"key_{blake2b(key.encode(), digest_size=8).hexdigest()}"
