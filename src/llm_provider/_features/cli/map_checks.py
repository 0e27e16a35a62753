"""What `llm-provider map` checks before it writes: names of models, a price for a budget, the name of OUT."""

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from ..._core import doors
from ..._core.errors import RequestError, UnknownPriceError
from ..._core.json_values import JSONMapping
from ..._core.money.pricing import PriceTable
from ..._core.requests.routing import price_names, resolve, suggest_near_model
from ..._core.settings import read_prices
from ..hosts.host_routes import read_hosts


def check_names(models: Iterable[str], base_url: str | None) -> None:
    """Raise an error for a model that nothing here can reach."""
    hosts = read_hosts()
    for model in models:
        if (target := resolve(model, base_url, hosts=hosts)).provider == "litellm" and not target.base_url:
            doors.provider_names.check_provider(target.model, hosts)


def check_price(model: str, prompts: Iterable[Any], parameters: JSONMapping) -> None:
    """Raise the error that a budget would give to each row of a model without a price."""
    from ..._core.client.model_functions import estimate

    budget = parameters.get("budget")
    if budget is None or getattr(budget, "allow_unknown", False) or "fallback" in parameters:
        return
    first = estimate(model, islice(prompts, 1), **parameters)
    if first.requests and first.cost is None and first.provider != "litellm":
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


def fill_in(target: str, model: str) -> str:
    """The name of OUT, with the model in the place of {model}."""
    for other in re.findall(r"\{(\w+)\}", target):
        if other != "model":
            raise RequestError(f"OUT has {{{other}}}, which is not filled in: did you mean {{model}}?")
    return target.replace("{model}", re.sub(r"[^\w.-]", "_", model))
