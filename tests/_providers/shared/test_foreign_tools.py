"""The providers' own tools."""

from __future__ import annotations

from typing import Any

import pytest

from llm_provider import Client, UnsupportedParameterError
from llm_provider._providers.registry import load
from llm_provider._providers.shared.foreign_tools import _NAMED, adapt_tools, owner_of, with_named_tools
from llm_provider._requests.request import Request
from llm_provider._requests.routing import resolve
from llm_provider._requests.tools import SERVER_TOOLS
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


def test_every_name_has_a_form_that_its_provider_takes() -> None:
    assert set(_NAMED) == set(SERVER_TOOLS)
    for name, forms in _NAMED.items():
        for provider, form in forms.items():
            assert owner_of(form) in ((None,) if provider == "openai" else (provider,)), name


@pytest.mark.parametrize(
    ("model", "name", "sent"),
    [
        ("gpt-5.1", "web_search", [{"type": "web_search"}]),
        ("gpt-5.1", "code_execution", [{"type": "code_interpreter", "container": {"type": "auto"}}]),
        ("claude-sonnet-5-5", "web_search", [{"type": "web_search_20250305", "name": "web_search"}]),
        ("claude-sonnet-5-5", "url_context", [{"type": "web_fetch_20250910", "name": "web_fetch"}]),
        ("gemini-3.8-flash", "web_search", [{"google_search": {}}]),
        ("gemini-3.8-flash", "code_execution", [{"code_execution": {}}]),
    ],
)
def test_a_name_is_sent_in_the_form_of_its_provider(
    client: Client, simulator: Simulator, model: str, name: str, sent: Any
) -> None:
    client.call(model, "Hi", tools=[name], max_tokens=900)
    (request,) = simulator.requests()
    assert request.body["tools"] == sent


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


def test_other_tools_stay() -> None:
    request = Request.build("gpt-5.1", "Hi", {"tools": [FUNCTION]})
    assert with_named_tools(request, "openai") is request
