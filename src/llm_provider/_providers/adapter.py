"""What an adapter is, and the few things all adapters share.

An adapter is a module that speaks one wire format through its provider's SDK:

- `encode(request, target) -> EncodedRequest` pure: what will be sent
- `connect(transport) -> Connection`     imports the SDK; its clients are shared: `send`, `stream`, `close`
- `decode(reply) -> Answer`              pure: what came back; anything incomplete raises
- `split(reply) -> list`                 pure: a reply of several samples, one by one
- `Assembler`                            folds a stream's events into the reply it would have been
- `map_error(error) -> LLMError`         every exception of the SDK and of what is below it

Nothing here or in an adapter's pure part imports an SDK: a cache hit never loads one.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from .._errors import APIResponseValidationError, RequestError, UnsupportedParameterError
from .._limits.timeouts import Timeouts
from .._requests.api_keys import APIKey
from .._requests.request import Request
from .._requests.routing import Target
from .._types import Choice, FinishReason, Step, Usage


@dataclass(slots=True)
class EncodedRequest:
    """A request as it goes out.

    `operation` names the endpoint, `payload` is the JSON body without any streaming flag, so that live
    and streamed calls are one cache entry, and without a number of samples, so that every sample of a
    prompt is one. `headers` are those that change the answer. `samples_field` is the way to the field of the
    payload that asks for several samples in one request, at most `most_samples`; empty where there is none.
    """

    operation: str
    payload: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    samples_field: tuple[str, ...] = ()
    most_samples: int = 1


@dataclass(slots=True)
class Outgoing:
    """One request on its way: what `Connection.send` needs to know."""

    encoded: EncodedRequest
    body: bytes
    """The payload as canonical JSON, with the number of samples where it is above one."""
    target: Target
    key: APIKey
    timeouts: Timeouts
    """`_attempt` keeps all but `connect`. An SDK needs `total` too, for what it tells the server."""
    retries: int = 0
    """Attempts before this one."""

    @property
    def timeout(self) -> float:
        """Seconds for the whole of it."""
        assert self.timeouts.total is not None, "a client always has one"
        return self.timeouts.total


@dataclass(slots=True)
class Answer:
    """A decoded reply. `usage` is None where the provider told none."""

    choices: tuple[Choice, ...]
    usage: Usage | None
    model: str | None = None
    id: str | None = None
    service_tier: str | None = None
    """The tier that served and so prices the call ("flex", "priority"), where the provider tells."""


SendInChunks: TypeAlias = Callable[[Outgoing, "OnHeaders"], AsyncGenerator[bytes, None]]
"""Sends, and yields the bytes of the reply's JSON as they arrive."""

OnHeaders: TypeAlias = Callable[[Mapping[str, str]], object]
"""Takes the headers of a successful answer, once, as soon as the SDK lets them be seen. Names are in lower
case, or the mapping does not mind."""


class Connection(Protocol):
    """An adapter's open clients, shared by all calls; lives on one event loop."""

    async def send(self, outgoing: Outgoing, on_headers: OnHeaders) -> bytes:
        """Send and return the reply's JSON bytes; raises whatever the SDK raises."""

    @property
    def send_in_chunks(self) -> SendInChunks | None:
        """`send` that yields the body as it arrives, at some more cost.

        None where the SDK returns an answer only when all of it has arrived.
        """

    def stream(self, outgoing: Outgoing, on_headers: OnHeaders) -> AsyncGenerator[Iterable[Any], None]:
        """Send and yield the stream's events, JSON decoded, those that arrived together at once.

        Closing the iterator cancels.
        """

    async def close(self) -> None:
        """Close every connection."""


class StreamAssembler(Protocol):
    """Folds the events of one stream."""

    def feed(self, event: Any) -> Step:
        """Take one event; returns what it added, which may be nothing."""

    def reply(self) -> Any:
        """The reply as if it had not been streamed.

        Raises:
            APIResponseValidationError: the stream ended before the provider said that it was complete.
        """


class Adapter(Protocol):
    """The shape of an adapter module."""

    @property
    def Assembler(self) -> type[StreamAssembler]: ...

    def encode(self, request: Request, target: Target) -> EncodedRequest:
        """Raises `UnsupportedParameterError` for what the model does not accept."""

    def decode(self, reply: Any) -> Answer:
        """Raises `APIResponseValidationError` for what is not a complete, valid answer."""

    def usage(self, reply: Any) -> Usage | None:
        """What a reply says it used, though it may be none that `decode` accepts."""

    def split(self, reply: Any) -> list[Any]:
        """A reply with several samples as so many replies; the first keeps the usage, which they share."""

    def connect(self, transport: str) -> Connection:
        """Imports the SDK. Raises `MissingDependencyError` where it is not installed."""

    def map_error(self, error: BaseException) -> Any: ...


def refuse(parameter: str, request: Request, remedy: str, *, provider: str) -> UnsupportedParameterError:
    """The error for a parameter that a model does not accept.

    >>> request = Request.build("claude-opus-5-5", "Hi", {})
    >>> print(refuse("seed", request, "leave it out", provider="anthropic"))
    claude-opus-5-5 does not accept seed: leave it out [anthropic, claude-opus-5-5]
    """
    return UnsupportedParameterError(
        f"{request.model} does not accept {parameter}: {remedy}",
        parameter=parameter,
        model=request.model,
        provider=provider,
    )


def schema_of(response_format: Any) -> tuple[str, dict[str, Any] | None, bool | None]:
    """What a `response_format` asks for: its name, its JSON schema (None for plain JSON), and strictness.

    Raises:
        RequestError: a pydantic model that no JSON schema describes.
    """
    if isinstance(response_format, type):
        name = response_format.__name__
        try:
            # `_request` lets no class in that lacks the method.
            schema = response_format.model_json_schema()  # type: ignore[attr-defined]
        except (RuntimeError, NameError, TypeError, ValueError) as error:
            # What pydantic's own errors derive from; it is not imported here.
            problem = str(error).partition("\n")[0]
            raise RequestError(f"response_format {name} has no JSON schema: {problem}") from None
        # A generic model is called `Page[City]`, which providers take for no name.
        return re.sub(r"[^A-Za-z0-9_-]+", "_", name)[:64], schema, None
    if response_format.get("type") == "json_schema":
        inner = response_format["json_schema"]
        return inner.get("name", "answer"), dict(inner["schema"]), inner.get("strict")
    return "answer", None, None


def merge(payload: dict[str, Any], extra: Mapping[str, Any]) -> dict[str, Any]:
    """`payload` with `extra_body` merged in, level by level; the user's value wins.

    >>> merge({"a": {"b": 1}, "c": 2}, {"a": {"d": 3}})
    {'a': {'b': 1, 'd': 3}, 'c': 2}
    """
    merged = dict(payload)
    for name, value in extra.items():
        present = merged.get(name)
        both = isinstance(present, dict) and isinstance(value, Mapping)
        merged[name] = merge(present, value) if both else value  # type: ignore[arg-type]  # `both` narrows
    return merged


def split_reply(reply: dict[str, Any], samples: str, usage: str) -> list[Any]:
    """A reply that holds several samples as a reply for each.

    Args:
        reply: What came back.
        samples: The field that lists the samples.
        usage: The field that counts their tokens, which no provider does for each. It stays with the first.

    >>> reply = {"choices": [{"index": 0}, {"index": 1}], "usage": {"total_tokens": 9}}
    >>> split_reply(reply, "choices", "usage")
    [{'choices': [{'index': 0}], 'usage': {'total_tokens': 9}}, {'choices': [{'index': 0}], 'usage': {}}]
    """
    replies: list[Any] = []
    for place, sample in enumerate(sorted(reply[samples], key=lambda sample: count(sample, "index"))):
        shared = reply if place == 0 or usage not in reply else {**reply, usage: {}}
        replies.append({**shared, samples: [{**sample, "index": 0}]})
    return replies


def expect_dict(value: Any, what: str) -> dict[str, Any]:
    """`value` if it is a JSON object.

    Raises:
        APIResponseValidationError: it is anything else.
    """
    if not isinstance(value, dict):
        raise APIResponseValidationError(
            f"the provider's {what} is {type(value).__name__}, not a JSON object"
        )
    return value


def count(container: Mapping[str, Any], name: str) -> int:
    """A token count out of a usage object: 0 where it is absent, null or nonsense."""
    value = container.get(name)
    # By its very type: True is an int too.
    return value if type(value) is int and value > 0 else 0


def part(container: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A nested object out of a usage object; empty where it is absent."""
    value = container.get(name)
    return value if isinstance(value, dict) else {}


def finish(value: Any, table: Mapping[str, FinishReason]) -> FinishReason:
    """The provider's word for the end of an answer in the common vocabulary.

    Raises:
        APIResponseValidationError: there is no word, so the answer was cut.
    """
    if not isinstance(value, str) or not value:
        raise APIResponseValidationError("the answer ends without a finish reason: it was cut")
    return table.get(value, "stop")
