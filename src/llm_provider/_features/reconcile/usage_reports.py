"""Reads the reports of usage and costs that providers give to administrators.

The shapes are in `openai.types.admin.organization` (openai 3.54), of `anthropic.types.beta.organization`
(anthropic 2.11: `analytics/usage` and `analytics/cost`), and of the reference pages of Anthropic's
`usage_report/messages` and `cost_report` and of OpenRouter's `activity`. They were met on the simulator only.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from ..._core.errors import RequestError
from ..._core.json_values import JSONObject

WEB_SEARCH = "web search"
"""The model of searches, whose costs are not listed with the costs of a model."""
_MOST, _DECIMALS = 10**15, 12
"""No report has as many tokens or USD in a row. Further decimals are of floating-point sums."""

_LINE_ITEM = re.compile(r"(?:[^|,]+ \| )?([^\s,]+)(?: (?:text|audio|image))?(?:, .*)?")
"""OpenAI's names of costs, such as `flex | MODEL, output, long context` and `MODEL audio, input`."""

_WRITES = "ephemeral_5m_input_tokens ephemeral_1h_input_tokens"
_FIELDS = {
    "input_tokens": f"input_tokens uncached_input_tokens cache_read_input_tokens {_WRITES} prompt_tokens",
    "output_tokens": "output_tokens completion_tokens",
    "cache_read_input_tokens": "input_cached_tokens cache_read_input_tokens",
    "cache_write_input_tokens": f"input_cache_write_tokens {_WRITES}",
    "cache_write_1h_input_tokens": "ephemeral_1h_input_tokens",
    "cache_write_12h_input_tokens": "input_cache_write_12h_tokens",
    "reasoning_output_tokens": "reasoning_tokens",
    "audio_input_tokens": "input_audio_tokens input_cached_audio_tokens",
    "cache_read_audio_input_tokens": "input_cached_audio_tokens",
    "image_input_tokens": "input_image_tokens input_cached_image_tokens",
    "audio_output_tokens": "output_audio_tokens",
    "image_output_tokens": "output_image_tokens",
}
"""A count of `Usage` → the fields of OpenAI's, Anthropic's and OpenRouter's reports that make it together."""


class Entry(NamedTuple):
    """A row of a report. `account` and `project` are the provider's ids; what is not told is None."""

    measure: str
    """"usage" or "cost"."""
    provider: str
    day: str
    model: str
    account: str | None = None
    delivery: str | None = None
    project: str | None = None
    counts: Mapping[str, int] = {}
    """The counts of `Usage` that the report tells."""
    requests: int | None = None
    usd: Decimal = Decimal(0)
    alias: str = ""
    """Another name of the model, which replies may have."""


def read_report(where: str, report: Any, seen: set[str] | None = None) -> list[Entry]:
    """The rows of a page, or of a list of pages. A `RequestError` for anything else names its place.

    With `seen`, it refuses a row that an earlier page had.
    """
    try:
        return list(_read_pages(report if isinstance(report, list) else [report], seen))
    except RequestError as error:
        problem = error.message
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, OSError):
        problem = "is no report of usage or costs as the administration API answers it (docs/prices.md)"
    raise RequestError(f"{where} {problem}")


def _read_pages(pages: list[Any], seen: set[str] | None) -> Iterator[Entry]:
    if pages[-1].get("has_more"):
        raise RequestError("goes on: ask for more days with limit=31, or save all pages in one list")
    for page in pages:
        rows: list[tuple[JSONObject, JSONObject]] = []
        for bucket in page["data"]:
            # Anthropic's newer reports have rows in the place of buckets, with their groups apart.
            own = [bucket["group"] | bucket.get("cost", bucket.get("usage"))] if "group" in bucket else None
            rows += ((bucket, row) for row in own or bucket.get("results", [bucket]))
        if seen is not None:
            # What only one row of a report has: its time and groups; all of OpenRouter's, which tell no key.
            new = set[str]()
            for bucket, row in rows:
                texts = {
                    name: each for name, each in row.items() if isinstance(each, (str, bool, type(None)))
                }
                groups = row if row is bucket else texts | {"amount": "amount" in row}
                times = f"{bucket.get('start_time')} {bucket.get('starting_at')}"
                new.add(f"{times} {sorted(groups.items())}")
            if new & seen:
                raise RequestError("has rows that another page or file has too: give each day once")
            seen |= new
        named = {name for _, row in rows for name, value in row.items() if value is not None}
        for bucket, row in rows:
            yield from _read_row(bucket, row, named)


def _read_row(bucket: JSONObject, row: JSONObject, named: Collection[str]) -> Iterator[Entry]:
    if "date" in row:
        day, alias = date.fromisoformat(row["date"][:10]).isoformat(), row.get("model_permaslug") or ""
        entry = Entry("usage", "openrouter", day, row["model"], project=row.get("workspace_id"), alias=alias)
        yield entry._replace(counts=_count(row), requests=_read_count(row["requests"]))
        # With a key of one's own, its provider's bill is beside OpenRouter's.
        usd = _usd(row["usage"]) + _usd(row.get("byok_usage_inference"))
        yield entry._replace(measure="cost", usd=usd)
        return
    if "start_time" in bucket:
        cost, batch = row["object"] == "organization.costs.result", row.get("batch")
        if not cost and "input_tokens" not in row:
            return  # It is of images, speech, searches, files or sessions.
        model = _need(row, "line_item" if cost else "model", named)
        if cost:
            item, searched = _LINE_ITEM.fullmatch(model), WEB_SEARCH in model.lower()
            model = WEB_SEARCH if searched else item[1] if item else model
        delivery = None if batch is None else "batch" if batch else "live"
        day = f"{datetime.fromtimestamp(bucket['start_time'], UTC):%Y-%m-%d}"
        entry = Entry("usage", "openai", day, model, row.get("api_key_id"), delivery, row.get("project_id"))
        amount, requests = row.get("amount") or {}, row.get("num_model_requests")
        usd = _usd(amount.get("value"), amount.get("currency"))
    else:
        cost, kind, tier = "amount" in row, row.get("cost_type"), row.get("service_tier")
        tool = kind not in (None, "tokens")
        name = "description" if "description" in row else "cost_type" if tool else "model"
        model = WEB_SEARCH if kind == "web_search" else row.get("model") or _need(row, name, named)
        delivery = tier and ("batch" if tier == "batch" else "live")
        day = date.fromisoformat(bucket["starting_at"][:10]).isoformat()
        names = day, model, row.get("api_key_id"), delivery, row.get("workspace_id")
        entry = Entry("usage", "anthropic", *names)
        # The amount is in cents.
        usd, requests = _usd(row.get("amount"), row.get("currency")).scaleb(-2), row.get("requests")
        row = row | row.get("cache_creation", {})
    if cost:
        yield entry._replace(measure="cost", usd=usd)
    else:
        yield entry._replace(counts=_count(row), requests=requests and _read_count(requests))


def _need(row: JSONObject, name: str, named: Collection[str]) -> str:
    """The name of a row. In a report that names other rows, one without a name is an adjustment."""
    if row.get(name) is None and name not in named:
        raise RequestError(f"has no {name} in its rows: ask for it with group_by[]={name}")
    return str(row.get(name) or f"no {name}")


def _usd(amount: object, currency: str | None = None) -> Decimal:
    if currency and currency.upper() != "USD":
        raise RequestError(f"is in {currency}, and a ledger in USD")
    usd = Decimal(str(amount or 0))
    if not -_MOST < usd < _MOST:
        raise ValueError(amount)
    return usd if int(usd.as_tuple().exponent) > -_DECIMALS else round(usd, _DECIMALS)


def _read_count(count: Any) -> int:
    if isinstance(count, bool) or count != int(count) or not 0 <= count < _MOST:
        raise ValueError(count)
    return int(count)


def _count(row: JSONObject) -> dict[str, int]:
    counts = {}
    for name, parts in _FIELDS.items():
        if known := [_read_count(row[part]) for part in parts.split() if row.get(part) is not None]:
            counts[name] = sum(known)
    return counts
