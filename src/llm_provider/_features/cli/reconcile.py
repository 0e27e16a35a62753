"""The command `llm-provider reconcile`: a ledger beside the provider's own reports of usage and costs."""

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

import click

from ..._core.client.call_runner import prices_of
from ..._core.errors import APIResponseValidationError, LLMError, MissingAPIKeyError, RequestError
from ..._core.requests.api_keys import APIKey
from ..._core.requests.routing import Target, resolve
from ..._core.runtime import clock
from ..._core.runtime.files import read_text
from ..._core.settings import read_prices
from ..._core.words import format_usd
from ..reconcile.reconciliation import Line, Row, list_lines, reconcile
from ..reconcile.usage_reports import read_report
from .output import FAILED, OK, PROGRAM, print_table, printable, say
from .parsing import Command, parse_age, parse_since, prices_option
from .usage import list_files

_KEYS = {
    "openai": ("OPENAI_ADMIN_KEY",),
    "anthropic": ("ANTHROPIC_ADMIN_KEY", "ANTHROPIC_ADMIN_API_KEY"),
    "openrouter": ("OPENROUTER_PROVISIONING_KEY", "OPENROUTER_MANAGEMENT_KEY"),
}
_REPORTS = {
    "openai": {
        "/organization/usage/completions": "model api_key_id project_id batch",
        "/organization/usage/embeddings": "model api_key_id project_id",
        "/organization/costs": "line_item api_key_id project_id",
    },
    "anthropic": {
        "/v1/organizations/usage_report/messages": "model api_key_id workspace_id service_tier",
        "/v1/organizations/cost_report": "description workspace_id",
    },
    "analytics": {
        "/v1/organizations/analytics/usage": "model api_key_id workspace_id service_tier",
        "/v1/organizations/analytics/cost": "model api_key_id workspace_id service_tier cost_type",
    },
}
"""The addresses of the reports, and by what they are grouped. Anthropic has older ones, and `analytics`."""
_BETA = {"headers": {"anthropic-beta": "analytics-usage-cost-2026-08-24"}}
_Query: TypeAlias = tuple[str, dict[str, Any]]
_MEASURES = ("cost", "usage")
_DAY, _MOST_DAYS = 86_400, 30
"""Days may be 30 apart. Rows of batches are billed when they are processed, and collected later."""
_RETRIES = 5
_MOST_ROWS = 30
_HASH = 64
"""Characters of OpenRouter's id of a key."""
_EPILOG = f"""\
LEDGERS are what `Client(ledger=FILE)` or LLM_PROVIDER_LEDGER=FILE has written. Reports are fetched with
the key of an administrator ({", ".join(names[0] for names in _KEYS.values())}),
or read from files that have what the administration API answered. Days are those of UTC.

  {PROGRAM} reconcile costs.jsonl
  {PROGRAM} reconcile costs.jsonl --report usage.json --report costs.json --since 2026-11-01
  {PROGRAM} reconcile costs.jsonl --key key_abc=746b4ad1ca9129e1   # this key alone

exit codes: 0 at most the tolerance is unexplained; 1 more, or a request failed; 2 wrong usage, or no data
"""
_KEY = "compare this key, by the provider's id and the ledger's fingerprint; repeatable"
_SAVED = click.Path(path_type=Path)


@click.command(cls=Command, epilog=_EPILOG)
@click.argument("files", metavar="[LEDGERS]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--provider", type=click.Choice(list(_KEYS)), help="of this provider alone")
@click.option("--report", "reports", metavar="FILE", multiple=True, type=_SAVED, help="a saved report (JSON)")
@click.option("--since", metavar="WHEN", type=parse_since, help="from a day (2026-11-20) or an age (7d) on")
@click.option("--until", metavar="WHEN", type=parse_since, help="up to this day")
@click.option("--key", "keys", metavar="ID=FINGERPRINT", multiple=True, help=_KEY)
@click.option("--project", metavar="ID", help="only usage of this project or workspace")
@click.option("--border", metavar="TIME", type=parse_age, default="1h", help="how far days may be apart (1h)")
@click.option("--tolerance", metavar="PERCENT", type=float, default=0.1, help="most unexplained part (0.1)")
@prices_option
@click.option("--json", "as_json", is_flag=True, help="print one JSON object; amounts are USD")
def run_reconcile(
    files: tuple[Path, ...], provider: str | None, reports: tuple[Path, ...], since: float | None,
    until: float | None, keys: tuple[str, ...], project: str | None, border: float, tolerance: float, *,
    as_json: bool,
) -> int:  # fmt: skip
    """Compare a ledger with the provider's own reports of usage and costs."""
    if not tolerance >= 0:
        raise RequestError("--tolerance is a percentage of 0 or more")
    accounts = _parse_keys(keys)
    servers = {name: resolve(f"{name}/any") for name in _KEYS if provider in (None, name)}
    lines = _read_ledgers(list_files(files), servers, accounts)
    days = sorted({line.day for line in lines})
    first, last = (
        f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}" if moment is not None else edge
        for moment, edge in ((since, min(days, default="")), (until, max(days, default="")))
    )
    inner = [line.posting.key for line in lines if first <= line.day <= last]
    if not inner:
        raise RequestError(
            f"the ledger has no billed line of {', '.join(servers)}, of these days and keys: "
            f"`{PROGRAM} usage --by day` shows what it has"
        )
    border = min(border, _MOST_DAYS * _DAY)
    more = max(1, math.ceil(border / _DAY))
    before = _MOST_DAYS if any(key.delivery != "live" for key in inner) else more
    begin, end = (datetime.fromisoformat(f"{day}T00:00:00+00:00") for day in (first, last))
    begin, end = begin - timedelta(before), end + timedelta(more + 1)
    # OpenRouter's reports of two keys may have equal rows.
    billed, seen = sorted({key.provider for key in inner}), set[str]() if reports or not accounts else None
    pages = {str(path): _load(path) for path in reports}
    keyless: list[MissingAPIKeyError] = []
    for name in billed if not reports else ():
        try:
            pages[f"the report of {name}"] = _fetch(servers[name], begin, end, accounts)
        except MissingAPIKeyError as error:
            keyless.append(error)
    if keyless and not pages:
        raise keyless[0]
    for missing in keyless:
        say("warning", f"{missing.provider} is not compared: {missing.message}")
    left_out = {missing.provider for missing in keyless}
    lines = [line for line in lines if line.posting.key.provider not in left_out]
    billed = [name for name in billed if name not in left_out]
    entries = [
        entry._replace(account=accounts.get(entry.account or ""))
        for where, report in pages.items()
        for entry in read_report(where, report, seen)
        if entry.provider in servers
        and project in (None, entry.project or "default")
        and (not accounts or entry.account in accounts or entry.provider == "openrouter")
    ]
    if not any(f"{begin:%Y-%m-%d}" <= entry.day < f"{end:%Y-%m-%d}" for entry in entries):
        raise RequestError(
            f"the report has nothing from {first} to {last}: usage is reported some hours late, OpenRouter's "
            "when the day has ended; is it the right organisation, project and key, and is a saved report "
            "grouped by them?"
        )
    # Anthropic's costs are not listed by key.
    requested = {pair for pair in product(_MEASURES, billed) if not accounts or pair != ("cost", "anthropic")}
    names: dict[str, Any] = {"days": (first, last), "border": border, "by_key": bool(accounts)}
    requested = set() if reports else requested
    rows = reconcile(lines, entries, prices_of(read_prices())(), requested=requested, **names)
    rows = rows if reports else _leave_out_unreported(rows)
    sums = {measure: _add_up(rows, measure) for measure in _MEASURES}
    if as_json:
        print(json.dumps({"from": first, "to": last, **sums, "rows": [row.to_dict() for row in rows]}))
    else:
        _print(rows, sums, billed)
    return OK if all(part["share"] * 100 <= tolerance for part in sums.values()) else FAILED


def _leave_out_unreported(rows: list[Row]) -> list[Row]:
    """The rows of days that OpenRouter can report, with a warning."""
    now = datetime.fromtimestamp(clock.time(), UTC)
    reported = {f"{now - timedelta(days):%Y-%m-%d}" for days in range(1, _MOST_DAYS + 1)}
    reported |= {row.name.day for row in rows if row.name.provider == "openrouter" and row.amounts}
    compared = [row for row in rows if row.name.provider != "openrouter" or row.name.day in reported]
    if missing := len(rows) - len(compared):
        about = "rows are not compared: OpenRouter reports the last 30 days that have ended"
        say("warning", f"{missing} {about}")
    return compared


def _read_ledgers(files: list[Path], servers: Mapping[str, Target], accounts: dict[str, str]) -> list[Line]:
    """The lines of these servers and keys, with a warning about lines of others with the same format."""
    known, lines, others, lines_of = {*accounts.values()}, list[Line](), list[Line](), Counter[str]()
    for line in list_lines(files):
        server = servers.get(line.posting.key.provider)
        lines_of[line.posting.key.provider] += 1
        if server and (not known or line.fields.get("account") in known):
            (lines if line.fields.get("base_url") in (None, server.base_url) else others).append(line)
    if others:
        say("warning", f"{len(others):,} lines of other servers (`base_url`) are not compared")
    for name in sorted({*lines_of} - {*_KEYS}) if len(servers) > 1 else ():
        say("warning", f"{lines_of[name]:,} lines of {name} are not compared, as it has no such reports")
    return lines


def _parse_keys(keys: tuple[str, ...]) -> dict[str, str]:
    """The fingerprint of each key by its id. OpenRouter's id is a hash, which begins with it."""
    accounts = {}
    for text in keys:
        name, _, fingerprint = text.partition("=")
        accounts[name] = fingerprint or (name[:16] if len(name) == _HASH else "")
        if not accounts[name]:
            raise RequestError("--key is ID=FINGERPRINT: the id of the report, and the ledger's `account`")
    return accounts


def _load(path: Path) -> Any:
    try:
        return json.loads(read_text(path.expanduser()))
    except FileNotFoundError:
        problem = f"there is no {path}"
    except RequestError:
        raise
    except (ValueError, RecursionError):
        problem = f"{path} is no JSON"
    raise RequestError(f"{problem}: save what the administration API answers (docs/prices.md)")


def _fetch(
    target: Target, begin: datetime, end: datetime, accounts: Mapping[str, str], kind: str = ""
) -> list[Any]:
    """The pages of a provider's reports, of Anthropic the newer ones if it does not have the others."""
    from ..._core.journey.free_requests import scrub_error
    from ..._core.requests.api_keys import find_written_key
    from ..._core.runtime import event_loop

    provider, variables = target.provider, _KEYS[target.provider]
    key = find_written_key(provider, variables)
    if key is None:
        message = f"no key of an administrator: set {' or '.join(variables)}, give saved reports by --report"
        raise MissingAPIKeyError(f"{message}, or compare others by --provider", provider=provider)
    queries = _list_queries(kind or provider, begin, end, accounts)
    try:
        return event_loop.wait(_fetch_pages(target, key, queries, (end - begin).days))
    except LLMError as error:
        if (provider, error.status, kind) == ("anthropic", 404, ""):
            return _fetch(target, begin, end, accounts, "analytics")
        remedy = ""
        if error.status in (401, 403):
            remedy = f"; {variables[0]} must be the key of an administrator: a plain key is refused"
        raise scrub_error(error, key, "the report", provider, remedy) from None


def _list_queries(kind: str, begin: datetime, end: datetime, accounts: Mapping[str, str]) -> list[_Query]:
    """The addresses and parameters of a provider's reports. Of the newer ones each has at most 31 days."""
    if kind == "openrouter":
        every: _Query = "/activity", {}
        return [("/activity", {"api_key_hash": name}) for name in accounts if len(name) == _HASH] or [every]
    days, newer = (end - begin).days, kind == "analytics"
    edges = [*(begin + timedelta(day) for day in range(0, days, 31 if newer else days)), end]
    names, times = ("starting_at", "ending_at"), [f"{edge:%Y-%m-%dT%H:%M:%SZ}" for edge in edges]
    if kind == "openai":
        names, times = ("start_time", "end_time"), [f"{edge.timestamp():.0f}" for edge in edges]
    width = {"time_bucket_width": "1d", "limit": 1000} if newer else {"bucket_width": "1d", "limit": 31}
    return [
        (path, {**dict(zip(names, span, strict=True)), **width, "group_by[]": groups.split()})
        for path, groups in _REPORTS[kind].items()
        for span in pairwise(times)
    ]


async def _fetch_pages(target: Target, key: APIKey, queries: list[_Query], days: int) -> list[Any]:
    """The pages of reports. Each has one day or more, so there are no more pages than days."""
    from ..._core.formats import registry, sdk_clients
    from ..._core.journey.free_requests import send_with_retries

    adapter, pages, most = target.route.adapter, [], days * len(queries)
    client = getattr(sdk_clients, f"{adapter}_client")(target, key)
    try:
        for path, query in queries:
            address = f"{path}?{urlencode(query, doseq=True)}"
            options = _BETA if path in _REPORTS["analytics"] else {}
            work = partial(client.get, address, cast_to=object, options=options)
            page: Any = await send_with_retries(work, registry.load(adapter), _RETRIES)
            if not isinstance(page, dict):
                raise APIResponseValidationError("the answer is no JSON object")
            pages.append(page)
            if page.get("has_more"):
                following = path, {**query, "page": page.get("next_page")}
                if not page.get("next_page") or following in queries or len(pages) > most:
                    raise APIResponseValidationError("the report goes on, and names no further page")
                # The list grows while it is read.
                queries.append(following)
    finally:
        await sdk_clients.close_clients(client)
    return pages


def _add_up(rows: list[Row], measure: str) -> dict[str, Any]:
    """The sums of one measure in USD. Parts of differences are added up without their signs."""
    rows = [row for row in rows if row.name.measure == measure]
    mine, theirs = (float(sum(row.usd[side] for row in rows)) for side in (0, 1))
    unexplained, explained = float(sum(abs(row.unexplained) for row in rows)), Counter[str]()
    for row in rows:
        explained.update({word: float(abs(amount)) for word, amount in row.explained.items()})
    compared = sorted({row.name.provider for row in rows})
    sums = {"compared": compared, "ledger": mine, "report": theirs, "explained": explained}
    return sums | {"unexplained": unexplained, "share": unexplained / (max(mine, theirs) or 1)}


def _print(rows: list[Row], sums: Mapping[str, dict[str, Any]], billed: Collection[str]) -> None:
    rows = sorted((row for row in rows if row.usd[0] != row.usd[1]), key=lambda row: -abs(row.unexplained))
    names = ["measure", "provider", "day", "model", "key", "delivery"]
    lines = [
        [*(printable(name) or "-" for name in row.name), *map(format_usd, (*row.usd, row.unexplained))]
        for row in rows[:_MOST_ROWS]
    ]
    if lines:
        print_table([*names, "ledger", "report", "unexplained"], lines, left=names)
    for row in rows[:_MOST_ROWS]:
        signed = {word: f"{'+' * (usd > 0)}{format_usd(usd)}" for word, usd in row.explained.items()}
        about = [f"{usd} by {word}" for word, usd in signed.items()] + [row.reason] * bool(row.reason)
        for name, (mine, theirs) in row.tokens.items() if row.name.measure == "usage" else ():
            about += [f"{name} {mine:,} and {theirs:,}"] if mine != theirs else []
        candidates = [f"{at} {line.fields.get('error') or ''}".strip() for at, line in row.candidates.items()]
        if candidates:
            about.append(f"{len(candidates)} lines may explain it: {', '.join(candidates[:3])}")
        print(printable(f"{' '.join(filter(None, row.name))}: {'; '.join(about)}"))
    if len(rows) > _MOST_ROWS:
        print(f"{len(rows) - _MOST_ROWS} smaller differences: --json has them")
    for measure, part in sums.items():
        text = f"{format_usd(part['ledger'])} in the ledger, {format_usd(part['report'])} in the report"
        text += "".join(f", {format_usd(amount)} by {word}" for word, amount in part["explained"].items())
        if part["compared"]:
            print(f"{measure}: {text}, {format_usd(part['unexplained'])} ({part['share']:.4%}) unexplained")
        if without := ", ".join(name for name in billed if name not in part["compared"]):
            print(f"{measure}: not compared for {without}, as no report has it")
