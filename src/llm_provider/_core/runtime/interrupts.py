"""Ctrl-C in a program: a traceback of the program's own lines, and at its end what the next run does.

`asyncio.run` cancels the program's task and raises a `KeyboardInterrupt` of its own. Python prints both, with
all frames of asyncio and of the package, and the notes of the cancellation between them.
"""

import signal
import sys
from types import TracebackType as Trace

from .. import doors
from .notebooks import in_jupyter
from .warning import is_internal

_notes: dict[int, dict[str, None]] = {}
"""The notes of cancelled calls, by the run of `asyncio.run` that Ctrl-C has ended last."""
_show = sys.excepthook


def shorten_interrupt(end: BaseException, note: str = "") -> None:
    """If Ctrl-C is the reason of this end of a call, print it short if it ends the program, with a note."""
    global _show  # what Python calls has no other place
    if in_jupyter():
        # IPython asks an error for its own lines.
        vars(end)["_render_traceback_"] = lambda: doors.client_view.render_traceback(end)
    runner = getattr(getattr(signal.getsignal(signal.SIGINT), "func", None), "__self__", None)
    if not isinstance(end, KeyboardInterrupt):
        if not getattr(runner, "_interrupt_count", 0):
            return
        if id(runner) not in _notes:
            _notes.clear()
        notes = _notes.setdefault(id(runner), {})
        notes |= dict.fromkeys([*getattr(end, "__notes__", ()), *[note] * bool(note)])
    if sys.excepthook is not _show_shortly:
        _show, sys.excepthook = sys.excepthook, _show_shortly


def _show_shortly(kind: type[BaseException], error: BaseException, trace: Trace | None) -> None:
    cancelled = error.__context__
    if isinstance(error, KeyboardInterrupt):
        if cancelled is not None and type(cancelled).__name__ == "CancelledError":
            error.__suppress_context__ = True
            error.__notes__ = [note for notes in _notes.values() for note in notes]
            trace = _fold(trace, _fold(cancelled.__traceback__))
        trace = _fold(trace)
    _show(kind, error.with_traceback(trace), trace)


def _fold(trace: Trace | None, rest: Trace | None = None) -> Trace | None:
    """The frames of the program in a traceback, and the rest behind them."""
    while trace is not None and is_internal(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    if trace is None:
        return rest
    trace.tb_next = _fold(trace.tb_next, rest)
    return trace
