"""Who answers: the hosts behind the model names of routers, fingerprints, and the headers that tell of them.

The routing object is that of `providerpreferences.py` of openrouter 1.3, the headers are those that providers
document. Hugging Face's router takes the host behind the model, as `model:host`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..formats.wire_format import REGION, Endpoint, Served

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .._settings import Settings
    from ..formats.wire_format import Headers, Prompt

__all__ = ["ENDPOINTS", "ROUTERS", "serve", "write_headers"]

ROUTERS = ("openrouter", "huggingface")
FALLS_BACK = 5
"""Every request of this number goes to another endpoint than the first in `order`, if it may."""
_POLICIES = ("fastest", "cheapest", "preferred")


# The last host has two endpoints.
ENDPOINTS = (
    Endpoint("Together", "together", "fp8"),
    Endpoint("Fireworks", "fireworks", "bf16"),
    Endpoint("Novita", "novita", "fp8"),
    Endpoint("Nebius", "nebius", "fp4"),
    Endpoint("Parasail", "parasail", "bf16"),
    Endpoint("Chutes", "chutes", "fp16"),
    Endpoint("SiliconFlow", "siliconflow", "fp8"),
    Endpoint("Hyperbolic", "hyperbolic", "unknown"),
    Endpoint("DeepInfra", "deepinfra", "fp8"),
    Endpoint("DeepInfra", "deepinfra", "bf16"),
)


def serve(prompt: Prompt, settings: Settings, number: int) -> Served:
    """Choose who answers the request of a number: hosts and fingerprints take turns."""
    names = settings.fingerprints.split(",")
    if not settings.upstreams or prompt.provider not in ROUTERS:
        return Served(names[number % len(names)])
    hosts = list(dict.fromkeys(endpoint.slug for endpoint in ENDPOINTS))[-settings.upstreams :]
    endpoints = [endpoint for endpoint in ENDPOINTS if endpoint.slug in hosts]
    if prompt.provider == "huggingface":
        wanted = prompt.model.partition(":")[2]
        if wanted and wanted not in _POLICIES:
            endpoints = [endpoint for endpoint in endpoints if endpoint.slug == wanted]
    else:
        endpoints = _route(endpoints, prompt.request.body.get("provider") or {}, number)
    if not endpoints:
        return Served("", refused=True)
    # Numbers that are multiples of a few reach all endpoints too.
    endpoint = endpoints[(number + number // len(ENDPOINTS)) % len(endpoints)]
    return Served(endpoint.fingerprint, endpoint)


def _route(endpoints: list[Endpoint], wishes: Mapping[str, Any], number: int) -> list[Endpoint]:
    """The endpoints that OpenRouter's routing object allows."""

    def matches(endpoint: Endpoint, name: str) -> bool:
        return name in (endpoint.slug, f"{endpoint.slug}/{endpoint.quantization}")

    for field, keeps in (("only", True), ("ignore", False)):
        if names := wishes.get(field):
            endpoints = [
                endpoint for endpoint in endpoints if any(matches(endpoint, name) for name in names) is keeps
            ]
    if levels := wishes.get("quantizations"):
        endpoints = [endpoint for endpoint in endpoints if endpoint.quantization in levels]
    order = wishes.get("order") or ()
    wanted = [endpoint for name in order for endpoint in endpoints if matches(endpoint, name)]
    if wishes.get("allow_fallbacks") is False:
        return wanted if order else endpoints
    return wanted[:1] if wanted and number % FALLS_BACK else endpoints


def write_headers(prompt: Prompt, served: Served, identifier: str) -> Headers:
    """The headers by which a provider tells who answered, besides the identifiers that every reply has."""
    name, model = identifier.encode(), prompt.model.encode("ascii", "replace")
    match prompt.provider:
        case "azure":
            own = b"x-ms-served-model" if "/responses" in prompt.request.path else b"x-ms-deployment-name"
            value = model + b"-2026-10-21" if own == b"x-ms-served-model" else model
            return [(own, value), (b"x-ms-region", REGION.encode()), (b"apim-request-id", name)]
        case "gemini":
            return [(b"x-gemini-service-tier", b"standard")]
        case "groq":
            return [(b"x-groq-region", REGION.encode())]
        case "fireworks_ai":
            return [(b"fireworks-deployment", b"accounts/simulator/deployments/1")]
        case "huggingface" if served.endpoint is not None:
            return [(b"x-inference-provider", served.endpoint.slug.encode())]
    return []
