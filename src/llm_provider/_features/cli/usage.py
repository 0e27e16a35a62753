"""The command `llm-provider usage`: prints what calls cost, from ledgers and from files of answers."""

import json
import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import cast

import click
import orjson

from ..._core.errors import RequestError
from ..._core.json_values import JSONObject
from ..._core.money.totals import LedgerRow, Posting, Totals
from ..._core.runtime.exact_decimal import total
from ..._core.types.usage import FIELDS, read_bounds
from ..._core.words import format_usd
from .answer_files import read_lines
from .output import PROGRAM, print_table, printable, say
from .parsing import Command, parse_since

_KEYS = ("provider", "model", "served", "tag", "delivery")
_WHO = tuple(name for name in FIELDS if name not in ("model", "request_id"))
_NAMES = ("day", *_KEYS, *_WHO)
_EPILOG = f"""\
FILES are ledgers: what `Client(ledger=FILE)` or LLM_PROVIDER_LEDGER=FILE has written. Or they are answers,
as `map` (JSON lines or .csv) and `Results.to_jsonl` write them. Several files are summed, as those of a
cluster's workers. Without a file it reads the ledger that LLM_PROVIDER_LEDGER names.

  {PROGRAM} usage costs.jsonl
  {PROGRAM} usage answers.csv
  {PROGRAM} usage worker-*.jsonl --by day --by model --since 7d
  {PROGRAM} usage costs.jsonl --by tag --json | jq .total.cost

--by takes {", ".join(_NAMES[:6])}, and who answered:
{", ".join(_WHO)}. Default provider and model. Days are those of UTC. Dollars are exact
sums of known costs, and what requests of unknown cost can have cost at most. Of answers, each bought row is
a request, and each stored sample a hit. "failed rows" counts those without one, and those before whose answer
a request of unknown cost failed. Of ledgers, "failed requests" may have been billed. Answers have no time.
"""
_BY = "sum by day, model, tag, provider, served, delivery, host, …; repeatable"
_SINCE = "only from a day (2026-11-20) or an age (7d) on"
_JSON = "print one JSON object with rows and total; costs are USD"
_NO_TIME = 0.0
"""The time of answers, which their files do not have."""


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("files", metavar="[FILES]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--by", metavar="NAME", multiple=True, help=_BY)
@click.option("--since", "begin", metavar="WHEN", type=parse_since, help=_SINCE)
@click.option("--json", "as_json", is_flag=True, help=_JSON)
def run_usage(files: tuple[Path, ...], by: tuple[str, ...], begin: float | None, *, as_json: bool) -> None:
    """Print what calls cost, from ledgers and files of answers."""
    from ..._core.money.ledger import Ledger

    by = tuple(name.strip() for option in by for name in option.split(",") if name.strip())
    names = list(dict.fromkeys(by)) or ["provider", "model"]
    if wrong := [name for name in names if name not in _NAMES]:
        raise RequestError(f"--by takes {', '.join(_NAMES)}, not {wrong[0]!r}")
    others = [name for name in names if name not in _KEYS]
    groups, everything, failures = _add_up(list_files(files), begin, others)
    keys = [name for name in names if name in _KEYS]
    rows: list[tuple[tuple[str, ...], LedgerRow]] = []
    for group, sums in sorted(groups.items(), key=lambda item: item[0]):
        rows += ((group, row) for row in (Ledger(sums).rows(*keys) if keys else [Ledger(sums).total]))
    total_row = Ledger(everything).total
    if as_json:
        objects = [_names_of(names, group, row) | _figures(row) for group, row in rows]
        print(json.dumps({"rows": objects, "total": _figures(total_row)}))
        return
    header = [*names, "requests", "hits", f"failed {failures}", "input", "output", "cost", "saved"]
    lines = [
        [*(printable(name) or "-" for name in _names_of(names, group, row).values()), *_cells(row)]
        for group, row in rows
    ]
    lines.append(["total", *[""] * (len(names) - 1), *_cells(total_row)])
    print_table(header, lines, left=_NAMES)


def list_files(files: tuple[Path, ...]) -> list[Path]:
    """The files, each once; the environment's ledger if there are none."""
    if not files:
        ledger = os.environ.get("LLM_PROVIDER_LEDGER", "").strip()
        if not ledger:
            raise RequestError(
                "there is no ledger: name its file, or set LLM_PROVIDER_LEDGER, which calls then write"
            )
        files = (Path(ledger),)
    for path in files:
        if not path.expanduser().exists():
            raise FileNotFoundError(
                f"there is no {path}: name the file of Client(ledger=FILE) or LLM_PROVIDER_LEDGER=FILE"
            )
    return list({path.expanduser().resolve(): path for path in files}.values())


def _add_up(
    files: list[Path], begin: float | None, names: list[str]
) -> tuple[dict[tuple[str, ...], Totals], Totals, str]:
    """The sums by the day and who answered, the sum of everything, and what is counted where it failed."""
    groups: defaultdict[tuple[str, ...], Totals] = defaultdict(Totals)
    everything = Totals()
    hits = 0
    kinds: set[str] = set()
    for path in files:
        for posting in _postings(path):
            kinds.add("rows" if posting.time == _NO_TIME else "requests")
            hits += posting.time == _NO_TIME and posting.kind == "hit"
            if posting.time == _NO_TIME and (begin is not None or "day" in names):
                raise RequestError(f"{path}: answers have no time; leave out --since and --by day")
            if begin is not None and posting.time < begin:
                continue
            day = f"{datetime.fromtimestamp(posting.time, UTC):%Y-%m-%d}" if "day" in names else ""
            known = {**(posting.who or {}), "day": day}
            groups[tuple(known.get(name, "") for name in names)].post(posting)
            everything.post(posting)
    if len(kinds) > 1:
        say("note", "ledgers and answers are summed: a request that both have counts twice")
    if hits:
        text = f"stored answers ({hits:,}) cost nothing here, but in the run that bought them"
        say("note", f"{text}; a ledger (LLM_PROVIDER_LEDGER) also has cancelled and failed requests")
    return groups, everything, " and ".join(sorted(kinds)) or "requests"


def _postings(path: Path) -> Iterator[Posting]:
    """What the lines of a file cost. Invalid lines are left out, with a warning; one valid line is needed."""
    from ..._core.money.ledger_file import parse_line, parse_posting

    bad: list[int] = []
    any_valid, joined = False, 0
    for number, (text, cells) in enumerate(read_lines(path.expanduser()), start=1):
        # The header of a table is no line.
        piece = b"" if cells == {} else text.strip()
        try:
            line = orjson.loads(text) if cells is None else cells
        except ValueError:
            line = parse_line(text)
        postings, parts = [parse_posting(line)], []
        if postings == [None]:
            with suppress(KeyError, TypeError, AttributeError, ValueError):
                lines = (*(line.get("earlier_failures") or ()), line)
                parts = [part for each in lines for part in _split(each)]
            postings = [parse_posting(entry) for part in parts for entry in _entries_of(part)]
        if postings and None not in postings:
            any_valid = True
            joined += bool(parts and parts[-1].get("passed_over") and line["cost"] != 0)
            yield from cast("list[Posting]", postings)
        elif piece:
            bad.append(number)
    if not any_valid and bad:
        raise RequestError(
            f"{path} is neither a ledger nor a file of answers of `{PROGRAM} map` or `Results.to_jsonl`"
        )
    if joined:
        # Lines of older versions do not have the costs of each model.
        say("note", f"{path}: the sums of {joined:,} rows include models that were passed over")
    if bad:
        say("warning", f"{path}: invalid lines are left out ({len(bad)}, the first is line {bad[0]})")


def _split(line: object) -> list[JSONObject]:
    """A line of answers for each model that cost something, the one that answered last; none for others."""
    if not isinstance(line, dict) or not {"model", "usage", "cost", "cached"} <= line.keys():
        return []
    passed = [each for each in line.get("passed_over") or () if each["error"] != "CacheMissError"]
    if not all(each.get("provider") for each in passed):
        return [line]
    parts: list[JSONObject] = [
        {"cached": False, "usage": None, "cost": None, **each}
        | {"error": None if each["error"] == "RefusalError" else each["error"]}
        | {"model": each["model"].removeprefix(f"{each['provider']}/")}
        for each in passed
        if each.get("cost") != 0 or each.get("usage")
    ]
    own: JSONObject = {**line, "passed_over": None}
    if parts:
        (least, most), *others = map(_bounds_of, (line, *parts))
        # Beyond 15 digits is the noise of floats.
        least = max(round(least - total(bounds[0] for bounds in others), 15), Decimal(0))
        known = [bounds[1] for bounds in others if bounds[1] is not None]
        if len(known) < len(others) and line.get("price") is not None:
            most = least = Decimal(repr(line["price"]))
        elif most is not None:
            most = max(round(most - total(known), 15), least)
        bounds = [float(least), None if most is None else float(most)]
        own["cost"], own["cost_bounds"] = (bounds[0], None) if least == most else (None, bounds)
        own["cached"] = own["cost"] == 0 and bool(line.get("price"))
        usages = [part["usage"] or {} for part in parts]
        counts = (line["usage"] or {}).items()
        own["usage"] = {name: count - sum(each.get(name, 0) for each in usages) for name, count in counts}
    return [*parts, own]


def _bounds_of(line: JSONObject) -> tuple[Decimal, Decimal | None]:
    """The least and the most USD of a line."""
    least, most = read_bounds(line.get("cost_bounds")) or (line["cost"] or 0.0, line["cost"])
    return Decimal(repr(least)), None if most is None else Decimal(repr(most))


def _entries_of(line: JSONObject) -> list[JSONObject]:
    """What is known of the cost of an answer and what is not, as lines of a ledger."""
    outcome = "failed" if line.get("error") else "hit" if line["cached"] else "answered"
    usd = line.get("price") if outcome == "hit" else line["cost"]
    model = line["model"] or ""
    entry: JSONObject = {
        "provider": line.get("provider") or "", "model": model, "served": model, "tag": "", "delivery": "",
        "time": _NO_TIME, "outcome": outcome, "usd": None if usd is None else str(usd),
        "usage": line["usage"] if outcome != "hit" and line["usage"] else {},
        "served_by": line.get("served_by"),
    }  # fmt: skip
    # Of a row that is stored in part, `usage` has the stored samples too.
    stored: list[JSONObject] = line.get("stored_usages") or []
    if outcome == "hit":
        return [entry, *[entry | {"usd": None}] * (len(stored or line.get("cache_keys") or ()) - 1)]
    entry["usage"] = {
        name: count - sum(each.get(name, 0) for each in stored) for name, count in entry["usage"].items()
    }
    price = line.get("stored_price")
    hit = entry | {"outcome": "hit", "usage": {}, "usd": None if price is None else str(price)}
    hits = [hit, *[hit | {"usd": None}] * (len(stored) - 1)] if stored else []
    return [*hits, *_list_paid(line, entry)]


def _list_paid(line: JSONObject, entry: JSONObject) -> list[JSONObject]:
    """What was paid for an answer, as lines of a ledger: what is known, and what is not."""
    bounds = read_bounds(line.get("cost_bounds")) if entry["usd"] is None else None
    if bounds is None:
        return [entry]
    least, most = bounds
    at_most = None if most is None else repr(most - least)
    if entry["outcome"] == "answered" and not least:
        # The cost of the answer itself is not known.
        return [entry | {"at_most": at_most}]
    failed = entry | {"outcome": "failed", "usd": None, "at_most": at_most, "usage": {}}
    return [entry | {"usd": str(least)}, failed] if least else [failed]


def _cells(row: LedgerRow) -> list[str]:
    counts = (row.requests, row.hits, row.failed, row.usage.input_tokens, row.usage.output_tokens)
    cost = format_usd(total((row.spent, row.wasted)), row.unknown, row.unknown_at_most)
    return [*(f"{count:,}" for count in counts), cost, format_usd(row.saved)]


def _names_of(names: list[str], group: tuple[str, ...], row: LedgerRow) -> dict[str, str]:
    others = iter(group)
    return {name: getattr(row, name) if name in _KEYS else next(others) for name in names}


def _figures(row: LedgerRow) -> dict[str, object]:
    """The sums of a row as JSON: counts, tokens, and USD as numbers."""
    figures = {name: value for name, value in row.as_dict().items() if name not in _NAMES}
    figures["cost"] = total((row.spent, row.wasted))
    return {name: float(value) if isinstance(value, Decimal) else value for name, value in figures.items()}
