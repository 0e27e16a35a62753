"""What `llm-provider map` checks before it writes: names of models, a price for a budget, the name of OUT."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from ..._core import doors
from ..._core.errors import MissingAPIKeyError, RequestError, UnknownPriceError
from ..._core.json_values import JSONMapping
from ..._core.money.pricing import PriceTable
from ..._core.requests.api_keys import find_accounts
from ..._core.requests.routing import find_key, price_names, resolve, suggest_near_model
from ..._core.settings import parse_settings, read_prices
from ..hosts.host_routes import read_hosts


def check_names(models: Iterable[str], base_url: str | None) -> None:
    """Raise an error for a model that nothing here can reach."""
    hosts = read_hosts()
    for model in models:
        if (target := resolve(model, base_url, hosts=hosts)).provider == "litellm" and not target.base_url:
            doors.provider_names.check_provider(target.model, hosts)


def check_key(model: str, prompts: Iterable[Any], parameters: JSONMapping) -> None:
    """Raise the error that rows would get without an API key, unless the first of them is stored."""
    from ..._core.client.model_functions import estimate

    settings = parse_settings({})
    for name in (model, *(parameters.get("fallback") or ())):
        target = settings.find_target(name, parameters.get("base_url"), parameters.get("endpoint"))
        provider, variables = target.provider, target.route.key_variables
        try:
            find_accounts(provider, variables, settings.keys, settings.env_file) or find_key(
                target, settings.env_file
            )
        except MissingAPIKeyError:
            if estimate(model, islice(prompts, 1), **parameters).requests:
                raise


def check_price(model: str, prompts: Iterable[Any], parameters: JSONMapping) -> None:
    """Raise the error that a budget would give to each row of a model without a price."""
    from ..._core.client.model_functions import estimate

    budget = parameters.get("budget")
    if budget is None or getattr(budget, "allow_unknown", False):
        return
    own = {name: value for name, value in parameters.items() if name != "fallback"}
    for name in (model, *(parameters.get("fallback") or ())):
        first = estimate(name, islice(prompts, 1), **own)
        if not first.requests:
            # A stored answer is served before the next model is asked.
            return
        if first.cost is None and first.provider != "litellm":
            _refuse_price(name, parameters)


def _refuse_price(model: str, parameters: JSONMapping) -> None:
    target = resolve(model, parameters.get("base_url"), hosts=read_hosts())
    near = suggest_near_model(target, model)
    path = read_prices()
    table = PriceTable.load(overrides=None if path == "fresh" else path)
    names = table.describe_missing(*price_names(target))
    remedy = "give --prices, or allow it with --allow-unknown"
    raise UnknownPriceError(
        f"no price of {model!r} is known, so no budget can be kept{names}"
        f"{near and near + ' If the name is right'}: {remedy}"
    )


def add_estimates(estimates: Mapping[str, Any]) -> Any:
    """The sums of models that are asked one after the other, without what is said of each."""
    seconds = doors.estimates.sum_of(each.seconds for each in estimates.values())
    return replace(doors.estimates.Estimates(estimates).total, seconds=seconds, assumptions=())


def fill_in(target: str, model: str) -> str:
    """The name of OUT, with the model in the place of {model}."""
    for other in re.findall(r"\{(\w+)\}", target):
        if other != "model":
            raise RequestError(f"OUT has {{{other}}}, which is not filled in: did you mean {{model}}?")
    return target.replace("{model}", re.sub(r"[^\w.-]", "_", model))
