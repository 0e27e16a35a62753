"""The protocol of wire formats.

An `Adapter` is a module that speaks one wire format through its provider's SDK. Its functions are pure.
An adapter that serves embeddings has a second module beside it, `embeddings`: see `EmbeddingFormat`.

Neither this module nor the pure part of an adapter imports an SDK, so a cache hit loads none.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from .. import doors
from ..json_values import JSONMapping, JSONObject
from ..pace.call_limits import Timeouts
from ..requests.api_keys import Credential, SealedText
from ..requests.request import EmbedRequest, Request
from ..requests.routing import EmbeddingLimits, Target
from ..types.messages import Step
from ..types.response import Choice
from ..types.usage import Usage
from .shared.payload import RequestFacts, merge

if TYPE_CHECKING:
    from decimal import Decimal

    from ..._features.prompt_caching.settings import PrefixMark
    from ..requests.attachments import Attachment
    from ..schemas.structure import Structure
    from .shared.payload import Origin


@dataclass(slots=True)
class EncodedRequest:
    """A request in the provider's wire format.

    `operation` names the endpoint. `payload` is the JSON body. It has no streaming flag, so that a live call
    and a stream share a cache entry, and no number of samples, so that each sample of a prompt has an entry
    of its own. `headers` change the answer. `samples_field` is the path of the payload's field for the number
    of samples in one request, which is at most `most_samples`; it is empty where the API has no such field.
    """

    operation: str
    payload: JSONObject
    headers: Mapping[str, str] = field(default_factory=dict)
    samples_field: tuple[str, ...] = ()
    most_samples: int = 1
    labels: JSONMapping | None = None
    """Fields that are sent too, such as a user's id. They do not change the answer, so they are not part of
    the cache key."""
    dropped: tuple[str, ...] = ()
    """The parameters that were left out, because the model or its host does not have them."""
    prefix: PrefixMark | None = None
    """The part of the prompt that the provider's prompt cache shall hold. Like labels, its breakpoints are
    sent and are not part of the cache key. None without `prompt_caching`."""
    structure: Structure | None = None
    """The JSON that the answer must be; None for text. Adapters set it only where the prompt asks for it."""
    uploads: tuple[Attachment, ...] = ()
    """The files that are uploaded before it is sent. The payload has their references."""
    contents: Mapping[str, Any] | None = None
    """The form of each of the `Contents` of an embedding; None where all inputs are texts."""
    continues: JSONMapping | None = None
    """The reply so far, for a request that goes on with an answer."""
    secrets: tuple[SealedText, ...] = ()
    """The texts that stand for tokens of MCP servers, which take their place in what is sent."""

    def add_labels(self, payload: JSONObject) -> JSONObject:
        """A payload with the labels, where `extra_body` does not set them, and with its cache breakpoints."""
        if self.labels:
            payload = merge(dict(self.labels), payload)
        if self.secrets:
            payload = doors.remote_servers.reveal(payload, self.secrets)
        return payload if self.prefix is None else self.prefix.format.mark_prefix(payload, self.prefix)


@dataclass(slots=True, eq=False, repr=False)
class Outgoing:
    """One request as `Connection.send` takes it."""

    encoded: EncodedRequest
    body: bytes
    """The payload as canonical JSON, with the number of samples where it is above one."""
    target: Target
    key: Credential
    timeouts: Timeouts
    """An attempt enforces all but `connect`. An SDK needs `total` too, for a header that it sends."""
    retries: int = 0
    """Attempts before this one."""
    samples: int = 1
    """Samples that the body asks for."""
    headers: Mapping[str, str] | None = None
    """The headers of the answer, set by the connection as soon as the SDK gives access to them. Names are in
    lower case, or the mapping ignores case. A server may repeat the API key there."""

    @property
    def timeout(self) -> float:
        """Seconds for the whole attempt."""
        assert self.timeouts.total is not None, "a client always sets it"
        return self.timeouts.total


class Iteration(NamedTuple):
    """The tokens of one prompt that a provider made itself. A `model` of None is the model of the call."""

    model: str | None
    usage: Usage


@dataclass(slots=True, kw_only=True)
class AnyAnswer:
    """What the decoded replies of all operations have. What a reply does not say is None."""

    usage: Usage | None
    iterations: tuple[Iteration, ...] = ()
    """The parts of its cost, where several prompts or models were billed for one answer."""
    model: str | None = None
    id: str | None = None
    service_tier: str | None = None
    """The service level that served and so prices the call, by its name in `prices.csv`."""
    cost: Decimal | None = None
    """USD that the reply says it cost."""
    reply: Any = None
    """The reply as it was read, or the short fields of one with vectors."""
    origin: Origin | None = None
    """Who answered, as far as headers and the address tell."""
    key: str | None = None
    """The key of its cache entry; None if it has none."""


@dataclass(slots=True)
class Answer(AnyAnswer):
    """A decoded reply of a chat."""

    choices: tuple[Choice, ...]
    has_media: bool = False
    """Whether it holds images or audio that are not fields of its messages."""
    checked: tuple[Any, str | None] | None = None
    """The structure that it was compared with, and where it did not match."""


@dataclass(slots=True)
class CountAnswer(AnyAnswer):
    """A decoded reply to a request for a number of tokens."""

    tokens: int


@dataclass(slots=True)
class EmbeddingAnswer(AnyAnswer):
    """A decoded reply to a request for embeddings. The vectors are in the order of the texts."""

    vectors: list[list[float]]


SendInChunks: TypeAlias = Callable[[Outgoing], AsyncGenerator[bytes, None]]
"""Sends, and yields the bytes of the reply's JSON as they arrive."""

IsComplete: TypeAlias = Callable[[], bool]
"""Whether the events of a stream so far are a complete answer."""


def never() -> bool:
    """An `IsComplete` for formats whose streams end with their last byte."""
    return False


class Connection(Protocol):
    """An adapter's open clients, which all calls share. It belongs to one event loop."""

    async def prepare(self, outgoing: Outgoing) -> None:
        """Import and build what the first request needs, and send nothing. It raises no exception."""

    async def send(self, outgoing: Outgoing) -> bytes:
        """Send and return the reply's JSON bytes. Raises the exceptions of the SDK and its transport."""

    @property
    def send_in_chunks(self) -> SendInChunks | None:
        """`send` that yields the body as it arrives, at some more cost; None where the SDK cannot."""

    def stream(
        self, outgoing: Outgoing, is_complete: IsComplete = ...
    ) -> AsyncGenerator[Iterable[Any], None]:
        """Yield events in batches that arrived together, until `is_complete`. Closing it cancels."""

    async def close(self) -> None:
        """Close every connection."""


class StreamAssembler(Protocol):
    """Folds the events of one stream.

    A format whose streams have no last event has one more method, `is_whole() -> bool`: whether the events so
    far are a whole answer, although others may follow. A failure after them does not lose the answer.

    A format that shows some steps only when the stream has ended has `end() -> list[Step]`, which are these.

    A format whose requests can ask for several samples has `feed_samples(event) -> list[Step]` for their
    streams. Each step has the number of its sample.
    """

    def feed(self, event: Any) -> Step:
        """Take one event; returns the text or delta that it adds, which may be empty."""

    def is_complete(self) -> bool:
        """Whether the event that ends the answer has been fed; False where `sse.events` ends with it."""

    def reply(self) -> Any:
        """The reply without streaming; `APIResponseValidationError` if the stream ended before its mark."""


class Adapter(Protocol):
    """The shape of an adapter module.

    A format whose provider may pause a turn has one more function, `is_paused(reply) -> bool`: whether the
    model goes on if its message is sent back.

    A format whose provider may divide an answer over several requests has two more:
    `continuation(reply, encoded) -> JSONObject | None`, the fields with which the same request goes on, where
    None leaves a field out, and `join(before, after)`, two replies as one.
    """

    def assembler(self, encoded: EncodedRequest) -> StreamAssembler:
        """A new object that folds the stream of one request."""

    def encode(self, request: Request, target: Target) -> EncodedRequest:
        """Build the payload. Raises `UnsupportedParameterError` for what the model does not accept."""

    def decode(self, reply: Any) -> Answer:
        """Read a reply. Raises `APIResponseValidationError` if it is not a complete, valid answer."""

    def usage(self, reply: Any) -> Usage | None:
        """The usage in a reply, which need not be one that `decode` accepts; None where there is none."""

    def split(self, reply: Any) -> list[Any]:
        """Divide a reply with several samples into one reply for each; the first keeps the common usage."""

    def variant(self, encoded: EncodedRequest) -> str:
        """The service level that a request asks for, by its name in `prices.csv`. Cheap, unlike `facts`."""

    def facts(self, encoded: EncodedRequest) -> RequestFacts:
        """The facts about a request that estimates, budgets and rate limits need."""

    def map_error(self, error: BaseException) -> Any:
        """The `LLMError` for an exception of the SDK or of its transport."""


class EmbeddingFormat(Protocol):
    """The shape of an adapter's `embeddings` module: pure functions between `EmbedRequest` and replies.

    A request is encoded once, without its texts. Each request that is sent then takes some of the texts. A
    reply to several texts is split into one reply for each text, which the cache stores.
    """

    def encode(self, request: EmbedRequest, target: Target) -> EncodedRequest:
        """The operation, and all of the payload but the texts; `RequestError` if the model does not embed."""

    def payload_of(self, encoded: EncodedRequest, texts: Sequence[str]) -> JSONObject:
        """The payload of one request for these texts. The payload of a single text makes its cache key.

        `encoded.contents` has the forms of those that are `Contents`.
        """

    def encode_contents(self, request: Request, target: Target) -> Any:
        """The form of an input with media, as the message of a chat; `RequestError` if none is taken."""

    def limits(self, target: Target) -> EmbeddingLimits:
        """How much one request may hold."""

    def decode(self, reply: Any, texts: int, encoded: EncodedRequest | None = None) -> EmbeddingAnswer:
        """The vectors of a reply to so many texts. The request may say how they are written."""

    def split(self, reply: Any, shares: Sequence[int]) -> list[Any]:
        """A reply to several texts as one reply for each text, in the order of the texts.

        Each is a valid reply by itself. The usage is divided in proportion to `shares`, one number for each
        text, so that the parts add up to the whole.
        """

    def usage(self, reply: Any) -> Usage | None:
        """The usage that a reply reports, even if `decode` would refuse the reply; None where it has none."""
