"""The `ROUTES` table, and model name → `Target`: who serves it, under which name, where.

A new OpenAI-compatible host is one row. Names follow litellm's convention.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from .._errors import UnknownModelError

Transport = Literal["aiohttp", "http2", "http1"]
"""What carries the SDKs' requests."""


@dataclass(frozen=True, slots=True)
class Route:
    """One provider: a row of `ROUTES`.

    `unsupported` maps a parameter that the host's API does not have to the remedy shown to the user;
    `spelling` maps one that it names differently to its name there. `n` in `unsupported` means that
    samples are sent as separate calls.
    """

    provider: str
    adapter: str
    base_url: str | None
    base_url_variable: str
    key_variables: tuple[str, ...]
    bare_names: str = r"(?!)"
    key_required: bool = True
    unsupported: Mapping[str, str] = field(default_factory=dict)
    spelling: Mapping[str, str] = field(default_factory=dict)
    transport: Transport = "aiohttp"
    """What carries the SDK's requests where the client does not say: "aiohttp", "http2" or "http1". It is
    chosen by measurement: `python -m benchmarks transports`."""
    stream_usage: bool = True
    """Whether a streamed answer must be asked for its usage (`stream_options`)."""
    output_only: frozenset[str] = frozenset()
    """What another host's answer may hold and this host refuses in the messages it is sent."""


_NO_LOGPROBS = "leave logprobs out; this host's API has none"
_NO_SEED = "leave seed out; this host's API has none"
_SEPARATE = "sent as separate calls"
_REASONING = frozenset({"reasoning", "reasoning_content", "thinking_blocks"})


def _host(provider: str, base_url: str, variable: str, **columns: object) -> Route:
    """A row for an OpenAI-compatible host; its variables are `<PREFIX>_API_KEY` and `<PREFIX>_BASE_URL`."""
    return Route(
        provider=provider,
        adapter="openai",
        base_url=base_url,
        base_url_variable=f"{variable}_BASE_URL",
        key_variables=(f"{variable}_API_KEY",),
        **columns,  # type: ignore[arg-type]  # the columns are Route's own fields
    )


_ROWS = (
    # What OpenAI ships under `gpt-`: a version, or a modality. `gpt-oss-*` is hosted by others, and
    # `text-embedding-004` was Google's.
    Route(
        provider="openai",
        adapter="openai",
        base_url="https://api.openai.com/v1",
        base_url_variable="OPENAI_BASE_URL",
        key_variables=("OPENAI_API_KEY",),
        bare_names=r"(ft:)?(gpt-(\d|audio|realtime|image|live)|o[134](-|$)|chatgpt-|text-embedding-(3|ada)-).*",
        output_only=_REASONING,
    ),
    Route(
        provider="anthropic",
        adapter="anthropic",
        base_url="https://api.anthropic.com",
        base_url_variable="ANTHROPIC_BASE_URL",
        key_variables=("ANTHROPIC_API_KEY",),
        bare_names=r"claude-.*",
    ),
    Route(
        provider="gemini",
        adapter="gemini",
        base_url="https://generativelanguage.googleapis.com",
        base_url_variable="GOOGLE_GEMINI_BASE_URL",
        key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        bare_names=r"gemini-.*",
    ),
    Route(
        provider="together_ai",
        adapter="openai",
        base_url="https://api.together.ai/v1",
        base_url_variable="TOGETHER_BASE_URL",
        key_variables=("TOGETHER_API_KEY", "TOGETHERAI_API_KEY"),
        # Together counts alternatives in `logprobs` itself.
        spelling={"top_logprobs": "logprobs"},
    ),
    _host("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER", unsupported={"n": _SEPARATE}),
    _host(
        "groq",
        "https://api.groq.com/openai/v1",
        "GROQ",
        unsupported={"n": _SEPARATE, "logprobs": _NO_LOGPROBS, "top_logprobs": _NO_LOGPROBS},
        # Its own answers have `reasoning`, which it takes back.
        output_only=_REASONING - {"reasoning"},
    ),
    _host(
        "deepseek",
        "https://api.deepseek.com/beta",
        "DEEPSEEK",
        unsupported={"n": _SEPARATE, "seed": _NO_SEED},
    ),
    _host("xai", "https://api.x.ai/v1", "XAI"),
    _host(
        "mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL",
        unsupported={"logprobs": _NO_LOGPROBS, "top_logprobs": _NO_LOGPROBS},
        spelling={"seed": "random_seed"},
        stream_usage=False,
        output_only=_REASONING,
    ),
    _host("fireworks_ai", "https://api.fireworks.ai/inference/v1", "FIREWORKS"),
    _host(
        "sambanova",
        "https://api.sambanova.ai/v1",
        "SAMBANOVA",
        unsupported={
            "n": _SEPARATE,
            "seed": _NO_SEED,
            "logprobs": _NO_LOGPROBS,
            "top_logprobs": _NO_LOGPROBS,
        },
    ),
    _host("local", "http://localhost:8000/v1", "LOCAL", key_required=False),
    Route(
        provider="litellm",
        adapter="litellm",
        base_url=None,
        base_url_variable="",
        key_variables=(),
        # litellm finds the key of each of its hundred providers itself.
        key_required=False,
        unsupported={"n": _SEPARATE},
    ),
)

ROUTES: Mapping[str, Route] = MappingProxyType({row.provider: row for row in _ROWS})
"""Every route by provider name, which is also the prefix that forces it."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where one call goes: its route, the model's name on the wire, and the resolved base URL."""

    route: Route
    model: str
    base_url: str | None
    custom_base_url: bool = False
    """Whether the call, or the environment, pointed away from the provider's own host."""

    @property
    def provider(self) -> str:
        """The route's name."""
        return self.route.provider


def resolve(model: str, base_url: str | None = None) -> Target:
    """Find the route of a model.

    Args:
        model: A bare name (`gpt-6.1-sol`) or one with a prefix (`groq/openai/gpt-oss-120b`).
        base_url: The user's own server; else the route's environment variable, else its host.

    Raises:
        UnknownModelError: a bare name that no row claims; near names and prefixes are suggested.
        RequestError: `base_url` is not one a request may be sent to.

    >>> resolve("gemini/gemini-3.8-flash").model
    'gemini-3.8-flash'
    >>> resolve("groq/openai/gpt-oss-120b").provider
    'groq'
    >>> resolve("bedrock/anthropic.claude-opus-5-5").provider
    'litellm'
    """
    route, _ = _route(model)
    return _target(model, base_url or os.environ.get(route.base_url_variable, "").strip())


@functools.lru_cache(maxsize=1024)
def _target(model: str, own: str) -> Target:
    route, name = _route(model)
    if not own:
        return Target(route, name, route.base_url)
    from .base_url import checked_base_url

    return Target(route, name, checked_base_url(own), custom_base_url=True)


@functools.lru_cache(maxsize=1024)
def _route(model: str) -> tuple[Route, str]:
    """The row that claims a model, and what the model is called there."""
    prefix, slash, rest = model.partition("/")
    if not slash:
        route = next((row for row in _ROWS if re.fullmatch(row.bare_names, model)), None)
        if route is None:
            raise UnknownModelError(_suggestion(model), model=model)
        return route, model
    if prefix in ROUTES:
        if not rest:
            raise UnknownModelError(f"{model!r} names a provider but no model", model=model)
        return ROUTES[prefix], rest
    return ROUTES["litellm"], model


def priced_as(target: Target) -> tuple[str, str]:
    """The provider and model under which `prices.csv` lists a target.

    What goes through litellm is priced as the provider that litellm reaches.

    >>> priced_as(resolve("litellm/anthropic/claude-sonnet-5-5"))
    ('anthropic', 'claude-sonnet-5-5')
    """
    if target.provider == "litellm":
        prefix, slash, rest = target.model.partition("/")
        if slash:
            return prefix, rest
        for row in _ROWS:
            if re.fullmatch(row.bare_names, target.model):
                return row.provider, target.model
    return target.provider, target.model


def known_models() -> Iterable[str]:
    """Names of current models, for suggestions only: what `prices.csv` lists."""
    from .._money.pricing import PriceTable

    return sorted({f"{row.provider}/{row.model}" for row in PriceTable.load()})


def _suggestion(model: str) -> str:
    import difflib

    named: dict[str, list[str]] = {}
    for full in known_models():
        named.setdefault(full.rpartition("/")[2].lower(), []).append(full)
    near = difflib.get_close_matches(model.lower(), named, n=3, cutoff=0.75)
    guess = ""
    if near:
        guess = f"; did you mean {', '.join([full for name in near for full in named[name]][:6])}?"
    prefixes = ", ".join(f"{name}/" for name in ROUTES)
    return (
        f"no route for the model name {model!r}{guess} "
        f"(put the provider before the name: one of {prefixes} or any provider of litellm's)"
    )
