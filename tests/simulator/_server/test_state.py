"""The limits in force, and the jitter of a seed."""

from llm_provider.simulator import Settings
from llm_provider.simulator._server.state import State


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
