"""The methods of `Client` for many inputs: batches, results as they arrive, estimates, and embeddings."""

from __future__ import annotations

import functools
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence, Sized
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from ._calls.call import Operation
from ._calls.embed import EMBED
from ._errors import RequestError
from ._limits.concurrency import Concurrency, concurrency
from ._limits.timeouts import DEFAULT_BATCH_PATIENCE
from ._requests.embed_request import EmbedRequest
from ._requests.request import check, seal
from ._requests.signatures import with_parameters
from ._types import Embeddings, Prompt, Response, Result

if TYPE_CHECKING:
    from ._calls.batch import Work
    from ._calls.call import Call
    from ._calls.engine import Engine
    from ._estimates.estimate import Estimate, Estimator
    from ._limits.scopes import ScopeStatistics
    from ._money.pricing import PriceTable
    from ._requests.parameters import BatchParameters, EmbedParameters, Parameters
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
    def _fill(self, parameters: Any, *, embeds: bool = False) -> None: ...

    @abstractmethod
    def _answer(
        self,
        name: str,
        operation: Operation[T],
        build: Callable[[str, Any, Any], Any],
        model: str,
        asked: Any,
        parameters: Any,
        allowed: Concurrency,
    ) -> T: ...

    @abstractmethod
    async def _answer_soon(
        self,
        name: str,
        operation: Operation[T],
        build: Callable[[str, Any, Any], Any],
        model: str,
        asked: Any,
        parameters: Any,
    ) -> T: ...

    @abstractmethod
    def statistics(self) -> list[ScopeStatistics]:
        """The state of the rate control of each scope in use."""

    @with_parameters
    def iter_many(
        self, model: str, inputs: Iterable[Prompt], **parameters: Unpack[BatchParameters]
    ) -> Iterator[tuple[int, Result]]:
        """See `llm_provider.iter_many`."""
        seal(parameters)
        from ._calls.batch import iterate
        from ._calls.progress import Progress, watched

        show = parameters.pop("progress", None)
        results = iterate(self._batch("iter_many", model, parameters), inputs)
        bar = functools.partial(Progress, _length(inputs), show, self.statistics)
        return watched(results, show, self._on_result and self._tell, bar)

    @with_parameters
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

        show = parameters.pop("progress", None)
        results = aiterate(self._batch("aiter_many", model, parameters), inputs)
        bar = functools.partial(Progress, _length(inputs), show, self.statistics)
        return awatched(results, show, self._on_result and self._tell, bar)

    def _batch(self, name: str, model: str, parameters: BatchParameters) -> Work:
        """How the calls of a batch are made and sent.

        An invalid model or parameter would fail every input, so it is found here, once.
        """
        from ._calls.batch import Work
        from ._calls.batch_lookup import batch_lookup
        from ._runtime import event_loop

        event_loop.refuse_own_thread(name)
        self._fill(parameters)
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
        return Work(lookup, engine.run, engine.cancel, allowed.most, engine.load)

    def _estimator(self, model: str, parameters: BatchParameters, *, counted: bool = True) -> Estimator:
        from ._estimates.estimate import Estimator

        parameters.pop("progress", None)
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
        dry_run: Literal[True],
        **parameters: Unpack[BatchParameters],
    ) -> Estimate: ...

    @with_parameters
    def call_many(
        self,
        model: str,
        inputs: Iterable[Prompt],
        *,
        on_error: OnError = "return",
        dry_run: bool = False,
        **parameters: Unpack[BatchParameters],
    ) -> list[Result] | Estimate:
        """See `llm_provider.call_many`."""
        seal(parameters)
        _check_on_error(on_error)
        if dry_run:
            return self.estimate(model, inputs, **parameters)
        from ._calls.batch import in_order

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
        dry_run: Literal[True],
        **parameters: Unpack[BatchParameters],
    ) -> Estimate: ...

    @with_parameters
    async def acall_many(
        self,
        model: str,
        inputs: Iterable[Prompt] | AsyncIterable[Prompt],
        *,
        on_error: OnError = "return",
        dry_run: bool = False,
        **parameters: Unpack[BatchParameters],
    ) -> list[Result] | Estimate:
        """See `llm_provider.acall_many`."""
        seal(parameters)
        _check_on_error(on_error)
        if dry_run:
            from ._estimates.estimate import aestimate

            return await aestimate(self._estimator(model, parameters), inputs)
        from ._calls.batch import in_order

        self._show_estimate(model, inputs, parameters)
        results = {index: result async for index, result in self.aiter_many(model, inputs, **parameters)}
        return in_order(results, on_error)

    @with_parameters
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

    @overload
    def embed(
        self,
        model: str,
        inputs: Iterable[str],
        *,
        dry_run: Literal[False] = False,
        **parameters: Unpack[EmbedParameters],
    ) -> Embeddings: ...

    @overload
    def embed(
        self,
        model: str,
        inputs: Iterable[str],
        *,
        dry_run: Literal[True],
        **parameters: Unpack[EmbedParameters],
    ) -> Estimate: ...

    @with_parameters
    def embed(
        self,
        model: str,
        inputs: Iterable[str],
        *,
        dry_run: bool = False,
        **parameters: Unpack[EmbedParameters],
    ) -> Embeddings | Estimate:
        """See `llm_provider.embed`."""
        seal(parameters)
        if dry_run:
            from ._estimates.estimate import estimate_texts

            self._fill(parameters, embeds=True)
            request = EmbedRequest.build(model, inputs, parameters)
            call = self._engine.prepare(EMBED, request, self._concurrency)
            return estimate_texts(self._engine, call, self._prices, self.statistics())
        return self._answer("embed", EMBED, EmbedRequest.build, model, inputs, parameters, self._concurrency)

    @with_parameters
    async def aembed(
        self, model: str, inputs: Iterable[str], **parameters: Unpack[EmbedParameters]
    ) -> Embeddings:
        """See `llm_provider.aembed`."""
        seal(parameters)
        return await self._answer_soon("aembed", EMBED, EmbedRequest.build, model, inputs, parameters)


def _check_on_error(on_error: str) -> None:
    if on_error not in ("return", "raise"):
        raise RequestError(f"on_error must be 'return' or 'raise', not {on_error!r}")


def _length(inputs: object) -> int | None:
    return len(inputs) if isinstance(inputs, Sized) else None
