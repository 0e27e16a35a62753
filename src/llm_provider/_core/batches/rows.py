"""The rows of a batch: from the calls of a job, and back to calls where a process has only the journal."""

import hashlib
import sys
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import LLMError
from ..formats import registry
from ..formats.protocol import EncodedRequest
from ..journey.call import Call, Operation, Sample
from ..journey.chat import CHAT, build_payload
from ..journey.embed import EMBED
from ..journey.recorder import plain_metadata
from ..journey.sent_requests import SentRequests
from ..money.totals import Tracks
from ..pace.call_limits import Concurrency, Patience
from ..requests.routing import ROUTES, Target
from ..runtime import clock
from ..runtime.json_pieces import canonical, loads, write_exactly
from .journal import Header, RowLine

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


def header_of(call: Call[Any], *, name: str, job: str, account: str) -> Header:
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
    route = ROUTES[header.provider]
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
