"""The methods of `Client` for batches: all results at once, results as they arrive, and estimates."""

from __future__ import annotations

import functools
import sys
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
    Sized,
)
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from ._errors import RequestError
from ._limits.concurrency import Concurrency, concurrency
from ._limits.timeouts import DEFAULT_BATCH_PATIENCE
from ._requests.embed_request import EmbedParameters
from ._requests.request import BatchParameters, Parameters, check, seal
from ._types import Prompt, Response, Result

if TYPE_CHECKING:
    from ._batches.front import BatchFront
    from ._batches.handle import Batch
    from ._calls.batch import Work
    from ._calls.call import Call
    from ._calls.engine import Engine
    from ._estimates.estimate import Estimate, Estimator
    from ._limits.scopes import ScopeStatistics
    from ._money.pricing import PriceTable
    from ._settings import Settings

T = TypeVar("T")

OnError = Literal["return", "raise"]


class BatchMethods(ABC):
    """The methods of a client for many inputs. `Client` has the attributes that they use."""

    _engine: Engine
    _concurrency: Concurrency
    _prices: Callable[[], PriceTable]
    _settings: Settings
    _show_estimate_above: float | None
    _on_result: Callable[[Any], object] | None

    @abstractmethod
    def _start(self) -> None: ...

    @abstractmethod
    def _tell(self, result: Any) -> None: ...

    @abstractmethod
    def _prepare(
        self, model: str, messages: Prompt, parameters: Parameters, allowed: Concurrency
    ) -> Call[Response]: ...

    @abstractmethod
    def statistics(self) -> list[ScopeStatistics]:
        """The state of the rate control of each scope in use."""

    def iter_many(
        self, model: str, inputs: Iterable[Prompt], **parameters: Unpack[BatchParameters]
    ) -> Iterator[tuple[int, Result]]:
        """See `llm_provider.iter_many`."""
        seal(parameters)
        from ._calls.batch import iterate
        from ._calls.progress import Progress, watched

        delivery = self._delivery(model, inputs, parameters)
        show = parameters.pop("progress", None)
        if delivery is not None:
            return delivery.iterate(self._batch("iter_many", model, parameters).lookup, inputs, show)
        results = iterate(self._batch("iter_many", model, parameters), inputs)
        bar = functools.partial(Progress, _length(inputs), show, self.statistics)
        return watched(results, show, self._on_result and self._tell, bar)

    def aiter_many(
        self,
        model: str,
        inputs: Iterable[Prompt] | AsyncIterable[Prompt],
        **parameters: Unpack[BatchParameters],
    ) -> AsyncIterator[tuple[int, Result]]:
        """See `llm_provider.aiter_many`."""
        seal(parameters)
        from ._calls.batch import aiterate
        from ._calls.progress import Progress, awatched

        delivery = self._delivery(model, inputs, parameters)
        show = parameters.pop("progress", None)
        if delivery is not None:
            return delivery.aiterate(self._batch("aiter_many", model, parameters).lookup, inputs, show)
        results = aiterate(self._batch("aiter_many", model, parameters), inputs)
        bar = functools.partial(Progress, _length(inputs), show, self.statistics)
        return awatched(results, show, self._on_result and self._tell, bar)

    def _run(self, call: Call[T]) -> Coroutine[Any, Any, T]:
        """Send a call that is not stored."""
        if call.request.in_batch is None:
            return self._engine.run(call)
        from ._batches.iterate import run_beside_batches

        return run_beside_batches(self._engine, call)

    def _batch(self, name: str, model: str, parameters: BatchParameters) -> Work:
        """How the calls of a batch are made and sent.

        An invalid model or parameter would fail every input, so it is found here, once.
        """
        from ._calls.batch import Work
        from ._calls.batch_lookup import batch_lookup
        from ._runtime import event_loop

        event_loop.refuse_own_thread(name)
        allowed = concurrency(parameters.pop("max_concurrent", None)) or self._concurrency
        if parameters.get("budget") is not None:
            # One budget for the whole batch.
            parameters["budget"] = check("budget", parameters["budget"])

        first: Call[Response] | None = None

        def prepare(prompt: Prompt) -> Call[Response]:
            nonlocal first
            call = self._prepare(model, prompt, parameters, allowed)
            if first is None:
                # It is made here, for the template. Its deadline and patience are those of the whole batch.
                first = call
                if parameters.get("outage_patience") is None and self._settings.outage_patience is None:
                    call.patience.seconds = DEFAULT_BATCH_PATIENCE
            call.deadline, call.patience = first.deadline, first.patience
            return call

        self._start()
        lookup, engine = batch_lookup(self._engine, prepare), self._engine
        return Work(lookup, self._run, engine.cancel, allowed.most, engine.load)

    def _delivery(
        self, model: str, inputs: object, parameters: BatchParameters | EmbedParameters
    ) -> BatchFront | None:
        """The batch delivery of a call; None if it is live. Takes its parameters out of the others."""
        asked, resend = parameters.pop("delivery", None), parameters.pop("resend", None)
        if asked is None or asked == "live":
            return None
        from ._batches.front import BatchFront, chosen

        self._start()
        if not chosen(self._engine, self._prices, model, asked, parameters):
            return None
        return BatchFront(self._engine, resend, _length(inputs), self._on_result and self._tell)

    def _front(self, model: str, inputs: object, parameters: BatchParameters) -> BatchFront:
        """The batch delivery of a call that does not wait.

        Raises:
            RequestError: the call is live.
        """
        if parameters.get("delivery") != "batch":
            raise RequestError("wait=False needs delivery='batch': a live call ends with its process")
        parameters.pop("progress", None)
        front = self._delivery(model, inputs, parameters)
        assert front is not None
        return front

    def batches(self) -> list[Batch]:
        """See `llm_provider.batches`."""
        from ._batches.handle import found_batches

        self._start()
        return found_batches(self._engine)

    def _estimator(self, model: str, parameters: BatchParameters, *, counted: bool = True) -> Estimator:
        from ._estimates.estimate import Estimator

        for name in ("progress", "delivery", "resend"):
            parameters.pop(name, None)  # type: ignore[misc]  # the names are known
        allowed = concurrency(parameters.pop("max_concurrent", None)) or self._concurrency

        def prepare(prompt: Prompt) -> Call[Response]:
            return self._prepare(model, prompt, parameters, allowed)

        return Estimator(self._engine, prepare, self._prices, self.statistics(), counted=counted)

    @overload
    def call_many(
        self,
        model: str,
        inputs: Iterable[Prompt],
        *,
        on_error: OnError = "return",
        dry_run: Literal[False] = False,
        **parameters: Unpack[BatchParameters],
    ) -> list[Result]: ...

    @overload
    def call_many(
        self,
        model: str,
        inputs: Iterable[Prompt],
        *,
        on_error: OnError = "return",
        dry_run: Literal[False] = False,
        wait: Literal[False],
        **parameters: Unpack[BatchParameters],
    ) -> Batch: ...

    @overload
    def call_many(
        self,
        model: str,
        inputs: Iterable[Prompt],
        *,
        on_error: OnError = "return",
        dry_run: Literal[True],
        **parameters: Unpack[BatchParameters],
    ) -> Estimate: ...

    def call_many(
        self,
        model: str,
        inputs: Iterable[Prompt],
        *,
        on_error: OnError = "return",
        dry_run: bool = False,
        wait: bool = True,
        **parameters: Unpack[BatchParameters],
    ) -> list[Result] | Estimate | Batch:
        """See `llm_provider.call_many`."""
        seal(parameters)
        _check_on_error(on_error)
        if dry_run:
            return self.estimate(model, inputs, **parameters)
        from ._calls.batch import in_order

        if not wait:
            front = self._front(model, inputs, parameters)
            return front.handle(self._batch("call_many", model, parameters).lookup, inputs, on_error)
        self._show_estimate(model, inputs, parameters)
        return in_order(dict(self.iter_many(model, inputs, **parameters)), on_error)

    @overload
    async def acall_many(
        self,
        model: str,
        inputs: Iterable[Prompt] | AsyncIterable[Prompt],
        *,
        on_error: OnError = "return",
        dry_run: Literal[False] = False,
        **parameters: Unpack[BatchParameters],
    ) -> list[Result]: ...

    @overload
    async def acall_many(
        self,
        model: str,
        inputs: Iterable[Prompt] | AsyncIterable[Prompt],
        *,
        on_error: OnError = "return",
        dry_run: Literal[False] = False,
        wait: Literal[False],
        **parameters: Unpack[BatchParameters],
    ) -> Batch: ...

    @overload
    async def acall_many(
        self,
        model: str,
        inputs: Iterable[Prompt] | AsyncIterable[Prompt],
        *,
        on_error: OnError = "return",
        dry_run: Literal[True],
        **parameters: Unpack[BatchParameters],
    ) -> Estimate: ...

    async def acall_many(
        self,
        model: str,
        inputs: Iterable[Prompt] | AsyncIterable[Prompt],
        *,
        on_error: OnError = "return",
        dry_run: bool = False,
        wait: bool = True,
        **parameters: Unpack[BatchParameters],
    ) -> list[Result] | Estimate | Batch:
        """See `llm_provider.acall_many`."""
        seal(parameters)
        _check_on_error(on_error)
        if dry_run:
            from ._estimates.estimate import aestimate

            return await aestimate(self._estimator(model, parameters), inputs)
        from ._calls.batch import in_order

        if not wait:
            front = self._front(model, inputs, parameters)
            return await front.ahandle(self._batch("acall_many", model, parameters).lookup, inputs, on_error)
        self._show_estimate(model, inputs, parameters)
        results = {index: result async for index, result in self.aiter_many(model, inputs, **parameters)}
        return in_order(results, on_error)

    def estimate(
        self, model: str, inputs: Iterable[Prompt], **parameters: Unpack[BatchParameters]
    ) -> Estimate:
        """See `llm_provider.estimate`."""
        seal(parameters)
        from ._estimates.estimate import estimate

        return estimate(self._estimator(model, parameters), inputs)

    def _show_estimate(self, model: str, inputs: object, parameters: BatchParameters) -> None:
        if "ipykernel" in sys.modules and self._show_estimate_above is not None:
            from ._estimates.estimate import show

            if isinstance(inputs, Sequence) and not isinstance(inputs, (str, bytes)):
                show(
                    self._estimator(model, parameters.copy(), counted=False),
                    inputs,
                    self._show_estimate_above,
                )


def _check_on_error(on_error: str) -> None:
    if on_error not in ("return", "raise"):
        raise RequestError(f"on_error must be 'return' or 'raise', not {on_error!r}")


def _length(inputs: object) -> int | None:
    return len(inputs) if isinstance(inputs, Sized) else None
