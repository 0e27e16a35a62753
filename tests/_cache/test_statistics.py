"""The use of a cache, as it is counted."""

from __future__ import annotations

import pytest

from llm_provider import CacheStatistics, Client
from llm_provider.simulator import Simulator


def test_hits_misses_and_savings_are_counted(client: Client, simulator: Simulator) -> None:
    paid = client.call("gpt-6.1-sol", "1+1?").cost
    client.call("gpt-6.1-sol", "1+1?")
    statistics = client.cache.stats()
    assert isinstance(statistics, CacheStatistics)
    assert (statistics.hits, statistics.misses, statistics.writes) == (1, 1, 1)
    assert (statistics.pending, statistics.entries) == (0, 1)
    assert statistics.saved == pytest.approx(paid)
    assert statistics.bytes > 0
    assert statistics.second_level is None
