"""A server with background jobs, and a client of it."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from background_server import BackgroundServer, serving
from llm_provider import Client
from llm_provider._features.cli.main import main
from support import Ended, RunCommand


@pytest.fixture(autouse=True)
def soon(fast_batches: None) -> None:
    """Every job of this folder is asked about often."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BackgroundServer]:
    with serving() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.root}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        yield server


@pytest.fixture
def make_client(own_cache: Path) -> Iterator[Any]:
    """Makes clients of the same cache, as processes that follow each other."""
    clients: list[Client] = []

    def make(**settings: Any) -> Client:
        for earlier in clients:
            earlier.close()
        defaults = {"ledger": own_cache.parent / "ledger.jsonl", "outage_patience": 0.3, "show_waits": False}
        clients.append(Client(**{**defaults, **settings}))
        return clients[-1]

    yield make
    for each in clients:
        each.close()


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> RunCommand:
    """Run a command in this process."""

    def run(*arguments: str, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code: object
        try:
            code = main(arguments)
        except SystemExit as ending:
            code = ending.code
        return Ended(code, *capsys.readouterr())

    return run
