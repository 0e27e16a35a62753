"""Reads the reports of usage and costs that providers give to administrators.

Shapes are those of `openai.types.admin.organization` (openai 3.54) and of the reference pages of Anthropic's
`usage_report/messages` and `cost_report` and of OpenRouter's `activity`. They were met on the simulator only.
"""

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, NamedTuple

from .._errors import RequestError
from .._json_values import JSONObject

WEB_SEARCH = "web search"
"""The model of searches, whose costs are not listed with those of a model."""
_MOST = 10**15
"""No report has as many tokens or USD in a row."""

_WRITES = "ephemeral_5m_input_tokens ephemeral_1h_input_tokens"
_FIELDS = {
    "input_tokens": f"input_tokens uncached_input_tokens cache_read_input_tokens {_WRITES} prompt_tokens",
    "output_tokens": "output_tokens completion_tokens",
    "cache_read_input_tokens": "input_cached_tokens cache_read_input_tokens",
    "cache_write_input_tokens": f"input_cache_write_tokens {_WRITES}",
    "cache_write_1h_input_tokens": "ephemeral_1h_input_tokens",
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
    """Those of `Usage` that the report tells."""
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
        problem = "is no report of usage or costs as the administration API answers it (docs/costs.md)"
    raise RequestError(f"{where} {problem}")


def _read_pages(pages: list[Any], seen: set[str] | None) -> Iterator[Entry]:
    if pages[-1].get("has_more"):
        raise RequestError("goes on: ask for more days with limit=31, or save all pages in one list")
    for page in pages:
        rows = [(bucket, row) for bucket in page["data"] for row in bucket.get("results", [bucket])]
        if seen is not None:
            new = {_name_row(bucket, row) for bucket, row in rows}
            if new & seen:
                raise RequestError("has rows that another page or file has too: give each day once")
            seen |= new
        named = {name for _, row in rows for name, value in row.items() if value is not None}
        for bucket in page["data"]:
            yield from _read_bucket(bucket, named)


def _name_row(bucket: JSONObject, row: JSONObject) -> str:
    """What only one row of a report has: its time and its groups; all of OpenRouter's, which tell no key."""
    groups = [
        (name, value)
        for name, value in sorted(row.items())
        if row is bucket or (name != "amount" and (value is None or isinstance(value, (str, bool))))
    ]
    return f"{bucket.get('start_time')} {bucket.get('starting_at')} {groups}"


def _read_bucket(bucket: JSONObject, named: Collection[str]) -> Iterator[Entry]:
    names: tuple[Any, ...]
    if "date" in bucket:
        names = "openrouter", date.fromisoformat(bucket["date"][:10]).isoformat(), bucket["model"]
        alias = bucket.get("model_permaslug") or ""
        # With a key of one's own, its provider's bill is beside OpenRouter's.
        usd = _usd(bucket["usage"]) + _usd(bucket["byok_usage_inference"])
        yield Entry("usage", *names, counts=_count(bucket), requests=_whole(bucket["requests"]), alias=alias)
        yield Entry("cost", *names, usd=usd, alias=alias)
    elif "start_time" in bucket:
        for row in bucket["results"]:
            batch, cost = row.get("batch"), row["object"] == "organization.costs.result"
            model = _need(row, "line_item" if cost else "model", named)
            model = WEB_SEARCH if WEB_SEARCH in model.lower() else model.partition(", ")[0]
            delivery = None if batch is None else "batch" if batch else "live"
            day = f"{datetime.fromtimestamp(bucket['start_time'], UTC):%Y-%m-%d}"
            names = "openai", day, model, row.get("api_key_id"), delivery, row.get("project_id")
            if cost:
                yield Entry("cost", *names, usd=_usd(row["amount"]["value"], row["amount"]["currency"]))
            else:
                yield Entry("usage", *names, _count(row), _whole(row["num_model_requests"]))
    else:
        for row in bucket["results"]:
            cost, tier = "amount" in row, row.get("service_tier")
            model = row.get("model") or _need(row, "description" if cost else "model", named)
            model = WEB_SEARCH if row.get("cost_type") == "web_search" else model
            delivery = tier and ("batch" if tier == "batch" else "live")
            day = date.fromisoformat(bucket["starting_at"][:10]).isoformat()
            names = "anthropic", day, model, row.get("api_key_id"), delivery, row.get("workspace_id")
            if cost:
                # The amount is in cents.
                yield Entry("cost", *names, usd=_usd(row["amount"], row["currency"]).scaleb(-2))
            else:
                yield Entry("usage", *names, _count(row | row["cache_creation"]))


def _need(row: JSONObject, name: str, named: Collection[str]) -> str:
    """The name of a row. In a report that names other rows, one without a name is an adjustment."""
    if row.get(name) is None and name not in named:
        raise RequestError(f"has no {name} in its rows: ask for it with group_by[]={name}")
    return str(row.get(name) or f"no {name}")


def _usd(amount: object, currency: str = "USD") -> Decimal:
    if currency.upper() != "USD":
        raise RequestError(f"is in {currency}, and a ledger in USD")
    usd = Decimal(str(amount))
    if not -_MOST < usd < _MOST:
        raise ValueError(amount)
    return usd


def _whole(count: object) -> int:
    if type(count) is not int or not 0 <= count < _MOST:
        raise ValueError(count)
    return count


def _count(row: JSONObject) -> dict[str, int]:
    counts = {}
    for name, parts in _FIELDS.items():
        if known := [_whole(row[part]) for part in parts.split() if row.get(part) is not None]:
            counts[name] = sum(known)
    return counts
