"""`generateContent`, as the google-genai SDK asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google import genai
from google.genai import types

if TYPE_CHECKING:
    from llm_provider.simulator import Simulator


def test_the_sdk_reads_a_stream(simulator: Simulator) -> None:
    options = types.HttpOptions(base_url=simulator.url("gemini"))
    client = genai.Client(api_key="test-key", http_options=options)
    stream = client.models.generate_content_stream(model="gemini-3.8-flash", contents="hello there")
    assert "".join(chunk.text or "" for chunk in stream) == "echo: hello there"
    client.close()
