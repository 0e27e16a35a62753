"""The live delivery: sends the requests of a call, one after the other, until one is answered.

    slot → API key → budget → attempt → record the answer, or judge the failure and begin again

A slot is held while a request is under way and never while waiting for the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..._errors import FailedAttempt, LLMError, UnsupportedParameterError
from ..._limits import retry
from ..._limits.aimd import AIMD
from ..._limits.controller import AdaptiveController
from ..._limits.outage import LEAST_FAILURES, is_outage, is_unbilled
from ..._limits.rate_estimator import Ticket
from ..._limits.scopes import Controller, Limiter, ScopeStatistics
from ..._limits.shared_controller import SharedController, SharedStateFile
from ..._providers import registry
from ..._providers.protocol import Connection, Outgoing
from ..._providers.transport.certificates import check_certificates
from ..._providers.transport.proxies import check_proxy
from ..._requests.api_keys import environment_secrets
from ..._runtime.imports import LONGEST_IMPORT, PAUSE, when_imported
from ..._settings import Settings
from ..._telemetry.reasons import reason
from ..._telemetry.waits import LEAST_SECONDS, Waits
from ..._tokens.counting import count_charged_tokens
from ..._types.usage import Usage
from ..call import Call, Sample
from ..deltas import Emit
from ..observation import observe_attempt
from ..sent_requests import cost_of
from .attempt import Attempt
from .key_pool import KeyPools, KeySelection
from .recorder import CostRecorder

# Imported here: a call that ends during the exit of the interpreter must not import a module.
from .worst_case import worst_case

if TYPE_CHECKING:
    from decimal import Decimal

    from ..._money.pricing import PriceTable
    from ..._requests.api_keys import APIKey
    from .reservation import BudgetedRequest, Hold
    from .uploads import Uploads


class Sender:
    """The live delivery: sends each request now, at full price, under the limits of its scope.

    Args:
        settings: The settings of the client.
        recorder: Records the cost of each request.
        lease_directory: The directory of leases that the processes of a machine share; None if there is none.
        waits: Tells why calls wait.
    """

    def __init__(
        self, settings: Settings, recorder: CostRecorder, lease_directory: Path | None, waits: Waits
    ) -> None:
        self._settings = settings
        self._shared = SharedStateFile(
            None if lease_directory is None else lease_directory.parent / "limits",
            quiet=settings.rate_control != "shared",
        )
        self._connections: dict[tuple[str, str], Connection] = {}
        self._servers: set[tuple[str, str | None]] = set()
        self.recorder = recorder
        self.waits = waits
        self._limiter = Limiter(self._controller, waits)
        self._keys = KeyPools(settings.keys, self._limiter, settings.env_file)
        self.random = random.Random()
        self._directory = lease_directory
        self._uploads: Uploads | None = None

    def _controller(self, scope: str) -> Controller:
        rate_control = self._settings.rate_control
        if rate_control == "aimd":
            return AIMD()
        if rate_control == "independent":
            return AdaptiveController()
        return SharedController(self._shared, scope, from_start=rate_control == "shared")

    def send(self, call: Call[Any], parts: Sequence[int], emit: Emit | None) -> Coroutine[Any, Any, Sample]:
        """Get an answer with some parts of a call from the provider.

        Raises:
            LLMError: the last request failed, and no retry is left.
        """
        request, target = call.request, call.target
        try:
            selection = self._keys.select(target, request)
            connection = self._connection(call)
            if request.timeout is not None and request.timeout.watches and emit is None:
                _check_watchable(connection)
        except LLMError as error:
            error.provider, error.model = target.provider, request.model
            # The frames below may hold the URL of a proxy with its password.
            raise error.with_traceback(None) from None
        timeouts = self._settings.timeout
        if request.timeout is not None:
            timeouts = request.timeout.over(timeouts)
        outgoing = Outgoing(call.encoded, call.exchange.body(call, parts), target, selection.key, timeouts)
        if len(parts) > 1:
            outgoing.samples = len(parts)
        max_retries = self._settings.max_retries if request.max_retries is None else request.max_retries
        limited = call.exchange.billed and (request.budget is not None or self._settings.budget is not None)
        spending = self._spending(call, parts) if limited else None
        holds = request.max_retries is not None or self._settings.holds_max_retries
        sending = _Sending(self, call, parts, emit, outgoing, selection, spending, max_retries, holds=holds)
        return sending.run(connection)

    def affordable(self, call: Call[Any], parts: Sequence[int]) -> bool:
        """Whether the budgets have room for some parts of a call."""
        return self._spending(call, parts).affordable()

    def _spending(self, call: Call[Any], parts: Sequence[int]) -> BudgetedRequest:
        # Only calls with a budget need this module and its imports.
        from .reservation import BudgetedRequest

        given = (call.request.budget, self._settings.budget)
        budgets = [budget for budget in given if budget is not None]
        return BudgetedRequest(call, parts, budgets, self.recorder.prices())

    def _connection(self, call: Call[Any]) -> Connection:
        transport = self._settings.transport_of(call.target.route)
        name, server = (call.target.route.adapter, transport), (transport, call.target.base_url)
        if server not in self._servers:
            # litellm has clients of its own.
            check_proxy(call.target.base_url, "litellm" if name[0] == "litellm" else transport)
            check_certificates(call.target.base_url)
            self._servers.add(server)
        connection = self._connections.get(name)
        if connection is None:
            most_bytes = self._settings.max_response_bytes
            connection = when_imported(
                lambda: registry.load_connection(name[0]).connect(transport, most_bytes)
            )
            self._connections[name] = connection
        return connection

    @property
    def uploads(self) -> Uploads:
        """The files that were uploaded because they are too large for a request."""
        if self._uploads is None:
            # Only calls with such files need this module and its imports.
            from .uploads import Uploads

            directory = self._directory
            self._uploads = Uploads(None if directory is None else directory.parent / "uploads", directory)
        return self._uploads

    def statistics(self) -> list[ScopeStatistics]:
        """The state of the rate control of each scope in use."""
        return self._limiter.statistics()

    async def close(self) -> None:
        """Close every connection."""
        self._shared.close()
        if self._uploads is not None:
            with contextlib.suppress(Exception):  # as below
                await self._uploads.close()
        for connection in self._connections.values():
            with contextlib.suppress(Exception):  # nothing can be done about it
                await connection.close()


class _Sending:
    """The requests of one call and their outcomes so far."""

    __slots__ = (
        "_before", "_call", "_emit", "_failing_since", "_failures", "_file_ids", "_files_renewed", "_free",
        "_holds_max_retries", "_max_retries", "_outgoing", "_parts", "_queue", "_selection", "_sender",
        "_spending", "_ticket", "_tokens", "_uploaded", "_verdict",
    )  # fmt: skip

    def __init__(
        self,
        sender: Sender,
        call: Call[Any],
        parts: Sequence[int],
        emit: Emit | None,
        outgoing: Outgoing,
        selection: KeySelection,
        spending: BudgetedRequest | None,
        max_retries: int,
        *,
        holds: bool,
    ) -> None:
        self._sender = sender
        self._call = call
        self._parts = parts
        self._emit = emit
        self._outgoing = outgoing
        self._selection = selection
        self._spending = spending
        self._max_retries = max_retries
        self._holds_max_retries = holds
        """Whether `max_retries` also bounds the requests to a provider that is down."""
        self._tokens = call.exchange.tokens(call, parts)
        self._queue = 0.0
        self._failing_since = 0.0
        """Time of the first failure, on the clock of the loop."""
        self._free = 0
        """Failed requests that do not count against `max_retries`."""
        self._failures: tuple[FailedAttempt, ...] = ()
        self._before = len(call.sent.charges)
        self._verdict = retry.FINAL
        self._file_ids: dict[str, str] | None = None
        """The ids of the uploaded files that the last request used."""
        self._files_renewed = False
        self._uploaded: tuple[APIKey, dict[str, str]] | None = None
        """The ids of the files that this call has just uploaded, and their key."""
        self._ticket: Ticket

    async def run(self, connection: Connection) -> Sample:
        """Send until there is an answer.

        Raises:
            LLMError: the last request failed, or could not be sent.
        """
        since = time.perf_counter()
        try:
            while True:
                hold = await self._start()
                if self._call.encoded.uploads and not await self._refers(hold):
                    continue
                waited = time.perf_counter() - since
                self._queue += waited
                attempt = Attempt(self._call, len(self._parts), self._outgoing, self._emit, self._on_headers)
                try:
                    await attempt.make(connection)
                    while attempt.import_unfinished and time.perf_counter() - since < LONGEST_IMPORT:
                        attempt.error, attempt.import_unfinished = None, False
                        await asyncio.sleep(PAUSE)
                        await attempt.make(connection)
                except BaseException as cancellation:
                    self._end_cancelled(cancellation, hold)
                    raise
                since = time.perf_counter()
                if attempt.error is None:
                    return self._take_answer(attempt, waited, hold)
                alone = self._judge_failure(attempt, attempt.error, waited, hold)
                if not self._verdict.retry:
                    raise attempt.error
                # After most refusals the gate of the scope holds every call back, including this one.
                await asyncio.sleep(self._verdict.delay if alone else 0.0)
        except LLMError as error:
            if self._call.early_stop is not None:
                self._call.early_stop.failing.discard(id(self._call))
                self._call.early_stop.note_failure(error)
            raise self._explain(error) from None

    async def _start(self) -> Hold | None:
        """Wait for a slot, and for room in the budgets."""
        call, selection, hold = self._call, self._selection, None
        stop = call.early_stop
        if stop is not None and stop.stopped and not self._failures:
            raise stop.refuse()
        # A retry goes before calls that have sent no request yet. While the provider is down it goes behind
        # them: its own request may be the reason for the failure, and fewer calls use their retries up.
        first = bool(self._failures) and selection.scope.outage.down_since is None
        if self._spending is not None:
            self._verdict = retry.FINAL
            self._ticket, hold = await self._spending.acquire(
                selection, self._tokens, first=first, waits=self._sender.waits
            )
        else:
            self._ticket = await selection.acquire(
                call.concurrency.most,
                tokens=self._tokens,
                at_once=call.concurrency.at_once,
                first=first,
                patience=call.patience,
            )
        if stop is not None and stop.stopped and not self._failures:
            # The batch was stopped while the call waited.
            selection.withdrawn(self._ticket)
            if hold is not None:
                hold.count_nothing()
            raise stop.refuse()
        self._outgoing.key = selection.key
        call.sent.begin()
        return hold

    async def _refers(self, hold: Hold | None) -> bool:
        """Put the ids of uploaded files into the request.

        Returns:
            False if they had to be uploaded first. No slot is held meanwhile, so it must be taken again.

        Raises:
            LLMError: a file cannot be uploaded.
        """
        call, selection, uploads = self._call, self._selection, self._sender.uploads
        just, self._uploaded = self._uploaded, None
        if just is not None and just[0] == selection.key:
            self._file_ids = just[1]
        else:
            self._file_ids = uploads.ids(call, selection.key)
        if self._file_ids is not None:
            from .uploads import fill_references

            body = call.exchange.body(call, self._parts)
            original = replace(self._outgoing, encoded=call.encoded)
            self._outgoing = fill_references(original, self._file_ids, body)
            return True
        selection.withdrawn(self._ticket)
        if hold is not None:
            hold.count_nothing()
        call.sent.withdraw()
        self._verdict, key = retry.FINAL, selection.key
        try:
            found = await uploads.upload(call, key, self._max_retries, self._sender.random)
            self._uploaded = key, found
        except LLMError as error:
            # Another account may have the rights or the quota that this one lacks.
            if not selection.record_failure(error):
                raise
        return False

    def _on_headers(self, headers: Mapping[str, str]) -> None:
        self._selection.scope.on_headers(self._ticket, headers)

    def _end_cancelled(self, cancellation: BaseException, hold: Hold | None) -> None:
        self._selection.scope.record_cancellation(self._ticket)
        self._call.sent.end()
        # A cancelled request may still be billed.
        self._sender.recorder.record_failure(self._call, cancellation, self._bound)
        if hold is not None:
            hold.count_worst_case()

    def _take_answer(self, attempt: Attempt, waited: float, hold: Hold | None) -> Sample:
        sample, sent = attempt.sample(self._queue), self._call.sent
        self._selection.scope.record_end(self._ticket, None, tokens=self._count_charged(sample.answer.usage))
        sent.end()
        cost = self._sender.recorder.record_answer(self._call, sample, self._bound)
        sample.price = cost_of(sent.charges[self._before :])
        if hold is not None:
            hold.count_answer(cost)
        self._selection.record_answer()
        if self._call.early_stop is not None:
            self._call.early_stop.failing.discard(id(self._call))
            self._call.early_stop.note_answer()
        if self._call.watch is not None:
            observe_attempt(self._call, len(self._failures) + 1, waited, sample.sending)
        return sample

    def _judge_failure(self, attempt: Attempt, error: LLMError, waited: float, hold: Hold | None) -> bool:
        """Judge a failure. Returns whether the call backs off by itself before its next request."""
        call, selection, scope = self._call, self._selection, self._selection.scope
        key, now = selection.key, asyncio.get_running_loop().time()
        suspect = self._is_suspect(error)
        alone = scope.record_end(self._ticket, error, caller=self, suspect=suspect)
        alone = alone or not retry.is_congestion(error)
        cost = None
        if error.maybe_billed:
            cost = self._sender.recorder.record_failure(call, error, self._bound, attempt.usage, attempt.cost)
        if hold is not None:
            hold.count_failure(error, cost)
        failure = attempt.failure(waited)
        self._failures += (failure,)
        call.sent.end(failure)
        self._outgoing.retries += 1
        down = scope.outage.down_since is not None
        if down and is_outage(error) and is_unbilled(error) and not (suspect or self._holds_max_retries):
            # Only the patience of the call bounds how often it asks a provider that is down.
            self._free += 1
        if len(self._failures) == 1:
            self._failing_since = now
        self._verdict = retry.judge(
            error,
            attempts=len(self._failures) - self._free,
            max_retries=self._max_retries,
            seen_by_user=attempt.first_token is not None,
            elsewhere=selection.record_failure(error),
            random_source=self._sender.random,
            budget=scope.retries,
            now=now,
            deadline=self._call.deadline,
            down=down,
        )
        if (
            suspect
            and len(self._failures) >= LEAST_FAILURES
            and now - self._failing_since >= call.patience.seconds
        ):
            # An outage would be waited for no longer.
            self._verdict = retry.FINAL
        if self._file_ids and not self._verdict.retry and not self._files_renewed:
            # The provider deleted a file that is remembered.
            self._files_renewed = self._sender.uploads.forget(call, key, self._file_ids, error)
            if self._files_renewed:
                self._verdict = retry.Verdict(retry=True)
        self._tell(error, alone=alone)
        return alone

    def _is_suspect(self, error: LLMError) -> bool:
        """Whether the input is rather the reason for a failure than an outage of the provider.

        A connection that cannot be opened has no such reason. Neither has a failure while other calls wait
        for the same provider: they may tell more.
        """
        batch = self._call.early_stop
        if batch is None or not is_outage(error) or retry.is_free(error):
            return False
        batch.failing.add(id(self._call))
        return batch.blames_inputs and self._selection.scope.waiting < len(batch.failing)

    def _tell(self, error: LLMError, *, alone: bool) -> None:
        """Tell observers of a failed request, and the user of the wait for the next one."""
        delay, failure, number = None, self._failures[-1], len(self._failures)
        if self._verdict.retry:
            delay = self._selection.delay(self._verdict.delay if alone else 0.0)
            if delay > LEAST_SECONDS:
                scope = self._selection.scope
                self._sender.waits.tell_retry(scope.name, delay, reason(error), number, scope.waiting)
        if self._call.watch is not None:
            observe_attempt(self._call, number, failure.waited, failure.seconds, failure, delay)

    def _count_charged(self, usage: Usage | None) -> float | None:
        """Tokens that the request counted against the provider's limit; None if the answer has no usage."""
        return None if usage is None else count_charged_tokens(self._call.target.provider, usage)

    def _bound(self, prices: PriceTable) -> Decimal | None:
        return worst_case(self._call, self._parts, prices)

    def _explain(self, error: LLMError) -> LLMError:
        """The error as the user sees it: with the call's facts, without API keys and objects of the SDK."""
        error.provider = self._call.target.provider
        error.model = self._call.request.model
        error.attempts = len(self._failures)
        facts, secrets = vars(error), self._selection.secrets
        if self._call.target.route.adapter == "litellm":
            secrets = [*secrets, *environment_secrets()]
        for key in secrets:
            # Servers quote keys in messages, and may echo them as codes or as ids of requests.
            facts |= {name: _scrub(fact, key) for name, fact in facts.items()}
        if self._verdict.reason:
            error.message += f" ({self._verdict.reason})"
        error.args = (error.message,)
        error.__cause__ = error.__context__ = error.__traceback__ = None
        return error


def _scrub(value: Any, key: APIKey) -> Any:
    """A text or a JSON value without the key; any other value as it is."""
    if isinstance(value, str):
        return key.scrub(value)
    if type(value) is list:
        return [_scrub(entry, key) for entry in value]
    if type(value) is dict:
        return {key.scrub(name): _scrub(entry, key) for name, entry in value.items()}
    return value


def _check_watchable(connection: Connection) -> None:
    """Refuse timeouts that cannot be kept. As a default of the client, they are ignored in such a case.

    Raises:
        UnsupportedParameterError: the connection returns an answer only as a whole.
    """
    if connection.send_in_chunks is None:
        raise UnsupportedParameterError(
            "timeout cannot have first_byte or idle here, because the SDK returns an answer only as a whole: "
            "leave them out, or use stream()",
            parameter="timeout",
        )
