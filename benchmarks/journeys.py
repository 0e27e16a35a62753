"""Which files a call goes through, how often it moves between them, and how often a call leads upward.

    python -m benchmarks.journeys            # every function that starts on each journey, as JSON

`PYTHONPATH=<checkout>/src` before it counts the library of another checkout.

A journey is what happens between a call of the user and its result, in all threads and in a warm process.
Functions of the library alone count, without the simulator, which is a process of its own. A list
comprehension is no function, because Python 3.12 makes none of it.

- *files*: files of which a function starts.
- *functions*: different functions that start.
- *moves*: starts in another file than the start before it in the same thread. To return, or to go on after
  `await`, is no move.
- *upward*: pairs of files of which the first calls the second, which `tools/layers.py` has in a higher layer.
  The caller is the nearest function of the library on the stack. A task of the event loop has no caller.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import llm_provider
from llm_provider.simulator import Simulator
from tools.layers import layer_of

from .hot_path import MODELS, run

BASELINE = Path(__file__).parent / "results" / "journeys.json"
PACKAGE = Path(llm_provider.__file__).parent
MODEL = MODELS["OpenAI"]
EMBEDDING_MODEL = "text-embedding-3-small"
WARM = 48
"""Calls before: the first ones open the eight databases of the cache, for reading and for writing."""

REPEATS = 5
FEW, MORE = 2, 6
SETTLE_SECONDS = 0.05
"""After the result, for what a thread of the library still writes."""

COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>")
EVENT_LOOP = os.path.join("asyncio", "events.py")  # noqa: PTH118 - compared with the names in code objects


class Start(NamedTuple):
    """One start of a function; `caller` is the file of the function that called it, or empty."""

    file: str
    function: str
    caller: str
    thread: int


class Limit(NamedTuple):
    """The goals of a journey."""

    files: int
    moves: int
    upward: int = 2


LIMITS = {
    "call": Limit(40, 95),
    "hit": Limit(20, 40),
    "call_many, one row": Limit(48, 140),
    "batch, one row": Limit(50, 230),
}


def measured(interpreter: str | Path = sys.executable) -> dict[str, list[Start]]:
    """Every start of each journey, in a new process; the one of five with the middle number of moves."""
    found = json.loads(run(interpreter, "-m", "benchmarks.journeys"))
    return {name: [Start(*start) for start in starts] for name, starts in found.items()}


def moves(starts: Iterable[Start]) -> list[tuple[str, Start]]:
    """The moves of a journey: the file that each leaves, and the start that it leads to.

    >>> starts = [Start("a.py", "f", "", 1), Start("b.py", "g", "a.py", 2), Start("b.py", "h", "a.py", 1)]
    >>> [(before, start.function) for before, start in moves([*starts, Start("b.py", "i", "b.py", 1)])]
    [('a.py', 'h')]
    """
    last: dict[int, str] = {}
    made = []
    for start in starts:
        before = last.get(start.thread, start.file)
        if before != start.file:
            made.append((before, start))
        last[start.thread] = start.file
    return made


def upward(starts: Iterable[Start]) -> Counter[tuple[str, str]]:
    """The upward calls of a journey: lower and higher file → the number of calls.

    >>> low, high = "_core.errors.py", "_core/client/client.py"
    >>> upward([Start(high, "f", low, 1), Start(low, "g", high, 1), Start(high, "f", "", 1)])
    Counter({('_core.errors.py', '_core/client/client.py'): 1})
    """
    return Counter(
        (start.caller, start.file)
        for start in starts
        if start.caller and layer_of(module_of(start.file)) > layer_of(module_of(start.caller))
    )


def module_of(file: str) -> str:
    """The dotted name of a file below the package.

    >>> [module_of(file) for file in ("_core/journey/call.py", "integrations/__init__.py", "__init__.py")]
    ['_core.journey.call', 'integrations', '']
    """
    return file.removesuffix(".py").replace("/", ".").removesuffix("__init__").removesuffix(".")


def count(starts: Sequence[Start]) -> dict[str, int]:
    """The four counts of a journey, and its upward calls."""
    up = upward(starts)
    return {
        "files": len({start.file for start in starts}),
        "functions": len({start[:2] for start in starts}),
        "moves": len(moves(starts)),
        "upward": len(up),
        "upward calls": up.total(),
    }


def grown(before: Mapping[str, Mapping[str, int]], now: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The counts that are higher than before, one line each.

    Other versions of an SDK or of Python may make a call a few moves longer, or enter one more file.

    >>> grown({"hit": {"files": 33, "moves": 68}}, {"hit": {"files": 34, "moves": 75}})
    ['hit: 75 moves, 68 before']
    """
    slack = {"files": (1.0, 1), "moves": (1.03, 3), "upward": (1.0, 0)}
    return [
        f"{journey}: {now[journey][name]} {name}, {counts[name]} before"
        for journey, counts in before.items()
        for name, (factor, more) in slack.items()
        if name in counts and now[journey][name] > counts[name] * factor + more
    ]


# --- the counting process --------------------------------------------------------------------------------


class Recorder:
    """Records the starts of functions, in this thread and in threads that start later."""

    def __init__(self) -> None:
        self._starts: list[Start] | None = None
        if sys.version_info >= (3, 12):
            monitoring = sys.monitoring
            monitoring.use_tool_id(monitoring.PROFILER_ID, "journeys")
            monitoring.register_callback(
                monitoring.PROFILER_ID,
                monitoring.events.PY_START,
                lambda code, _offset: self._note(code, sys._getframe(1)),  # noqa: SLF001 - the stack of the function
            )
            monitoring.set_events(monitoring.PROFILER_ID, monitoring.events.PY_START)
        else:
            threading.setprofile(self._profile)
            sys.setprofile(self._profile)

    def close(self) -> None:
        """Record nothing more."""
        if sys.version_info >= (3, 12):
            sys.monitoring.free_tool_id(sys.monitoring.PROFILER_ID)
        else:
            threading.setprofile(None)
            sys.setprofile(None)

    def record(self, work: Callable[[], object]) -> list[Start]:
        """The starts while work is done."""
        starts = self._starts = []
        work()
        time.sleep(SETTLE_SECONDS)
        self._starts = None
        return starts

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        # The same event says that a coroutine goes on. The argument of the instruction is 0 only at a start.
        if event == "call" and frame.f_code.co_code[frame.f_lasti + 1] == 0:
            self._note(frame.f_code, frame)

    def _note(self, code: CodeType, frame: FrameType) -> None:
        starts = self._starts
        if starts is not None and (file := file_of(code)) and code.co_name not in COMPREHENSIONS:
            starts.append(Start(file, code.co_qualname, _caller(frame), threading.get_ident()))


@cache
def file_of(code: CodeType) -> str:
    """The file of a function, relative to the package; empty outside of it and in the simulator."""
    path = Path(code.co_filename)
    if not path.is_relative_to(PACKAGE) or path.is_relative_to(PACKAGE / "simulator"):
        return ""
    return path.relative_to(PACKAGE).as_posix()


def _caller(frame: FrameType) -> str:
    outer = frame.f_back
    while outer is not None and not outer.f_code.co_filename.endswith(EVENT_LOOP):
        if file := file_of(outer.f_code):
            return file
        outer = outer.f_back
    return ""


def journeys() -> Iterator[tuple[str, Callable[[], object]]]:
    """Every journey by name; each asks something new, but for the hit."""
    numbers = itertools.count()

    def new(count: int = 1) -> list[str]:
        return [f"Question {next(numbers)}" for _ in range(count)]

    def many(rows: int, **more: Any) -> object:
        return llm_provider.call_many(MODEL, new(rows), progress=False, on_error="raise", **more)

    yield "call", lambda: llm_provider.call(MODEL, *new())
    yield "hit", lambda: llm_provider.call(MODEL, "Stored")
    yield "call_many, one row", lambda: many(1)
    yield f"call_many, {FEW} rows", lambda: many(FEW, max_concurrent=1)
    yield f"call_many, {MORE} rows", lambda: many(MORE, max_concurrent=1)
    yield "batch, one row", lambda: many(1, delivery="batch")
    yield "stream", lambda: list(llm_provider.stream(MODEL, *new()))
    yield "embed", lambda: llm_provider.embed(EMBEDDING_MODEL, new())


def main() -> None:
    recorder = Recorder()
    found = {}
    with Simulator(batch_seconds=0.0) as simulator, tempfile.TemporaryDirectory() as directory:
        os.environ.update(simulator.environment(), LLM_PROVIDER_CACHE_DIR=directory)
        for name, work in journeys():
            for _ in range(WARM if name == "call" else 2):
                work()
            readings = [recorder.record(work) for _ in range(REPEATS)]
            found[name] = sorted(readings, key=lambda starts: len(moves(starts)))[REPEATS // 2]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
