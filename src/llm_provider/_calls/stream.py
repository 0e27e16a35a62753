"""Streams as the user holds them: iterate for deltas, then read `.response`. Leaving early cancels."""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeAlias

from .._errors import LLMError
from .._runtime import event_loop
from .._types import Delta, Response, Result, Step, ToolCallDelta, delta_of

Arrived: TypeAlias = list[Step] | Response | BaseException
"""Steps of a stream that came together, and at its end the response or what went wrong."""

Start: TypeAlias = Callable[[Callable[[Arrived], None]], Callable[[], object]]
"""Starts a call whose stream goes to the function it is given, from another thread; returns how to cancel."""


class _Running:
    """A call whose stream is put somewhere; what both kinds of stream share."""

    def __init__(
        self, start: Start, put: Callable[[Arrived], None], tell: Callable[[Result], object]
    ) -> None:
        self._ended = False
        self._tell = tell
        self._response: Response | None = None
        self._here: deque[Step] = deque()
        # `put` does not know the stream: one that is dropped is collected at once, and so cancelled.
        self._cancel = start(put)

    @property
    def response(self) -> Response:
        """The complete answer, equal to that of a call that is not streamed.

        Raises:
            RuntimeError: the stream has not been read to its end.
        """
        if self._response is None:
            raise RuntimeError("the stream has not ended: read it to the end before asking for .response")
        return self._response

    def close(self) -> None:
        """Stop here; the request is cancelled at the server if it still runs."""
        if not self._ended:
            self._ended = True
            self._cancel()

    def __del__(self) -> None:
        if hasattr(self, "_cancel"):
            self.close()

    def _take(self, arrived: Arrived) -> bool:
        """Whether there are steps to show; if not, the stream has ended."""
        if isinstance(arrived, list):
            self._here.extend(arrived)
            return True
        self._ended = True
        if isinstance(arrived, Response | LLMError):
            self._tell(arrived)
        if isinstance(arrived, Response):
            self._response = arrived
            return False
        raise (
            RuntimeError("the stream was closed") if isinstance(arrived, asyncio.CancelledError) else arrived
        )


class Stream(_Running):
    """A synchronous stream: an iterator of `Delta` and a context manager."""

    def __init__(self, start: Start, tell: Callable[[Result], object]) -> None:
        self._items: queue.SimpleQueue[Arrived] = queue.SimpleQueue()
        super().__init__(start, self._items.put, tell)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Delta:
        if self._ended:
            raise StopIteration
        if not self._here:
            try:
                arrived = self._items.get()
            except BaseException:
                self.close()
                raise
            if not self._take(arrived):
                raise StopIteration
        return delta_of(self._here.popleft())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncStream(_Running):
    """An asynchronous stream: an async iterator of `Delta` and an async context manager."""

    def __init__(self, start: Start, tell: Callable[[Result], object]) -> None:
        items: asyncio.Queue[Arrived] = asyncio.Queue()
        self._items = items
        inbox = event_loop.inbox_here()

        def put(arrived: Arrived) -> None:
            # The user's loop may be gone by the time something arrives; nobody waits then.
            with contextlib.suppress(RuntimeError):
                inbox.post(items.put_nowait, arrived)

        super().__init__(start, put, tell)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        if self._ended:
            raise StopAsyncIteration
        if not self._here:
            try:
                arrived = await self._items.get()
            except BaseException:
                self.close()
                raise
            if not self._take(arrived):
                raise StopAsyncIteration
        return delta_of(self._here.popleft())

    async def aclose(self) -> None:
        """The same as `close`, under the name that asynchronous iterators have for it."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def replay(response: Response) -> Start:
    """A stream of an answer that is there already: one delta with all of it."""

    def start(put: Callable[[Arrived], None]) -> Callable[[], object]:
        calls = tuple(
            ToolCallDelta(index=index, id=call.id, name=call.name, arguments=call.arguments)
            for index, call in enumerate(response.tool_calls)
        )
        put([Delta(text=response.text, reasoning=response.reasoning, tool_calls=calls)])
        put(response)
        return lambda: None

    return start
