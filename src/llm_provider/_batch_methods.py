"""Whole batches: the methods of `Client` that wait for every result, or tell what they would cost."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, Unpack, overload

from ._errors import RequestError
from ._requests.request import BatchParameters, seal
from ._types import Prompt, Result

if TYPE_CHECKING:
    from ._estimates.estimate import Estimate, Estimator

OnError = Literal["return", "raise"]


class BatchMethods(ABC):
    """What is made of a client's `iter_many` and `aiter_many`."""

    _show_estimate_above: float | None

    @abstractmethod
    def iter_many(
        self, model: str, inputs: Iterable[Prompt], **parameters: Unpack[BatchParameters]
    ) -> Iterator[tuple[int, Result]]:
        """See `llm_provider.iter_many`."""

    @abstractmethod
    def aiter_many(
        self,
        model: str,
        inputs: Iterable[Prompt] | AsyncIterable[Prompt],
        **parameters: Unpack[BatchParameters],
    ) -> AsyncIterator[tuple[int, Result]]:
        """See `llm_provider.aiter_many`."""

    @abstractmethod
    def _estimator(self, model: str, parameters: BatchParameters, *, counted: bool = True) -> Estimator:
        """What estimates a batch."""

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
