"""`Ledger`: what calls cost, to be printed, drawn, counted on, and taken along as a table."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .._errors import RequestError
from .._types import Usage
from .ledger_rows import LedgerRow, row_of
from .totals import Key, Sums, Totals, total

if TYPE_CHECKING:
    from decimal import Decimal

    import matplotlib.figure
    import pandas as pd
    import polars as pl


class Ledger:
    """What calls cost, by provider, model asked for, model served and tag.

    `client.usage`, `llm_provider.usage()` and `track` give one that goes on counting; `Ledger.read` one of
    what a file holds. It prints as a table, in a terminal and in a notebook. Amounts are exact USD, and only
    what is known is in them: what may have been billed besides is counted in `unknown`.

    >>> from llm_provider import Client
    >>> from llm_provider.simulator import Simulator
    >>> with Simulator() as simulator, Client() as client:
    ...     answers = client.call_many("gpt-6.1-sol", ["1+1?", "2+2?"], base_url=simulator.url("openai"))
    >>> client.usage.requests, client.usage.usage.output_tokens > 0, client.usage.unknown
    (2, True, 0)
    """

    __slots__ = ("_book",)

    def __init__(self, book: Totals) -> None:
        self._book = book

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Ledger:
        """The sums of a file that `Client(ledger=path)` has written, by however many processes.

        Lines that are not whole, such as the last one of a machine that lost its power, are left out; a
        `LedgerWarning` tells how many there are.

        Args:
            path: The file.

        Raises:
            OSError: it cannot be read.
        """
        from .ledger_file import postings

        book = Totals()
        for posting in postings(path):
            book.post(posting)
        return cls(book)

    @property
    def spent(self) -> Decimal:
        """USD for answers."""
        return self.total.spent

    @property
    def wasted(self) -> Decimal:
        """USD for requests that failed, of which the provider told what it billed."""
        return self.total.wasted

    @property
    def cost(self) -> Decimal:
        """USD for everything of which the cost is known: `spent` and `wasted`."""
        row = self.total
        return total((row.spent, row.wasted))

    @property
    def saved(self) -> Decimal:
        """USD that stored and shared answers would have cost, at today's prices."""
        return self.total.saved

    @property
    def requests(self) -> int:
        """Requests that were answered."""
        return self.total.requests

    @property
    def hits(self) -> int:
        """Answers that cost nothing: stored ones, and those of an equal call that was under way."""
        return self.total.hits

    @property
    def failed(self) -> int:
        """Requests that failed or were cancelled after they were sent and may have been billed."""
        return self.total.failed

    @property
    def unknown(self) -> int:
        """Requests of unknown cost: failed ones that may have been billed, and answers without a price."""
        return self.total.unknown

    @property
    def unknown_at_most(self) -> Decimal | None:
        """USD that the requests of unknown cost cannot exceed; None where there is no such bound."""
        return self.total.unknown_at_most

    @property
    def usage(self) -> Usage:
        """What was used by what was billed, all models together."""
        return self.total.usage

    def rows(self, *by: str) -> list[LedgerRow]:
        """The sums as rows, in the order of their names.

        Args:
            *by: Sum by these alone, of "provider", "model", "served" and "tag"; default by all of them.

        Raises:
            RequestError: a name that is none of these.
        """
        unknown = set(by) - set(Key._fields)
        if unknown:
            names = ", ".join(Key._fields)
            raise RequestError(f"rows can be summed by {names}, not by {', '.join(sorted(unknown))}")
        groups: dict[Key, list[Sums]] = {}
        for key, sums in self._book.rows():
            kept = Key(
                *(value if name in (by or Key._fields) else "" for name, value in key._asdict().items())
            )
            groups.setdefault(kept, []).append(sums)
        return [row_of(key, groups[key]) for key in sorted(groups)]

    def timeline(self) -> dict[str, list[tuple[int, Decimal]]]:
        """What each model cost over time: pairs of Unix seconds and USD for the stretch that begins there.

        Stretches are seconds at first, and longer the more time there is to remember.
        """
        return self._book.timeline()

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a pandas DataFrame, with USD as floats.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        from .ledger_views import to_pandas

        return to_pandas(self.rows(), self.total)

    def to_polars(self) -> pl.DataFrame:
        """The rows as a polars DataFrame, with USD as floats.

        Raises:
            MissingDependencyError: polars is not installed.
        """
        from .ledger_views import to_polars

        return to_polars(self.rows(), self.total)

    def to_jsonl(self, path: str | os.PathLike[str]) -> None:
        """Write the rows to a file of JSON lines, with USD as exact decimals in strings.

        Args:
            path: The file; one that is there is replaced.

        Raises:
            OSError: it cannot be written.
        """
        from .ledger_views import to_jsonl

        to_jsonl(self.rows(), path)

    def plot(self) -> matplotlib.figure.Figure:
        """A picture: USD over time by model, and tokens by class.

        Returns:
            A figure, which a notebook shows by itself; `figure.savefig("cost.png")` keeps it.

        Raises:
            MissingDependencyError: matplotlib is not installed; the extra `plot` has it.
        """
        from .ledger_plot import plot

        return plot(self.rows("model"), self.timeline())

    @property
    def total(self) -> LedgerRow:
        """All of it as one row, without names."""
        return row_of(Key("", "", "", ""), [sums for _, sums in self._book.rows()])

    def __iter__(self) -> Iterator[LedgerRow]:
        return iter(self.rows())

    def __str__(self) -> str:
        from .ledger_views import as_text

        return as_text(self.rows(), self.total)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from .ledger_views import as_html

        return as_html(self.rows(), self.total)
