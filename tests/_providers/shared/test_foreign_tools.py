"""The providers' own tools."""

from typing import Any

import pytest

from llm_provider import Client, UnsupportedParameterError
from llm_provider._providers.registry import load
from llm_provider._providers.shared.foreign_tools import adapt_tools, owner_of
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider.simulator import Simulator

FUNCTION = {"type": "function", "function": {"name": "weather"}}
ANTHROPIC: list[dict[str, Any]] = [
    {"type": "web_search_20250305", "name": "web_search"},
    {"type": "code_execution_20260521", "name": "code_execution"},
    {"type": "mcp_toolset", "mcp_server_name": "x"},
    {"type": "tool_search_tool_bm25", "name": "search"},
]
GEMINI: list[dict[str, Any]] = [
    {"google_search": {}},
    {"codeExecution": {}},
    {"function_declarations": [{"name": "weather"}]},
]
MODELS = {"openai": "gpt-5.1", "anthropic": "claude-sonnet-5-5", "gemini": "gemini-3.8-flash"}


@pytest.mark.parametrize("provider", MODELS)
@pytest.mark.parametrize("tool", [*ANTHROPIC, *GEMINI])
def test_a_tool_goes_to_its_own_provider_unchanged_and_to_no_other(
    tool: dict[str, Any], provider: str
) -> None:
    model = MODELS[provider]
    request = Request.build(model, "Hi", {"tools": [FUNCTION, tool]})
    adapter = load(resolve(model).route.adapter)
    if owner_of(tool) == provider:
        adapt_tools(request, provider)
        assert adapter.encode(request, resolve(model)).payload["tools"][1] == tool
    else:
        with pytest.raises(UnsupportedParameterError, match=r"tools\[1\]"):
            adapter.encode(request, resolve(model))


@pytest.mark.parametrize(
    ("model", "parameters", "remedy"),
    [
        ("gpt-5.1", {"tools": ["url_context"]}, r"tools\[0\]='url_context': anthropic, gemini have it"),
        ("gpt-5.1", {"tools": ["web_search"], "endpoint": "chat"}, "endpoint='responses'"),
        ("groq/m", {"tools": ["web_search"]}, "openai, anthropic, gemini have it"),
        ("claude-haiku-5-5", {"tools": ["google_maps"]}, "only gemini has it"),
    ],
)
def test_a_name_is_refused_where_the_provider_runs_no_such_tool(
    client: Client, simulator: Simulator, model: str, parameters: Any, remedy: str
) -> None:
    with pytest.raises(UnsupportedParameterError, match=remedy):
        client.call(model, "Hi", **parameters)
    assert simulator.requests() == []
