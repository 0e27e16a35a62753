"""One call of the user as a job: its rows, and the inputs that wait for them.

Calls are also made of rows where a process has only the journal.
"""

import hashlib
import sys
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from .. import doors
from ..errors import InternalServerError, LLMError, RequestError, UncertainBatchError
from ..formats import registry
from ..formats.protocol import EncodedRequest
from ..formats.shared.batches import REFUSED, BatchLimits, find_room_problem, limits_of
from ..journey.call import Call, Operation, Sample
from ..journey.chat import CHAT, build_payload
from ..journey.embed import EMBED
from ..journey.engine import Engine
from ..journey.lookup import mismatch, mismatch_error
from ..journey.recorder import plain_metadata
from ..journey.sent_requests import NOTHING_SENT, SentRequests
from ..json_values import JSONMapping
from ..money.totals import Tracks
from ..pace.call_limits import Concurrency, Patience
from ..requests.api_keys import Credential
from ..requests.attachments import Attachment
from ..requests.checks import DeliveryOptions
from ..requests.request import describe_input, describe_prompt
from ..requests.routing import INTERACTIONS, Target, find_row
from ..runtime import clock, randomness
from ..runtime.json_pieces import canonical, loads, write_exactly
from .journal import Header, Record, RowLine
from .lookup import with_metadata
from .remote import Pauses

OPERATIONS: Mapping[str, Operation[Any, Any]] = {"chat": CHAT, "embed": EMBED}
"""The operations that can be delivered as a batch, by their names in the journal."""

_SPOOLED_BYTES = 16_000_000
"""Bytes of rows that are held in memory."""


@dataclass(slots=True)
class Pending:
    """An input whose answer is missing. It is complete when every one of its rows has ended."""

    index: int
    parts: Sequence[int]
    started: float
    call: Call[Any] | None
    """The call, where its result needs the input; None where the calls of the job are alike."""
    samples: dict[int, Sample]
    rows: int = 0
    """Rows that have not ended."""
    error: LLMError | None = None
    metadata: object = None
    """The user's value for the input."""
    prompt: Any = None
    """The `Response.prompt` of the input."""
    sent: SentRequests = field(default_factory=SentRequests)
    """The rows that it pays for."""


@dataclass(slots=True)
class Wanted:
    """A row that a job needs, and the inputs that wait for it."""

    custom_id: str
    keys: tuple[str, ...]
    """The cache keys of its parts."""
    kind: tuple[object, ...]
    """What all rows of one batch share."""
    span: tuple[int, int]
    """Offset and length of its line in the spool."""
    size: int
    """Bytes of its body."""
    waiting: list[tuple[Pending, tuple[int, ...]]]
    """The inputs, each with the numbers of its parts that the row answers."""
    sent: int = 0
    """How often it was submitted."""
    together: int = sys.maxsize
    """The most parts of a batch with this row, where a larger one found no room."""


@dataclass(frozen=True, slots=True)
class RowEnd:
    """The end of a row: one sample for each of its parts, or an error."""

    samples: Sequence[Sample] = ()
    error: LLMError | None = None
    sent: SentRequests = NOTHING_SENT
    """Its requests, for the first input that waits for it."""


class Spool:
    """The lines of a job's rows. Beyond some megabytes they lie in a temporary file."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_SPOOLED_BYTES)  # noqa: SIM115  # a finalizer closes it
        self._end = 0
        weakref.finalize(self, self._file.close)

    def add(self, line: bytes) -> tuple[int, int]:
        """Keep a line, and return its offset and length."""
        self._file.seek(self._end)
        self._file.write(line)
        span = self._end, len(line)
        self._end += len(line)
        return span

    def read(self, span: tuple[int, int]) -> bytes:
        """The line with an offset and a length."""
        self._file.seek(span[0])
        return self._file.read(span[1])


def rows_of_call(
    call: Call[Any], parts: Sequence[int], most: int
) -> list[tuple[RowLine, tuple[int, ...], int]]:
    """The rows for some parts of a call, each of at most `most`: line, numbers of the parts, bytes."""
    groups = call.operation.groups(call, parts)
    groups = [group[at : at + most] for group in groups for at in range(0, len(group), most)]
    rows, metadata = [], plain_metadata(call)
    for group in map(tuple, groups):
        keys = tuple(call.key(part) for part in group)
        # 64 hexadecimal digits, which every provider accepts.
        name = keys[0] if len(keys) == 1 else hashlib.sha256("+".join(keys).encode()).hexdigest()
        if call.operation.has_texts:
            texts = tuple(call.request.inputs[part] for part in group)
            line = RowLine(name, tuple(range(len(group))), None, texts, keys, metadata)
            size = sum(len(text) for text in texts) + 100
        else:
            # As in `Operation.body`, a schema keeps the order of its fields.
            payload = call.body if call.encoded.structure is None else write_exactly(call.encoded.payload)
            line = RowLine(name, group, payload, None, keys, metadata)
            size = len(payload)
        rows.append((line, group, size))
    return rows


def header_of(
    call: Call[Any], *, name: str, job: str, account: str, background: JSONMapping | None = None
) -> Header:
    target, encoded = call.target, call.encoded
    return Header(
        id=name,
        job=job,
        created=clock.time(),
        kind=next(kind for kind, known in OPERATIONS.items() if isinstance(call.operation, type(known))),
        provider=target.provider,
        model=call.request.model,
        name=target.model,
        base_url=target.base_url,
        custom_base_url=target.custom_base_url,
        deployed=target.deployed,
        account=account,
        operation=encoded.operation,
        headers=dict(encoded.headers),
        samples_field=encoded.samples_field,
        most_samples=encoded.most_samples,
        payload=encoded.payload if call.operation.has_texts else None,
        labels=encoded.labels,
        tag=call.tracks.tag,
        background=background,
    )


def call_of(header: Header | None, line: RowLine, shared: Call[Any] | None = None) -> Call[Any]:
    """The call of a row, without its messages; `KeyError` if the journal lacks the row's contents.

    `header` is None if the file is damaged. `shared` is a call of the job, if this process has it.
    """
    if header is None or (line.payload is None and line.texts is None):
        raise KeyError(f"the journal has no payload of {line.custom_id}")
    # A call without a request has no structure.
    shared = call_without_request(header) if shared is None else shared
    payload = dict(header.payload or {}) if line.payload is None else loads(line.payload)
    if not isinstance(payload, dict):
        raise KeyError(f"the payload of {line.custom_id} in the journal is damaged")
    encoded = EncodedRequest(
        header.operation,
        payload,
        header.headers,
        header.samples_field,
        header.most_samples,
        header.labels,
        structure=shared.encoded.structure,
    )
    return replace(
        shared,
        request=shared.request if line.texts is None else replace(shared.request, inputs=line.texts),
        encoded=encoded,
        body=b"" if line.payload is None else canonical(payload),
        parts=line.parts,
        sent=SentRequests(),
        first_key=None,
        metadata=line.metadata,
    )


def body_of(header: Header | None, line: RowLine) -> bytes:
    """The JSON body of a row, as of a live request; `KeyError` if the journal has no contents any more."""
    if line.payload is not None and len(line.parts) == 1 and header is not None and not header.labels:
        return line.payload
    call = call_of(header, line)
    if line.texts is not None:
        return call.operation.body(call, line.parts)
    return write_exactly(build_payload(call.encoded, len(line.parts)))


def target_of(header: Header) -> Target:
    """The destination of a batch's rows; a `KeyError` if this version has no such provider."""
    if header.operation.endswith("/interactions"):
        route = INTERACTIONS
    else:
        route = find_row(header.provider, header.name, header.deployed)
    return Target(route, header.name, header.base_url, header.custom_base_url, header.deployed)


def call_without_request(header: Header) -> Call[Any]:
    """A call with what the journal knows of all rows of a batch."""
    target = target_of(header)
    operation = OPERATIONS[header.kind]
    return Call(
        operation=operation,
        exchange=operation,
        request=operation.bare_request(header.model, header.base_url),
        target=target,
        adapter=registry.load(target.route.adapter, target.quirks),
        encoded=EncodedRequest(header.operation, {}, header.headers),
        body=b"",
        parts=(),
        started=clock.perf_counter(),
        concurrency=Concurrency(1, 1),
        cache="use",
        tracks=Tracks(header.tag),
        patience=Patience(0.0, clock.monotonic()),
    )


RESENT = 1
"""How often such a row is sent again, or less if `max_retries` is less."""


_LOOKUP_SECONDS = 1.0
"""A margin before the first lookup of a job, for the steps of the clock."""


class Job:
    """One call of the user: its rows, and the inputs that wait for them.

    `shared` is a call with the user's parameters. `deliver` is called on the loop, once for each input, with
    its index and its result or error. With `resend`, rows that failed or expired are sent once more there.
    """

    def __init__(
        self,
        engine: Engine,
        shared: Call[Any],
        deliver: Callable[[int, Any], object],
        delivery: DeliveryOptions,
    ) -> None:
        self.id = randomness.make_token(8)
        self.shared = shared
        self.deliver = deliver
        self.resend, self.batch_size = delivery.resend, delivery.batch_size
        self.background = delivery.background
        retries = shared.request.max_retries
        self.resends = min(RESENT, engine.settings.max_retries if retries is None else retries)
        self.spool = Spool()
        # The import of an SDK may lie between the lookup of the first row and this.
        self._since = clock.time() - (clock.perf_counter() - shared.started) - _LOOKUP_SECONDS
        self.wanted: dict[str, Wanted] = {}
        """The rows that have not ended, by name."""
        self.calls: dict[tuple[object, ...], Call[Any]] = {}
        """One call for each kind of rows."""
        self.records: list[Record] = []
        """The batches with rows that have not ended."""
        self.known: list[Record] = []
        """All its batches so far."""
        self.submitting = False
        """Whether one more batch may have reached the provider."""
        self.failed: dict[str, LLMError] = {}
        """Rows that ended without an answer and are sent again."""
        self.unplaced: dict[str, LLMError] = {}
        """Rows of a batch for which there was no room, so that none of its rows was processed."""
        self.alone: set[Record] = set()
        """Its batches that were submitted while no other one of its own was under way."""
        self.at_once: int | None = None
        """How many of its batches may be under way; None while there was room for all."""
        self.rounds = 0
        """How often rows were submitted again because others in their batch were wrong."""
        self.pauses = Pauses(shared.patience.seconds)
        """Those between submissions that are refused for a reason that may pass."""
        self.pause: float | None = None
        """Seconds after which rows are submitted again that were refused for such a reason."""
        self.uploads: dict[str, Attachment] = {}
        """The files that are too large for its rows, by their reference."""
        self.referred: list[tuple[Call[Any], Credential, dict[str, str]]] = []
        """The ids of the files that its batches refer to, each with a call and the key of the batch."""

    def add(self, engine: Engine, index: int, call: Call[Any]) -> None:
        """Add an input, in the user's thread; a `RequestError` if the provider has no batches for it."""
        limits = self.limits_of(call)
        stored: dict[int, Sample] = {}
        if len(call.parts) > 1 and call.cache == "use":
            keys = ((part, call.key(part)) for part in call.parts)
            samples = ((part, engine.sample(call, engine.cache.get(key), key)) for part, key in keys)
            stored = {part: sample for part, sample in samples if sample is not None}
        own = call if call.operation.has_texts else None
        pending = Pending(index, call.parts, call.started, own, stored, metadata=call.metadata)
        if call.sent is not NOTHING_SENT:
            # Somebody counts what the call has sent.
            pending.sent = call.sent
        pending.prompt = None if own else describe_prompt(call.request.messages)
        encoded = call.encoded
        self.uploads.update((file.reference, file) for file in encoded.uploads)
        kind = (encoded.operation, tuple(sorted(encoded.headers.items())), encoded.most_samples)
        self.calls.setdefault(kind, call)
        missing = [part for part in call.parts if part not in stored]
        for line, parts, size in rows_of_call(call, missing, min(limits.parts, self.batch_size)):
            row = self.wanted.get(line.custom_id)
            if row is None:
                span = self.spool.add(line.encode())
                row = Wanted(line.custom_id, line.keys, kind, span, size, [], together=self.batch_size)
                self.wanted[line.custom_id] = row
            row.waiting.append((pending, parts))
            pending.rows += 1

    def limits_of(self, call: Call[Any]) -> BatchLimits:
        """How much one batch of such calls may hold; a `RequestError` if the provider has none for it."""
        if call.encoded.payload.get("background") is True:
            doors.background.refuse_raw_field(call)
        if self.background is None:
            return limits_of_call(call)
        limits = limits_of(call.target, call.encoded.operation, "background")
        return limits or doors.background.refuse(call.target, call.request.model)

    def list_unsubmitted(self) -> dict[str, Wanted]:
        """The rows that are in no batch under way."""
        under_way = [record.rows for record in self.records]
        return {name: row for name, row in self.wanted.items() if not any(name in rows for rows in under_way)}

    def note(self, record: Record) -> None:
        """Add a batch with some of its rows."""
        self.records.append(record)
        if record not in self.known:
            self.known.append(record)

    def may_use(self, record: Record, row: Wanted) -> bool:
        """Whether a batch has the answer of a row, or will have it."""
        if record.is_open:
            return record.remote is not None
        # Another process may have stored the answer after this job has looked for it in the cache.
        if record.collected is None or record.collected <= self._since or row.sent:
            return False
        return self.shared.cache == "use" and "error" not in (record.read_row(row.custom_id) or {})

    def call_of(self, row: Wanted) -> Call[Any]:
        """The call of a row, without its messages."""
        like = self.calls[row.kind]
        header = header_of(like, name="", job=self.id, account="", background=self.background)
        call = call_of(header, RowLine.decode(self.spool.read(row.span)), like)
        call.metadata = row.waiting[0][0].metadata
        call.encoded.uploads = self.files_of([row])
        return call

    def files_of(self, rows: Iterable[Wanted]) -> tuple[Attachment, ...]:
        if not self.uploads:
            return ()
        lines = [self.spool.read(row.span) for row in rows]
        return tuple(
            file for name, file in self.uploads.items() if any(name.encode() in line for line in lines)
        )

    def end_row(self, engine: Engine, custom_id: str, end: RowEnd) -> None:
        """Take the end of a row; a second one is ignored."""
        row = self.wanted.get(custom_id)
        if row is None:
            return
        if end.error is not None and end.error.message.startswith(REFUSED) and find_room_problem(end.error):
            row.sent -= 1
            self.unplaced[custom_id] = end.error
            return
        # The first input that waits for the row pays for it.
        row.waiting[0][0].sent.parts += (end.sent,)
        if end.error is not None and end.error.retryable and row.sent <= self.resends:
            self.failed[custom_id] = end.error
            return
        del self.wanted[custom_id]
        self.failed.pop(custom_id, None)
        call = self.calls[row.kind]
        for number, (pending, parts) in enumerate(row.waiting):
            pending.error = pending.error or end.error
            for part, sample in zip(parts, end.samples, strict=False):
                problem = None if call.encoded.structure is None else mismatch(call, sample.answer)
                if problem is None:
                    pending.samples[part] = sample.share() if number else sample
                elif pending.error is None:
                    pending.error = mismatch_error(call, sample, problem)
            if len(end.samples) < len(parts) and pending.error is None:
                pending.error = InternalServerError(f"{len(end.samples)} of {len(parts)} samples came back")
            pending.rows -= 1
            if not pending.rows:
                self.deliver(pending.index, self._result(engine, pending))

    def _result(self, engine: Engine, pending: Pending, error: LLMError | None = None) -> Any:
        """The result of an input, or its error, with what the requests for the input cost."""
        # The calls of a job differ in their inputs alone.
        call = copy(pending.call or self.shared)
        call.parts, call.started = pending.parts, pending.started
        call.sent, call.answered = pending.sent, pending.samples
        error = error or pending.error
        if error is None:
            try:
                result = engine.result(call, [pending.samples[part] for part in pending.parts])
                if pending.call is None:
                    object.__setattr__(result, "prompt", pending.prompt)
                return with_metadata(result, pending.metadata)
            except LLMError as problem:
                error = problem
        # Inputs that share an error get one each.
        error = copy(error)
        call.describe(error)
        error.prompt = pending.prompt or describe_input(call.request)
        return with_metadata(error, pending.metadata)

    def give_up(self, engine: Engine, error: LLMError, only: Iterable[str] | None = None) -> None:
        """End some rows, or all of them, with an error, or with the error of their last batch."""
        names = list(self.wanted if only is None else only)
        for name in names:
            row = self.wanted.get(name)
            goes_on = isinstance(error, UncertainBatchError) or (row is not None and row.sent)
            if row is not None and goes_on and name not in self.failed:
                # Its batch goes on, or may, and is billed.
                row.waiting[0][0].sent.start()
                row.waiting[0][0].sent.leave()
        for name in names:
            row, own = self.wanted.pop(name, None), self.failed.pop(name, error)
            for pending, _ in () if row is None else row.waiting:
                if pending.rows:
                    pending.rows = 0
                    self.deliver(pending.index, self._result(engine, pending, own))


def limits_of_call(call: Call[Any]) -> BatchLimits:
    """How much one batch of such calls may hold; a `RequestError` if the provider has no batches for it."""
    limits = limits_of(call.target, call.encoded.operation)
    if limits is None:
        raise RequestError(
            f"{call.target.provider} has no batch API for {call.encoded.operation}: use delivery='live', or "
            "delivery='auto', which sends live where there is none",
            provider=call.target.provider,
            model=call.request.model,
        )
    if call.encoded.contents:
        raise RequestError(
            "batches of embeddings take texts alone: embed images with delivery='live'",
            provider=call.target.provider,
            model=call.request.model,
        )
    if call.encoded.secrets:
        raise RequestError(
            "a batch is kept in files, and so would be the token of an MCP server: use delivery='live'",
            provider=call.target.provider,
            model=call.request.model,
        )
    return limits
