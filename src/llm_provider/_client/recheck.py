"""Runs a recheck from its arguments to its report: `_recheck` says what is asked, and compares."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._calls.call import Call
from .._calls.lifecycle.engine import Engine
from .._calls.operations.chat import CHAT
from .._errors import CacheMissError, LLMError, RequestError
from .._json_values import JSONObject
from .._recheck.comparisons import BorderPrompts, StoredAnswers, read_content
from .._recheck.report import Recheck
from .._recheck.statistics import USUAL_FLOOR
from .._requests.checks import flag, number
from .._requests.request import check
from .._runtime import clock, randomness
from .._runtime.files import check_path
from .._types.messages import Prompt
from .._types.response import Response
from .._types.results import Results
from .batch_arguments import OF_BATCHES, parse_batch
from .batch_methods import BatchMethods
from .call_runner import CallRunner

_OPTIONS: Mapping[str, tuple[object, Callable[[str, object], Any]]] = {
    "share": (1.0, number(0.0001, 1)),
    "floor": (None, number(0, 0.5)),
    "detect": (0.05, number(0.001, 1)),
    "compare": (read_content, lambda name, value: value),
    "history": (None, check_path),
    "persistence": (3, number(1, 365, whole=True)),
    "dry_run": (False, flag),
}
"""The default and the check of each parameter that a recheck has and a batch has not."""

_BORDER: JSONObject = {"max_tokens": 1, "temperature": 0}
"""The parameters of border prompts, which the user's replace."""
_NEW_DRAWS = range(1_000_000_000, 2**31 - 64)
"""The samples that rechecks ask for. Those of other calls begin at 0."""


def run_recheck(client: BatchMethods, runner: CallRunner, model: str, inputs: Any, values: Any) -> Recheck:
    """Plan, ask, and report. It raises what `recheck` raises."""
    options = _take_options(values)
    history, persistence, is_dry = (options.pop(name) for name in ("history", "persistence", "dry_run"))
    if isinstance(inputs, Results):
        system = {"role": "system", "content": values.get("system", runner.defaults.get("system"))}
        prompts: Any = [each.prompt for each in inputs if isinstance(each, Response)]
        # The prompt of an answer has the system prompt, which the parameters of the calls have too.
        inputs = [
            prompt[1:] if isinstance(prompt, list) and prompt[0] == system else prompt
            for prompt in prompts
            if prompt
        ]
    if not isinstance(model, str):
        raise RequestError("the model comes first: recheck(MODEL, results), with the parameters of the calls")
    if (inputs is None) == (history is None):
        raise RequestError("recheck() takes inputs with stored answers, or a history of border prompts")
    batch = parse_batch("recheck", model, [] if inputs is None else inputs, values, runner.defaults)
    calls = {name: value for name, value in values.items() if value is not None}
    if "fallback" in calls:
        raise RequestError("fallback: a recheck asks one model: leave it out")
    calls |= {"n": 1, "budget": batch.parameters.get("budget")}
    for name in ("rows", "metadata", "max_tool_rounds"):
        calls.pop(name, None)
    draw = check("draw", calls.pop("draw", randomness.generator.choice(_NEW_DRAWS)))
    if draw not in _NEW_DRAWS:
        raise RequestError(f"draw is that of an earlier recheck, from {_NEW_DRAWS[0]:,} on: leave it out")
    budgets = [budget for budget in (calls["budget"], runner.engine.settings.budget) if budget is not None]
    left = min((float(budget.left) for budget in budgets), default=None)
    plan = Recheck(model=model, kind="stored" if history is None else "border", draw=draw, time=clock.time())
    calls = calls if history is None else {**_BORDER, **calls}
    own = {name: value for name, value in calls.items() if name not in OF_BATCHES}

    def prepare(prompt: Prompt) -> Call[Response]:
        parameters = {**own, "cache": "only"}
        return runner.prepare(CHAT, model, prompt, parameters, runner.concurrency, "recheck")

    test: BorderPrompts | StoredAnswers
    if history is None:
        prompts = batch.inputs[0].prompts
        pairs, left_out = _read_stored(runner.engine, prepare, prompts)
        test, plan = StoredAnswers(pairs=pairs, **options), replace(plan, left_out=left_out)
    else:
        cost = client.estimate(model, ["?"], **calls).cost
        price = None if cost is None else cost.likely
        test = BorderPrompts(Path(history).expanduser(), prepare("?").key(0)[:32], price)
        plan = replace(plan, persistence=persistence)
    plan = test.plan(plan, left)
    if is_dry:
        return plan
    try:
        return test.ask(plan, functools.partial(client.call_many, model, **calls))
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"answers are stored; the same recheck with draw={draw} goes on")
        raise


def _take_options(parameters: Any) -> JSONObject:
    """Remove the parameters of a recheck from those of a batch; `RequestError` for a wrong value."""
    wrong, kind = ["persistence"], "border prompts, with a history"
    if parameters.get("history") is not None:
        wrong, kind = ["share", "floor", "detect", "compare"], "stored answers, without a history"
    if given := [name for name in wrong if parameters.get(name) is not None]:
        raise RequestError(f"{given[0]} is for a recheck of {kind}")
    options: JSONObject = {}
    for name, (usual, check_value) in _OPTIONS.items():
        value = parameters.pop(name, None)
        options[name] = usual if value is None else check_value(name, value)
    floor = USUAL_FLOOR if options["floor"] is None else options["floor"]
    if options["detect"] <= floor:
        raise RequestError(f"detect is the share that differs after a change: it must be above {floor:g}")
    return options


def _read_stored(
    engine: Engine, prepare: Callable[[Prompt], Call[Response]], prompts: Iterable[Prompt]
) -> tuple[list[tuple[Prompt, Response]], int]:
    """The prompts with stored answers, and the number of the others; `RequestError` if none has one."""
    pairs, misses = dict[str, tuple[Prompt, Response]](), list[LLMError]()
    for prompt in prompts:
        call = prepare(prompt)
        try:
            answer = engine.lookup(call)
        except CacheMissError as error:
            misses.append(error)
        else:
            # Equal prompts have the same answer.
            pairs |= {call.key(0): (prompt, answer)} if answer else {}
    if not pairs:
        reason = f": {misses[0]}" if misses else ""
        raise RequestError(f"no stored answer belongs to this model, these inputs and parameters{reason}")
    return list(pairs.values()), len(misses)
