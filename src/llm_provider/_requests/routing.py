"""The table of providers, `ROUTES`, and the way from a model's name to its `Target`.

A new OpenAI-compatible host is one row of `ROUTES` and nothing else. Model names follow litellm's convention,
`provider/model`.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from .._errors import UnknownModelError
from .compatible_hosts import HOSTS

if TYPE_CHECKING:
    from .env_file import EnvFile
    from .host import Host

Transport = Literal["aiohttp", "http2", "http1"]
"""The HTTP client that carries an SDK's requests."""


class EmbeddingLimits(NamedTuple):
    """How much a host takes in one request for embeddings."""

    texts: int
    """Most texts in one request."""
    tokens: int | None
    """Most tokens of all texts of one request together; None where there is no such limit."""
    text_tokens: int | None
    """Most tokens of one text; None where it is not known."""


UNPUBLISHED = EmbeddingLimits(texts=100, tokens=16_384, text_tokens=None)
"""For hosts that publish no limits: the limits of the strictest host that does."""


class BatchService(NamedTuple):
    """A host's batch API, which has the shape of OpenAI's."""

    rows: int
    """Most rows of one batch."""
    bytes: int
    """Most bytes of its file."""
    purpose: str = "batch"
    """The purpose with which the file is uploaded."""
    operations: tuple[str, ...] = ()
    """The endpoints that it serves; empty for all that OpenAI's does."""


def _name_variable(provider: str, what: str) -> str:
    return f"{provider.removesuffix('_ai').upper()}_{what}"


# A row is its own identity: what is derived from it is remembered by the row.
@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One provider: a row of `ROUTES`.

    For an OpenAI-compatible host the first two columns suffice, and the rest has defaults. Nothing else of
    the package lists these hosts: environment variables, price sources and the simulator follow from the row.

    Attributes:
        provider: The provider's name and the prefix of its models. It is litellm's name where litellm has
            one.
        base_url: The provider's server; None where the adapter finds the server itself.
        adapter: The folder in `_providers` that speaks the provider's wire format.
        base_url_variable: The environment variable that points the route at another server. Default
            `<HOST>_BASE_URL`, where `<HOST>` is the provider's name without `_ai`, in upper case.
        key_variables: The environment variables of the API key. The first that is set counts.
            Default `<HOST>_API_KEY`.
        bare_names: A pattern of the model names that belong to this route without a prefix.
        key_required: Whether a call without an API key fails before it is sent.
        like_openai: Whether the API has every parameter that OpenAI's Chat Completions has.
        options: The parameters that the API has and few other compatible hosts; see `openai/chat.ACCEPTS`.
        lacks: The parameters that the API does not have, although most compatible hosts do. Without `n`,
            samples are sent as separate calls.
        stores_answers: Whether the host has OpenAI's Responses API with stored answers.
        spelling: Parameters that the API names differently, each with its name there.
        transport: The HTTP client under the SDK where the user chooses none, by measurement
            (`python -m benchmarks transports`).
        stream_usage: Whether a streamed answer has its usage only if `stream_options` asks for it.
        json_schema: Whether the API takes a JSON schema for the answer. Where it does not, the prompt asks
            for it.
        default_effort: Whether the API may accept `reasoning_effort="default"`.
        embedding_limits: How much one request for embeddings may hold, where the adapter is `openai`. Default
            `UNPUBLISHED`.
        batches: The host's batch API, where the adapter is `openai`; None where it has none of OpenAI's
            shape.
        parts: Parts of messages that OpenAI does not have and the API has: "media in results" of tools, and
            "thinking" in the content.
        output_only: Fields of an assistant message that other hosts return and this host refuses as input.
        litellm_names: The provider's names in litellm's price map, the one that prefixes its models first.
            Default the provider's own name.
        other_names: Prefixes by which other tools call the provider, and litellm does not; an error names the
            right one.
        genai_prices_name: The provider's name in genai-prices. Default the provider's own name.
        host: The host of the user's own that the row was made of; None for a row of `ROUTES`.

    >>> row = Route("example_ai", "https://api.example.com/v1")
    >>> row.base_url_variable, row.key_variables, row.litellm_names
    ('EXAMPLE_BASE_URL', ('EXAMPLE_API_KEY',), ('example_ai',))
    """

    provider: str
    base_url: str | None
    adapter: str = "openai"
    base_url_variable: str = ""
    key_variables: tuple[str, ...] = ()
    bare_names: str = r"(?!)"
    key_required: bool = True
    like_openai: bool = False
    options: frozenset[str] = frozenset()
    lacks: frozenset[str] = frozenset()
    stores_answers: bool = False
    spelling: Mapping[str, str] = field(default_factory=dict)
    transport: Transport = "aiohttp"
    stream_usage: bool = True
    json_schema: bool = True
    default_effort: bool = False
    embedding_limits: EmbeddingLimits = UNPUBLISHED
    batches: BatchService | None = None
    parts: frozenset[str] = frozenset()
    output_only: frozenset[str] = frozenset()
    litellm_names: tuple[str, ...] = ()
    other_names: tuple[str, ...] = ()
    genai_prices_name: str = ""
    host: Host | None = None

    def __post_init__(self) -> None:
        if self.base_url is None or self.host is not None:
            return
        derived = {
            "base_url_variable": _name_variable(self.provider, "BASE_URL"),
            "key_variables": (_name_variable(self.provider, "API_KEY"),),
            "litellm_names": (self.provider,),
            "genai_prices_name": self.provider,
        }
        for column, value in derived.items():
            if not getattr(self, column):
                object.__setattr__(self, column, value)


_REASONING = frozenset(
    {"reasoning", "reasoning_content", "reasoning_details", "thinking_blocks", "annotations", "images"}
)

_ROWS = (
    Route(
        "openai",
        "https://api.openai.com/v1",
        # OpenAI's own models continue `gpt-` with a version or a modality; other hosts serve `gpt-oss-*`, and
        # `text-embedding-004` was Google's.
        bare_names=r"(ft:)?(gpt-(\d|audio|realtime|image|live)|o[134](-|$)|chatgpt-|text-embedding-(3|ada)-).*",
        # openai/types/embedding_create_params.py of openai 2.54.
        embedding_limits=EmbeddingLimits(texts=2_048, tokens=300_000, text_tokens=8_192),
        batches=BatchService(rows=50_000, bytes=200_000_000),
        output_only=_REASONING,
        like_openai=True,
        stores_answers=True,
        litellm_names=("openai", "text-completion-openai"),
    ),
    Route(
        "anthropic",
        "https://api.anthropic.com",
        adapter="anthropic",
        bare_names=r"claude-.*",
        other_names=("claude",),
    ),
    Route(
        "gemini",
        "https://generativelanguage.googleapis.com",
        adapter="gemini",
        base_url_variable="GOOGLE_GEMINI_BASE_URL",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        bare_names=r"gemini-.*",
        other_names=("google", "googleai", "google_ai", "google_genai", "models"),
        genai_prices_name="google",
    ),
    Route(
        "together_ai",
        "https://api.together.ai/v1",
        key_variables=("TOGETHER_API_KEY", "TOGETHERAI_API_KEY"),
        lacks=frozenset({"dimensions"}),
        # Together's `logprobs` is the number of alternatives.
        spelling={"top_logprobs": "logprobs"},
        batches=BatchService(50_000, 100_000_000, "batch-api", ("chat/completions",)),
        other_names=("together", "togetherai"),
        genai_prices_name="together",
    ),
    Route(
        "openrouter",
        "https://openrouter.ai/api/v1",
        like_openai=True,
        lacks=frozenset({"n", "allowed_tools", "store"}),
        parts=frozenset({"media in results"}),
    ),
    Route(
        "groq",
        "https://api.groq.com/openai/v1",
        lacks=frozenset({"n", "logprobs", "top_logprobs", "logit_bias", "top_k"}),
        options=frozenset({"service_tier"}),
        default_effort=True,
        batches=BatchService(rows=50_000, bytes=200_000_000, operations=("chat/completions",)),
        # Groq accepts the `reasoning` of its own answers.
        output_only=_REASONING - {"reasoning"},
    ),
    Route(
        "deepseek",
        "https://api.deepseek.com/beta",
        lacks=frozenset({"n", "seed", "logit_bias", "top_k"}),
        # Its API has `json_object` only.
        json_schema=False,
    ),
    Route(
        "xai",
        "https://api.x.ai/v1",
        lacks=frozenset({"top_k"}),
        stores_answers=True,
        other_names=("x-ai", "x_ai", "grok"),
        genai_prices_name="x-ai",
    ),
    Route(
        "mistral",
        "https://api.mistral.ai/v1",
        lacks=frozenset({"logprobs", "top_logprobs", "logit_bias", "top_k", "user"}),
        options=frozenset({"metadata"}),
        parts=frozenset({"media in results", "thinking"}),
        spelling={"seed": "random_seed", "dimensions": "output_dimension"},
        stream_usage=False,
        # Its error says: "Too many tokens in batch. Max is 16384". The length of a text is in its list of
        # models.
        embedding_limits=EmbeddingLimits(texts=100, tokens=16_384, text_tokens=8_192),
        output_only=_REASONING,
    ),
    Route(
        "fireworks_ai",
        "https://api.fireworks.ai/inference/v1",
        options=frozenset({"prompt_cache_key", "service_tier"}),
        stores_answers=True,
        litellm_names=("fireworks_ai", "fireworks_ai-embedding-models"),
        other_names=("fireworks",),
        genai_prices_name="fireworks",
    ),
    Route(
        "sambanova",
        "https://api.sambanova.ai/v1",
        lacks=frozenset({"n", "seed", "logprobs", "top_logprobs", "logit_bias"}),
    ),
    Route(
        "local",
        "http://localhost:8000/v1",
        key_required=False,
        default_effort=True,
        # The server decides.
        like_openai=True,
        parts=frozenset({"media in results", "thinking"}),
        stores_answers=True,
    ),
    Route(
        "litellm",
        None,
        adapter="litellm",
        # litellm finds the keys of its providers itself.
        key_required=False,
        default_effort=True,
        lacks=frozenset({"n"}),
    ),
    *(
        # Few hosts have `n`, and a host that ignores it would return one sample.
        Route(
            name,
            url,
            key_variables=(_name_variable(name, "API_KEY"), *variables),
            lacks=frozenset({"n"}),
        )
        for name, (url, *variables) in HOSTS.items()
    ),
)

ROUTES: Mapping[str, Route] = MappingProxyType({row.provider: row for row in _ROWS})
"""Every route by provider name, which is also the prefix of its models."""

COMPATIBLE_HOSTS = tuple(
    row.provider for row in _ROWS if row.adapter == "openai" and row.provider != "openai"
)
"""The OpenAI-compatible hosts by name."""


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a call: its route, the model's name in the request, and the resolved base URL."""

    route: Route
    model: str
    base_url: str | None
    custom_base_url: bool = False
    """Whether the call or the environment gave another server than the provider's own."""

    @property
    def provider(self) -> str:
        """The route's name."""
        return self.route.provider

    @property
    def url_in_key(self) -> str | None:
        """The server in the cache key. A host of the user's own has none: it may move."""
        return self.base_url if self.route.host is None or self.custom_base_url else None


NO_HOSTS: Mapping[str, Route] = MappingProxyType({})
"""For clients without hosts of the user's own."""


def resolve(
    model: str,
    base_url: str | None = None,
    env_file: EnvFile | None = None,
    hosts: Mapping[str, Route] = NO_HOSTS,
) -> Target:
    """Find the route of a model.

    Args:
        model: A bare name (`gpt-6.1-sol`) or a name with a prefix (`groq/openai/gpt-oss-120b`).
        base_url: The server given by the user. Without one, the route's environment variable decides, else
            that of `env_file`, else the route's own server.
        env_file: A client's `.env` file.
        hosts: A client's own hosts by name. They come before litellm's providers.

    Raises:
        UnknownModelError: no row has this bare name; the message suggests near names and prefixes.
        RequestError: `base_url` is not a server that a request may be sent to.

    >>> resolve("gemini/gemini-3.8-flash").model
    'gemini-3.8-flash'
    >>> resolve("groq/openai/gpt-oss-120b").provider
    'groq'
    >>> resolve("bedrock/anthropic.claude-opus-5-5").provider
    'litellm'
    """
    if hosts:
        prefix, slash, name = model.partition("/")
        if slash and prefix in hosts:
            return _target_at(hosts[prefix], _require_name(model, name), base_url or "")
    route, _ = _route(model)
    server = base_url or os.environ.get(route.base_url_variable, "").strip()
    if not server and env_file is not None:
        server = env_file.get(route.base_url_variable)
    return _target(model, server)


@functools.lru_cache(maxsize=1024)
def _target(model: str, base_url: str) -> Target:
    return _target_at(*_route(model), base_url)


def _target_at(route: Route, name: str, base_url: str) -> Target:
    if not base_url:
        return Target(route, name, route.base_url)
    from .base_url import check_base_url

    return Target(route, name, check_base_url(base_url), custom_base_url=True)


def _require_name(model: str, name: str) -> str:
    if not name:
        raise UnknownModelError(
            f"{model!r} names a provider but no model; write the model after the slash", model=model
        )
    return name


@functools.lru_cache(maxsize=1024)
def _route(model: str) -> tuple[Route, str]:
    """The row of a model, and the model's name without the prefix."""
    prefix, slash, rest = model.partition("/")
    if not slash:
        route = next((row for row in _ROWS if re.fullmatch(row.bare_names, model)), None)
        if route is None:
            from .model_kinds import find_uncovered_kind, not_covered

            what = find_uncovered_kind(model)
            description = _suggestion(model) if what is None else f"{model} {not_covered(what)}"
            raise UnknownModelError(description, model=model)
        return route, model
    if prefix in ROUTES:
        return ROUTES[prefix], _require_name(model, rest)
    from .foreign_names import problem_with

    problem = problem_with(prefix, rest, {row.provider: row.other_names for row in _ROWS})
    if problem is not None:
        raise UnknownModelError(problem, model=model)
    return ROUTES["litellm"], model


def price_names(target: Target) -> tuple[str, str]:
    """The provider and model under which `prices.csv` lists a target.

    A call through litellm has the price of the provider that litellm reaches; one to Vertex that of the
    location in litellm's variables, or of litellm's default, `us-central1`.

    >>> price_names(resolve("litellm/anthropic/claude-sonnet-5-5"))
    ('anthropic', 'claude-sonnet-5-5')
    """
    if target.provider == "litellm":
        prefix, slash, rest = target.model.partition("/")
        if prefix == "vertex_ai" and rest:
            from .._money.cloud_names import name_in_region

            location = os.environ.get("VERTEXAI_LOCATION") or os.environ.get("VERTEX_LOCATION")
            return prefix, name_in_region(prefix, rest, location or "us-central1")
        if slash:
            return prefix, rest
        for row in _ROWS:
            if re.fullmatch(row.bare_names, target.model):
                return row.provider, target.model
    return target.provider, target.model


def list_known_models() -> Iterable[str]:
    """The models of `prices.csv` without the clouds', as `provider/model`. They serve only as suggestions."""
    from .._money.price_rows import CLOUDS
    from .._money.pricing import PriceTable

    return sorted({f"{row.provider}/{row.model}" for row in PriceTable.load() if row.provider not in CLOUDS})


def _suggestion(model: str) -> str:
    import difflib

    named: dict[str, list[str]] = {}
    for full in list_known_models():
        named.setdefault(full.rpartition("/")[2].lower(), []).append(full)
    near = difflib.get_close_matches(model.lower(), named, n=3, cutoff=0.75)
    guess = ""
    if near:
        guess = f"; did you mean {', '.join([full for name in near for full in named[name]][:6])}?"
    prefixes = ", ".join(f"{name}/" for name in ROUTES)
    return (
        f"no route for the model name {model!r}{guess} "
        f"(put the provider before the name: one of {prefixes} or any provider that litellm knows)"
    )
