"""Waits for one batch and stores its answers, row by row.

A row is entered in the ledger, then stored: after a kill in between, its line in the ledger is found. An
answer that its provider has paused goes on in live requests, once all results are read.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from typing import Any, TypeAlias

from .. import errors
from ..formats.shared.batches import (
    ONLY_ROW,
    OTHERS_WRONG,
    REFUSED,
    RemoteBatch,
    RowReply,
    explain_unreached,
    mark_unbilled,
)
from ..formats.shared.payload import read_origin
from ..formats.shared.replies import parse_reply
from ..journey.call import Call, Sample
from ..journey.engine import Engine
from ..journey.lookup import find_mismatch, mismatch
from ..journey.recorder import BatchRow, Bound, variants_of
from ..journey.reservation import most_tokens, worst_case
from ..journey.sent_requests import SentRequests, cost_of
from ..json_values import JSONMapping
from ..money.budget import NOTHING, UNKNOWN, Amounts
from ..runtime import clock
from ..runtime.warning import warn_user
from ..types.usage import Usage
from .job import RowEnd, call_of
from .journal import Record, RowLine
from .remote import RESULTS_PATIENCE, MissingRows, Remote

_POLL_SHARE, _FIRST_POLL, _LONGEST_POLL = 0.1, 0.2, 60.0
"""A batch is asked after again when this share of its age has passed, within two bounds in seconds."""

_TOGETHER = 64
"""Rows that are written to the cache together. One by one, each would wait for the disk."""

_MOST_UNREAD = 1000
"""Lines without the name of a row that are kept of one reading."""


_StoredRow: TypeAlias = tuple[str, RowEnd, Sequence[asyncio.Future[bool]]]
"""The name of a row, its end, and the writes that it waits for."""


def poll_pause(age: float) -> float:
    """Seconds until a batch is asked after again.

    >>> poll_pause(0.0), poll_pause(60.0), poll_pause(7200.0)
    (0.2, 6.0, 60.0)
    """
    return min(max(age * _POLL_SHARE, _FIRST_POLL), _LONGEST_POLL)


@dataclass(slots=True, eq=False)
class Collector:
    """Waits for one batch, which was submitted, and `patience` seconds for results that do not come."""

    engine: Engine
    remote: Remote
    record: Record
    shared: Call[Any] | None
    """A call of the job that waits for it, if any."""
    ended: Callable[[str, RowEnd], object]
    """Called with each row that is stored, and its end."""
    metadata: Callable[[str], object] = lambda custom_id: None
    """Gives the metadata of the input that waits for a row."""
    patience: float = RESULTS_PATIENCE
    has_budgets: bool = True
    """Whether what the rows came to is asked for."""
    spent: Amounts = field(default=NOTHING, init=False)
    """What the rows that were read came to; not known if one cost is not known."""
    at_most: Amounts = field(default=NOTHING, init=False)
    """The most that they can have come to, as far as that is known."""
    _missing: MissingRows = field(init=False)
    _account: str = field(default="", init=False)
    _delivery: str = field(default="batch", init=False)
    _entered: set[str] = field(default_factory=set, init=False)
    _rows_failed: int = field(default=0, init=False)
    _warned: bool = field(default=False, init=False)
    _paused: list[tuple[RowReply, Call[Any], RowLine, Sample]] = field(default_factory=list, init=False)
    """Rows whose answers go on."""

    def __post_init__(self) -> None:
        self._missing = MissingRows(self.record, self.patience)
        header = self.record.header
        if header is not None:
            self._account, self._delivery = header.account, header.delivery

    async def find(self, patience: float | None = None) -> RemoteBatch | None:
        """The batch as it is now; None if it is so old that its provider has deleted it.

        It is asked for `patience` seconds, default the account's; `PendingBatchError` if it is not found.
        """
        record = self.record
        assert record.remote is not None
        while True:
            try:
                remote = await self.remote.retrieve(record.remote, patience)
            except errors.NotFoundError:
                if await self._missing.judge_unknown() == "gone":
                    return None
            else:
                self._missing.unknown_pauses.reset()
                self._note(remote)
                return remote

    def _note(self, remote: RemoteBatch) -> None:
        """Keep what the provider says of the batch in the journal."""
        record, counts = self.record, (remote.done, remote.failed)
        if (remote.state, remote.ended, counts) != (record.state, record.ended, record.counts):
            done, failed = counts
            record.append("state", state=remote.state, ended=remote.ended, done=done, failed=failed)

    async def _wait(self) -> RemoteBatch | None:
        """The batch, once its provider has ended it; None as in `find`."""
        since = self.record.submitted or clock.time()
        while True:
            remote = await self.find()
            if remote is None or remote.ended:
                return remote
            await asyncio.sleep(poll_pause(clock.time() - since))

    async def collect(self) -> bool:
        """Wait for the end of the batch, and store its answers; False if it turned out to be another batch.

        A `PendingBatchError` says that its provider does not give its results. It stays open.
        """
        record = self.record
        # A process that was killed may have entered some rows.
        self._entered = await asyncio.to_thread(self.engine.recorder.rows_of, record.ledger_name)
        left = dict.fromkeys(record.rows)
        while True:
            remote = await self._wait()
            gone = remote is None
            if remote is not None:
                foreign, unread, results_exist = await self._read(remote, left)
                if foreign and not unread and len(left) == len(record.rows):
                    record.append("not_ours", remote=remote.identifier)
                    return False
                if not left:
                    break
                ended = len(record.rows) - len(left)
                answered = ended - self._rows_failed
                verdict = await self._missing.judge(
                    remote, answered, ended, unread, results_exist=results_exist
                )
                if verdict == "wait":
                    continue
                gone = verdict == "gone"
            numbers = {custom_id: number for number, custom_id in enumerate(record.rows, 1)}
            wrong = {} if remote is None else remote.wrong_lines
            wrong = {number: why for number, why in wrong.items() if 1 <= number <= len(numbers)}
            for custom_id in left:
                sent = SentRequests()
                sent.attempts = 0 if record.paid_elsewhere else 1
                if gone or remote is None:
                    error = self._enter_deleted(custom_id, sent)
                else:
                    error = _explain_missing(remote, numbers[custom_id], wrong)
                record.keep(custom_id, None, _encode_error(error))
                self.ended(custom_id, RowEnd(error=error, sent=sent))
            break
        failed = len(left) + self._rows_failed
        record.append("collected", done=len(record.rows) - failed, failed=failed)
        await asyncio.to_thread(record.shrink)
        return True

    async def _read(self, remote: RemoteBatch, left: dict[str, None]) -> tuple[bool, list[bytes], bool]:
        """Read the results once, store their rows and take these out of `left`.

        Returns whether there are rows of another batch, the beginnings of lines that name no row, and whether
        every file of results exists.
        """
        record, foreign, results_exist = self.record, False, True
        unread: list[bytes] = []
        group: list[RowReply] = []
        failed: dict[str, RowReply] = {}
        try:
            async for reply in self._replies(remote):
                if not reply.custom_id:
                    if len(unread) < _MOST_UNREAD:
                        unread.append(reply.body or b"")
                    continue
                foreign = foreign or reply.custom_id not in record.rows
                if reply.custom_id not in left:
                    continue
                if reply.error is not None:
                    # An answer of the same row, which is billed, may follow.
                    failed[reply.custom_id] = reply
                    continue
                del left[reply.custom_id]
                failed.pop(reply.custom_id, None)
                group.append(reply)
                if len(group) == _TOGETHER:
                    await self._take(group)
                    group = []
        except errors.NotFoundError:
            results_exist = False
        except errors.LLMError:
            await self._take(group)
            raise
        for custom_id in failed:
            del left[custom_id]
        await self._take([*group, *failed.values()])
        paused, self._paused = self._paused, []
        await self._keep(await asyncio.gather(*(self._continue(*each) for each in paused)))
        if unread and not self._warned:
            self._warned = True
            # Where warnings are errors, the results must not be lost.
            with contextlib.suppress(UserWarning):
                name = record.id if record.header is None else record.header.job
                count, first = len(unread), unread[0].decode("utf-8", "replace").strip()
                problem = f"{name} have {count:,} lines that name no row, such as {first!r}"
                warn_user(f"the results of batch {problem}")
        return foreign, unread, results_exist

    async def _replies(self, remote: RemoteBatch) -> AsyncIterator[RowReply]:
        """The ends of the rows, by their names in the journal."""
        only = next(iter(self.record.rows), "")
        async for reply in self.remote.results(remote):
            yield reply._replace(custom_id=only) if reply.custom_id == ONLY_ROW else reply

    async def _take(self, replies: Sequence[RowReply]) -> None:
        """Enter and store some rows, but for those that go on."""
        rows = [await self._row(reply) for reply in replies]
        await self._keep([row for row in rows if row is not None])

    async def _keep(self, rows: Sequence[_StoredRow]) -> None:
        for _, end, writes in rows:
            self._rows_failed += end.error is not None
            for write in writes:
                await write
        for custom_id, end, _ in rows:
            self.ended(custom_id, end)

    async def _continue(self, reply: RowReply, call: Call[Any], line: RowLine, sample: Sample) -> _StoredRow:
        """The whole answer of a row that was paused, or what there is of it if a live request fails."""
        # Its container belongs to the account.
        call.request = replace(call.request, api_key=self.remote.key)
        with contextlib.suppress(errors.LLMError):
            sample = await self.engine.finish_answer(call, line.parts, sample)
        return await self._store(reply._replace(body=sample.body), call, line, sample)

    async def _row(self, reply: RowReply) -> _StoredRow | None:
        """Enter and store a row; None if its answer goes on."""
        record = self.record
        try:
            line = record.row(reply.custom_id)
            call = call_of(record.header, line, self.shared)
            waiting = self.metadata(reply.custom_id)
            call.metadata = call.metadata if waiting is None else waiting
            call.sent.attempts = 0 if record.paid_elsewhere else 1
        except KeyError as problem:
            damage = errors.InternalServerError(f"the journal is damaged: {problem}")
            return reply.custom_id, RowEnd(error=damage), []
        if reply.error is not None or reply.body is None:
            error = reply.error or errors.APIResponseValidationError("the row has no answer")
            error.provider, error.model = call.target.provider, call.request.model
            record.keep(reply.custom_id, None, _encode_error(error))
            return reply.custom_id, RowEnd(error=error, sent=call.sent), []
        body: Any = None
        try:
            body = await call.run_off_loop(partial(parse_reply, reply.body), reply.body)
            answer = call.operation.decode(call, body, len(line.parts))
        except errors.LLMError as error:
            usage = None
            with contextlib.suppress(errors.LLMError):
                usage = None if body is None else call.operation.usage(call, body)
            self._enter_failure(call, line, error, usage)
            record.keep(reply.custom_id, None, _encode_error(error))
            return reply.custom_id, RowEnd(error=error, sent=call.sent), []
        identifier = {} if reply.request_id is None else {"x-request-id": reply.request_id}
        answer.origin = read_origin(call.target, identifier)
        elapsed = max(0.0, clock.time() - (record.submitted or clock.time()))
        sample = Sample(answer, reply.body, cached=record.paid_elsewhere, sending=elapsed)
        if not record.paid_elsewhere:
            bound = self._bound(call, line)
            record_answer, row = self.engine.recorder.record_answer, self._batch_row(line)
            cost = record_answer(call, sample, line.parts, bound, self._account, batch=row)
            self._count(call, line, cost, answer.usage)
            sample.price = cost_of([cost])
        if self.engine.is_divided(call, sample):
            self._paused.append((reply, call, line, sample))
            return None
        return await self._store(reply, call, line, sample)

    async def _store(self, reply: RowReply, call: Call[Any], line: RowLine, sample: Sample) -> _StoredRow:
        samples = [sample]
        if len(line.parts) > 1:
            samples = call.operation.split(call, sample, line.parts)
        for each in samples if call.encoded.structure is not None else ():
            await find_mismatch(call, each.answer)
        parts = zip(line.parts, samples, strict=False)
        kept = {part: each for part, each in parts if self._is_kept(call, each)}
        if len(kept) < len(samples):
            self.record.keep(reply.custom_id, reply.body, None)
        writes = self.engine.writes(call, tuple(kept), tuple(kept.values()))
        return reply.custom_id, RowEnd(samples, sent=call.sent), writes

    def _is_kept(self, call: Call[Any], sample: Sample) -> bool:
        if call.encoded.structure is not None and mismatch(call, sample.answer) is not None:
            return False
        return call.operation.is_kept(sample.answer, self.engine.settings.kept_reasons)

    def _enter_deleted(self, custom_id: str, sent: SentRequests) -> errors.LLMError:
        """Enter a row whose answer may have been billed and was deleted, and return its error."""
        error = errors.NotFoundError(
            "the provider has deleted the results of the batch: it keeps them for some weeks",
            maybe_billed=True,
        )
        try:
            line = self.record.row(custom_id)
            call = call_of(self.record.header, line, self.shared)
        except KeyError:
            self.spent = UNKNOWN
        else:
            call.sent = sent
            self._enter_failure(call, line, error, None)
        return error

    def _enter_failure(
        self, call: Call[Any], line: RowLine, error: errors.LLMError, usage: Usage | None
    ) -> None:
        """Enter a row that was billed, or may have been, and has no answer that can be used."""
        error.provider, error.model = call.target.provider, call.request.model
        error.retryable = False
        if self.record.paid_elsewhere:
            mark_unbilled(error)
            return
        bound = self._bound(call, line)
        batch = self._batch_row(line)
        cost = self.engine.recorder.record_failure(call, error, bound, self._account, usage, batch=batch)
        call.sent.write_to(error)
        self._count(call, line, cost, usage)

    def _batch_row(self, line: RowLine) -> BatchRow:
        name, again = self.record.ledger_name, line.custom_id in self._entered
        return BatchRow(name, line.custom_id, again=again, delivery=self._delivery)

    def _count(self, call: Call[Any], line: RowLine, cost: Decimal | None, usage: Usage | None) -> None:
        if not self.has_budgets:
            return
        row = Amounts.of_usage(cost, usage)
        self.spent = self.spent.plus(row)
        if row.usd is None:
            row = row._replace(usd=self._bound(call, line)(self.engine.recorder.prices()))
        if row.tokens is None:
            row = row._replace(tokens=most_tokens(call, line.parts))
        self.at_most = self.at_most.plus(row.fill(NOTHING))

    def _bound(self, call: Call[Any], line: RowLine) -> Bound:
        return lambda prices: worst_case(call, line.parts, prices, variants_of(self._delivery))


def _explain_missing(remote: RemoteBatch, number: int, wrong: Mapping[int, str]) -> errors.LLMError:
    """The error of a row without a result in a batch that has ended. Its provider has not billed it.

    `number` is the number of its line in the batch's file, where some lines are wrong.
    """
    if error := explain_unreached(remote.state.lower()):
        return error
    if remote.results:
        return mark_unbilled(errors.InternalServerError("the results of the batch lack this row"))
    if number in wrong:
        problem = f"line {number} of the batch is wrong: {wrong[number]}"
        return mark_unbilled(errors.BadRequestError(problem, code=remote.problem_code))
    if remote.problem is not None:
        lines = ", ".join(map(str, sorted(wrong)[:5]))
        return errors.BadRequestError(
            f"{REFUSED}{f'line {lines}: ' if lines else ''}{remote.problem}",
            code=OTHERS_WRONG if lines else remote.problem_code,
        )
    return mark_unbilled(errors.InternalServerError(f"the batch ended as {remote.state!r} without results"))


def _encode_error(error: errors.LLMError) -> dict[str, object]:
    names = ("message", "code", "status", "retryable")
    fields = {"class": type(error).__name__} | {name: getattr(error, name) for name in names}
    return fields | {"maybe_billed": True} if error.cost is None else fields


def decode_error(fields: JSONMapping) -> errors.LLMError:
    """The inverse of `_encode_error`. A known cost is in the ledger of the process that read the results."""
    kind = getattr(errors, str(fields.get("class")), errors.InternalServerError)
    error: errors.LLMError
    try:
        error = kind(str(fields.get("message")), status=fields.get("status"), code=fields.get("code"))
    except TypeError:
        error = errors.InternalServerError(str(fields.get("message")))
    error.retryable = bool(fields.get("retryable"))
    error.maybe_billed = fields.get("maybe_billed") is True
    return error
