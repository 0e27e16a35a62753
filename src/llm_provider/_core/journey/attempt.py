"""One request to a provider and its outcome."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any, Literal, TypeVar

from ..errors import APIResponseValidationError, APITimeoutError, FailedAttempt, LLMError
from ..formats.protocol import Adapter, AnyAnswer, Connection, OnHeaders, Outgoing, SendInChunks, never
from ..formats.shared.errors import failure_headers
from ..formats.shared.replies import reply_body
from ..formats.shared.tool_charges import cost_in
from ..formats.transport import departure
from ..formats.transport.sse import BYTE_ORDER_MARK, DONE, END, EventSplitter, WholeReply
from ..pace.call_limits import Timeouts
from ..pace.failures import RetryBudget, judge
from ..requests.api_keys import Credential
from ..runtime import cassette, clock, randomness
from ..runtime.imports import is_unfinished
from ..runtime.json_pieces import JSONLimitError, loads, read_large, takes_long
from ..runtime.threads import result_in_thread
from ..types.messages import Delta, Step, delta_of
from ..types.usage import Usage
from .call import Call, Emit, delta_of_choice


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Attempt(Outgoing):
    """One request for some parts of a call, and its outcome."""

    call: Call[Any]
    emit: Emit | None
    """Gets the steps of a stream."""
    on_headers: OnHeaders
    waited: float
    """Seconds before it was sent."""
    seconds: float = 0.0
    first_token: float | None = None
    error: LLMError | None = None
    import_unfinished: bool = False
    """Whether it failed before it was sent, because another thread imports a module of the SDK."""
    failure: FailedAttempt | None = None
    """How it failed, once the sender has judged that."""
    retry_in: float | None = None
    """Seconds until the next request; None if there is none."""
    answer: AnyAnswer | None = None
    received: bytes = b""
    """The body of the answer."""
    _reply: Any = None
    """What the body, or the last event of a stream that failed, says."""
    _sent: float = 0.0
    _watch: _Watch | None = None

    @property
    def number(self) -> int:
        return self.retries + 1

    async def make(self, connection: Connection) -> None:
        """Send, receive and decode within the timeouts. Only a cancellation is raised."""
        timeouts, streamed, sent = self.timeouts, None, self.call.sent
        self._sent = clock.perf_counter()
        token = departure.current.set(sent)
        if self.call.target.route.adapter == "litellm":  # its clients do not tell when they send
            sent.leave()
        else:
            sent.hold()
        timer = asyncio.timeout(timeouts.total)
        try:
            async with timer:
                if timeouts.first_byte is not None or timeouts.idle is not None:
                    self._watch = _Watch(timer, self)
                if self.emit is not None:
                    streamed = await self._receive(connection, self.emit, timer)
                elif self._watch is not None and connection.send_in_chunks is not None:
                    self.received = await self._collect(connection.send_in_chunks, self._watch)
                else:
                    self.received = await connection.send(self, self.on_headers)
            self.received = self.received.removeprefix(BYTE_ORDER_MARK)
            sent.leave()
            if self.emit is not None:
                self.received = reply_body(streamed)
                if b"\\ud" in self.received:
                    # The halves of a pair that stand together are one character when they are read.
                    streamed = loads(self.received)
            if takes_long(self.received):
                read = partial(read_large, partial(self._decode, streamed))
                self.answer = await result_in_thread(read, "llm_provider-decode")
            else:
                self.answer = self._decode(streamed)
        except LLMError as error:
            self.error = error
            self._note_failure()
        except Exception as error:
            if timer.expired():
                self.error = self._watch.make_error() if self._watch is not None else _too_long(self.timeout)
            else:
                self.import_unfinished = is_unfinished(error)
                self.error = _with_limit(self.call.adapter.map_error(error), timeouts)
                headers = failure_headers(error)
                if headers:
                    self.on_headers(headers)
            self._note_failure()
        finally:
            departure.current.reset(token)
            self.seconds = clock.perf_counter() - self._sent

    def _note_failure(self) -> None:
        if self.call.sent.is_held and self.error is not None:
            self.error.maybe_billed = False
            self.call.sent.leave()

    def _decode(self, streamed: Any) -> AnyAnswer:
        """The answer in the body, or in the reply that a stream added up to."""
        self._reply = streamed
        try:
            if self.emit is None:
                self._reply = self._read_unasked_stream() or parse_reply(self.received)
            return self.call.exchange.decode(self.call, self._reply, self.samples)
        except APIResponseValidationError as error:
            error.raw = self._reply
            raise

    def _read_unasked_stream(self) -> Any:
        """The reply of a server that streams though nobody asked it to; None for any other body."""
        begun, ended = (
            self.received.startswith((b"data:", b"event:")),
            self.received[-20:].rstrip().endswith(DONE),
        )
        if not (begun or ended):
            return None
        if not begun:
            # One has the whole answer before the end of a stream.
            return parse_reply(self.received[: self.received.rindex(b"data:")])
        assembler: Any = self.call.adapter.assembler(self.call.encoded)
        feed, splitter = assembler.feed if self.samples == 1 else assembler.feed_samples, EventSplitter()
        for data in (*splitter.feed(self.received), *splitter.end()):
            feed(END if data.strip() == DONE else parse_reply(data))
        self.received = reply_body(assembler.reply())
        return assembler.reply()

    async def _collect(self, parts: SendInChunks, watch: _Watch) -> bytes:
        """A whole answer, with its timeouts checked while it arrives."""
        watch.begin()
        body = bytearray()
        async with contextlib.aclosing(parts(self, self.on_headers)) as pieces:
            async for piece in pieces:
                watch.note_piece()
                body += piece
        return bytes(body)

    async def _receive(self, connection: Connection, emit: Emit, timer: asyncio.Timeout) -> Any:
        """The reply that is assembled from the events of a stream."""
        # A protocol cannot have methods that only some formats have.
        assembler: Any = self.call.adapter.assembler(self.call.encoded)
        watch, several, emitted = self._watch, self.samples > 1, 0
        if watch is not None:
            watch.begin()
        halves = HalfJoiner()
        stream = connection.stream(self, self.on_headers, assembler.is_complete)
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
                        self._reply = _last_reply(event)
                        raise
                    finally:
                        # These steps also count if the stream failed directly after them.
                        if steps and (halves.held or may_be_cut(steps)):
                            steps = halves.join(steps)
                        if steps:
                            if self.first_token is None:
                                self.first_token = clock.perf_counter() - self._sent
                            emit(steps)
                            emitted += len(steps)
        except BaseException as error:
            # An answer that came whole was billed. It is kept, whatever happens after it.
            cancelled = not isinstance(error, Exception) and not timer.expired()
            if cancelled or not getattr(assembler, "is_whole", never)():
                raise
        if last := [*halves.end(), *getattr(assembler, "end", tuple)()]:
            self.first_token = self.first_token or clock.perf_counter() - self._sent
            emit(last)
        if emitted < _MANY_STEPS:
            return assembler.reply()
        return await result_in_thread(assembler.reply, "llm_provider-decode")

    def _show_whole(self, reply: Any, emit: Emit) -> Any:
        """Show each sample of a reply that came whole as one delta, unless it is no answer."""
        with contextlib.suppress(LLMError):
            answer: Any = self.call.exchange.decode(self.call, reply, self.samples)
            self.first_token = clock.perf_counter() - self._sent
            choices = enumerate(answer.choices[: self.samples])
            emit([delta_of_choice(choice, index) for index, choice in choices])
        return reply

    def describe_failure(self, error: LLMError) -> FailedAttempt:
        self.failure = FailedAttempt(
            error=type(error).__name__,
            status=error.status,
            waited=self.waited,
            seconds=self.seconds,
            maybe_billed=error.maybe_billed,
        )
        return self.failure

    @property
    def usage(self) -> Usage | None:
        """The usage that an invalid answer reports; None if it reports none."""
        if self._reply is None:
            return None
        try:
            usage = self.call.exchange.usage(self.call, self._reply)
        except LLMError:
            return None
        # An answer that reports no usage is decoded as zeros.
        return usage if usage is not None and usage.total_tokens else None

    @property
    def cost(self) -> Decimal | None:
        """The USD that an invalid answer reports; None if it reports none."""
        return cost_in(self._reply.get("usage")) if isinstance(self._reply, dict) else None


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


class _Watch:
    """Moves the end of an attempt's timer as its answer arrives, never beyond the total timeout."""

    def __init__(self, timer: asyncio.Timeout, outgoing: Outgoing) -> None:
        self._timer = timer
        self._timeouts = outgoing.timeouts
        self._total = outgoing.timeout
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
            return _too_long(self._total)
        allowed = getattr(self._timeouts, self._phase)
        if self._phase == "first_byte":
            return APITimeoutError(f"no first byte within {allowed:g} s", phase=self._phase, limit=allowed)
        pieces = f"{self._arrived} piece{'' if self._arrived == 1 else 's'} of the answer"
        return APITimeoutError(
            f"stalled: nothing for {allowed:g} s after {pieces}", phase=self._phase, limit=allowed
        )


def _too_long(total: float) -> APITimeoutError:
    return APITimeoutError(f"no complete answer within {total:g} s", phase="total", limit=total)


def _with_limit(error: LLMError, timeouts: Timeouts) -> LLMError:
    """Adds the limit to the error of a connect timeout: the transport does not know it."""
    if isinstance(error, APITimeoutError) and error.phase == "connect" and timeouts.connect is not None:
        error.limit = timeouts.connect
        error.message = f"no connection within {timeouts.connect:g} s"
    return error


def parse_reply(body: bytes) -> Any:
    """The reply in a body; an `APIResponseValidationError` where it is not JSON, too deep or too large."""
    try:
        return loads(body.removeprefix(BYTE_ORDER_MARK))
    except JSONLimitError as error:
        # The next answer would be as large, and be billed.
        raise APIResponseValidationError(f"the answer cannot be read: {error}", retryable=False) from None
    except ValueError:
        beginning = body[:60].decode("utf-8", "replace")
        raise APIResponseValidationError(
            f"the answer is not JSON: {beginning!r}" if body else "the answer is empty"
        ) from None


T = TypeVar("T")


async def send_with_retries(work: Callable[[], Awaitable[T]], adapter: Adapter, max_retries: int) -> T:
    """The result of `work`, a request that nobody bills, with up to `max_retries` more after failures."""
    cassette.refuse_sending("a list, a count or a file")
    attempts, budget = 0, RetryBudget()
    while True:
        attempts += 1
        try:
            return await work()
        except Exception as failure:
            error: LLMError = failure if isinstance(failure, LLMError) else adapter.map_error(failure)
            error.maybe_billed = False
            verdict = judge(
                error,
                attempts=attempts,
                max_retries=max_retries,
                random_source=randomness.generator,
                budget=budget,
                now=asyncio.get_running_loop().time(),
            )
            if not verdict.retry:
                error.attempts = attempts
                raise error from None
        await asyncio.sleep(verdict.delay)


def scrub_error(error: LLMError, key: Credential, subject: str, provider: str, remedy: str = "") -> LLMError:
    """The error of a request that is no call, without the key and without the frames that hold it."""
    error.message = key.scrub(f"{subject} failed: {error.message}") + remedy
    error.args, error.provider = (error.message,), provider
    error.__cause__ = error.__context__ = None
    return error.with_traceback(None)
