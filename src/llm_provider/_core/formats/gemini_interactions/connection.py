"""The connection to Gemini's Interactions through the google-genai SDK, by its public methods.

An interaction in the background is fetched until it has ended. If that breaks off, the next attempt with the
same body goes on with the interaction, which Google keeps and bills in any case.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any

from ...runtime.json_pieces import loads
from ...settings import MAX_RESPONSE_BYTES
from .. import sdk_clients
from ..gemini.connection import describe_sdk, raise_unread
from ..protocol import Outgoing
from ..transport.connection import SDK, Exchange, SDKConnection
from .decode import UNFINISHED, read_error

_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
"""Seconds between two questions for an interaction in the background. Each pause is half as long again."""

_MOST_UNREADABLE = 8
"""Answers to these questions that are no JSON."""


def connect(transport: str, most_bytes: int = MAX_RESPONSE_BYTES) -> SDKConnection:
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
        target, body = outgoing.target, outgoing.body
        question = target.route, target.base_url, outgoing.key.identity, body
        left = self._left.pop(question, [])
        if left:
            identifier = left.pop()
            if left:
                self._left[question] = left
        else:
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
            if getattr(error, "status_code", None) != 404:
                self._left.setdefault(question, []).append(identifier)
                if isinstance(error, Exception):
                    error.add_note(f"the interaction {identifier} goes on at Google")
            raise
        finally:
            await sdk_clients.close_gemini_client(*clients)

    async def send_in_chunks(self, outgoing: Outgoing) -> AsyncGenerator[bytes, None]:
        if outgoing.encoded.payload.get("background"):
            yield await self.send(outgoing)
            return
        async for piece in super().send_in_chunks(outgoing):
            yield piece


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
