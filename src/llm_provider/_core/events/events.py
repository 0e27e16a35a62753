"""The events of a call, and who listens to them.

| event | when | it has |
|---|---|---|
| `note_lookup` | the cache has answered a call, or it must not be sent | its result or error |
| `begin` | a call is about to be sent, in the task that sends it | |
| `note_attempt` | a request has ended | its `Attempt` |
| `note_payment` | a request was billed, or may have been | the `Posting` of the ledger |
| `note_end` | a call that began has ended | its result or exception, and its requests |

The log, spans and metrics are a feature. It is loaded once the log is on, or OpenTelemetry is configured. A
call has its listeners only if something is on when the call is made.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from .. import doors
from ..errors import LLMError

T = TypeVar("T")

EndTool: TypeAlias = "Callable[[BaseException | None, object], None]"
"""Takes the exception of a tool, and what the model is told."""

SDK = "opentelemetry.sdk"

is_logging = logging.getLogger("llm_provider.calls").isEnabledFor
"""Whether a level of `llm_provider.calls` is logged."""

_MOST_KEPT = 10_000
"""Results whose calls are kept. A batch that the user does not read to its end leaves some."""


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


class Listener:
    """Hears the events of calls. Each does nothing here."""

    reads_prompts = False
    """Whether it needs the prompt of each call. Stored answers of a batch are else found without."""

    def note_lookup(self, call: Any, started: float, outcome: object) -> None: ...

    def begin(self, call: Any) -> Listener:
        """The listener for the further events of a call."""
        return self

    def note_attempt(self, call: Any, attempt: Any) -> None: ...

    def note_payment(self, call: Any, posting: Any) -> None: ...

    def note_end(self, call: Any, outcome: object, sent: Any) -> None: ...

    def begin_tool(self, call: Any, description: str | None) -> EndTool:
        """Hear that a tool is about to run in this task. The function that it returns hears of the end."""
        return lambda error, content: None


class CallMemory(Listener):
    """Keeps the call of each result until `take` is asked for it."""

    reads_prompts = True

    def __init__(self) -> None:
        self._calls: OrderedDict[int, tuple[object, AskedCall]] = OrderedDict()
        """By the id of a result: the result, which keeps the id in use, and its call."""

    def note_lookup(self, call: Any, started: float, outcome: object) -> None:
        # A call that was cancelled has no result.
        if isinstance(outcome, BaseException) and not isinstance(outcome, LLMError):
            return
        request: Any = call.request
        inputs: Any = getattr(request, "messages", None) or getattr(request, "inputs", ())
        entry = AskedCall(
            operation=call.exchange.name,
            provider=call.target.provider,
            model=getattr(request, "model", call.target.model),
            messages=tuple(inputs),
            tag=call.tracks.tag,
            metadata=call.metadata,
        )
        self._calls[id(outcome)] = outcome, entry
        if len(self._calls) > _MOST_KEPT:
            self._calls.popitem(last=False)

    def note_end(self, call: Any, outcome: object, sent: Any) -> None:
        self.note_lookup(call, 0.0, outcome)

    def take(self, result: object) -> AskedCall | None:
        """The call of a result; None if it was refused before it began."""
        entry = self._calls.pop(id(result), None)
        return None if entry is None else entry[1]

    def join(self, rounds: Sequence[object], outcome: object) -> None:
        """Give the outcome of several rounds the call of the first round."""
        calls = [self.take(result) for result in rounds]
        if calls[0] is not None:
            self._calls[id(outcome)] = outcome, calls[0]


class Events:
    """Who listens to the calls of a client. `statistics` returns the state of its rate control."""

    def __init__(self, settings: Any, statistics: Callable[[], list[Any]]) -> None:
        self.listeners: tuple[Listener, ...] = ()
        """Those that listen to every call."""
        self.memory: CallMemory | None = None
        self._settings, self._statistics = settings, statistics
        self._observer: Any = None
        if settings.telemetry:
            self.listeners = (self.observer,)

    @property
    def observer(self) -> Any:
        """What gives events to the log, to spans and to metrics."""
        if self._observer is None:
            settings = self._settings
            self._observer = doors.observer.Observer(
                settings.telemetry, content=settings.log_content, statistics=self._statistics
            )
        return self._observer

    def find(self) -> tuple[Listener, ...]:
        """Who listens to a call that is made while the log is on, or OpenTelemetry's SDK is loaded."""
        logs = is_logging(logging.INFO)
        if (logs or self._settings.telemetry is not False) and self.observer not in self.listeners:
            if not self.observer.find_providers():
                return (*self.listeners, self.observer) if logs else self.listeners
            self.listeners += (self.observer,)
        return self.listeners

    def remember_calls(self) -> CallMemory:
        """Keep the call of each result from now on."""
        self.memory = CallMemory()
        self.listeners += (self.memory,)
        return self.memory

    def join_calls(self, rounds: Sequence[object], outcome: T) -> T:
        """The outcome of several rounds, whose call is the call of the first round."""
        if self.memory is not None:
            self.memory.join(rounds, outcome)
        return outcome


def tell_lookup(call: Any, started: float, outcome: T) -> T:
    """The outcome of a call that ended with the lookup, after its listeners heard of it."""
    for listener in call.listeners:
        listener.note_lookup(call, started, outcome)
    return outcome


async def tell_work(call: Any, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The result of a call that `work` sends, and that has listeners. It runs in the task of the call."""
    call.listeners = tuple([listener.begin(call) for listener in call.listeners])
    try:
        result = await work()
    except BaseException as error:
        _tell_end(call, error)
        raise
    _tell_end(call, result)
    return result


def _tell_end(call: Any, outcome: object) -> None:
    # After its deadline, a call counts what its error tells.
    sent = (call.sent.before_telling or call.sent).whole()
    for listener in call.listeners:
        listener.note_end(call, outcome, sent)
