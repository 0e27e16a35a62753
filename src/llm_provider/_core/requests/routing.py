"""The table of providers, `ROUTES`, and the way from a model's name to its `Target`.

An OpenAI-compatible host is one row and nothing else. Names follow litellm's `provider/model`.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType

from .. import doors
from ..errors import MissingAPIKeyError, UnknownModelError
from .api_keys import NO_KEY, Credential, EnvFile, find_written_key
from .route import GROK_LACKS, UNPUBLISHED, BatchService, EmbeddingLimits, Route, Transport, name_variable

__all__ = [
    "AGENTS", "COMPATIBLE_HOSTS", "INTERACTIONS", "NO_HOSTS", "ROUTES", "UNPUBLISHED", "BatchService",
    "EmbeddingLimits", "Route", "Target", "Transport", "find_key", "find_route", "list_known_models",
    "maker_names", "price_names", "resolve",
]  # fmt: skip

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
        quirks="",
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
        other_names=("google", "googleai", "google_ai", "google_genai", "google-gla", "models"),
        genai_prices_name="google",
    ),
    Route(
        "together_ai",
        "https://api.together.ai/v1",
        key_variables=("TOGETHER_API_KEY", "TOGETHERAI_API_KEY"),
        # types/embedding_create_params.py of together 3.1 has only a model and texts.
        lacks=frozenset({"dimensions"}),
        # Together's `logprobs` is the number of alternatives.
        spelling={"top_logprobs": "logprobs"},
        # docs.together.ai/docs/inference/batch/manage
        batches=BatchService(
            50_000, 100_000_000, "batch-api", operations=("chat/completions",), host="together_ai"
        ),
        scores="prompt part",
        other_names=("together", "togetherai"),
        genai_prices_name="together",
    ),
    Route(
        "openrouter",
        "https://openrouter.ai/api/v1",
        like_openai=True,
        # It ignores `n`: OpenRouterArchived/openrouter-runner#99. The others are not in `chatrequest.py` and
        # `chattoolchoice.py` of openrouter 1.3, and its Responses API stores nothing, says its documentation.
        lacks=frozenset({"n", "allowed_tools", "store"}),
        options=frozenset({"upstream"}),
        parts=frozenset({"media in results"}),
        quirks="routers",
    ),
    Route(
        "huggingface",
        "https://router.huggingface.co/v1",
        key_variables=("HUGGINGFACE_API_KEY", "HF_TOKEN"),
        # Hosts behind it ignore `n`: huggingface/huggingface_hub#2931.
        lacks=frozenset({"n"}),
        options=frozenset({"upstream"}),
        quirks="routers",
    ),
    Route(
        "groq",
        "https://api.groq.com/openai/v1",
        # Not supported yet, says groq 1.7, which has no `top_k`. Unknown fields are a 400: fanenr/chatbot#21.
        lacks=frozenset({"n", "logprobs", "top_logprobs", "logit_bias", "top_k"}),
        options=frozenset({"service_tier"}),
        default_effort=True,
        batches=BatchService(rows=50_000, bytes=200_000_000, operations=("chat/completions",)),
        # Groq accepts the `reasoning` of its own answers.
        output_only=_REASONING - {"reasoning"},
        quirks="groq",
    ),
    Route(
        "deepseek",
        "https://api.deepseek.com/beta",
        # It ignores `n` (vibrantlabsai/ragas#1072), so fields that are not in its API reference
        # (api-docs.deepseek.com/api/create-chat-completion) may be ignored too, as the others here.
        lacks=frozenset({"n", "seed", "logit_bias", "top_k"}),
        # api-docs.deepseek.com/guides/reasoning_model
        models_lack=(("deepseek-reasoner", frozenset({"logprobs", "top_logprobs"})),),
        # Its API has `json_object` only.
        json_schema=False,
    ),
    Route(
        "xai",
        "https://api.x.ai/v1",
        # `GetCompletionsRequest` of xai-sdk 1.21 has no `top_k`.
        lacks=frozenset({"top_k"}),
        models_lack=GROK_LACKS,
        # docs.x.ai/developers/advanced-api-usage/priority-processing
        options=frozenset({"service_tier"}),
        stores_answers=True,
        # More rows may be slowed down: docs.x.ai/developers/advanced-api-usage/batch-api
        batches=BatchService(100_000, 200_000_000, operations=("chat/completions", "responses"), host="xai"),
        other_names=("x-ai", "x_ai", "grok"),
        genai_prices_name="x-ai",
    ),
    Route(
        "mistral",
        "https://api.mistral.ai/v1",
        # Fields outside its schema (`chatcompletionrequest.py` of mistralai 3.7) are a 422:
        # mistralai/platform-docs-public#7.
        lacks=frozenset({"logit_bias", "user"}),
        options=frozenset({"metadata", "prompt_cache_key"}),
        parts=frozenset({"media in results", "thinking"}),
        spelling={"seed": "random_seed", "dimensions": "output_dimension"},
        stream_usage=False,
        # Its error says: "Too many tokens in batch. Max is 16384". The length of a text is in its list of
        # models.
        embedding_limits=EmbeddingLimits(texts=100, tokens=16_384, text_tokens=8_192),
        # docs.mistral.ai/resources/known-limitations
        batches=BatchService(
            100_000, 512_000_000, operations=("chat/completions", "embeddings"), host="mistral"
        ),
        output_only=_REASONING,
    ),
    Route(
        "fireworks_ai",
        "https://api.fireworks.ai/inference/v1",
        options=frozenset({"prompt_cache_key", "service_tier"}),
        stores_answers=True,
        # The endpoint for files takes 150 MB: docs.fireworks.ai/api-reference/upload-dataset-files
        batches=BatchService(1_000_000, 150_000_000, operations=("chat/completions",), host="fireworks_ai"),
        scores="text",
        litellm_names=("fireworks_ai", "fireworks_ai-embedding-models"),
        other_names=("fireworks",),
        genai_prices_name="fireworks",
    ),
    Route(
        "sambanova",
        "https://api.sambanova.ai/v1",
        # It ignores the penalties and biases, and refuses `n` beside tools:
        # docs.sambanova.ai/docs/en/features/openai-compatibility
        lacks=frozenset({"n", "logit_bias", "presence_penalty", "frequency_penalty"}),
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
        # litellm 1.106 drops or refuses `n` for many of its providers.
        lacks=frozenset({"n"}),
    ),
    *doors.cloud_routes.CLOUD_ROWS,
    *(
        # A host that ignores `n`, as huggingface/huggingface_hub#2931 tells of, would return one sample.
        Route(name, url, key_variables=(name_variable(name, "API_KEY"), *variables), lacks=frozenset({"n"}))
        for name, (url, *variables) in doors.compatible_hosts.HOSTS.items()
    ),
)

ROUTES: Mapping[str, Route] = MappingProxyType({row.provider: row for row in _ROWS})
"""Every route by provider name, which is also the prefix of its models. Of a cloud's rows it has the last."""

AGENTS = re.compile(r"(deep-research|antigravity)-.*|agents/.+")
"""The names of Google's agents, and of those that a user has made there."""

INTERACTIONS = replace(ROUTES["gemini"], adapter="gemini_interactions", bare_names=AGENTS.pattern)
"""Gemini's other endpoint. It alone serves agents, which are not models of `generateContent`."""

_OTHER_NAMES: dict[str, tuple[str, ...]] = {}
for _row in _ROWS:
    _OTHER_NAMES[_row.provider] = (*_OTHER_NAMES.get(_row.provider, ()), *_row.other_names)

COMPATIBLE_HOSTS = tuple(
    row.provider for row in _ROWS if row.adapter == "openai" and row.provider != "openai" and not row.cloud
)
"""The OpenAI-compatible hosts by name."""


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a call: its route, the model's name in the request, and the resolved base URL."""

    route: Route
    model: str
    base_url: str | None
    """None also for a host with several servers: `servers` has them."""
    custom_base_url: bool = False
    """Whether the call or the environment gave another server than the provider's own."""
    deployed: str = ""
    """The model that a deployment is, where the user says so: `Client(deployments=)`."""
    quirks: str | None = field(init=False, compare=False)
    """The module of `_features/quirks` for the server; None where nothing is known of the server."""

    provider: str = field(init=False, repr=False, compare=False)
    url_in_key: str | None = field(init=False, repr=False, compare=False)
    """The server in the cache key. A host of the user's own has none: it may move."""
    maker: str = field(init=False, repr=False, compare=False)
    """The provider that makes the route's models: "openai" for Azure."""
    known_model: str = field(init=False, repr=False, compare=False)
    """The model's name at its maker, which says what it accepts."""

    def __post_init__(self) -> None:
        # Every call reads them several times, and the targets are kept.
        route, note = self.route, partial(object.__setattr__, self)
        note("provider", route.provider)
        quirks = (route.quirks or None) if self.custom_base_url else route.quirks
        is_routed = route.adapter == "openai" and self.model.startswith("openrouter/")  # by a gateway
        note("quirks", "routers" if is_routed else quirks)
        note("url_in_key", self.base_url if route.host is None or self.custom_base_url else None)
        note("maker", (route.cloud and route.cloud.maker) or route.provider)
        name = self.model
        if route.cloud is not None:
            deployed = self.deployed and doors.cloud_price_names.drop_region(route.provider, self.deployed)
            name = doors.cloud_addresses.plain_name(deployed or name)
        note("known_model", name)

    @property
    def servers(self) -> tuple[Target, ...]:
        """The targets that may answer: one for each of a host's equal servers, else this one."""
        host = self.route.host
        if host is None or self.base_url is not None:
            return (self,)
        return tuple(replace(self, base_url=url) for url in host.urls)


NO_HOSTS: Mapping[str, Route] = MappingProxyType({})
"""For clients without hosts of the user's own."""

_NO_DEPLOYMENTS: Mapping[str, str] = MappingProxyType({})


def _refuse_cloud_within(prefix: str, rest: str, model: str) -> None:
    """Raise for a cloud that is named behind the maker of the model, as inspect_ai does."""
    cloud, slash, name = rest.partition("/")
    if slash and cloud in ("azure", "bedrock", "vertex"):
        right = doors.remedies.CLOUDS_OF_MAKERS.get((prefix, cloud))
        if right is not None:
            raise UnknownModelError(f"model: write '{right}/{name}' for {prefix}'s models there", model=model)


def find_route(
    model: str, hosts: Mapping[str, Route] = NO_HOSTS, deployments: Mapping[str, str] = _NO_DEPLOYMENTS
) -> Target:
    """The target of a model at the provider's own server. A cloud's target has no address."""
    deployed = deployments.get(model, "")
    route, name = _find_host(model, hosts) or _route(model, deployed)
    return Target(route, name, route.base_url, deployed=deployed)


def _find_host(model: str, hosts: Mapping[str, Route]) -> tuple[Route, str] | None:
    """The row of a host of the user's own, and the model's name there; None for all other models."""
    prefix, slash, name = model.partition("/") if hosts else ("", "", "")
    return (hosts[prefix], _require_name(model, name)) if slash and prefix in hosts else None


def resolve(
    model: str,
    base_url: str | None = None,
    env_file: EnvFile | None = None,
    hosts: Mapping[str, Route] = NO_HOSTS,
    deployments: Mapping[str, str] = _NO_DEPLOYMENTS,
    endpoint: str | None = None,
) -> Target:
    """The target of a model, whose name may have a prefix, as in `groq/openai/gpt-oss-120b`.

    Gemini's endpoint "interactions" has a route of its own.

    Without `base_url`, the route's environment variable decides, else the variable in `env_file`, else the
    route's own server. Raises `UnknownModelError`, which suggests names, and `RequestError` if `base_url` is
    not a server that a request may be sent to, or a cloud's address is not known.
    """
    deployed = deployments.get(model, "") if deployments else ""
    try:
        route, name = _find_host(model, hosts) or _route(model, deployed)
    except UnknownModelError as error:
        if base_url is None or "/" in model:
            raise
        raise UnknownModelError(f"{error.message}; or write 'local/{model}'", model=model) from None
    if endpoint == "interactions" and route is ROUTES["gemini"]:
        route = INTERACTIONS
    if route.cloud is not None:
        address = doors.cloud_addresses.find_address(route.cloud, route.provider, base_url, env_file)
        return _target_at(route, name, address, deployed, base_url is not None)
    server = base_url or ""
    if not server and route.host is None:
        server = os.environ.get(route.base_url_variable, "").strip()
        if not server and env_file is not None:
            server = env_file.get(route.base_url_variable)
    return _target_at(route, name, server)


@functools.lru_cache(maxsize=1024)
def _target_at(route: Route, name: str, base_url: str, deployed: str = "", custom: bool = True) -> Target:
    if not base_url:
        return Target(route, name, route.base_url)
    from .base_url import check_base_url

    return Target(route, name, check_base_url(base_url), custom_base_url=custom, deployed=deployed)


def _require_name(model: str, name: str) -> str:
    if not name:
        raise UnknownModelError(
            f"{model!r} names a provider but no model; write the model after the slash", model=model
        )
    return name


@functools.lru_cache(maxsize=1024)
def _route(model: str, deployed: str = "") -> tuple[Route, str]:
    """The row of a model, and the model's name without the prefix."""
    prefix, slash, rest = model.partition("/")
    if not slash:
        route = next((row for row in (*_ROWS, INTERACTIONS) if re.fullmatch(row.bare_names, model)), None)
        if route is None:
            raise UnknownModelError(
                doors.remedies.problem_with(model, _OTHER_NAMES) or _suggestion(model), model=model
            )
        return route, model
    if prefix in ROUTES:
        rest = _require_name(model, rest)
        if ROUTES[prefix].cloud is None:
            _refuse_cloud_within(prefix, rest, model)
            return INTERACTIONS if prefix == "gemini" and AGENTS.fullmatch(rest) else ROUTES[prefix], rest
        served = rest
        if deployed:
            served = doors.cloud_price_names.drop_region(prefix, deployed)
        for row in _ROWS:
            if row.provider == prefix and row.cloud and (match := re.fullmatch(row.cloud.models, served)):
                return row, rest if deployed else match[1]
        # litellm has more routes to the clouds.
        return ROUTES["litellm"], model
    _refuse_cloud_within(prefix, rest, model)
    problem = doors.remedies.problem_with(model, _OTHER_NAMES)
    if problem is not None:
        raise UnknownModelError(problem, model=model)
    return ROUTES["litellm"], model


def find_row(provider: str, model: str, deployed: str = "") -> Route:
    """The row of a provider for a model without its prefix: a cloud has several. `KeyError` without one."""
    route = ROUTES[provider]
    return route if route.cloud is None else _route(f"{provider}/{model}", deployed)[0]


def find_key(target: Target, env_file: EnvFile | None = None) -> Credential:
    """The single key that the environment has for a target, else the key of a `.env` file, else its identity.

    `NO_KEY` is for a server of one's own that may need none. `MissingAPIKeyError` names the variables.
    """
    provider, variables = target.provider, target.route.key_variables
    key = find_written_key(provider, variables, env_file)
    if key is not None:
        return key
    if target.route.cloud is not None:
        return doors.cloud_identities.identity_of(target, env_file)
    if target.route.key_required and not target.custom_base_url:
        where = "" if env_file is None else f" (it is not in {env_file.path} either)"
        raise MissingAPIKeyError(
            f"no API key for {provider}: set {' or '.join(variables)}, or pass api_key={where}",
            provider=provider,
        )
    return NO_KEY


def price_names(target: Target, served: str | None = None) -> tuple[str, str]:
    """The provider and model under which `prices.csv` lists a target.

    A call through litellm has the price of the provider that litellm reaches. A call to Vertex has the price
    in the location that litellm's variables name, else in litellm's default, `us-central1`. A model at a
    cloud has the price of its region. A deployment has the price of its model: the user names it, else the
    answer does, in `served`.
    """
    if target.provider == "litellm":
        prefix, slash, rest = target.model.partition("/")
        if prefix == "vertex_ai" and rest:
            location = os.environ.get("VERTEXAI_LOCATION") or os.environ.get("VERTEX_LOCATION")
            return prefix, doors.cloud_price_names.name_in_region(prefix, rest, location or "us-central1")
        if slash:
            return prefix, rest
        for row in _ROWS:
            if re.fullmatch(row.bare_names, target.model):
                return row.provider, target.model
    cloud = target.route.cloud
    if cloud is None:
        return target.provider, target.model
    served = served if cloud.identity == "entra" else None
    model = target.deployed or served or target.model
    return target.provider, doors.cloud_price_names.name_in_region(
        target.provider, model, doors.cloud_addresses.find_priced_region(cloud, target.base_url)
    )


def maker_names(target: Target) -> tuple[str, str]:
    """The maker of a target's model and its name there. Tokens are counted by them.

    >>> maker_names(find_route("azure/mine", deployments={"azure/mine": "gpt-6.1-sol"}))
    ('openai', 'gpt-6.1-sol')
    """
    return price_names(target) if target.route.cloud is None else (target.maker, target.known_model)


@functools.cache  # to read all rows takes 0.1 s, which each wrong name would take again
def list_known_models() -> Sequence[str]:
    """The models of `prices.csv` without the clouds', as `provider/model`. They serve only as suggestions."""
    from ..money.price_rows import CLOUDS
    from ..money.pricing import PriceTable

    names = {f"{row.provider}/{row.model}" for row in PriceTable.load() if row.provider not in CLOUDS}
    return tuple(sorted(names))


def _suggestion(model: str) -> str:
    import difflib

    from .model_kinds import find_uncovered_kind, not_covered

    if (what := find_uncovered_kind(model)) is not None:
        return f"{model} {not_covered(what)}"
    named: dict[str, list[str]] = {}
    for full in list_known_models():
        named.setdefault(full.rpartition("/")[2].lower(), []).append(full)
    near = difflib.get_close_matches(model.lower(), named, n=3, cutoff=0.75)
    similar = ", ".join([full for name in near for full in named[name]][:6])
    guess = similar and f"; did you mean {similar}?"
    prefixes = ", ".join(f"{name}/" for name in list(ROUTES)[:5])
    return (
        f"no route for the model name {model!r}{guess} "
        f"(put the provider before the name: {prefixes} another of litellm, or local/ for your server)"
    )


def explain_not_found(target: Target, written: str) -> str:
    """What a 404 may mean: a wrong base URL, or a model, as `written`, with nearly the name of another.

    >>> explain_not_found(find_route("claude-sonet-5-5"), "claude-sonet-5-5").partition(" or")[0]
    '; did you mean claude-sonnet-5-5'
    """
    if target.base_url is not None and (target.custom_base_url or target.route.host is not None):
        from .base_url import explain_path

        if hint := explain_path(target.route.adapter, target.base_url):
            return hint
    return suggest_near_model(target, written)


def suggest_near_model(target: Target, written: str) -> str:
    """The models of its provider with nearly the name of a model without a price; empty without one."""
    import difflib

    provider, model = price_names(target)
    known = [name[len(provider) + 1 :] for name in list_known_models() if name.startswith(f"{provider}/")]
    if target.route.cloud is not None or model in known:
        return ""
    near = difflib.get_close_matches(model, known, n=3, cutoff=0.85)
    full = (written.removesuffix(model) + name for name in near)
    return f"; did you mean {' or '.join(full)}?" if near else ""
