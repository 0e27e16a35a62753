"""The providers' own tools, such as web search, which are told apart by their words. Pure."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..._core.errors import RequestError
from ..._core.formats.shared.payload import refuse
from ..._core.json_values import JSONMapping
from ..._core.requests.request import Request

# Anthropic's types end with the date of a version, in the anthropic SDK 2.11 all but these three.
_ANTHROPIC = re.compile(r"[a-z][a-z0-9_]*_20\d{6}|mcp_toolset|tool_search_tool_(bm25|regex)")

# The forms of the tools that a provider runs, by the name that `tools` takes. Where a provider has several
# versions of a tool, this is the one that the most models take.
_WEB_SEARCH = {"type": "web_search_20250305", "name": "web_search"}
_WEB_FETCH = {"type": "web_fetch_20250910", "name": "web_fetch"}
_CODE_EXECUTION = {"type": "code_execution_20250825", "name": "code_execution"}
_CODE_INTERPRETER = {"type": "code_interpreter", "container": {"type": "auto"}}
_NAMED: Mapping[str, Mapping[str, JSONMapping]] = {
    "web_search": {
        "openai": {"type": "web_search"},
        "anthropic": _WEB_SEARCH,
        "gemini": {"google_search": {}},
    },
    "code_execution": {
        "openai": _CODE_INTERPRETER,
        "anthropic": _CODE_EXECUTION,
        "gemini": {"code_execution": {}},
    },
    "url_context": {"anthropic": _WEB_FETCH, "gemini": {"url_context": {}}},
    "web_fetch": {"anthropic": _WEB_FETCH, "gemini": {"url_context": {}}},
    "code_interpreter": {"openai": _CODE_INTERPRETER},
    "image_generation": {"openai": {"type": "image_generation"}},
    "google_search": {"gemini": {"google_search": {}}},
    "google_maps": {"gemini": {"google_maps": {}}},
}

# function_definition.py of openai 2.54, vybestack/llxprt-code#482, and google-genai 3.4.
_FUNCTION_NAMES = {
    "openai": re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII),
    "anthropic": re.compile(r"[A-Za-z0-9_-]{1,128}", re.ASCII),
    "gemini": re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,127}", re.ASCII),
}


def with_named_tools(request: Request, provider: str) -> Request:
    """The request with the provider's forms of the tools that are given by name, or in Anthropic's form."""
    tools: tuple[Any, ...] = request.tools or ()
    if not any(isinstance(tool, str) or "input_schema" in tool for tool in tools):
        return request
    adapted = (
        _name(tool, f"tools[{index}]={tool!r}", request, provider)
        if isinstance(tool, str)
        else _in_openais_form(tool, provider)
        for index, tool in enumerate(tools)
    )
    return replace(request, tools=tuple(adapted))


def _in_openais_form(tool: JSONMapping, provider: str) -> JSONMapping:
    """A function in the form that all formats but Anthropic's read."""
    is_function = "input_schema" in tool and tool.get("type") in (None, "custom")
    if provider == "anthropic" or not is_function or not isinstance(tool.get("name"), str):
        return tool
    others = {name: value for name, value in tool.items() if name not in ("type", "input_schema", *_INNER)}
    inner = {name: tool[name] for name in _INNER if tool.get(name) is not None}
    return {**others, "type": "function", "function": {**inner, "parameters": tool["input_schema"]}}


_INNER = ("name", "description", "strict")


def _name(name: str, where: str, request: Request, provider: str) -> JSONMapping:
    forms = _NAMED[name]
    if provider not in forms or (provider == "openai" and request.endpoint == "chat"):
        # The tools of openai 2.54, anthropic 2.11 and google-genai 3.4.
        having = f"{', '.join(forms)} have it" if len(forms) > 1 else f"only {next(iter(forms))} has it"
        remedy = (
            "use endpoint='responses'" if provider in forms else f"{having}; leave it out, or give a function"
        )
        raise refuse(where, request, remedy, provider=provider)
    return forms[provider]


def owner_of(tool: JSONMapping) -> str | None:
    """The provider whose words a tool uses: "anthropic", "gemini", or None for a function and all others."""
    if "function" in tool:
        return None
    kind = tool.get("type")
    if "input_schema" in tool or (isinstance(kind, str) and _ANTHROPIC.fullmatch(kind)):
        return "anthropic"
    # Google's tools have no type: their only field is their name.
    named = kind is None and all(isinstance(value, (Mapping, list, tuple)) for value in tool.values())
    return "gemini" if named else None


def adapt_tools(request: Request, provider: str) -> Request:
    """The request with its tools in the forms of the provider, if it runs them and takes their names."""
    request = with_named_tools(request, provider)
    names = _FUNCTION_NAMES.get(provider)
    for index, tool in enumerate(request.tools or ()):
        owner = owner_of(tool)
        if owner is not None and owner != provider:
            # tool_union_param.py of anthropic 2.11, `Tool` of google-genai 3.4.
            raise refuse(
                f"tools[{index}], which is one of the provider {owner!r}",
                request,
                "leave it out, or use a tool of this provider",
                provider=provider,
            )
        function = tool.get("function")
        if names is not None and isinstance(function, Mapping) and not names.fullmatch(function["name"]):
            # `_FUNCTION_NAMES`: vybestack/llxprt-code#482
            raise RequestError(
                f"tools[{index}] is named {function['name']!r}, which {provider} does not accept: use up to "
                "64 ASCII letters, digits, underscores and hyphens",
                provider=provider,
                model=request.model,
            )
    return request
