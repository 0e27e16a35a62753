"""The books: what calls cost, summed as they end, exactly and in bounded memory.

A `Posting` is one event that may have cost money: an answered request, an answer that cost nothing, or a
request that failed and may have been billed. A `Book` keeps sums of them, never the postings themselves.
`_ledger` shows a book to users, `_ledger_file` keeps postings on disk, `_accounts` makes them of calls.
"""

from __future__ import annotations

import bisect
import contextlib
import functools
import operator
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from .._types import Usage
from .pricing import PriceTable, PriceWarning

if TYPE_CHECKING:
    from decimal import Context, Decimal

PostingKind: TypeAlias = Literal["answered", "hit", "failed"]
OUTCOMES = ("answered", "hit", "failed")

COUNTS = tuple(entry.name for entry in fields(Usage))
"""What a usage counts."""

_counts = operator.attrgetter(*COUNTS)
_INPUT = COUNTS.index("input_tokens")

OTHER_TAGS = "(other tags)"
"""The tag of what is summed together once a book has many rows."""

_MOST_ROWS = 10_000
_MOST_ASIDE = 256
"""Postings that are put aside before somebody adds them up, which takes about a microsecond for each."""

_MOST_BUCKETS = 512


@functools.cache
def exact() -> Context:
    """Arithmetic that rounds nothing here, whatever the caller's own context does.

    >>> from decimal import Decimal
    >>> exact().add(Decimal("1e9"), Decimal("1e-30"))
    Decimal('1000000000.000000000000000000000000000001')
    """
    from decimal import Context

    return Context(prec=100)


def total(amounts: Iterable[Decimal | int]) -> Decimal:
    """The exact sum of USD.

    >>> from decimal import Decimal
    >>> total([Decimal("0.1")] * 3)
    Decimal('0.3')
    """
    from decimal import Decimal

    return functools.reduce(exact().add, amounts, Decimal(0))


class Key(NamedTuple):
    """What postings are summed by."""

    provider: str
    model: str
    """As asked for, without the provider's prefix."""
    served: str
    """As the provider named it; as asked for where it named none."""
    tag: str


class Posting(NamedTuple):
    """One event that may have cost money."""

    time: float
    """Unix seconds."""
    outcome: PostingKind
    key: Key
    usd: Decimal | None
    """What an answer or a failure cost, or what a hit would have; None where that is not known."""
    usage: Usage | None = None
    at_most: Decimal | None = None
    """Where the cost is not known: USD that it cannot exceed, if that is known."""


# Told apart by identity, which takes no time: two that are equal are only summed one after the other.
@dataclass(frozen=True, slots=True, eq=False)
class HitKind:
    """What answers that cost nothing share, if they would have cost at the same prices."""

    key: Key
    prices: Callable[[], PriceTable]
    priced: tuple[str, str]
    """Provider and model under which `prices.csv` lists them."""
    variant: str

    def saved(self, usage: Usage | None) -> Decimal | None:
        """USD that one would have cost, at today's prices; None where that, or its usage, is not known."""
        return None if usage is None else _price(self, usage)


@dataclass(slots=True)
class Sums:
    """What a row adds up to; USD are exact."""

    requests: int = 0
    hits: int = 0
    failed: int = 0
    unknown: int = 0
    spent: Decimal | int = 0
    wasted: Decimal | int = 0
    saved: Decimal | int = 0
    at_most: Decimal | int | None = 0
    counts: list[int] = field(default_factory=lambda: [0] * len(COUNTS))
    """What was used, in the order of `COUNTS`: a `Usage` takes ten times as long to add."""

    @property
    def usage(self) -> Usage:
        """What was used by what was billed."""
        return _usage(self.counts)

    def add(self, posting: Posting) -> None:
        """Add an event to the row."""
        outcome, usd = posting.outcome, posting.usd
        if outcome == "hit":
            self.hits += 1
            self.saved = exact().add(self.saved, usd or 0)
            return
        if outcome == "answered":
            self.requests += 1
        else:
            self.failed += 1
        if posting.usage is not None:
            self.counts = list(map(operator.add, self.counts, _counts(posting.usage)))
        if usd is None:
            self.unknown += 1
            if self.at_most is None or posting.at_most is None:
                self.at_most = None
            else:
                self.at_most = exact().add(self.at_most, posting.at_most)
        elif outcome == "answered":
            self.spent = exact().add(self.spent, usd)
        else:
            self.wasted = exact().add(self.wasted, usd)


class Timeline:
    """USD over time by model, in at most so many stretches of time; the longer the time, the longer they are.

    >>> from decimal import Decimal
    >>> timeline = Timeline(most=2)
    >>> for second in range(8):
    ...     timeline.add(1000 + second, "gpt-5.5", Decimal(1))
    >>> timeline.width, timeline.series()
    (4, {'gpt-5.5': [(1000, Decimal('4')), (1004, Decimal('4'))]})
    """

    __slots__ = ("_buckets", "_most", "width")

    def __init__(self, most: int = _MOST_BUCKETS) -> None:
        self._most = most
        self._buckets: dict[int, dict[str, Decimal]] = {}
        self.width = 1
        """Seconds of a stretch."""

    def add(self, moment: float, model: str, usd: Decimal) -> None:
        """Add what was spent at a moment, in Unix seconds."""
        self._put(int(moment // self.width), model, usd)
        while len(self._buckets) > self._most:
            buckets, self._buckets = self._buckets, {}
            self.width *= 2
            for number, by_model in buckets.items():
                for name, amount in by_model.items():
                    self._put(number // 2, name, amount)

    def _put(self, number: int, model: str, usd: Decimal) -> None:
        by_model = self._buckets.setdefault(number, {})
        by_model[model] = exact().add(by_model.get(model, 0), usd)

    def series(self) -> dict[str, list[tuple[int, Decimal]]]:
        """For each model the stretches in which it cost something: begin (Unix seconds) and USD."""
        found: dict[str, list[tuple[int, Decimal]]] = {}
        for number in sorted(self._buckets):
            for model, amount in self._buckets[number].items():
                found.setdefault(model, []).append((number * self.width, amount))
        return found


class Totals:
    """Sums of postings by provider, model asked, model served and tag. Safe to share between threads.

    Postings are put aside as they come and added up some at a time: by whoever brings one too many, or wants
    to see the sums. A forked child's books begin at zero: what its parent has counted stays with the parent.

    >>> from decimal import Decimal
    >>> book = Totals()
    >>> book.post(Posting(0.0, "answered", Key("openai", "gpt-5.5", "gpt-5.5", ""), Decimal("0.25")))
    >>> [(key.model, sums.spent) for key, sums in book.rows()]
    [('gpt-5.5', Decimal('0.25'))]
    """

    __slots__ = ("__weakref__", "_adding", "_aside", "_hits", "_rows", "_timeline")

    def __init__(self) -> None:
        self.clear()
        _books.add(self)

    def clear(self) -> None:
        """Begin at zero."""
        # A signal's handler may look into the book that its own thread is writing.
        self._adding = threading.RLock()
        self._aside: deque[Posting] = deque()
        self._hits: deque[tuple[HitKind, Usage | None]] = deque()
        self._rows: dict[Key, Sums] = {}
        self._timeline = Timeline()

    def post(self, posting: Posting) -> None:
        """Add an event."""
        self._aside.append(posting)
        if len(self._aside) >= _MOST_ASIDE:
            self._add_unless_others_do()

    def hit(self, kind: HitKind, usage: Usage | None) -> None:
        """Add an answer that cost nothing; without its usage nobody knows what it saved."""
        self._hits.append((kind, usage))
        if len(self._hits) >= _MOST_ASIDE:
            self._add_unless_others_do()

    def rows(self) -> list[tuple[Key, Sums]]:
        """A copy of every row."""
        with self._adding:
            self._add_up()
            return [(key, replace(sums)) for key, sums in self._rows.items()]

    def timeline(self) -> dict[str, list[tuple[int, Decimal]]]:
        """See `Timeline.series`."""
        with self._adding:
            self._add_up()
            return self._timeline.series()

    def _add_unless_others_do(self) -> None:
        if self._adding.acquire(blocking=False):
            try:
                self._add_up()
            finally:
                self._adding.release()

    def _add_up(self) -> None:
        # No more than there are now: others may bring events as fast as they are added.
        for _ in range(len(self._aside)):
            posting = self._aside.popleft()
            self._row(posting.key).add(posting)
            if posting.usd and posting.outcome != "hit":
                self._timeline.add(posting.time, posting.key.model, posting.usd)
        hits: dict[HitKind, list[Usage | None]] = {}
        for _ in range(len(self._hits)):
            kind, usage = self._hits.popleft()
            hits.setdefault(kind, []).append(usage)
        for kind, usages in hits.items():
            row = self._row(kind.key)
            row.hits += len(usages)
            row.saved = exact().add(row.saved, _saved(kind, [usage for usage in usages if usage is not None]))

    def _row(self, key: Key) -> Sums:
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= _MOST_ROWS:
                key = key._replace(tag=OTHER_TAGS)
            row = self._rows.setdefault(key, Sums())
        return row


def _saved(kind: HitKind, usages: list[Usage]) -> Decimal:
    """USD that hits of one kind would have cost, as far as it is known.

    Prices are the same for all prompts of a tier, and what many used together is priced as fast as one.
    """
    tiers = kind.prices().tiers(*kind.priced)
    groups: dict[int, list[tuple[int, ...]]] = {}
    for counts in map(_counts, usages):
        groups.setdefault(bisect.bisect(tiers, counts[_INPUT]), []).append(counts)
    found: list[Decimal | None] = []
    for group in groups.values():
        together = _price(
            kind, _usage(map(sum, zip(*group, strict=True))), prompt=group[0][_INPUT], requests=len(group)
        )
        # One of them without a price leaves the others theirs.
        found += [together] if together is not None else [_price(kind, _usage(counts)) for counts in group]
    return total(usd for usd in found if usd is not None)


def _usage(counts: Iterable[int]) -> Usage:
    return Usage(**dict(zip(COUNTS, counts, strict=True)))


def _price(kind: HitKind, usage: Usage, *, prompt: int | None = None, requests: int = 1) -> Decimal | None:
    # Where warnings are made errors, a sum is still made of what is known.
    with contextlib.suppress(PriceWarning):
        return kind.prices().cost(*kind.priced, usage, variant=kind.variant, prompt=prompt, requests=requests)
    return None


_books: weakref.WeakSet[Totals] = weakref.WeakSet()


def _after_fork() -> None:
    # A lock may be held by a thread that is not here.
    for book in list(_books):
        book.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
