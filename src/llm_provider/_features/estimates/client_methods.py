"""Estimates of the tokens, the costs and the time of batches. Nothing is sent."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from ..._core import doors
from ..._core.client.batch_methods import BatchOptions, Models, check_models, parse_batch
from ..._core.client.call_runner import CallRunner
from ..._core.errors import RequestError
from ..._core.journey.chat import CHAT
from ..._core.journey.embed import EMBED
from ..._core.requests.checks import DeliveryOptions, one_of
from ..._core.requests.inputs import Estimable
from ..._core.requests.model_kinds import EstimateKind, kind_of
from ..._core.types.messages import Prompt
from .estimate import Estimate, Estimator, estimate, estimate_texts, show
from .estimates import Estimates, add_fallbacks

if TYPE_CHECKING:
    from ..._core.journey.call import Call, Operation
    from ..._core.requests.parameters import EstimateParameters
    from ..._core.types.response import Response

_check_kind = one_of(EstimateKind)


def estimate_batch(
    runner: CallRunner, model: str | Models, inputs: Estimable, parameters: EstimateParameters
) -> Estimate | Estimates:
    kind = _take_kind(model, parameters)
    if kind != "chat":
        return _estimate_texts(runner, model, inputs, parameters, kind)
    on_error = parameters.pop("on_error", None) or "return"
    options = parse_batch("estimate", model, inputs, parameters, runner.defaults, on_error)
    estimates = [_estimate_prompts(runner, name, options, part.prompts) for name, part in options.each]
    return _name_each(model, estimates)


async def aestimate_batch(
    runner: CallRunner,
    model: str | Models,
    inputs: Estimable | AsyncIterable[Prompt],
    parameters: EstimateParameters,
) -> Estimate | Estimates:
    """`estimate_batch` for an event loop, in a thread. Its inputs may be asynchronous."""
    import asyncio

    kind = _take_kind(model, parameters)
    if kind != "chat":
        texts = [text async for text in inputs] if isinstance(inputs, AsyncIterable) else inputs
        return await asyncio.to_thread(_estimate_texts, runner, model, texts, parameters, kind)
    on_error = parameters.pop("on_error", None) or "return"
    options = parse_batch("aestimate", model, inputs, parameters, runner.defaults, on_error)
    estimates = []
    for name, part in options.each:
        # They are read here, as an iterator of the user's may belong to this thread.
        read = part.prompts
        prompts = [each async for each in read] if isinstance(read, AsyncIterable) else list(read)
        estimates.append(await asyncio.to_thread(_estimate_prompts, runner, name, options, prompts))
    return _name_each(model, estimates)


def _estimate_prompts(runner: CallRunner, model: str, options: BatchOptions, prompts: Any) -> Estimate:
    """The estimate of a model, and of the models of its `fallback`."""
    several = _estimators(runner, model, options)
    prompts = prompts if len(several) == 1 else list(prompts)
    return add_fallbacks([estimate(each, prompts) for each in several])


def show_estimates(runner: CallRunner, options: BatchOptions, above: float) -> None:
    """Show the estimate of each model in a notebook, if it is above some USD."""
    for model, part in options.each:
        prompts = part.prompts
        if isinstance(prompts, Sequence) and not isinstance(prompts, (str, bytes)):
            show(_estimators(runner, model, options, counted=False)[0], prompts, above)


def _estimators(
    runner: CallRunner, model: str, options: BatchOptions, *, counted: bool = True
) -> list[Estimator]:
    """An estimator of the model, and one of each model of `fallback`."""
    parameters, allowed = dict(options.parameters), options.concurrency or runner.concurrency

    def prepare(prompt: Prompt) -> Call[Response]:
        return runner.prepare(CHAT, model, prompt, parameters, allowed, options.function)

    engine = runner.engine
    scopes, count = engine.statistics(), 1 + len(parameters.get("fallback") or ())
    return [
        Estimator(engine, prepare, runner.prices, scopes, counted=counted, number=number)
        for number in range(count)
    ]


def _estimate_texts(
    runner: CallRunner, model: str | Models, inputs: Any, parameters: EstimateParameters, kind: EstimateKind
) -> Estimate | Estimates:
    DeliveryOptions.take_from(parameters, size=parameters.pop("batch_size", None))
    operation: Operation[Any, Any] = EMBED if kind == "embedding" else doors.score.SCORE
    runner.fill(parameters, operation)
    estimates, engine = [], runner.engine
    # An iterator is read once. Each context with its continuations is a call.
    listed = [inputs if isinstance(inputs, str) else list(inputs)] if kind == "embedding" else list(inputs)
    for name in model if isinstance(model, (list, tuple)) else (model,):
        requests = [operation.build(name, each, parameters, "estimate") for each in listed]
        calls = [engine.prepare(operation, request, runner.concurrency) for request in requests]
        estimates.append(estimate_texts(engine, calls, runner.prices, engine.statistics()))
    return _name_each(model, estimates)


def _take_kind(model: str | Models, parameters: EstimateParameters) -> EstimateKind:
    """Remove `kind` from the parameters. Without it the names of the models tell one kind."""
    several = isinstance(model, (list, tuple))
    if isinstance(model, (list, tuple)):
        check_models(model)
    kind = parameters.pop("kind", None)
    if kind is not None:
        return cast("EstimateKind", _check_kind("kind", kind))
    kinds = {kind_of(name) for name in (model if several else (model,)) if isinstance(name, str)}
    if len(kinds) > 1:
        raise RequestError("model: some of the models answer and others embed: estimate them apart")
    return next(iter(kinds), "chat")


def _name_each(model: str | Models, estimates: list[Estimate]) -> Estimate | Estimates:
    if not isinstance(model, (list, tuple)):
        return estimates[0]
    return Estimates(zip(model, estimates, strict=True))
