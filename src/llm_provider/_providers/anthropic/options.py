"""The parameters that few calls set, in Anthropic's Messages format. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..._errors import RequestError
from ..._requests.request import Request
from ..adapter import refuse
from ..options import asked
from .decode import PROVIDER

_MISSING = (
    "frequency_penalty", "presence_penalty", "logit_bias", "allowed_tools", "verbosity", "modalities",
    "safety_settings", "store", "previous_response_id", "prompt_cache_key", "reasoning_context",
    "cached_content",
)  # fmt: skip

_TIERS = {"auto": "auto", "default": "standard_only"}


def add_options(request: Request, payload: dict[str, Any]) -> dict[str, Any] | None:
    """Add the options of a request to its payload, and return its labels.

    Args:
        request: A request with at least one option.
        payload: Its payload, with the tools and the thinking.

    Raises:
        UnsupportedParameterError: Anthropic's API does not have an option or its value.
    """
    options: dict[str, Any] = asked(request, _MISSING, PROVIDER)
    if "top_k" in options:
        if payload.get("thinking", {}).get("type") == "enabled":
            raise _refuse("top_k while it thinks", request, "leave it out, or do not let it think")
        payload["top_k"] = options["top_k"]
    if options.get("parallel_tool_calls") is False:
        choice = payload.get("tool_choice", {"type": "auto"})
        if choice["type"] != "none":
            payload["tool_choice"] = {**choice, "disable_parallel_tool_use": True}
    if "service_tier" in options:
        payload |= _service_tier(request, options["service_tier"])
    if "reasoning_summary" in options:
        payload["thinking"] = _summarized(request, options["reasoning_summary"], payload.get("thinking", {}))
    labels: dict[str, str] = {"user_id": options["user"]} if "user" in options else {}
    metadata: Mapping[str, str] = options.get("metadata", {})
    if metadata.keys() - {"user_id"}:
        remedy = "leave it out, or use track() to label costs; Anthropic keeps a 'user_id' only"
        raise _refuse("metadata other than 'user_id'", request, remedy)
    labels |= metadata
    return {"metadata": labels} if labels else None


def _service_tier(request: Request, tier: str) -> dict[str, Any]:
    if tier == "fast":
        return {"speed": "fast"}
    if tier not in _TIERS:
        remedy = "use 'auto', which takes priority capacity where there is some, 'default' or 'fast'"
        raise _refuse(f"service_tier={tier!r}", request, remedy)
    return {"service_tier": _TIERS[tier]}


def _summarized(request: Request, summary: str, thinking: Mapping[str, Any]) -> dict[str, Any]:
    if summary != "auto":
        raise _refuse(f"reasoning_summary={summary!r}", request, "use 'auto'")
    if thinking.get("type") not in ("adaptive", "enabled"):
        remedy = "set reasoning_effort or thinking_budget too"
        raise _refuse("reasoning_summary without thinking", request, remedy)
    return {**thinking, "display": "summarized"}


def _refuse(parameter: str, request: Request, remedy: str) -> RequestError:
    return refuse(parameter, request, remedy, provider=PROVIDER)
