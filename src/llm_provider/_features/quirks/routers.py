"""Routers: `upstream=` is the host behind OpenRouter and Hugging Face, and a warning names calls without one.

The sources are `providerpreferences.py` of openrouter 1.3 and the documentation of Hugging Face's router. On
OpenRouter `order` alone is no pin, because `allow_fallbacks` is true unless it is set.
"""

import re
from collections.abc import Mapping
from typing import Any

from ..._core.errors import RequestError
from ..._core.formats.openai import encode as openai
from ..._core.formats.protocol import EncodedRequest
from ..._core.formats.shared.payload import Draft
from ..._core.requests.request import Request
from ..._core.requests.routing import Target
from ..._core.runtime.warning import warn_user
from . import any_server

_QUANTIZATIONS = frozenset({"int4", "int8", "fp4", "fp6", "fp8", "fp16", "bf16", "fp32", "unknown"})
_POLICIES = frozenset({"fastest", "cheapest", "preferred"})
"""Suffixes of models by which Hugging Face's router chooses a host itself."""
_CLOSED = re.compile(
    r"openai/(?!gpt-oss)|anthropic/|google/(?!\S*gemma)|x-ai/|amazon/|perplexity/|inception/|openrouter/"
    r"|mistralai/(?:mistral|codestral)-embed"
)
"""Makers without open weights: their models have one host, or a few that run the same."""
_MOST_WARNED = 1000
_warned: set[tuple[str, str]] = set()


class UnpinnedRouterWarning(UserWarning):
    """A router chooses among the hosts of a model with open weights, whose quantizations may differ."""


def write_upstream(draft: Draft[Any], upstream: str) -> None:
    """Write the host into the request, so that the router asks no other; refuse a second choice."""
    extra = draft.request.extra_body or {}
    if draft.target.provider == "huggingface":
        if "/" in upstream or upstream in _POLICIES:
            # huggingface.co/docs/inference-providers
            raise draft.refuse(
                "upstream", "Hugging Face's router takes the name of a host alone, such as upstream='nebius'"
            )
        if ":" in draft.target.model or "model" in extra:
            raise RequestError("upstream and the name of the model both choose a host: leave one of them out")
        draft.payload["model"] = f"{draft.target.model}:{upstream}"
        return
    if "provider" in extra:
        raise RequestError("upstream and extra_body['provider'] both choose a host: leave one of them out")
    host, _, level = upstream.rpartition("/")
    level = level.lower()
    levels = {"quantizations": [level]} if host and level in _QUANTIZATIONS else {}
    draft.payload["provider"] = {
        "only": [host if levels else upstream], **levels, "allow_fallbacks": False
    }  # fmt: skip


def pin_or_warn(request: Any, target: Target, payload: dict[str, Any]) -> None:
    """`write_upstream` for a request of embeddings that has one, and the warning for others."""
    if request.upstream:
        write_upstream(Draft(request, target, None, payload), request.upstream)
    warn_if_unpinned(target, payload)


def warn_if_unpinned(target: Target, payload: Mapping[str, Any]) -> None:
    """Warn once for each model with open weights whose host the router chooses."""
    model = target.model
    if target.provider == "huggingface":
        suffix = str(payload["model"]).partition(":")[2]
        pinned = bool(suffix) and suffix not in _POLICIES
    else:
        name = model.removeprefix("openrouter/") if target.provider == "litellm" else model
        pinned = _CLOSED.match(name) is not None or is_pinned(payload.get("provider"))
    if pinned or (target.provider, model) in _warned or len(_warned) >= _MOST_WARNED:
        return
    _warned.add((target.provider, model))
    where = " without the prefix litellm/" if target.provider == "litellm" else ""
    text = (
        f"{target.provider}/{model} is served by several hosts, with quantizations of their own, and the "
        f"router may choose another one for each call: upstream='HOST'{where} keeps to one, and "
        "Response.served_by.host says which one answered"
    )
    warn_user(text, UnpinnedRouterWarning)


def is_pinned(routing: object) -> bool:
    """Whether OpenRouter's routing object leaves one host."""
    if not isinstance(routing, Mapping):
        return False
    names = routing.get("only") or (routing.get("order") if routing.get("allow_fallbacks") is False else None)
    return isinstance(names, (list, tuple)) and len(names) == 1


def encode(request: Request, target: Target) -> EncodedRequest:
    encoded = openai.encode(request, target)
    warn_if_unpinned(target, encoded.payload)
    return encoded


FUNCTIONS = {"openai": {**any_server.FUNCTIONS["openai"], "encode": encode}}
