"""The providers' own tools."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider import UnsupportedParameterError
from llm_provider._providers.foreign_tools import check_tools, owner_of
from llm_provider._providers.registry import load
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve

FUNCTION = {"type": "function", "function": {"name": "weather"}}
ANTHROPIC: list[dict[str, Any]] = [
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "code_execution_20260521", "name": "code_execution"},
    {"type": "mcp_toolset", "mcp_server_name": "x"},
    {"type": "tool_search_tool_bm25", "name": "search"},
    {"name": "weather", "input_schema": {"type": "object"}},
]
GEMINI: list[dict[str, Any]] = [
    {"google_search": {}},
    {"codeExecution": {}},
    {"function_declarations": [{"name": "weather"}]},
]
OTHERS: list[dict[str, Any]] = [
    FUNCTION,
    {"type": "web_search"},
    {"type": "web_search_preview_2025_03_11"},
    {"type": "openrouter:web_search"},
    {"type": "custom", "custom": {"name": "x"}},
]
MODELS = {"openai": "gpt-5.1", "anthropic": "claude-sonnet-5-5", "gemini": "gemini-3.8-flash"}


def test_the_owner_of_a_tool() -> None:
    assert {owner_of(tool) for tool in ANTHROPIC} == {"anthropic"}
    assert {owner_of(tool) for tool in GEMINI} == {"gemini"}
    assert {owner_of(tool) for tool in OTHERS} == {None}


@pytest.mark.parametrize("provider", MODELS)
@pytest.mark.parametrize("tool", [*ANTHROPIC, *GEMINI])
def test_a_tool_goes_to_its_own_provider_unchanged_and_to_no_other(
    tool: dict[str, Any], provider: str
) -> None:
    model = MODELS[provider]
    request = Request.build(model, "Hi", {"tools": [FUNCTION, tool]})
    adapter = load(resolve(model).route.adapter)
    if owner_of(tool) == provider:
        check_tools(request, provider)
        assert adapter.encode(request, resolve(model)).payload["tools"][1] == tool
    else:
        with pytest.raises(UnsupportedParameterError, match=r"tools\[1\]"):
            adapter.encode(request, resolve(model))
