"""What observers learn of a call: the call itself, each of its requests, and what each request cost."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import FailedAttempt
from ..runtime.json_pieces import LARGE
from ..types.served_by import ServedBy
from ..types.usage import Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCall:
    """A call as it was asked for: the second argument of `Client(on_result=...)`."""

    operation: str
    """"chat", "embeddings" or "count_tokens"."""
    provider: str
    model: str
    """The name of the model as the call gave it. `Response.model` is the model that answered."""
    messages: tuple[Any, ...] = ()
    """The conversation, or the texts of an `embed`."""
    tag: str = ""
    """The names of the `track` blocks around the call, joined by slashes."""
    metadata: Any = None
    """The value of `metadata` for this input of a batch."""


class Destination(Protocol):
    """The server of a call: `ObservedCall`, or a target of `_core/requests/routing`."""

    @property
    def provider(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def base_url(self) -> str | None: ...


@dataclass(slots=True)
class ObservedCall:
    """A call as it was asked for."""

    operation: str
    """Its name in the GenAI conventions: "chat", "embeddings"; "count_tokens" has none there."""
    provider: str
    model: str
    """The name in the request, without the prefix of the provider."""
    model_as_given: str
    """The name as the user gave it."""
    base_url: str | None
    request: Any
    """The checked arguments. Only the switch for content lets their messages be read."""
    tag: str = ""
    streamed: bool = False
    metadata: Any = None
    answered: tuple[Mapping[str, str], ...] = ()
    """For each request that was answered, the fields of `served_by` without the model."""

    def to_asked_call(self) -> AskedCall:
        """The call for the user's function."""
        messages: Any = getattr(self.request, "messages", None) or getattr(self.request, "inputs", ())
        return AskedCall(
            operation=self.operation, provider=self.provider, model=self.model_as_given,
            messages=tuple(messages), tag=self.tag, metadata=self.metadata,
        )  # fmt: skip


@dataclass(slots=True)
class Payment:
    """The tokens and the cost of one request that was answered, or that failed and may have been billed."""

    usage: Usage | None
    usd: float | None
    """None where it is not known."""
    served: str
    """The model that answered, as the provider names it."""
    delivery: str = "live"
    who: Mapping[str, str] | None = None
    """The fields of `served_by` without the model; None if the request was not answered."""


@dataclass(slots=True)
class EndedAttempt:
    """One request that has ended."""

    number: int
    waited: float
    """Seconds before it was sent."""
    seconds: float
    failure: FailedAttempt | None = None
    retry_in: float | None = None
    """Seconds until the next request; None if there is none."""


def describe_who(call: ObservedCall, outcome: object) -> Mapping[str, str]:
    """The fields of `served_by` of an answer, without the model.

    Those of its only request are known already. Otherwise the reply is read again.
    """
    if len(call.answered) == len(getattr(outcome, "choices", ())) == 1:
        return call.answered[0]
    served_by = find_served_by(outcome)
    fields = {} if served_by is None else served_by.to_dict()
    fields.pop("model", None)
    return fields


def find_served_by(outcome: object) -> ServedBy | None:
    """Who gave an answer; None for an error, and for a large body, which is not read on the loop."""
    if len(getattr(outcome, "body", b"")) >= LARGE:
        return None
    served_by: ServedBy | None = getattr(outcome, "served_by", None)
    return served_by
