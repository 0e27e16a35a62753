"""The files of a client are found, or refused, before anything is sent."""

from pathlib import Path

import pytest

from llm_provider._cache.response_cache import ResponseCache
from llm_provider._client.files import cache_of, ledger_of


def test_the_ledger_is_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLM_PROVIDER_LEDGER", raising=False)
    assert ledger_of(None) is None
    monkeypatch.setenv("LLM_PROVIDER_LEDGER", str(tmp_path / "ledger.jsonl"))
    assert ledger_of(None) is not None


def test_without_a_second_level_there_is_one_store(tmp_path: Path) -> None:
    cache = cache_of(None, tmp_path, float, shared=None)
    assert type(cache) is ResponseCache
    assert cache.directory == tmp_path
