"""The arguments of the methods for many inputs: parsed once, at the entry, into frozen objects."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from .. import doors
from ..errors import RequestError
from ..journey.call import Operation
from ..journey.chat import CHAT
from ..json_values import JSONMapping, JSONObject
from ..pace.call_limits import Concurrency, concurrency
from ..requests.checks import DeliveryOptions, flag, one_of
from ..requests.inputs import BatchInputs, batch_inputs
from ..requests.parameter_table import CHECKS
from ..requests.request import check
from ..types.response import Result

if TYPE_CHECKING:
    from ..requests.parameters import BatchParameters
    from ..types.results import Results

OnError = Literal["return", "raise"]
Models: TypeAlias = list[str] | tuple[str, ...]
"""Several models, which get the same inputs."""

check_on_error = one_of(OnError)

OF_BATCHES = ("max_concurrent", "progress", "delivery", "resend", "batch_size", "rows")
"""The parameters that a batch has and a call has not."""

_FOR_SEVERAL_MODELS = ("call_many", "acall_many", "estimate", "aestimate")
"""The functions that name each result by its model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """The checked arguments of a function for many inputs."""

    function: str
    """The function that the user called."""
    awaited: bool
    """Whether that function is asynchronous."""
    models: tuple[str, ...]
    inputs: tuple[BatchInputs, ...]
    """The inputs of each model."""
    parameters: JSONMapping
    """The parameters of each call."""
    delivery: DeliveryOptions
    concurrency: Concurrency | None
    progress: bool | None
    on_error: OnError
    example: Any = None
    """An input, for operations whose inputs are no prompts."""
    operation: Operation[Any, Any] = CHAT

    @property
    def each(self) -> Iterator[tuple[str, BatchInputs]]:
        return zip(self.models, self.inputs, strict=True)

    @property
    def total(self) -> int | None:
        """The number of inputs of all models; None if it is not known."""
        lengths = [len(part.prompts) for part in self.inputs if isinstance(part.prompts, Sized)]
        return sum(lengths) if len(lengths) == len(self.inputs) else None


def parse_batch(
    function: str,
    model: str | Models,
    inputs: Any,
    parameters: BatchParameters,
    defaults: JSONMapping,
    on_error: OnError = "return",
) -> BatchOptions:
    """Check the arguments of a function for many inputs; `TypeError` if there is no such parameter."""
    if function not in _FOR_SEVERAL_MODELS and isinstance(model, (list, tuple, set, frozenset)):
        remedy = "call it for each" if "submit" in function else "write call_many([...], inputs) for several"
        raise RequestError(f"model: {function}() takes one model, not a {type(model).__name__}: {remedy}")
    check_on_error("on_error", on_error)
    for name in parameters:
        if name not in CHECKS and name not in OF_BATCHES:
            more = () if function.endswith("iter_many") else ("on_error",)
            raise TypeError(
                doors.foreign_parameters.describe_unexpected(function, name, [*CHECKS, *OF_BATCHES, *more])
            )
    calls = dict(cast("JSONMapping", parameters))
    submits = function.endswith("submit_many")
    delivery = DeliveryOptions.take_from(calls, "batch" if submits else "live", calls.pop("batch_size", None))
    if submits and delivery.mode != "batch":
        raise RequestError(
            f"delivery: {function}() submits a batch, and {delivery.mode!r} may send live: leave delivery "
            "out, or write call_many()"
        )
    most, progress = take_common(calls)
    awaited = function.startswith("a")
    # A single mapping stays, as every request has it. Other values travel with the inputs.
    metadata = None if isinstance(calls.get("metadata"), Mapping) else calls.pop("metadata", None)
    parsed = batch_inputs(inputs, calls.pop("rows", None), metadata, awaited=awaited)
    if defaults:
        from ..requests.defaults import fill

        fill(calls, defaults)
    several = isinstance(model, (list, tuple))
    if several and calls.get("fallback") is not None:
        raise RequestError(
            "fallback: several models are compared by their names, and another one would answer for them: "
            "leave it out"
        )
    return BatchOptions(
        function=function,
        awaited=awaited,
        models=tuple(model) if several else (cast("str", model),),
        inputs=_copy_for_each(model, parsed) if several else (parsed,),
        parameters=calls,
        delivery=delivery,
        concurrency=most,
        progress=progress,
        on_error=on_error,
    )


def take_common(calls: JSONObject) -> tuple[Concurrency | None, bool | None]:
    """Remove `max_concurrent` and `progress`, and check the budget, which all calls share."""
    most, progress = concurrency(calls.pop("max_concurrent", None)), calls.pop("progress", None)
    if progress is not None:
        flag("progress", progress)
    if calls.get("budget") is not None:
        calls["budget"] = check("budget", calls["budget"])
    return most, progress


def check_models(models: Sequence[str]) -> None:
    """Raise a `RequestError` if there is no model, or one is there twice."""
    if not models:
        raise RequestError("model is an empty list; give the name of one model at least")
    twice = [model for index, model in enumerate(models) if model in models[:index]]
    if twice:
        raise RequestError(f"model has {twice[0]!r} twice; the results are found by the name of their model")


def _copy_for_each(models: Sequence[str], inputs: BatchInputs) -> tuple[BatchInputs, ...]:
    """The same inputs for each of several models. They cannot be an asynchronous iterable."""
    check_models(models)
    if isinstance(inputs.prompts, AsyncIterable):
        raise TypeError(
            "several models need inputs that can be read more than once, and inputs is an asynchronous "
            "iterable: write [prompt async for prompt in inputs]"
        )
    prompts = list(inputs.prompts)
    metadata = None if inputs.metadata is None else [inputs.metadata(prompt) for prompt in prompts]
    return tuple(replace(batch_inputs(prompts, metadata=metadata), labels=inputs.labels) for _ in models)


def by_model(models: Sequence[str], results: Results[Result]) -> dict[str, Results[Result]]:
    """The results of several models, which follow each other, by the name of the model."""
    count = len(results) // len(models)
    return {model: results[index * count : (index + 1) * count] for index, model in enumerate(models)}
