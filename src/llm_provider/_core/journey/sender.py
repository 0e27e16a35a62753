"""The requests for some parts of a call, one after the other, until one is answered.

    slot → API key → budget → request → record the answer, or judge the failure and begin again

A slot is held while a request is under way and never while waiting for the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from .. import doors, errors
from ..errors import APIResponseValidationError, FailedAttempt, LLMError
from ..events.events import LEAST_SECONDS, reason
from ..formats.protocol import AnyAnswer, Connection
from ..formats.shared.errors import failure_headers
from ..formats.shared.payload import read_origin
from ..formats.shared.replies import cost_in, cost_in_headers, parse_reply, reply_body
from ..formats.transport import wire
from ..formats.transport.wire import BYTE_ORDER_MARK, DONE, END, EventSplitter
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
from ..pace.headers import LIMIT_HEADERS, headroom
from ..pace.state import Ticket
from ..requests.api_keys import NO_KEY, environment_secrets, explain_no_key, name_source
from ..requests.request import describe_input
from ..requests.routing import explain_not_found
from ..runtime import cassette, clock, randomness
from ..runtime.imports import LONGEST_IMPORT, PAUSE, is_unfinished
from ..runtime.json_pieces import LARGE, loads, read_large, takes_long
from ..runtime.threads import result_in_thread
from ..tokens.counting import count_charged_tokens
from ..types.usage import Usage
from .call import Call, Emit, Sample
from .connections import Connections, scrub
from .key_pool import KeySelection
from .references import fill_in, forget_missing

# Imported here: a call that ends during the exit of the interpreter must not import a module.
from .reservation import BudgetedRequest, Hold, worst_case
from .stream import Arrival, Watch, check_watchable, too_long, with_limit

if TYPE_CHECKING:
    from decimal import Decimal

    from ..money.pricing import PriceTable
    from ..requests.api_keys import Credential
    from .sent_requests import EarlyStop


class Progress:
    """How far the requests for some parts of a call have come. Most of them need few of these attributes."""

    queue: float = 0.0
    """Seconds before all requests."""
    failed: int = 0
    """Requests that have failed."""
    failing_since: float = 0.0
    """Time of the first failure, on the clock of the loop."""
    free: int = 0
    """Failed requests that do not count against `max_retries`."""
    verdict: Verdict = FINAL
    file_ids: dict[str, str] | None = None
    """The ids of the uploaded files that the last request used."""
    is_renewed: bool = False
    uploaded: tuple[Credential, dict[str, str]] | None = None
    """The ids of the files that this call has just uploaded, and their key."""
    stored_with: Credential | None = None
    """The key with which this call has just had its beginning stored."""
    cache_miss: str = ""
    """Why the request does not name a stored beginning, with `prompt_caching="explicit"`."""
    whole: bytes | None = None
    """The body before its beginning was replaced."""

    # The present request.
    ticket: Ticket
    hold: Hold | None = None
    """Its money; None without a budget."""
    waited: float = 0.0
    """Seconds before it was sent."""
    seconds: float = 0.0
    error: LLMError | None = None
    import_unfinished: bool = False
    """Whether it failed before it was sent, because another thread imports a module of the SDK."""
    failure: FailedAttempt | None = None
    """How it failed, once that is judged."""
    retry_in: float | None = None
    """Seconds until the next request; None if there is none."""
    answer: AnyAnswer | None = None
    received: bytes = b""
    """The body of the answer."""


@dataclass(kw_only=True, eq=False, repr=False)
class Sending(Arrival, Progress):
    """The requests so far for some parts of a call, and the present one, with its outcome."""

    sender: Sender
    parts: Sequence[int]
    selection: KeySelection
    spending: BudgetedRequest | None
    tokens: float

    async def run(self, connection: Connection) -> Sample:
        """Send until there is an answer, or raise the `LLMError` of the last request."""
        call, since, stop = self.call, clock.perf_counter(), self.call.early_stop
        try:
            while True:
                if stop is None or stop.max_errors is None:
                    await self._start()
                elif await stop.ends_during(self._start()):
                    self._refuse(stop)
                if (call.encoded.uploads or call.encoded.prefix is not None) and not await fill_in(self):
                    continue
                self.waited = clock.perf_counter() - since
                self.queue += self.waited
                self.key, self.retries = self.selection.key, self.failed
                self.target = self.selection.server or call.target
                try:
                    await self._make(connection)
                    while self.import_unfinished and clock.perf_counter() - since < LONGEST_IMPORT:
                        await asyncio.sleep(PAUSE)
                        await self._make(connection)
                except BaseException as cancellation:
                    self._end_cancelled(cancellation)
                    raise
                since = clock.perf_counter()
                if self.error is None:
                    return self._take_answer()
                self._judge_failure(self.error)
                if not self.verdict.retry:
                    raise self.error
                # After most refusals the gate of the scope holds every call back, including this one. A call
                # that is refused again and again leaves the gate to others, and keeps its retries.
                pause = asyncio.sleep(self.verdict.delay)
                if await (pause if stop is None else stop.ends_during(pause)):
                    raise self.error
        except LLMError as error:
            if stop is not None:
                stop.failing.discard(id(call))
                if isinstance(error, errors.AuthenticationError):
                    key, variables = self.selection.key, call.target.route.key_variables
                    stop.key_source = name_source(key, variables, self.sender.env_file)
                stop.note_failure(error)
            raise self._explain(error) from None

    def _refuse(self, stop: EarlyStop) -> None:
        """Raise the error of a call whose batch was stopped, unless it goes on with a retry."""
        if not self.failed:
            raise stop.refuse()
        if stop.is_over and self.error is not None:
            # Equal calls of other batches still send.
            self.verdict, self.call.sent.is_too_late = FINAL, True
            raise self.error

    async def _start(self) -> None:
        """Wait for a slot, and for room in the budgets."""
        call, selection, stop = self.call, self.selection, self.call.early_stop
        if stop is not None and stop.stopped:
            self._refuse(stop)
        # A retry goes before calls that have sent no request yet. While the provider is down it goes behind
        # them: its own request may be the reason for the failure, and fewer calls use their retries up.
        call.sent.outage, call.sent.numbers = selection.scope.outage, self.parts
        first = bool(self.failed) and selection.scope.outage.down_since is None
        if self.spending is not None:
            self.verdict = FINAL
            self.ticket, self.hold = await self.spending.acquire(
                selection, self.tokens, first=first, waits=self.sender.waits
            )
        else:
            most, at_once = call.concurrency
            self.ticket = await selection.slots.acquire(
                most, at_once=at_once, tokens=self.tokens, first=first, patience=call.patience
            )
        if stop is not None and stop.stopped and (stop.is_over or not self.failed):
            # The batch was stopped while the call waited.
            self.withdraw()
            self._refuse(stop)
        call.sent.is_held, call.sent.is_reported = True, False

    def withdraw(self) -> None:
        """Give back the slot and the money of a request that is not sent."""
        self.selection.scope.record_withdrawal(self.ticket)
        if self.hold is not None:
            self.hold.count_nothing()

    async def _make(self, connection: Connection) -> None:
        """Send, receive and decode within the timeouts. Only a cancellation is raised."""
        timeouts, streamed, sent = self.timeouts, None, self.call.sent
        if self.retries or self.import_unfinished:
            self.error = self.failure = self.retry_in = self.headers = self.reply = None
            self.import_unfinished = False
        self.sent_at = clock.perf_counter()
        token = wire.departure.set(sent)
        if self.call.target.route.adapter == "litellm":  # its clients do not tell when they send
            sent.leave()
        elif not sent.is_held:
            sent.hold()
        timer = asyncio.timeout(timeouts.total)
        try:
            async with timer:
                if timeouts.first_byte is not None or timeouts.idle is not None:
                    self.watch = Watch(timer, self)
                if self.emit is not None:
                    streamed = await self.receive(connection, self.emit, timer)
                elif self.watch is not None and connection.send_in_chunks is not None:
                    self.received = await self.collect(connection.send_in_chunks, self.watch)
                else:
                    self.received = await connection.send(self)
            self.received = self.received.removeprefix(BYTE_ORDER_MARK)
            if self.call.encoded.secrets:  # a server may repeat the tools, and the answer is stored
                text, streamed = self.received.decode("utf-8", "surrogateescape"), self._scrub(streamed)
                self.received = self._scrub(text).encode("utf-8", "surrogateescape")
            if sent.is_held:
                sent.leave()
            if self.emit is not None:
                self.received = reply_body(streamed)
                if b"\\ud" in self.received:
                    # The halves of a pair that stand together are one character when they are read.
                    streamed = loads(self.received)
            if len(self.received) >= LARGE and takes_long(self.received):
                read = partial(read_large, partial(self._decode, streamed))
                self.answer = await result_in_thread(read, "llm_provider-decode")
            else:
                self.answer = self._decode(streamed)
        except LLMError as error:
            self._fail(error)
        except Exception as error:
            if timer.expired():
                self._fail(self.watch.make_error() if self.watch is not None else too_long(self.timeout))
            else:
                self.import_unfinished = is_unfinished(error)
                self._fail(with_limit(self.call.adapter.map_error(error), timeouts))
                self.headers = failure_headers(error) or self.headers
        finally:
            wire.departure.reset(token)
            self.seconds = clock.perf_counter() - self.sent_at
            has_limits = self.headers and any(map(self.headers.__contains__, LIMIT_HEADERS))
            if has_limits and (limits := headroom(self.headers or {})) is not None:
                self.selection.scope.controller.on_headers(self.ticket, limits)

    def _fail(self, error: LLMError) -> None:
        self.error = error
        if self.call.sent.is_held:
            error.maybe_billed = False
            self.call.sent.leave()

    def _decode(self, streamed: Any) -> AnyAnswer:
        """The answer in the body, or in the reply that a stream added up to."""
        self.reply = streamed
        try:
            if self.emit is None:
                self.reply = self._read_unasked_stream() or parse_reply(self.received)
            return self.call.exchange.decode(self.call, self.reply, self.samples)
        except APIResponseValidationError as error:
            error.raw = self.reply
            raise

    def _read_unasked_stream(self) -> Any:
        """The reply of a server that streams though nobody asked it to; None if `received` is a reply."""
        received = self.received
        if not received.startswith((b"data:", b"event:")):
            if received[-20:].rstrip().endswith(DONE):
                # One has the whole answer before the end of a stream, which is not stored.
                self.received = received[: received.rindex(b"data:")]
            return None
        assembler: Any = self.call.adapter.assembler(self.call.encoded)
        feed, splitter = assembler.feed if self.samples == 1 else assembler.feed_samples, EventSplitter()
        for data in (*splitter.feed(self.received), *splitter.end()):
            feed(END if data.strip() == DONE else parse_reply(data))
        self.received = reply_body(assembler.reply())
        return assembler.reply()

    def _read_usage(self) -> Usage | None:
        """The usage that an invalid answer reports; None if it reports none."""
        if self.reply is None:
            return None
        try:
            usage = self.call.exchange.usage(self.call, self.reply)
        except LLMError:
            return None
        # An answer that reports no usage is decoded as zeros.
        return usage if usage is not None and usage.total_tokens else None

    def _end_cancelled(self, cancellation: BaseException) -> None:
        if self.call.sent.is_held:
            # It was not sent, and counts as sent no longer.
            self.withdraw()
            return
        self.selection.scope.record_cancellation(self.ticket)
        self.call.sent.end()
        # A cancelled request may still be billed.
        self.sender.recorder.record_failure(self.call, cancellation, self._bound, self.key.identity)
        if self.hold is not None:
            self.hold.count_worst_case()

    def _take_answer(self) -> Sample:
        call, selection, answer, scope = self.call, self.selection, self.answer, self.selection.scope
        assert answer is not None
        sample = Sample(
            answer, self.received, cached=False, queue=self.queue, sending=self.seconds,
            first_token=self.first_token,
        )  # fmt: skip
        answer.origin = read_origin(call.target, self.headers)
        if self.cache_miss:
            answer.origin = {**(answer.origin or {}), "prompt_cache_miss": self.cache_miss}
        if answer.cost is None and self.headers and self.emit is None:
            answer.cost = cost_in_headers(self.headers)
        tokens = None if answer.usage is None else count_charged_tokens(call.target.provider, answer.usage)
        if scope.limits is not None and answer.usage is not None:
            scope.limits.charge(self.ticket, answer.usage.total_tokens)
        scope.record_end(self.ticket, None, tokens=tokens)
        if selection.slots is selection:
            selection.record_answer()
        call.sent.end()
        cost = self.sender.recorder.record_answer(call, sample, self.parts, self._bound, self.key.identity)
        if cost is not None or not call.exchange.billed:
            sample.price = float(cost or 0)
        if self.hold is not None:
            self.hold.count_answer(cost, answer.usage)
        if call.early_stop is not None:
            call.early_stop.note_answer(id(call))
        for listener in call.listeners:
            listener.note_attempt(call, self)
        return sample

    def _judge_failure(self, error: LLMError) -> None:
        """Judge a failure: whether the call sends again, and how long it backs off by itself before that."""
        call, selection, scope = self.call, self.selection, self.selection.scope
        key, now = self.key, asyncio.get_running_loop().time()
        # The outage keeps the error, and quotes it to calls of other keys.
        error.message = call.sent.problem = self._scrub(error.message)
        suspect = self._is_suspect(error)
        backs_off = scope.record_end(self.ticket, error, caller=self, suspect=suspect)
        backs_off = backs_off or not is_congestion(error)
        if not scope.controller.in_flight and scope.outage.must_doubt(now):
            # No request is left that may still be answered.
            self.sender.doubts.ask(scope, self.target, key)
        cost = usage = None
        if error.maybe_billed:
            usage = self._read_usage()
            reported = cost_in(self.reply.get("usage")) if isinstance(self.reply, dict) else None
            cost = self.sender.recorder.record_failure(
                call, error, self._bound, key.identity, usage, reported
            )
        if self.hold is not None:
            self.hold.count_failure(error, cost, usage)
        self.failure = FailedAttempt(
            error=type(error).__name__,
            status=error.status,
            waited=self.waited,
            seconds=self.seconds,
            maybe_billed=error.maybe_billed,
        )
        self.failed += 1
        call.sent.end(self.failure)
        down = scope.outage.down_since is not None
        # Whether `max_retries` also bounds the requests to a provider that is down.
        holds = call.request.max_retries is not None or self.sender.settings.holds_max_retries
        if down and is_outage(error) and is_unbilled(error) and not (suspect or holds):
            # Only the patience of the call bounds how often it asks a provider that is down.
            self.free += 1
        if self.failed == 1:
            self.failing_since = now
        self.verdict = judge(
            error,
            attempts=self.failed - self.free,
            max_retries=self.max_retries,
            seen_by_user=self.first_token is not None,
            elsewhere=selection.record_failure(error),
            random_source=randomness.generator,
            budget=scope.retries,
            now=now,
            deadline=call.deadline,
            down=down,
        )
        is_over = now - self.failing_since >= call.patience.seconds
        ends = scope.outage.is_not_started(call.patience, now - self.failing_since + self.verdict.delay)
        if ends or (suspect and is_over and self.failed >= LEAST_FAILURES):
            # An outage would be waited for no longer.
            self.verdict = FINAL
        call.sent.is_too_late = self.verdict.too_late
        if forget_missing(self, error) and not self.verdict.retry:
            # The provider deleted a file, or a beginning, that is remembered.
            self.verdict = Verdict(retry=True)
        if self.verdict.retry:
            if not backs_off and self.failed <= REFUSED_IN_TURN:
                self.verdict = Verdict(retry=True)
            self.retry_in = delay = selection.delay(self.verdict.delay)
            if delay > LEAST_SECONDS:
                self.sender.waits.tell_retry(scope.name, delay, reason(error), self.failed, scope.waiting)
        for listener in call.listeners:
            listener.note_attempt(call, self)

    def _is_suspect(self, error: LLMError) -> bool:
        """Whether the input is rather the reason for a failure than an outage of the provider.

        A refused connection never blames the input. Nor does a failure while other calls of the scope wait.
        """
        batch = self.call.early_stop
        if batch is None or not is_outage(error) or is_free(error):
            return False
        batch.failing.add(id(self.call))
        return batch.blames_inputs and self.selection.scope.waiting < len(batch.failing)

    @property
    def max_retries(self) -> int:
        own: int | None = self.call.request.max_retries
        return self.sender.settings.max_retries if own is None else own

    def _bound(self, prices: PriceTable) -> Decimal | None:
        return worst_case(self.call, self.parts, prices)

    def _explain(self, error: LLMError) -> LLMError:
        """The error as the user sees it. It names the provider and the model, and holds no API key."""
        error.provider = self.call.target.provider
        error.model = self.call.request.model
        error.attempts = self.failed
        if isinstance(error, errors.NotFoundError) or error.status == 405:
            error.message += explain_not_found(self.call.target, self.call.request.model)
        elif isinstance(error, errors.AuthenticationError) and self.selection.key == NO_KEY:
            error.message += explain_no_key(self.call.target.route.key_variables)
        attributes = vars(error)
        attributes |= {name: self._scrub(value) for name, value in attributes.items()}
        if self.verdict.reason:
            error.message += f" ({self.verdict.reason})"
        error.args = (error.message,)
        error.__cause__ = error.__context__ = error.__traceback__ = None
        return error

    def _scrub(self, value: Any) -> Any:
        """A value without the keys, which servers quote in messages, as codes or as ids of requests."""
        secrets = [*self.selection.secrets, *(text.key for text in self.call.encoded.secrets)]
        if self.call.target.route.adapter == "litellm":
            secrets = [*secrets, *environment_secrets()]
        return reduce(scrub, secrets, value)


class Sender(Connections):
    """The live delivery: sends each request now, at full price."""

    def send(self, call: Call[Any], parts: Sequence[int], emit: Emit | None) -> Coroutine[Any, Any, Sample]:
        """Get an answer with some parts of a call from the provider, or raise the last `LLMError`."""
        request, target = call.request, call.target
        if cassette.replayed is not None:
            question, key = errors.cite(describe_input(request)), call.key(parts[0])
            cassette.refuse_sending(f"{question} to {request.model}", key, provider=target.provider)
        try:
            selection = self.keys.select(target, request)
            connection, tokens = self.connection(call), call.exchange.tokens(call, parts)
            if selection.scope.limits is not None:
                selection.scope.limits.refuse_larger(tokens)
            limits = request.timeout
            if emit is None and limits is not None and (limits.first_byte or limits.idle):
                check_watchable(connection)
        except LLMError as error:
            if (stop := call.early_stop) is not None:
                error = stop.refuse() if stop.stopped else error
                stop.note_failure(error)
            error.provider, error.model = target.provider, request.model
            # The frames below may hold the URL of a proxy with its password.
            raise error.with_traceback(None) from None
        if request.extra_body and emit is None and call.encoded.payload.get("background") is True:
            doors.background.refuse_raw_field(call)
        timeouts = self.settings.timeout if limits is None else limits.over(self.settings.timeout)
        spending = self.budget(call, parts) if call.exchange.billed else None
        sending = Sending(
            encoded=call.encoded, body=call.exchange.body(call, parts), target=target, key=selection.key,
            timeouts=timeouts, samples=len(parts), sender=self, call=call, parts=parts, emit=emit,
            selection=selection, spending=spending, tokens=tokens,
        )  # fmt: skip
        if self._is_new:
            self._is_new = False
            return self._run_first(sending, connection)
        return sending.run(connection)

    async def _run_first(self, sending: Sending, connection: Connection) -> Sample:
        """Run the first call of a connection: what it has to load is loaded before a slot is taken."""
        deadline = sending.call.deadline
        if deadline is not None:
            deadline.is_loading = True
        await connection.prepare(sending)
        if deadline is not None:
            if deadline.left <= 0:
                await asyncio.sleep(PAUSE)  # until the call ends, unless an equal one waits for the answer
            deadline.is_loading = False
        return await sending.run(connection)
