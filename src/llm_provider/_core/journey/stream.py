"""The streams that the user iterates: first deltas, then `.response`. Closing one early cancels it.

Below is how a stream arrives: `Arrival.receive` shows its steps, `Watch` keeps its timeouts, and `HalfJoiner`
mends characters that a server has cut into two deltas.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, Self, TypeAlias

from ..errors import APITimeoutError, LLMError, UnsupportedParameterError
from ..formats.protocol import Connection, Outgoing, SendInChunks, never
from ..formats.shared.replies import reply_body
from ..formats.transport.wire import WholeReply
from ..hints import Hinting
from ..pace.call_limits import Timeouts
from ..runtime import clock, event_loop
from ..runtime.interrupts import shorten_interrupt
from ..runtime.threads import result_in_thread
from ..types.messages import Delta, Step, delta_of, make_delta
from ..types.response import Response, Result, T_co
from .call import Call, Emit, delta_of_choice

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

    if not TYPE_CHECKING:

        def __await__(self) -> NoReturn:
            raise TypeError("a stream is not awaited: write `async for delta in astream(...)` without await")

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
        return make_delta(text=step) if isinstance(step, str) else step

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
            except BaseException as end:
                self.close()
                shorten_interrupt(end)
                raise
            if not self._take(arrived):
                raise StopAsyncIteration
        step = self._here.popleft()
        return make_delta(text=step) if isinstance(step, str) else step

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
            [
                delta_of_choice(choice, index, response.response_format)
                for index, choice in enumerate(response.choices[:samples])
            ],
            response,
        ]
        self._put = put

    def start(self) -> None:
        for arrived in self._items:
            self._put(arrived)

    def cancel(self) -> None:
        """Nothing is under way."""


def may_be_cut(steps: Sequence[Step]) -> bool:
    """Whether a step may end in half of a pair. Most steps are texts in ASCII."""
    try:
        return not all(map(str.isascii, steps))  # type: ignore[arg-type]  # a `Delta` raises
    except TypeError:
        return True


class HalfJoiner:
    """Joins the halves of a surrogate pair that a stream shows in two deltas.

    Some servers cut an emoji into two events, each with one half of its pair. No text with one half can be
    printed, so the first half waits for the other one.
    """

    def __init__(self) -> None:
        self.held: dict[tuple[int, str | int], str] = {}
        """By the sample, and the field or the number of the tool call."""

    def join(self, steps: Sequence[Step]) -> list[Step]:
        """The steps without a first half at their end. It is at the beginning of a later one."""
        joined = [self._join_one(step) for step in steps]
        return [step for step in joined if step]

    def end(self) -> Iterator[Step]:
        """The halves whose other halves never came."""
        for (index, name), half in self.held.items():
            if name in ("text", "reasoning"):
                yield Delta(text=half, index=index) if name == "text" else Delta(reasoning=half, index=index)
        self.held.clear()

    def _join_one(self, step: Step) -> Step:
        delta = delta_of(step)
        calls = tuple(
            replace(call, arguments=self._take(call.arguments, delta.index, call.index))
            for call in delta.tool_calls
        )
        text, reasoning = (
            self._take(getattr(delta, name), delta.index, name) for name in ("text", "reasoning")
        )
        if (text, reasoning, calls) == (delta.text, delta.reasoning, delta.tool_calls):
            return step
        return replace(delta, text=text, reasoning=reasoning, tool_calls=calls)

    def _take(self, text: str, index: int, name: str | int) -> str:
        if not text:
            return text
        held = self.held.pop((index, name), "")
        if held:
            text = (held + text).encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        if "\ud7ff" < text[-1] < "\udc00":
            self.held[index, name] = text[-1]
            return text[:-1]
        return text


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Arrival(Outgoing):
    """A request, and what has arrived of its answer."""

    call: Call[Any]
    emit: Emit | None
    """Gets the steps of a stream."""
    first_token: float | None = None
    """Seconds from its sending to the first step."""
    reply: Any = None
    """What the body, or the last event of a stream that failed, says."""
    sent_at: float = 0.0
    watch: Watch | None = None

    async def collect(self, parts: SendInChunks, watch: Watch) -> bytes:
        """A whole answer, with its timeouts checked while it arrives."""
        watch.begin()
        body = bytearray()
        async with contextlib.aclosing(parts(self)) as pieces:
            async for piece in pieces:
                watch.note_piece()
                body += piece
        return bytes(body)

    async def receive(self, connection: Connection, emit: Emit, timer: asyncio.Timeout) -> Any:
        """The reply that is assembled from the events of a stream."""
        # A protocol cannot have methods that only some formats have.
        assembler: Any = self.call.adapter.assembler(self.call.encoded)
        watch, several, emitted = self.watch, self.samples > 1, 0
        if watch is not None:
            watch.begin()
        halves = HalfJoiner()
        stream = connection.stream(self, assembler.is_complete)
        try:
            async with contextlib.aclosing(stream) as batches:
                async for batch in batches:
                    if watch is not None:
                        watch.note_piece()
                    if type(batch) is tuple and type(batch[0]) is WholeReply:
                        return self._show_whole(batch[0], emit)
                    steps: list[Step] = []
                    event: Any = None
                    try:
                        for event in batch:
                            if several:
                                steps += filter(None, assembler.feed_samples(event))
                                continue
                            step = assembler.feed(event)
                            if step:
                                steps.append(step)
                            elif assembler.is_complete():
                                break
                    except LLMError:
                        self.reply = _last_reply(event)
                        raise
                    finally:
                        # These steps also count if the stream failed directly after them.
                        if steps and (halves.held or may_be_cut(steps)):
                            steps = halves.join(steps)
                        if steps:
                            if self.first_token is None:
                                self.first_token = clock.perf_counter() - self.sent_at
                            emit(steps)
                            emitted += len(steps)
        except BaseException as error:
            # An answer that came whole was billed. It is kept, whatever happens after it.
            cancelled = not isinstance(error, Exception) and not timer.expired()
            if cancelled or not getattr(assembler, "is_whole", never)():
                raise
        if last := [*halves.end(), *getattr(assembler, "end", tuple)()]:
            self.first_token = self.first_token or clock.perf_counter() - self.sent_at
            emit(last)
        if emitted < _MANY_STEPS:
            return assembler.reply()
        return await result_in_thread(assembler.reply, "llm_provider-decode")

    def _show_whole(self, reply: Any, emit: Emit) -> Any:
        """Show each sample of a reply that came whole as one delta, unless it is no answer."""
        with contextlib.suppress(LLMError):
            answer: Any = self.call.exchange.decode(self.call, reply, self.samples)
            self.first_token = clock.perf_counter() - self.sent_at
            choices = enumerate(answer.choices[: self.samples])
            form = self.call.request.response_format
            emit([delta_of_choice(choice, index, form) for index, choice in choices])
        return reply


def _last_reply(event: Any) -> Any:
    """The reply in an event that ended a stream with a failure: it may tell the usage. None for any other."""
    reply = event.get("response", event) if isinstance(event, dict) else None
    with contextlib.suppress(LLMError):
        body = reply_body(reply)
        return reply if any(mark in body for mark in _ENDS) else None
    return None


_ENDS = (b'"error":', b'"finishReason":"')
"""What only such an event has. Before it, the counts of tokens are not final."""

_MANY_STEPS = 20_000
"""Steps of a stream from which they are joined in a thread, which takes some milliseconds."""


class Watch:
    """Moves the end of an attempt's timer as its answer arrives, never beyond the total timeout."""

    def __init__(self, timer: asyncio.Timeout, request: Outgoing) -> None:
        self._timer = timer
        self._timeouts = request.timeouts
        self._total = request.timeout
        self._end = asyncio.get_running_loop().time() + self._total
        self._phase: Literal["first_byte", "idle"] | None = None
        self._arrived = 0

    def begin(self) -> None:
        """Start to wait for the first byte."""
        self._allow("first_byte", self._timeouts.first_byte)

    def note_piece(self) -> None:
        """Start to wait for the next piece, because one has arrived."""
        self._arrived += 1
        self._allow("idle", self._timeouts.idle)

    def _allow(self, phase: Literal["first_byte", "idle"], allowed: float | None) -> None:
        until = self._end if allowed is None else asyncio.get_running_loop().time() + allowed
        self._phase = phase if until < self._end else None
        self._timer.reschedule(min(until, self._end))

    def make_error(self) -> APITimeoutError:
        """The error of the timer that has expired."""
        if self._phase is None:
            return too_long(self._total)
        allowed = getattr(self._timeouts, self._phase)
        if self._phase == "first_byte":
            return APITimeoutError(f"no first byte within {allowed:g} s", phase=self._phase, limit=allowed)
        pieces = f"{self._arrived} piece{'' if self._arrived == 1 else 's'} of the answer"
        return APITimeoutError(
            f"stalled: nothing for {allowed:g} s after {pieces}", phase=self._phase, limit=allowed
        )


def too_long(total: float) -> APITimeoutError:
    return APITimeoutError(f"no complete answer within {total:g} s", phase="total", limit=total)


def with_limit(error: LLMError, timeouts: Timeouts) -> LLMError:
    """Adds the limit to the error of a connect timeout: the transport does not know it."""
    if isinstance(error, APITimeoutError) and error.phase == "connect" and timeouts.connect is not None:
        error.limit = timeouts.connect
        error.message = f"no connection within {timeouts.connect:g} s"
    return error


def check_watchable(connection: Connection) -> None:
    """Refuse timeouts that cannot be kept, as the answer comes as a whole. A default is ignored then."""
    if connection.send_in_chunks is None:
        raise UnsupportedParameterError(
            "timeout cannot have first_byte or idle here, because the SDK returns an answer only as a whole: "
            "leave them out, or use stream()",
            parameter="timeout",
        )
