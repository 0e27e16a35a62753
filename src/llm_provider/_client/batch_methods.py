"""The methods of `Client` for many inputs: all results at once, results as they arrive, and submissions."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, cast, overload

from .._calls.preload import load_for_batch, name_shortage
from .._limits.timeouts import DEFAULT_BATCH_PATIENCE
from .._requests.inputs import Inputs
from .._requests.request import seal
from .._requests.signatures import with_parameters
from .._runtime.notebooks import in_notebook
from .._types.messages import Prompt
from .._types.response import Response, Result
from .batch_arguments import (
    BatchOptions,
    Models,
    OnError,
    by_model,
    parse_batch,
    parse_submission,
    refuse_several,
)
from .estimate_methods import EstimateMethods

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from .._batches.front import BatchFront
    from .._batches.handle import Batch
    from .._calls.batch import Work
    from .._calls.call import Call
    from .._errors import LLMError
    from .._requests.parameters import BatchCommon, BatchParameters, Parameters, UntypedBatch
    from .._settings import Settings
    from .._types.results import Results

T = TypeVar("T")


class BatchMethods(EstimateMethods):
    """The methods of a client for many inputs. `Client` has the attributes that they use."""

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
        refuse_several("iter_many", model)
        return self._iterate(parse_batch("iter_many", model, inputs, parameters))

    def _iterate(self, options: BatchOptions) -> Iterator[tuple[int, Result]]:
        with name_shortage():
            from .._calls.batch import iterate, labelled
            from .._calls.progress import Progress, watched

            front, batches = self._batches(options)
        show, bar = options.progress, (options.total, options.models)
        if front is not None:
            found = front.iterate([(work.lookup, prompts) for work, prompts in batches], show, *bar)
        else:
            total, models = bar
            shown = functools.partial(Progress, total, show, self.statistics, self._engine.waits, models)
            (work, prompts), *more = batches
            found = watched(iterate(work, prompts, *more), show, self._on_result and self._tell, shown)
        labels = options.inputs[0].labels
        return found if labels is None else labelled(found, labels)

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
        refuse_several("aiter_many", model)
        return self._aiterate(parse_batch("aiter_many", model, inputs, parameters, awaited=True))

    def _aiterate(self, options: BatchOptions) -> AsyncIterator[tuple[int, Result]]:
        with name_shortage():
            from .._calls.batch import aiterate, alabelled
            from .._calls.progress import Progress, awatched

            front, batches = self._batches(options)
        show, bar = options.progress, (options.total, options.models)
        if front is not None:
            found = front.aiterate([(work.lookup, prompts) for work, prompts in batches], show, *bar)
        else:
            total, models = bar
            shown = functools.partial(Progress, total, show, self.statistics, self._engine.waits, models)
            (work, prompts), *more = batches
            found = awatched(aiterate(work, prompts, *more), show, self._on_result and self._tell, shown)
        labels = options.inputs[0].labels
        return found if labels is None else alabelled(found, labels)

    def _batches(self, options: BatchOptions) -> tuple[BatchFront | None, list[tuple[Work, Any]]]:
        """The batch delivery if there is one, and the batch of each model with its prompts.

        An invalid model or parameter would fail every input, so it is found here, once.
        """
        calls = dict(options.parameters)
        self._fill(calls)
        front = self._batch_front(options.models, options.delivery, calls)
        return front, [
            (self._batch(options, model, calls, part.metadata), part.prompts) for model, part in options.each
        ]

    def _batch(
        self,
        options: BatchOptions,
        model: str,
        parameters: dict[str, Any],
        metadata: Callable[[Prompt], Any] | None,
    ) -> Work:
        """How the calls of a batch are made and sent."""
        from .._calls.batch import Work
        from .._calls.batch_lookup import batch_lookup, run_described
        from .._calls.early_stop import EarlyStop
        from .._runtime import event_loop

        event_loop.refuse_own_thread(options.function)
        allowed = options.concurrency or self._concurrency
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

            lookup, run = tool_loop.batch_of(engine, prepare, metadata, here=options.awaited)
        if metadata is not None:
            run = functools.partial(run_described, run)
        load = functools.partial(load_for_batch, engine)
        return Work(lookup, run, engine.cancel, allowed.most, load, early_stop, caches_prompts)

    @overload
    def call_many(
        self,
        model: str,
        inputs: Inputs,
        *,
        on_error: Literal["return"] = "return",
        **parameters: Unpack[UntypedBatch],
    ) -> Results[Result]: ...

    @overload
    def call_many(
        self, model: str, inputs: Inputs, *, on_error: Literal["raise"], **parameters: Unpack[UntypedBatch]
    ) -> Results[Response]: ...

    @overload
    def call_many(
        self,
        model: str,
        inputs: Inputs,
        *,
        response_format: TypeForm[T],
        on_error: Literal["return"] = "return",
        **parameters: Unpack[BatchCommon],
    ) -> Results[Response[T] | LLMError]: ...

    @overload
    def call_many(
        self,
        model: str,
        inputs: Inputs,
        *,
        response_format: TypeForm[T],
        on_error: Literal["raise"],
        **parameters: Unpack[BatchCommon],
    ) -> Results[Response[T]]: ...

    @overload
    def call_many(
        self,
        model: Models,
        inputs: Inputs,
        *,
        on_error: OnError = "return",
        **parameters: Unpack[UntypedBatch],
    ) -> dict[str, Results[Result]]: ...

    @overload
    def call_many(
        self,
        model: Models,
        inputs: Inputs,
        *,
        response_format: TypeForm[T],
        on_error: OnError = "return",
        **parameters: Unpack[BatchCommon],
    ) -> dict[str, Results[Response[T] | LLMError]]: ...

    @with_parameters
    def call_many(
        self,
        model: str | Models,
        inputs: Inputs,
        *,
        on_error: OnError = "return",
        **parameters: Unpack[BatchParameters],
    ) -> Results[Result] | Results[Response] | dict[str, Any]:
        """See `llm_provider.call_many`."""
        seal(parameters)
        options = parse_batch("call_many", model, inputs, parameters, on_error=on_error)
        with name_shortage():
            from .._calls.batch import in_order, noting_interrupt
        self._show_estimates(options)
        results: dict[int, Result] = {}
        with noting_interrupt(results, options.total, self._cache_mode(options)):
            results.update(self._iterate(options))
        ordered = in_order(results, on_error)
        return by_model(model, ordered) if isinstance(model, (list, tuple)) else ordered

    @overload
    async def acall_many(
        self,
        model: str,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        on_error: Literal["return"] = "return",
        **parameters: Unpack[UntypedBatch],
    ) -> Results[Result]: ...

    @overload
    async def acall_many(
        self,
        model: str,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        on_error: Literal["raise"],
        **parameters: Unpack[UntypedBatch],
    ) -> Results[Response]: ...

    @overload
    async def acall_many(
        self,
        model: str,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        response_format: TypeForm[T],
        on_error: Literal["return"] = "return",
        **parameters: Unpack[BatchCommon],
    ) -> Results[Response[T] | LLMError]: ...

    @overload
    async def acall_many(
        self,
        model: str,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        response_format: TypeForm[T],
        on_error: Literal["raise"],
        **parameters: Unpack[BatchCommon],
    ) -> Results[Response[T]]: ...

    @overload
    async def acall_many(
        self,
        model: Models,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        on_error: OnError = "return",
        **parameters: Unpack[UntypedBatch],
    ) -> dict[str, Results[Result]]: ...

    @overload
    async def acall_many(
        self,
        model: Models,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        response_format: TypeForm[T],
        on_error: OnError = "return",
        **parameters: Unpack[BatchCommon],
    ) -> dict[str, Results[Response[T] | LLMError]]: ...

    @with_parameters
    async def acall_many(
        self,
        model: str | Models,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        on_error: OnError = "return",
        **parameters: Unpack[BatchParameters],
    ) -> Results[Result] | Results[Response] | dict[str, Any]:
        """See `llm_provider.acall_many`."""
        seal(parameters)
        options = parse_batch("acall_many", model, inputs, parameters, on_error=on_error, awaited=True)
        with name_shortage():
            from .._calls.batch import in_order, noting_interrupt
        self._show_estimates(options)
        results: dict[int, Result] = {}
        with noting_interrupt(results, options.total, self._cache_mode(options)):
            async for index, result in self._aiterate(options):
                results[index] = result  # noqa: PERF403  # an interrupt finds the results so far
        ordered = in_order(results, on_error)
        return by_model(model, ordered) if isinstance(model, (list, tuple)) else ordered

    @with_parameters
    def submit_many(
        self,
        model: str,
        inputs: Inputs,
        *,
        on_error: OnError = "return",
        **parameters: Unpack[BatchParameters],
    ) -> Batch:
        """See `llm_provider.submit_many`."""
        seal(parameters)
        options = parse_submission("submit_many", model, inputs, parameters, on_error=on_error)
        front, [(work, prompts)] = self._batches(options)
        return cast("BatchFront", front).handle(work.lookup, prompts, on_error, options.inputs[0].labels)

    @with_parameters
    async def asubmit_many(
        self,
        model: str,
        inputs: Inputs | AsyncIterable[Prompt],
        *,
        on_error: OnError = "return",
        **parameters: Unpack[BatchParameters],
    ) -> Batch:
        """See `llm_provider.asubmit_many`."""
        seal(parameters)
        options = parse_submission("asubmit_many", model, inputs, parameters, on_error=on_error, awaited=True)
        front, [(work, prompts)] = self._batches(options)
        labels = options.inputs[0].labels
        return await cast("BatchFront", front).ahandle(work.lookup, prompts, on_error, labels)

    def _cache_mode(self, options: BatchOptions) -> object:
        return options.parameters.get("cache") or self._settings.cache

    def _show_estimates(self, options: BatchOptions) -> None:
        """Show the estimate of each model in a notebook, if it is above the client's setting."""
        if self._show_estimate_above is not None and in_notebook():
            from .._estimates.estimate import show

            for model, part in options.each:
                prompts = part.prompts
                if isinstance(prompts, Sequence) and not isinstance(prompts, (str, bytes)):
                    show(self._estimator(model, options, counted=False), prompts, self._show_estimate_above)
