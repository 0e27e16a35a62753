"""Remote MCP servers that a provider calls, in OpenAI's form → the forms of the other providers.

The token of a server is a `SealedText` from the check of `tools=` on: a text that stands for the token in
payloads, cache keys and stored questions. The token takes its place in the bytes that are sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..._core.errors import RequestError, UnsupportedParameterError
from ..._core.formats.shared.payload import refuse
from ..._core.json_values import JSONMapping, JSONObject
from ..._core.requests.api_keys import APIKey, SealedText
from ..._core.requests.request import Request

CLAUDE_BETA = "mcp-client-2025-11-20"
"""The beta of Anthropic's that has `mcp_toolset`."""

_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_COMMON = frozenset({"type", "server_label", "server_url", "authorization", "headers", "require_approval"})
_CLAUDES = _COMMON | {"allowed_tools", "defer_loading", "cache_control"}
_AUTHORIZATION = "authorization"


def seal(where: str, tool: JSONMapping) -> JSONObject:
    """A server whose token and headers are sealed; a `RequestError` for a wrong one, which shows neither."""
    label = tool.get("server_label")
    sealed = {name: value for name, value in tool.items() if name != _AUTHORIZATION or value is not None}
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        raise RequestError(
            f"{where} needs a server_label of up to 64 ASCII letters, digits, underscores and hyphens, as in "
            "{'type': 'mcp', 'server_label': 'docs', 'server_url': 'https://...', 'authorization': token}"
        )
    if _AUTHORIZATION in sealed:
        sealed[_AUTHORIZATION] = _seal(where, label, _AUTHORIZATION, tool[_AUTHORIZATION])
    headers = tool.get("headers")
    if headers is not None:
        if not isinstance(headers, Mapping) or not all(isinstance(name, str) for name in headers):
            raise RequestError(f"{where} has headers that are no dict of texts")
        sealed["headers"] = {name: _seal(where, label, name, value) for name, value in headers.items()}
    return sealed


def _seal(where: str, label: str, name: str, value: object) -> SealedText:
    if isinstance(value, SealedText):
        return value
    scheme, _, secret = value.rpartition(" ") if isinstance(value, str) else ("", "", "")
    if not secret or not secret.isascii() or not secret.isprintable() or (scheme and name == _AUTHORIZATION):
        del value, secret
        remedy = "without the word Bearer" if name == _AUTHORIZATION else "such as 'Bearer ...'"
        raise RequestError(f"{where} has a {name} that is no token of printable ASCII: write it {remedy}")
    return SealedText(f"{scheme} " if scheme else "", f"{{{name.lower()} of {label}}}", APIKey(secret))


def find_secrets(tools: Sequence[Any]) -> tuple[SealedText, ...]:
    """The sealed texts of the servers among tools; a `RequestError` if two servers have one label."""
    servers = [tool for tool in tools if isinstance(tool, Mapping) and tool.get("type") == "mcp"]
    labels = [tool["server_label"] for tool in servers]
    if len(set(labels)) < len(labels):
        raise RequestError(f"MCP servers need labels of their own, and two have one of {', '.join(labels)}")
    values = (
        value
        for tool in servers
        for value in (tool.get(_AUTHORIZATION), *(tool.get("headers") or {}).values())
    )
    return tuple(value for value in values if isinstance(value, SealedText))


def reveal(payload: JSONObject, secrets: Sequence[SealedText]) -> JSONObject:
    """The payload with the tokens of its servers, for the request alone."""
    servers = {name: payload[name] for name in ("tools", "mcp_servers") if name in payload}
    return {**payload, **{name: _reveal(value, secrets) for name, value in servers.items()}}


def _reveal(value: Any, secrets: Sequence[SealedText]) -> Any:
    if isinstance(value, str):
        for sealed in secrets:
            value = value.replace(sealed.mark, sealed.key.reveal())
        return value
    if isinstance(value, Mapping):
        return {name: _reveal(each, secrets) for name, each in value.items()}
    return [_reveal(each, secrets) for each in value] if isinstance(value, (list, tuple)) else value


def for_claude(request: Request, index: int, tool: JSONMapping) -> tuple[JSONObject, JSONObject]:
    """An entry of Anthropic's `mcp_servers`, and the toolset that lets the model use it."""
    error = _find_problem(request, index, tool, _CLAUDES, "anthropic")
    headers = {name.lower(): value for name, value in (tool.get("headers") or {}).items()}
    if error is None and (headers.keys() - {_AUTHORIZATION} or (headers and _AUTHORIZATION in tool)):
        error = _refuse(request, index, "headers", "give a token as 'authorization' alone", "anthropic")
    if error is not None:
        raise error
    label, token = tool["server_label"], tool.get(_AUTHORIZATION)
    if token is None and headers:
        token = str(headers[_AUTHORIZATION]).removeprefix("Bearer ")
    server = {"type": "url", "name": label, "url": tool["server_url"]}
    enabled: JSONObject = {"defer_loading": True} if tool.get("defer_loading") else {}
    toolset: JSONObject = {"type": "mcp_toolset", "mcp_server_name": label}
    if tool.get("allowed_tools") is not None:
        names = _names_of(tool["allowed_tools"])
        if names is None:
            raise _refuse(request, index, "a filter as allowed_tools", "give a list of names", "anthropic")
        toolset["default_config"] = {"enabled": False}
        toolset["configs"] = {name: {"enabled": True, **enabled} for name in names}
    elif enabled:
        toolset["default_config"] = enabled
    if "cache_control" in tool:
        toolset["cache_control"] = tool["cache_control"]
    return server | ({} if token is None else {"authorization_token": token}), toolset


def for_gemini(request: Request, index: int, tool: JSONMapping) -> JSONObject:
    """A tool of Gemini's with one server."""
    error = _find_problem(request, index, tool, _COMMON, "gemini")
    if error is not None:
        raise error
    headers, token = dict(tool.get("headers") or {}), tool.get(_AUTHORIZATION)
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    transport = {"url": tool["server_url"], **({"headers": headers} if headers else {})}
    return {"mcpServers": [{"name": tool["server_label"], "streamableHttpTransport": transport}]}


def _names_of(allowed: Any) -> list[str] | None:
    names = allowed.get("tool_names") if isinstance(allowed, Mapping) and len(allowed) == 1 else allowed
    return (
        list(names) if isinstance(names, (list, tuple)) and all(isinstance(n, str) for n in names) else None
    )


def _find_problem(
    request: Request, index: int, tool: JSONMapping, known: frozenset[str], provider: str
) -> UnsupportedParameterError | None:
    """Why a provider has no form of a server."""
    if not isinstance(tool.get("server_url"), str):
        return _refuse(request, index, "no server_url", "give the address of the server", provider)
    unknown = sorted(name for name in tool.keys() - known if tool[name] is not None)
    if unknown:
        return _refuse(request, index, ", ".join(unknown), "leave it out; OpenAI has it", provider)
    if tool.get("require_approval") != "never":
        # OpenAI asks before each call unless told otherwise, and these providers never ask.
        return _refuse(
            request, index, "calls that ask for approval", "set require_approval='never'", provider
        )
    return None


def _refuse(request: Request, index: int, what: str, remedy: str, provider: str) -> UnsupportedParameterError:
    return refuse(f"tools[{index}], an MCP server with {what}", request, remedy, provider=provider)
