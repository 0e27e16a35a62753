"""One call of the user as a job: its rows, and the inputs that wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable
from copy import copy
from typing import TYPE_CHECKING, Any

from .._calls.batch_lookup import with_metadata
from .._calls.call import Call, Sample
from .._calls.repair import mismatch_error
from .._errors import InternalServerError, LLMError, RequestError
from .._providers.batches import BatchLimits, limits_of
from .._requests.checks import Resend
from .._requests.embed_request import EmbedRequest
from .collect import RowEnd
from .journal import Record, RowLine, new_id
from .rows import Pending, Spool, Wanted, call_of, header_of, rows_of_call

if TYPE_CHECKING:
    from .._calls.engine import Engine

RESENT = 1
"""How often such a row is sent again, or less if `max_retries` is less."""


_LOOKUP_SECONDS = 1.0
"""Seconds before which the first row of a job was looked up."""


class Job:
    """One call of the user: its rows, and the inputs that wait for them.

    Args:
        shared: A call with the user's parameters.
        deliver: Called with the index of an input and its result or error, once each, on the loop.
        resend: Where rows that failed or expired are sent once more.
    """

    def __init__(
        self, shared: Call[Any], deliver: Callable[[int, Any], object], resend: Resend = "batch"
    ) -> None:
        self.id = new_id()
        self.shared = shared
        self.deliver = deliver
        self.resend: Resend = resend
        asked = shared.request.max_retries
        self.resends = RESENT if asked is None else min(RESENT, asked)
        self.spool = Spool()
        self._since = time.time() - _LOOKUP_SECONDS
        self.wanted: dict[str, Wanted] = {}
        """The rows that have not ended, by name."""
        self.calls: dict[tuple[Any, ...], Call[Any]] = {}
        """One call for each kind of rows."""
        self.records: list[Record] = []
        """The batches with rows that have not ended."""
        self.known: list[Record] = []
        """All its batches so far."""
        self.submitting = False
        """Whether one more batch may have reached the provider."""
        self.failed: dict[str, LLMError] = {}
        """Rows that ended without an answer and are sent again."""

    def add(self, engine: Engine, index: int, call: Call[Any]) -> None:
        """Add an input. It is called in the user's thread.

        Raises:
            RequestError: the provider has no batches for it.
        """
        limits = _limits_of_call(call)
        texts = isinstance(call.request, EmbedRequest)
        found: dict[int, Sample] = {}
        if len(call.parts) > 1 and call.cache == "use":
            samples = ((part, engine.sample(call, engine.cache.get(call.key(part)))) for part in call.parts)
            found = {part: sample for part, sample in samples if sample is not None}
        pending = Pending(
            index, call.parts, call.started, call if texts else None, found, metadata=call.metadata
        )
        encoded = call.encoded
        kind = (encoded.operation, tuple(sorted(encoded.headers.items())), encoded.most_samples)
        self.calls.setdefault(kind, call)
        missing = [part for part in call.parts if part not in found]
        for line, parts, size in rows_of_call(call, missing, limits.parts):
            row = self.wanted.get(line.custom_id)
            if row is None:
                place = self.spool.add(line.encoded())
                row = Wanted(line.custom_id, line.keys, kind, place, size, [])
                self.wanted[line.custom_id] = row
            row.waiting.append((pending, parts))
            pending.rows += 1

    def note(self, record: Record) -> None:
        """Add a batch with some of its rows."""
        self.records.append(record)
        if record not in self.known:
            self.known.append(record)

    def may_use(self, record: Record, row: Wanted) -> bool:
        """Whether a batch has the answer of a row, or will have it."""
        if record.is_open:
            return record.remote is not None
        # Another process may have collected it after this job has looked for the answer in the cache.
        return not row.sent and record.collected is not None and record.collected > self._since

    def line_of(self, row: Wanted) -> RowLine:
        """The contents of a row."""
        return RowLine.decoded(self.spool.read(row.place))

    def call_of(self, row: Wanted) -> Call[Any]:
        """The call of a row, without its messages."""
        like = self.calls[row.kind]
        header = header_of(like, name="", job=self.id, account="")
        call = call_of(header, self.line_of(row), like)
        call.metadata = row.waiting[0][0].metadata
        return call

    def ended(self, engine: Engine, custom_id: str, end: RowEnd) -> None:
        """Take the end of a row; a second one is ignored."""
        row = self.wanted.get(custom_id)
        if row is None:
            return
        if end.error is not None and end.error.retryable and row.sent <= self.resends:
            self.failed[custom_id] = end.error
            return
        del self.wanted[custom_id]
        self.failed.pop(custom_id, None)
        end = self._checked(row, end)
        for number, (pending, parts) in enumerate(row.waiting):
            pending.error = pending.error or end.error
            for part, sample in zip(parts, end.samples, strict=False):
                pending.samples[part] = sample.shared() if number else sample
            if len(end.samples) < len(parts) and pending.error is None:
                pending.error = InternalServerError(f"{len(end.samples)} of {len(parts)} samples came back")
            pending.rows -= 1
            if not pending.rows:
                self.deliver(pending.index, self._result(engine, pending))

    def _checked(self, row: Wanted, end: RowEnd) -> RowEnd:
        """The end of a row, with the error of an answer that does not match `response_format`."""
        call = self.calls[row.kind]
        if end.error is None and call.encoded.structure is not None:
            for sample in end.samples:
                problem = call.operation.mismatch(call, sample.answer)
                if problem is not None:
                    return RowEnd(end.samples, mismatch_error(call, sample, problem))
        return end

    def _result(self, engine: Engine, pending: Pending) -> Any:
        if pending.error is not None:
            return _described(pending.error, pending)
        call, before = pending.call or self.shared, self.shared.started
        try:
            if pending.call is None:
                # The calls differ in their inputs alone, and a result has only the time of its own.
                call.started = pending.started
            result = engine.result(call, [pending.samples[part] for part in pending.parts])
            return with_metadata(result, pending.metadata)
        except LLMError as error:
            return _described(error, pending)
        finally:
            self.shared.started = before

    def give_up(self, error: LLMError) -> None:
        """End every row that has not ended with an error."""
        for row in self.wanted.values():
            for pending, _ in row.waiting:
                if pending.rows:
                    pending.rows = 0
                    self.deliver(pending.index, _described(error, pending))
        self.wanted = {}


def _limits_of_call(call: Call[Any]) -> BatchLimits:
    """How much one batch of such calls may hold.

    Raises:
        RequestError: the provider has no batches for it, or it needs uploaded files.
    """
    limits = limits_of(call.target, call.encoded.operation)
    if limits is None:
        raise RequestError(
            f"{call.target.provider} has no batch API for {call.encoded.operation}: use delivery='live', or "
            "delivery='auto', which sends live where there is none",
            provider=call.target.provider,
            model=call.request.model,
        )
    if call.encoded.uploads:
        raise RequestError(
            "a file is too large for a request, and only live calls upload files: use delivery='live'",
            provider=call.target.provider,
            model=call.request.model,
        )
    return limits


def _described(error: LLMError, pending: Pending) -> LLMError:
    """An error with the metadata of an input. Inputs that share an error get one each."""
    return error if pending.metadata is None else with_metadata(copy(error), pending.metadata)
