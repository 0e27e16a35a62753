"""A call, the operation that it performs, and its answered parts.

A call has numbered parts: the samples of a chat, the texts of an embedding. Each is stored under a key of
its own, and those that are not stored are requested together if the API allows it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar

from ..errors import LLMError, ModelDriftError
from ..formats.protocol import Adapter, AnyAnswer, EncodedRequest
from ..formats.shared.payload import read_served_by
from ..formats.shared.replies import number_step
from ..json_values import JSONObject
from ..money.totals import Tracks
from ..pace.call_limits import Concurrency, Deadline, Patience
from ..requests.routing import Target, price_names
from ..runtime import clock
from ..runtime.frozen import LateValue
from ..runtime.json_pieces import read_large, takes_long
from ..store.entry import Entry, Question, cache_key
from ..types.messages import Commentary, Delta, Step, ToolCallDelta, delta_of, make_delta, text_to_parse
from ..types.response import Choice, Response
from ..types.usage import Usage, make_timing
from .sent_requests import NOTHING_SENT, SentRequests, sum_of_prices

if TYPE_CHECKING:
    from ..._features.fallback.passed_over import PassedOver
    from ..events.events import Listener
    from ..formats.shared.payload import RequestFacts
    from ..money.model_drift import Change
    from .sent_requests import EarlyStop

Emit: TypeAlias = Callable[[list[Step]], None]
"""Receives the steps of a stream. Steps that arrived together are in one list."""


def delta_of_choice(choice: Choice, index: int, response_format: object = None) -> Delta:
    """A delta with all of a sample."""
    calls = tuple(
        ToolCallDelta(index=position, id=call.id, name=call.name, arguments=call.arguments)
        for position, call in enumerate(choice.tool_calls)
    )
    text = choice.text
    if response_format is not None and (answer := text_to_parse(choice)) != text:
        text = Commentary(text, answer)
    return make_delta(text=text, reasoning=choice.reasoning, tool_calls=calls, index=index)


def renumber(emit: Emit, numbers: Sequence[int]) -> Emit:
    """An `Emit` that gives deltas the `numbers` of their samples in the call, and drops surplus ones."""

    def emit_renumbered(steps: list[Step]) -> None:
        deltas = [delta for step in steps if (delta := delta_of(step)).index < len(numbers)]
        emit([number_step(delta, numbers[delta.index]) for delta in deltas])

    return emit_renumbered


R = TypeVar("R")
T = TypeVar("T")
V = TypeVar("V")
"""The type of the result that the user receives."""

MAX_REQUEST_BYTES = 30_000_000
"""The largest body. Gemini takes 20 MB and Anthropic 32 MB; no model has a context for as much text."""


class Exchange(ABC):
    """One kind of request, as the sender, the recorder and observers know it. One serves every call."""

    name: ClassVar[str]
    """Its name in the log, in spans and in metrics: the name of the GenAI conventions where they have one."""

    billed: ClassVar[bool]
    """Whether providers bill its requests."""

    def body(self, call: Call[Any], parts: Sequence[int]) -> bytes:
        """The JSON body of the request for a group of parts."""
        return call.body

    @abstractmethod
    def tokens(self, call: Call[Any], parts: Sequence[int]) -> float:
        """Estimated tokens that a request for a group counts against the provider's rate limit."""

    @abstractmethod
    def decode(self, call: Call[Any], reply: Any, count: int) -> AnyAnswer:
        """A reply with so many parts as an answer; `APIResponseValidationError` if it is not valid."""

    @abstractmethod
    def usage(self, call: Call[Any], reply: Any) -> Usage | None:
        """The usage that a reply reports, even if `decode` does not accept the reply."""


class Operation(Exchange, Generic[R, T]):
    """One thing that can be done with a model: a request of type `R` becomes a result of type `T`."""

    billed = True

    patience: ClassVar[float]
    """Seconds that a call waits for a provider that is down, unless the user sets them."""

    defaults: ClassVar[Collection[str] | None]
    """The defaults of a client that its calls take; None for all."""

    has_texts: ClassVar[bool]
    """Whether its parts are `request.inputs`, which the payload does not hold."""

    continues: ClassVar[bool] = False
    """Whether a provider may divide an answer over several requests."""

    identity: ClassVar[Callable[..., tuple[bytes, int]] | None] = None
    """Gives the payload and the sample number that are hashed into the cache key of a part of a call. None
    stands for the body of the call and the number of the part."""

    fetch: ClassVar[Callable[..., Coroutine[Any, Any, Sample]] | None] = None
    """Gets the answer with some parts of a call, where that needs other requests than one for each group. It
    takes the call, the parts and the engine."""

    @staticmethod
    @abstractmethod
    def build(model: str, inputs: Any, parameters: Any, function: str, /) -> R:
        """Check and normalise the arguments of the user's call; `TypeError` for an unknown parameter."""

    @abstractmethod
    def bare_request(self, model: str, base_url: str | None) -> R:
        """A request without content, for a row of a batch whose payload alone is known."""

    @abstractmethod
    def encode(self, request: R, target: Target, adapter: Adapter) -> EncodedRequest:
        """The request in the wire format of its provider; `RequestError` if that cannot serve it."""

    @abstractmethod
    def parts(self, request: R) -> Sequence[int]:
        """The numbers of the parts that a request asks for, in their order."""

    @abstractmethod
    def groups(self, call: Call[T], parts: Sequence[int]) -> list[Sequence[int]]:
        """Parts in groups. One request can ask for each group."""

    def count_requests(self, call: Call[T], parts: Sequence[int]) -> int:
        """How many requests ask for a group: one, unless `fetch` sends others."""
        return 1

    def smaller_groups(self, call: Call[T], parts: Sequence[int], error: LLMError) -> list[Sequence[int]]:
        """Smaller groups to request after the request for a group was refused; empty if that is final."""
        return []

    @abstractmethod
    def prompt(self, call: Call[T], parts: Sequence[int]) -> bytes:
        """The JSON that the model reads for a group, without the number of samples."""

    @abstractmethod
    def facts(self, call: Call[T], parts: Sequence[int]) -> RequestFacts:
        """The facts about a request for a group that estimates, budgets and rate limits need."""

    def variant(self, call: Call[T]) -> str:
        """The service level that a call asks for, by its name in `prices.csv`. Only chats have several."""
        return "standard"

    def split(self, call: Call[T], sample: Sample, parts: Sequence[int]) -> list[Sample]:
        """The answer to several parts as one sample for each. The engine requests missing ones again."""
        return [sample]

    def is_kept(self, answer: Any, kept: Collection[str]) -> bool:
        """Whether the cache keeps an answer and serves it. Only chats have answers that are not kept.

        `kept` has the finish reasons of answers that are kept; "empty" keeps answers without content.
        """
        return True

    def restore(self, call: Call[T], entry: Entry, answer: Any, started: float, prompt: Any = None) -> T:
        """The result of a call of one part, perhaps with another prompt, that the cache answers."""
        return self.result(call, [Sample(answer, entry.body, cached=True, price=entry.price)])

    @abstractmethod
    def result(self, call: Call[T], samples: Sequence[Sample]) -> T:
        """Parts of a call, put together. `call.sent` has what they cost."""

    def good_samples(self, call: Call[T], samples: Sequence[Sample]) -> tuple[Any, ...]:
        """The `error.samples` of a call when only these parts were answered."""
        return ()


class Relay(ABC):
    """Asks several calls in the place of one. A feature makes it for a parameter of `RELAYS`."""

    calls: tuple[Call[Any], ...]
    interrupted: str = ""
    """What a Ctrl-C means, if there is more to say than of other calls."""

    @abstractmethod
    def look_up(self, call: Call[Any]) -> Any:
        """The result from the cache; None if there is none, `CacheMissError` if nothing may be sent."""

    @abstractmethod
    def run(self, call: Call[Any], emit: Emit | None) -> Coroutine[Any, Any, Any]:
        """The result of the calls, which are sent."""

    @abstractmethod
    def find_answering(self, response: Response) -> Call[Any]:
        """The call whose answer a response is."""

    @abstractmethod
    def prepare_round(self, operation: Operation[Any, T], request: Any, concurrency: Concurrency) -> Call[T]:
        """`Engine.prepare` for a later round of tools."""


@dataclass(slots=True, kw_only=True)
class Call(Generic[T]):
    """A checked and encoded request, and the state of its lifecycle. `T` is the type of its result."""

    operation: Operation[Any, T]
    exchange: Exchange
    """How its requests are written and read: the operation, or another question about the same request."""
    request: Any
    """Its type belongs to the operation."""
    target: Target
    adapter: Adapter
    encoded: EncodedRequest
    body: bytes
    """The encoded payload as canonical JSON."""
    parts: Sequence[int]
    """The numbers of the samples or texts that it asks for. Each has a cache entry of its own."""
    started: float
    """Monotonic time at which the user made the call."""
    concurrency: Concurrency
    cache: str
    """The cache mode of the request, else of the client."""
    tracks: Tracks
    """The `track` blocks around the call in the user's thread."""
    patience: Patience
    """How long it waits for a provider that is down. The calls of a batch share it."""
    upstream: str | None = None
    """The host behind a router that the user names."""
    deadline: Deadline | None = None
    early_stop: EarlyStop | None = None
    """Stops the other calls of its batch; None for a single call."""
    sent: SentRequests = NOTHING_SENT
    """The requests that were sent so far, once it is run."""
    answered: dict[int, Sample] | None = None
    """The parts of a call of several parts that are answered so far."""
    metadata: Any = None
    """The user's value for this input of a batch."""
    streamed: bool = False
    """Whether the user reads the answer as a stream."""
    first_key: str | None = None
    """The cache key of the first part, after it was computed."""
    listeners: tuple[Listener, ...] = ()
    """Who hears of its events."""
    relay: Relay | None = None
    """Asks other calls in its place; None for most."""
    passed_over: tuple[PassedOver, ...] | None = None
    """The models that did not answer before this one; None unless it is one of a relay."""

    @property
    def candidates(self) -> tuple[Call[Any], ...]:
        """Itself, or the calls of its relay. One of them answers."""
        return (self,) if self.relay is None else self.relay.calls

    def key(self, part: int) -> str:
        if self.first_key is not None and part == self.parts[0]:
            return self.first_key
        identity = self.operation.identity
        body, draw = (self.body, part) if identity is None else identity(self, part)
        key = cache_key(**self.key_fields(), body=body, draw=draw)
        if self.first_key is None and part == self.parts[0]:
            self.first_key = key
        return key

    def find_price_names(self, served: str | None = None, reply: Any = None) -> tuple[str, str]:
        """The names of `price_names`. A host behind a router has a price of its own: `MODEL:HOST`.

        Claude models that run only in the US have their own prices, and so have models that make decisions.
        """
        provider, model = price_names(self.target, served)
        if self.encoded.operation.endswith("decisions"):
            return provider, f"decisions/{model}"
        if provider == "anthropic" and self.is_in_us(reply):
            return provider, f"us/{model}"
        return provider, model if self.upstream is None else f"{model}:{self.upstream}"

    def is_in_us(self, reply: Any) -> bool:
        """Whether Claude may only run in the US, by its reply, else by the request."""
        usage = reply.get("usage") if isinstance(reply, dict) else None
        geo = usage.get("inference_geo") if isinstance(usage, dict) else None
        return (geo or self.encoded.payload.get("inference_geo")) == "us"

    def build_question(self, part: int) -> Question:
        """The question that a key stands for. It is stored with the answer."""
        identity = self.operation.identity
        body, draw = (self.body, part) if identity is None else identity(self, part)
        target, encoded, model = self.target, self.encoded, self.request.model
        url, known = target.url_in_key, encoded.payload if identity is None else None
        return Question(target.provider, url, encoded.operation, body, encoded.headers, draw, model, known)

    def key_fields(self) -> JSONObject:
        """The part of the key that does not depend on the payload."""
        return {
            "provider": self.target.provider,
            "base_url": self.target.url_in_key,
            "operation": self.encoded.operation,
            "headers": self.encoded.headers,
        }

    def facts(self, parts: Sequence[int] | None = None) -> RequestFacts:
        """The facts about a request for some of its parts, by default all of them. They are not cached."""
        return self.operation.facts(self, self.parts if parts is None else parts)

    def make_part(self) -> Call[T]:
        """A call for some of its parts. Its requests are counted by themselves, and here too."""
        part = replace(self, sent=SentRequests())
        self.sent.parts += (part.sent,)
        return part

    def note(self, parts: Sequence[int], samples: Sequence[Sample]) -> None:
        """Note parts that are answered, unless there is one part alone."""
        if self.answered is not None:
            self.answered.update(zip(parts, samples, strict=False))

    def describe(self, error: LLMError) -> None:
        """Set what the error of this call says of its requests, and of the parts that were answered."""
        self.sent.write_to(error)
        answered = self.answered or {}
        samples = [answered[part] for part in self.parts if part in answered]
        if isinstance(error, ModelDriftError):
            samples = [sample for sample in samples if sample.change is None]
        if samples:
            error.samples = self.operation.good_samples(self, samples)

    async def run_off_loop(self, read: Callable[[], V], body: bytes) -> V:
        """What `read` returns for a reply, in a thread where its size or a user's validator takes long."""
        structure = self.encoded.structure
        if not takes_long(body) and (structure is None or not structure.runs_code):
            return read()
        from ..runtime.threads import result_in_thread

        return await result_in_thread(partial(read_large, read), "llm_provider-check")


@dataclass(slots=True)
class Sample:
    """One answered request, or one entry of the cache. Times are seconds."""

    answer: Any
    """Its type belongs to the operation."""
    body: bytes
    cached: bool
    queue: float = 0.0
    sending: float = 0.0
    first_token: float | None = None
    price: float | None = None
    """USD of its requests that were answered; None where that is not known. Of several parts that came in one
    request, the first has the price of all, or each has a share."""
    change: Change | None = None
    """Who answered before, where another one answers now."""

    def add_times(self, later: Sample) -> JSONObject:
        """The fields of a sample after which another request was made for the same part."""
        return {
            "queue": self.queue + later.queue,
            "sending": self.sending + later.sending,
            "price": sum_of_prices((self.price, later.price)),
        }

    def share(self) -> Sample:
        """The sample for a call that did not pay for it."""
        return replace(self, cached=True)


def summarize(call: Call[Any], samples: Sequence[Sample]) -> JSONObject:
    """What the results of embeddings and of scores have in common, for all parts of a call."""
    sent = call.sent.including_parts()
    slowest = max(samples, key=lambda sample: sample.queue + sample.sending, default=None)
    # Requests are sent at the same time, so the call waited for the slowest of them.
    queue, sending = (slowest.queue, slowest.sending) if slowest is not None else (0.0, 0.0)
    total, provider = clock.perf_counter() - call.started, call.target.provider
    first = samples[0].answer if samples else AnyAnswer(usage=None)
    return {
        "usage": sent.usage_with(samples),
        "model": next((sample.answer.model for sample in samples if sample.answer.model), call.target.model),
        "provider": provider,
        **sent.describe_cost(),
        "price": sum_of_prices([sample.price for sample in samples]),
        "stored_price": sum_stored_prices(samples),
        "cached": all(sample.cached for sample in samples),
        "timing": make_timing(
            queue=queue, total=total, attempts=sent.attempts, overhead=max(0.0, total - queue - sending)
        ),
        "failures": sent.failures,
        "served_by": LateValue(partial(read_served_by, provider, first.reply, first.origin)),
    }


def sum_stored_prices(samples: Sequence[Sample]) -> float | None:
    """The sum of the prices of the samples that came from elsewhere; None if one is not known."""
    return sum_of_prices([sample.price for sample in samples if sample.cached])
