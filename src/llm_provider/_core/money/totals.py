"""Running totals of what calls cost: exact sums in bounded memory.

A `Posting` is one event that may have cost money: an answered request, an answer that cost nothing, or a
request that failed and may have been billed. `Totals` keeps sums of them, never the postings themselves.
They are queued, because pricing each hit at once would take 15 % more instructions per hit.
"""

import bisect
import contextvars
import operator
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Literal, NamedTuple, TypeAlias, get_args

from ..json_values import JSONObject
from ..runtime.exact_decimal import exact, total
from ..runtime.forks import reset_in_child
from ..types.usage import COUNTS, Usage
from .price_rows import get_counts
from .pricing import PriceTable

PostingKind: TypeAlias = Literal["answered", "hit", "failed"]
POSTING_KINDS = get_args(PostingKind)

_INPUT = COUNTS.index("input_tokens")

OTHER_TAGS = "(other tags)"
"""The tag of the row that sums all further tags once there are many rows."""

_MOST_ROWS = 10_000
_MOST_PENDING = 256
"""Postings that are queued before they are added up, which takes about a microsecond for each."""


class Key(NamedTuple):
    """The names of a row: postings with equal names are summed."""

    provider: str
    model: str
    """The model that was asked for, without the provider's prefix."""
    served: str
    """The model that the provider named; the model that was asked for where it named none."""
    tag: str
    delivery: str = "live"
    """"live", or "batch" for a provider's batch API."""


class Posting(NamedTuple):
    """One event that may have cost money."""

    time: float
    """Unix seconds."""
    kind: PostingKind
    key: Key
    usd: Decimal | None
    """The cost of an answer or a failure, or the cost that a hit avoided; None where that is not known."""
    usage: Usage | None = None
    at_most: Decimal | None = None
    """USD that an unknown cost cannot exceed; None where no such bound is known."""
    who: Mapping[str, str] | None = None
    """Who answered: the fields of `ServedBy` without its model."""


# Compared by identity, which takes no time. Two equal groups are only summed one after the other.
@dataclass(frozen=True, slots=True, eq=False)
class HitGroup:
    """Answers that cost nothing, have the same key, and would have been billed at the same prices."""

    key: Key
    prices: Callable[[], PriceTable]
    priced: tuple[str, str]
    """Provider and model under which `prices.csv` lists them."""
    variant: str

    def price(self, usage: Usage | None, prompt: int | None = None, requests: int = 1) -> Decimal | None:
        """USD that answers would have cost at today's prices; None where their price or usage is unknown."""
        if usage is None:
            return None
        return self.prices().cost(*self.priced, usage, variant=self.variant, prompt=prompt, requests=requests)


@dataclass(slots=True)
class RowSums:
    """The sums of one row. Amounts are exact USD."""

    requests: int = 0
    hits: int = 0
    failed: int = 0
    unknown: int = 0
    spent: Decimal | int = 0
    wasted: Decimal | int = 0
    saved: Decimal | int = 0
    at_most: Decimal | int | None = 0
    counts: list[int] = field(default_factory=lambda: [0] * len(COUNTS))
    """The summed usage in the order of `COUNTS`: adding two `Usage` objects takes ten times as long."""

    def add(self, posting: Posting) -> None:
        number, amount = _SUMMED[posting.kind]
        setattr(self, number, getattr(self, number) + 1)
        if posting.usd is not None:
            setattr(self, amount, exact().add(getattr(self, amount), posting.usd))
        if posting.kind == "hit":
            return
        if posting.usage is not None:
            self.counts = list(map(operator.add, self.counts, get_counts(posting.usage)))
        if posting.usd is None:
            self.unknown += 1
            if self.at_most is None or posting.at_most is None:
                self.at_most = None
            else:
                self.at_most = exact().add(self.at_most, posting.at_most)


class Timeline:
    """USD over time by model, in a bounded number of intervals, which double when there are too many."""

    def __init__(self, most: int = 512) -> None:
        self._most = most
        self._buckets: dict[int, dict[str, Decimal]] = {}
        self.width = 1
        """Seconds of an interval."""

    def add(self, moment: float, model: str, usd: Decimal) -> None:
        """Add an amount that was spent at a moment, in Unix seconds."""
        by_model = self._buckets.setdefault(int(moment // self.width), {})
        by_model[model] = exact().add(by_model.get(model, 0), usd)
        while len(self._buckets) > self._most:
            buckets, self._buckets = self._buckets, {}
            start, self.width = self.width, 2 * self.width
            for number, amounts in buckets.items():
                for name, amount in amounts.items():
                    self.add(number * start, name, amount)

    def series(self) -> dict[str, list[tuple[int, Decimal]]]:
        """For each model the intervals in which it cost something: start (Unix seconds) and USD."""
        series: dict[str, list[tuple[int, Decimal]]] = {}
        for number in sorted(self._buckets):
            for model, amount in self._buckets[number].items():
                series.setdefault(model, []).append((number * self.width, amount))
        return series


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """The sums of the calls of one provider, model and tag. Amounts are exact USD.

    Attributes:
        provider: The route's name.
        model: The model that was asked for, without the provider's prefix.
        served: The model that the provider named, such as a dated snapshot.
        tag: The names of the tracks in which the calls were made, joined by slashes.
        delivery: "live", "batch" for a provider's batch API, or "background", "background-2h" or
            "background-8h" for background jobs by their completion window.
        requests: Requests that were answered; samples that came in one request count once.
        hits: Answers that cost nothing: stored answers, and answers shared with an equal call that was under
            way.
        failed: Requests that failed or were cancelled after they were sent and may have been billed.
        unknown: Requests of unknown cost, answered or failed.
        usage: The usage of everything that was billed.
        spent: USD for answers.
        wasted: USD for failed requests whose usage the provider reported.
        saved: USD that the hits would have cost, at today's prices; hits of unknown price are left out.
        unknown_at_most: USD that the requests of unknown cost cannot exceed; None where there is no such
            bound.
    """

    provider: str = ""
    model: str = ""
    served: str = ""
    tag: str = ""
    delivery: str = ""
    requests: int = 0
    hits: int = 0
    failed: int = 0
    unknown: int = 0
    usage: Usage
    spent: Decimal
    wasted: Decimal
    saved: Decimal
    unknown_at_most: Decimal | None

    def as_dict(self) -> JSONObject:
        """The row as plain values: token counts one by one, USD as `Decimal`."""
        plain = {name: getattr(self, name) for name in (*Key._fields, *_NUMBERS)}
        return plain | {name: getattr(self.usage, name) for name in COUNTS} | self.dollars()

    def dollars(self) -> dict[str, Decimal | None]:
        """The amounts of the row in USD, by name."""
        return {name: getattr(self, name) for name in _AMOUNTS}


_SUMMED = {"answered": ("requests", "spent"), "hit": ("hits", "saved"), "failed": ("failed", "wasted")}
"""Kind of a posting → the count and the amount to which it adds."""
_NUMBERS = ("requests", "hits", "failed", "unknown")
_AMOUNTS = ("spent", "wasted", "saved", "unknown_at_most")


def row_of(key: Key, rows: list[RowSums]) -> LedgerRow:
    """One row that sums several rows of `Totals`, under a key of its own."""
    bounds = [row.at_most for row in rows]
    return LedgerRow(
        **key._asdict(),
        **{name: sum(getattr(row, name) for row in rows) for name in _NUMBERS},
        usage=sum((_usage(row.counts) for row in rows), Usage()),
        spent=total(row.spent for row in rows),
        wasted=total(row.wasted for row in rows),
        saved=total(row.saved for row in rows),
        unknown_at_most=None if None in bounds else total(bound or 0 for bound in bounds),
    )


class Totals:
    """Sums of postings by provider, model asked for, model served and tag. Safe to share between threads.

    Postings are queued and added up together. The sums of a forked child begin at zero.
    """

    def __init__(self) -> None:
        self.clear()
        _all_totals.add(self)

    def clear(self) -> None:
        # Reentrant: a signal handler may read totals to which its own thread is just adding.
        self._adding = threading.RLock()
        self._pending: deque[Posting] = deque()
        self._hits: deque[tuple[HitGroup, Usage | None]] = deque()
        self._rows: dict[Key, RowSums] = {}
        self._timeline = Timeline()

    def post(self, posting: Posting) -> None:
        self._pending.append(posting)
        if len(self._pending) >= _MOST_PENDING:
            self._add_unless_others_do()

    def hit(self, group: HitGroup, usage: Usage | None) -> None:
        """Add an answer that cost nothing. Without a usage it counts as a hit that saved nothing."""
        self._hits.append((group, usage))
        if len(self._hits) >= _MOST_PENDING:
            self._add_unless_others_do()

    def rows(self) -> list[tuple[Key, RowSums]]:
        """A copy of every row."""
        with self._adding:
            self._add_pending()
            return [(key, replace(sums)) for key, sums in self._rows.items()]

    def timeline(self) -> dict[str, list[tuple[int, Decimal]]]:
        """`Timeline.series` of everything that was posted so far."""
        with self._adding:
            self._add_pending()
            return self._timeline.series()

    def _add_unless_others_do(self) -> None:
        if self._adding.acquire(blocking=False):
            try:
                self._add_pending()
            finally:
                self._adding.release()

    def _add_pending(self) -> None:
        # No more than are queued now: other threads may post as fast as this one adds.
        for _ in range(len(self._pending)):
            posting = self._pending.popleft()
            self._row(posting.key).add(posting)
            if posting.usd and posting.kind != "hit":
                self._timeline.add(posting.time, posting.key.model, posting.usd)
        hits: dict[HitGroup, list[Usage | None]] = {}
        for _ in range(len(self._hits)):
            group, usage = self._hits.popleft()
            hits.setdefault(group, []).append(usage)
        for group, usages in hits.items():
            row = self._row(group.key)
            row.hits += len(usages)
            known = [usage for usage in usages if usage is not None]
            row.saved = exact().add(row.saved, _price_hits(group, known))

    def _row(self, key: Key) -> RowSums:
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= _MOST_ROWS:
                key = key._replace(tag=OTHER_TAGS)
            row = self._rows.setdefault(key, RowSums())
        return row


def _price_hits(group: HitGroup, usages: list[Usage]) -> Decimal:
    """USD that the hits of known price would have cost, one sum for each tier, as its prices are equal."""
    tiers = group.prices().tiers(*group.priced)
    by_tier: dict[int, list[tuple[int, ...]]] = {}
    for counts in map(get_counts, usages):
        by_tier.setdefault(bisect.bisect(tiers, counts[_INPUT]), []).append(counts)
    prices: list[Decimal | None] = []
    for several in by_tier.values():
        summed = _usage(map(sum, zip(*several, strict=True)))
        together = group.price(summed, several[0][_INPUT], len(several))
        # If one of them has no price, the others still count.
        prices += [together] if together is not None else [group.price(_usage(each)) for each in several]
    return total(usd for usd in prices if usd is not None)


def _usage(counts: Iterable[int]) -> Usage:
    return Usage(**dict(zip(COUNTS, counts, strict=True)))


_all_totals: weakref.WeakSet[Totals] = weakref.WeakSet()

# A thread that does not exist in the child may hold a lock.
reset_in_child(_all_totals, Totals.clear)


# What runs in a copy of the context inherits its open tracks. A new thread has an empty context: its calls
# count in the tracks that the main thread has open at that moment. Other threads never share their tracks.


class Tracks(NamedTuple):
    """The open tracks in which a call counts."""

    tag: str = ""
    """Their names from the outermost to the innermost, joined by slashes."""
    totals: tuple[Totals, ...] = ()
    """Their sums, in the same order."""


NOWHERE = Tracks()
open_tracks: contextvars.ContextVar[Tracks | None] = contextvars.ContextVar(
    "llm_provider_tracks", default=None
)


class _MainThread:
    """The tracks of the main thread, for threads without a context of their own."""

    def __init__(self) -> None:
        self._open: list[Tracks] = []
        self.tracks = NOWHERE

    def enter(self, tracks: Tracks) -> None:
        self._update([*self._open, tracks])

    def leave(self, tracks: Tracks) -> None:
        # By identity: equal tracks may be open side by side.
        self._update([other for other in self._open if other is not tracks])

    def _update(self, opened: list[Tracks]) -> None:
        self._open = opened
        # Tasks of the main thread may have tracks open side by side. For which of these tasks a thread works
        # is unknown, so its calls count in the tracks around all of them.
        chains = [tracks.totals for tracks in opened]
        around = [
            tracks
            for tracks in opened
            if all(own is other for chain in chains for own, other in zip(tracks.totals, chain, strict=False))
        ]
        self.tracks = max(around, key=lambda tracks: len(tracks.totals), default=NOWHERE)


main_thread = _MainThread()


def find_tracks() -> Tracks:
    """The tracks in which a call counts that this thread or task makes now."""
    tracks = open_tracks.get()
    if tracks is not None:
        return tracks
    # First the cheap test, which is enough where no track is open.
    shared = main_thread.tracks
    is_main = shared is NOWHERE or threading.current_thread() is threading.main_thread()
    return NOWHERE if is_main else shared
