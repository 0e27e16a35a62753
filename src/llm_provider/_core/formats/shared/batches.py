"""The protocol of batch connections. Each adapter with batches has one in a module `batches` beside it.

It calls the batch methods of its provider's SDK, and turns their objects into those below. It knows nothing
of journals, caches and prices; `_core/batches` does.
"""

import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, cast

from ...errors import APIResponseValidationError, APITimeoutError, LLMError, ProviderError
from ...json_values import JSONMapping
from ...requests.api_keys import Credential
from ...requests.routing import Target
from ...runtime.json_pieces import read_large, takes_long
from ...runtime.threads import result_in_thread
from ..registry import load_beside
from ..sdk_clients import items_of
from ..transport.wire import BYTE_ORDER_MARK, too_large

_HEAD, _MOST_SKIPPED = 65_536, 2**30
"""Bytes that are kept of a line which is too long, and those after which it is taken to have no end."""

DAY = 86_400.0
"""Seconds within which every provider answers a batch."""

_ROW = re.compile(rb'"(?:custom_id|key)" ?: ?"([0-9a-f]{64})"')
"""The name of a row in a line of results. Inside an answer, its quotation marks are escaped."""


REFUSED = "the provider refused the batch: "
"""The beginning of the message of each row of a batch that was refused as a whole."""

OTHERS_WRONG = "other_lines_wrong"
"""The code of a row of a batch that was refused because of other rows."""

Room = Literal["full", "large", "early", "others"]
"""Why rows found no room: a full queue, a large batch, a file that is not known yet, or other, wrong rows."""

_NO_ROOM: dict[str, Room] = {
    rf"^{OTHERS_WRONG} ": "others",
    # openai/openai-python#2084. Azure: "the number of enqueued tokens has surpassed the configured limit".
    r"token_limit_exceeded|enqueued tokens?\b": "full",
    # Azure's code for too many rows, and the words for it: bespokelabsai/curator#109.
    r"too_many_tasks|(maximum|too many|more than) [\w ,]*(requests|rows|lines|tasks) (in|per)": "large",
    # bespokelabsai/curator#111, Anthropic's code, and the words of gateways.
    r"request_too_large|(file|batch|body|payload|entity)( size)? (is )?too large": "large",
    # bespokelabsai/curator#116.
    # The second words are Azure's: openai/openai-dotnet#312.
    r"cannot find file .* have access to it|input file .* is in '\w+' state": "early",
    r"exceeds the (maximum|max)( allowed)? (file|batch|request|number of (requests|rows|lines))": "large",
}
"""Codes and messages, in lower case, of submissions that are refused and of batches that fail as a whole."""


def find_room_problem(error: LLMError) -> Room | None:
    """Why the rows of a refused batch found no room; None for another reason."""
    text = f"{error.code} {error.message}".lower()
    known = next((room for pattern, room in _NO_ROOM.items() if re.search(pattern, text)), None)
    # bespokelabsai/curator#610: gateways have pages of their own.
    return known or ("large" if error.status == 413 else None)


RPC_STATUSES = {
    1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501,
    13: 500, 14: 503, 15: 500, 16: 401,
}  # fmt: skip
"""The codes of google.rpc, with which rows report their failures, as HTTP statuses."""

_LABEL = "llm_provider"


class BatchLimits(NamedTuple):
    """How much one batch may hold."""

    rows: int
    bytes: int
    """Bytes of the file, or of the request, in which the rows are sent."""
    parts: int = sys.maxsize
    """Most samples or texts in one row; default as many as in a live request."""
    least: int = 1
    """Fewest rows of one batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSpec:
    """Everything that a batch has besides its rows."""

    operation: str
    """The endpoint of every row, as in `EncodedRequest`."""
    model: str = ""
    """The model of every row, as the provider knows it."""
    headers: dict[str, str] = field(default_factory=dict)
    label: str
    """The name of the batch in the journal. It is sent along where the provider keeps one."""
    content: str
    """A hash of the rows. It is sent along with the label."""
    origin: str = ""
    """A hash of the cache directory whose ledger has the cost. It is sent along with the label."""
    background: JSONMapping | None = None
    """The options of a background job, which is a batch of one row; None for a batch."""


def write_name(spec: BatchSpec) -> str:
    """The name of a batch where the provider keeps no metadata. `read_name` reads it."""
    return f"{_LABEL} {spec.label} {spec.content} {spec.origin}"


def read_name(name: object) -> dict[str, Any]:
    """The fields of `RemoteBatch` that the name of a batch has; none if another program named it."""
    words: list[str | None] = list(name.split(" ")) if isinstance(name, str) else []
    if len(words) < 3 or words[0] != _LABEL:
        return {}
    return dict(zip(("label", "content", "origin"), [*words[1:], None], strict=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteBatch:
    """A batch as its provider sees it now."""

    identifier: str
    state: str
    """The provider's own word, such as "in_progress"."""
    ended: bool
    """Whether nothing will change any more."""
    created: float
    """Unix time."""
    total: int | None = None
    done: int = 0
    """Rows that have an answer, as far as the provider tells before the end."""
    failed: int = 0
    label: str | None = None
    content: str | None = None
    origin: str | None = None
    input_file: str | None = None
    results: tuple[str, ...] = ()
    """Where the results are, in the provider's own terms; empty if there are none, perhaps only for now."""
    archived: bool = False
    """Whether the provider says that it has deleted the results."""
    problem: str | None = None
    """Why the provider refused the batch as a whole."""
    problem_code: str | None = None
    """Its code for that."""
    wrong_lines: Mapping[int, str] = field(default_factory=dict)
    """Why it refused single lines of the file, by their numbers, which begin at 1."""

    @property
    def ended_early(self) -> bool:
        """Whether its provider ended it before every row had an answer or an error of its own."""
        return self.ended and any(word in self.state.lower() for word in ("fail", "cancel", "expire"))


class RowReply(NamedTuple):
    """The end of one row: the JSON of its answer, or the error in its place.

    A line that names no row has the name "", and its beginning in the place of an answer.
    """

    custom_id: str
    body: bytes | None
    error: LLMError | None
    request_id: str | None = None


ONLY_ROW = "only"
"""The name of the row of a background job, whose provider does not know it."""


class BatchConnection(Protocol):
    """The batches of one account. Its methods raise exceptions of the SDK and its transport."""

    keeps_label: bool
    """Whether a listed batch shows the label that it was created with."""

    def line(self, spec: BatchSpec, custom_id: str, body: bytes) -> bytes:
        """One row as a line of the file, without a line break."""

    async def upload(self, path: Path) -> str | None:
        """Upload the file of a batch and return its name; None where rows are part of the submission."""

    async def create(self, spec: BatchSpec, path: Path, file: str | None) -> RemoteBatch:
        """Submit a batch. It must be sent at most once."""

    async def retrieve(self, identifier: str) -> RemoteBatch:
        """The present state of a batch."""

    def recent(self) -> AsyncIterator[RemoteBatch]:
        """The batches of the account, newest first."""

    def results(self, remote: RemoteBatch, longest: int) -> AsyncIterator[RowReply]:
        """The ends of all rows that have one, in any order. A line has at most `longest` bytes."""

    async def cancel(self, identifier: str) -> None:
        """Ask the provider to end a batch early."""

    async def close(self) -> None:
        """Close every connection."""


class BatchModule(Protocol):
    """A module `batches` beside an adapter."""

    def connect(self, target: Target, key: Credential) -> BatchConnection:
        """A connection for one account; imports the SDK."""

    def limits(self, target: Target, operation: str) -> BatchLimits | None:
        """How much a batch may hold; None where the host has no batches for this endpoint."""


Part = Literal["batches", "background"]
"""The module beside an adapter that speaks of batches, or of background jobs: batches of one row each."""


def module_of(target: Target, part: Part = "batches") -> BatchModule | None:
    """The batch module of a target's cloud, or else of its adapter; None if there is none."""
    service = target.route.batches
    if part == "batches" and target.route.cloud is not None and service is not None and service.host:
        return cast("BatchModule", load_beside("batch_hosts", service.host))
    return cast("BatchModule | None", load_beside(target.route.adapter, part))


def limits_of(target: Target, operation: str, part: Part = "batches") -> BatchLimits | None:
    """How much a batch of a target may hold; None where it has no batches."""
    module = module_of(target, part)
    return None if module is None else module.limits(target, operation)


def explain_unreached(word: str) -> LLMError | None:
    """The error of a row that its batch did not reach, as a word says; else None. It costs nothing."""
    what = "the batch {} before the provider reached this row"
    if "cancel" in word:
        return ProviderError(what.format("was cancelled"), code="batch_cancelled")
    if "expired" in word:
        return APITimeoutError(what.format("expired"), code="batch_expired", maybe_billed=False)
    return None


def mark_unbilled(error: LLMError) -> LLMError:
    """The error of a row: providers bill no row that failed in a batch."""
    error.maybe_billed = False
    return error


def id_of(reply: object, name: str = "id") -> str:
    """The id in a reply about a batch or a file, which the page of a proxy, null and {} do not have."""
    identifier = getattr(reply, name, None)
    if isinstance(identifier, str) and identifier:
        return identifier
    # What it was asked to make may exist.
    raise APIResponseValidationError("the answer has no id of a batch or a file")


async def batches_of(
    listing: Awaitable[Any], read: Callable[[Any], RemoteBatch]
) -> AsyncIterator[RemoteBatch]:
    """The batches of a list. A page that is none, such as {}, does not prove that a batch does not exist."""

    async def pages() -> AsyncIterator[list[Any]]:
        async for page in (await listing).iter_pages():
            batches = getattr(page, "data", None)
            if not isinstance(batches, list) or (page.has_more and not batches):
                raise APIResponseValidationError("the answer is no list of batches")
            yield batches

    async for batch in items_of(pages()):
        yield read(batch)


_PIECE = 2**18


async def pieces_of(path: Path) -> AsyncIterator[bytes]:
    """The bytes of a file in pieces."""
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            yield piece


async def lines_of(pieces: AsyncIterator[bytes], longest: int) -> AsyncIterator[bytes]:
    """The lines of a body that arrives in pieces, with their line breaks, without those that are empty.

    A line of more than `longest` bytes is cut: its row fails. A line that goes on for ever ends the reading.
    """
    rest: list[bytes] = []
    length = 0
    async for piece in pieces:
        first, *others = piece.split(b"\n")
        length += len(first)
        if length > longest:
            rest = [b"".join(rest)[:_HEAD]]
            if length > max(_MOST_SKIPPED, longest):
                raise too_large(longest)
        else:
            rest.append(first)
        if others:
            length = len(others[-1])
            for line in filter(None, (b"".join(rest), *others[:-1])):
                yield line + b"\n"
            rest = [others[-1]]
    if last := b"".join(rest):
        yield last


async def rows_of(
    pieces: AsyncIterator[bytes], longest: int, read: Callable[[bytes], RowReply]
) -> AsyncIterator[RowReply]:
    """The rows of a batch's results; see `lines_of`. A large one is read in a thread."""
    async for line in lines_of(pieces, longest):
        read_line = partial(read, line.removeprefix(BYTE_ORDER_MARK))
        if takes_long(line):
            yield await result_in_thread(partial(read_large, read_line), "llm_provider-row")
        else:
            yield read_line()


def fail_row(line: bytes) -> RowReply:
    """The end of a row whose line is no JSON, as with half an emoji: its answer fails as a live one does.

    A line that is cut, or names no row, has the name "".
    """
    name, end = _ROW.search(line), line[-1:]
    if name is None or end != b"\n":
        return RowReply("", line[:60].rstrip() + end, None)
    return RowReply(name[1].decode(), line, None)


def only_row(body: bytes, error: LLMError | None, longest: int, request_id: str | None = None) -> RowReply:
    """The row of a background job: its answer, or the error in its place, if there is one.

    Raises:
        APIResponseValidationError: the answer has more than `longest` bytes.
    """
    if len(body) > longest:
        raise APIResponseValidationError(
            f"the answer has {len(body):,} bytes, and max_response_bytes is {longest:,}", retryable=False
        )
    return RowReply(ONLY_ROW, None if error else body, error, request_id)


def time_of(value: object) -> float:
    """A date as Unix time, from a number, a text or a datetime; 0.0 if it is none."""
    try:
        if isinstance(value, str) and not value.replace(".", "").isdigit():
            value = datetime.fromisoformat(value)
        if isinstance(value, datetime):
            return (value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp()
        return float(cast("float", value))
    except (ValueError, TypeError, OverflowError):
        return 0.0
