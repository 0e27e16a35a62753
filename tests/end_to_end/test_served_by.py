"""Who answered, by every provider, in every way that an answer comes."""

from __future__ import annotations

import json
import pickle
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from litellm_support import IGNORED_WARNINGS
from llm_provider import Client, Response, ServedBy
from llm_provider._cache.storage.entry import decode_entry, decode_question, encode_entry
from llm_provider._cache.storage.store import Store
from llm_provider.simulator import Simulator
from support import ask, ignore

pytestmark = IGNORED_WARNINGS

REGION = "simulated-region-1"
OSS = "openai/gpt-oss-120b"
FINGERPRINT = "vllm-0.21.0-tp8-1a2b3c4d"
OPENAI = {"engine": "vllm", "engine_version": "0.21.0"}
METADATA = {"extra_headers": {"X-OpenRouter-Metadata": "enabled"}}
CHAT: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "gpt-4o": (OPENAI | {"service_tier": "default"}, {"endpoint": "chat"}),
    "gpt-6.1-sol": ({"service_tier": "default"}, {"endpoint": "responses"}),
    "azure/gpt-6.1-sol": (
        {"snapshot": "gpt-6.1-sol-2026-10-21", "service_tier": "default", "region": REGION},
        {"endpoint": "responses"},
    ),
    "azure/gpt-4o": (OPENAI | {"host": "gpt-4o", "region": REGION}, {"endpoint": "chat"}),
    "claude-opus-5-5": ({"service_tier": "standard", "region": "us"}, {}),
    "bedrock/us.anthropic.claude-opus-5-5-v1:0": ({"service_tier": "standard", "region": "us"}, {}),
    "gemini-3.8-flash": ({"service_tier": "standard"}, {}),
    f"openrouter/{OSS}": (OPENAI | {"host": "DeepInfra", "region": REGION}, METADATA),
    f"groq/{OSS}": (OPENAI | {"region": REGION, "service_tier": "on_demand"}, {}),
    f"together_ai/{OSS}": ({}, {}),
    "fireworks_ai/glm-5p3": (OPENAI | {"host": "accounts/simulator/deployments/1"}, {}),
    "xai/grok-5": (OPENAI, {}),
    "deepseek/deepseek-chat": (OPENAI, {}),
    "mistral/mistral-large-2512": ({"snapshot": "mistral-large-2512"}, {}),
    f"huggingface/{OSS}": (OPENAI | {"host": "deepinfra"}, {}),
    "local/x": (OPENAI, {}),
    "litellm/openai/gpt-4o": (OPENAI | {"service_tier": "default"}, {}),
    "litellm/anthropic/claude-opus-5-5": ({}, {}),
}
"""Model → what the simulator says besides the model and identifiers."""
OF_EACH = ("model", "request_id", "fingerprint")
BATCHES = ("gpt-4o", "claude-opus-5-5", "gemini-3.8-flash", f"groq/{OSS}", f"together_ai/{OSS}")
WAYS = ("live", "stream", "hit", "old entry", "dict")
HEADERS_ONLY = {"region", "host", "request_id", "snapshot", "service_tier"}


@pytest.fixture
def honest(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> Simulator:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    simulator.configure(fingerprints=FINGERPRINT, upstreams=1)
    return simulator


def forget_origins(cache: Path) -> None:
    """Write the entries as a version without origins wrote them."""
    with closing(Store(cache, ignore)) as store:
        rows = [(key, decode_entry(key, value), decode_question(key, value)) for key, value in store.items()]
        store.delete([key for key, _, _ in rows])
        for key, entry, question in rows:
            assert entry is not None
            value = encode_entry(key, entry._replace(origin=None), orjson.dumps(question))
            assert b'"origin"' not in value
            store.insert([(key, value, None)])


def read_who(answer: Any) -> dict[str, str]:
    served_by = answer.served_by
    assert isinstance(served_by, ServedBy)
    return {name: value for name, value in served_by.to_dict().items() if name not in OF_EACH}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", CHAT)
def test_every_answer_says_who_gave_it(model: str, way: str, honest: Simulator, own_cache: Path) -> None:
    expected, parameters = CHAT[model]
    with Client(cache_dir=own_cache, telemetry=False) as client:
        answer = ask(client, "stream" if way == "stream" else "call", model, "Hi", **parameters)
    assert answer.served_by.request_id, "every provider names its request"
    if way in ("hit", "old entry"):
        if way == "old entry":
            forget_origins(own_cache)
        first = answer
        with Client(cache_dir=own_cache, telemetry=False) as client:
            answer = ask(client, "call", model, "Hi", **parameters)
        assert answer.cached
        if way == "hit":
            assert answer.served_by == first.served_by
        else:
            expected = {name: expected[name] for name in expected if name not in HEADERS_ONLY}
            assert expected.items() <= answer.served_by.to_dict().items() <= first.served_by.to_dict().items()
            return
    if way == "dict":
        answer = Response.from_dict(json.loads(json.dumps(answer.to_dict())))
        answer = pickle.loads(pickle.dumps(answer))
    assert read_who(answer) == expected
