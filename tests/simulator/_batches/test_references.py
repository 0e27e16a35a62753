"""Messages that refer to files which are processed, or are too large, are refused as by the providers."""

from typing import Any

import pytest

from llm_provider.simulator import Settings
from llm_provider.simulator._batches.jobs import BatchStore
from llm_provider.simulator._batches.references import MOST_IMAGE_CHARACTERS, check_files

KEY = "sk-a"
NAMES = b'"file_id" "fileUri"'


@pytest.fixture
def store() -> BatchStore:
    settings = Settings()
    made = BatchStore(lambda provider: settings, lambda provider, path: None, lambda *_: None)  # type: ignore[arg-type,return-value]  # files need neither formats nor bills
    for provider in ("openai", "anthropic", "gemini"):
        made.add_file(f"{provider}-1", "a.pdf", "user_data", b"%PDF", provider=provider, key=KEY)
    return made


def body_of(provider: str, identifier: str) -> dict[str, Any]:
    if provider == "gemini":
        uri = f"http://localhost/gemini/v1beta/files/{identifier}"
        return {"contents": [{"parts": [{"fileData": {"fileUri": uri}}]}]}
    if provider == "anthropic":
        return {"messages": [{"content": [{"type": "image", "source": {"file_id": identifier}}]}]}
    return {"input": [{"content": [{"type": "input_file", "file_id": identifier}]}]}


def test_a_file_that_is_processed_cannot_be_used(store: BatchStore) -> None:
    store.files["gemini-1"].ready = 4e9
    problem: Any = check_files(store.find_file, "gemini", KEY, NAMES, body_of("gemini", "gemini-1"))
    assert "is not in an ACTIVE state" in problem.message


def test_a_request_can_be_too_large(store: BatchStore) -> None:
    def check(provider: str, length: int, **body: Any) -> Any:
        return check_files(store.find_file, provider, KEY, bytes(length), body)

    assert check("openai", 30_000_000) is None
    statuses = {name: check(name, 50_000_001).status for name in ("openai", "anthropic", "gemini")}
    assert statuses == {"openai": 400, "anthropic": 413, "gemini": 400}
    image = {"type": "image", "source": {"type": "base64", "data": "x" * (MOST_IMAGE_CHARACTERS + 1)}}
    problem = check("anthropic", MOST_IMAGE_CHARACTERS + 100, messages=[{"content": [image]}])
    assert "image exceeds 5 MB maximum" in problem.message
