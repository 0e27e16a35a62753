"""The methods of `Client` that estimate tokens, costs and time."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from .._calls.embed import EMBED
from .._errors import RequestError
from .._requests.checks import one_of
from .._requests.embed_request import EmbedRequest
from .._requests.inputs import Inputs
from .._requests.model_kinds import ModelKind, kind_of
from .._requests.request import seal
from .._requests.signatures import with_parameters
from .._types.messages import Prompt
from .answers import Answers
from .batch_arguments import BatchOptions, DeliveryOptions, Models, check_models, parse_batch

if TYPE_CHECKING:
    from .._calls.call import Call
    from .._estimates.estimate import Estimate, Estimator
    from .._estimates.estimates import Estimates
    from .._requests.parameters import EmbedParameters, EstimateParameters, Parameters
    from .._types.response import Response

_check_kind = one_of(ModelKind)


class EstimateMethods(Answers):
    """What a batch would cost. Nothing is sent."""

    @overload
    def estimate(self, model: str, inputs: Inputs, **parameters: Unpack[EstimateParameters]) -> Estimate: ...

    @overload
    def estimate(
        self, model: Models, inputs: Inputs, **parameters: Unpack[EstimateParameters]
    ) -> Estimates: ...

    @with_parameters
    def estimate(
        self, model: str | Models, inputs: Inputs, **parameters: Unpack[EstimateParameters]
    ) -> Estimate | Estimates:
        """See `llm_provider.estimate`."""
        seal(parameters)
        if _take_kind(model, parameters) == "embedding":
            return self._estimate_texts(model, inputs, parameters)
        from .._estimates.estimate import estimate

        on_error = parameters.pop("on_error", None) or "return"
        options = parse_batch("estimate", model, inputs, parameters, self._defaults, on_error)
        return _name_each(
            model,
            [
                estimate(self._estimator(one, options), cast("Iterable[Prompt]", part.prompts))
                for one, part in options.each
            ],
        )

    @overload
    async def aestimate(
        self, model: str, inputs: Inputs | AsyncIterable[Prompt], **parameters: Unpack[EstimateParameters]
    ) -> Estimate: ...

    @overload
    async def aestimate(
        self, model: Models, inputs: Inputs | AsyncIterable[Prompt], **parameters: Unpack[EstimateParameters]
    ) -> Estimates: ...

    @with_parameters
    async def aestimate(
        self,
        model: str | Models,
        inputs: Inputs | AsyncIterable[Prompt],
        **parameters: Unpack[EstimateParameters],
    ) -> Estimate | Estimates:
        """See `llm_provider.aestimate`."""
        seal(parameters)
        if _take_kind(model, parameters) == "embedding":
            import asyncio

            texts = [text async for text in inputs] if isinstance(inputs, AsyncIterable) else inputs
            return await asyncio.to_thread(self._estimate_texts, model, texts, parameters)
        from .._estimates.estimate import aestimate

        on_error = parameters.pop("on_error", None) or "return"
        defaults = self._defaults
        options = parse_batch("aestimate", model, inputs, parameters, defaults, on_error, awaited=True)
        found = [await aestimate(self._estimator(one, options), part.prompts) for one, part in options.each]
        return _name_each(model, found)

    def _estimator(self, model: str, options: BatchOptions, *, counted: bool = True) -> Estimator:
        from .._estimates.estimate import Estimator

        parameters, allowed = dict(options.parameters), options.concurrency or self._concurrency

        def prepare(prompt: Prompt) -> Call[Response]:
            return self._prepare(model, prompt, cast("Parameters", parameters), allowed, options.function)

        return Estimator(self._engine, prepare, self._prices, self.statistics(), counted=counted)

    def _estimate_texts(
        self, model: str | Models, inputs: Any, parameters: EstimateParameters
    ) -> Estimate | Estimates:
        from .._estimates.estimate import estimate_texts

        DeliveryOptions.take_from(parameters)
        self._fill(parameters, EMBED.defaults)
        found = []
        for one in model if isinstance(model, (list, tuple)) else (model,):
            request = EmbedRequest.build(one, inputs, cast("EmbedParameters", parameters), "estimate")
            # An iterator is read once.
            inputs = request.inputs
            call = self._engine.prepare(EMBED, request, self._concurrency)
            found.append(estimate_texts(self._engine, call, self._prices, self.statistics()))
        return _name_each(model, found)


def _take_kind(model: str | Models, parameters: EstimateParameters) -> ModelKind:
    """Remove `kind` from the parameters. Without it the names of the models tell.

    Raises:
        RequestError: it is none of its words, or the names of several models tell different kinds.
    """
    several = isinstance(model, (list, tuple))
    if isinstance(model, (list, tuple)):
        check_models(model)
    given = parameters.pop("kind", None)
    if given is not None:
        return cast("ModelKind", _check_kind("kind", given))
    kinds = {kind_of(one) for one in (model if several else (model,)) if isinstance(one, str)}
    if len(kinds) > 1:
        raise RequestError("model: some of the models answer and others embed: estimate them apart")
    return next(iter(kinds), "chat")


def _name_each(model: str | Models, found: list[Estimate]) -> Estimate | Estimates:
    if not isinstance(model, (list, tuple)):
        return found[0]
    from .._estimates.estimates import Estimates

    return Estimates(zip(model, found, strict=True))
