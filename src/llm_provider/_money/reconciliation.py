"""Compares a ledger's file with a provider's reports, day by day, and names what may explain a difference.

Two measures are compared: `cost` is the USD of the report of costs. `usage` is the tokens of the report of
usage, which are worth the prices of the table on both sides. No explanation exceeds what its lines can have
cost.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from .._json_values import JSONObject
from .._types.usage import Usage
from .ledger_file import posting_of, read_lines
from .model_drift import plain_name
from .pricing import PriceTable
from .totals import COUNTS, Posting
from .usage_reports import WEB_SEARCH, Entry

_NOTHING, _NO_BOUND = Decimal(0), Decimal("Infinity")
_OF_A_TOKEN = Decimal("0.000001")
"""USD that a token without a price is worth, so that a difference is seen."""
_DAY = 86_400
_MOST_CANDIDATES = 20


class Line(NamedTuple):
    """A line of a ledger that was billed, or may have been."""

    position: str
    posting: Posting
    fields: JSONObject

    @property
    def day(self) -> str:
        """The ISO date in UTC."""
        return f"{datetime.fromtimestamp(self.posting.time, UTC):%Y-%m-%d}"


class Name(NamedTuple):
    """What is compared. A name that the report does not tell is empty."""

    measure: str
    provider: str
    day: str
    model: str
    account: str
    delivery: str


@dataclass(slots=True, eq=False)
class Row:
    """The ledger beside the report: of two numbers the first is the ledger's. Amounts are USD."""

    name: Name
    model: str
    usd: list[Decimal] = field(default_factory=lambda: [_NOTHING, _NOTHING])
    counts: list[Counter[str]] = field(default_factory=lambda: [Counter(), Counter()])
    requests: list[int] = field(default_factory=lambda: [0, 0])
    amounts: list[Decimal] = field(default_factory=list)
    """Of the report; each may be rounded."""
    lines: defaultdict[str, list[Line]] = field(default_factory=lambda: defaultdict(list))
    """Lines of unknown cost, at the begin and at the end of the day, and of batches."""
    explained: defaultdict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    candidates: dict[str, Line] = field(default_factory=dict)
    """The lines that may explain the difference, by their position."""
    reason: str = ""
    """What the unexplained part looks like."""

    @property
    def unexplained(self) -> Decimal:
        """USD that the report has more than the ledger, without what is explained."""
        return self.usd[1] - self.usd[0] - sum(self.explained.values(), _NOTHING)

    @property
    def tokens(self) -> dict[str, list[int]]:
        """The counts that one of both has, by their names in `Usage`."""
        tokens = {name: [side[name] for side in self.counts] for name in COUNTS}
        return {name: sides for name, sides in tokens.items() if any(sides)}

    def explain(self, word: str, amount: Decimal, lines: Iterable[Line] = ()) -> None:
        if amount:
            self.explained[word] += amount
            self.candidates |= {line.position: line for line in lines}

    def to_dict(self) -> JSONObject:
        """The row as JSON, with the first candidates."""
        lines = list(self.candidates.values())[:_MOST_CANDIDATES]
        return self.name._asdict() | {
            "usd": list(map(float, self.usd)),
            "tokens": self.tokens,
            "requests": self.requests,
            "explained": {word: float(amount) for word, amount in self.explained.items()},
            "unexplained": float(self.unexplained),
            "reason": self.reason or None,
            "candidates": [{"at": line.position, **line.fields} for line in lines],
        }


def list_lines(paths: Sequence[Path]) -> Iterator[Line]:
    """The lines of ledgers that were billed, or may have been."""
    for path in paths:
        for number, line in read_lines(path):
            if line["outcome"] != "hit":
                yield Line(f"{path}:{number}", posting_of(line), line)


def reconcile(
    lines: Iterable[Line],
    entries: Sequence[Entry],
    prices: PriceTable,
    *,
    days: tuple[str, str],
    border: float,
    by_key: bool,
) -> list[Row]:
    """The rows of the days from a first to a last one; those beside them may take a part of a difference.

    `border` is the seconds at both ends of a day that may be of another day.
    """
    reported: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for entry in entries:
        names = {name for name in ("account", "delivery") if getattr(entry, name) is not None}
        reported[entry.measure, entry.provider, plain_name(entry.model)] |= {*names, *entry.counts}
    rows: dict[Name, Row] = {}

    def find(measure: str, provider: str, day: str, model: str, account: str, delivery: str) -> Row:
        plain = plain_name(model)
        known = reported.get((measure, provider, plain), {"account", "delivery"})
        account, delivery = account * (by_key and "account" in known), delivery * ("delivery" in known)
        name = Name(measure, provider, day, plain, account, delivery)
        return rows.setdefault(name, Row(name, model))

    for line in lines:
        key, account = line.posting.key, str(line.fields.get("account") or "")
        for measure in ("cost", "usage"):
            searches = _NOTHING
            if measure == "cost" and (measure, key.provider, WEB_SEARCH) in reported:
                searches = _price_searches(line.posting, prices)
                find(measure, key.provider, line.day, WEB_SEARCH, account, key.delivery).usd[0] += searches
            row = find(measure, key.provider, line.day, key.served, account, key.delivery)
            _enter(row, line, searches, border)
    for entry in entries:
        row = find(*entry[:4], entry.account or "", entry.delivery or "")
        row.usd[1] += entry.usd
        row.amounts.append(entry.usd)
        row.counts[1].update(entry.counts)
        row.requests[1] += entry.requests or 0
    measured = {name[:2] for name in reported}
    rows = {name: row for name, row in rows.items() if name[:2] in measured}
    for name, row in rows.items():
        if name.measure == "usage":
            known = reported.get((*name[:2], name.model), COUNTS)
            row.counts[0] = Counter({name: count for name, count in row.counts[0].items() if name in known})
            row.usd = [_price(row, side, prices) for side in (0, 1)]
    _explain(rows, days)
    return [row for name, row in sorted(rows.items()) if days[0] <= name.day <= days[1]]


def _enter(row: Row, line: Line, searches: Decimal, border: float) -> None:
    posting, cost = line.posting, row.name.measure == "cost"
    if (posting.usd if cost else posting.usage) is None:
        row.lines["unknown"].append(line)
        return
    row.requests[0] += 1
    if cost:
        row.usd[0] += (posting.usd or 0) - searches
    if posting.usage is not None:
        row.counts[0].update({name: getattr(posting.usage, name) for name in COUNTS})
    second, batch = posting.time % _DAY, posting.key.delivery == "batch"
    edges = {"batch": batch, "begin": second < border, "end": second > _DAY - border}
    for edge in ["batch"] if batch else [edge for edge, near in edges.items() if near]:
        row.lines[edge].append(line)


def _price(row: Row, side: int, prices: PriceTable) -> Decimal:
    """What tokens are worth, as those of many prompts."""
    usage, variant = Usage(**row.counts[side]), "batch" if row.name.delivery == "batch" else "standard"
    day: dict[str, Any] = {"at": date.fromisoformat(row.name.day), "prompt": 0}
    names = row.name.provider, row.model
    usd = prices.cost(*names, usage, variant=variant, requests=row.requests[side], **day)
    return usage.total_tokens * _OF_A_TOKEN if usd is None else usd


def _price_searches(posting: Posting, prices: PriceTable) -> Decimal:
    number = 0 if posting.usd is None or posting.usage is None else posting.usage.web_searches
    usage, names = Usage(web_searches=number), (posting.key.provider, posting.key.model)
    return (prices.cost(*names, usage, requests=0) if number else None) or _NOTHING


def _explain(rows: Mapping[Name, Row], days: tuple[str, str]) -> None:
    """Explain differences by lines of other days and of unknown cost, then by rounding, and name the rest."""
    series, decimals = defaultdict[Name, list[Row]](list), Counter[str]()
    usages = defaultdict[tuple[str, str], list[Row]](list)
    for name, row in sorted(rows.items()):
        series[name._replace(day="")].append(row)
        if name.measure == "usage":
            usages[name.provider, name.model].append(row)
        for usd in row.amounts if name.measure == "cost" else ():
            decimals[name.provider] = max(decimals[name.provider], -int(usd.normalize().as_tuple().exponent))
    for name, several in series.items():
        # The tokens of these days, where the report tells the same names.
        matching = [
            row
            for row in usages[name.provider, name.model]
            if name.account in ("", row.name.account) and name.delivery in ("", row.name.delivery)
        ]
        inner = [row for row in several if days[0] <= row.name.day <= days[1]]
        _explain_days(several, inner, _limit_unknown(inner, matching, days))
        for row in several:
            if name.measure == "cost":
                most = len(row.amounts) * Decimal("0.5").scaleb(-decimals[name.provider])
                row.explain("rounding", min(max(row.unexplained, -most), most))
            if row.unexplained:
                row.reason = _guess(row, [other for other in matching if other.name.day == row.name.day])


def _count_missing(usages: Iterable[Row]) -> int:
    """The requests of the report without a line of known usage."""
    return sum(row.requests[1] - row.requests[0] for row in usages)


def _explain_days(rows: list[Row], inner: list[Row], pool: Decimal) -> None:
    """Let what one day of a model has too much flow to days that lack it, and then unknown costs.

    From day to day flows no more than the lines near the border have cost. Paths are augmented until none is
    left, so as much is explained as can be. `pool` is the most that unknown costs of the inner days explain.
    """
    numbers = [date.fromisoformat(row.name.day).toordinal() for row in rows]
    edges: dict[tuple[int, int], list[Line]] = {}
    for source, row in enumerate(rows):
        for target, number in enumerate(numbers):
            near = {1: row.lines["end"], -1: row.lines["begin"]}.get(number - numbers[source], [])
            edges[source, target] = near + (row.lines["batch"] if source != target else [])
    room = {
        edge: sum((line.posting.usd or _NOTHING for line in lines), _NOTHING) for edge, lines in edges.items()
    }
    unknown = [_bound(row.lines["unknown"]) if row in inner else _NOTHING for row in rows]

    def supply(day: int) -> Decimal:
        return min(unknown[day], pool) if by_unknown else -rows[day].unexplained

    for by_unknown in (False, True):
        for target in (day for day in range(len(rows)) if rows[day] in inner or not by_unknown):
            while rows[target].unexplained > 0:
                # The shortest path from a day with a supply.
                paths, seen = [[target]], {target}
                for path in paths:
                    if supply(path[0]) > 0:
                        break
                    more = [day for day in range(len(rows)) if day not in seen and room[day, path[0]] > 0]
                    seen.update(more)
                    paths += [[day, *path] for day in more]
                else:
                    break
                steps, source = list(pairwise(path)), path[0]
                amount = min(rows[target].unexplained, supply(source), *(room[step] for step in steps))
                for step in steps:
                    room[step] -= amount
                    room[step[::-1]] += amount
                if by_unknown:
                    unknown[source] -= amount
                    pool -= amount
                    rows[source].explain("unknown cost", amount, rows[source].lines["unknown"])
                if steps:
                    rows[source].explain("another day", -amount)
                    rows[target].explain("another day", amount, edges[steps[-1]])


def _bound(lines: Sequence[Line]) -> Decimal:
    """The most that lines of unknown cost can have cost."""
    bounds = [line.posting.at_most for line in lines]
    return _NO_BOUND if None in bounds else sum(filter(None, bounds), _NOTHING)


def _limit_unknown(rows: Sequence[Row], usages: Sequence[Row], days: tuple[str, str]) -> Decimal:
    """The most that unknown costs explain: a line needs a request, if the report counts these."""
    lines = [line for row in rows for line in row.lines["unknown"]]
    if not any(row.requests[1] for row in usages) or any(line.posting.usage is not None for line in lines):
        return _NO_BOUND
    inner = [row for row in usages if days[0] <= row.name.day <= days[1]]
    outer = _count_missing(row for row in usages if row not in inner)
    movable = sum(len(row.lines[edge]) for row in inner for edge in ("begin", "end", "batch"))
    missing = _count_missing(inner) + max(0, min(outer, movable))
    bounds = sorted((_bound([line]) for line in lines), reverse=True)
    most = sum(bounds[: max(0, missing)], _NOTHING)
    if missing > len(lines):
        total = sum((row.unexplained for row in rows), _NOTHING)
        most = min(most, max(_NOTHING, total * len(lines) / missing))
    return most


def _guess(row: Row, usages: Sequence[Row]) -> str:
    """What an unexplained difference looks like."""
    elsewhere = "billed late, or under another organisation, project or key"
    if not row.amounts:
        return f"nothing in the report: {elsewhere}"
    if row.usd[0] and usages and all(usage.counts[0] == usage.counts[1] for usage in usages):
        return f"the tokens agree, and the price is {row.usd[1] / row.usd[0]:.4f} of that in the ledger"
    if row.unexplained < 0:
        return f"less than in the ledger: {elsewhere}"
    number = _count_missing(usages) - len(row.lines["unknown"])
    many = f"{number:,} requests" if number > 0 else "requests"
    return f"{many} without a line: of another program, or of a process that died before the answer"
