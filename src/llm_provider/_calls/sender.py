"""The requests of a call, one after the other, until one is answered or there is no point in another.

    slot → API key → send → decode → priced, or judged and begun again

A slot is held while a request is under way and never while waiting for the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING

from .._errors import FailedAttempt, LLMError, UnsupportedParameterError
from .._limits import retry
from .._limits.aimd import AIMD
from .._limits.controller import AdaptiveController
from .._limits.rate_estimator import Ticket
from .._limits.scopes import Controller, Limiter, Scope
from .._limits.shared_controller import SharedController, SharedStateFile
from .._providers.adapter import Connection, Outgoing
from .._requests.api_keys import APIKey
from .._tokens.counting import likely_input_tokens
from .._types import Usage
from .attempt import Attempt, Emit
from .call import Call, Sample
from .key_pool import KeyPools, KeySelection
from .prepare import Front

# Not where it is asked: what ends while the interpreter does must load nothing.
from .worst_case import worst_case

if TYPE_CHECKING:
    from decimal import Decimal

    from .._money.pricing import PriceTable
    from .reservation import Hold, Spending

_COUNTS_WHAT_MAY_BE_ANSWERED = frozenset({"openai"})
"""Providers whose limits of tokens count `max_tokens`, whatever is answered (OpenAI's guide to limits)."""


class Sender:
    """What sends on one loop: open connections, limits, and the keys' accounts."""

    def __init__(self, front: Front) -> None:
        self._settings = front.settings
        leases = front.cache.lease_directory
        self._shared = SharedStateFile(
            None if leases is None else leases.parent / "limits",
            quiet=front.settings.rate_control != "shared",
        )
        self._connections: dict[tuple[str, str], Connection] = {}
        self.accounts = front.accounts
        self.limiter = Limiter(self._controller)
        self.rings = KeyPools(front.settings.keys, self.limiter)
        self.random = random.Random()

    def _controller(self, scope: str) -> Controller:
        rate_control = self._settings.rate_control
        if rate_control == "aimd":
            return AIMD()
        if rate_control == "independent":
            return AdaptiveController()
        return SharedController(self._shared, scope, from_start=rate_control == "shared")

    def send(self, call: Call, samples: int, emit: Emit | None) -> Coroutine[None, None, Sample]:
        """Get an answer with so many samples from the provider.

        Raises:
            LLMError: there is none; retries are over.
        """
        request, target = call.request, call.target
        turn, key, connection = self._means(call, streamed=emit is not None)
        outgoing = self._outgoing(call, samples, key)
        scope = self.limiter.scope(target.provider, target.base_url, target.model, key.identity)
        most = self._settings.max_retries if request.max_retries is None else request.max_retries
        spending = self.spending(call, samples) if self._is_limited(call) else None
        return _Sending(self, call, samples, emit, outgoing, scope, turn, spending, most).run(connection)

    def _means(self, call: Call, *, streamed: bool) -> tuple[KeySelection | None, APIKey, Connection]:
        """What a call is sent with: its way through several keys, if there are, the first, a connection."""
        target, request = call.target, call.request
        try:
            turn = self.rings.turn(target, request)
            key = self.rings.key(target, request.api_key) if turn is None else turn.secrets[0]
            connection = self._connection(call)
            if request.timeout is not None and request.timeout.watches and not streamed:
                _check_watchable(connection)
        except LLMError as error:
            error.provider, error.model = target.provider, request.model
            raise
        return turn, key, connection

    def _is_limited(self, call: Call) -> bool:
        """Whether a budget limits what the call may cost."""
        return call.request.budget is not None or self._settings.budget is not None

    def spending(self, call: Call, samples: int) -> Spending:
        """The budgets that a request for some samples of a call is under."""
        # Only calls with a budget need the module, and what it loads.
        from .reservation import Spending

        given = (call.request.budget, self._settings.budget)
        budgets = [budget for budget in given if budget is not None]
        return Spending(call, samples, budgets, self.accounts.prices())

    def _outgoing(self, call: Call, samples: int, key: APIKey) -> Outgoing:
        timeouts = self._settings.timeout
        if call.request.timeout is not None:
            timeouts = call.request.timeout.over(timeouts)
        return Outgoing(call.encoded, call.body_for(samples), call.target, key, timeouts)

    def _connection(self, call: Call) -> Connection:
        transport = self._settings.transport_of(call.target.route)
        name = (call.target.route.adapter, transport)
        connection = self._connections.get(name)
        if connection is None:
            connection = self._connections[name] = call.adapter.connect(transport)
        return connection

    async def close(self) -> None:
        """Close every connection."""
        self._shared.close()
        for connection in self._connections.values():
            with contextlib.suppress(Exception):  # a connection that cannot be closed is closed enough
                await connection.close()


class _Sending:
    """The requests of one call, and what has become of them so far."""

    __slots__ = (
        "_call", "_cost", "_emit", "_failures", "_most_retries", "_outgoing", "_queue", "_samples", "_scope",
        "_sender", "_spending", "_ticket", "_turn", "_verdict",
    )  # fmt: skip

    def __init__(
        self,
        sender: Sender,
        call: Call,
        samples: int,
        emit: Emit | None,
        outgoing: Outgoing,
        scope: Scope,
        turn: KeySelection | None,
        spending: Spending | None,
        most_retries: int,
    ) -> None:
        self._sender = sender
        self._call = call
        self._samples = samples
        self._emit = emit
        self._outgoing = outgoing
        self._scope = scope
        self._turn = turn
        self._spending = spending
        self._most_retries = most_retries
        # Providers charge a limit of tokens with all that a request may answer.
        self._cost = likely_input_tokens(call) + (call.request.max_tokens or 0) * samples
        self._queue = 0.0
        self._failures: tuple[FailedAttempt, ...] = ()
        self._verdict = retry.FINAL
        self._ticket: Ticket

    async def run(self, connection: Connection) -> Sample:
        """Send until there is an answer.

        Raises:
            LLMError: what the last request ended with, or why it was not sent.
        """
        since = time.perf_counter()
        try:
            while True:
                hold = await self._leave()
                waited = time.perf_counter() - since
                self._queue += waited
                attempt = Attempt(self._call, self._outgoing, self._emit, self._heard)
                try:
                    await attempt.make(connection)
                except BaseException as cancellation:
                    self._cancelled(cancellation, hold)
                    raise
                since = time.perf_counter()
                if attempt.error is None:
                    return self._answered(attempt, hold)
                self._failed(attempt, attempt.error, waited, hold)
                if not self._verdict.retry:
                    raise attempt.error
                # After a refusal the scope holds everyone back as long as it takes, this call included.
                await asyncio.sleep(0.0 if retry.is_congestion(attempt.error) else self._verdict.delay)
        except LLMError as error:
            raise self._explained(error) from None

    async def _leave(self) -> Hold | None:
        """Wait for leave to send, and for the money."""
        call, first, hold = self._call, bool(self._failures), None
        if self._spending is not None:
            self._verdict = retry.FINAL
            self._ticket, hold = await self._spending.acquire(
                self._turn or self._scope, self._cost, first=first
            )
        else:
            self._ticket = await (self._turn or self._scope).acquire(
                call.max_concurrent, cost=self._cost, at_once=call.at_once, first=first
            )
        if self._turn is not None:
            self._scope, self._outgoing.key = self._turn.scope, self._turn.key
        if call.deadline is not None:
            call.deadline.unfailed += 1
        return hold

    def _heard(self, headers: Mapping[str, str]) -> None:
        self._scope.on_headers(self._ticket, headers)

    def _cancelled(self, cancellation: BaseException, hold: Hold | None) -> None:
        self._scope.cancelled(self._ticket)
        # What was sent may be billed all the same.
        self._sender.accounts.failed(self._call, cancellation, self._bound)
        if hold is not None:
            hold.lost()

    def _answered(self, attempt: Attempt, hold: Hold | None) -> Sample:
        sample = attempt.sample(self._queue, self._failures)
        self._scope.ended(self._ticket, None, cost=self._charged(sample.answer.usage))
        self._sender.accounts.answered(self._call, sample, self._bound)
        if hold is not None:
            hold.answered(sample.cost)
        if self._turn is not None:
            self._turn.served()
        return sample

    def _failed(self, attempt: Attempt, error: LLMError, waited: float, hold: Hold | None) -> None:
        self._scope.ended(self._ticket, error)
        cost = None
        if error.maybe_billed:
            cost = self._sender.accounts.failed(self._call, error, self._bound, attempt.usage)
        if hold is not None:
            hold.failed(error, cost)
        self._failures += (attempt.failure(waited),)
        self._outgoing.retries += 1
        deadline = self._call.deadline
        if deadline is not None:
            deadline.unfailed -= 1
            deadline.failures += self._failures[-1:]
        self._verdict = retry.judge(
            error,
            attempts=len(self._failures),
            max_retries=self._most_retries,
            shown=attempt.first_token is not None,
            elsewhere=self._turn is not None and self._turn.failed(error),
            random_source=self._sender.random,
            budget=self._scope.retries,
            deadline=deadline,
        )

    def _charged(self, usage: Usage | None) -> float | None:
        """Tokens that the provider's limit has counted, where an answer tells."""
        if usage is None or self._call.target.provider in _COUNTS_WHAT_MAY_BE_ANSWERED:
            return None
        return float(usage.total_tokens)

    def _bound(self, prices: PriceTable) -> Decimal | None:
        return worst_case(self._call, self._samples, prices)

    def _explained(self, error: LLMError) -> LLMError:
        """The error as the user sees it: with the call's facts, without any key and the SDK's objects."""
        error.provider = self._call.target.provider
        error.model = self._call.request.model
        error.attempts, error.failures = len(self._failures), self._failures
        for key in [self._outgoing.key] if self._turn is None else self._turn.secrets:
            error.message = key.scrub(error.message)
        if self._verdict.reason:
            error.message += f" ({self._verdict.reason})"
        error.args = (error.message,)
        error.__cause__ = error.__context__ = error.__traceback__ = None
        return error


def _check_watchable(connection: Connection) -> None:
    """Refuse what cannot be kept; as a client's default it holds where it can.

    Raises:
        UnsupportedParameterError: the connection shows an answer only when all of it is there.
    """
    if connection.send_in_chunks is None:
        raise UnsupportedParameterError(
            "first_byte and idle cannot be told here, where the SDK shows a whole answer only at its end: "
            "leave them out of timeout, or use stream()",
            parameter="timeout",
        )
