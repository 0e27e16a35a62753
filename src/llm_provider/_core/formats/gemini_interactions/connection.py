"""The connection to Gemini's Interactions through the google-genai SDK, by its public methods.

An interaction in the background is fetched until it has ended. If that breaks off, the next attempt with the
same body goes on with the interaction, which Google keeps and bills in any case. A stream of one goes on
after the last event that has arrived.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterable
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
from ..transport.connection import SDK, Exchange, SDKConnection
from ..transport.wire import END, WholeReply, events
from .decode import UNFINISHED, read_error

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
        self._left: dict[object, list[str]] = {}
        """The ids of interactions that no request waits for any more, by what was asked."""

    async def send(self, outgoing: Outgoing) -> bytes:
        """The answer. The payload, not the body, says whether it runs in the background, and is awaited."""
        if not outgoing.encoded.payload.get("background"):
            return await super().send(outgoing)
        target, identifier = outgoing.target, self._take_left(outgoing)
        if identifier is None:
            reply = await super().send(outgoing)
            begun = None
            with contextlib.suppress(ValueError, RecursionError):  # its decoder says what is wrong with it
                begun = _find_unfinished(reply)
            if begun is None:
                return reply
            identifier = begun
        clients = sdk_clients.gemini_client(target, outgoing.key)
        try:
            return await _wait(clients[0], outgoing, identifier)
        except BaseException as error:
            # Before the clients are closed, as an equal call may begin meanwhile.
            self._leave(outgoing, identifier, error)
            raise
        finally:
            await sdk_clients.close_gemini_client(*clients)

    def _take_left(self, outgoing: Outgoing) -> str | None:
        question = _question(outgoing)
        left = self._left.pop(question, [])
        identifier = left.pop() if left else None
        if left:
            self._left[question] = left
        return identifier

    def _leave(self, outgoing: Outgoing, identifier: str, error: BaseException) -> None:
        if getattr(error, "status_code", None) != 404:
            self._left.setdefault(_question(outgoing), []).append(identifier)
            if isinstance(error, Exception):
                error.add_note(f"the interaction {identifier} goes on at Google")

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
        progress = _Progress(self._take_left(outgoing))
        try:
            async with contextlib.aclosing(self._connect_on(outgoing, is_complete, progress)) as batches:
                async for batch in batches:
                    yield batch
        except asyncio.CancelledError as cancellation:
            if progress.identifier is not None and not is_complete():
                self._leave(outgoing, progress.identifier, cancellation)
            raise

    async def _connect_on(
        self, outgoing: Outgoing, is_complete: IsComplete, progress: "_Progress"
    ) -> AsyncGenerator[Iterable[Any], None]:
        """The events of an interaction, each once, over as many connections as they take."""
        in_vain = 0
        failure: Exception | None
        while True:
            number, begun = len(progress.seen), progress.identifier is not None
            source = _resume(outgoing, progress) if begun else super().stream(outgoing, is_complete)
            failure, error_event = None, None
            try:
                async with contextlib.aclosing(source) as batches:
                    async for batch in batches:
                        for event in batch:
                            is_whole = type(event) is WholeReply and not progress.has_content
                            if is_whole or not isinstance(event, dict):
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
            yield (error_event,)
        elif progress.identifier is not None:
            self._leave(outgoing, progress.identifier, failure or EOFError())
        if failure is not None:
            raise failure

    async def send_in_chunks(self, outgoing: Outgoing) -> AsyncGenerator[bytes, None]:
        if outgoing.encoded.payload.get("background"):
            yield await self.send(outgoing)
            return
        async for piece in super().send_in_chunks(outgoing):
            yield piece


def _question(outgoing: Outgoing) -> object:
    return outgoing.target.route, outgoing.target.base_url, outgoing.key.identity, outgoing.body


@dataclass(slots=True)
class _Progress:
    """How far the stream of an interaction has come."""

    identifier: str | None
    """The id of the interaction, None until it is told."""
    last: str | None = None
    """The id of the last event that has one."""
    seen: set[str] = field(default_factory=set)
    """The ids of all events: a gateway may begin with the first event again."""
    exact: bool = True
    """Whether the stream can go on after the last event: no later part of the answer came without an id."""
    has_content: bool = False
    """Whether a part of the answer has arrived."""

    def take(self, event: Any) -> bool:
        """Note an event. Returns whether it is a new one."""
        mark, kind = event.get("event_id"), str(event.get("event_type"))
        if event is END or mark in self.seen:
            return False
        identifier = part(event, "interaction").get("id") or event.get("interaction_id")
        if self.identifier is None and isinstance(identifier, str):
            self.identifier = identifier
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
    if not isinstance(interaction, dict) or interaction.get("status") not in UNFINISHED:
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
