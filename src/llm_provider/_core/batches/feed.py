"""Reads the inputs of an iterator aside, so that results are handed out while the next input is awaited.

An iterator of the lines of a pipe, or of questions that follow from answers, may take as long as it likes. A
thread of its own reads it, or a task of the user's loop if it is asynchronous.
"""

import asyncio
import contextlib
import contextvars
from collections.abc import AsyncIterable, Callable, Iterable
from functools import partial
from queue import SimpleQueue
from typing import NamedTuple

from ..runtime import threads
from ..types.messages import Prompt


class Fed(NamedTuple):
    """An input that was read, or the error of the iterator: a `StopIteration` at its end."""

    prompt: Prompt = ""
    error: BaseException | None = None


class ThreadFeed:
    """Reads as many inputs as it was asked for, and gives each of them to `post`, in the thread."""

    def __init__(self, inputs: Iterable[Prompt], post: Callable[[Fed], object]) -> None:
        self._inputs, self._post = inputs, post
        self._wanted: SimpleQueue[int] = SimpleQueue()
        self._is_started = self._is_closed = False

    def ask(self, count: int) -> None:
        """Read more inputs."""
        if not self._is_started:
            self._is_started = True
            work = partial(contextvars.copy_context().run, self._read)
            threads.start_thread(work, "llm_provider-inputs")
        self._wanted.put(count)

    def close(self) -> None:
        """Read no more. An input that is awaited is lost."""
        self._is_closed = True
        self._wanted.put(0)

    def _read(self) -> None:
        try:
            inputs = iter(self._inputs)
            while count := self._wanted.get():
                for _ in range(count):
                    if not self._is_closed:
                        fed = Fed(next(inputs))
                    if self._is_closed:
                        return
                    self._post(fed)
        except BaseException as error:
            if "same thread" in str(error):
                error.add_note("an iterator is read in a thread of its own: give a list, or connect in it")
            self._post(Fed(error=error))


class TaskFeed:
    """`ThreadFeed` for an asynchronous iterable, in a task of the user's loop."""

    def __init__(self, inputs: AsyncIterable[Prompt], post: Callable[[Fed], object]) -> None:
        self._inputs, self._post = inputs, post
        self._wanted: asyncio.Queue[int] = asyncio.Queue()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def ask(self, count: int) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._read())
        self._wanted.put_nowait(count)

    def close(self) -> None:
        self._is_closed = True
        if self._task is not None:
            with contextlib.suppress(RuntimeError):  # the user's loop has ended
                self._task.cancel()

    async def _read(self) -> None:
        try:
            inputs = aiter(self._inputs)
            while True:
                for _ in range(await self._wanted.get()):
                    self._post(Fed(await anext(inputs)))
        except StopAsyncIteration:
            self._post(Fed(error=StopIteration()))
        except BaseException as error:
            if self._is_closed:
                raise
            self._post(Fed(error=error))
