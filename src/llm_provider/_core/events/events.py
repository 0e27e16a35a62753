"""The events of a call, and who listens to them.

| event | when | it has |
|---|---|---|
| `note_lookup` | the cache has answered a call, or it must not be sent | its result or error |
| `begin` | a call is about to be sent, in the task that sends it | |
| `note_attempt` | a request has ended | its `Sending` |
| `note_payment` | a request was billed, or may have been | the `Posting` of the ledger |
| `note_end` | a call that began has ended | its result or exception, and its requests |

The log, spans and metrics are a feature. It is loaded once the log is on, or OpenTelemetry is configured. A
call has its listeners only if something is on when the call is made.

Waits of more than a second are told once for all calls of a scope that wait for one reason. `reason` says in
a few words of our own why a request failed: the words of providers and SDKs may quote the prompt.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, TypeVar

from .. import doors, errors
from ..errors import LLMError
from ..runtime import clock
from ..runtime.json_pieces import LARGE
from ..types.usage import ServedBy
from ..words import escape_controls, format_duration

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
        if self._observer in self.listeners:
            return self.listeners
        logs = is_logging(logging.INFO)
        if logs or self._settings.telemetry is not False:
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
    sent = (call.sent.reported or call.sent).including_parts()
    for listener in call.listeners:
        listener.note_end(call, outcome, sent)


ROOT = logging.getLogger("llm_provider")
WAITS = logging.getLogger("llm_provider.waits")

# Without a handler, `logging` would print warnings to standard error, where `Waits` tells them too.
ROOT.addHandler(logging.NullHandler())

LEAST_SECONDS = 1.0
"""Shorter waits are not told."""

_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0
"""Seconds between two lines about the same scope and reason: at first, and after several of them."""

_SHOWN_SECONDS = 2.0
"""Seconds for which a progress bar shows a wait whose length is not known. A longer one is told again."""

Kind: TypeAlias = Literal["retry", "down", "pause", "rate", "full", "budget", "elsewhere"]
"""Why a call waits: for its next request, for a provider that is down, for the end of a pause after refusals,
for its turn within the rate or among the requests in flight, for a budget, or for another process."""

_OF_PROVIDER = ("retry", "down", "pause", "rate")

_QUIET = logging.DEBUG
"""The level of waits that are no news: as many requests are in flight as the user allows."""


@dataclass(slots=True)
class _LastLine:
    """The last line about a scope and a kind of wait."""

    until: float
    """Until then, nothing more is told."""
    pause: float
    attempt: int
    untold: int = 0
    """Retries that no line has told."""


class Waits:
    """Tells the waits of one client in any thread: to the log, and with `show` where the user looks."""

    def __init__(self, *, show: bool) -> None:
        self._show = show
        self._last: dict[tuple[str, str], _LastLine] = {}
        self._lock = threading.Lock()
        self._bars = 0
        self._current: tuple[float, str] = (-math.inf, "")

    def tell(self, scope: str, kind: Kind, text: str, *, seconds: float = 0.0, attempt: int = 0) -> None:
        """Tell a wait of some seconds, unless the same, or a later `attempt`, was told a moment ago."""
        now = clock.monotonic()
        end = now + (seconds or _SHOWN_SECONDS)
        # The same limit of the provider causes all of these.
        group = scope, "provider" if kind in _OF_PROVIDER else kind
        level = _QUIET if kind == "full" else logging.WARNING
        with self._lock:
            if kind != "full":
                self._current = end, text
            last, line, pause = self._last.get(group), f"{scope}: {text}", _FIRST_PAUSE
            if last is not None:
                if now < last.until and attempt <= last.attempt:
                    last.untold += kind == "retry"
                    return
                if now < last.until + _LONGEST_PAUSE:
                    pause = min(2 * last.pause, _LONGEST_PAUSE)
                if last.untold:
                    line += f" ({last.untold} more retries since the last line)"
            self._last[group] = _LastLine(max(now + pause, end + LEAST_SECONDS), pause, attempt)
            prints = self._show and not self._bars and level > _QUIET
        if is_configured(WAITS) and WAITS.isEnabledFor(level):
            WAITS.log(level, "%s", line)
        elif prints:
            print_line(line)

    def tell_retry(self, scope: str, seconds: float, why: str, attempt: int, waiting: int) -> None:
        """Tell that a failed attempt is repeated in some seconds, while so many other calls wait."""
        others = f"; {count_calls(waiting, ' more')}" if waiting else ""
        # Without decimals where they tell nothing.
        wait = format_duration(seconds) if seconds < 2 or seconds >= 59.5 else f"{seconds:.0f} s"
        text = f"retrying in {wait}: {why}, attempt {attempt}{others}"
        self.tell(scope, "retry", text, seconds=seconds, attempt=attempt)

    @contextlib.contextmanager
    def during(self, scope: str, kind: Kind, text: str) -> Iterator[None]:
        """Tell a wait if the block takes more than a second. It runs on an event loop."""
        # A script whose answers are all stored needs no event loop.
        import asyncio

        timer = asyncio.get_running_loop().call_later(LEAST_SECONDS, lambda: self.tell(scope, kind, text))
        try:
            yield
        finally:
            timer.cancel()

    @property
    def current(self) -> str:
        """The present wait, for the progress bar; empty if there is none."""
        end, text = self._current
        return text if self._show and clock.monotonic() < end else ""

    @contextlib.contextmanager
    def in_bar(self) -> Iterator[None]:
        """Show waits in a progress bar, and not as lines, within the block."""
        with self._lock:
            self._bars += 1
        try:
            yield
        finally:
            with self._lock:
                self._bars -= 1


def count_calls(waiting: int, more: str = "") -> str:
    """How many calls wait.

    >>> count_calls(1), count_calls(37, " more")
    ('1 call waits', '37 more calls wait')
    """
    return f"{waiting}{more} {'call waits' if waiting == 1 else 'calls wait'}"


def print_line(line: str) -> None:
    # Standard error may be closed, or absent. A line is not worth a failed call.
    with contextlib.suppress(Exception):
        sys.stderr.write(f"llm_provider: {escape_controls(line)}\n")
        sys.stderr.flush()


def is_configured(logger: logging.Logger) -> bool:
    """Whether a handler of the program gets the records of a logger."""
    here: logging.Logger | None = logger
    while here is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in here.handlers):
            return True
        here = here.parent if here.propagate else None
    return False


_WORDS = MappingProxyType({
    errors.RateLimitError: "rate limited",
    errors.OverloadedError: "overloaded",
    errors.QuotaExceededError: "no quota left",
    errors.InternalServerError: "server error",
    errors.APIResponseValidationError: "invalid answer",
})  # fmt: skip

_NUMBERS = MappingProxyType({name: number for number, name in errno.errorcode.items()})


def reason(error: BaseException) -> str:
    if isinstance(error, errors.APIConnectionError):
        return _of_connection(error)
    if isinstance(error, errors.APITimeoutError):
        limit = "" if error.limit is None else f" of {error.limit:g} s"
        return f"timeout{limit}{'' if error.phase is None else f' ({error.phase})'}"
    words = next((words for kind, words in _WORDS.items() if isinstance(error, kind)), type(error).__name__)
    status = error.status if isinstance(error, errors.LLMError) else None
    return words if status is None else f"{words} (HTTP {status})"


def _of_connection(error: errors.ProviderError) -> str:
    number = _NUMBERS.get(error.code or "")
    if number is not None:
        return os.strerror(number).lower()
    if error.code == "ENOTFOUND":
        return "name not resolved"
    return "connection broke" if error.maybe_billed else "no connection"


def find_served_by(outcome: object, answered: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """The fields of `served_by` of an answer; empty for an error.

    `answered` has who answered each request. Else the reply is read, unless it is too large for the loop.
    """
    if len(answered) == len(getattr(outcome, "choices", ())) == 1:
        return answered[0]
    large = len(getattr(outcome, "body", b"")) >= LARGE
    served_by: ServedBy | None = None if large else getattr(outcome, "served_by", None)
    return {} if served_by is None else served_by.to_dict()
