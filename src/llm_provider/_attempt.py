"""One request to a provider, and what becomes of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from ._call import Call, Sample
from ._errors import BadResponse, FailedAttempt, LLMError, Timeout
from ._types import Delta, Usage
from .providers._adapter import Answer, Connection, Heard, Outgoing
from .providers._failures import failure_headers

Emit = Callable[[list[Delta]], None]
"""Takes what a stream added, the steps that arrived together in one list."""


class Attempt:
    """One request and what became of it: an answer, or an error of ours."""

    def __init__(self, call: Call, outgoing: Outgoing, emit: Emit | None, heard: Heard) -> None:
        self._call = call
        self._outgoing = outgoing
        self._emit = emit
        self._heard = heard
        self.error: LLMError | None = None
        self.first_token: float | None = None
        self._answer: Answer | None = None
        self._body = b""
        self._sent = 0.0
        self._seconds = 0.0

    async def make(self, connection: Connection) -> None:
        """Send, receive and decode within the timeout; only cancellation raises."""
        timeout = self._outgoing.timeout
        self._sent = time.perf_counter()
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                if self._emit is None:
                    self._body = await connection.send(self._outgoing, self._heard)
                else:
                    self._body = await self._receive(connection, self._emit)
            self._answer = self._call.adapter.decode(_parsed(self._body))
        except LLMError as error:
            self.error = error
        except Exception as error:
            if deadline.expired():
                self.error = Timeout(f"no complete answer within {timeout:g} s")
            else:
                self.error = self._call.adapter.map_error(error)
                self._hear(failure_headers(error))
        finally:
            self._seconds = time.perf_counter() - self._sent

    async def _receive(self, connection: Connection, emit: Emit) -> bytes:
        assembler = self._call.adapter.Assembler()
        async with contextlib.aclosing(connection.stream(self._outgoing, self._heard)) as batches:
            async for batch in batches:
                deltas = []
                try:
                    for event in batch:
                        delta = assembler.feed(event)
                        if delta:
                            deltas.append(delta)
                finally:
                    # Also what came together with the failure that ends the stream.
                    if deltas:
                        if self.first_token is None:
                            self.first_token = time.perf_counter() - self._sent
                        emit(deltas)
        return orjson.dumps(assembler.reply())

    def _hear(self, headers: Mapping[str, str]) -> None:
        if headers:
            self._heard(headers)

    def failure(self, waited: float) -> FailedAttempt:
        """What there is to tell of an attempt that failed."""
        assert self.error is not None
        return FailedAttempt(
            error=type(self.error).__name__,
            status=self.error.status,
            waited=waited,
            seconds=self._seconds,
            maybe_billed=self.error.maybe_billed,
        )

    @property
    def usage(self) -> Usage | None:
        """What an answer that cannot be used says it used; None where it says nothing."""
        try:
            usage = self._call.adapter.usage(orjson.loads(self._body))
        except (LLMError, ValueError):
            return None
        # Zeros are what is not told.
        return usage if usage is not None and usage.total_tokens else None

    def sample(self, queue: float, failures: tuple[FailedAttempt, ...]) -> Sample:
        """The answer of a successful attempt."""
        assert self._answer is not None
        return Sample(
            self._answer,
            self._body,
            cached=False,
            queue=queue,
            sending=self._seconds,
            attempts=len(failures) + 1,
            failures=failures,
            first_token=self.first_token,
        )


def _parsed(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except ValueError:
        shown = body[:60].decode("utf-8", "replace")
        raise BadResponse(f"the answer is not JSON: {shown!r}" if body else "the answer is empty") from None
