"""The live delivery: sends the requests of a call, one after the other, until one is answered.

    slot → API key → budget → attempt → record the answer, or judge the failure and begin again

A slot is held while a request is under way and never while waiting for the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import doors, errors
from ..events.events import LEAST_SECONDS, Waits, reason
from ..formats import registry
from ..formats.protocol import Connection, EncodedRequest
from ..formats.shared.payload import read_origin
from ..formats.shared.replies import cost_in_headers
from ..formats.transport.environment import check_certificates, check_proxy
from ..pace.aimd import AIMD
from ..pace.controller import AdaptiveController
from ..pace.failures import (
    FINAL,
    LEAST_FAILURES,
    REFUSED_IN_TURN,
    Verdict,
    is_congestion,
    is_free,
    is_outage,
    is_unbilled,
    judge,
)  # fmt: skip
from ..pace.scopes import Controller, Limiter, ScopeStatistics
from ..pace.state import Ticket
from ..requests.api_keys import environment_secrets, name_source
from ..requests.request import describe_input
from ..requests.routing import explain_not_found
from ..runtime import cassette, clock, randomness
from ..runtime.imports import LONGEST_IMPORT, PAUSE, when_imported
from ..settings import Settings
from ..tokens.counting import count_charged_tokens
from .attempt import Attempt
from .call import Call, Emit, Sample
from .doubts import Doubts
from .key_pool import KeyPools, KeySelection
from .recorder import CostRecorder

# Imported here: a call that ends during the exit of the interpreter must not import a module.
from .reservation import BudgetedRequest, Hold, worst_case

if TYPE_CHECKING:
    from decimal import Decimal

    from ..._features.uploads.uploads import Uploads
    from ..money.pricing import PriceTable
    from ..pace.call_limits import Timeouts
    from ..requests.api_keys import Credential


class Sender:
    """The live delivery: sends each request now, at full price. The machine shares `lease_directory`."""

    def __init__(
        self, settings: Settings, recorder: CostRecorder, lease_directory: Path | None, waits: Waits
    ) -> None:
        self._settings = settings
        self.env_file = settings.env_file
        self._shared = doors.shared_controller.SharedStateFile(
            None if lease_directory is None else lease_directory.parent / "limits",
            quiet=settings.rate_control != "shared",
        )
        self._connections: dict[tuple[str, str], Connection] = {}
        self._servers: set[tuple[str, str | None]] = set()
        self.recorder = recorder
        self.waits = waits
        self._limiter = Limiter(self._controller, waits)
        self.doubts = Doubts(self._limiter)
        self._keys = KeyPools(settings.keys, self._limiter, settings.env_file)
        self._directory = lease_directory
        self._uploads: Uploads | None = None

    def _controller(self, scope: str) -> Controller:
        rate_control = self._settings.rate_control
        if rate_control == "aimd":
            return AIMD()
        if rate_control == "independent":
            return AdaptiveController()
        return doors.shared_controller.SharedController(
            self._shared, scope, from_start=rate_control == "shared"
        )

    def send(self, call: Call[Any], parts: Sequence[int], emit: Emit | None) -> Coroutine[Any, Any, Sample]:
        """Get an answer with some parts of a call from the provider, or raise the last `LLMError`."""
        request, target = call.request, call.target
        if cassette.replayed is not None:
            question, key = errors.cite(describe_input(request)), call.key(parts[0])
            cassette.refuse_sending(f"{question} to {request.model}", key, provider=target.provider)
        try:
            selection = self._keys.select(target, request)
            connection = self._connection(call)
            limits = request.timeout
            if emit is None and limits is not None and (limits.first_byte or limits.idle):
                _check_watchable(connection)
        except errors.LLMError as error:
            if (stop := call.early_stop) is not None:
                error = stop.refuse() if stop.stopped else error
                stop.note_failure(error)
            error.provider, error.model = target.provider, request.model
            # The frames below may hold the URL of a proxy with its password.
            raise error.with_traceback(None) from None
        timeouts = self._settings.timeout
        if request.timeout is not None:
            timeouts = request.timeout.over(timeouts)
        max_retries = self._settings.max_retries if request.max_retries is None else request.max_retries
        limited = call.exchange.billed and (request.budget is not None or self._settings.budget is not None)
        spending = self._spending(call, parts) if limited else None
        holds = request.max_retries is not None or self._settings.holds_max_retries
        sending = _Sending(
            self, call, parts, emit, call.encoded, call.exchange.body(call, parts), timeouts, selection,
            spending, max_retries, holds, call.exchange.tokens(call, parts),
        )  # fmt: skip
        return sending.run(connection)

    def check_key(self, call: Call[Any]) -> None:
        """Raise a `MissingAPIKeyError` if a call has no key."""
        try:
            self._keys.select(call.target, call.request)
        except errors.LLMError as error:
            error.provider, error.model = call.target.provider, call.request.model
            raise

    def affordable(self, call: Call[Any], parts: Sequence[int]) -> bool:
        """Whether the budgets have room for some parts of a call."""
        return self._spending(call, parts).affordable()

    def _spending(self, call: Call[Any], parts: Sequence[int]) -> BudgetedRequest:
        limits = (call.request.budget, self._settings.budget)
        budgets = [budget for budget in limits if budget is not None]
        return BudgetedRequest(call, parts, budgets, self.recorder.prices())

    def _connection(self, call: Call[Any]) -> Connection:
        transport = self._settings.transport or call.target.route.transport
        name, server = (call.target.route.adapter, transport), (transport, call.target.base_url)
        if server not in self._servers:
            for target in call.target.servers:
                # litellm has clients of its own.
                check_proxy(target.base_url, "litellm" if name[0] == "litellm" else transport)
            check_certificates()
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

            directory = self._directory
            self._uploads = doors.uploads.Uploads(
                None if directory is None else directory.parent / "uploads", directory
            )
        return self._uploads

    def statistics(self) -> list[ScopeStatistics]:
        return self._limiter.statistics()

    async def close(self) -> None:
        self._shared.close()
        self.doubts.close()
        if self._uploads is not None:
            with contextlib.suppress(Exception):  # as below
                await self._uploads.close()
        for connection in self._connections.values():
            with contextlib.suppress(Exception):  # nothing can be done about it
                await connection.close()


@dataclass(slots=True, eq=False)
class _Sending:
    """The requests of one call and their outcomes so far."""

    sender: Sender
    call: Call[Any]
    parts: Sequence[int]
    emit: Emit | None
    encoded: EncodedRequest
    body: bytes
    """The payload, with the number of samples where it is above one, and with the ids of uploaded files."""
    timeouts: Timeouts
    selection: KeySelection
    spending: BudgetedRequest | None
    max_retries: int
    holds_max_retries: bool
    """Whether `max_retries` also bounds the requests to a provider that is down."""
    tokens: float
    queue: float = 0.0
    failing_since: float = 0.0
    """Time of the first failure, on the clock of the loop."""
    free: int = 0
    """Failed requests that do not count against `max_retries`."""
    failures: tuple[errors.FailedAttempt, ...] = ()
    verdict: Verdict = FINAL
    file_ids: dict[str, str] | None = None
    """The ids of the uploaded files that the last request used."""
    files_renewed: bool = False
    uploaded: tuple[Credential, dict[str, str]] | None = None
    """The ids of the files that this call has just uploaded, and their key."""
    ticket: Ticket = field(init=False)
    hold: Hold | None = None
    """The money of the present request; None without a budget."""

    async def run(self, connection: Connection) -> Sample:
        """Send until there is an answer, or raise the `LLMError` of the last request."""
        since = clock.perf_counter()
        try:
            while True:
                await self._start()
                if self.call.encoded.uploads and not await self._refers():
                    continue
                waited = clock.perf_counter() - since
                self.queue += waited
                selection = self.selection
                attempt = Attempt(
                    self.encoded, self.body, selection.server or self.call.target, selection.key,
                    self.timeouts, len(self.failures), len(self.parts), call=self.call, emit=self.emit,
                    on_headers=functools.partial(selection.scope.on_headers, self.ticket), waited=waited,
                )  # fmt: skip
                try:
                    await attempt.make(connection)
                    while attempt.import_unfinished and clock.perf_counter() - since < LONGEST_IMPORT:
                        attempt.error, attempt.import_unfinished = None, False
                        await asyncio.sleep(PAUSE)
                        await attempt.make(connection)
                except BaseException as cancellation:
                    self._end_cancelled(cancellation)
                    raise
                since = clock.perf_counter()
                if attempt.error is None:
                    return self._take_answer(attempt)
                alone = self._judge_failure(attempt, attempt.error)
                if not self.verdict.retry:
                    raise attempt.error
                # After most refusals the gate of the scope holds every call back, including this one. A call
                # that is refused again and again leaves the gate to others, and keeps its retries.
                await asyncio.sleep(self.verdict.delay if alone else 0.0)
        except errors.LLMError as error:
            if (stop := self.call.early_stop) is not None:
                stop.failing.discard(id(self.call))
                if isinstance(error, errors.AuthenticationError):
                    key, variables = self.selection.key, self.call.target.route.key_variables
                    stop.key_source = name_source(key, variables, self.sender.env_file)
                stop.note_failure(error)
            raise self._explain(error) from None

    async def _start(self) -> None:
        """Wait for a slot, and for room in the budgets."""
        call, selection = self.call, self.selection
        stop = call.early_stop
        if stop is not None and stop.stopped and not self.failures:
            raise stop.refuse()
        # A retry goes before calls that have sent no request yet. While the provider is down it goes behind
        # them: its own request may be the reason for the failure, and fewer calls use their retries up.
        call.sent.outage = selection.scope.outage
        first = bool(self.failures) and selection.scope.outage.down_since is None
        if self.spending is not None:
            self.verdict = FINAL
            self.ticket, self.hold = await self.spending.acquire(
                selection, self.tokens, first=first, waits=self.sender.waits
            )
        else:
            self.ticket = await selection.acquire(
                call.concurrency, tokens=self.tokens, first=first, patience=call.patience
            )
        if stop is not None and stop.stopped and not self.failures:
            # The batch was stopped while the call waited.
            self._withdraw()
            raise stop.refuse()
        call.sent.start()

    def _withdraw(self) -> None:
        """Give back the slot and the money of a request that is not sent."""
        self.selection.scope.record_withdrawal(self.ticket)
        if self.hold is not None:
            self.hold.count_nothing()

    async def _refers(self) -> bool:
        """Put the ids of uploaded files into the request; an `LLMError` tells of one that cannot be uploaded.

        False if they had to be uploaded first. No slot is held meanwhile, so it must be taken again.
        """
        call, selection, uploads = self.call, self.selection, self.sender.uploads
        just, self.uploaded = self.uploaded, None
        if just is not None and just[0] == selection.key:
            self.file_ids = just[1]
        else:
            self.file_ids = uploads.ids(call, selection.key)
        if self.file_ids is not None:
            body = call.exchange.body(call, self.parts)
            self.encoded, self.body = doors.uploads.fill_references(call.encoded, self.file_ids, body)
            return True
        self._withdraw()
        self.verdict, key = FINAL, selection.key
        try:
            ids = await uploads.upload(call, key, self.max_retries)
            self.uploaded = key, ids
        except errors.LLMError as error:
            # Another account may have the rights or the quota that this one lacks.
            if not selection.record_failure(error):
                raise
        return False

    def _end_cancelled(self, cancellation: BaseException) -> None:
        if self.call.sent.is_held:
            # It was not sent, and counts as sent no longer.
            self._withdraw()
            return
        self.selection.scope.record_cancellation(self.ticket)
        self.call.sent.end()
        # A cancelled request may still be billed.
        self.sender.recorder.record_failure(self.call, cancellation, self._bound, self.selection.key.identity)
        if self.hold is not None:
            self.hold.count_worst_case()

    def _take_answer(self, attempt: Attempt) -> Sample:
        call, headers = self.call, self.ticket.headers
        answer = attempt.answer
        assert answer is not None
        sample = Sample(
            answer, attempt.received, cached=False, queue=self.queue, sending=attempt.seconds,
            first_token=attempt.first_token,
        )  # fmt: skip
        answer.origin = read_origin(call.target, headers)
        if answer.cost is None and headers and self.emit is None:
            answer.cost = cost_in_headers(headers)
        tokens = None if answer.usage is None else count_charged_tokens(call.target.provider, answer.usage)
        self.selection.record_answer(self.ticket, tokens)
        call.sent.end()
        cost = self.sender.recorder.record_answer(
            call, sample, self.parts, self._bound, self.selection.key.identity
        )
        if cost is not None or not call.exchange.billed:
            sample.price = float(cost or 0)
        if self.hold is not None:
            self.hold.count_answer(cost)
        if call.early_stop is not None:
            call.early_stop.note_answer(id(call))
        for listener in call.listeners:
            listener.note_attempt(call, attempt)
        return sample

    def _judge_failure(self, attempt: Attempt, error: errors.LLMError) -> bool:
        """Judge a failure. Returns whether the call backs off by itself before its next request."""
        call, selection, scope = self.call, self.selection, self.selection.scope
        key, now = selection.key, asyncio.get_running_loop().time()
        # The outage keeps the error, and quotes it to calls of other keys.
        error.message = call.sent.problem = self._scrub(error.message)
        suspect = self._is_suspect(error)
        alone = scope.record_end(self.ticket, error, caller=self, suspect=suspect)
        alone = alone or not is_congestion(error)
        if not scope.controller.in_flight and scope.outage.must_doubt(now):
            # No request is left that may still be answered.
            self.sender.doubts.ask(scope, attempt.target, key)
        cost = None
        if error.maybe_billed:
            cost = self.sender.recorder.record_failure(
                call, error, self._bound, key.identity, attempt.usage, attempt.cost
            )
        if self.hold is not None:
            self.hold.count_failure(error, cost)
        failure = attempt.describe_failure(error)
        self.failures += (failure,)
        call.sent.end(failure)
        down = scope.outage.down_since is not None
        if down and is_outage(error) and is_unbilled(error) and not (suspect or self.holds_max_retries):
            # Only the patience of the call bounds how often it asks a provider that is down.
            self.free += 1
        if len(self.failures) == 1:
            self.failing_since = now
        self.verdict = judge(
            error,
            attempts=len(self.failures) - self.free,
            max_retries=self.max_retries,
            seen_by_user=attempt.first_token is not None,
            elsewhere=selection.record_failure(error),
            random_source=randomness.generator,
            budget=scope.retries,
            now=now,
            deadline=self.call.deadline,
            down=down,
        )
        is_over = now - self.failing_since >= call.patience.seconds
        if suspect and is_over and len(self.failures) >= LEAST_FAILURES:
            # An outage would be waited for no longer.
            self.verdict = FINAL
        call.sent.is_too_late = self.verdict.too_late
        if self.file_ids and not self.verdict.retry and not self.files_renewed:
            # The provider deleted a file that is remembered.
            self.files_renewed = self.sender.uploads.forget(call, key, self.file_ids, error)
            if self.files_renewed:
                self.verdict = Verdict(retry=True)
        alone = alone or len(self.failures) > REFUSED_IN_TURN
        if self.verdict.retry:
            attempt.retry_in = delay = selection.delay(self.verdict.delay if alone else 0.0)
            if delay > LEAST_SECONDS:
                self.sender.waits.tell_retry(scope.name, delay, reason(error), attempt.number, scope.waiting)
        for listener in call.listeners:
            listener.note_attempt(call, attempt)
        return alone

    def _is_suspect(self, error: errors.LLMError) -> bool:
        """Whether the input is rather the reason for a failure than an outage of the provider.

        It is none for a connection that cannot be opened, or while other calls, which tell more, wait too.
        """
        batch = self.call.early_stop
        if batch is None or not is_outage(error) or is_free(error):
            return False
        batch.failing.add(id(self.call))
        return batch.blames_inputs and self.selection.scope.waiting < len(batch.failing)

    def _bound(self, prices: PriceTable) -> Decimal | None:
        return worst_case(self.call, self.parts, prices)

    def _explain(self, error: errors.LLMError) -> errors.LLMError:
        """The error as the user sees it. It names the provider and the model, and holds no API key."""
        error.provider = self.call.target.provider
        error.model = self.call.request.model
        error.attempts = len(self.failures)
        if isinstance(error, errors.NotFoundError) or error.status == 405:
            error.message += explain_not_found(self.call.target, self.call.request.model)
        attributes = vars(error)
        attributes |= {name: self._scrub(value) for name, value in attributes.items()}
        if self.verdict.reason:
            error.message += f" ({self.verdict.reason})"
        error.args = (error.message,)
        error.__cause__ = error.__context__ = error.__traceback__ = None
        return error

    def _scrub(self, value: Any) -> Any:
        """A value without the keys, which servers quote in messages, as codes or as ids of requests."""
        secrets = self.selection.secrets
        if self.call.target.route.adapter == "litellm":
            secrets = [*secrets, *environment_secrets()]
        return functools.reduce(_scrub, secrets, value)


def _scrub(value: Any, key: Credential) -> Any:
    """A text or a JSON value without the key; any other value as it is."""
    if isinstance(value, str):
        return key.scrub(value)
    if type(value) is list:
        return [_scrub(entry, key) for entry in value]
    if type(value) is dict:
        return {key.scrub(name): _scrub(entry, key) for name, entry in value.items()}
    return value


def _check_watchable(connection: Connection) -> None:
    """Refuse timeouts that cannot be kept, as the answer comes as a whole. A default is ignored then."""
    if connection.send_in_chunks is None:
        raise errors.UnsupportedParameterError(
            "timeout cannot have first_byte or idle here, because the SDK returns an answer only as a whole: "
            "leave them out, or use stream()",
            parameter="timeout",
        )
