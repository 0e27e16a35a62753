"""The state of a server: everything that changes while it runs."""

from __future__ import annotations

import random
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from .._batches.jobs import BatchStore
from .._behaviour.deviations import Deviations
from .._behaviour.faults import Fault, FaultQueue
from .._behaviour.inference_server import InferenceServer
from .._behaviour.prompt_cache import PromptCaches
from .._behaviour.rate_limits import RateLimits
from .._records.books import Books
from .._records.ledger import RunningLedger
from .._records.prices import PriceList
from .._records.recorded_requests import Recorder
from .routing import find_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._settings import Settings
    from ..formats.wire_format import Prompt, Usage, WireFormat

__all__ = ["State"]


class State:
    """Settings, limits, ordered faults, counts and recorded requests of one server.

    Args:
        settings: the settings of the start, which :meth:`clear` restores.
    """

    def __init__(self, settings: Settings) -> None:
        self._initial = settings
        self.ledger = RunningLedger()
        self.books = Books()
        self.recorder = Recorder()
        self.faults = FaultQueue()
        self.prompt_caches = PromptCaches()
        self._price_lists: dict[str, PriceList] = {}
        self._answers = 0
        self.batches = BatchStore(self.settings, self._find_format, self._bill_row)
        self.clear()

    def clear(self) -> None:
        """Drop faults, counts, requests, prompt caches and all changes of settings; buckets start full."""
        self._common = self._initial
        self._changes: dict[str, dict[str, Any]] = {}
        self._settings: dict[str, Settings] = {}
        self._limits: dict[str, RateLimits] = {}
        self._random = random.Random(self._initial.seed)
        self.servers = defaultdict[str, InferenceServer](InferenceServer)
        self.prices(self._initial)
        self.faults.clear()
        self.batches.clear()
        self.prompt_caches.clear()
        self.ledger.clear()
        self.books.clear()
        self.recorder.clear()

    def configure(self, provider: str | None, changes: Mapping[str, Any]) -> None:
        """Change settings of one provider, or of all; the buckets of the affected limits start full.

        Raises:
            TypeError, ValueError: as for :class:`Settings`; nothing is changed then.
            OSError: the price list cannot be read.
        """
        self.prices(self._common.copy_with(changes))
        if provider is None:
            self._common = self._common.copy_with(changes)
            for own_changes in self._changes.values():
                for name in changes:
                    own_changes.pop(name, None)
            self._limits.clear()
        else:
            self._changes.setdefault(provider, {}).update(changes)
            self._limits = {
                scope: limit for scope, limit in self._limits.items() if scope.split("\0")[0] != provider
            }
        self._settings.clear()

    def settings(self, provider: str) -> Settings:
        """The settings in force for a provider."""
        settings = self._settings.get(provider)
        if settings is None:
            settings = self._settings[provider] = self._common.copy_with(self._changes.get(provider, {}))
        return settings

    def deviations(self, provider: str) -> Deviations | None:
        """How a provider's answers differ from the SDK's types; None if they do not."""
        names = self.settings(provider).list_deviations()
        return Deviations(names) if names else None

    def limits(self, provider: str, model: str, key: str, settings: Settings) -> RateLimits | None:
        """The rate limits that apply to a request; None if the provider has none."""
        limited = (settings.requests_per_minute, settings.tokens_per_minute) != (None, None)
        if not limited and not settings.key_limits:
            return None
        scope = provider
        if settings.limits_per == "model":
            scope += "\0" + model
        elif settings.limits_per == "key":
            scope += "\0" + key
            settings = settings.select_key(key)
        limits = self._limits.get(scope)
        if limits is None:
            limits = self._limits[scope] = RateLimits(settings, time.monotonic())
        return limits

    def prices(self, settings: Settings) -> PriceList | None:
        """The price list of the ledger."""
        if settings.prices is None:
            return None
        price_list = self._price_lists.get(settings.prices)
        if price_list is None:
            price_list = self._price_lists[settings.prices] = PriceList(settings.prices)
        return price_list

    def _find_format(self, provider: str, path: str) -> WireFormat:
        target = find_target(f"/{provider}{path}")
        if target is None:
            raise ValueError(f"nothing is served at {path}")
        return target.format

    def bill(
        self, prompt: Prompt, served: str, key: str, usage: Usage, *, finished: bool, batch: bool = False
    ) -> None:
        """Count an answer, or the part of it that was sent, and enter it into the provider's books."""
        settings = self.settings(prompt.provider)
        prices, variant = self.prices(settings), "batch" if batch else "standard"
        self.ledger.bill(prompt.provider, prompt.model, usage, prices, finished=finished, variant=variant)
        parts = None if prices is None else prices.split_cost(prompt.provider, prompt.model, usage, variant)
        names = (prompt.provider, "completions" if prompt.samples else "embeddings", served)
        self.books.enter(time.time() + settings.billing_clock, names, key, usage, parts or {}, batch=batch)

    def _bill_row(self, prompt: Prompt, served: str, key: str, usage: Usage, *, batch: bool = True) -> None:
        self.bill(prompt, served, key, usage, finished=True, batch=batch)

    def latency(self, settings: Settings) -> float:
        """Seconds until the first byte of the next answer."""
        if settings.latency_jitter:
            return settings.latency + self._random.random() * settings.latency_jitter
        return settings.latency

    def next_identifier(self) -> str:
        """An identifier for the next answer, which this server has never used before."""
        self._answers += 1
        return f"{self._answers:024x}"

    def inject(self, order: Mapping[str, Any]) -> None:
        """Order a fault, described as on the control channel."""
        self.faults.add(**{**order, "fault": Fault.from_json(order["fault"])})
