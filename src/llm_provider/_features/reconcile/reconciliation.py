"""Compares a ledger's file with a provider's reports, day by day, and names what may explain a difference.

Two measures are compared: `cost` is the USD of the report of costs. `usage` is the tokens of the report of
usage, which are worth the prices of the table on both sides. No explanation exceeds what its lines can have
cost.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import chain, pairwise, permutations, product
from pathlib import Path
from typing import Any, NamedTuple

from ..._core.journey.recorder import variants_of
from ..._core.json_values import JSONObject
from ..._core.money.ledger_file import posting_of, read_lines
from ..._core.money.model_drift import plain_name
from ..._core.money.pricing import PriceTable
from ..._core.money.totals import Posting
from ..._core.types.usage import COUNTS, Usage
from .usage_reports import WEB_SEARCH, Entry

_NOTHING, _NO_BOUND = Decimal(0), Decimal("Infinity")
_OF_A_TOKEN = Decimal("0.000001")
"""USD that a token without a price is worth, so that a difference is seen."""
_GROUPS = {"account", "delivery"}
_TOKENS = tuple(name for name in COUNTS if name.endswith("tokens"))
_CENTS = 2
"""The decimals of costs if a report has no more."""
_DAY, _EPOCH = 86_400, date(1970, 1, 1).toordinal()
_ANY_DAY = 0
_MOST_CANDIDATES = 20


@dataclass(slots=True)
class Line:
    """A line of a ledger that was billed, or may have been."""

    position: str
    posting: Posting
    fields: JSONObject
    usd: Decimal = _NOTHING
    """What it cost in a row, or if that is unknown, what it can still explain in all rows."""

    @property
    def day(self) -> str:
        return date.fromordinal(_EPOCH + int(self.posting.time // _DAY)).isoformat()

    def list_offsets(self, border: float) -> list[int]:
        """The other days, counted from the day of the line, on which it may be billed."""
        if self.posting.key.delivery != "live":
            return [_ANY_DAY]
        second = self.posting.time % _DAY
        days = range(int((second - border) // _DAY), int((second + border) // _DAY) + 1)
        return [offset for offset in days if offset]


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
    known: list[Line] = field(default_factory=list)
    unknown: list[Line] = field(default_factory=list)
    movable: defaultdict[tuple[bool, int], list[Line]] = field(default_factory=lambda: defaultdict(list))
    """Lines that may be of another day, by whether their cost is known and by the days between."""
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

    def enter(self, line: Line, offsets: Iterable[int], *, known: bool = True) -> None:
        if known:
            self.requests[0] += 1
            self.usd[0] += line.usd
            self.known.append(line)
        else:
            self.unknown.append(line)
        for offset in offsets:
            self.movable[known, offset].append(line)

    def explain(self, word: str, amount: Decimal, lines: Iterable[Line] = ()) -> None:
        if amount:
            self.explained[word] += amount
            self.candidates |= {line.position: line for line in lines}

    def draw_unknown(self, amount: Decimal) -> None:
        """Explain an amount by unknown costs, which then explain as much less in other rows."""
        self.explain("unknown cost", amount, self.unknown)
        for line in sorted(self.unknown, key=lambda line: line.usd, reverse=True):
            part = min(line.usd, amount)
            line.usd, amount = line.usd - part, amount - part

    def to_dict(self) -> JSONObject:
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
    lines: Iterable[Line], entries: Sequence[Entry], prices: PriceTable, *, days: tuple[str, str],
    border: float, by_key: bool, requested: Collection[tuple[str, str]] = (),
) -> list[Row]:  # fmt: skip
    """The rows of the days from a first to a last one; those beside them may take a part of a difference.

    `border` is the seconds at both ends of a day that may be of another day. `requested` has the measures and
    providers that are compared even if the report has nothing of them.
    """
    lines = list(lines)
    comparison = _Comparison(lines, entries, prices, by_key)
    measured = {*requested, *(name[:2] for name in comparison.columns)}
    for line in lines:
        for measure in ("cost", "usage"):
            if (measure, line.posting.key.provider) in measured:
                comparison.enter(measure, line, line.list_offsets(border))
    rows = comparison.rows
    for row in rows.values():
        if row.name.measure == "usage":
            row.usd = [comparison.price(row, row.counts[side], row.requests[side]) for side in (0, 1)]
    _explain(rows, comparison.joint, days)
    return [row for name, row in sorted(rows.items()) if days[0] <= name.day <= days[1]]


class _Comparison:
    """The rows of both sides, under the names that the report has."""

    def __init__(self, lines: list[Line], entries: Sequence[Entry], prices: PriceTable, by_key: bool) -> None:
        self._prices, self._by_key = prices, by_key
        self.rows: dict[Name, Row] = {}
        self.joint: defaultdict[tuple[Row, Row], list[Line]] = defaultdict(list)
        """The lines that have one amount for two rows, of a model and of searches."""
        self.columns: dict[tuple[str, ...], set[str]] = {}
        """The groups that all entries of a measure, provider and model tell, and the counts of any."""
        self._others: dict[tuple[str, str], str] = {}
        for entry in entries:
            name = entry.measure, entry.provider, plain_name(entry.model)
            lacking = {word for word in _GROUPS if getattr(entry, word) is None}
            self.columns[name] = self.columns.get(name, _GROUPS) - lacking | {*entry.counts}
            if entry.alias:
                self._others[entry.provider, plain_name(entry.alias)] = name[2]
        self._known = {name[1:] for name in self.columns}
        self._names: dict[tuple[str, str], str] = {}
        keys = {line.posting.key[:3] for line in lines}
        for provider, model, served in keys:
            # A failed line has only the name that was asked for.
            if model != served:
                self._others.setdefault((provider, plain_name(model)), plain_name(served))
        models = {(provider, self._find_name(provider, served)) for provider, _, served in keys}
        self._rests = Counter(
            (line.posting.key.provider, self._price_searches(line)[1] / usage.web_searches)
            for line in lines
            if (usage := line.posting.usage) and usage.web_searches and line.posting.usd is not None
        )
        """How many lines cost an amount for each of their searches, beside their tokens."""
        self._tools: defaultdict[str, set[str]] = defaultdict(set)
        for entry in entries:
            row = self._find(*entry[:4], entry.account or "", entry.delivery or "")
            row.usd[1] += entry.usd
            row.amounts.append(entry.usd)
            row.counts[1].update(entry.counts)
            row.requests[1] += entry.requests or 0
            names = entry.provider, row.name.model
            if names not in models and ("usage", *names) not in self.columns and not prices.find_key(*names):
                self._tools[entry.provider].add(row.name.model)

    def _find_name(self, provider: str, model: str) -> str:
        """The name under which the report has a model: the name of its snapshot, or without its host."""
        if (name := self._names.get((provider, model))) is None:
            names = [plain_name(model), plain_name(model).rpartition(":")[0]]
            for each in names:
                other = self._others.get((provider, each), each)
                names += [] if other in names else [other]
            name = next((each for each in names if (provider, each) in self._known), names[0])
            self._names[provider, model] = name
        return name

    def _find(self, measure: str, provider: str, day: str, model: str, account: str, delivery: str) -> Row:
        plain = self._find_name(provider, model)
        columns = self.columns.get((measure, provider, plain), _GROUPS)
        account *= self._by_key and "account" in columns
        name = Name(measure, provider, day, plain, account, delivery * ("delivery" in columns))
        return self.rows.get(name) or self.rows.setdefault(name, Row(name, model))

    def enter(self, measure: str, line: Line, offsets: Sequence[int]) -> None:
        """Enter a line into the row of its model, and into the rows of its searches and tools."""
        posting, usage, key = line.posting, line.posting.usage, line.posting.key

        def find(model: str) -> Row:
            account = str(line.fields.get("account") or "")
            # OpenAI's reports count background jobs beside live requests.
            delivery = "batch" if key.delivery == "batch" else "live"
            return self._find(measure, key.provider, line.day, model, account, delivery)

        row, tools = find(key.served), self._tools[key.provider] if measure == "cost" else ()
        if measure == "usage" and usage is not None:
            columns = self.columns.get((measure, key.provider, row.name.model), _TOKENS)
            counts = {name: getattr(usage, name) for name in _TOKENS if name in columns}
            row.counts[0].update(counts)
            row.enter(replace(line, usd=self.price(row, counts, 1)), offsets)
        elif measure == "cost" and posting.usd is not None:
            searches = _NOTHING
            if usage and usage.web_searches and WEB_SEARCH in tools:
                searches, rest = self._price_searches(line)
                if searches != rest:
                    self.joint[row, find(WEB_SEARCH)].append(replace(line, usd=posting.usd))
                # An amount that recurs is a price of the client's own.
                if rest and self._rests[key.provider, rest / usage.web_searches] > 1:
                    searches = rest
                find(WEB_SEARCH).enter(replace(line, usd=searches), offsets)
            row.enter(replace(line, usd=posting.usd - searches), offsets)
        else:
            line = replace(line, usd=_NO_BOUND if posting.at_most is None else posting.at_most)
            row.enter(line, offsets, known=False)
            # A failed request may have searched.
            uses = usage or Usage(web_searches=1)
            for tool in tools:
                if uses.web_searches if tool == WEB_SEARCH else uses.unpriced_tools:
                    find(tool).enter(line, offsets, known=False)

    def price(self, row: Row, counts: Mapping[str, int], requests: int) -> Decimal:
        """What tokens are worth, if many prompts share them."""
        usage, variant = Usage(**counts), "batch" if row.name.delivery == "batch" else "standard"
        day: dict[str, Any] = {"at": date.fromisoformat(row.name.day), "prompt": 0}
        names = row.name.provider, row.model
        usd = self._prices.cost(*names, usage, variant=variant, requests=requests, **day)
        return usage.total_tokens * _OF_A_TOKEN if usd is None else usd

    def _price_searches(self, line: Line) -> tuple[Decimal, Decimal]:
        """What the searches of a line cost by the table, and what the line cost beside its tokens."""
        key, usage, usd = line.posting.key, line.posting.usage or Usage(), line.posting.usd or _NOTHING
        model = key.served if self._prices.find_key(key.provider, key.served) else key.model
        price = partial(self._prices.cost, key.provider, model, at=date.fromisoformat(line.day))
        searches = price(Usage(web_searches=usage.web_searches), requests=0) or _NOTHING
        (variant,) = variants_of(key.delivery) or ("standard",)
        tokens = price(replace(usage, web_searches=0, unpriced_tools=0), variant=variant) or _NOTHING
        return min(searches, usd), max(_NOTHING, usd - tokens)


def _explain(rows: dict[Name, Row], joint: dict[tuple[Row, Row], list[Line]], days: tuple[str, str]) -> None:
    """Explain differences by lines of other days and of unknown cost, then by rounding, and name the rest."""
    series, usages = defaultdict[Name, list[Row]](list), defaultdict[str, list[Row]](list)
    decimals: dict[str, int] = {}
    for name, row in sorted(rows.items()):
        series[name._replace(day="")].append(row)
        if name.measure == "usage":
            usages[name.provider].append(row)
        for usd in filter(None, row.amounts) if name.measure == "cost" else ():
            decimals[name.provider] = max(decimals.get(name.provider, _CENTS), -int(usd.as_tuple().exponent))
    matching: dict[Name, list[Row]] = {}
    # Any line may have searched, so models come first.
    for name, several in sorted(series.items(), key=lambda item: item[0].model == WEB_SEARCH):
        # The tokens of these days, where the report tells the same names.
        likely = [
            row
            for row in usages[name.provider]
            if name.account in ("", row.name.account) and name.delivery in ("", row.name.delivery)
        ]
        matching[name] = [row for row in likely if row.name.model == name.model]
        inner = [row for row in several if days[0] <= row.name.day <= days[1]]
        # Searches and tools are of any model.
        _explain_days(several, inner, _limit_unknown(inner, matching[name] or likely, days))
    for (row, searches), lines in joint.items():
        if row.unexplained * searches.unexplained < 0:
            most = min(abs(row.unexplained), abs(searches.unexplained), _add_up(lines))
            row.explain("searches", most.copy_sign(row.unexplained), lines)
            searches.explain("searches", most.copy_sign(searches.unexplained), lines)
    for name, row in rows.items():
        most = _NOTHING
        # An amount with fewer decimals in the ledger than in the report is none that was rounded.
        finest = decimals.get(name.provider)
        own = -int(row.usd[0].normalize().as_tuple().exponent)
        if name.measure == "cost" and finest is not None and own > finest:
            most = len(row.amounts) * Decimal("0.5").scaleb(-finest)
            row.explain("rounding", min(max(row.unexplained, -most), most))
        if row.unexplained:
            usages_of_day = matching[name._replace(day="")]
            row.reason = _guess(row, [other for other in usages_of_day if other.name.day == name.day])
            # Name the lines that are as large; all lines if none is and the report has less.
            gap = abs(row.unexplained + row.explained.get("rounding", _NOTHING))
            equal = [line for line in row.known if abs(line.usd - gap) <= most]
            lines = equal or [line for line in row.known if row.unexplained < 0]
            row.candidates |= {line.position: line for line in lines}


def _count_missing(usages: Iterable[Row]) -> int:
    """The requests of the report without a line of known usage."""
    return sum(row.requests[1] - row.requests[0] for row in usages)


def _add_up(lines: Iterable[Line]) -> Decimal:
    return sum((line.usd for line in lines), _NOTHING)


def _explain_days(rows: list[Row], inner: list[Row], pool: Decimal) -> None:
    """Let what one day of a model has too much flow to days that lack it, and then unknown costs.

    From day to day flows no more than the lines near the border have cost. Paths are augmented until none is
    left, so as much is explained as can be. `pool` is the most that unknown costs of the inner days explain.
    """
    numbers = [date.fromisoformat(row.name.day).toordinal() for row in rows]
    days = range(len(rows))
    sums = [{key: _add_up(lines) for key, lines in row.movable.items()} for row in rows]
    room = defaultdict[tuple[int, int], Decimal](Decimal)

    def supply(day: int) -> Decimal:
        if not by_unknown:
            return -rows[day].unexplained
        return min(_add_up(rows[day].unknown), pool) if rows[day] in inner else _NOTHING

    for by_unknown in (False, True):
        for source, target in permutations(days, 2):
            for offset in (numbers[target] - numbers[source], _ANY_DAY):
                room[source, target] += sums[source].get((not by_unknown, offset), _NOTHING)
        for target in (day for day in days if rows[day] in inner or not by_unknown):
            while rows[target].unexplained > 0:
                # The shortest path from a day with a supply.
                paths, seen = [[target]], {target}
                for path in paths:
                    if supply(path[0]) > 0:
                        break
                    more = [day for day in days if day not in seen and room[day, path[0]] > 0]
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
                    pool -= amount
                    rows[source].draw_unknown(amount)
                if steps:
                    rows[source].explain("another day", -amount)
                    offsets = numbers[target] - numbers[path[-2]], _ANY_DAY
                    keys = product({True, not by_unknown}, offsets)
                    near = chain.from_iterable(rows[path[-2]].movable[key] for key in keys)
                    rows[target].explain("another day", amount, near)


def _limit_unknown(rows: Sequence[Row], usages: Sequence[Row], days: tuple[str, str]) -> Decimal:
    """The most that unknown costs explain: a line needs a request, if the report counts these."""
    lines = [line for row in rows for line in row.unknown]
    if not any(row.requests[1] for row in usages) or any(line.posting.usage for line in lines):
        return _NO_BOUND
    inner = [row for row in usages if days[0] <= row.name.day <= days[1]]
    outer = _count_missing(row for row in usages if row not in inner)
    movable = sum(len(near) for row in inner for (known, _), near in row.movable.items() if known)
    missing = _count_missing(inner) + max(0, min(outer, movable))
    bounds = sorted((line.usd for line in lines), reverse=True)
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
    if row.usd[1] < 0:
        return "a credit or a refund"
    if row.usd[0] and usages and all(usage.counts[0] == usage.counts[1] for usage in usages):
        return f"the tokens agree, and the price is {row.usd[1] / row.usd[0]:.4f} of that in the ledger"
    sums = [[side["input_tokens"], side["output_tokens"]] for usage in usages for side in usage.counts]
    if sums and sums[::2] == sums[1::2]:
        return "the sums of tokens agree, and their classes do not"
    if any(usage.requests[1] for usage in usages) and not (row.unknown or _count_missing(usages)):
        return "the requests agree, and their tokens do not"
    if row.unexplained < 0:
        return f"less than in the ledger: {elsewhere}"
    number = _count_missing(usages) - len(row.unknown)
    many = f"{number:,} requests" if number > 0 else "requests"
    return f"{many} without a line: of another program, of a process that died, or billed twice"
