"""The models that can be called, of tables of prices and limits, the routes and the lists of providers."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from ..._core import doors
from ..._core.client.call_runner import CallRunner
from ..._core.errors import APIResponseValidationError, LLMError, RequestError, cite
from ..._core.formats import registry, sdk_clients
from ..._core.journey.free_requests import scrub_error, send_with_retries
from ..._core.journey.recorder import RETIRING
from ..._core.json_values import JSONObject
from ..._core.money.price_rows import CLOUDS, is_date
from ..._core.requests.api_keys import Credential, find_accounts
from ..._core.requests.model_kinds import kind_of
from ..._core.requests.routing import NO_HOSTS, ROUTES, Route, Target, find_key, resolve
from ..._core.runtime import event_loop
from ..._core.runtime.frozen import read_old_state
from ..._core.runtime.warning import warn_user
from ..._core.tokens.model_limits import limits_of

if TYPE_CHECKING:
    from ..._core.money.price_rows import PriceRow
    from ..._core.money.pricing import PriceTable

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
    retires_at: str | None = field(default=None, init=False, repr=False)
    """The day after which the provider plans to serve it no more, such as "2027-01-31": by the lists of
    Anthropic and OpenAI with `live=True`, else by `retirements.csv`. A provider may change the day."""

    __setstate__ = read_old_state


def list_models(
    prices: PriceTable, provider: str | None = None, hosts: Mapping[str, Route] = NO_HOSTS
) -> list[Model]:
    """The models of a price table, or of one of its providers, sorted by provider and name."""
    if provider is not None:
        check_provider(provider, hosts)
    known = ROUTES.keys() | hosts.keys()
    rows = defaultdict[tuple[str, str], list["PriceRow"]](list)
    for row in prices:
        in_region = row.provider in CLOUDS and not doors.cloud_price_names.is_model_name(row.model)
        if row.model.startswith("decisions/"):
            continue
        if row.model != "*" and not in_region and row.provider in known and provider in (None, row.provider):
            rows[row.provider, row.model].append(row)
    models = [_model(prices, *key, its_rows) for key, its_rows in rows.items()]
    return sorted(models, key=lambda model: (model.provider, model.name))


def complete_models(prices: PriceTable, provider: str, listed: Iterable[ListedModel]) -> list[Model]:
    """The models that a provider lists, sorted by name. The tables add what the list does not tell."""
    rows = [row for row in prices if row.provider == provider]
    models = {}
    for each in listed:
        priced = prices.find(provider, each.name)
        own = [row for row in rows if priced is not None and row.model == priced.model]
        known = _model(prices, provider, each.name, own)
        models[known.name] = replace(
            known,
            kind=known.kind if each.embeds is None else "embedding" if each.embeds else "chat",
            context_window=each.context_window or known.context_window,
            max_output_tokens=each.max_output_tokens or known.max_output_tokens,
            modalities=tuple(dict.fromkeys(("text", *(each.modalities or ()), *known.modalities))),
        )
        _set_day(models[known.name], each.retires_at or known.retires_at)
        if each.retires_at:
            RETIRING[provider, each.name] = each.retires_at
    return sorted(models.values(), key=lambda model: model.name)


def check_provider(provider: object, hosts: Mapping[str, Route] = NO_HOSTS) -> None:
    """Raise `RequestError`, with near names, for a name that no provider has."""
    if not isinstance(provider, str):
        raise RequestError(
            f"provider must be the name of a provider, not {type(provider).__name__}: write models('openai')"
        )
    if provider in ROUTES or provider in hosts:
        return
    import difflib

    # `xai` and `x-ai`, `together` and `together_ai` are the same to a reader.
    names = {re.sub(r"[^a-z]|ai$", "", name): name for name in ROUTES}
    wanted = re.sub(r"[^a-z]|ai$", "", provider.lower())
    near = [_ALSO_CALLED[wanted]] if wanted in _ALSO_CALLED else []
    near += [names[name] for name in difflib.get_close_matches(wanted, names, n=2, cutoff=0.6)]
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise RequestError(f"there is no provider {provider!r}{hint}; one of {', '.join((*hosts, *ROUTES))}")


def _model(prices: PriceTable, provider: str, model: str, rows: list[PriceRow]) -> Model:
    standard = prices.find(provider, model)
    limits = limits_of(provider, model)
    is_bare = provider in _BARE and re.fullmatch(ROUTES[provider].bare_names, model)
    priced = {column for row in rows for column, price in row._asdict().items() if price is not None}
    kinds = (kind for kind, columns in _PRICED_BY_KIND.items() if not priced.isdisjoint(columns))
    columns = (getattr(standard, column, None) for column in ("input", "cache_read", "output"))
    read, cached, written = (None if price is None else float(price) for price in columns)
    known = Model(
        name=model if is_bare else f"{provider}/{model}",
        provider=provider,
        kind=kind_of(model),
        context_window=limits and limits.context_window,
        max_output_tokens=limits and limits.max_output_tokens,
        input_price=read,
        cached_input_price=cached,
        output_price=written,
        modalities=("text", *kinds),
    )
    _set_day(known, doors.retirements.read_days().get((provider, model)))
    return known


def _set_day(model: Model, day: str | None) -> None:
    object.__setattr__(model, "retires_at", day)


_PAGE = 1000


class ListedModel(NamedTuple):
    """A model that a key reaches, and the facts that its provider tells. None is not told."""

    name: str
    """The name in requests to this provider."""
    context_window: int | None = None
    max_output_tokens: int | None = None
    modalities: tuple[str, ...] | None = None
    """Its input, such as "text" and "image"."""
    embeds: bool | None = None
    retires_at: str | None = None


ListModels: TypeAlias = "Callable[[Target, Credential], Awaitable[list[ListedModel]]]"
"""Lists the models that a key reaches. It raises exceptions of the SDK and its transport."""


async def _list_anthropics(target: Target, key: Credential) -> list[ListedModel]:
    """The models at Anthropic, without the retired ones in its list."""
    client = sdk_clients.anthropic_client(target, key)
    try:
        first = await client.models.list(limit=_PAGE)
        models = []
        async for model in sdk_clients.items_of(page.data or () async for page in first.iter_pages()):
            # Older releases of the SDK know fewer fields.
            capabilities = getattr(model, "capabilities", None)
            sees = getattr(getattr(capabilities, "image_input", None), "supported", None)
            kinds = None if sees is None else ("text", "image") if sees else ("text",)
            limits = getattr(model, "max_input_tokens", None), getattr(model, "max_tokens", None)
            if getattr(model, "lifecycle", None) != "retired":
                day = getattr(model, "retires_at", None)
                models.append(ListedModel(model.id, *limits, kinds, False, day and str(day)[:10]))
        return models
    finally:
        await sdk_clients.close_clients(client)


async def _list_geminis(target: Target, key: Credential) -> list[ListedModel]:
    """The models at Gemini, without those for other tasks, such as videos."""
    client, http_client = sdk_clients.gemini_client(target, key)
    try:
        models = []
        pager = await client.aio.models.list(config={"page_size": _PAGE})
        async for model in sdk_clients.items_of(sdk_clients.pages_of(pager), "name"):
            actions = model.supported_actions or ()
            answers = "generateContent" in actions
            if answers or "embedContent" in actions:
                name = (model.name or "").removeprefix("models/")
                limits = model.input_token_limit, model.output_token_limit
                models.append(ListedModel(name, *limits, embeds=not answers))
        return models
    finally:
        await sdk_clients.close_gemini_client(client, http_client)


_WINDOWS = ("context_length", "context_window", "max_context_length", "max_model_len")
_LONGEST = ("max_completion_tokens", "max_output_tokens")

_OTHER_KINDS = re.compile(
    r"(dall-e|gpt-image|chatgpt-image|sora|tts|whisper|babbage|davinci|omni-moderation|text-moderation).*"
    r"|.*-(tts|transcribe|realtime|diarize)(-.*)?"
)
"""Models of OpenAI's that `call` and `embed` cannot use."""


async def _list_openais(target: Target, key: Credential) -> list[ListedModel]:
    """The models at OpenAI, which tells the names alone, or a compatible host, which tells more.

    Some hosts answer with a plain list, which the SDK's `models.list` cannot read.
    """
    client = sdk_clients.openai_client(target, key)
    try:
        reply: Any = await client.get("/models", cast_to=object)
    finally:
        await sdk_clients.close_clients(client)
    entries = reply.get("data") if isinstance(reply, dict) else reply
    if not isinstance(entries, list):
        raise APIResponseValidationError("the provider's list of models is no list")
    named = [each for each in entries if isinstance(each, dict) and isinstance(each.get("id"), str)]
    if target.provider == "openai":
        named = [entry for entry in named if not _OTHER_KINDS.fullmatch(entry["id"])]
    return list(map(_read_openais, named))


def _read_openais(entry: JSONObject) -> ListedModel:
    day = entry.get("shutdown_date")
    architecture, top = entry.get("architecture"), entry.get("top_provider")
    inputs = architecture.get("input_modalities") if isinstance(architecture, dict) else None
    longest = _find_number(entry, _LONGEST)
    if longest is None and isinstance(top, dict):
        longest = _find_number(top, _LONGEST)
    return ListedModel(
        entry["id"],
        _find_number(entry, _WINDOWS),
        longest,
        tuple(map(str, inputs)) if isinstance(inputs, list) and inputs else None,
        embeds=True if entry.get("type") == "embedding" else None,
        retires_at=day[:10] if isinstance(day, str) and is_date(day[:10]) else None,
    )


def _find_number(entry: JSONObject, names: tuple[str, ...]) -> int | None:
    values = (entry.get(name) for name in names)
    return next((value for value in values if type(value) is int and value > 0), None)


LISTS: Mapping[str, ListModels] = {
    "openai": _list_openais,
    "anthropic": _list_anthropics,
    "gemini": _list_geminis,
}
"""Adapter → what lists the models of its providers. The others give no list."""


def find_models(runner: CallRunner, provider: str | None, *, live: bool) -> list[Model]:
    """The models of the tables, or with `live` those that a key of the client reaches."""
    if not isinstance(live, bool):
        raise RequestError(f"live must be True or False, not {cite(live)}")
    settings, defaults = runner.engine.settings, runner.defaults
    if not live:
        return list_models(runner.prices(), provider, settings.hosts)
    if provider is None:
        raise RequestError("live=True asks one provider: write models('openai', live=True)")
    check_provider(provider, settings.hosts)
    event_loop.refuse_own_thread("models")
    runner.engine.refuse_closed()
    route = settings.hosts.get(provider) or ROUTES[provider]
    if route.cloud is not None or route.adapter not in LISTS:
        raise RequestError(f"{provider} gives no list of models: leave live out", provider=provider)
    target = resolve(f"{provider}/any", defaults.get("base_url"), hosts=settings.hosts)
    if target.servers[0].base_url is None:
        raise RequestError(
            f"live=True needs the server of {provider}: set {target.route.base_url_variable}, or give "
            "base_url= to Client",
            provider=provider,
        )
    key: Credential | None = defaults.get("api_key")
    if key is None:
        accounts = find_accounts(provider, target.route.key_variables, settings.keys)
        key = accounts[0][0] if accounts else find_key(target)
    runner.start()
    listed = event_loop.wait(_ask_for_models(target, key, settings.max_retries))
    return complete_models(runner.prices(), provider, listed)


async def _ask_for_models(target: Target, key: Credential, max_retries: int) -> list[ListedModel]:
    """Ask for the models that a key reaches. Of several servers, those that answer should have the same."""
    servers = target.servers
    # One of several may be down for long.
    max_retries = max_retries if len(servers) == 1 else min(max_retries, 1)

    async def ask(server: Target) -> list[ListedModel]:
        name = server.route.adapter
        try:
            adapter = registry.load(name)
            return await send_with_retries(lambda: LISTS[name](server, key), adapter, max_retries)
        except LLMError as error:
            raise scrub_error(error, key, "the list of models", server.provider) from None

    requests = map(ask, servers)
    lists = await asyncio.gather(*requests, return_exceptions=True)
    answered = [listed for listed in lists if isinstance(listed, list)]
    for listed in lists:
        if isinstance(listed, BaseException) and (not answered or not isinstance(listed, LLMError)):
            raise listed
    if any({model.name for model in listed} != {model.name for model in answered[0]} for listed in answered):
        message = f"the servers of {target.provider} list different models; give them hosts of their own"
        warn_user(message)
    return answered[0]
