"""``countTokens`` through the google-genai SDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google import genai
from google.genai import types

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator


def test_the_sdk_counts_contents(simulator: Simulator) -> None:
    options = types.HttpOptions(base_url=simulator.url("gemini"))
    client = genai.Client(api_key="key", http_options=options)
    count = client.models.count_tokens(model="gemini-3.8-flash", contents="What is 2+2?").total_tokens
    answer = client.models.generate_content(model="gemini-3.8-flash", contents="What is 2+2?")
    client.close()
    assert answer.usage_metadata is not None
    assert count == answer.usage_metadata.prompt_token_count
    assert [entry.requests for entry in simulator.ledger().models] == [1]
