"""Asks stored questions again: a chat with the payload of a cache entry."""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import orjson

from ..._core.client.batch_methods import OF_BATCHES, BatchMethods, BatchOptions, parse_batch
from ..._core.client.call_runner import CallRunner
from ..._core.errors import LLMError, RequestError, cite
from ..._core.formats.protocol import Adapter, EncodedRequest
from ..._core.journey.call import Call
from ..._core.journey.chat import CHAT, Chat
from ..._core.journey.engine import Engine
from ..._core.json_values import JSONMapping, JSONObject
from ..._core.requests.checks import flag, number, text
from ..._core.requests.inputs import BatchInputs
from ..._core.requests.parameter_table import CHECKS
from ..._core.requests.request import Request, check
from ..._core.requests.routing import Target
from ..._core.runtime import clock, randomness
from ..._core.runtime.files import check_path
from ..._core.runtime.json_pieces import canonical
from ..._core.types.response import Response
from ..._core.types.results import Results
from .comparisons import Ask, BorderPrompts, StoredAnswers, read_content
from .report import USUAL_FLOOR, Recheck

if TYPE_CHECKING:
    from ..cache_care.maintenance import Selection

PARAMETERS = (
    "api_key", "base_url", "budget", "cache", "deadline", "draw", "extra_headers", "in_batch", "max_retries",
    "outage_patience", "strict_model", "timeout", "token_budget",
)  # fmt: skip
"""The parameters of a stored question that its payload does not have."""

_UPLOAD = b'"llm_provider:'
"""The beginning of the reference to a file, whose contents are not in the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRequest(Request):
    """A request that is known by its payload."""

    question: JSONMapping

    @classmethod
    def build_stored(cls, model: str, question: JSONMapping, parameters: Any, function: str) -> Self:
        """Check the parameters that a stored question may have; the parameters in its payload stay."""
        own: Any = {name: value for name, value in parameters.items() if name in PARAMETERS}
        built = Request.build(model, "?", own, function)
        values = {each.name: getattr(built, each.name) for each in fields(Request) if each.init}
        if question["operation"].endswith("/interactions"):
            values["endpoint"] = "interactions"
        return cls(**{**values, "messages": (), "question": question})


class StoredChat(Chat):
    """A chat whose inputs are the questions of cache entries. Their payloads are sent as they are."""

    defaults = PARAMETERS
    build: Callable[..., Request] = staticmethod(StoredRequest.build_stored)

    def encode(self, request: Any, target: Target, adapter: Adapter) -> EncodedRequest:
        question = request.question
        return EncodedRequest(question["operation"], question["payload"], request.extra_headers or {})


STORED_CHAT = StoredChat()


def _is_whole(payload: JSONMapping) -> bool:
    """Whether a payload in the order of the cache, which sorts, is the one that was sent.

    Models write the fields of a schema in its order, which is lost. Parameters of tools are sent sorted,
    unless there is such a schema.
    """
    answer = _count_fields({name: value for name, value in payload.items() if name != "tools"})
    return (not answer or max(answer, _count_fields(payload)) < 2) and _UPLOAD not in orjson.dumps(payload)


def _count_fields(value: Any) -> int:
    """The most fields of an object that a schema within JSON describes."""
    if isinstance(value, dict):
        fields = value.get("properties")
        own = len(fields) if isinstance(fields, dict) else 0
        return max([own, *map(_count_fields, value.values())])
    return max(map(_count_fields, value), default=0) if isinstance(value, list) else 0


def _check_function(name: str, value: Any) -> Any:
    if not callable(value) or inspect.iscoroutinefunction(value):
        example = "lambda answer: answer.parsed"
        raise RequestError(f"{name} must be a function of an answer, such as {example}, not {cite(value)}")
    return value


_OPTIONS: Mapping[str, tuple[object, Callable[[str, object], Any]]] = {
    "share": (1.0, number(0.0001, 1)),
    "floor": (None, number(0, 0.5)),
    "detect": (0.05, number(0.001, 1)),
    "compare": (read_content, _check_function),
    "history": (None, check_path),
    "persistence": (3, number(1, 365, whole=True)),
    "dry_run": (False, flag),
    "tag": (None, text),
    "ledger": (None, check_path),
}
"""The default and the check of each parameter that a recheck has and a batch has not."""

_BORDER: JSONObject = {"max_tokens": 1, "temperature": 0}
"""The parameters of border prompts, which the user's replace."""
_NEW_DRAWS = range(1_000_000_000, 2**31 - 64)
"""The samples that rechecks ask for. Samples of other calls begin at 0."""


_MOST_READ = 10_000
"""The most stored questions of a selection that are read. Keys are hashes, so the first are a sample."""


def run_recheck(client: BatchMethods, runner: CallRunner, model: str, inputs: Any, values: Any) -> Recheck:
    """Plan, ask, and report. It raises what `recheck` raises."""
    options = _take_options(values, has_inputs=inputs is not None)
    names = ("history", "persistence", "dry_run", "tag", "ledger")
    history, persistence, is_dry, tag, ledger = (options.pop(name) for name in names)
    prompts: Any
    if isinstance(inputs, Results):
        system = {"role": "system", "content": values.get("system", runner.defaults.get("system"))}
        prompts = [each.prompt for each in inputs if isinstance(each, Response) and each.prompt]
        # The prompt of an answer has the system prompt, which the parameters of the calls have too.
        has_system = [isinstance(prompt, list) and prompt[0] == system for prompt in prompts]
        inputs = [prompt[1:] if has else prompt for prompt, has in zip(prompts, has_system, strict=True)]
    if not isinstance(model, str):
        raise RequestError("the model comes first: recheck(MODEL, results), with the parameters of the calls")
    batch = parse_batch("recheck", model, [] if inputs is None else inputs, values, runner.defaults)
    of_batches = ("rows", "metadata", "max_tool_rounds")
    calls = {name: value for name, value in values.items() if value is not None and name not in of_batches}
    if "fallback" in calls:
        raise RequestError("fallback: a recheck asks one model: leave it out")
    calls |= {"n": 1, **{name: batch.parameters.get(name) for name in ("budget", "token_budget")}}
    draw = check("draw", calls.pop("draw", randomness.generator.choice(_NEW_DRAWS)))
    if draw not in _NEW_DRAWS:
        raise RequestError(f"draw is that of an earlier recheck, from {_NEW_DRAWS[0]:,} on: leave it out")
    budgets = [budget for budget in (calls["budget"], runner.engine.settings.budget) if budget is not None]
    left = min((float(budget.left) for budget in budgets), default=None)
    plan = Recheck(model=model, kind="stored" if history is None else "border", draw=draw, time=clock.time())
    calls = calls if history is None else {**_BORDER, **calls}
    own = {name: value for name, value in calls.items() if name not in OF_BATCHES}
    ask: Ask = functools.partial(client.call_many, model, **calls)

    def prepare(prompt: Any, operation: Any = CHAT, **more: Any) -> Call[Response]:
        parameters = {**own, **more, "cache": "only"}
        return runner.prepare(operation, model, prompt, parameters, runner.concurrency, "recheck")

    test: BorderPrompts | StoredAnswers
    questions: Iterable[tuple[Any, Call[Response] | None]]
    if history is not None:
        cost = client.estimate(model, ["?"], **calls).cost
        price = None if cost is None else cost.likely
        test = BorderPrompts(Path(history).expanduser(), prepare("?").key(0)[:32], price)
        plan = replace(plan, persistence=persistence)
    else:
        if inputs is not None:
            prompts = batch.inputs[0].prompts
            questions = ((prompt, prepare(prompt)) for prompt in prompts)
        else:
            selection: Selection = {"model": model, "tag": tag, "ledger": ledger}
            questions = itertools.islice(_find_stored(runner.engine, selection, prepare), _MOST_READ)
            ask = functools.partial(_ask_stored, client, batch)
        pairs, left_out = _read_stored(runner.engine, questions)
        test, plan = StoredAnswers(pairs=pairs, **options), replace(plan, left_out=left_out)
    plan = test.plan(plan, left)
    if is_dry:
        return plan
    try:
        return test.ask(plan, ask)
    except (KeyboardInterrupt, Exception) as error:  # `compare` may raise anything
        error.add_note(f"what was answered is stored; the same recheck with draw={draw} goes on")
        raise


def _ask_stored(client: BatchMethods, batch: BatchOptions, questions: list[Any], draw: int) -> Results[Any]:
    """`call_many` of stored questions, with the options of a batch."""
    inputs, parameters = (BatchInputs(questions),), {**batch.parameters, "draw": draw}
    options = replace(
        batch, inputs=inputs, parameters=parameters, example=questions[0], operation=STORED_CHAT
    )
    results: Results[Any] = client._call_inputs(options)  # noqa: SLF001 - no method for users
    return results


def _take_options(parameters: Any, *, has_inputs: bool) -> JSONObject:
    """Take the parameters of a recheck out of the parameters of a batch; `RequestError` for a wrong value."""
    has_history = parameters.get("history") is not None
    if has_inputs and has_history:
        raise RequestError("recheck() takes inputs with stored answers, or a history of border prompts")
    of_calls, has_any = tuple(CHECKS.keys() - {*PARAMETERS, "delivery"}), has_inputs or has_history
    for names, wrong, kind in (
        (("share", "floor", "detect", "compare"), has_history, "of stored answers, without a history"),
        (("persistence",), not has_history, "of border prompts, with a history"),
        (("tag", "ledger"), has_any, "of a part of the cache, without inputs"),
        (of_calls, not has_any, "with inputs: stored questions have their own parameters"),
    ):
        given = [name for name in names if wrong and parameters.get(name) is not None]
        if given:
            raise RequestError(f"{min(given)} is for a recheck {kind}")
    options: JSONObject = {}
    for name, (usual, check_value) in _OPTIONS.items():
        value = parameters.pop(name, None)
        options[name] = usual if value is None else check_value(name, value)
    floor = USUAL_FLOOR if options["floor"] is None else options["floor"]
    if options["detect"] <= floor:
        raise RequestError(f"detect is the share that differs after a change: it must be above {floor:g}")
    return options


def _find_stored(
    engine: Engine, selection: Selection, prepare: Callable[..., Call[Response]]
) -> Iterator[tuple[JSONMapping, Call[Response] | None]]:
    """The questions of a part of the cache to its model, without questions of rechecks, each once.

    With each comes the call that reads its answer; None if it cannot be asked as it was.
    """
    seen = set[bytes]()
    for key in engine.cache.find_keys(**selection):
        question = (engine.cache.peek_whole(key) or (None, None))[1]
        if question is None or question["model"] != selection.get("model"):
            continue
        # Samples of one question differ in the number alone.
        name = canonical({**question, "draw": 0})
        if name in seen or not 0 <= question["draw"] < _NEW_DRAWS[0]:
            continue
        seen.add(name)
        call: Call[Response] | None = None
        with contextlib.suppress(LLMError):
            call = prepare(question, STORED_CHAT, draw=question["draw"])
        if call is not None and (call.key(question["draw"]) != key or not _is_whole(question["payload"])):
            call = None
        yield question, call


def _read_stored(
    engine: Engine, questions: Iterable[tuple[Any, Call[Response] | None]]
) -> tuple[list[tuple[Any, Response]], int]:
    """The questions with stored answers, and the number of the others; `RequestError` if none has one."""
    pairs, misses, lost = dict[str, tuple[Any, Response]](), list[Call[Response]](), 0
    for question, call in questions:
        if call is None:
            lost += 1
            continue
        key = call.key(call.parts[0])
        # Not by `lookup`: an answer that is only compared saves nothing, and is no hit in the ledger.
        entry = engine.cache.get(key)
        answer = None if entry is None else engine.decode_entry(call, entry, key)
        if entry is None or answer is None:
            misses.append(call)
        else:
            # Equal prompts have the same answer.
            pairs[key] = question, call.operation.restore(call, entry, answer, call.started)
    if not pairs:
        reason = f"; {lost} cannot be asked as they were" * bool(lost)
        if misses:
            reason = f": {engine.missing(misses[0], misses[0].parts[0])}"
        raise RequestError(f"no stored answer belongs to this model, these inputs and parameters{reason}")
    return list(pairs.values()), len(misses) + lost
