"""Runs a recheck from its arguments to its report: `_recheck` says what is asked, and compares."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from .._calls.operations.chat import CHAT
from .._errors import RequestError
from .._json_values import JSONObject
from .._recheck.border_prompts import BorderPrompts
from .._recheck.report import Recheck
from .._recheck.statistics import USUAL_FLOOR
from .._recheck.stored_answers import StoredAnswers, read_content
from .._requests.checks import flag, number
from .._requests.request import check
from .._runtime import randomness
from .._runtime.files import check_path
from .._types.messages import Prompt
from .._types.response import Response
from .._types.results import Results
from .batch_arguments import OF_BATCHES, parse_batch
from .call_runner import CallRunner

if TYPE_CHECKING:
    from .client import Client

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


def run_recheck(client: Client, runner: CallRunner, model: str, inputs: Any, parameters: Any) -> Recheck:
    """Plan, ask, and report. It raises what `recheck` raises."""
    options = _take_options(parameters)
    history, persistence, is_dry = (options.pop(name) for name in ("history", "persistence", "dry_run"))
    if isinstance(inputs, Results):
        inputs = [each.prompt for each in inputs if isinstance(each, Response) and each.prompt is not None]
    if (inputs is None) == (history is None):
        raise RequestError(
            "recheck() compares the stored answers to inputs, or the border prompts of a history"
        )
    batch = parse_batch("recheck", model, inputs or [], parameters, runner.defaults)
    calls = {**parameters, "budget": batch.parameters.get("budget"), "n": 1}
    for name in ("rows", "metadata", "max_tool_rounds"):
        calls.pop(name, None)
    draw = calls.pop("draw", None)
    draw = randomness.generator.choice(_NEW_DRAWS) if draw is None else check("draw", draw)
    if draw not in _NEW_DRAWS:
        raise RequestError(f"draw is that of an earlier recheck, from {_NEW_DRAWS[0]:,} on: leave it out")
    budgets = [budget for budget in (calls["budget"], client.budget) if budget is not None]
    left = min((float(budget.left) for budget in budgets), default=None)
    test: BorderPrompts | StoredAnswers
    if history is not None:
        calls = {**_BORDER, **{name: value for name, value in calls.items() if value is not None}}
        own = {name: value for name, value in calls.items() if name not in OF_BATCHES}
        target = runner.prepare(CHAT, model, "?", own, runner.concurrency, "recheck").key(0)[:32]
        cost = client.estimate(model, ["?"], **calls).cost
        price = None if cost is None else cost.likely
        test = BorderPrompts.read(Path(history).expanduser(), target, price, left)
        plan = test.plan(model, draw, persistence)
    else:
        pairs, left_out = _read_stored(client, model, list(cast("Any", batch.inputs[0].prompts)), calls)
        test = StoredAnswers(pairs=pairs, **options)
        plan = replace(test.plan(model, draw, left), left_out=left_out)
    if is_dry:
        return plan
    try:
        return test.ask(plan, functools.partial(client.call_many, model, **calls))
    except KeyboardInterrupt as interrupt:
        interrupt.add_note(f"answers are stored; the same recheck with draw={draw} goes on")
        raise


def _take_options(parameters: Any) -> JSONObject:
    """Remove the parameters of a recheck from those of a batch; `RequestError` for a wrong value."""
    options: JSONObject = {}
    for name, (default, check_value) in _OPTIONS.items():
        value = parameters.pop(name, None)
        options[name] = default if value is None else check_value(name, value)
    floor = USUAL_FLOOR if options["floor"] is None else options["floor"]
    if options["detect"] <= floor:
        raise RequestError(f"detect is the share that differs after a change: it must be above {floor:g}")
    return options


def _read_stored(
    client: Client, model: str, prompts: list[Prompt], calls: JSONObject
) -> tuple[list[tuple[Prompt, Response]], int]:
    """Each prompt with its stored answer, and the number of prompts without one.

    Raises:
        RequestError: there is no stored answer.
    """
    reading = {"cache": "only", "delivery": None, "budget": None, "progress": False}
    stored = client.call_many(model, prompts, **{**calls, **reading})
    # Equal prompts have the same answer.
    pairs = {
        repr(prompt): (prompt, answer)
        for prompt, answer in zip(prompts, stored, strict=True)
        if isinstance(answer, Response)
    }
    if not pairs:
        reason = f": {stored[0]}" if stored else ""
        raise RequestError(f"no stored answer belongs to this model, these inputs and parameters{reason}")
    return list(pairs.values()), len(stored.errors)
