"""Which provider serves a batch or file endpoint, and the names by which faults find it."""

from __future__ import annotations

import pytest

from llm_provider.simulator._batches.endpoints import find_owner, name_operation


@pytest.mark.parametrize(
    ("path", "provider"),
    [
        ("/openai/v1/files", "openai"),
        ("/v1/batches/batch_1/cancel", "openai"),
        ("/together_ai/v1/files/f/content", "together_ai"),
        ("/anthropic/v1/messages/batches", "anthropic"),
        ("/gemini/v1beta/batches/7", "gemini"),
        ("/gemini/upload/v1beta/files", "gemini"),
        ("/gemini/v1/models/gemini-3.8-flash:batchGenerateContent", "gemini"),
        ("/openai/v1/chat/completions", None),
        ("/anthropic/v1/messages", None),
        ("/gemini/v1/models/gemini-embedding-001:batchEmbedContents", None),
    ],
)
def test_a_path_has_an_owner(path: str, provider: str | None) -> None:
    assert find_owner(path) == (provider and (provider, path.removeprefix(f"/{provider}")))


@pytest.mark.parametrize(
    ("method", "path", "name"),
    [
        ("POST", "/v1/files", "files.upload"),
        ("GET", "/v1/files/f/content", "files.download"),
        ("POST", "/v1/batches", "batches.create"),
        ("GET", "/v1/batches", "batches.list"),
        ("GET", "/v1/batches/b", "batches.retrieve"),
        ("POST", "/v1/batches/b/cancel", "batches.cancel"),
        ("POST", "/v1beta/batches/b:cancel", "batches.cancel"),
        ("GET", "/v1/messages/batches/b/results", "batches.results"),
        ("POST", "/v1/models/m:batchGenerateContent", "batches.create"),
        ("DELETE", "/v1/files/f", "files.delete"),
    ],
)
def test_an_operation_has_a_name(method: str, path: str, name: str) -> None:
    assert name_operation(method, path) == name
