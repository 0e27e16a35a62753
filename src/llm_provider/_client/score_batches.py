"""The arguments and the results of `score_many`. The calls run as those of any batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from .._calls.operations.score import SCORE
from .._errors import RequestError
from .._json_values import JSONObject
from .._limits.concurrency import concurrency
from .._requests.checks import flag
from .._requests.inputs import BatchInputs, batch_inputs, is_table
from .._requests.request import check
from .batch_arguments import BatchOptions, DeliveryOptions, OnError, _check_on_error

if TYPE_CHECKING:
    from .._requests.parameters import ScoreManyParameters

_EXAMPLE = ("a context that is never sent", ["a continuation"])


def parse_scores(
    model: str, contexts: Any, continuations: Any, parameters: ScoreManyParameters, on_error: OnError
) -> BatchOptions:
    """Check the arguments of `score_many`.

    Raises:
        TypeError: the contexts are no texts.
        RequestError: an argument is not valid.
    """
    _check_on_error("on_error", on_error)
    calls = cast("JSONObject", dict(parameters))
    most, progress = concurrency(calls.pop("max_concurrent", None)), calls.pop("progress", None)
    if progress is not None:
        flag("progress", progress)
    if calls.get("budget") is not None:
        # All calls share it.
        calls["budget"] = check("budget", calls["budget"])
    parsed = batch_inputs(contexts, metadata=calls.pop("metadata", None))
    pairs = pair_texts(list(cast("Iterable[Any]", parsed.prompts)), continuations)
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
    """Each context with its continuations. Texts are the continuations of every context.

    Raises:
        RequestError: there are no continuations, or not as many lists of them as contexts.

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
