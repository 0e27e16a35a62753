"""Whether a call goes live or through its provider's batch API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .._errors import RequestError
from .._json_values import JSONMapping
from .._providers.shared.batches import DAY, module_of
from .._requests.checks import DeliveryMode
from .._requests.request import check
from .._requests.routing import price_names

if TYPE_CHECKING:
    from .._calls.lifecycle.engine import Engine
    from .._money.pricing import PriceTable


def uses_batch_api(
    engine: Engine, prices: Callable[[], PriceTable], model: str, mode: DeliveryMode, parameters: JSONMapping
) -> bool:
    """Whether a batch delivers a call. With "auto" it does if the answers may take a day and cost less."""
    settings = engine.settings
    target = settings.find_target(model, parameters.get("base_url"))
    route = target.route
    has_batches = module_of(route.adapter) is not None and (
        (route.adapter != "openai" and route.cloud is None) or route.batches is not None
    )
    cached = (parameters.get("cache") or settings.cache) not in ("off", False)
    if mode == "batch":
        if parameters.get("max_tool_rounds"):
            raise RequestError(
                "max_tool_rounds asks the model several times, and a batch asks once: use delivery='live', "
                "or leave max_tool_rounds out"
            )
        if parameters.get("fallback"):
            raise RequestError(
                "fallback has several models, and a provider's batch has one: use delivery='live' or 'auto', "
                "or leave fallback out"
            )
        if not has_batches:
            raise RequestError(
                f"{target.provider} has no batch API: use delivery='live', or delivery='auto', which sends "
                "live where there is none",
                provider=target.provider,
                model=model,
            )
        return True
    deadline = parameters.get("deadline")
    if deadline is not None:
        deadline = check("deadline", deadline)
    if (
        not has_batches
        or not cached
        or parameters.get("max_tool_rounds")
        or parameters.get("fallback")
        or (deadline is not None and deadline < DAY)
    ):
        return False
    standard, batch = (
        prices().find(*price_names(target), variant=variant) for variant in ("standard", "batch")
    )
    if standard is None or batch is None:
        return False
    pairs = ((batch.input, standard.input), (batch.output, standard.output))
    return all(low is not None and high is not None and low <= high for low, high in pairs) and any(
        low != high for low, high in pairs
    )
