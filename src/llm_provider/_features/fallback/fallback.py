"""`fallback=[models]`: the models of a list are asked in their order, until one of them answers.

Each is asked by a call of its own, which is looked up, shared, limited, budgeted and stored like any other.
So an answer is stored under the key of the model that gave it. A model that is down is not waited for. If no
other one answers, the call waits for the first that works again.
"""

from collections import defaultdict
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from ..._core import errors
from ..._core.journey.call import Call, Emit, Operation, Relay
from ..._core.journey.engine import Engine
from ..._core.journey.sent_requests import SentRequests
from ..._core.pace.call_limits import Concurrency, Patience
from ..._core.pace.failure_table import consequence_of
from ..._core.pace.failures import still_waits
from ..._core.requests.request import Request, check_model_name, read_headers
from ..._core.runtime import clock
from ..._core.types.messages import Step
from ..._core.types.response import Response
from .passed_over import PassedOver

T = TypeVar("T")

_REFUSED = ("refusal", "content_filter")
"""Finish reasons of an answer that refuses."""

_OF_ONE_PROVIDER = ("api_key", "base_url", "extra_headers")
"""Parameters that may hold a secret of one provider."""

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 5.0
"""Seconds before the models that are down are tried again. Where no probe is due, a try sends nothing."""


def leads_on(error: errors.LLMError) -> bool:
    """Whether the next model is asked after an error: not if it hid one of the request, the key or a limit.

    >>> leads_on(errors.RateLimitError("slow down"))
    True
    >>> leads_on(errors.APITimeoutError("too late", phase="deadline"))
    False
    """
    # The deadline is for the whole call.
    return consequence_of(error).fallback and getattr(error, "phase", None) != "deadline"


class Fallback(Relay):
    """The calls of a model and of each of its `fallback`, in their order."""

    def __init__(self, engine: Engine, calls: tuple[Call[Any], ...]) -> None:
        self._engine, self.calls = engine, calls

    def look_up(self, call: Call[Any]) -> Response | None:
        """The first stored answer in the order of the list."""
        passed: tuple[PassedOver, ...] = ()
        refused: Response | None = None
        missing: list[errors.CacheMissError] = []
        for each in self.calls:
            stored: Response | None = None
            each.metadata, each.tracks = call.metadata, call.tracks
            try:
                stored = self._engine.lookup(each)
            except errors.CacheMissError as error:
                missing.append(error)
            if stored is not None:
                # A response is frozen for its user, who has not seen this one yet.
                object.__setattr__(stored, "passed_over", passed)
                if not _is_refused(stored):
                    return stored
                refused = stored
            passed += (_describe(each, stored),)
        if refused is not None and (missing or all(entry.error == "RefusalError" for entry in passed)):
            return refused
        if missing:
            raise missing[0]
        return None

    def run(self, call: Call[Any], emit: Emit | None) -> Coroutine[Any, Any, Response]:
        """The answer of the first model that gives one. It raises the error of the last one."""
        call.sent = SentRequests()
        return _Turns(self._engine, call, self.calls, emit).run()

    def find_answering(self, response: Response) -> Call[Any]:
        """The call of the model behind those that were passed over."""
        return self.calls[len(response.passed_over)]

    def prepare_round(
        self, operation: Operation[Any, T], request: Request, concurrency: Concurrency
    ) -> Call[T]:
        """The call of a round. Models that cannot take the conversation so far are left out."""
        while True:
            try:
                return self._engine.prepare(operation, request, concurrency)
            except errors.RequestError as error:
                options = dict(request.options or {})
                names: tuple[str, ...] = options.pop("fallback", ())
                left = tuple(name for name in names if name != error.model)
                if left == names:
                    raise
                request = replace(request, options={**options, "fallback": left} if left else options or None)


def make_relay(engine: Engine, call: Call[Any]) -> Fallback:
    """The relay of a call with `fallback`; `error.model` names a model that cannot serve."""
    added = read_headers(call.target)
    headers = {name: text for name, text in (call.request.extra_headers or {}).items() if name not in added}
    request = replace(call.request, extra_headers=headers or None)
    options = dict(request.options)
    names = options.pop("fallback")
    if request.in_batch is not None:
        raise errors.RequestError("in_batch looks for one model's batch: leave it out, or leave fallback out")
    calls = [call]
    for name in names:
        try:
            check_model_name(name)
            own = replace(request, model=name, options=options or None)
            each = engine.prepare(call.operation, own, call.concurrency)
            if each.target in [other.target for other in calls]:
                raise errors.RequestError(f"fallback: {name!r} is in the list twice: leave it out")
            providers = [
                target.model.partition("/")[0] if target.provider == "litellm" else target.provider
                for target in (call.target, each.target)
            ]
            secrets = [secret for secret in _OF_ONE_PROVIDER if getattr(request, secret) is not None]
            if secrets and providers[0] != providers[1]:
                raise errors.RequestError(
                    f"{secrets[0]} is that of one provider, and the models of fallback are at "
                    f"{' and '.join(providers)}: leave it out; the environment (OPENAI_API_KEY, "
                    "OPENAI_BASE_URL, ...) or Client(keys=, hosts=) has keys and servers for each"
                )
        except errors.LLMError as error:
            error.model = name
            raise
        calls.append(each)
    rests = [*({**options, "fallback": names[number:]} for number in range(len(names))), options]
    pairs = zip(calls, rests, strict=True)
    return Fallback(
        engine,
        tuple(replace(each, request=replace(each.request, options=rest or None)) for each, rest in pairs),
    )


class _Turns:
    """The models of one call, and how each has ended so far."""

    def __init__(
        self, engine: Engine, call: Call[Any], calls: tuple[Call[Any], ...], emit: Emit | None
    ) -> None:
        self._engine, self._call, self._calls, self._emit = engine, call, calls, emit
        self._outcomes: dict[int, Response | errors.LLMError] = {}
        """By the number of the model in the list."""
        self._last_tries: dict[int, tuple[SentRequests, float]] = {}
        """The requests of the last time that a model was asked, and when that was."""
        self._sent: defaultdict[int, tuple[SentRequests, ...]] = defaultdict(tuple)
        """The requests of every time."""
        self._is_visible = False
        """Whether the reader of a stream has seen a part of an answer."""

    async def run(self) -> Response:
        engine, call, pause = self._engine, self._call, _FIRST_PAUSE
        last = len(self._calls) - 1
        if call.cache == "use" and engine.cache.has_second_level:
            for number in range(last + 1):
                if await self._find_stored(number):
                    return self._finish(number)
        if call.cache != "only":
            for each in self._calls:
                engine.loop_state().sender.check_key(each)
        waiting = list(range(last + 1))
        while waiting:
            pending, waiting = waiting, []
            for number in pending:
                if await self._ask(number):
                    return self._finish(number)
                outcome = self._outcomes[number]
                if isinstance(outcome, errors.LLMError) and still_waits(
                    outcome, call.patience, clock.monotonic()
                ):
                    waiting.append(number)
            if waiting:
                await self._wait(pause)
                pause = min(1.5 * pause, _LONGEST_PAUSE)
        return self._finish(last)

    async def _find_stored(self, number: int) -> bool:
        """Whether a model's answer is in the second level of the cache."""
        engine, each = self._engine, self._calls[number]
        samples = await engine.all_stored(each, each.parts)
        if samples is not None:
            each.metadata, each.tracks = self._call.metadata, self._call.tracks
            self._outcomes[number] = response = engine.result(each, samples)
            return not _is_refused(response)
        return False

    async def _ask(self, number: int) -> bool:
        """Ask a model. Returns whether its outcome becomes the outcome of the call."""
        call, each = self._call, self._calls[number]
        is_last = number == len(self._calls) - 1
        same = ("started", "deadline", "tracks", "metadata", "streamed")
        each = replace(
            each,
            **{name: getattr(call, name) for name in same},
            patience=Patience(0.0, call.patience.since, call.patience.is_default),
            early_stop=call.early_stop if is_last else each.early_stop,
            passed_over=self._list_before(number),
        )
        began, engine = clock.perf_counter(), self._engine
        work = engine.run(each, None if self._emit is None else self._show)
        call.sent.parts += (each.sent,)
        self._sent[number] += (each.sent,)
        self._last_tries[number] = each.sent, began
        try:
            outcome = self._outcomes[number] = await work
        except errors.LLMError as error:
            # The traceback would keep the call in memory for as long as the error lives.
            self._outcomes[number] = error.with_traceback(None)
            return self._is_visible or not leads_on(error)
        return self._is_visible or not _is_refused(outcome)

    def _show(self, steps: list[Step]) -> None:
        assert self._emit is not None
        self._is_visible = self._is_visible or bool(steps)
        self._emit(steps)

    async def _wait(self, seconds: float) -> None:
        """Wait before the models that are down are tried again."""
        import asyncio

        deadline, text = self._call.deadline, "every model that is left in its fallback is down"
        seconds = seconds if deadline is None else max(0.0, min(seconds, deadline.left))
        with self._engine.waits.during(self._call.request.model, "down", text):
            await asyncio.sleep(seconds)

    def _list_before(self, number: int) -> tuple[PassedOver, ...]:
        before = self._calls[:number]
        return tuple(
            _describe(each, self._outcomes.get(index), *self._sent[index])
            for index, each in enumerate(before)
        )

    def _finish(self, number: int) -> Response:
        """The response of a model with the sums of all requests, or its error."""
        call, outcome, events = self._call, self._outcomes[number], self._engine.events
        outcomes = [self._outcomes[index] for index in sorted(self._outcomes)]
        passed = self._list_before(number)
        if isinstance(outcome, errors.LLMError):
            call.sent.parts = tuple(part.reported or part for part in call.sent.parts)
            call.sent.write_to(outcome)
            outcome.passed_over = passed
            raise events.join_calls(outcomes, outcome)
        own, began = self._last_tries.get(number, (None, call.started))
        sent, timing, total = call.sent.including_parts(), outcome.timing, clock.perf_counter() - call.started
        usages = [part.including_parts().usage for part in call.sent.parts if part is not own]
        # The time with other models is one of waiting.
        others = total - timing.total + began - call.started
        overhead = max(0.0, total - others - timing.total + timing.overhead)
        timing = replace(timing, queue=timing.queue + others, total=total, overhead=overhead)
        whole = replace(
            outcome,
            usage=sum((usage for usage in usages if usage is not None), outcome.usage),
            **sent.describe_cost(),
            stored_price=outcome.price if outcome.cached else outcome.stored_price,
            cached=outcome.cached and not sent.attempts,
            timing=replace(timing, attempts=sent.attempts),
            failures=sent.failures,
            passed_over=passed,
        )
        joined: Response = events.join_calls(outcomes, whole)
        return joined


def _is_refused(response: Response) -> bool:
    """Whether a model refused every sample, or a filter stopped it."""
    return all(choice.finish_reason in _REFUSED for choice in response.choices)


def _describe(
    call: Call[Any], outcome: Response | errors.LLMError | None, *tries: SentRequests
) -> PassedOver:
    """Why a model is passed over, and what it cost. Without an outcome, its answer is not stored."""
    status: int | None = None
    if outcome is None:
        error, message = errors.CacheMissError.__name__, "its answer is not stored"
    elif isinstance(outcome, errors.LLMError):
        error, status, message = type(outcome).__name__, outcome.status, outcome.message
    else:
        error, status = errors.RefusalError.__name__, 200
        message = f"finish_reason is {outcome.finish_reason!r}"
    sent = SentRequests(parts=tuple(each.reported or each for each in tries)).including_parts()
    return PassedOver(
        model=call.request.model, error=error, status=status, message=message, provider=call.target.provider,
        cost=sent.cost, cost_bounds=sent.cost_bounds, usage=sent.usage,
    )  # fmt: skip
