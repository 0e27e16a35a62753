"""What an interrupted batch leaves: how many of its calls have stored answers, and what the next run does."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..errors import LLMError
from ..journey.call import Call
from ..journey.engine import WRITING, Engine
from ..runtime import event_loop

COUNTING_SECONDS = 2.0
"""Longest time for looking up inputs after an interrupt. A hundred thousand inputs take some ten seconds."""

_SETTLING_SECONDS = 0.02
"""Turns of the loop in which cancelled calls end. After these, nothing new is stored."""


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """Says which calls of a batch have a stored answer, without counting hits."""

    engine: Engine
    cache: object
    """The mode of the cache."""
    prepare: Callable[[Any], Call[Any]] | None = None
    """The call of an input; None for calls of several rounds, where entries do not tell the last one."""

    def settle(self) -> None:
        """Wait until cancelled calls have ended and their answers are written."""
        with contextlib.suppress(RuntimeError, TimeoutError):  # the loop is closed, or too busy
            loop = event_loop.current().loop
            asyncio.run_coroutine_threadsafe(asyncio.sleep(_SETTLING_SECONDS), loop).result(COUNTING_SECONDS)
        self.engine.cache.flush()

    def count_parts(self, call: Call[Any]) -> int:
        """How many samples or texts of a call are stored."""
        return sum(self.engine.cache.peek(call.key(part)) is not None for part in call.parts)

    def has(self, call_or_input: Any) -> bool:
        """Whether a call, or the call of an input, would be answered from the local store."""
        call = call_or_input
        try:
            if not isinstance(call, Call) and self.prepare is not None:
                call = self.prepare(call)
        except LLMError:
            return False
        return any(self.count_parts(each) == len(each.parts) for each in call.candidates)

    def describe_rest(self) -> str:
        """What the same call does after an interrupt."""
        if self.cache in ("off", False):
            return "the same call asks all of them, as cache='off' stores nothing"
        if self.cache == "refresh":
            return "the same call asks all of them again, and with cache='use' only the rest"
        return "the same call asks the rest and takes the answers from the cache"


def note_parts(engine: Engine, call: Call[Any], interrupt: KeyboardInterrupt) -> None:
    """Add to the interrupt of a call with several samples or texts how many of them are stored."""
    stored = StoredAnswers(engine, call.cache)
    stored.settle()
    if call.cache in WRITING and call.relay is None:
        answered, parts = stored.count_parts(call), len(call.parts)
        interrupt.add_note(describe_interrupt(answered, parts, "parts are answered", stored.describe_rest()))


def describe_interrupt(
    answered: int, total: int | None, where: str, rest: str, *, is_exact: bool = True
) -> str:
    """What an interrupted batch leaves, for scripts and for the command line.

    >>> describe_interrupt(11, 12, "rows are answered in out.jsonl", "the same command asks the rest")
    '11 of 12 rows are answered in out.jsonl; the same command asks the rest'
    """
    least = "" if is_exact else "at least "
    return f"{least}{answered:,}{'' if total is None else f' of {total:,}'} {where}; {rest}"
