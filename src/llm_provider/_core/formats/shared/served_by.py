"""Who answered, of bodies and headers of replies: one row per provider.

The sources are the types of the installed SDKs (openai 2.54, anthropic 2.12, google-genai 3.4,
openrouter 1.3, groq 1.7, fireworks-ai 1.2), vLLM's `fingerprint.py`, and headers that providers document.

Headers are read when the answer arrives, into a small dict, which is stored with the answer. The body is read
when somebody asks. So a call pays for one look at its headers.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from ... import doors
from ...requests.routing import Target
from ...types.usage import FIELDS, ServedBy
from .request_facts import variant_of

Origin: TypeAlias = Mapping[str, str]
"""What headers and the route say of who answered: fields of `ServedBy` by name."""

_LONGEST = 200
"""Characters of a value that are kept: a server may answer with anything."""


class _Row(NamedTuple):
    body: Mapping[str, str]
    """Field of `ServedBy` → the path in the reply, with dots."""
    headers: tuple[tuple[str, str], ...]
    """Field of `ServedBy`, and the header that has it, in lower case."""


_CHAT = {
    "model": "model", "fingerprint": "system_fingerprint", "service_tier": "service_tier",
    # sglang, the version of the weights.
    "snapshot": "metadata.weight_version",
}  # fmt: skip
_SGLANG = {"snapshot": "meta_info.weight_version", "request_id": "meta_info.id"}
"""Of sglang's own format, which names no model."""
_ID = ("request_id", "x-request-id")
_ANTHROPIC = {"model": "model", "service_tier": "usage.service_tier", "region": "usage.inference_geo"}
_ANY = _Row(_CHAT, (("request_id", "x-litellm-call-id"), _ID))
"""Of any host, which may be litellm's proxy."""

_CLAUDE_ID = ("request_id", "request-id")
_TIER = ("service_tier", "x-gemini-service-tier")
# Of several identifiers the last one counts: the cloud's own.
_AZURE = _Row(
    _CHAT,
    (
        _CLAUDE_ID,
        ("request_id", "apim-request-id"),
        # The reply of its Responses API has the name of the alias.
        ("snapshot", "x-ms-served-model"),
        ("host", "x-ms-deployment-name"),
        ("region", "x-ms-region"),
    ),
)
_AWS = _Row(_CHAT, (_ID, _CLAUDE_ID, ("request_id", "x-amzn-requestid")))

_ROWS: dict[str, _Row] = {
    "azure": _AZURE,
    "azure_ai": _AZURE,
    "bedrock": _AWS,
    "bedrock_mantle": _AWS,
    "vertex_ai": _Row(_CHAT, (_CLAUDE_ID, _TIER)),
    "anthropic": _Row(_ANTHROPIC, (_CLAUDE_ID,)),
    "gemini": _Row(
        {"model": "modelVersion", "request_id": "responseId", "service_tier": "usageMetadata.serviceTier"},
        (_TIER,),
    ),
    "openrouter": _Row(_CHAT | {"host": "provider", "region": "openrouter_metadata.region"}, (_ID,)),
    "groq": _Row(_CHAT | {"request_id": "x_groq.id"}, (_ID, ("region", "x-groq-region"))),
    "fireworks_ai": _Row(_CHAT, (_ID, ("host", "fireworks-deployment"))),
    "huggingface": _Row(_CHAT, (_ID, ("host", "x-inference-provider"))),
    "mistral": _Row(_CHAT, (_ID, ("request_id", "mistral-correlation-id"))),
}
# A reply through litellm may come from any provider.
_ROWS["litellm"] = _Row(
    _CHAT | {"host": "provider"},
    (*dict.fromkeys(pair for row in _ROWS.values() for pair in row.headers), ("host", "upstream_provider")),
)

_MONTH = r"(?:0[1-9]|1[0-2])"
_DATED = re.compile(
    rf".+[-@](?:\d{{4}}-\d{{2}}-\d{{2}}|\d{{8}}|2\d{_MONTH}|{_MONTH}(?:[0-2]\d|3[01])|00\d)(?:-v\d.*)?"
)
"""A name with a date, as Mistral's `-2512` and DeepSeek's `-0528` too, or with Gemini's `-001`."""
_ENGINES = (
    ("vllm", re.compile(r"vllm-(\d[^-]*)-.+")),
    # The number of the build and its commit, which some builds do not know: "b0-unknown".
    ("llama.cpp", re.compile(r"(?:(b[1-9]\d*)|b0)-[0-9a-z]+")),
    ("tgi", re.compile(r"(\d+\.\d+\.\d+(?:-dev\d+)?)-(?:native|sha-[0-9a-f]+).*")),
)
_UNTOLD = ("snapshot", "default")
"""What sglang says where nobody has named a version of the weights."""


def read_origin(target: Target, headers: Mapping[str, str] | None) -> Origin | None:
    """What the headers of an answer, by lower-case names, and its cloud's region say; None for nothing."""
    origin = {}
    if headers:
        for field, name in _ROWS.get(target.provider, _ANY).headers:
            value = headers.get(name)
            if value:
                origin[field] = value[:_LONGEST]
    cloud = target.route.cloud
    if (
        cloud is not None
        and "region" not in origin
        and (region := doors.cloud_addresses.find_priced_region(cloud, target.base_url))
    ):
        origin["region"] = region
    return origin or None


def find_tier(origin: Origin | None, in_reply: str | None) -> str | None:
    """The service level that served, by its name in `prices.csv`. As in `read_fields`, headers come first."""
    in_headers = origin and origin.get("service_tier")
    return variant_of(in_headers.lower()) if in_headers else in_reply


def read_served_by(provider: str, reply: Any, origin: Origin | None = None) -> ServedBy | None:
    """Who answered: the first of several replies. None if nothing is told.

    `origin` is what `read_origin` returned. It comes before the body, but for the region.
    """
    values = read_fields(provider, reply, origin)
    return ServedBy(**values) if values else None


def read_fields(provider: str, reply: Any, origin: Origin | None) -> dict[str, str]:
    if isinstance(reply, list):
        reply = reply[0] if reply else None
    values: dict[str, str] = {}
    if isinstance(reply, dict):
        # Claude and Gemini have their own shapes at the clouds too.
        body = _ROWS["gemini"].body if "modelVersion" in reply else _ROWS.get(provider, _ANY).body
        body = _SGLANG if "meta_info" in reply else body
        for field, path in (_ANTHROPIC if reply.get("type") == "message" else body).items():
            value: Any = reply.get(path)
            if value is None and "." in path:
                outer, _, inner = path.partition(".")
                container = reply.get(outer)
                value = container.get(inner) if isinstance(container, dict) else None
            if isinstance(value, str) and value and (field, value) != _UNTOLD:
                values[field] = value[:_LONGEST]
    if origin:
        # A reply says where it was computed, and the address only where it was sent.
        region = values.get("region")
        values.update({field: value for field, value in origin.items() if field in FIELDS})
        if region is not None:
            values["region"] = region
    model = values.get("model")
    if model is not None and "snapshot" not in values and _DATED.fullmatch(model):
        values["snapshot"] = model
    if "fingerprint" in values:
        for engine, pattern in _ENGINES:
            if match := pattern.fullmatch(values["fingerprint"]):
                values |= {"engine": engine} | ({"engine_version": match[1]} if match[1] else {})
    return values
