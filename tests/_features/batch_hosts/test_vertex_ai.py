"""Vertex AI's batches of Gemini and Claude, whose files lie in Cloud Storage."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from cloud_batches import Fault, GoogleServer, refuse
from cloud_support import FakeCloud
from llm_provider import (
    BudgetExceededError,
    Budget,
    Client,
    Ledger,
    PendingBatchError,
    RequestError,
    Response,
)
from llm_provider._features.batch_hosts.vertex_ai import read_line
from llm_provider._features.clouds import identities
from llm_provider._features.cli.main import main

GEMINI, CLAUDE = "vertex_ai/gemini-3.8-flash", "vertex_ai/claude-haiku-5-5"
PROMPTS = [f"prompt {number}" for number in range(7)]
ANSWERS = [f"to {prompt}" for prompt in PROMPTS]


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[GoogleServer]:
    identities._identity.cache_clear()
    server = GoogleServer()
    with FakeCloud() as cloud, server.serve() as address:
        cloud.point(monkeypatch, tmp_path)
        monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", address)
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
        monkeypatch.setenv("VERTEX_BATCH_BUCKET", "gs://bucket/folder/")
        yield server
    identities._identity.cache_clear()


@pytest.fixture
def client(own_cache: Path) -> Iterator[Client]:
    with Client(cache_dir=own_cache) as client:
        yield client


@pytest.mark.parametrize("model", [GEMINI, CLAUDE])
@pytest.mark.parametrize(
    "behaviour",
    [
        {},
        {"late": 2},
        {"half": True},
        {"counts": False},
        {"says_folder": False, "late": 1},
        {"refused": {"prompt 2": 1, "prompt 5": 1}},
        {"refused": dict.fromkeys(PROMPTS, 1)},
        {"state": "EXPIRED", "reach": 4},
        {"state": "PARTIALLY_SUCCEEDED", "refused": {"prompt 1": 1}},
    ],
)
def test_every_row_is_answered_once(
    google: GoogleServer, client: Client, model: str, behaviour: dict[str, Any]
) -> None:
    for name, value in behaviour.items():
        setattr(google, name, type(google.refused)(value) if name == "refused" else value)
    assert client.call_many(model, PROMPTS, delivery="batch").texts == ANSWERS
    assert google.answered == dict.fromkeys(PROMPTS, 1)
    # The keys are those of calls.
    before = google.seen.copy()
    assert all(answer.cached for answer in client.call_many(model, PROMPTS))
    assert google.seen == before
