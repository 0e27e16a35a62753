"""The connection to Gemini's Interactions through the google-genai SDK, by its public methods.

An interaction in the background is fetched until it has ended. If that breaks off, the next attempt with the
same body goes on with the interaction, which Google keeps and bills in any case. A stream of one goes on
after the last event that has arrived.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from ...errors import MissingDependencyError
from ...runtime.json_pieces import loads
from ...settings import MAX_RESPONSE_BYTES
from .. import sdk_clients
from ..gemini.connection import describe_sdk, raise_unread
from ..protocol import IsComplete, Outgoing, never
from ..shared.replies import part
from ..transport import wire
from ..transport.connection import SDK, Exchange, SDKConnection
from ..transport.wire import END, WholeReply, events
from .decode import goes_on, read_error

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
"""Seconds between two questions for an interaction in the background. Each pause is half as long again."""

_MOST_RESUMED = 5
"""Times in turn that a stream is resumed without any new event."""

_MOST_UNREADABLE = 8
"""Answers to these questions that are no JSON."""


def connect(transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> SDKConnection:
    if int(version("google-genai").partition(".")[0]) < 3:
        raise MissingDependencyError("Interactions need google-genai 3: pip install 'google-genai>=3'")
    sdk = describe_sdk(
        ask=_ask,
        live_headers=lambda _: {},
        stream_fields=lambda _: {"stream": True},
        stream_headers={"accept": "text/event-stream"},
    )
    return _Connection(sdk, transport, most_bytes)


async def _ask(client: Any, outgoing: Outgoing, exchange: Exchange) -> None:
    encoded = outgoing.encoded
    try:
        await client.aio.interactions.create(
            # Any body: only the address and the headers are kept.
            model="gemini",
            input="",
            api_version=encoded.operation.partition("/")[0],
            extra_headers=dict(encoded.headers),
        )
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise_unread(exchange, read_error, error)
    exchange.headers.update(encoded.headers)


class _Connection(SDKConnection):
    """Waits for interactions in the background."""

    def __init__(self, sdk: SDK, transport: str, most_bytes: int) -> None:
        super().__init__(sdk, transport, most_bytes)
        self._begun: dict[object, list[_Begun]] = {}
        """The interactions that have not ended, as far as is known, by what was asked."""

    async def send(self, outgoing: Outgoing) -> bytes:
        """The answer. The payload, not the body, says whether it runs in the background, and is awaited."""
        if not outgoing.encoded.payload.get("background"):
            return await super().send(outgoing)
        begun = self._claim(outgoing) or self._note(outgoing, super().send)
        try:
            if begun.identifier is None and (reply := await begun.submit(outgoing)) is not None:
                self._end(outgoing, begun)
                return reply
            clients = sdk_clients.gemini_client(outgoing.target, outgoing.key)
            try:
                reply = await _wait(clients[0], outgoing, str(begun.identifier))
            finally:
                await sdk_clients.close_gemini_client(*clients)
        except BaseException as error:
            self._leave(outgoing, begun, error)
            raise
        self._end(outgoing, begun)
        return reply

    def _claim(self, outgoing: Outgoing) -> "_Begun | None":
        """An interaction with the same question that nobody waits for. This task waits for it from now on."""
        begun = next((each for each in self._begun.get(_question(outgoing), ()) if each.is_free), None)
        if begun is not None:
            begun.waiter, begun.is_claimed = asyncio.current_task(), True
        return begun

    def _note(self, outgoing: Outgoing, send: Callable[..., Awaitable[bytes]] | None = None) -> "_Begun":
        begun, others = _Begun(outgoing, asyncio.current_task()), self._begun.get(_question(outgoing), ())
        kept = [each for each in others if each.goes_on or each.waiter is not None]
        self._begun[_question(outgoing)] = [*kept, begun]
        if send is not None:
            # It goes on if this task is cancelled: Google may have begun, and only its answer has the id.
            begun.submission = asyncio.create_task(_submit(send, outgoing))
        return begun

    def _end(self, outgoing: Outgoing, begun: "_Begun") -> None:
        others = [each for each in self._begun.pop(_question(outgoing), ()) if each is not begun]
        if others:
            self._begun[_question(outgoing)] = others

    def _leave(self, outgoing: Outgoing, begun: "_Begun", error: BaseException) -> None:
        """Leave an interaction to the next equal request, unless one has it already, or Google has it not."""
        if begun.waiter is not asyncio.current_task():
            return
        begun.waiter = None
        if begun.submission is not None and wire.departure.get().is_held and not begun.is_claimed:
            begun.submission.cancel()  # it is not sent yet
            self._end(outgoing, begun)
        elif getattr(error, "status_code", None) == 404 or not begun.goes_on:
            self._end(outgoing, begun)
        elif isinstance(error, Exception) and begun.identifier is not None:
            error.add_note(f"the interaction {begun.identifier} goes on at Google")

    async def close(self) -> None:
        for begun in [each for several in self._begun.values() for each in several]:
            if begun.submission is not None:
                begun.submission.cancel()
        await super().close()

    def stream(
        self, outgoing: Outgoing, is_complete: IsComplete = never
    ) -> AsyncGenerator[Iterable[Any], None]:
        if not outgoing.encoded.payload.get("background"):
            return super().stream(outgoing, is_complete)
        return self._stream_on(outgoing, is_complete)

    async def _stream_on(
        self, outgoing: Outgoing, is_complete: IsComplete
    ) -> AsyncGenerator[Iterable[Any], None]:
        """The events of an interaction, which goes on at Google if nobody waits for them any more."""
        progress = _Progress(begun := self._claim(outgoing) or self._note(outgoing))
        try:
            known = begun.identifier is not None or begun.submission is None
            if not known and (reply := await begun.submit(outgoing)) is not None:
                yield (WholeReply(loads(reply)),)
                return
            async with contextlib.aclosing(self._connect_on(outgoing, is_complete, progress)) as batches:
                async for batch in batches:
                    yield batch
        except BaseException as error:
            if not is_complete():
                self._leave(outgoing, begun, error)
            raise
        finally:
            if is_complete() or begun.waiter is asyncio.current_task():
                self._end(outgoing, begun)

    async def _connect_on(
        self, outgoing: Outgoing, is_complete: IsComplete, progress: "_Progress"
    ) -> AsyncGenerator[Iterable[Any], None]:
        """The events of an interaction, each once, over as many connections as they take."""
        in_vain = 0
        failure: Exception | None
        while True:
            number, begun = len(progress.seen), progress.identifier is not None
            source = _resume(outgoing, progress) if begun else self._begin(outgoing, is_complete, progress)
            failure, error_event = None, None
            try:
                async with contextlib.aclosing(source) as batches:
                    async for batch in batches:
                        for event in batch:
                            is_whole = type(event) is WholeReply and not progress.has_content
                            if is_whole or not isinstance(event, dict):
                                self._end(outgoing, progress.begun)
                                yield (event,)  # the assembler says what is wrong with another value
                                return
                            if event.get("error") or event.get("event_type") == "error":
                                error_event = event
                            elif progress.take(event):
                                yield (event,)
            except Exception as error:
                failure = error
            if is_complete():
                return
            in_vain = in_vain + 1 if len(progress.seen) == number else 0
            gone = getattr(failure, "status_code", None) == 404
            if progress.identifier is None or not progress.exact or in_vain >= _MOST_RESUMED or gone:
                break
            await asyncio.sleep(min(_FIRST_PAUSE * 1.5**in_vain, _LONGEST_PAUSE))
        if error_event is not None:
            self._end(outgoing, progress.begun)
            yield (error_event,)
        elif progress.identifier is not None:
            self._leave(outgoing, progress.begun, failure or EOFError())
        if failure is not None:
            raise failure

    async def _begin(
        self, outgoing: Outgoing, is_complete: IsComplete, progress: "_Progress"
    ) -> AsyncGenerator[Iterable[Any], None]:
        """The events of a new stream. The first ones are read in any case, because they have the id."""
        begun, source, is_left = progress.begun, super().stream(outgoing, is_complete), False
        first: list[list[Any]] = []

        async def read_first() -> bytes:
            try:
                async with asyncio.timeout(_longest_submission(outgoing)):
                    first.append(list(await anext(source, ())))
                for event in first[0]:
                    progress.note_identifier(event)
                if is_left and begun.identifier is None:
                    raise ConnectionError("the stream was left before its interaction had an id")
            finally:
                if is_left:
                    await source.aclose()
            return b""

        begun.submission = reading = asyncio.create_task(read_first())
        try:
            await asyncio.shield(reading)
            begun.submission = None
        except BaseException:
            is_left = True
            if reading.done():
                begun.submission = None
                await source.aclose()
            raise
        async with contextlib.aclosing(source):
            yield first[0]
            async for batch in source:
                yield batch

    async def send_in_chunks(self, outgoing: Outgoing) -> AsyncGenerator[bytes, None]:
        if outgoing.encoded.payload.get("background"):
            yield await self.send(outgoing)
            return
        async for piece in super().send_in_chunks(outgoing):
            yield piece


def _question(outgoing: Outgoing) -> object:
    return outgoing.target.route, outgoing.target.base_url, outgoing.key.identity, outgoing.body


async def _submit(send: Callable[..., Awaitable[bytes]], outgoing: Outgoing) -> bytes:
    """Send a request that may outlive its task, as long as an attempt may take."""
    async with asyncio.timeout(_longest_submission(outgoing)):
        return await send(outgoing)


def _longest_submission(outgoing: Outgoing) -> float:
    return min(filter(None, (outgoing.timeout, outgoing.timeouts.first_byte)))


@dataclass(slots=True, eq=False)
class _Begun:
    """An interaction, from its submission on."""

    outgoing: Outgoing
    waiter: asyncio.Task[Any] | None
    """The task that waits for it."""
    identifier: str | None = None
    """Its id; None until it is told."""
    submission: asyncio.Task[bytes] | None = None
    is_claimed: bool = False
    """Whether a second request has waited for it."""

    @property
    def goes_on(self) -> bool:
        """Whether its id is known, or will be."""
        sent = self.submission
        failed = sent is None or (sent.done() and (sent.cancelled() or sent.exception() is not None))
        return self.identifier is not None or not failed

    @property
    def is_free(self) -> bool:
        """Whether nobody waits for it. A task that is cancelled has connections to close before its end."""
        waiter = self.waiter
        return self.goes_on and (waiter is None or waiter.done() or waiter.cancelling() > 0)

    async def submit(self, outgoing: Outgoing) -> bytes | None:
        """The answer to its submission; None if it goes on in the background, so that its id is known."""
        assert self.submission is not None
        reply = await asyncio.shield(self.submission)
        outgoing.headers = self.outgoing.headers
        if self.identifier is None:
            with contextlib.suppress(ValueError, RecursionError):  # its decoder says what is wrong with it
                self.identifier = _find_unfinished(reply)
        return reply if self.identifier is None else None


@dataclass(slots=True)
class _Progress:
    """How far the stream of an interaction has come."""

    begun: _Begun
    last: str | None = None
    """The id of the last event that has one."""
    seen: set[str] = field(default_factory=set)
    """The ids of all events: a gateway may begin with the first event again."""
    exact: bool = True
    """Whether the stream can go on after the last event: no later part of the answer came without an id."""
    has_content: bool = False
    """Whether a part of the answer has arrived."""

    @property
    def identifier(self) -> str | None:
        return self.begun.identifier

    def note_identifier(self, event: Any) -> None:
        """Note the id of the interaction, if an event is the first that tells it."""
        if self.identifier is None and isinstance(event, dict):
            identifier = part(event, "interaction").get("id") or event.get("interaction_id")
            self.begun.identifier = identifier if isinstance(identifier, str) else None

    def take(self, event: Any) -> bool:
        """Note an event. Returns whether it is a new one."""
        mark, kind = event.get("event_id"), str(event.get("event_type"))
        if event is END or mark in self.seen:
            return False
        self.note_identifier(event)
        if isinstance(mark, str) and mark:
            self.last = mark
            self.seen.add(mark)
            self.exact = True
        elif kind.startswith("step."):
            self.exact = False
        self.has_content |= kind.startswith("step.")
        return True


async def _resume(outgoing: Outgoing, progress: _Progress) -> AsyncGenerator[Iterable[Any], None]:
    """The rest of a stream, by the SDK's own form for it."""
    encoded = outgoing.encoded
    clients = sdk_clients.gemini_client(outgoing.target, outgoing.key)
    try:
        async with clients[0].aio.interactions.with_streaming_response.get(
            progress.identifier,
            stream=True,
            last_event_id=progress.last,
            api_version=encoded.operation.partition("/")[0],
            extra_headers=dict(encoded.headers),
            timeout=outgoing.timeout,
        ) as answer:
            async for batch in events(answer.iter_bytes(), mark_end=True):
                yield batch
    finally:
        await sdk_clients.close_gemini_client(*clients)


def _find_unfinished(reply: bytes) -> str | None:
    """The id of an interaction that goes on in the background; None for one that has ended."""
    interaction = loads(reply)
    if not isinstance(interaction, dict) or not goes_on(interaction):
        return None
    identifier = interaction.get("id")
    return identifier if isinstance(identifier, str) else None


async def _wait(client: Any, outgoing: Outgoing, identifier: str) -> bytes:
    """Ask for an interaction until it has ended."""
    encoded, pause, unreadable = outgoing.encoded, _FIRST_PAUSE, 0
    while True:
        await asyncio.sleep(pause)
        pause = min(1.5 * pause, _LONGEST_PAUSE)
        answer = await client.aio.interactions.with_raw_response.get(
            identifier,
            api_version=encoded.operation.partition("/")[0],
            extra_headers=dict(encoded.headers),
        )
        reply: bytes = await answer.read()
        try:
            unfinished = _find_unfinished(reply)
        except (ValueError, RecursionError):
            # The page or the empty body of a proxy ends no interaction: valyuAI/valyu-py#126.
            unreadable += 1
            if unreadable >= _MOST_UNREADABLE:
                raise
            continue
        if unfinished is None:
            outgoing.headers = {name.lower(): value for name, value in answer.headers.items()}
            return reply
