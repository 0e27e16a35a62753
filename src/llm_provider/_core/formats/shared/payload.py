"""The payload of a request by the table `ACCEPTS` of a format, the facts about it, and who answered.

The rows of who answered come from the types of the SDKs (openai 2.54, anthropic 2.12, google-genai 3.4,
openrouter 1.3, groq 1.7, fireworks-ai 1.2), vLLM's `fingerprint.py`, and headers that providers document.
Headers are read when the answer arrives, into a small dict, which is stored with the answer. The body is read
when somebody asks. So a call pays for one look at its headers.
"""

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from ... import doors
from ...errors import UnsupportedParameterError
from ...json_values import JSONMapping, JSONObject
from ...requests.parameter_table import PARAMETERS
from ...requests.request import EmbedRequest, Request
from ...requests.routing import Target
from ...types.usage import FIELDS, SNAPSHOT, ServedBy

Family = TypeVar("Family")


@dataclass(slots=True)
class Draft(Generic[Family]):
    """A request while its parameters are written into `payload`, and those outside the key into `labels`."""

    request: Request
    target: Target
    family: Family
    payload: JSONObject
    labels: JSONObject = field(default_factory=dict)

    def refuse(self, parameter: str, remedy: str = "") -> UnsupportedParameterError:
        """The error for a parameter or a value that the model does not accept."""
        remedy = remedy or PARAMETERS[parameter].remedy
        return refuse(parameter, self.request, remedy, provider=self.target.provider)


Accepts: TypeAlias = Mapping[str, str | Callable[[Draft[Any], Any], None]]
"""Parameter → the wire field that holds it, or the function that writes it.

A dot leads into an object: "reasoning.effort". A parameter that is missing is refused.
"""


def keep_names(*names: str) -> dict[str, str]:
    """Entries of parameters that have the same name in the wire format."""
    return dict(zip(names, names, strict=True))


def fill_payload(draft: Draft[Any], accepts: Accepts) -> JSONObject:
    """The draft's payload with the parameters that are set, if they are accepted, and with `extra_body`."""
    for name, value in draft.request.parameters_to_send.items():
        row = PARAMETERS[name]
        write = accepts.get(name)
        if write is None:
            if row.remedy and value != row.no_effect:
                # The types of the SDKs, and of hosts the rows of routing.py.
                raise draft.refuse(name)
        elif isinstance(write, str):
            container = draft.labels if row.is_label else draft.payload
            *outer, field_name = write.split(".")
            for step in outer:
                container = container.setdefault(step, {})
            container[field_name] = list(value) if isinstance(value, tuple) else value
        else:
            write(draft, value)
    extra = draft.request.extra_body
    return merge(draft.payload, extra) if extra else draft.payload


def refuse(
    parameter: str, request: Request | EmbedRequest, remedy: str, *, provider: str
) -> UnsupportedParameterError:
    """The error for a parameter that a model does not accept."""
    return UnsupportedParameterError(
        f"{request.model} does not accept {parameter}: {remedy}",
        parameter=parameter,
        model=request.model,
        provider=provider,
    )


def merge(payload: JSONObject, extra: JSONMapping) -> JSONObject:
    """`payload` with `extra_body` merged in, level by level. The user's value wins, and tools are added."""
    merged = dict(payload)
    for name, value in extra.items():
        present = merged.get(name)
        if name == "tools" and isinstance(present, list) and isinstance(value, (list, tuple)):
            merged[name] = [*present, *(tool for tool in value if tool not in present)]
            continue
        both = isinstance(present, dict) and isinstance(value, Mapping)
        merged[name] = merge(present, value) if both else value  # type: ignore[arg-type]  # `both` narrows
    return merged


_VARIANTS = frozenset({"fast", "flex", "priority", "ultrafast"})
"""The service levels that providers call by the same names as `prices.csv`."""


class Medium(NamedTuple):
    """An image, a recording, a film or a document in a request.

    `kind` is "image", "audio", "video" or "application". `data` is the base64 text of an image, None if the
    request holds only its address. `detail` is the resolution at which a model looks at an image: "low",
    "medium", "high", "ultra_high" (Gemini) or "original" (OpenAI). Any other value leaves it to the provider.
    """

    kind: str
    data: str | None
    detail: str = "auto"


MediumOf: TypeAlias = Callable[[JSONObject], Medium | None]
"""Returns the medium in one part of a message, None if the part holds text."""


class SpecialPrices(NamedTuple):
    """Which special prices may apply to a request, beside the prices of its media."""

    caches_for_an_hour: bool = False
    """Whether the provider may keep a part of the prompt in its cache for an hour."""
    speaks: bool = False
    """Whether the answer may hold speech."""
    continues_speech: bool = False
    """Whether an earlier answer in the conversation may hold speech, which the provider bills as input."""
    caches_for_12_hours: bool = False
    """The same for twelve hours, which have no price in most tables."""


class RequestFacts(NamedTuple):
    """Facts about one request. The sequences may be the payload's own, so nobody may change them."""

    variant: str
    """The service level that the request asks for, by its name in `prices.csv`."""
    max_output_tokens: int | None
    """The longest answer that the request allows, in tokens; None if it sets no limit."""
    texts: Sequence[str]
    media: Sequence[Medium]
    turns: int
    """Messages of the conversation, a system prompt included."""
    tools: Sequence[Any]
    schemas: Sequence[Any]
    """Formats that the answer must have."""
    adds_input: bool
    """Whether the provider adds input of unknown length: search results, stored conversations, files."""
    prediction: Any = None
    """A predicted answer. The provider bills the wrong part of it as output."""
    continued: int = 0
    """Tokens of the answer so far, which a request that continues it reads too."""
    special_prices: Callable[[], SpecialPrices] = SpecialPrices
    """Finds the special prices that may apply. Only budgets need them, and finding them takes a while."""

    @property
    def structures(self) -> Sequence[Any]:
        """All tools as one value, and each schema: JSON that a model reads as some kind of code."""
        return (self.tools, *self.schemas) if self.tools else self.schemas


def collect_facts(
    labels: frozenset[str], medium_of: MediumOf, groups: Iterable[Any], **others: Any
) -> RequestFacts:
    """The facts of a request with these messages or lists of them. No model is shown the fields `labels`."""
    texts, media, turns = list[str](), list[Medium](), 0

    def collect(value: Any) -> None:
        if isinstance(value, str):
            # A data URL too, if it stands in place of a text: the model reads it as text.
            texts.append(value)
        elif isinstance(value, dict):
            medium = medium_of(value)
            if medium is not None:
                media.append(medium)
                return
            for name, inner in value.items():
                if name not in labels:
                    collect(inner)
        elif isinstance(value, (list, tuple)):
            for inner in value:
                collect(inner)

    for group in groups:
        if group is not None:
            turns += len(group) if isinstance(group, (list, tuple)) else 1
            collect(group)
    return RequestFacts(texts=texts, media=media, turns=turns, **others)


def variant_of(tier: object) -> str | None:
    """The name in `prices.csv` of a provider's service level; None if there is none to name.

    The price table has no rows for other names than these: their requests pay the standard price.
    """
    if not isinstance(tier, str) or not tier:
        return None
    return tier if tier in _VARIANTS else "standard"


def openai_tier(tier: object) -> str | None:
    """The name in `prices.csv` of the service tier in a request or an answer of OpenAI's formats, or None.

    OpenAI renamed "priority" to "fast" in 2026. Requests may use either word, and answers say "priority".
    """
    return "priority" if tier == "fast" else variant_of(tier)


def largest_limit(*limits: object) -> int | None:
    """The largest of the limits that a payload sets; None if it sets none."""
    return max((limit for limit in limits if isinstance(limit, int)), default=None)


def find_words(payload: JSONObject, *words: str) -> set[str]:
    """The words that are a text or a field's name anywhere in a payload."""
    result: set[str] = set()
    remaining: list[Any] = [payload]
    while remaining:
        value = remaining.pop()
        if isinstance(value, str):
            # Looking a text up in a set would hash it, and images are long texts.
            if value in words:
                result.add(value)
        elif isinstance(value, dict):
            remaining += value
            remaining += value.values()
        elif isinstance(value, (list, tuple)):
            remaining += value
    return result


Origin: TypeAlias = Mapping[str, str]
"""What headers and the route say of who answered: fields of `ServedBy` by name."""

_LONGEST = 200
"""Characters of a value that are kept: a server may answer with anything."""


class _Row(NamedTuple):
    body: tuple[tuple[str, str, str], ...]
    """Field of `ServedBy`, and its name in the reply, or the names of an object and of the value in it."""
    headers: tuple[tuple[str, str], ...]
    """Field of `ServedBy`, and the header that has it, in lower case. Of several the last one counts."""


def _row(body: Mapping[str, str], *headers: tuple[str, str]) -> _Row:
    return _Row(tuple((field, *path.partition(".")[::2]) for field, path in body.items()), headers)


_CHAT = {
    "model": "model", "fingerprint": "system_fingerprint", "service_tier": "service_tier",
    # sglang, the version of the weights.
    "snapshot": "metadata.weight_version",
}  # fmt: skip
_ID, _CLAUDE_ID = ("request_id", "x-request-id"), ("request_id", "request-id")
SERVICE_TIER = "service_tier"
"""The field of an `Origin` with the service level."""
_TIER = (SERVICE_TIER, "x-gemini-service-tier")
_ANY = _row(_CHAT, ("request_id", "x-litellm-call-id"), _ID)
"""Of any host, which may be litellm's proxy."""
_SGLANG = _row({"snapshot": "meta_info.weight_version", "request_id": "meta_info.id"})
"""Of sglang's own format, which names no model."""
_ANTHROPIC = _row(
    {"model": "model", "service_tier": "usage.service_tier", "region": "usage.inference_geo"}, _CLAUDE_ID
)
_GEMINI = _row(
    {"model": "modelVersion", "request_id": "responseId", "service_tier": "usageMetadata.serviceTier"}, _TIER
)
_INTERACTIONS = _row({"model": "model", "request_id": "id", "service_tier": "service_tier"}, _TIER)
_AZURE = _row(
    _CHAT,
    _CLAUDE_ID,
    ("request_id", "apim-request-id"),
    # The reply of its Responses API has the name of the alias.
    ("snapshot", "x-ms-served-model"),
    ("host", "x-ms-deployment-name"),
    ("region", "x-ms-region"),
)
_AWS = _row(_CHAT, _ID, _CLAUDE_ID, ("request_id", "x-amzn-requestid"))

_ROWS: dict[str, _Row] = {
    "azure": _AZURE,
    "azure_ai": _AZURE,
    "bedrock": _AWS,
    "bedrock_mantle": _AWS,
    "vertex_ai": _row(_CHAT, _CLAUDE_ID, _TIER),
    "anthropic": _ANTHROPIC,
    "gemini": _GEMINI,
    "openrouter": _row(_CHAT | {"host": "provider", "region": "openrouter_metadata.region"}, _ID),
    "groq": _row(_CHAT | {"request_id": "x_groq.id"}, _ID, ("region", "x-groq-region")),
    "fireworks_ai": _row(_CHAT, _ID, ("host", "fireworks-deployment")),
    "huggingface": _row(_CHAT, _ID, ("host", "x-inference-provider")),
    "mistral": _row(_CHAT, _ID, ("request_id", "mistral-correlation-id")),
}
# A reply through litellm may come from any provider.
_HEADERS = dict.fromkeys(pair for row in _ROWS.values() for pair in row.headers)
_ROWS["litellm"] = _row(_CHAT | {"host": "provider"}, *_HEADERS, ("host", "upstream_provider"))

_TELLING = {
    outer: None
    for row in (*_ROWS.values(), _ANY, _SGLANG, _INTERACTIONS)
    for field, outer, _ in row.body
    if field in ("model", "snapshot", "fingerprint", "host")
} | {"type": None}
"""The fields of replies that tell the model and the machine, and which row reads them."""

_DATED = re.compile(f".+{SNAPSHOT.pattern}")
_ENGINES = (
    ("vllm", re.compile(r"vllm-(\d[^-]*)-.+")),
    # The number of the build and its commit, which some builds do not know: "b0-unknown".
    ("llama.cpp", re.compile(r"(?:(b[1-9]\d*)|b0)-[0-9a-z]+")),
    ("tgi", re.compile(r"(\d+\.\d+\.\d+(?:-dev\d+)?)-(?:native|sha-[0-9a-f]+).*")),
)
_UNTOLD = "default"
"""What sglang says where nobody has named a version of the weights."""


def read_origin(target: Target, headers: Mapping[str, str] | None) -> Origin | None:
    """What the headers of an answer, by lower-case names, and its cloud's region say; None for nothing."""
    origin, find, cloud = {}, (headers or {}).get, target.route.cloud
    for name, header in _ROWS.get(target.provider, _ANY).headers:
        if value := find(header):
            origin[name] = value[:_LONGEST]
    if cloud is not None and "region" not in origin:
        region = doors.cloud_addresses.find_priced_region(cloud, target.base_url)
        origin |= {"region": region} if region else {}
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


def find_marks(model: str | None, reply: Any, origin: Origin | None) -> tuple[object, ...] | None:
    """Whatever may differ between answers of two models or machines; None where `reply` is no object."""
    if not isinstance(reply, dict):
        return None
    headers = (origin.get("host"), origin.get("snapshot")) if origin else ()
    return (model, *map(reply.get, _TELLING), *headers)


def read_fields(provider: str, reply: Any, origin: Origin | None) -> dict[str, str]:
    if isinstance(reply, list):
        reply = reply[0] if reply else None
    values: dict[str, str] = {}
    if isinstance(reply, dict):
        # Claude and Gemini have their own shapes at the clouds too.
        row = _GEMINI if "modelVersion" in reply else _ROWS.get(provider, _ANY)
        row = _INTERACTIONS if provider == "gemini" and "steps" in reply else row
        row = _ANTHROPIC if reply.get("type") == "message" else _SGLANG if "meta_info" in reply else row
        for field, outer, inner in row.body:
            value: Any = reply.get(outer)
            if inner:
                value = value.get(inner) if isinstance(value, dict) else None
            if value and isinstance(value, str):
                values[field] = value[:_LONGEST]
        if values.get("snapshot") == _UNTOLD:
            del values["snapshot"]
    if origin:
        # A reply says where it was computed, and the address only where it was sent.
        region = values.get("region")
        values.update({field: value for field, value in origin.items() if field in FIELDS})
        if region is not None:
            values["region"] = region
    model = "" if "snapshot" in values else values.get("model", "")
    values.update(_read_names(model, values.get("fingerprint", "")))
    return values


@functools.lru_cache(maxsize=1024)
def _read_names(model: str, fingerprint: str) -> Mapping[str, str]:
    """What the name of a model tells of its snapshot, and a fingerprint of its engine."""
    fields = {"snapshot": model} if _DATED.fullmatch(model) else {}
    for engine, pattern in _ENGINES:
        if match := pattern.fullmatch(fingerprint):
            fields |= {"engine": engine} | ({"engine_version": match[1]} if match[1] else {})
    return fields
