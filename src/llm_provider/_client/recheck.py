"""Runs a recheck from its arguments to its report: `_recheck` says what is sent, and compares."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .._calls.batch.driver import Observers, iterate
from .._calls.batch.preload import load_for_batch, name_shortage
from .._calls.batch.progress import Progress
from .._calls.batch.worker_pool import LiveWork
from .._calls.call import Call
from .._calls.early_stop import EarlyStop
from .._calls.operations.chat import CHAT
from .._errors import LLMError, RequestError
from .._json_values import JSONMapping
from .._recheck.conclusion import conclude
from .._recheck.levels import BorderLevel, StoredLevel
from .._recheck.options import RecheckOptions
from .._recheck.questions import FIRST_DRAW, Selection, select_inputs, select_stored
from .._recheck.report import Recheck
from .._requests.request import check
from .._runtime import clock, event_loop, randomness
from .._types.messages import Prompt
from .._types.response import Response, Result
from .._types.results import Cost
from .batch_arguments import BatchOptions, parse_batch
from .call_runner import CallRunner

if TYPE_CHECKING:
    from .._requests.parameters import RecheckParameters

_LAST_DRAW = 2**31 - 64
_BORDER: JSONMapping = {"max_tokens": 1, "temperature": 0}
"""The parameters of border prompts, which the user's replace."""


def run_recheck(
    runner: CallRunner, answers: object, model: str | None, inputs: Any, parameters: RecheckParameters
) -> Recheck:
    """Plan, ask, and report.

    Raises:
        TypeError: the answers are no results, or there is no such parameter.
        RequestError: an argument is not valid, there is nothing to ask, or nothing could be seen.
        LLMError: all calls failed; this is the first error.
    """
    event_loop.refuse_own_thread("recheck")
    options = RecheckOptions.take_from(parameters)
    batch = parse_batch("recheck", model or "", inputs or [], parameters, runner.defaults)
    calls = _check_parameters(runner, batch)
    draw = calls.pop("draw", None)
    draw = randomness.generator.randrange(FIRST_DRAW, _LAST_DRAW) if draw is None else draw
    results = None if answers is None else _check_answers(answers)
    allowed = batch.concurrency or runner.concurrency

    def prepare(model: str, prompt: Prompt, changes: JSONMapping) -> Call[Response]:
        return runner.prepare(CHAT, model, prompt, {**calls, **changes}, allowed, "recheck")

    selection = Selection()
    if options.share and inputs is not None:
        if model is None:
            raise RequestError("model: inputs need the name of the model that answers them")
        prompts: Any = batch.inputs[0].prompts
        selection = select_inputs(runner.engine, prepare, model, prompts, results)
    elif options.share and (results is not None or model is not None):
        selection = select_stored(runner.engine, prepare, model, results)
    name = model or (selection.questions[0][0].request.model if selection.questions else None)
    if name is None or not (selection.questions or options.history):
        reasons = "".join(f"; {count:,}: {reason}" for reason, count in selection.unusable.items())
        raise RequestError(f"recheck() needs answers or a model: no stored question can be asked{reasons}")

    # Border prompts are first, and each test has its part of the false alarms.
    levels: list[BorderLevel | StoredLevel] = []
    alpha = options.alpha / (bool(selection.questions) + bool(options.history))
    budgets = [each for each in (calls.get("budget"), runner.engine.settings.budget) if each is not None]
    left = min((float(budget.left) for budget in budgets), default=None)
    if options.history:
        prepare_border = functools.partial(prepare, name, changes={**_BORDER, **calls})
        levels.append(BorderLevel(prepare_border, runner.prices(), options, alpha, left, draw))
        left = left and left - (levels[0].plan.expected_cost or 0)
    if selection.questions:
        levels.append(StoredLevel(selection, options, alpha, left, draw))
    plan = Recheck(
        model=name,
        outcome="planned",
        draw=draw,
        time=clock.time(),
        before={},
        after={},
        comparisons=tuple(level.plan for level in levels),
        persistence=options.persistence if options.history else 1,
        cost=Cost(),
    )
    if options.dry_run:
        return plan
    try:
        comparisons = tuple(level.ask(functools.partial(_send, runner, batch)) for level in levels)
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"answers are stored; the same recheck with draw={draw} goes on")
        raise
    sent = [result for level in levels for result in level.results]
    errors = [result for result in sent if isinstance(result, LLMError)]
    if errors and len(errors) == len(sent):
        raise errors[0]
    return conclude(plan, levels, comparisons)


def _check_parameters(runner: CallRunner, batch: BatchOptions) -> dict[str, Any]:
    """The parameters of the calls; `RequestError` for those that a recheck cannot have."""
    calls = dict(batch.parameters)
    if batch.delivery.mode != "live":
        raise RequestError("delivery: recheck() asks live: leave it out")
    cache = calls.get("cache") or runner.engine.settings.cache
    if cache == "refresh":
        raise RequestError("cache='refresh' replaces stored answers, and a recheck keeps them: leave it out")
    if calls.get("draw") is not None and check("draw", calls["draw"]) < FIRST_DRAW:
        raise RequestError(f"draw is that of an earlier report, from {FIRST_DRAW:,} on: leave it out")
    return calls


def _send(runner: CallRunner, batch: BatchOptions, calls: list[Call[Response]]) -> list[Result]:
    """The results of calls, which go the way of a batch's calls."""
    engine, early_stop = runner.engine, EarlyStop()
    runner.start()

    def look_up(prepared: Iterable[Any]) -> Iterator[Result | Call[Response]]:
        for call in prepared:
            call.early_stop = early_stop
            try:
                yield engine.lookup(call) or call
            except LLMError as error:
                yield error

    most, load = (batch.concurrency or runner.concurrency).most, functools.partial(load_for_batch, engine)
    work = LiveWork(look_up, runner.run, engine.cancel, most, load, early_stop)
    begin = None
    if batch.progress is not False:
        names = [call.request.model for call in calls[:1]]
        begin = functools.partial(
            Progress, len(calls), batch.progress, engine.statistics, engine.waits, names
        )
    prompts: Any = calls
    with name_shortage():
        results = dict(iterate([(work, prompts)], Observers(runner.tell, begin)))
    return [results[index] for index in range(len(calls))]


def _check_answers(answers: Any) -> list[Result]:
    """The answers of a recheck; `TypeError` if they are no results, `RequestError` for several models."""
    if isinstance(answers, Mapping):
        remedy = "{model: recheck(each) for model, each in answers.items()}"
        raise RequestError(f"answers has the results of several models: write {remedy}")
    listed: list[Any] = (
        [answers] if not isinstance(answers, Iterable) or isinstance(answers, str) else list(answers)
    )
    for each in listed:
        if not isinstance(each, (Response, LLMError)):
            kind = type(each).__name__
            raise TypeError(f"answers are Results or responses, not {kind}; embeddings cannot be rechecked")
    return listed
