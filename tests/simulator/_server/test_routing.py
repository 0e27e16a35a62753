"""Which provider and which wire format a path belongs to."""

from types import ModuleType

import pytest

from llm_provider.simulator._server.routing import find_target
from llm_provider.simulator.formats import anthropic, gemini, openai_chat, openai_responses

PATHS = [
    ("/v1/chat/completions", openai_chat, "openai"),
    ("/groq/chat/completions", openai_chat, "groq"),
    ("/together_ai/v1/chat/completions", openai_chat, "together_ai"),
    ("/openai/v1/responses", openai_responses, "openai"),
    ("/my-host/v1/messages", anthropic, "my-host"),
    ("/v1beta/models/m:streamGenerateContent", gemini, "gemini"),
    ("/other/v1beta/models/models%2Fm:generateContent", gemini, "other"),
]


@pytest.mark.parametrize(("path", "wire_format", "provider"), PATHS)
def test_a_path_names_format_and_provider(path: str, wire_format: ModuleType, provider: str) -> None:
    assert find_target(path) == (provider, wire_format)
