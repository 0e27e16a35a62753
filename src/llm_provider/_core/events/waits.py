"""Tells why calls wait for more than a second, once for all calls of a scope that wait for one reason.

`reason` says in a few words of our own why a request failed: the words of providers and SDKs may quote the
prompt.
"""

import contextlib
import errno
import logging
import math
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from .. import errors
from ..runtime import clock
from ..words import escape_controls, format_duration

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
