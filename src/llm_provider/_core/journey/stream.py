"""The streams that the user iterates: first deltas, then `.response`. Closing one early cancels it."""

import asyncio
import queue
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Generic, Self, TypeAlias

from ..errors import LLMError
from ..hints import Hinting
from ..runtime import event_loop
from ..types.messages import Delta, Step
from ..types.response import Response, Result, T_co
from .call import delta_of_choice

Arrived: TypeAlias = list[Step] | Response | BaseException
"""Steps of a stream that arrived together. The last item is the response or an exception."""


MakeSource: TypeAlias = "Callable[[Callable[[Arrived], None]], event_loop.BackgroundTask[Response] | Replay]"
"""Makes a streamed call that gives its items to the argument, from another thread."""


class _Running(Hinting, Generic[T_co]):
    """The common part of both kinds of stream: a call under way and its items."""

    def __init__(
        self, make: MakeSource, put: Callable[[Arrived], None], tell: Callable[[Result], object]
    ) -> None:
        self._ended = False
        self._tell = tell
        self._response: Response[T_co] | None = None
        self._here: deque[Step] = deque()
        # `put` has no reference to the stream, so a dropped stream is deleted and cancelled at once.
        self._source = make(put)
        try:
            self._source.start()
        except BaseException:  # an interrupt, whose traceback keeps this stream
            self.close()
            raise

    @property
    def response(self) -> Response[T_co]:
        """The complete answer. It is equal to the answer of a call that is not streamed.

        Raises:
            RuntimeError: the stream has not been read to its end.
        """
        if self._response is None:
            raise RuntimeError("the stream has not ended: read it to the end before asking for .response")
        return self._response

    def close(self) -> None:
        """Stop reading. If the request is still under way, it is cancelled at the server."""
        if not self._ended:
            self._ended = True
            self._source.cancel()

    def __del__(self) -> None:
        if hasattr(self, "_source"):
            self.close()

    def _take(self, arrived: Arrived) -> bool:
        """Take an item. Returns whether it has steps; if not, the stream has ended."""
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


class Stream(_Running[T_co]):
    """A synchronous stream: an iterator of `Delta` and a context manager."""

    def __init__(self, make: MakeSource, tell: Callable[[Result], object]) -> None:
        self._items: queue.SimpleQueue[Arrived] = queue.SimpleQueue()
        super().__init__(make, self._items.put, tell)

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
        step = self._here.popleft()
        return Delta(text=step) if isinstance(step, str) else step

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncStream(_Running[T_co]):
    """An asynchronous stream: an async iterator of `Delta` and an async context manager."""

    def __init__(self, make: MakeSource, tell: Callable[[Result], object]) -> None:
        items: asyncio.Queue[Arrived] = asyncio.Queue()
        self._items = items
        try:
            inbox = event_loop.inbox_here()
        except RuntimeError:
            raise RuntimeError(
                "astream() needs a running event loop: call it in an async function, or call stream()"
            ) from None
        super().__init__(make, partial(inbox.post_with_others, items.put_nowait), tell)

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
        step = self._here.popleft()
        return Delta(text=step) if isinstance(step, str) else step

    async def aclose(self) -> None:
        """The same as `close`. Asynchronous iterators have this name for it."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


class Replay:
    """A stream of a stored answer: one delta with all of each sample."""

    def __init__(self, response: Response, samples: int, put: Callable[[Arrived], None]) -> None:
        self._items: list[Arrived] = [
            [delta_of_choice(choice, index) for index, choice in enumerate(response.choices[:samples])],
            response,
        ]
        self._put = put

    def start(self) -> None:
        for arrived in self._items:
            self._put(arrived)

    def cancel(self) -> None:
        """Nothing is under way."""
