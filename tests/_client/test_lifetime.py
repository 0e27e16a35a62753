"""What a client holds open, and when it is closed."""

import gc
from pathlib import Path

import pytest

from llm_provider import Client
from llm_provider._cache.response_cache import ResponseCache
from llm_provider._client.lifetime import cache_of, ledger_of
from llm_provider.simulator import Simulator
from support import wait_until

MODEL = "gpt-6.1-sol"


def test_a_dropped_client_closes_its_connections(simulator: Simulator, own_cache: Path) -> None:
    client = Client(cache_dir=own_cache)
    client.call(MODEL, "Hi")
    engine = client._engine
    del client
    gc.collect()
    assert wait_until(lambda: engine._state is None)


def test_the_ledger_is_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLM_PROVIDER_LEDGER", raising=False)
    assert ledger_of(None) is None
    monkeypatch.setenv("LLM_PROVIDER_LEDGER", str(tmp_path / "ledger.jsonl"))
    assert ledger_of(None) is not None


def test_without_a_second_level_there_is_one_store(tmp_path: Path) -> None:
    cache = cache_of(None, tmp_path, float, shared=None)
    assert type(cache) is ResponseCache
    assert cache.directory == tmp_path
