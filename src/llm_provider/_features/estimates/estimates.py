"""What batches will cost: the methods of clients, and `Estimates` of several models. Nothing is sent."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from ..._core import doors
from ..._core.client.batch_methods import BatchOptions, Models, check_models, parse_batch
from ..._core.client.call_runner import CallRunner
from ..._core.errors import RequestError, cite
from ..._core.journey.chat import CHAT
from ..._core.journey.embed import EMBED
from ..._core.requests.checks import DeliveryOptions, one_of
from ..._core.requests.inputs import Estimable
from ..._core.requests.model_kinds import EstimateKind, kind_of
from ..._core.runtime.imports import import_optional
from ..._core.tokens.counting import Range
from ..._core.types.messages import Prompt
from ..._core.words import format_duration, format_usd
from .estimate import Estimate, Estimator, count_duplicates, estimate_texts, format_count

if TYPE_CHECKING:
    import pandas as pd

    from ..._core.journey.call import Call, Operation
    from ..._core.requests.parameters import EstimateParameters
    from ..._core.types.response import Response

_PAIRS = {
    "score": "pairs of a context and its continuations: [('text', [' more', ' other']), ...]",
    "decision": "pairs of an input and its questions: [(row['text'], questions) for row in rows]",
}
"""Kind → what its inputs are."""
_NO_CHANGE = ("on_error", "max_errors", "progress", "metadata")
"""Parameters of `score_many` and `decide_many` that change no estimate."""
_SAMPLE = 200
"""Inputs from which a batch is estimated when it begins, so that it begins without delay."""

_TITLES = ("model", "requests", "input tokens", "output tokens", "cost", "high", "time")


class Estimates(dict[str, Estimate]):
    """The estimate of each of several models by its name. `print` shows a row for each, and their total.

    >>> from llm_provider import estimate
    >>> estimates = estimate(["gpt-6.1-sol", "claude-sonnet-5-5"], ["Name a bird."], max_tokens=50)
    >>> list(estimates), estimates.total.requests
    (['gpt-6.1-sol', 'claude-sonnet-5-5'], 2)
    """

    @property
    def total(self) -> Estimate:
        """The sums of all models, which are asked side by side. The cost is None if one is unknown."""
        each, nothing = list(self.values()), Range.exactly(0)
        costs = [single.cost for single in each if single.cost is not None]
        variants = {single.variant for single in each}
        variant = variants.pop() if len(variants) == 1 else "standard"
        return Estimate(
            model=f"{len(each)} models",
            provider=", ".join(dict.fromkeys(single.provider for single in each)),
            inputs=sum(single.inputs for single in each),
            cached=sum(single.cached for single in each),
            duplicates=sum(single.duplicates for single in each),
            invalid=tuple(problem for single in each for problem in single.invalid),
            requests=sum(single.requests for single in each),
            input_tokens=sum_of(single.input_tokens for single in each),
            output_tokens=sum_of(single.output_tokens for single in each),
            cached_input_tokens=sum_of(single.cached_input_tokens for single in each),
            variant=variant,
            costs={variant: sum_of(costs)} if len(costs) == len(each) else {},
            seconds=Range(*map(max, zip(nothing, *(single.seconds for single in each), strict=True))),
            assumptions=tuple(dict.fromkeys(text for single in each for text in single.assumptions)),
        )

    def to_pandas(self) -> pd.DataFrame:
        """A pandas DataFrame with a row for each model. `total` has the sums.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        names = ("provider", "inputs", "cached", "duplicates", "invalid", "requests")
        rows = []
        for model, single in self.items():
            row = {"model": model, **{name: getattr(single, name) for name in names}}
            row |= {name: getattr(single, name).likely for name in ("input_tokens", "output_tokens")}
            low, likely, high = single.cost or (None, None, None)
            row |= {"cost_low": low, "cost": likely, "cost_high": high, "seconds": single.seconds.likely}
            rows.append(row | {"invalid": len(single.invalid)})
        frame: pd.DataFrame = import_optional("pandas", "pip install pandas").DataFrame(rows)
        return frame

    def __str__(self) -> str:
        lines = doors.html.align(_TITLES, self._rows(), _TITLES[:1])
        return "\n".join([*lines, *(f"  - {text}" for text in self._notes())])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        html = doors.html
        rows = ([html.words(name), *map(html.figure, figures)] for name, *figures in self._rows())
        notes = (html.small(f"- {text}") for text in self._notes())
        return html.block(html.table(_TITLES, rows), *notes)

    def _notes(self) -> tuple[str, ...]:
        total = self.total
        repeated = count_duplicates(total.duplicates)
        return (*([f"{total.inputs:,} inputs{repeated}"] if repeated else ()), *total.assumptions)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for name, single in {**self, "total": self.total}.items():
            cost = single.cost
            yield (
                name,
                f"{single.requests:,}",
                format_count(single.input_tokens.likely),
                format_count(single.output_tokens.likely),
                format_usd(None if cost is None else cost.likely),
                "" if cost is None else format_usd(cost.high),
                format_duration(single.seconds.likely),
            )


def add_fallbacks(estimates: Sequence[Estimate]) -> Estimate:
    """The estimate of a batch, from the estimates of its model and of the models of its `fallback`.

    The first model is likely to answer all inputs. At most, each model but the last refuses all of them and
    bills that. At least, the cheapest one answers alone.
    """
    first, *others = estimates
    if not others or not first.requests:
        return first

    def widen(each: Sequence[Range]) -> Range:
        lows, _, highs = zip(*each, strict=True)
        return Range(min(lows), each[0].likely, sum(highs))

    # A provider's batch has one model.
    known = [name for name in first.costs if name != "batch" and all(name in each.costs for each in others)]
    rest = ", ".join(single.model for single in others)
    assumption = f"{first.model} answers; at most, each model is paid before the next one is asked: {rest}"
    texts = [assumption, *(text for single in estimates for text in single.assumptions)]
    return replace(
        first,
        input_tokens=widen([single.input_tokens for single in estimates]),
        output_tokens=widen([single.output_tokens for single in estimates]),
        costs={name: widen([single.costs[name] for single in estimates]) for name in known},
        seconds=widen([single.seconds for single in estimates]),
        assumptions=tuple(dict.fromkeys(texts)),
    )


def sum_of(ranges: Iterable[Range]) -> Range:
    return reduce(Range.plus, ranges, Range.exactly(0))


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
    if runner.has_servers(options.parameters):
        await doors.mcp_tools.list_async(runner, options.parameters)
    estimates = []
    for name, part in options.each:
        # They are read here, as an iterator of the user's may belong to this thread.
        read = part.prompts
        prompts = [each async for each in read] if isinstance(read, AsyncIterable) else list(read)
        estimates.append(await asyncio.to_thread(_estimate_prompts, runner, name, options, prompts))
    return _name_each(model, estimates)


def _estimate_prompts(runner: CallRunner, model: str, options: BatchOptions, prompts: Any) -> Estimate:
    several = _estimators(runner, model, options)
    prompts = prompts if len(several) == 1 else list(prompts)
    for estimator in several:
        for prompt in estimator.fetch(prompts):
            estimator.add(prompt)
    return _price_batch(runner, options, add_fallbacks([estimator.result() for estimator in several]))


def _price_batch(runner: CallRunner, options: BatchOptions, estimate: Estimate) -> Estimate:
    """The estimate at the price of a provider's batch, if one delivers the answers."""
    is_job = options.delivery.mode in ("batch", "auto") and options.max_errors is None
    if not (is_job and runner.uses_batch_api([estimate.model], options.delivery, options.parameters)):
        return estimate
    note = "a batch of the provider answers within a day; the time is a live run's"
    variant = "batch" if "batch" in estimate.costs else estimate.variant
    return replace(estimate, variant=variant, assumptions=(note, *estimate.assumptions))


def show_estimates(runner: CallRunner, options: BatchOptions, above: float) -> None:
    """Show the estimate of a sample of each batch in a notebook, if its likely cost is above some USD."""
    from ..._core.runtime.notebooks import show

    for model, part in options.each:
        prompts = part.prompts
        if isinstance(prompts, Sequence) and not isinstance(prompts, (str, bytes)):
            estimator = _estimators(runner, model, options, counted=False)[0]
            for index in range(0, len(prompts), max(1, len(prompts) // _SAMPLE)):
                estimator.add(prompts[index])
            estimate = estimator.result(len(prompts))
            if estimate.cost is not None and estimate.cost.likely > above:
                show(estimate)


def _estimators(
    runner: CallRunner, model: str, options: BatchOptions, *, counted: bool = True
) -> list[Estimator]:
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
    form = "the texts" if kind == "embedding" else _PAIRS[kind]
    if parameters.pop("rows", None) is not None:
        raise RequestError(f"estimate(kind={kind!r}) takes no rows=, but {form}")
    for name in _NO_CHANGE if kind != "embedding" else ():
        parameters.pop(name, None)  # type: ignore[misc]  # the names of optional keys
    operation: Operation[Any, Any] = EMBED
    if kind != "embedding":
        operation = doors.score.SCORE if kind == "score" else doors.decide.DECIDE
    runner.fill(parameters, operation)
    estimates, engine = [], runner.engine
    # An iterator is read once. Each context with its continuations is a call.
    if kind == "embedding":
        listed = [inputs if isinstance(inputs, str) else list(inputs)]
    else:
        listed = list(inputs) if isinstance(inputs, Iterable) and not isinstance(inputs, str) else [inputs]
        wrong = [each for each in listed if not isinstance(each, (list, tuple)) or len(each) != 2]
        if wrong or not listed:
            raise RequestError(f"estimate(kind={kind!r}) takes {form}, not {cite((wrong or [inputs])[0])}")
    for name in model if isinstance(model, (list, tuple)) else (model,):
        requests = [operation.build(name, each, parameters, "estimate") for each in listed]
        calls = [engine.prepare(operation, request, runner.concurrency) for request in requests]
        each = estimate_texts(engine, calls, runner.prices, engine.statistics())
        if kind == "decision" and each.requests:
            again = f"the input is paid again in each of {each.requests:,} requests"
            if requests[0].draws:
                again += "; an answer is a letter, and what a model reasons before it is a guess"
            each = replace(each, assumptions=(*each.assumptions, again))
        estimates.append(each)
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
