"""The simulator's counts, and the bill that its price list gives."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..formats.wire_format import Usage
    from .prices import PriceList

__all__ = ["Ledger", "ModelLedger", "RunningLedger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLedger:
    """Requests to one model, their tokens and their price.

    Token totals include their parts: cache reads and writes are in ``input_tokens``, reasoning in
    ``output_tokens``.

    Attributes:
        requests: requests answered with status 200, including cut and cancelled streams.
        billed: USD; None without a price list, or if the model is not in it.
        unfinished: the number of these requests whose answer did not reach its end.
        unfinished_billed: the part of ``billed`` for unfinished answers.
    """

    provider: str
    model: str
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    reasoning_output_tokens: int = 0
    billed: Decimal | None = None
    unfinished: int = 0
    unfinished_billed: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Counts since the start or the last ``clear()``.

    Attributes:
        requests: all requests to a path of a provider.
        answered: requests answered with status 200.
        connections: distinct client addresses (host and port) seen.
        disconnects: requests whose client disconnected before the answer was complete.
        in_flight: requests in progress now; ``peak_in_flight``: their greatest number so far.
        rate_limited: requests refused by a limit (not by an injected fault).
        faults: requests that met an injected fault.
        statuses: number of answers by HTTP status.
        models: one entry for each model with an answer, sorted by provider and name.
    """

    requests: int = 0
    answered: int = 0
    connections: int = 0
    disconnects: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    rate_limited: int = 0
    faults: int = 0
    statuses: Mapping[int, int]
    requests_by_provider: Mapping[str, int]
    models: tuple[ModelLedger, ...] = ()

    def model(self, provider: str, model: str) -> ModelLedger:
        """The entry of one model; an empty one for a model without answers."""
        for entry in self.models:
            if (entry.provider, entry.model) == (provider, model):
                return entry
        return ModelLedger(provider=provider, model=model)

    @property
    def input_tokens(self) -> int:
        """Input tokens of all models."""
        return sum(entry.input_tokens for entry in self.models)

    @property
    def output_tokens(self) -> int:
        """Output tokens of all models."""
        return sum(entry.output_tokens for entry in self.models)

    @property
    def billed(self) -> Decimal | None:
        """USD of all models; None if one of them has no price."""
        total: Decimal | None = Decimal(0)
        for entry in self.models:
            total = _add_cost(total, entry.billed)
        return total

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Ledger:
        """Build a ledger from the JSON of :meth:`RunningLedger.to_json`."""
        arguments = dict(values)
        arguments["statuses"] = {int(status): number for status, number in arguments["statuses"].items()}
        arguments["models"] = tuple(
            ModelLedger(**{**entry, **{name: _read_amount(entry[name]) for name in _AMOUNTS}})
            for entry in arguments["models"]
        )
        return cls(**arguments)


_AMOUNTS = ("billed", "unfinished_billed")
_TOKENS = (
    "input_tokens", "output_tokens", "cache_read_input_tokens", "cache_write_input_tokens",
    "reasoning_output_tokens",
)  # fmt: skip


def _read_amount(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


class RunningLedger:
    """The counts of a server while it runs; :meth:`to_json` makes a :class:`Ledger` of them."""

    def __init__(self) -> None:
        self.in_flight = 0
        self.by_provider: Counter[str] = Counter()
        self.clear()

    def clear(self) -> None:
        """Reset all counts except the requests in progress."""
        self.requests = self.disconnects = self.rate_limited = self.faults = 0
        self.peak_in_flight = self.in_flight
        self.statuses: Counter[int] = Counter()
        self.requests_by_provider: Counter[str] = Counter()
        self._clients: set[Any] = set()
        self._models: dict[tuple[str, str], dict[str, Any]] = {}

    def begin(self, provider: str, client: Any) -> None:
        """Count a request that has arrived."""
        self.requests += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)
        self.by_provider[provider] += 1
        self.requests_by_provider[provider] += 1
        self._clients.add(client)

    def end(self, provider: str, status: int, *, disconnected: bool) -> None:
        """Count the end of a request; ``status`` is 0 if nothing was answered."""
        self.in_flight -= 1
        self.by_provider[provider] -= 1
        if status:
            self.statuses[status] += 1
        if disconnected:
            self.disconnects += 1

    def bill(
        self,
        provider: str,
        model: str,
        usage: Usage,
        prices: PriceList | None,
        *,
        finished: bool,
        variant: str = "standard",
    ) -> None:
        """Count the tokens of an answer, or of the part of it that was sent, and their price."""
        counts = self._models.get((provider, model))
        if counts is None:
            entry = ModelLedger(
                provider=provider, model=model, billed=Decimal(0), unfinished_billed=Decimal(0)
            )
            counts = self._models[(provider, model)] = asdict(entry)
        counts["requests"] += 1
        for name in _TOKENS:
            counts[name] += getattr(usage, name)
        cost = None if prices is None else prices.cost(provider, model, usage, variant)
        counts["billed"] = _add_cost(counts["billed"], cost)
        if not finished:
            counts["unfinished"] += 1
            counts["unfinished_billed"] = _add_cost(counts["unfinished_billed"], cost)

    def to_json(self) -> dict[str, Any]:
        """The counts as JSON types; USD as text, which is not rounded."""
        models = [counts for _, counts in sorted(self._models.items())]
        counts = ("requests", "disconnects", "in_flight", "peak_in_flight", "rate_limited", "faults")
        return {
            **{name: getattr(self, name) for name in counts},
            "answered": sum(entry["requests"] for entry in models),
            "connections": len(self._clients),
            "statuses": {str(status): number for status, number in self.statuses.items()},
            "requests_by_provider": dict(self.requests_by_provider),
            "models": [
                {**counts, **{name: _write_amount(counts[name]) for name in _AMOUNTS}} for counts in models
            ],
        }


def _add_cost(total: Decimal | None, cost: Decimal | None) -> Decimal | None:
    return None if total is None or cost is None else total + cost


def _write_amount(amount: Decimal | None) -> str | None:
    return None if amount is None else str(amount)
