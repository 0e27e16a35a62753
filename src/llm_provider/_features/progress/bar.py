"""The progress bar of a batch, on a terminal and in a notebook; elsewhere a line once a minute.

The bar of a job shows the provider's own counts and states, and the time that has passed.
"""

import contextlib
import importlib
import math
import os
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

from ..._core.batches.journal import Record
from ..._core.errors import LLMError
from ..._core.events.events import Waits, print_line
from ..._core.json_values import JSONObject
from ..._core.pace.scopes import ScopeStatistics
from ..._core.runtime import clock, threads
from ..._core.runtime.notebooks import in_jupyter, in_marimo, in_notebook
from ..._core.types.usage import Cost
from ..._core.words import format_clock_time, format_duration, format_usd

_RENEWED_EVERY = 0.1
"""Seconds between two updates of the text beside the bar. tqdm does not draw it more often."""
_REFRESHED_EVERY = 1.0
"""Seconds between two updates without a result, as while a provider refuses every request."""
_LINE_EVERY = 60.0
"""Seconds between two lines without a bar."""
_SHORT = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {rate_noinv_fmt}{postfix}]"
"""The line of a bar: tqdm's own has the unit in the rate too."""


class Sums:
    """The results of some calls: how many were cached or failed, and their cost in USD."""

    def __init__(self) -> None:
        self.cached = self.failed = 0
        self.cost = 0.0
        self.unknown = Cost()

    def add(self, result: Any) -> None:
        """Count one result: a `Response`, or the error of a call that failed."""
        if not isinstance(result, LLMError):
            self.cached += result.cached
        else:
            self.failed += 1
        if result.cost is None:
            self.unknown += Cost.of_result(result)
        else:
            self.cost += result.cost

    def describe(self) -> list[str]:
        """What is not 0, in a few words. USD are last, between two amounts where costs are unknown.

        >>> sums = Sums()
        >>> sums.cost, sums.cached, sums.unknown = 0.02286, 350, Cost(unknown=20, at_most=0.03283)
        >>> print(*sums.describe())
        cached=350 $0.023\N{EN DASH}0.056
        """
        cost = self.unknown + self.cost
        least, most = (format_usd(usd, digits=2) for usd in (cost, cost + (cost.at_most or 0.0)))
        if cost.unknown and cost.at_most is None:
            usd = f"≥{least}" if cost else "cost unknown"
        elif cost.unknown:
            usd = f"{least}\N{EN DASH}{most[1:]}" if cost else f"≤{most}"
        else:
            usd = str(cost)
        counts = {"failed": self.failed, "cached": self.cached}
        return [*(f"{name}={count}" for name, count in counts.items() if count), usd]


class Progress:
    """Counts finished calls and shows them with tqdm: done, cached, failed, cost in USD, rate control.

    With `show` None there is a bar on a terminal and in a notebook, and lines elsewhere. `limits` returns the
    present statistics of the scopes, and `waits` tells why calls wait. `models` are the names of several
    models, whose equal shares of the calls follow each other: each has a line below the line of all calls.
    """

    def __init__(
        self,
        total: int | None,
        show: bool | None,
        limits: Callable[[], Sequence[ScopeStatistics]],
        waits: Waits | None = None,
        models: Sequence[str] = (),
    ) -> None:
        self.sums = Sums()
        self._total, self._done = total, 0
        self._share = total // len(models) if total and len(models) > 1 else 0
        self._limits = limits
        self._waits = waits
        self._shows_waits = contextlib.ExitStack()
        has_bar = in_notebook() or StandardError().isatty() if show is None else show
        self._bar: Any = None
        with contextlib.suppress(OSError, ValueError):  # tqdm flushes standard error itself
            self._bar = _bar(total) if has_bar else None
        self._lines: list[tuple[Sums, Any]] = []
        # A notebook without widgets shows one bar at a time, as several need escapes that move the cursor.
        if self._bar is not None and self._share and not getattr(self._bar, "is_single", False):
            self._lines = [(Sums(), _bar(self._share, desc=f"  {model}")) for model in models]
        self._renewed = -math.inf
        self._ended = threading.Event()
        if self._bar is not None and waits is not None:
            self._shows_waits.enter_context(waits.in_bar())
        if self._bar is not None or show is None:
            threads.start_thread(self._stay_fresh, "llm_provider progress")

    def update(self, result: object, index: int = 0) -> None:
        """Count one result: a `Response`, or the error of a call that failed. Its index tells its model."""
        self.sums.add(result)
        self._done += 1
        if self._lines:
            sums, line = self._lines[index // self._share]
            sums.add(result)
            line.set_postfix_str(" ".join(sums.describe()), refresh=False)
            line.update()
        if self._bar is not None:
            now = clock.monotonic()
            if now - self._renewed >= _RENEWED_EVERY:
                self._renewed = now
                self._bar.set_postfix_str(self._describe(), refresh=False)
            self._bar.update()

    def _describe(self) -> str:
        words = self.sums.describe()
        if self._waits is not None and (wait := self._waits.current):
            # At the beginning, because a narrow terminal cuts the end off.
            words.insert(0, f"{wait};")
        return " ".join([*words, *describe(self._limits())])

    def _stay_fresh(self) -> None:
        if self._bar is None:
            while not self._ended.wait(_LINE_EVERY):
                whole = "" if self._total is None else f" of {self._total:,}"
                print_line(f"{self._done:,}{whole} calls: {self._describe()}")
            return
        while not self._ended.wait(_REFRESHED_EVERY):
            self._bar.set_postfix_str(self._describe())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._shows_waits.close()
        # The last line of the bar stays, and nothing waits any more.
        self._waits = None
        if self._bar is not None:
            self._bar.set_postfix_str(self._describe(), refresh=False)
            self._bar.close()
            for _, line in self._lines:
                line.close()


def describe(scopes: Sequence[ScopeStatistics]) -> list[str]:
    """The state of the rate control in a few words; empty if no request is under way.

    >>> from llm_provider import ScopeStatistics
    >>> names = dict(provider="openai", base_url=None, model="gpt-6.1-sol", key="1f", window=None, waiting=1)
    >>> describe([ScopeStatistics(**names, rate=9.8, in_flight=20, gated_for=2.0, refusals=3)])
    ['in_flight=20', 'limit=9.8/s', 'paused=2s', 'refused=3']
    >>> names |= dict(rate=None, in_flight=1, gated_for=0.0, refusals=0)
    >>> describe([ScopeStatistics(**names, down_for=61.0, next_try=8.2)])  # doctest: +ELLIPSIS
    ['in_flight=1', 'provider down since ...:...:..., next try in 8 s']
    """
    busy = [scope for scope in scopes if scope.in_flight or scope.waiting]
    if not busy:
        return []
    words = [f"in_flight={sum(scope.in_flight for scope in busy)}"]
    rates = [scope.rate for scope in busy if scope.rate is not None]
    if rates:
        words.append(f"limit={sum(rates):.3g}/s")
    paused = min(scope.gated_for for scope in busy)
    if paused >= 1:
        words.append(f"paused={paused:.0f}s")
    down = [scope for scope in busy if scope.down_for is not None]
    if down:
        since = format_clock_time(clock.time() - max(scope.down_for or 0.0 for scope in down))
        next_try = min(scope.next_try or 0.0 for scope in down)
        words.append(f"provider down since {since}, next try in {next_try:.0f} s")
    refusals = sum(scope.refusals for scope in busy)
    if refusals:
        words.append(f"refused={refusals}")
    return words


def _bar(total: int | None, desc: str | None = None) -> Any:
    # A terminal of 80 columns cuts the end off, so the rate is short.
    short = {"unit": "", "bar_format": _SHORT} if total else {"unit": "call"}
    options: JSONObject = {"total": total, "desc": desc, **short}
    _lock_for_threads()
    if in_jupyter():
        return jupyter_bar(**options)
    if in_marimo():
        return marimo_bar(**options)
    from tqdm import tqdm

    # On a terminal of unknown size, the bar would be empty.
    size = {} if _columns() else {"ncols": 100, "nrows": 24}
    return tqdm(dynamic_ncols=not size, file=StandardError(), **size, **options)


def _lock_for_threads() -> None:
    """Give tqdm a lock for threads, unless processes are forked or it has one.

    By itself it has one for processes too, which those that are forked share. Where they are not, as on
    Python 3.14, nobody shares it, and it starts a process that keeps standard error open.
    """
    from multiprocessing import get_all_start_methods

    from tqdm import tqdm

    if get_all_start_methods()[0] != "fork" and not hasattr(tqdm, "_lock"):
        tqdm.set_lock(threading.RLock())


class StandardError:
    """Standard error for a bar, which fails no batch: it may be absent, closed, or on a full disk."""

    def __init__(self) -> None:
        self._stream: Any = sys.stderr

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    # tqdm looks whether a line goes where its bar is.
    def __eq__(self, other: object) -> bool:
        return other is self._stream or other is self

    def __hash__(self) -> int:
        return hash(self._stream)

    def isatty(self) -> bool:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            return bool(self._stream.isatty())
        return False

    def write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._stream.write(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            self._stream.flush()


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError, AttributeError):
        return 0


def jupyter_bar(**options: Any) -> Any:
    """A bar of ipywidgets that becomes a line of text when it ends; without widgets, a line that is renewed.

    tqdm's own bar is saved as it was at first, "0%", and has no widgets in a notebook that is opened again.
    """
    display: Any = importlib.import_module("IPython.display")
    try:
        importlib.import_module("ipywidgets")
        kind: Any = importlib.import_module("tqdm.notebook").tqdm
    except ImportError:
        return _text_bar(display, options)

    class JupyterBar(kind):  # type: ignore[misc]  # tqdm has no types
        def __init__(self) -> None:
            super().__init__(display=False, **options)
            self._handle = display.DisplayHandle()
            self._handle.display(self.container)

        def close(self) -> None:
            if not self.disable:
                super().close()
                self._handle.update({"text/plain": _last_line(self)}, raw=True)
                for widget in (*self.container.children, self.container):
                    widget.close()

    return JupyterBar()


def _text_bar(display: Any, options: JSONObject) -> Any:
    """A bar of text in an output of its own, which is replaced as a whole and holds no escapes."""
    from tqdm import tqdm

    kind: Any = tqdm
    handle = display.DisplayHandle()
    handle.display({"text/plain": ""}, raw=True)

    class TextBar(kind):  # type: ignore[misc]  # tqdm has no types
        is_single = True

        def display(self, *_: object, **__: object) -> None:
            handle.update({"text/plain": str(self)}, raw=True)

        def clear(self, *_: object, **__: object) -> None:
            """Nothing is printed, so nothing has to be cleared."""

        def close(self) -> None:
            if not self.disable:
                super().close()
                handle.update({"text/plain": _last_line(self)}, raw=True)

    # tqdm prints nothing for a bar that has a display of its own.
    return TextBar(gui=True, ncols=100, **options)


def marimo_bar(**options: Any) -> Any:
    """A bar of marimo in the output of the cell, which leaves a line in its console; text without a total."""
    from tqdm import tqdm

    if not options.get("total"):
        return tqdm(**options)
    kind: Any = tqdm
    frame: Any = sys.modules["marimo"].status.progress_bar(total=options["total"], remove_on_exit=True)
    native = frame.__enter__()

    class MarimoBar(kind):  # type: ignore[misc]  # tqdm has no types
        drawn, is_single = 0, True

        def display(self, *_: object, **__: object) -> None:
            step, self.drawn = self.n - self.drawn, self.n
            # The thread that renews the text may do so at the moment when the bar ends.
            with contextlib.suppress(RuntimeError):
                native.update(step, title=self.desc or None, subtitle=self.postfix)

        def clear(self, *_: object, **__: object) -> None:
            """Nothing is printed, so nothing has to be cleared."""

        def close(self) -> None:
            if not self.disable:
                super().close()
                frame.__exit__(None, None, None)
                StandardError().write(f"{_last_line(self)}\n")

    # tqdm prints nothing for a bar that has a display of its own.
    return MarimoBar(gui=True, **options)


def _last_line(bar: Any) -> str:
    # Without a rate, tqdm writes the rate of the whole batch.
    return str(bar.format_meter(**{**bar.format_dict, "rate": None}))


class BatchProgress(Progress):
    """Shows rows that are done, also before any result can be read. `records` returns the job's batches."""

    def __init__(
        self,
        total: int | None,
        show: bool | None,
        records: Callable[[], Sequence[Record]],
        models: Sequence[str] = (),
    ) -> None:
        self._records = records
        self._begun = clock.monotonic()
        super().__init__(total, show, lambda: (), models=models)

    def _describe(self) -> str:
        records = self._records()
        words = [super()._describe()]
        under_way = [record for record in records if record.is_open]
        if under_way:
            done = sum(record.counts[0] + record.counts[1] for record in under_way)
            rows = sum(len(record.rows) for record in under_way)
            words.append(f"{describe_records(under_way)}, {done:,} of {rows:,} rows done")
        words.append(f"{format_duration(clock.monotonic() - self._begun)} elapsed")
        return ", ".join(words)


def describe_records(records: Sequence[Record]) -> str:
    """The providers and the states of some batches in a few words."""
    names = [f"{record.header.provider if record.header else 'batch'} {record.state}" for record in records]
    counts = {name: names.count(name) for name in names}
    return ", ".join(name if count == 1 else f"{count} of {name}" for name, count in counts.items())
