"""Batches: many calls at once, results as they finish, in bounded memory.

One failure never costs the others: it is a result like any other. The inputs are read only as fast as
results are taken, so an endless generator is fine.
"""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from concurrent.futures import Future
from typing import Generic, TypeAlias, TypeVar

from ._errors import BatchError, LLMError
from ._types import Prompt, Response

Result: TypeAlias = Response | LLMError
"""What a batch gives for one input."""

Begin: TypeAlias = "Callable[[Prompt], Response | Future[Response]]"
"""Starts one call; a cached answer is there at once."""

ItemT = TypeVar("ItemT")


class _Batch(Generic[ItemT]):
    """The calls under way of one batch, and what became of its source."""

    def __init__(self, begin: Begin, width: int) -> None:
        self._begin = begin
        self._width = width
        self.pending: dict[Future[Response], int] = {}
        self.source_error: BaseException | None = None
        self.exhausted = False

    @property
    def wants_more(self) -> bool:
        """Whether another input should be read."""
        return not self.exhausted and len(self.pending) < self._width

    def end_of_source(self, error: BaseException | None = None) -> None:
        """No more inputs. An error of the user's iterable waits until what was started has finished."""
        self.exhausted = True
        self.source_error = error

    def begin(
        self, index: int, prompt: Prompt, finished: Callable[[Future[Response]], object]
    ) -> Result | None:
        """Start one call; its result if it is known at once."""
        try:
            started = self._begin(prompt)
        except LLMError as error:
            return error
        if isinstance(started, Response):
            return started
        self.pending[started] = index
        started.add_done_callback(finished)
        return None

    def take(self, future: Future[Response]) -> tuple[int, Result]:
        """The result of a finished call."""
        index = self.pending.pop(future)
        error = future.exception()
        if error is None:
            return index, future.result()
        if isinstance(error, LLMError):
            return index, error
        raise error

    def cancel(self) -> None:
        """Give up what is still under way; what has finished is stored."""
        for future in list(self.pending):
            future.cancel()


def iterate(begin: Begin, inputs: Iterable[Prompt], width: int) -> Iterator[tuple[int, Result]]:
    """Run a batch from a synchronous thread, yielding `(index, result)` as calls finish."""
    batch: _Batch[Prompt] = _Batch(begin, width)
    finished: queue.SimpleQueue[Future[Response]] = queue.SimpleQueue()
    source = enumerate(_checked(inputs))
    try:
        while True:
            while batch.wants_more and finished.empty():
                try:
                    index, prompt = next(source)
                except StopIteration:
                    batch.end_of_source()
                except Exception as error:
                    batch.end_of_source(error)
                else:
                    result = batch.begin(index, prompt, finished.put)
                    if result is not None:
                        yield index, result
            if not batch.pending:
                break
            yield batch.take(finished.get())
    finally:
        batch.cancel()
    if batch.source_error is not None:
        raise batch.source_error


async def aiterate(
    begin: Begin, inputs: Iterable[Prompt] | AsyncIterable[Prompt], width: int
) -> AsyncGenerator[tuple[int, Result], None]:
    """Run a batch from the user's event loop, yielding `(index, result)` as calls finish."""
    batch: _Batch[Prompt] = _Batch(begin, width)
    loop = asyncio.get_running_loop()
    finished: asyncio.Queue[Future[Response]] = asyncio.Queue()

    def report(future: Future[Response]) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(finished.put_nowait, future)

    source = _numbered(inputs)
    try:
        while True:
            while batch.wants_more and finished.empty():
                try:
                    index, prompt = await anext(source)
                except StopAsyncIteration:
                    batch.end_of_source()
                except Exception as error:
                    batch.end_of_source(error)
                else:
                    result = batch.begin(index, prompt, report)
                    if result is not None:
                        yield index, result
                    # Let the user's other tasks run, and finished calls report, while inputs are read.
                    await asyncio.sleep(0)
            if not batch.pending:
                break
            yield batch.take(await finished.get())
    finally:
        batch.cancel()
    if batch.source_error is not None:
        raise batch.source_error


async def _numbered(
    inputs: Iterable[Prompt] | AsyncIterable[Prompt],
) -> AsyncIterator[tuple[int, Prompt]]:
    index = 0
    if isinstance(inputs, AsyncIterable):
        async for prompt in inputs:
            yield index, prompt
            index += 1
    else:
        for prompt in _checked(inputs):
            yield index, prompt
            index += 1


def _checked(inputs: Iterable[Prompt]) -> Iterable[Prompt]:
    if isinstance(inputs, (str, bytes, dict)) or not hasattr(inputs, "__iter__"):
        raise TypeError(f"inputs must be an iterable of prompts, not {type(inputs).__name__}")
    return inputs


def in_order(results: dict[int, Result], on_error: str) -> list[Result]:
    """A finished batch's results in input order.

    Raises:
        BatchError: a call failed and `on_error` is "raise".
    """
    ordered = [results[index] for index in range(len(results))]
    failures = [result for result in ordered if isinstance(result, LLMError)]
    if failures and on_error == "raise":
        first = failures[0]
        message = f"{len(failures)} of {len(ordered)} calls failed; the first: {first}"
        raise BatchError(message, results=ordered, maybe_billed=True) from first
    return ordered
