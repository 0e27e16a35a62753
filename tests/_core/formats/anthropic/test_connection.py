"""Requests that the SDK of Anthropic would change or refuse. Most are in transport/test_connection.py."""

from dataclasses import replace
from pathlib import Path

import pytest

from anthropic_support import OLD, exchange, outgoing
from llm_provider import Client
from llm_provider._core.requests.api_keys import APIKey
from llm_provider._core.requests.routing import resolve
from llm_provider._features.clouds.authorization import repeat_key
from llm_provider.simulator import Simulator
from support import WAYS, ask


def test_sampling_reaches_the_wire_with_its_version(simulator: Simulator) -> None:
    exchange(outgoing(simulator, "Hi", OLD, temperature=0.5))
    (request,) = simulator.requests("anthropic")
    assert request.body["temperature"] == 0.5
    assert request.headers["anthropic-version"] == "2023-06-01"


def test_a_long_answer_needs_no_stream(simulator: Simulator) -> None:
    assert exchange(outgoing(simulator, "Hi", max_tokens=128_000))["content"]


@pytest.mark.parametrize("way", [*WAYS, "count_tokens"])
@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
def test_another_server_may_read_either_header_of_the_key(
    simulator: Simulator, own_cache: Path, way: str, transport: str
) -> None:
    model = "claude-haiku-5-5"
    with Client(cache_dir=own_cache, transport=transport, api_key="sk-mine-of-16-letters") as client:
        if way == "count_tokens":
            client.count_tokens(model, "Hi")
        else:
            ask(client, way, model)
    (request,) = simulator.requests("anthropic")
    # The simulator keeps a digest of the key, which is the same for both.
    assert request.headers["x-api-key"] == request.headers["authorization"].removeprefix("Bearer ")


def test_anthropics_own_server_and_clouds_get_one_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    monkeypatch.setenv("ANTHROPIC_FOUNDRY_BASE_URL", "https://one.services.ai.azure.com")
    for model in ("claude-haiku-5-5", "azure_ai/claude-haiku-5-5"):
        assert repeat_key(resolve(model), APIKey("key")) == {}
    mine = replace(resolve("claude-haiku-5-5"), base_url="http://localhost")
    assert repeat_key(mine, APIKey("key")) == {"X-Api-Key": "key"}
