"""A server and a client for the tests of interactions."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from interactions_server import (
    InteractionsServer,
    serving,
)
from llm_provider import (
    Client,
)


@pytest.fixture
def server() -> Iterator[InteractionsServer]:
    with serving() as server:
        yield server


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.fixture
def client(
    own_cache: Path, ledger: Path, server: InteractionsServer, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.root)
    monkeypatch.setenv("GEMINI_API_KEY", "key-1")
    with Client(cache_dir=own_cache, max_retries=0, ledger=ledger) as client:
        yield client
