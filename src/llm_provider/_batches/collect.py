"""Waits for one batch and stores its answers, row by row.

Each row is entered in the ledger, then stored in the cache. A process that is killed in between reads the
row again and finds its line in the ledger, so each row is stored, and none is entered twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson

from .._calls.attempt import parsed
from .._calls.call import Call, Sample
from .._calls.recorder import BatchRow
from .._calls.worst_case import worst_case
from .._errors import (
    APIResponseValidationError,
    BadRequestError,
    InternalServerError,
    LLMError,
    NotFoundError,
)
from .._providers.batches import RemoteBatch, RowReply, cancelled, expired, unbilled
from .._runtime.exact_decimal import exact
from .journal import Record, RowLine
from .remote import Remote
from .rows import call_of

if TYPE_CHECKING:
    from .._calls.engine import Engine
    from .._money.pricing import PriceTable

_POLL_SHARE, _FIRST_POLL, _LONGEST_POLL = 0.1, 0.2, 60.0
"""A batch is asked after again when this share of its age has passed, within two bounds in seconds."""

_TOGETHER = 64
"""Rows that are written to the cache together. One by one, each would wait for the disk."""


@dataclass(frozen=True, slots=True)
class RowEnd:
    """The end of a row: one sample for each of its parts, or an error."""

    samples: Sequence[Sample] = ()
    error: LLMError | None = None


def poll_pause(age: float) -> float:
    """Seconds until a batch is asked after again.

    >>> poll_pause(0.0), poll_pause(60.0), poll_pause(7200.0)
    (0.2, 6.0, 60.0)
    """
    return min(max(age * _POLL_SHARE, _FIRST_POLL), _LONGEST_POLL)


class Collector:
    """Waits for one batch.

    Args:
        engine: The engine of the client.
        remote: The account.
        record: The batch, which was submitted.
        shared: A call of the job that waits for it; None where nobody does.
        ended: Called with each row of the batch and its end, after it is stored.
        metadata: Gives the metadata of the input that waits for a row.
    """

    def __init__(
        self,
        engine: Engine,
        remote: Remote,
        record: Record,
        shared: Call[Any] | None,
        ended: Callable[[str, RowEnd], object],
        metadata: Callable[[str], Any] = lambda custom_id: None,
    ) -> None:
        self._engine = engine
        self._remote = remote
        self._record = record
        self._shared = shared
        self._ended = ended
        self._metadata = metadata
        self._entered: set[str] = set()
        self._rows_failed = 0
        self.spent: Decimal | None = Decimal(0)
        """USD of the rows that were read; None if the cost of one is not known."""

    async def wait(self) -> RemoteBatch:
        """The batch, once its provider has ended it."""
        record = self._record
        since = record.submitted or time.time()
        while True:
            assert record.remote is not None
            remote = await self._remote.retrieve(record.remote)
            self.told(remote)
            if remote.ended:
                return remote
            await asyncio.sleep(poll_pause(time.time() - since))

    def told(self, remote: RemoteBatch) -> None:
        record = self._record
        if (remote.state, remote.ended) != (record.state, record.ended):
            facts = {"done": remote.done, "failed": remote.failed}
            record.append("state", state=remote.state, ended=remote.ended, **facts)
        record.counts = remote.done, remote.failed

    async def collect(self, remote: RemoteBatch) -> bool:
        """Store the answers of a batch that has ended.

        Returns:
            False if it turned out to be another batch than the one that was submitted.
        """
        record = self._record
        # A process that was killed may have entered some rows.
        self._entered = await asyncio.to_thread(self._engine.recorder.entered, record.id)
        left = dict.fromkeys(record.rows)
        foreign = gone = False
        group: list[RowReply] = []
        try:
            async for reply in self._remote.results(remote, record.path.with_suffix(".results")):
                if reply.custom_id not in left:
                    foreign = True
                    continue
                del left[reply.custom_id]
                group.append(reply)
                if len(group) == _TOGETHER:
                    await self._take(group)
                    group = []
        except NotFoundError:
            # The results have expired.
            foreign, gone = False, True
        if foreign and len(left) == len(record.rows):
            record.append("not_ours", remote=remote.identifier)
            return False
        await self._take(group)
        for custom_id in left:
            error = _without_result(remote, gone=gone)
            record.keep(custom_id, None, _plain(error))
            self._ended(custom_id, RowEnd(error=error))
        failed = len(left) + self._rows_failed
        record.append("collected", done=len(record.rows) - failed, failed=failed)
        await asyncio.to_thread(record.shrink)
        return True

    async def _take(self, replies: Sequence[RowReply]) -> None:
        """Enter and store some rows."""
        ends: list[tuple[str, RowEnd]] = []
        writes: list[asyncio.Future[bool]] = []
        for reply in replies:
            end, writing = self._row(reply)
            self._rows_failed += end.error is not None
            ends.append((reply.custom_id, end))
            writes += writing
        for write in writes:
            await write
        for custom_id, end in ends:
            self._ended(custom_id, end)

    def _row(self, reply: RowReply) -> tuple[RowEnd, list[asyncio.Future[bool]]]:
        record = self._record
        try:
            line = record.row(reply.custom_id)
            call = call_of(record.header, line, self._shared)
            waiting = self._metadata(reply.custom_id)
            call.metadata = call.metadata if waiting is None else waiting
        except KeyError as problem:
            return RowEnd(error=InternalServerError(f"the journal is damaged: {problem}")), []
        if reply.error is not None or reply.body is None:
            error = reply.error or APIResponseValidationError("the row has no answer")
            error.provider, error.model, error.attempts = call.target.provider, call.request.model, 1
            record.keep(reply.custom_id, None, _plain(error))
            return RowEnd(error=error), []
        entered = BatchRow(record.id, reply.custom_id, again=reply.custom_id in self._entered)
        try:
            answer = call.operation.decode(
                call, parsed(reply.body, nests=call.operation.nests), len(line.parts)
            )
        except LLMError as error:
            self._failed(call, line, error, reply.body, entered)
            record.keep(reply.custom_id, None, _plain(error))
            return RowEnd(error=error), []
        elapsed = max(0.0, time.time() - (record.submitted or time.time()))
        sample = Sample(answer, reply.body, cached=False, sending=elapsed, attempts=1)
        self._engine.recorder.answered(call, sample, self._bound(call, line), batch=entered)
        self._count(sample.cost)
        samples = call.operation.split(call, sample, line.parts)
        kept = {part: one for part, one in zip(line.parts, samples, strict=False) if self._is_kept(call, one)}
        if len(kept) < len(samples):
            record.keep(reply.custom_id, reply.body, None)
        writes = self._engine.writes(call, tuple(kept), tuple(kept.values()))
        return RowEnd(samples=samples), writes

    def _is_kept(self, call: Call[Any], sample: Sample) -> bool:
        """Whether the cache keeps an answer."""
        if call.encoded.structure is not None and call.operation.mismatch(call, sample.answer) is not None:
            return False
        return call.operation.is_kept(sample.answer, self._engine.settings.kept)

    def _failed(
        self, call: Call[Any], line: RowLine, error: LLMError, body: bytes, entered: BatchRow
    ) -> None:
        """Enter an answer that cannot be used. It was billed."""
        usage = None
        with contextlib.suppress(LLMError, ValueError):
            usage = call.operation.usage(call, orjson.loads(body))
        error.provider, error.model, error.attempts = call.target.provider, call.request.model, 1
        error.retryable = False
        self._count(self._engine.recorder.failed(call, error, self._bound(call, line), usage, batch=entered))

    def _count(self, cost: Decimal | None) -> None:
        known = self.spent is not None and cost is not None
        self.spent = exact().add(self.spent or 0, cost or 0) if known else None

    @staticmethod
    def _bound(call: Call[Any], line: RowLine) -> Callable[[PriceTable], Decimal | None]:
        return lambda prices: worst_case(call, line.parts, prices, variants=("batch",))


def _without_result(remote: RemoteBatch, *, gone: bool) -> LLMError:
    """The error of a row without a result in a batch that has ended."""
    state = remote.state.lower()
    if gone:
        return NotFoundError(
            "the provider has deleted the results of the batch: it keeps them for some weeks"
        )
    if "cancel" in state:
        return cancelled()
    if "expired" in state or remote.results:
        return expired()
    if remote.problem is not None:
        return BadRequestError(f"the provider refused the batch: {remote.problem}")
    return unbilled(InternalServerError(f"the batch ended as {remote.state!r} without results"))


def _plain(error: LLMError) -> dict[str, Any]:
    """An error as JSON."""
    facts = {"code": error.code, "status": error.status, "retryable": error.retryable}
    return {"class": type(error).__name__, "message": error.message, **facts}


def error_of(facts: dict[str, Any]) -> LLMError:
    """The inverse of `_plain`."""
    from .. import _errors

    kind = getattr(_errors, str(facts.get("class")), InternalServerError)
    error: LLMError
    try:
        error = kind(str(facts.get("message")), status=facts.get("status"), code=facts.get("code"))
    except TypeError:
        error = InternalServerError(str(facts.get("message")))
    error.retryable = bool(facts.get("retryable"))
    return unbilled(error)
