"""`Ledger`: the cost of calls as users read it, and `track`, which sums the calls inside a `with` block."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .. import doors
from ..errors import RequestError
from ..hints import Hinting
from ..runtime.exact_decimal import total
from ..runtime.imports import import_optional
from ..types.usage import Usage
from .totals import Key, LedgerRow, RowSums, Totals, Tracks, find_tracks, main_thread, open_tracks, row_of

if TYPE_CHECKING:
    from decimal import Decimal

    import matplotlib.figure
    import pandas as pd
    import polars as pl


class Ledger(Hinting):
    """The cost of calls by provider, model asked for, model served, tag and delivery.

    `client.usage`, `llm_provider.usage()` and `track` return a ledger that goes on counting. `Ledger.read`
    returns the sums of a file. A ledger prints as a table, in a terminal and in a notebook. Amounts are exact
    USD and contain known costs only; `unknown` counts the requests of unknown cost.

    >>> from llm_provider import Client
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator, Client() as client:
    ...     answers = client.call_many("gpt-6.1-sol", ["1+1?", "2+2?"], base_url=simulator.url("openai"))
    >>> client.usage.requests, client.usage.usage.output_tokens > 0, client.usage.unknown
    (2, True, 0)
    """

    __slots__ = ("_totals",)

    def __init__(self, totals: Totals) -> None:
        self._totals = totals

    @classmethod
    def read(cls, *paths: str | os.PathLike[str]) -> Ledger:
        """The sums of files that one or more processes have written with `Client(ledger=path)`.

        Invalid lines, such as a piece of a line after a power cut, are left out. A `LedgerWarning` gives
        their number.

        Args:
            *paths: The files, for example one of each worker of a cluster. A file that is given twice
                counts once.

        Raises:
            OSError: a file cannot be read.
            TypeError: no file is given.
        """
        from .ledger_file import read_postings

        if not paths:
            raise TypeError("Ledger.read() needs the path of a file")
        from pathlib import Path

        totals = Totals()
        for path in dict.fromkeys(Path(path).expanduser().resolve() for path in paths):
            for posting in read_postings(path):
                totals.post(posting)
        return cls(totals)

    @property
    def spent(self) -> Decimal:
        """USD for answers."""
        return self.total.spent

    @property
    def wasted(self) -> Decimal:
        """USD for failed requests whose usage the provider reported."""
        return self.total.wasted

    @property
    def cost(self) -> Decimal:
        """USD for all requests of known cost: `spent` and `wasted` together."""
        row = self.total
        return total((row.spent, row.wasted))

    @property
    def saved(self) -> Decimal:
        """USD that the hits would have cost, at today's prices."""
        return self.total.saved

    @property
    def requests(self) -> int:
        """Requests that were answered."""
        return self.total.requests

    @property
    def hits(self) -> int:
        """Answers that cost nothing: stored answers, and answers shared with an equal call under way."""
        return self.total.hits

    @property
    def failed(self) -> int:
        """Requests that failed or were cancelled after they were sent and may have been billed."""
        return self.total.failed

    @property
    def unknown(self) -> int:
        """Requests of unknown cost: answers without a price, and failures that may have been billed."""
        return self.total.unknown

    @property
    def unknown_at_most(self) -> Decimal | None:
        """USD that the requests of unknown cost cannot exceed; None where there is no such bound."""
        return self.total.unknown_at_most

    @property
    def usage(self) -> Usage:
        """The usage of everything that was billed, all models together."""
        return self.total.usage

    def rows(self, *by: str) -> list[LedgerRow]:
        """The sums as rows, sorted by their names.

        Args:
            *by: The names to sum by, of "provider", "model", "served", "tag" and "delivery"; default
                all of them.

        Raises:
            RequestError: a name is none of these.
        """
        unknown = set(by) - set(Key._fields)
        if unknown:
            names = ", ".join(Key._fields)
            raise RequestError(f"rows can be summed by {names}, not by {', '.join(sorted(unknown))}")
        groups: dict[Key, list[RowSums]] = {}
        for key, sums in self._totals.rows():
            kept = (value if name in (by or Key._fields) else "" for name, value in key._asdict().items())
            groups.setdefault(Key(*kept), []).append(sums)
        return [row_of(key, groups[key]) for key in sorted(groups)]

    def timeline(self) -> dict[str, list[tuple[int, Decimal]]]:
        """The cost of each model over time: pairs of Unix seconds and USD for the interval that begins there.

        Intervals are one second long at first, and double as the time that they have to cover grows.
        """
        return self._totals.timeline()

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame, with USD as floats.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        pandas = import_optional("pandas", "pip install pandas")
        frame: pd.DataFrame = pandas.DataFrame(doors.ledger_views.make_columns(self.rows(), self.total))
        return frame

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars DataFrame, with USD as floats.

        Raises:
            MissingDependencyError: polars is not installed.
        """
        polars = import_optional("polars", "pip install polars")
        frame: pl.DataFrame = polars.DataFrame(doors.ledger_views.make_columns(self.rows(), self.total))
        return frame

    def to_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a file of JSON lines, with USD as exact decimals in strings.

        Args:
            path: The file; an existing file is replaced.

        Raises:
            OSError: the file cannot be written.
        """
        doors.ledger_views.write_jsonl(self.rows(), path)

    def plot(self) -> matplotlib.figure.Figure:
        """A figure with USD over time, USD and tokens by model and class, each if there are any.

        Returns:
            A figure, which a notebook shows by itself; `figure.savefig("cost.png")` writes it to a file.

        Raises:
            MissingDependencyError: matplotlib is not installed; the extra `plot` installs it.
        """
        figure: matplotlib.figure.Figure = doors.pictures.plot_ledger(self.rows("model"), self.timeline())
        return figure

    @property
    def total(self) -> LedgerRow:
        """The sum of all rows as one row, without names."""
        return row_of(Key("", "", "", "", ""), [sums for _, sums in self._totals.rows()])

    def __iter__(self) -> Iterator[LedgerRow]:
        return iter(self.rows())

    def __repr__(self) -> str:
        return doors.ledger_views.format_text(self.rows(), self.total)

    def _repr_html_(self) -> str:
        return doors.ledger_views.format_html(self.rows(), self.total)


@contextlib.contextmanager
def track(name: str = "") -> Iterator[Ledger]:
    """Sum the cost of all calls that are made inside a `with` block, by any client.

    Calls of the block itself count, of the tasks that it starts, and of its batches and streams. If the block
    runs in the main thread, calls of threads without a track of their own count too. Another thread counts if
    it is started with a copy of the context (`contextvars.copy_context().run`). Blocks can be nested: each
    has its own sums, and calls of an inner block count in the outer one too. A request that is still under
    way when the block ends counts when the request ends.

    Args:
        name: The tag of the block's rows. Inside another track, that track's tag and a slash precede it.

    Yields:
        The sums, which grow while the block runs and can be read at any time.

    Raises:
        TypeError: the name is not a str.
        ValueError: the name contains half a surrogate pair, which cannot be written to a file.

    >>> from llm_provider import call
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator, track("addition") as sums:
    ...     answer = call("gpt-6.1-sol", "What is 2+3?", base_url=simulator.url("openai"))
    >>> sums.requests, float(sums.spent) == answer.cost, sums.rows()[0].tag
    (1, True, 'addition')
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a track must be a str, not {type(name).__name__}: write 'evaluation'")
    name.encode()
    outer, totals = find_tracks(), Totals()
    tracks = Tracks("/".join(filter(None, (outer.tag, name))), (*outer.totals, totals))
    token = open_tracks.set(tracks)
    in_main = threading.current_thread() is threading.main_thread()
    if in_main:
        main_thread.enter(tracks)
    try:
        yield Ledger(totals)
    finally:
        if in_main:
            main_thread.leave(tracks)
        with contextlib.suppress(ValueError):  # left in another context, as by a test's fixture
            open_tracks.reset(token)
