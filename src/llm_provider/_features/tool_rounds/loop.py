"""`max_tool_rounds`: asks a model, runs the functions that it calls, and asks again with their results.

Each round is a call of its own, so a call that was interrupted continues where it was, at no cost. Only the
functions run again. The rounds of an asynchronous call run in the user's task, on the user's event loop.
The rounds of synchronous calls share a loop in a thread of its own: a slow function would block the loop of
the requests.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from ..._core.batches.lookup import with_metadata
from ..._core.errors import APITimeoutError, LLMError, ToolRoundsExceededError
from ..._core.journey.call import Call, Emit, delta_of_choice
from ..._core.journey.engine import Engine
from ..._core.journey.sent_requests import SentRequests, sum_of_prices
from ..._core.journey.stream import Arrived, MakeSource
from ..._core.json_values import JSONMapping, JSONObject
from ..._core.requests.tools import FunctionTool
from ..._core.runtime import clock, event_loop
from ..._core.types.messages import Delta, Prompt, ToolCall, ToolResult
from ..._core.types.response import Response, Result, ToolRounds
from ..._core.types.usage import Timing, Usage
from .runner import run_tools

_OWN_TOOLS = "the provider's own tools"


class Rounds:
    """The rounds of one call. `emit` gets deltas and results of tools; None for one that is not streamed."""

    def __init__(self, engine: Engine, call: Call[Response], emit: Emit | None = None) -> None:
        self._engine = engine
        self._call = call
        self._emit = emit
        self._started = call.started
        self._most: int = call.request.max_tool_rounds
        self._tools: dict[str, FunctionTool] = {}
        self._declared: set[str] = set()
        """The names of the tools that the user runs."""
        for tool in call.request.tools:
            if isinstance(tool, FunctionTool):
                self._tools[tool["function"]["name"]] = tool
            else:
                self._declared.update(_names_in(tool))
        self._messages = list(call.request.messages)
        self._sent = SentRequests()
        """The requests of all rounds."""
        self._responses: list[Response] = []
        self._results: list[ToolResult] = []

    async def run(self, stored: Response | None = None) -> Response:
        """Ask until the model answers. `stored` is the answer of the first round if it was stored.

        Raises `ToolRoundsExceededError` after the last round, and what a round or the deadline raises.
        """
        try:
            while True:
                response, stored = await self._answer(stored), None
                self._responses.append(response)
                self._messages.append(response.message)
                paused = self._is_paused(response)
                if not paused and not self._has_work(response):
                    return self._whole()
                if len(self._responses) > self._most:
                    called = ", ".join(sorted({call.name for call in response.tool_calls}))
                    whole = self._whole()
                    error = ToolRoundsExceededError(
                        f"the model still calls {called or _OWN_TOOLS} after "
                        f"max_tool_rounds={self._most}: raise it, or continue the conversation of "
                        "error.response",
                        response=whole,
                        **self._target_names(),
                    )
                    raise self._engine.events.join_calls([whole], error)
                if not paused:
                    results = await self._run_tools(response.tool_calls)
                    self._results += results
                    self._messages += [result.message for result in results]
                self._call = self._next()
        except LLMError as error:
            self._sent.parts = tuple(part.reported or part for part in self._sent.parts)
            self._sent.write_to(error)
            before = sum((response.passed_over for response in self._responses), ())
            error.passed_over = before + error.passed_over
            raise

    async def _answer(self, stored: Response | None) -> Response:
        """The answer of one round, from the cache if it is stored."""
        engine, call, emit = self._engine, self._call, self._emit
        if stored is None:
            stored = await engine.lookup_soon(call)
        if stored is None:
            work = engine.run(call, emit)
            self._sent.parts += (call.sent,)
            try:
                return await event_loop.run(work, engine.cancel)
            except LLMError as error:
                if self._responses:
                    error.add_note(f"It failed after {len(self._responses)} rounds of max_tool_rounds.")
                raise
        if emit is not None:
            emit([delta_of_choice(stored.choices[0], 0, stored.response_format)])
        return stored

    def _is_paused(self, response: Response) -> bool:
        """Whether the provider stopped its own tools. It goes on with the conversation as it is."""
        if response.finish_reason != "length":
            return False
        is_paused = getattr(self._call.adapter, "is_paused", None)
        return is_paused is not None and is_paused(response.raw)

    def _has_work(self, response: Response) -> bool:
        """Whether the functions of an answer are to be run. The user answers the calls of other tools."""
        if response.finish_reason != "tool_calls" or not response.tool_calls:
            return False
        return not any(map(self._is_for_user, response.tool_calls))

    def _is_for_user(self, call: ToolCall) -> bool:
        if call.type != "function":
            return True
        tool = self._tools.get(call.name)
        if tool is None:
            # The model reads that such a tool does not exist.
            return call.name in self._declared
        if tool.function is not None:
            return False
        try:
            tool.parse(call)
        except KeyboardInterrupt:
            raise
        except BaseException:  # also of a validator of the user's; the model reads the error
            return False
        return True

    async def _run_tools(self, calls: Iterable[ToolCall]) -> list[ToolResult]:
        deadline, listeners = self._call.deadline, self._engine.events.listeners

        def tell(result: ToolResult) -> None:
            if self._emit is not None:
                self._emit([Delta(tool_results=(result,))])

        seconds = None if deadline is None else max(0.0, deadline.left)
        try:
            return await run_tools(list(calls), self._tools, seconds, tell, listeners)
        except TimeoutError as error:
            assert deadline is not None
            problem = f"{error} ran in round {len(self._responses)}"
            message = f"not answered by the deadline of {deadline.allowed:g} s: {problem}"
            own = {"limit": deadline.allowed, **self._target_names()}
            raise APITimeoutError(message, phase="deadline", **own) from None

    def _next(self) -> Call[Response]:
        """The call of the next round, with the deadline, the budget and the `track` blocks of the first."""
        last, relay = self._call, self._call.relay
        # A conversation stays with its model: the others may not read all of it.
        before = (last if relay is None else relay.find_answering(self._responses[-1])).request
        choice = later_choice(before.tool_choice)
        request = replace(before, messages=tuple(self._messages), tool_choice=choice)
        prepare = self._engine.prepare if relay is None else relay.prepare_round
        call = prepare(last.operation, request, last.concurrency)
        call.deadline, call.patience, call.tracks = last.deadline, last.patience, last.tracks
        call.metadata, call.streamed = last.metadata, last.streamed
        return call

    def _whole(self) -> Response:
        """The last answer, with the sums of all rounds."""
        responses, sent = self._responses, self._sent.including_parts()
        timings = [response.timing for response in responses]
        stored = [response.price if response.cached else response.stored_price for response in responses]
        usages = [each.stored_usages or (each.usage,) * each.cached for each in responses]
        messages, results = tuple(self._messages), tuple(self._results)
        whole = replace(
            responses[-1],
            prompt=responses[0].prompt,
            usage=sum((response.usage for response in responses), Usage()),
            **sent.describe_cost(),
            price=sum_of_prices([response.price for response in responses]),
            stored_price=sum_of_prices(stored),
            stored_usages=sum(usages, ()),
            cached=all(response.cached for response in responses),
            timing=Timing(
                queue=sum(timing.queue for timing in timings),
                first_token=timings[0].first_token,
                total=clock.perf_counter() - self._started,
                attempts=sent.attempts,
                overhead=sum(timing.overhead for timing in timings),
            ),
            failures=sent.failures,
            passed_over=sum((response.passed_over for response in responses), ()),
            tool_rounds=ToolRounds(responses=tuple(responses), messages=messages, results=results),
        )
        return self._engine.events.join_calls(responses, whole)

    def _target_names(self) -> JSONObject:
        return {"provider": self._call.target.provider, "model": self._call.request.model}


def _names_in(tool: Any) -> Iterator[str]:
    """Every name in a tool. One in the form of its provider may hold the names of several functions."""
    if isinstance(tool, Mapping):
        if isinstance(tool.get("name"), str):
            yield tool["name"]
        for value in tool.values():
            yield from _names_in(value)
    elif isinstance(tool, (list, tuple)):
        for value in tool:
            yield from _names_in(value)


def later_choice(choice: str | JSONMapping | None) -> str | JSONMapping | None:
    """The `tool_choice` of the rounds after the first: a tool that must be called is called once.

    >>> later_choice("required"), later_choice("none")
    (None, 'none')
    """
    if choice == "required" or (isinstance(choice, Mapping) and choice.get("type") in ("function", "custom")):
        return None
    inner = choice.get("allowed_tools") if isinstance(choice, Mapping) else None
    if isinstance(choice, Mapping) and isinstance(inner, Mapping) and inner.get("mode") == "required":
        return {**choice, "allowed_tools": {**inner, "mode": "auto"}}
    return choice


def run_and_wait(engine: Engine, call: Call[Response], stored: Response | None) -> Response:
    """The answer to a synchronous call, not in the thread of its rounds. An interrupt cancels them."""
    _refuse_own_thread()
    inbox = _start_own_loop()
    return event_loop.wait(Rounds(engine, call).run(stored), inbox=inbox)


def prepare_stream(
    engine: Engine, call: Call[Response], stored: Response | None, *, here: bool
) -> MakeSource:
    """What makes a stream of all rounds, with `here` on the caller's loop. `stored` answers the first one."""
    if not here:
        _refuse_own_thread()

    def make(put: Callable[[Arrived], None]) -> event_loop.BackgroundTask[Response]:
        inbox = event_loop.inbox_here() if here else _start_own_loop()
        return event_loop.BackgroundTask(Rounds(engine, call, put).run(stored), put, inbox=inbox)

    return make


def batch_of(
    engine: Engine,
    prepare: Callable[[Prompt], Call[Response]],
    metadata: Callable[[Prompt], Any] | None = None,
    *,
    here: bool,
) -> tuple[
    Callable[[Iterable[Prompt]], Iterator[Result | Call[Response]]],
    Callable[[Call[Response]], Awaitable[Response]],
]:
    """The lookup and the run of a batch whose inputs have rounds of their own.

    `metadata` gives the metadata of each input, in order. With `here`, the rounds run on the caller's loop.
    """
    inbox: event_loop.Inbox
    if not here:
        _refuse_own_thread()

    def lookup(inputs: Iterable[Prompt]) -> Iterator[Result | Call[Response]]:
        nonlocal inbox
        # `aiter_many` may be called before the loop runs that reads its results.
        inbox = event_loop.inbox_here() if here else _start_own_loop()
        for prompt in inputs:
            described = None if metadata is None else metadata(prompt)
            try:
                call = prepare(prompt)
                call.metadata = described
                yield call
            except LLMError as error:
                error.prompt = prompt if isinstance(prompt, str) else None
                yield with_metadata(error, described)

    async def run_call(call: Call[Response]) -> Response:
        return await event_loop.run(Rounds(engine, call).run(), inbox=inbox)

    return lookup, run_call


_own_loop = event_loop.LateLoop("llm_provider-tools")
"""The event loop of the rounds of synchronous calls."""


def _start_own_loop() -> event_loop.Inbox:
    event_loop.at_exit(_own_loop.stop)
    return _own_loop.start().inbox


def _refuse_own_thread() -> None:
    """Raise in the thread of the loop, where a wait for the rounds would last for ever."""
    if _own_loop.runs_here():
        raise RuntimeError(
            "a synchronous call with max_tool_rounds was made inside an asynchronous tool, where it "
            "would wait for itself; await acall() there, or make the tool a plain function"
        )
