"""The arguments of the methods for many inputs: their checks, and the inputs of several models."""

from __future__ import annotations

from collections.abc import AsyncIterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from .._errors import RequestError, shown
from .._requests.checks import flag
from .._requests.inputs import BatchInputs, batch_inputs
from .._requests.request import CHECKS
from .._types.response import Result

if TYPE_CHECKING:
    from .._requests.parameters import BatchParameters
    from .._types.results import Results

OnError = Literal["return", "raise"]
Models: TypeAlias = list[str] | tuple[str, ...]
"""Several models, which get the same inputs."""

_OF_BATCHES = ("max_concurrent", "progress", "delivery", "resend", "rows")
"""The parameters that a batch has and a call has not."""
_OF_CALL_MANY = ("on_error", "dry_run", "wait")


def check_choices(on_error: object, wait: object, dry_run: object) -> None:
    """Check the arguments that only `call_many` and `acall_many` have.

    Raises:
        RequestError: one is not valid.
    """
    if on_error not in ("return", "raise"):
        raise RequestError(f"on_error must be 'return' or 'raise', not {shown(on_error)}")
    flag("wait", wait)
    flag("dry_run", dry_run)


def one_model(function: str, model: object) -> None:
    """Refuse several models.

    Raises:
        RequestError: there are several.
    """
    if isinstance(model, (list, tuple, set, frozenset)):
        dry_run = ", dry_run=True" if function == "estimate" else ""
        raise RequestError(
            f"model: {function}() takes one model, not a {type(model).__name__}: write "
            f"call_many([...], inputs{dry_run}) for several"
        )


def taken(function: str, inputs: Any, parameters: BatchParameters, *, awaited: bool = False) -> BatchInputs:
    """The checked inputs, without whose arguments the parameters are those of a call.

    Raises:
        TypeError: the function has no such parameter, or the inputs are of the wrong kind.
        RequestError: an input is not valid.
    """
    for name in parameters:
        if name not in CHECKS and name not in _OF_BATCHES:
            from .._requests.foreign_names import unexpected

            more = _OF_CALL_MANY if function.endswith("call_many") else ()
            raise TypeError(unexpected(function, name, [*CHECKS, *_OF_BATCHES, *more]))
    if parameters.get("progress") is not None:
        flag("progress", parameters["progress"])
    rows, metadata = parameters.pop("rows", None), parameters.get("metadata")
    if isinstance(metadata, Mapping):
        # It describes every request, and is sent.
        metadata = None
    else:
        parameters.pop("metadata", None)
    return batch_inputs(inputs, rows, metadata, awaited=awaited)


def for_each(models: Sequence[str], asked: BatchInputs) -> list[tuple[str, BatchInputs]]:
    """The same inputs for each of several models.

    Raises:
        TypeError: the inputs are an asynchronous iterable.
        RequestError: there is no model, or one is named twice.
    """
    if not models:
        raise RequestError("model is an empty list; give the name of one model at least")
    twice = [model for place, model in enumerate(models) if model in models[:place]]
    if twice:
        raise RequestError(f"model has {twice[0]!r} twice; the results are found by the name of their model")
    if isinstance(asked.prompts, AsyncIterable):
        raise TypeError(
            "several models need inputs that can be read more than once, and inputs is an asynchronous "
            "iterable: write [prompt async for prompt in inputs]"
        )
    prompts = list(asked.prompts)
    metadata = None if asked.metadata is None else [asked.metadata(prompt) for prompt in prompts]
    return [
        (model, replace(batch_inputs(prompts, metadata=metadata), labels=asked.labels)) for model in models
    ]


def by_model(models: Sequence[str], results: Results[Result]) -> dict[str, Results[Result]]:
    """The results of several models, which follow each other, by the name of the model."""
    count = len(results) // len(models)
    return {model: results[place * count : (place + 1) * count] for place, model in enumerate(models)}
