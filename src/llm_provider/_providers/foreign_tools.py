"""The providers' own tools, such as web search, which are told apart by their words. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from .._requests.request import Request
from .adapter import refuse

# Anthropic's types end with the date of a version, in the anthropic SDK 2.11 all but these three.
_ANTHROPIC = re.compile(r"[a-z][a-z0-9_]*_20\d{6}|mcp_toolset|tool_search_tool_(bm25|regex)")


def owner_of(tool: Mapping[str, Any]) -> str | None:
    """The provider whose words a tool uses: "anthropic", "gemini", or None for a function or another's tool.

    >>> owner_of({"type": "web_search_20250305", "name": "web_search"}), owner_of({"google_search": {}})
    ('anthropic', 'gemini')
    """
    if "function" in tool:
        return None
    kind = tool.get("type")
    if "input_schema" in tool or (isinstance(kind, str) and _ANTHROPIC.fullmatch(kind)):
        return "anthropic"
    # Google's tools have no type: their only field is their name.
    named = kind is None and all(isinstance(value, (Mapping, list, tuple)) for value in tool.values())
    return "gemini" if named else None


def check_tools(request: Request, provider: str) -> None:
    """Refuse tools that another provider runs.

    Raises:
        UnsupportedParameterError: a tool uses the words of another provider.
    """
    for index, tool in enumerate(request.tools or ()):
        owner = owner_of(tool)
        if owner is not None and owner != provider:
            raise refuse(
                f"tools[{index}], which is one of the provider {owner!r}",
                request,
                "leave it out, or use a tool of this provider",
                provider=provider,
            )
