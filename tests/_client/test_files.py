"""The files of a client are found, or refused, before anything is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llm_provider import RequestError
from llm_provider._cache.response_cache import ResponseCache
from llm_provider._client.files import cache_of, ledger_of


def test_the_ledger_is_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LLM_PROVIDER_LEDGER", raising=False)
    assert ledger_of(None) is None
    monkeypatch.setenv("LLM_PROVIDER_LEDGER", str(tmp_path / "ledger.jsonl"))
    assert ledger_of(None) is not None


@pytest.mark.parametrize(
    ("directory", "shared", "message"), [(5, None, "cache_dir"), (None, "yes", "cache_shared")]
)
def test_wrong_settings_of_the_cache_are_named(directory: Any, shared: Any, message: str) -> None:
    with pytest.raises(RequestError, match=message):
        cache_of(None, directory, float, shared=shared)


def test_without_a_second_level_there_is_one_store(tmp_path: Path) -> None:
    cache = cache_of(None, tmp_path, float, shared=None)
    assert type(cache) is ResponseCache
    assert cache.directory == tmp_path
