"""The methods of `Client` for many inputs, and their arguments, which are parsed once into frozen objects."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, Unpack, cast

from .. import doors
from ..batches.lookup import load_for_batch, name_shortage
from ..errors import RequestError
from ..hints import Hinting
from ..journey.call import Operation
from ..journey.chat import CHAT
from ..json_values import JSONMapping, JSONObject
from ..pace.call_limits import DEFAULT_BATCH_PATIENCE, Concurrency, concurrency
from ..requests.checks import DeliveryOptions, check_max_errors, flag, one_of
from ..requests.inputs import AsyncInputs, BatchInputs, Estimable, Inputs, batch_inputs, count_errors
from ..requests.parameter_table import CHECKS, fill
from ..requests.request import check, seal
from ..requests.signatures import take_types_of, with_parameters
from ..runtime.notebooks import in_notebook
from ..types.messages import Prompt
from ..types.response import Response, Result
from .call_runner import CallRunner

if TYPE_CHECKING:
    from ..._features.decide.decisions import Decisions
    from ..._features.decide.questions import Questions
    from ..._features.estimates.estimate import Estimate
    from ..._features.estimates.estimates import Estimates
    from ..._features.progress.bar import Progress
    from ..._features.score.scores import Scores
    from ..batches.driver import Batches, BatchPrompts, Observers
    from ..batches.handle import Batch
    from ..batches.journal import Record
    from ..batches.work import BatchWork
    from ..batches.worker_pool import LiveWork
    from ..errors import LLMError
    from ..journey.call import Call
    from ..requests.parameters import (
        BatchParameters,
        DecideManyParameters,
        EstimateParameters,
        Parameters,
        ScoreManyParameters,
    )
    from ..types.results import Results
    from . import functions, model_functions

T = TypeVar("T")


class BatchMethods(Hinting):
    """The methods of a client for many inputs."""

    def __init__(self, runner: CallRunner) -> None:
        self._runner = runner

    @take_types_of(lambda: model_functions.estimate)
    @with_parameters
    def estimate(
        self, model: str | Models, inputs: Estimable, **parameters: Unpack[EstimateParameters]
    ) -> Estimate | Estimates:
        """`llm_provider.estimate` with the settings and defaults of this client."""
        seal(parameters)
        return doors.estimates.estimate_batch(self._runner, model, inputs, parameters)

    @take_types_of(lambda: model_functions.aestimate)
    @with_parameters
    async def aestimate(
        self,
        model: str | Models,
        inputs: Estimable | AsyncIterable[Prompt],
        **parameters: Unpack[EstimateParameters],
    ) -> Estimate | Estimates:
        """`llm_provider.aestimate` with the settings and defaults of this client."""
        seal(parameters)
        return await doors.estimates.aestimate_batch(self._runner, model, inputs, parameters)

    @take_types_of(lambda: functions.iter_many)
    @with_parameters
    def iter_many(
        self, model: str, inputs: Inputs, **parameters: Unpack[BatchParameters]
    ) -> Iterator[tuple[int, Result]]:
        """`llm_provider.iter_many` with the settings and defaults of this client."""
        options = self._parse("iter_many", model, inputs, parameters)
        results: Iterator[tuple[int, Result]] = self._iterate(options, feeds=True)
        return results

    def _parse(
        self, function: str, model: str | Models, inputs: Any, parameters: Any, on_error: OnError = "return"
    ) -> BatchOptions:
        seal(parameters)
        return parse_batch(function, model, inputs, parameters, self._runner.defaults, on_error)

    def _iterate(self, options: BatchOptions, *, feeds: bool = False) -> Any:
        """The results of a batch as they come; asynchronously for an asynchronous function."""
        if options.awaited and self._runner.has_servers(options.parameters):
            return self._list_and_iterate(options, feeds=feeds)
        with name_shortage():
            from ..batches.driver import aiterate, iterate

            run: Callable[..., object] = aiterate if options.awaited else iterate
            batch = options.models, options.delivery, options.parameters
            if options.max_errors is None and self._runner.uses_batch_api(*batch):
                return run(*self._jobs(options))
            return run(*self._live_batches(options), feeds=feeds)

    async def _list_and_iterate(self, options: BatchOptions, *, feeds: bool) -> AsyncIterator[Any]:
        """`_iterate` for an event loop, which servers with tools do not block while they start."""
        await doors.mcp_tools.list_async(self._runner, options.parameters)
        async with contextlib.aclosing(self._iterate(options, feeds=feeds)) as results:
            async for result in results:
                yield result

    @take_types_of(lambda: functions.aiter_many)
    @with_parameters
    def aiter_many(
        self, model: str, inputs: AsyncInputs, **parameters: Unpack[BatchParameters]
    ) -> AsyncIterator[tuple[int, Result]]:
        """`llm_provider.aiter_many` with the settings and defaults of this client."""
        options = self._parse("aiter_many", model, inputs, parameters)
        results: AsyncIterator[tuple[int, Result]] = self._iterate(options, feeds=True)
        return results

    def _live_batches(self, options: BatchOptions) -> tuple[Batches, Observers]:
        """The batch of each model, whose calls are sent one by one, and what sees their results."""
        batches = [(self._live_work(options, model, part), part.prompts) for model, part in options.each]
        begin = None
        if options.progress is not False:
            engine = self._runner.engine
            arguments = (options.total, options.progress, engine.statistics, engine.waits, options.models)
            begin = functools.partial(doors.progress_bar.Progress, *arguments)
        return batches, self._observers(options, begin)

    def _jobs(self, options: BatchOptions) -> tuple[list[tuple[BatchWork, BatchPrompts]], Observers]:
        """The job of each model for the provider's batch API, and what sees their results."""
        from ..batches.work import BatchWork

        engine, jobs = self._runner.engine, []
        for model, part in options.each:
            live = self._live_work(options, model, part)
            jobs.append((BatchWork(engine, live.lookup, live.stored, options.delivery), part.prompts))

        def list_records() -> list[Record]:
            return [record for work, _ in jobs for record in work.known]

        arguments = (options.total, options.progress, list_records, options.models)
        begin = functools.partial(doors.progress_bar.BatchProgress, *arguments)
        return jobs, self._observers(options, None if options.progress is False else begin)

    def _observers(self, options: BatchOptions, begin: Callable[[], Progress] | None) -> Observers:
        from ..batches.driver import Observers

        return Observers(self._runner.on_result, begin, options.inputs[0].labels)

    def _live_work(self, options: BatchOptions, model: str, inputs: BatchInputs) -> LiveWork:
        """How the inputs of a model are looked up and sent. What would fail each of them is found here."""
        from ..batches.lookup import batch_lookup, run_with_metadata
        from ..batches.worker_pool import LiveWork, StoredAnswers
        from ..journey.sent_requests import EarlyStop
        from ..runtime import event_loop

        event_loop.refuse_own_thread(options.function)
        parameters = cast("Parameters", dict(options.parameters))
        runner, engine, metadata = self._runner, self._runner.engine, inputs.metadata
        allowed = options.concurrency or runner.concurrency
        own_patience = parameters.get("outage_patience")
        patience = engine.settings.outage_patience if own_patience is None else own_patience
        first: Call[Response] | None = None
        early_stop = EarlyStop(count_errors(options.max_errors, inputs.prompts))

        def prepare(prompt: Prompt) -> Call[Response]:
            nonlocal first
            call = runner.prepare(options.operation, model, prompt, parameters, allowed, options.function)
            if first is None:
                # It is made here, for the template. Its deadline and patience hold for the whole batch.
                first = call
                runner.warn_of_budget(call)
                if patience is None:
                    call.patience.seconds = DEFAULT_BATCH_PATIENCE
            call.deadline, call.patience, call.early_stop = first.deadline, first.patience, early_stop
            for each in () if call.relay is None else call.relay.calls[:-1]:
                # A model that another stands in for stops only its own calls.
                each.early_stop = early_stop.of_fallback(each.request.model)
            return call

        runner.start()
        lookup = batch_lookup(engine, prepare, metadata, options.example)
        request = cast("Call[Response]", first).request  # `prepare` has set it
        run: Callable[..., Awaitable[Response]] = engine.run if request.in_batch is None else runner.run
        # Each round of tools marks its own prefix, which the next round reads.
        prompt_caching = request.options and request.options.get("prompt_caching")
        has_rounds = request.max_tool_rounds is not None
        caches_prompts = options.example is None and bool(prompt_caching) and not has_rounds
        if has_rounds:
            lookup, run = doors.tool_loop.batch_of(engine, prepare, metadata, here=options.awaited)
        if metadata is not None:
            run = functools.partial(run_with_metadata, run)
        load = functools.partial(load_for_batch, engine)
        reread = None if has_rounds else prepare
        stored = StoredAnswers(engine, request.cache or engine.settings.cache, reread)
        return LiveWork(lookup, run, engine.cancel, allowed.most, load, stored, early_stop, caches_prompts)

    @take_types_of(lambda: functions.call_many)
    @with_parameters
    def call_many(
        self,
        model: str | Models,
        inputs: Inputs,
        *,
        on_error: OnError = "return",
        **parameters: Unpack[BatchParameters],
    ) -> Results[Result] | Results[Response] | dict[str, Any]:
        """`llm_provider.call_many` with the settings and defaults of this client."""
        options = self._parse("call_many", model, inputs, parameters, on_error)
        results: Results[Result] | dict[str, Any] = self._call_inputs(options, model)
        return results

    def _call_inputs(self, options: BatchOptions, model: str | Models = "") -> Any:
        """The results of a batch in the order of its inputs; by model if these are several."""
        results = self._begin(options)
        results.update(self._iterate(options))
        return self._put_in_order(model, results, options.on_error)

    @take_types_of(lambda: functions.acall_many)
    @with_parameters
    async def acall_many(
        self,
        model: str | Models,
        inputs: AsyncInputs,
        *,
        on_error: OnError = "return",
        **parameters: Unpack[BatchParameters],
    ) -> Results[Result] | Results[Response] | dict[str, Any]:
        """`llm_provider.acall_many` with the settings and defaults of this client."""
        options = self._parse("acall_many", model, inputs, parameters, on_error)
        results = self._begin(options)
        async for index, result in self._iterate(options):
            results[index] = result
        return self._put_in_order(model, results, on_error)

    @with_parameters
    def score_many(
        self,
        model: str,
        contexts: Iterable[str],
        continuations: Iterable[str] | Iterable[Iterable[str]],
        *,
        on_error: OnError = "return",
        **parameters: Unpack[ScoreManyParameters],
    ) -> Results[Scores | LLMError]:
        """`llm_provider.score_many` with the settings and defaults of this client."""
        seal(parameters)
        options = doors.score.parse_scores(model, contexts, continuations, parameters, on_error)
        results: Results[Scores | LLMError] = self._call_inputs(options)
        return results

    @with_parameters
    def decide_many(
        self,
        model: str,
        inputs: Inputs,
        questions: Questions,
        *,
        on_error: OnError = "return",
        **parameters: Unpack[DecideManyParameters],
    ) -> Results[Decisions | LLMError]:
        """`llm_provider.decide_many` with the settings and defaults of this client."""
        seal(parameters)
        options = doors.decide.parse_decisions("decide_many", model, inputs, questions, parameters, on_error)
        results: Results[Decisions | LLMError] = self._call_inputs(options)
        return results

    @with_parameters
    async def adecide_many(
        self,
        model: str,
        inputs: AsyncInputs,
        questions: Questions,
        *,
        on_error: OnError = "return",
        **parameters: Unpack[DecideManyParameters],
    ) -> Results[Decisions | LLMError]:
        """`llm_provider.adecide_many` with the settings and defaults of this client."""
        seal(parameters)
        options = doors.decide.parse_decisions("adecide_many", model, inputs, questions, parameters, on_error)
        results = {index: result async for index, result in self._iterate(options)}
        return cast("Results[Decisions | LLMError]", self._put_in_order(model, results, on_error))

    @with_parameters
    def submit_many(
        self,
        model: str,
        inputs: Inputs,
        *,
        on_error: OnError = "return",
        **parameters: Unpack[BatchParameters],
    ) -> Batch:
        """`llm_provider.submit_many` with the settings and defaults of this client."""
        options = self._parse("submit_many", model, inputs, parameters, on_error)
        from ..batches.handle import submit_inputs

        self._runner.uses_batch_api(options.models, options.delivery, options.parameters)
        [(work, inputs_read)], observers = self._jobs(options)
        prompts = cast("Iterable[Prompt]", inputs_read)
        return submit_inputs(self._runner.engine, work, prompts, on_error, observers)

    @with_parameters
    async def asubmit_many(
        self,
        model: str,
        inputs: AsyncInputs,
        *,
        on_error: OnError = "return",
        **parameters: Unpack[BatchParameters],
    ) -> Batch:
        """`llm_provider.asubmit_many` with the settings and defaults of this client."""
        options = self._parse("asubmit_many", model, inputs, parameters, on_error)
        if self._runner.has_servers(options.parameters):
            await doors.mcp_tools.list_async(self._runner, options.parameters)
        from ..batches.handle import asubmit_inputs

        self._runner.uses_batch_api(options.models, options.delivery, options.parameters)
        [(work, prompts)], observers = self._jobs(options)
        return await asubmit_inputs(self._runner.engine, work, prompts, on_error, observers)

    def _begin(self, options: BatchOptions) -> dict[int, Result]:
        """Show an estimate in a notebook. Returns a dict for the results of a batch."""
        settings = self._runner.engine.settings
        if settings.show_estimate_above is not None and options.example is None and in_notebook():
            doors.estimates.show_estimates(self._runner, options, settings.show_estimate_above)
        return {}

    def _put_in_order(
        self, model: str | Models, results: dict[int, Result], on_error: OnError
    ) -> Results[Result] | dict[str, Any]:
        from ..batches.driver import in_order

        ordered = in_order(results, on_error)
        return by_model(model, ordered) if isinstance(model, (list, tuple)) else ordered


OnError = Literal["return", "raise"]
Models: TypeAlias = list[str] | tuple[str, ...]
"""Several models, which get the same inputs."""

check_on_error = one_of(OnError)

OF_BATCHES = ("max_concurrent", "max_errors", "progress", "delivery", "resend", "batch_size", "rows")
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
    max_errors: float | None = None
    """How many inputs of a model may fail before its batch ends: a number, or a share below 1."""
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
    for name in parameters:
        if name not in CHECKS and name not in OF_BATCHES:
            more = () if function.endswith("iter_many") else ("on_error",)
            raise TypeError(doors.remedies.describe_unexpected(function, name, [*CHECKS, *OF_BATCHES, *more]))
    calls = dict(cast("JSONMapping", parameters))
    most, progress, max_errors = take_common(calls)
    check_on_error("on_error", on_error)
    submits = function.endswith("submit_many")
    delivery = DeliveryOptions.take_from(calls, "batch" if submits else "live", calls.pop("batch_size", None))
    if submits and delivery.mode not in ("batch", "background"):
        raise RequestError(
            f"delivery: {function}() submits a batch, and {delivery.mode!r} may send live: leave delivery "
            "out, or write call_many()"
        )
    if max_errors is not None and delivery.mode == "batch":
        raise RequestError(
            "max_errors cannot end a provider's batch: use delivery='live' or 'auto', or leave max_errors out"
        )
    awaited = function.startswith("a")
    # A single mapping stays, as every request has it. Other values travel with the inputs.
    metadata = None if isinstance(calls.get("metadata"), Mapping) else calls.pop("metadata", None)
    parsed = batch_inputs(inputs, calls.pop("rows", None), metadata, awaited=awaited)
    fill(calls, defaults)
    if delivery.background is not None:
        calls |= {"delivery": "background", "background_options": delivery.background}
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
        max_errors=max_errors,
    )


def take_common(calls: JSONObject) -> tuple[Concurrency | None, bool | None, float | None]:
    """Remove `max_concurrent`, `progress` and `max_errors`, and check the budgets, which all calls share."""
    most, progress = calls.pop("max_concurrent", None), calls.pop("progress", None)
    max_errors = calls.pop("max_errors", None)
    if most is not None:
        most = concurrency(most)
    if progress is not None:
        flag("progress", progress)
    budgets = [name for name in ("budget", "token_budget") if calls.get(name) is not None]
    calls |= {name: check(name, calls[name]) for name in budgets}
    return most, progress, None if max_errors is None else check_max_errors("max_errors", max_errors)


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
