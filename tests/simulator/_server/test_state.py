"""What changes while a server runs: settings of one provider or of all, the limits in force, identifiers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from llm_provider.simulator import Settings
from llm_provider.simulator._server.state import State

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator

    from ..conftest import Post


def test_a_mistake_changes_nothing(simulator: Simulator, chat: Post) -> None:
    with pytest.raises(TypeError, match="latensy"):
        simulator.configure(latensy=1, answer="changed")
    assert chat("openai", "hi").json["choices"][0]["message"]["content"] == "echo: hi"


def test_identifiers_are_never_used_twice(simulator: Simulator, chat: Post) -> None:
    first = chat("openai", "hi").json["id"]
    simulator.clear()
    assert chat("openai", "hi").json["id"] != first


def test_requests_share_the_limit_of_their_scope() -> None:
    state = State(Settings(requests_per_minute=60))

    def limits(provider: str = "openai", model: str = "m", key: str = "k") -> object:
        return state.limits(provider, model, key, state.settings(provider))

    assert limits() is limits(model="other", key="other")
    assert limits() is not limits("groq")
    state.configure(None, {"limits_per": "model"})
    assert limits() is limits(key="other")
    assert limits() is not limits(model="other")
    state.configure(None, {"limits_per": "key"})
    assert limits() is limits(model="other")
    assert limits() is not limits(key="other")
    state.configure("groq", {"requests_per_minute": None})
    assert limits("groq") is None


def test_the_jitter_is_the_same_with_the_same_seed() -> None:
    def latencies(seed: int) -> list[float]:
        settings = Settings(latency=1, latency_jitter=2, seed=seed)
        state = State(settings)
        return [state.latency(settings) for _ in range(20)]

    assert latencies(1) == latencies(1) != latencies(2)
    assert all(1 <= latency < 3 for latency in latencies(1))
