"""How the methods of `Client` get the result of one operation, in the user's thread or in the user's task."""

from __future__ import annotations

import contextlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .._calls.call import Operation
from .._calls.preload import SHORTAGES, shortage
from .._errors import LLMError, RequestError
from .._foreign_attributes import Hinting
from .._limits.concurrency import Concurrency

if TYPE_CHECKING:
    from .._calls.call import Call
    from .._calls.engine import Engine
    from .._calls.stream import Arrived, Start
    from .._limits.scopes import ScopeStatistics
    from .._money.pricing import PriceTable
    from .._requests.parameters import Parameters
    from .._types.messages import Prompt
    from .._types.response import Response
    from .batch_arguments import DeliveryOptions

T = TypeVar("T")


class Answers(Hinting, ABC):
    """The steps that all methods of a client share. `Client` has the attributes that they use."""

    _engine: Engine
    _concurrency: Concurrency
    _prices: Callable[[], PriceTable]
    _defaults: Mapping[str, Any]
    _warned: set[Any]
    _on_result: Callable[..., object] | None
    _takes_request: bool
    """Whether `on_result` gets the call too."""

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _prepare(
        self,
        model: str,
        messages: Prompt,
        parameters: Parameters,
        allowed: Concurrency,
        function: str = "call",
    ) -> Call[Response]: ...

    @abstractmethod
    def statistics(self) -> list[ScopeStatistics]:
        """The state of the rate control of each scope in use."""

    def _answer(
        self,
        name: str,
        operation: Operation[Any, T],
        model: str,
        asked: Any,
        parameters: Any,
        allowed: Concurrency,
        run: Callable[[Call[T]], Coroutine[Any, Any, T]] | None = None,
    ) -> T:
        """The result of an operation, for the thread that waits for it. `run` sends a call."""
        try:
            if self._defaults:
                self._fill(parameters, operation.defaults)
            call = self._engine.prepare(operation, operation.build(model, asked, parameters, name), allowed)
            if call.encoded.dropped:
                self._warn_of_dropped(call)
            result = self._engine.lookup(call)
            if result is None or call.request.max_tool_rounds is not None:
                from .._runtime import event_loop

                event_loop.refuse_own_thread(name)
                self._start()
                if result is None:
                    self._engine.load(call)
                if call.request.max_tool_rounds is None:
                    result = event_loop.wait(event_loop.submit((run or self._run)(call), self._engine.cancel))
                else:
                    from .._calls import tool_loop

                    chat, hit = cast("Any", call), cast("Any", result)
                    result = cast("T", tool_loop.run_and_wait(self._engine, chat, hit))
        except LLMError as error:
            self._tell(error)
            raise
        except OSError as error:
            raise (shortage() if error.errno in SHORTAGES else error) from None
        if self._on_result is not None:
            self._tell(result)
        return result

    async def _answer_soon(
        self,
        name: str,
        operation: Operation[Any, T],
        model: str,
        asked: Any,
        parameters: Any,
        run: Callable[[Call[T]], Coroutine[Any, Any, T]] | None = None,
    ) -> T:
        """The result of an operation, for the task that awaits it. `run` sends a call."""
        from .._runtime import event_loop

        event_loop.refuse_own_thread(name)
        try:
            if self._defaults:
                self._fill(parameters, operation.defaults)
            call = self._engine.prepare(
                operation, operation.build(model, asked, parameters, name), self._concurrency
            )
            if call.encoded.dropped:
                self._warn_of_dropped(call)
            result = await self._engine.lookup_soon(call)
            if call.request.max_tool_rounds is not None:
                from .._calls import tool_loop

                self._start()
                chat, hit = cast("Any", call), cast("Any", result)
                result = cast("T", await tool_loop.run(self._engine, chat, hit))
            elif result is None:
                self._start()
                result = await event_loop.run((run or self._run)(call), self._engine.cancel)
        except LLMError as error:
            self._tell(error)
            raise
        except OSError as error:
            raise (shortage() if error.errno in SHORTAGES else error) from None
        if self._on_result is not None:
            self._tell(result)
        return result

    def _run(self, call: Call[T]) -> Coroutine[Any, Any, T]:
        """Send a call that is not stored."""
        if call.request.in_batch is None:
            return self._engine.run(call)
        from .._batches.work import run_beside_batches

        return run_beside_batches(self._engine, call)

    def _uses_batch_api(
        self, models: Sequence[str], delivery: DeliveryOptions, parameters: Mapping[str, Any]
    ) -> bool:
        """Whether a batch delivers a call. All models go one way, since they share budget and deadline.

        Raises:
            RequestError: a batch was asked for, and cannot deliver the call.
        """
        if delivery.mode == "live":
            return False
        from .._batches.choice import uses_batch_api

        self._start()
        engine, prices = self._engine, self._prices
        return all(uses_batch_api(engine, prices, model, delivery.mode, parameters) for model in models)

    def _start_of_stream(
        self, name: str, model: str, messages: Prompt, parameters: Parameters, allowed: Concurrency
    ) -> Start:
        from .._calls.stream import replay
        from .._runtime import event_loop

        event_loop.refuse_own_thread(name)
        call = self._prepare(model, messages, parameters, allowed, name)
        if call.request.in_batch is not None:
            raise RequestError(f"in_batch cannot be {call.request.in_batch!r} for a stream: use call()")
        call.streamed = True
        hit = self._engine.lookup(call)
        rounds = call.request.max_tool_rounds
        if hit is not None and rounds is None:
            return replay(hit, call.request.n)
        self._start()
        if name == "stream" and hit is None:
            self._engine.load(call)
        if rounds is not None:
            from .._calls import tool_loop

            return tool_loop.started(self._engine, call, hit, here=name == "astream")

        def start(put: Callable[[Arrived], None]) -> Callable[[], object]:
            return event_loop.BackgroundTask(self._engine.stream(call, put), put, self._engine.cancel).cancel

        return start

    def _warn_of_dropped(self, call: Call[Any]) -> None:
        """Warn of the parameters that a call leaves out, once for each model and parameter."""
        from .._calls.dropping import warn

        warn(call, self._warned)

    def _fill(self, parameters: Any, names: Collection[str] | None = None) -> None:
        """Add the client's defaults to the parameters of a call, those with some names or all."""
        if self._defaults:
            from .._requests.defaults import fill

            fill(parameters, self._defaults, names)

    def _observe(self, on_result: Callable[..., object] | None) -> None:
        """Note the client's function for results, and whether it takes the call as a second argument."""
        self._on_result, self._takes_request = on_result, False
        if on_result is None:
            return
        # Few clients have such a function.
        import inspect

        with contextlib.suppress(TypeError, ValueError):  # some functions of C have no signature
            taken = inspect.signature(on_result).parameters.values()
            kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            required = [one for one in taken if one.kind in kinds and one.default is inspect.Parameter.empty]
            self._takes_request = len(required) >= 2
        if self._takes_request:
            self._engine.observer.remember_calls()

    def _tell(self, result: Any) -> None:
        if self._on_result is not None:
            try:
                if self._takes_request:
                    self._on_result(result, self._engine.observer.take_call(result))
                else:
                    self._on_result(result)
            except Exception as error:  # an error of the user's function must not lose an answer
                warnings.warn(f"on_result raised {error!r}; calls go on", RuntimeWarning, stacklevel=3)
