"""Ctrl-C in a program: a traceback of the program's own lines, and at its end what the next run does.

`asyncio.run` cancels the program's task and raises a `KeyboardInterrupt` of its own. Python prints both, with
all frames of asyncio and of the package, and the notes of the cancellation between them.
"""

import signal
import sys
from types import TracebackType
from typing import TypeAlias

from .warning import is_internal

Trace: TypeAlias = TracebackType | None

_ended: list[BaseException] = []
"""The cancellations and interrupts of this Ctrl-C."""


def shorten_interrupt(end: BaseException, note: str = "") -> None:
    """If Ctrl-C is the reason of this end of a call, print it short if it ends the program, with a note."""
    runner = getattr(getattr(signal.getsignal(signal.SIGINT), "func", None), "__self__", None)
    if not isinstance(end, KeyboardInterrupt) and not getattr(runner, "_interrupt_count", 0):
        return
    if note:
        end.add_note(note)
    if not _ended:
        show = sys.excepthook

        def show_shortly(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            if isinstance(error, KeyboardInterrupt):
                cancelled, error.__suppress_context__ = error.__context__, True
                trace = _fold(trace, _fold(cancelled.__traceback__ if cancelled else None))
                notes = [note for each in _ended for note in getattr(each, "__notes__", ())]
                error.__notes__ = list(dict.fromkeys([*getattr(error, "__notes__", ()), *notes]))
            show(kind, error.with_traceback(trace), trace)

        sys.excepthook = show_shortly
    _ended.append(end)


def _fold(trace: Trace, rest: Trace = None) -> Trace:
    """The frames of the program in a traceback, and the rest behind them."""
    while trace is not None and is_internal(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    if trace is None:
        return rest
    trace.tb_next = _fold(trace.tb_next, rest)
    return trace
