"""Which provider and which wire format a path belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from llm_provider.simulator._server.routing import find_target
from llm_provider.simulator.formats import anthropic, gemini, openai_chat, openai_responses

if TYPE_CHECKING:
    from types import ModuleType

    from llm_provider.simulator import Simulator

    from ..conftest import Post

PATHS = [
    ("/chat/completions", openai_chat, "openai"),
    ("/v1/chat/completions", openai_chat, "openai"),
    ("/groq/chat/completions", openai_chat, "groq"),
    ("/together_ai/v1/chat/completions", openai_chat, "together_ai"),
    ("/v1/responses", openai_responses, "openai"),
    ("/openai/v1/responses", openai_responses, "openai"),
    ("/v1/messages", anthropic, "anthropic"),
    ("/my-host/v1/messages", anthropic, "my-host"),
    ("/v1/models/m:generateContent", gemini, "gemini"),
    ("/v1beta/models/m:streamGenerateContent", gemini, "gemini"),
    ("/other/v1beta/models/models%2Fm:generateContent", gemini, "other"),
]


@pytest.mark.parametrize(("path", "wire_format", "provider"), PATHS)
def test_a_path_names_format_and_provider(path: str, wire_format: ModuleType, provider: str) -> None:
    assert find_target(path) == (provider, wire_format)


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/v1", "/v2/messages", "/messages", "/openai/v1/nothing", "/v1/models/m:embedText"),
        *("/a/b/v1/messages", "/v1/v1/messages", "/v1/messages/", "/_simulator/ledger"),
    ],
)
def test_other_paths_belong_to_nobody(path: str) -> None:
    assert find_target(path) is None


def test_what_is_served_nowhere_is_a_404(simulator: Simulator, post: Post) -> None:
    assert {post(path, {}).status for path in ("/", "/v2/messages", "/openai/v1/nothing")} == {404}
    assert simulator.ledger().requests == 0
