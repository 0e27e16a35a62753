"""The arguments of `score_many`: contexts, and continuations for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ..._core.client.batch_methods import BatchOptions, OnError, check_on_error, take_common
from ..._core.errors import RequestError
from ..._core.json_values import JSONObject
from ..._core.requests.checks import DeliveryOptions
from ..._core.requests.inputs import BatchInputs, batch_inputs, is_table
from .operation import SCORE

if TYPE_CHECKING:
    from ..._core.requests.parameters import ScoreManyParameters

_EXAMPLE = ("a context that is never sent", ["a continuation"])


def parse_scores(
    model: str, contexts: Any, continuations: Any, parameters: ScoreManyParameters, on_error: OnError
) -> BatchOptions:
    """Check the arguments of `score_many`; `TypeError` if the contexts are no texts."""
    check_on_error("on_error", on_error)
    calls = cast("JSONObject", dict(parameters))
    most, progress = take_common(calls)
    parsed = batch_inputs(contexts, metadata=calls.pop("metadata", None))
    pairs = pair_texts(list(cast("list[Any]", parsed.prompts)), continuations)
    return BatchOptions(
        function="score_many",
        awaited=False,
        models=(model,),
        inputs=(BatchInputs(cast("Any", pairs), parsed.metadata, parsed.labels),),
        parameters=calls,
        delivery=DeliveryOptions("live", "batch"),
        concurrency=most,
        progress=progress,
        on_error=on_error,
        example=_EXAMPLE,
        operation=SCORE,
    )


def pair_texts(contexts: list[Any], continuations: Any) -> list[tuple[Any, Any]]:
    """Each context with its continuations, which are texts for every context, or as many lists.

    >>> pair_texts(["a", "b"], [" x", " y"])
    [('a', [' x', ' y']), ('b', [' x', ' y'])]
    """
    if isinstance(continuations, (str, Mapping)) or is_table(continuations):
        kind = type(continuations).__name__
        raise RequestError(f"continuations is a {kind}: give a list of texts, or a list of such lists")
    listed = list(continuations)
    if all(isinstance(text, str) for text in listed):
        return [(context, listed) for context in contexts]
    if len(listed) != len(contexts):
        raise RequestError(
            f"continuations has {len(listed):,} lists for {len(contexts):,} contexts: give one for each"
        )
    return list(zip(contexts, listed, strict=True))
