"""The models that can be called: the price table, the table of limits and the routes, joined."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from ..._core.errors import RequestError
from ..._core.money.price_rows import CLOUDS
from ..._core.requests.model_kinds import kind_of
from ..._core.requests.routing import NO_HOSTS, ROUTES, Route
from ..._core.tokens.model_limits import limits_of
from ..clouds.price_names import is_model_name

if TYPE_CHECKING:
    from ..._core.money.price_rows import PriceRow
    from ..._core.money.pricing import PriceTable
    from .model_lists import ListedModel

_BARE = frozenset({"openai", "anthropic"})
"""Providers whose models litellm names without a prefix."""

_ALSO_CALLED = {"google": "gemini", "claude": "anthropic", "gpt": "openai", "grok": "xai"}

_PRICED_BY_KIND = {
    "audio": ("input_audio", "cache_read_audio", "output_audio"),
    "image": ("input_image", "output_image"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model that can be called, and what the tables of this package say about it.

    Numbers of tokens and prices are None where no source gives them. Prices are in USD per million tokens,
    of the standard service level and of short prompts, as they are today.

    >>> from llm_provider import models
    >>> next(model for model in models("anthropic") if model.name == "claude-haiku-5-5").input_price
    0.1
    """

    name: str
    """The name as `call` and `embed` take it, in the spelling of litellm."""
    provider: str
    kind: Literal["chat", "embedding"]
    """"embedding" for the models that `embed` takes, "chat" for all others."""
    context_window: int | None
    """Tokens of a request together with its answer, or of the request alone if the provider counts the two
    separately."""
    max_output_tokens: int | None
    """Tokens of the longest answer, reasoning included."""
    input_price: float | None
    cached_input_price: float | None
    """The price of input that the provider reads from its prompt cache."""
    output_price: float | None
    modalities: tuple[str, ...]
    """"text", and "audio" or "image" if the price table has a price for them, or the provider names them. A
    model may take more."""


def list_models(
    prices: PriceTable, provider: str | None = None, hosts: Mapping[str, Route] = NO_HOSTS
) -> list[Model]:
    """The models of a price table, or of one of its providers, sorted by provider and name."""
    if provider is not None:
        check_provider(provider, hosts)
    known = ROUTES.keys() | hosts.keys()
    rows: dict[tuple[str, str], list[PriceRow]] = {}
    for row in prices:
        is_model = row.model != "*" and (row.provider not in CLOUDS or is_model_name(row.model))
        if is_model and row.provider in known and provider in (None, row.provider):
            rows.setdefault((row.provider, row.model), []).append(row)
    models = [_model(prices, *key, its_rows) for key, its_rows in rows.items()]
    return sorted(models, key=lambda model: (model.provider, model.name))


def complete_models(prices: PriceTable, provider: str, listed: Iterable[ListedModel]) -> list[Model]:
    """The models that a provider lists, sorted by name. The tables add what the list does not tell."""
    rows: dict[str, list[PriceRow]] = {}
    for row in prices:
        if row.provider == provider:
            rows.setdefault(row.model, []).append(row)
    models = {}
    for each in listed:
        priced = prices.find(provider, each.name)
        known = _model(prices, provider, each.name, rows.get(priced.model, []) if priced else [])
        models[known.name] = replace(
            known,
            kind=known.kind if each.embeds is None else "embedding" if each.embeds else "chat",
            context_window=each.context_window or known.context_window,
            max_output_tokens=each.max_output_tokens or known.max_output_tokens,
            modalities=tuple(dict.fromkeys(("text", *(each.modalities or ()), *known.modalities))),
        )
    return sorted(models.values(), key=lambda model: model.name)


def check_provider(provider: object, hosts: Mapping[str, Route] = NO_HOSTS) -> None:
    """Raise `RequestError`, with near names, for a name that no provider has."""
    if not isinstance(provider, str):
        raise RequestError(
            f"provider must be the name of a provider, not {type(provider).__name__}: write models('openai')"
        )
    if provider in ROUTES or provider in hosts:
        return
    raise RequestError(
        f"there is no provider {provider!r}{_nearest(provider)}; one of {', '.join((*hosts, *ROUTES))}"
    )


def _nearest(provider: str) -> str:
    import difflib

    # `xai` and `x-ai`, `together` and `together_ai` are the same to a reader.
    names = {re.sub(r"[^a-z]|ai$", "", name): name for name in ROUTES}
    wanted = re.sub(r"[^a-z]|ai$", "", provider.lower())
    near = [_ALSO_CALLED[wanted]] if wanted in _ALSO_CALLED else []
    near += [names[name] for name in difflib.get_close_matches(wanted, names, n=2, cutoff=0.6)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _model(prices: PriceTable, provider: str, model: str, rows: list[PriceRow]) -> Model:
    standard = prices.find(provider, model)
    limits = limits_of(provider, model)
    is_bare = provider in _BARE and re.fullmatch(ROUTES[provider].bare_names, model)
    kinds = (
        kind
        for kind, columns in _PRICED_BY_KIND.items()
        if any(getattr(row, column) is not None for row in rows for column in columns)
    )
    return Model(
        name=model if is_bare else f"{provider}/{model}",
        provider=provider,
        kind=kind_of(model),
        context_window=limits and limits.context_window,
        max_output_tokens=limits and limits.max_output_tokens,
        input_price=_price(standard, "input"),
        cached_input_price=_price(standard, "cache_read"),
        output_price=_price(standard, "output"),
        modalities=("text", *kinds),
    )


def _price(row: PriceRow | None, column: str) -> float | None:
    price = None if row is None else getattr(row, column)
    return None if price is None else float(price)
