"""The methods of `Client` for many inputs: all results at once, results as they arrive, and estimates."""

from __future__ import annotations

import functools
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
    Sized,
)
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from .._calls.preload import load_for_batch, name_shortage
from .._limits.concurrency import concurrency
from .._limits.timeouts import DEFAULT_BATCH_PATIENCE
from .._requests.inputs import BatchInputs, Inputs
from .._requests.request import check, seal
from .._requests.signatures import with_parameters
from .._runtime.notebooks import in_notebook
from .._types.messages import Prompt
from .._types.response import Response, Result
from .answers import Answers
from .batch_arguments import Models, OnError, by_model, check_choices, for_each, one_model, taken

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from .._batches.handle import Batch
    from .._calls.batch import Work
    from .._calls.call import Call
    from .._errors import LLMError
    from .._estimates.estimate import Estimate, Estimator
    from .._estimates.estimates import Estimates
    from .._money.pricing import PriceTable
    from .._requests.parameters import BatchCommon, BatchParameters, Parameters, UntypedBatch
    from .._settings import Settings
    from .._types.results import Results
    from .batch_overloads import DryRun, Submission, TypedRaise, TypedReturn, UntypedRaise, UntypedReturn

T = TypeVar("T")


class BatchMethods(Answers):
    """The methods of a client for many inputs. `Client` has the attributes that they use."""

    _prices: Callable[[], PriceTable]
    _settings: Settings
    _show_estimate_above: float | None

    @overload
    def iter_many(
        self, model: str, inputs: Inputs, **parameters: Unpack[UntypedBatch]
    ) -> Iterator[tuple[int, Result]]: ...

    @overload
    def iter_many(
        self, model: str, inputs: Inputs, *, response_format: TypeForm[T], **parameters: Unpack[BatchCommon]
    ) -> Iterator[tuple[int, Response[T] | LLMError]]: ...

    @with_parameters
    def iter_many(
        self, model: str, inputs: Inputs, **parameters: Unpack[BatchParameters]
    ) -> Iterator[tuple[int, Result]]:
        """See `llm_provider.iter_many`."""
        seal(parameters)
        one_model("iter_many", model)
        with name_shortage():
            from .._calls.batch import labelled

        asked = taken("iter_many", inputs, parameters)
        found = self._iterate([(model, asked)], parameters)
        return found if asked.labels is None else labelled(found, asked.labels)

    def _iterate(
        self, asked: Sequence[tuple[str, BatchInputs]], parameters: BatchParameters
    ) -> Iterator[tuple[int, Result]]:
        with name_shortage():
            from .._calls.batch import iterate
            from .._calls.progress import Progress, watched

        delivery = self._delivery([one for one, _ in asked], asked[0][1].prompts, parameters)
        show = parameters.pop("progress", None)
        if delivery is not None:
            jobs = self._batches("iter_many", asked, parameters)
            return delivery.iterate([(work.lookup, prompts) for work, prompts in jobs], show)
        batches = self._batches("iter_many", asked, parameters)
        models = [model for model, _ in asked]
        bar = functools.partial(Progress, _length(batches), show, self.statistics, self._engine.waits, models)
        (work, prompts), *more = batches
        return watched(iterate(work, prompts, *more), show, self._on_result and self._tell, bar)

    @overload
    def aiter_many(
        self, model: str, inputs: Inputs | AsyncIterable[Prompt], **parameters: Unpack[UntypedBatch]
    ) -> AsyncIterator[tuple[int, Result]]: ...

    @overload
    def aiter_many(
        self,
        model: str,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        response_format: TypeForm[T],
        **parameters: Unpack[BatchCommon],
    ) -> AsyncIterator[tuple[int, Response[T] | LLMError]]: ...

    @with_parameters
    def aiter_many(
        self,
        model: str,
        inputs: Inputs | AsyncIterable[Prompt],
        **parameters: Unpack[BatchParameters],
    ) -> AsyncIterator[tuple[int, Result]]:
        """See `llm_provider.aiter_many`."""
        seal(parameters)
        one_model("aiter_many", model)
        with name_shortage():
            from .._calls.batch import alabelled

        asked = taken("aiter_many", inputs, parameters, awaited=True)
        found = self._aiterate([(model, asked)], parameters)
        return found if asked.labels is None else alabelled(found, asked.labels)

    def _aiterate(
        self, asked: Sequence[tuple[str, BatchInputs]], parameters: BatchParameters
    ) -> AsyncIterator[tuple[int, Result]]:
        with name_shortage():
            from .._calls.batch import aiterate
            from .._calls.progress import Progress, awatched

        delivery = self._delivery([one for one, _ in asked], asked[0][1].prompts, parameters)
        show = parameters.pop("progress", None)
        if delivery is not None:
            jobs = self._batches("aiter_many", asked, parameters)
            return delivery.aiterate([(work.lookup, prompts) for work, prompts in jobs], show)
        batches = self._batches("aiter_many", asked, parameters)
        models = [model for model, _ in asked]
        bar = functools.partial(Progress, _length(batches), show, self.statistics, self._engine.waits, models)
        (work, prompts), *more = batches
        return awatched(aiterate(work, prompts, *more), show, self._on_result and self._tell, bar)

    def _batches(
        self, name: str, asked: Sequence[tuple[str, BatchInputs]], parameters: BatchParameters
    ) -> list[tuple[Work, Any]]:
        """The batch of each model, with its prompts. They share one budget."""
        if parameters.get("budget") is not None:
            parameters["budget"] = check("budget", parameters["budget"])
        with name_shortage():
            return [
                (self._batch(name, model, parameters.copy(), inputs.metadata), inputs.prompts)
                for model, inputs in asked
            ]

    def _batch(
        self, name: str, model: str, parameters: BatchParameters, metadata: Callable[[Prompt], Any] | None
    ) -> Work:
        """How the calls of a batch are made and sent.

        An invalid model or parameter would fail every input, so it is found here, once.
        """
        from .._calls.batch import Work
        from .._calls.batch_lookup import batch_lookup, run_described
        from .._calls.early_stop import EarlyStop
        from .._runtime import event_loop

        event_loop.refuse_own_thread(name)
        self._fill(parameters)
        allowed = concurrency(parameters.pop("max_concurrent", None)) or self._concurrency
        first: Call[Response] | None = None
        early_stop = EarlyStop()

        def prepare(prompt: Prompt) -> Call[Response]:
            nonlocal first
            call = self._prepare(model, prompt, cast("Parameters", parameters), allowed)
            if first is None:
                # It is made here, for the template. Its deadline and patience are those of the whole batch.
                first = call
                if parameters.get("outage_patience") is None and self._settings.outage_patience is None:
                    call.patience.seconds = DEFAULT_BATCH_PATIENCE
            call.deadline, call.patience, call.early_stop = first.deadline, first.patience, early_stop
            return call

        self._start()
        lookup, engine = batch_lookup(self._engine, prepare, metadata), self._engine
        run: Callable[[Call[Response]], Awaitable[Response]] = self._run
        # `prepare` has set it.
        request = cast("Call[Response]", first).request
        # Each round of tools marks its own prefix, which the next round reads.
        caches_prompts = bool(request.options and request.options.get("prompt_caching"))
        if request.max_tool_rounds is not None:
            caches_prompts = False
            from .._calls import tool_loop

            lookup, run = tool_loop.batch_of(engine, prepare, metadata, here=name == "aiter_many")
        if metadata is not None:
            run = functools.partial(run_described, run)
        load = functools.partial(load_for_batch, engine)
        return Work(lookup, run, engine.cancel, allowed.most, load, early_stop, caches_prompts)

    def _estimator(self, model: str, parameters: BatchParameters, *, counted: bool = True) -> Estimator:
        from .._estimates.estimate import Estimator

        for name in ("progress", "delivery", "resend"):
            parameters.pop(name, None)  # type: ignore[misc]  # the names are known
        allowed = concurrency(parameters.pop("max_concurrent", None)) or self._concurrency

        def prepare(prompt: Prompt) -> Call[Response]:
            return self._prepare(model, prompt, cast("Parameters", parameters), allowed)

        return Estimator(self._engine, prepare, self._prices, self.statistics(), counted=counted)

    @overload
    def call_many(
        self, model: str, inputs: Inputs, **parameters: Unpack[UntypedReturn]
    ) -> Results[Result]: ...

    @overload
    def call_many(
        self, model: str, inputs: Inputs, **parameters: Unpack[UntypedRaise]
    ) -> Results[Response]: ...

    @overload
    def call_many(
        self, model: str, inputs: Inputs, *, response_format: TypeForm[T], **parameters: Unpack[TypedReturn]
    ) -> Results[Response[T] | LLMError]: ...

    @overload
    def call_many(
        self, model: str, inputs: Inputs, *, response_format: TypeForm[T], **parameters: Unpack[TypedRaise]
    ) -> Results[Response[T]]: ...

    @overload
    def call_many(self, model: str, inputs: Inputs, **parameters: Unpack[DryRun]) -> Estimate: ...

    @overload
    def call_many(
        self, model: Models, inputs: Inputs, **parameters: Unpack[UntypedReturn]
    ) -> dict[str, Results[Result]]: ...

    @overload
    def call_many(
        self, model: Models, inputs: Inputs, **parameters: Unpack[UntypedRaise]
    ) -> dict[str, Results[Response]]: ...

    @overload
    def call_many(
        self,
        model: Models,
        inputs: Inputs,
        *,
        response_format: TypeForm[T],
        **parameters: Unpack[TypedReturn],
    ) -> dict[str, Results[Response[T] | LLMError]]: ...

    @overload
    def call_many(
        self, model: Models, inputs: Inputs, *, response_format: TypeForm[T], **parameters: Unpack[TypedRaise]
    ) -> dict[str, Results[Response[T]]]: ...

    @overload
    def call_many(self, model: Models, inputs: Inputs, **parameters: Unpack[DryRun]) -> Estimates: ...

    @overload
    def call_many(self, model: str, inputs: Inputs, **parameters: Unpack[Submission]) -> Batch: ...

    @with_parameters
    def call_many(
        self,
        model: str | Models,
        inputs: Inputs,
        *,
        on_error: OnError = "return",
        dry_run: bool = False,
        wait: bool = True,
        **parameters: Unpack[BatchParameters],
    ) -> Results[Result] | Results[Response] | Estimate | Batch | dict[str, Any]:
        """See `llm_provider.call_many`."""
        seal(parameters)
        check_choices(on_error, wait, dry_run)
        if dry_run:
            if isinstance(model, (list, tuple)):
                from .._estimates.estimates import Estimates

                each = for_each(model, taken("call_many", inputs, parameters))
                return Estimates(
                    (one, self.estimate(one, cast("Inputs", part.prompts), **parameters))
                    for one, part in each
                )
            return self.estimate(model, inputs, **parameters)
        with name_shortage():
            from .._calls.batch import in_order, labelled, noting_interrupt

        asked = taken("call_many", inputs, parameters)
        each = for_each(model, asked) if isinstance(model, (list, tuple)) else [(model, asked)]
        if not wait:
            front = self._front([one for one, _ in each], asked.prompts, parameters)
            lookup = self._batch("call_many", each[0][0], parameters, asked.metadata).lookup
            return front.handle(lookup, cast("Iterable[Prompt]", asked.prompts), on_error, asked.labels)
        for one, _ in each:
            self._show_estimate(one, asked.prompts, parameters)
        results: dict[int, Result] = {}
        cache = parameters.get("cache") or self._settings.cache
        with noting_interrupt(results, asked.prompts, len(each), cache=cache):
            results.update(labelled(self._iterate(each, parameters), asked.labels))
        ordered = in_order(results, on_error)
        return by_model(model, ordered) if isinstance(model, (list, tuple)) else ordered

    @overload
    async def acall_many(
        self, model: str, inputs: Inputs | AsyncIterable[Prompt], **parameters: Unpack[UntypedReturn]
    ) -> Results[Result]: ...

    @overload
    async def acall_many(
        self, model: str, inputs: Inputs | AsyncIterable[Prompt], **parameters: Unpack[UntypedRaise]
    ) -> Results[Response]: ...

    @overload
    async def acall_many(
        self,
        model: str,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        response_format: TypeForm[T],
        **parameters: Unpack[TypedReturn],
    ) -> Results[Response[T] | LLMError]: ...

    @overload
    async def acall_many(
        self,
        model: str,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        response_format: TypeForm[T],
        **parameters: Unpack[TypedRaise],
    ) -> Results[Response[T]]: ...

    @overload
    async def acall_many(
        self, model: str, inputs: Inputs | AsyncIterable[Prompt], **parameters: Unpack[DryRun]
    ) -> Estimate: ...

    @overload
    async def acall_many(
        self, model: Models, inputs: Inputs | AsyncIterable[Prompt], **parameters: Unpack[UntypedReturn]
    ) -> dict[str, Results[Result]]: ...

    @overload
    async def acall_many(
        self, model: Models, inputs: Inputs | AsyncIterable[Prompt], **parameters: Unpack[UntypedRaise]
    ) -> dict[str, Results[Response]]: ...

    @overload
    async def acall_many(
        self,
        model: Models,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        response_format: TypeForm[T],
        **parameters: Unpack[TypedReturn],
    ) -> dict[str, Results[Response[T] | LLMError]]: ...

    @overload
    async def acall_many(
        self,
        model: Models,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        response_format: TypeForm[T],
        **parameters: Unpack[TypedRaise],
    ) -> dict[str, Results[Response[T]]]: ...

    @overload
    async def acall_many(
        self, model: Models, inputs: Inputs | AsyncIterable[Prompt], **parameters: Unpack[DryRun]
    ) -> Estimates: ...

    @overload
    async def acall_many(
        self, model: str, inputs: Inputs | AsyncIterable[Prompt], **parameters: Unpack[Submission]
    ) -> Batch: ...

    @with_parameters
    async def acall_many(
        self,
        model: str | Models,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        on_error: OnError = "return",
        dry_run: bool = False,
        wait: bool = True,
        **parameters: Unpack[BatchParameters],
    ) -> Results[Result] | Results[Response] | Estimate | Batch | dict[str, Any]:
        """See `llm_provider.acall_many`."""
        seal(parameters)
        check_choices(on_error, wait, dry_run)
        if dry_run:
            from .._estimates.estimate import aestimate

            asked = taken("acall_many", inputs, parameters, awaited=True)
            if isinstance(model, (list, tuple)):
                from .._estimates.estimates import Estimates

                found = Estimates()
                for one, part in for_each(model, asked):
                    found[one] = await aestimate(self._estimator(one, parameters.copy()), part.prompts)
                return found
            return await aestimate(self._estimator(model, parameters), asked.prompts)
        with name_shortage():
            from .._calls.batch import alabelled, in_order, noting_interrupt

        asked = taken("acall_many", inputs, parameters, awaited=True)
        each = for_each(model, asked) if isinstance(model, (list, tuple)) else [(model, asked)]
        if not wait:
            front = self._front([one for one, _ in each], asked.prompts, parameters)
            lookup = self._batch("acall_many", each[0][0], parameters, asked.metadata).lookup
            return await front.ahandle(lookup, asked.prompts, on_error, asked.labels)
        for one, _ in each:
            self._show_estimate(one, asked.prompts, parameters)
        results: dict[int, Result] = {}
        cache = parameters.get("cache") or self._settings.cache
        with noting_interrupt(results, asked.prompts, len(each), cache=cache):
            async for index, result in alabelled(self._aiterate(each, parameters), asked.labels):
                results[index] = result  # noqa: PERF403  # an interrupt finds the results so far
        ordered = in_order(results, on_error)
        return by_model(model, ordered) if isinstance(model, (list, tuple)) else ordered

    @with_parameters
    def estimate(self, model: str, inputs: Inputs, **parameters: Unpack[BatchParameters]) -> Estimate:
        """See `llm_provider.estimate`."""
        seal(parameters)
        from .._estimates.estimate import estimate

        one_model("estimate", model)
        asked = taken("estimate", inputs, parameters)
        return estimate(self._estimator(model, parameters), cast("Iterable[Prompt]", asked.prompts))

    def _show_estimate(self, model: str, inputs: object, parameters: BatchParameters) -> None:
        if self._show_estimate_above is not None and in_notebook():
            from .._estimates.estimate import show

            if isinstance(inputs, Sequence) and not isinstance(inputs, (str, bytes)):
                show(
                    self._estimator(model, parameters.copy(), counted=False),
                    inputs,
                    self._show_estimate_above,
                )


def _length(batches: Sequence[tuple[Work, object]]) -> int | None:
    lengths = [len(inputs) for _, inputs in batches if isinstance(inputs, Sized)]
    return sum(lengths) if len(lengths) == len(batches) else None
