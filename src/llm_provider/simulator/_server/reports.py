"""The reports of usage and costs of the administration APIs of OpenAI, Anthropic and OpenRouter.

Shapes are those of ``openai.types.admin.organization`` and of the reference pages of Anthropic's
``usage_report/messages`` and ``cost_report`` and OpenRouter's ``activity``. Keys of administrators contain
the word ``admin`` here, or ``provisioning`` at OpenRouter; other keys are refused with 401 or 403.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeAlias

from .._records.books import Account, Books, Sums

if TYPE_CHECKING:
    from .._settings import Settings

__all__ = ["Report", "find_report"]

Query: TypeAlias = "Mapping[str, list[str]]"
Report: TypeAlias = "Callable[[Books, Callable[[str], Settings], Query, str], tuple[int, Any]]"

_LINE_ITEMS = {
    "input": "input", "cache_read": "cached input", "cache_write": "cache write input", "output": "output",
    "web_search": "web search",
}  # fmt: skip
_TOKEN_TYPES = {
    "input": "uncached_input_tokens", "cache_read": "cache_read_input_tokens", "output": "output_tokens",
    "cache_write": "cache_creation.ephemeral_5m_input_tokens", "web_search": None,
}  # fmt: skip


def find_report(path: str) -> Report | None:
    """The report at a path; None for other paths.

    >>> find_report("/openai/v1/organization/costs") is not None, find_report("/v1/responses")
    (True, None)
    """
    for pattern, report in _REPORTS:
        if re.fullmatch(pattern, path):
            return report
    return None


def _group(
    books: Books, day: str, provider: str, kinds: tuple[str, ...], names: list[str], keys: list[str]
) -> Iterator[tuple[dict[str, Any], Sums]]:
    """The sums of a day, of all keys or some, by some names of accounts, with None for the other names."""
    groups: dict[tuple[Any, ...], Sums] = {}
    for account, sums in sorted(books.items()):
        if keys and account.key not in keys:
            continue
        if (account.provider, account.day) == (provider, day) and account.kind in kinds:
            group = tuple(getattr(account, name) for name in names)
            groups.setdefault(group, Sums()).add(sums.requests, sums.counts, sums.usd)
    for group, sums in groups.items():
        yield dict.fromkeys(Account._fields) | dict(zip(names, group, strict=True)), sums


def _list_days(query: Query, first: datetime, last: datetime, most: int) -> tuple[list[date], str | None]:
    """The days of a page, and the name of the next page."""
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    number = max(0, math.ceil((last - midnight) / timedelta(1)))
    days = [first.date() + timedelta(day) for day in range(number)]
    start, limit = int(query.get("page", ["0"])[0]), min(most, int(query.get("limit", ["7"])[0]))
    more = start + limit < len(days)
    return days[start : start + limit], str(start + limit) if more else None


def _names(query: Query, known: dict[str, str]) -> list[str]:
    """The names to group by: those of the accounts for those of the query."""
    wanted_names = [*query.get("group_by[]", []), *query.get("group_by", [])]
    return [known[name] for name in wanted_names if name in known]


def _report_openai(kind: str) -> Report:
    def report(books: Books, settings: Callable[[str], Settings], query: Query, key: str) -> tuple[int, Any]:
        if "admin" not in key:
            message = "You have insufficient permissions for this operation. Missing scopes: api.usage.read."
            return 401, {"error": {"message": message, "type": "invalid_request_error", "code": None}}
        first = datetime.fromtimestamp(int(query["start_time"][0]), UTC)
        end = query.get("end_time", [None])[0]
        last = datetime.now(UTC) if end is None else datetime.fromtimestamp(int(end), UTC)
        days, page = _list_days(query, first, last, 180 if kind == "costs" else 31)
        wanted = query.get("api_key_ids[]", [])
        decimals = settings("openai").cost_decimals
        data = []
        for day in days:
            midnight = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
            results = []
            kinds = ("completions", "embeddings") if kind == "costs" else (kind,)
            known = {"model": "model", "api_key_id": "key", "batch": "batch", "line_item": "model"}
            names = _names(query, known)
            for group, sums in _group(books, day.isoformat(), "openai", kinds, names, wanted):
                results += list(_write_openai(kind, group, sums, decimals))
            data.append(
                {"object": "bucket", "start_time": midnight, "end_time": midnight + 86400, "results": results}
            )
        return 200, {"object": "page", "data": data, "has_more": page is not None, "next_page": page}

    return report


def _write_openai(
    kind: str, group: dict[str, Any], sums: Sums, decimals: int | None
) -> Iterator[dict[str, Any]]:
    names = {"project_id": None, "api_key_id": group["key"]}
    counts = sums.counts
    if kind == "costs":
        for name, amount in sums.usd.items():
            if amount:
                value = float(_round(amount, decimals))
                item = f"{group['model']}, {_LINE_ITEMS.get(name, name)}" if group["model"] else None
                result = {"amount": {"value": value, "currency": "usd"}, "line_item": item, "quantity": None}
                yield {"object": "organization.costs.result", **result, **names}
        return
    names |= {"user_id": None, "model": group["model"]}
    requests = {"num_model_requests": sums.requests, "input_tokens": counts["input_tokens"]}
    if kind == "embeddings":
        yield {"object": "organization.usage.embeddings.result", **requests, **names}
        return
    cached, written = counts["cache_read_input_tokens"], counts["cache_write_input_tokens"]
    yield {
        "object": "organization.usage.completions.result",
        **requests,
        "output_tokens": counts["output_tokens"],
        "input_cached_tokens": cached,
        "input_cache_write_tokens": written,
        "input_uncached_tokens": counts["input_tokens"] - cached - written,
        "input_audio_tokens": 0,
        "output_audio_tokens": 0,
        "batch": group["batch"],
        "service_tier": None,
        **names,
    }


def _report_anthropic(kind: str) -> Report:
    def report(books: Books, settings: Callable[[str], Settings], query: Query, key: str) -> tuple[int, Any]:
        if "admin" not in key:
            error = {"type": "authentication_error", "message": "invalid x-api-key"}
            return 401, {"type": "error", "error": error}
        first = _read_time(query["starting_at"][0])
        end = query.get("ending_at", [None])[0]
        last = datetime.now(UTC) if end is None else _read_time(end)
        days, page = _list_days(query, first, last, 31)
        known = {"model": "model", "api_key_id": "key", "service_tier": "batch"}
        names = ["model", "batch"] if kind == "costs" else _names(query, known)
        # The costs are those of all keys.
        wanted = [] if kind == "costs" else query.get("api_key_ids[]", [])
        decimals, kinds = settings("anthropic").cost_decimals, ("completions",)
        data = []
        for day in days:
            results = []
            for group, sums in _group(books, day.isoformat(), "anthropic", kinds, names, wanted):
                results += list(_write_anthropic(kind, group, sums, decimals))
            data.append(
                {
                    "starting_at": f"{day}T00:00:00Z",
                    "ending_at": f"{day + timedelta(1)}T00:00:00Z",
                    "results": results,
                }
            )
        return 200, {"data": data, "has_more": page is not None, "next_page": page}

    return report


def _write_anthropic(
    kind: str, group: dict[str, Any], sums: Sums, decimals: int | None
) -> Iterator[dict[str, Any]]:
    tier = {None: None, True: "batch", False: "standard"}[group["batch"]]
    names = {"workspace_id": None, "context_window": "0-200k", "model": group["model"], "service_tier": tier}
    counts = sums.counts
    if kind == "costs":
        for name, amount in sums.usd.items():
            if amount:
                token_type = _TOKEN_TYPES.get(name)
                tokens = {**names, "cost_type": "tokens", "token_type": token_type}
                search = {**dict.fromkeys(names), "cost_type": "web_search", "token_type": None}
                yield {
                    "amount": f"{_round(amount, decimals) * 100:f}",
                    "currency": "USD",
                    "description": f"{group['model']} Usage - {token_type or 'Web Search'}",
                    **(search if name == "web_search" else tokens),
                }
        return
    cached, written = counts["cache_read_input_tokens"], counts["cache_write_input_tokens"]
    yield {
        "uncached_input_tokens": counts["input_tokens"] - cached - written,
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": written},
        "cache_read_input_tokens": cached,
        "output_tokens": counts["output_tokens"],
        "server_tool_use": {"web_search_requests": counts["web_searches"]},
        "api_key_id": group["key"],
        **names,
    }


def _report_openrouter(
    books: Books, settings: Callable[[str], Settings], query: Query, key: str
) -> tuple[int, Any]:
    if "provisioning" not in key:
        message = "Only management keys can fetch activity for an account"
        return 403, {"error": {"code": 403, "message": message}}
    days = sorted({account.day for account in books if account.provider == "openrouter"})
    wanted = query.get("date", [None])[0]
    data = []
    for day in days:
        if wanted not in (None, day):
            continue
        kinds = ("completions", "embeddings")
        for group, sums in _group(books, day, "openrouter", kinds, ["model"], []):
            data.append(
                {
                    "date": day,
                    "model": group["model"],
                    "model_permaslug": group["model"],
                    "endpoint_id": "00000000-0000-4000-8000-000000000000",
                    "provider_name": "Simulator",
                    "usage": float(
                        _round(sum(sums.usd.values(), Decimal(0)), settings("openrouter").cost_decimals)
                    ),
                    "byok_usage_inference": 0.0,
                    "requests": sums.requests,
                    "prompt_tokens": sums.counts["input_tokens"],
                    "completion_tokens": sums.counts["output_tokens"],
                    "reasoning_tokens": sums.counts["reasoning_output_tokens"],
                }
            )
    return 200, {"data": data}


def _round(amount: Decimal, decimals: int | None) -> Decimal:
    return amount if decimals is None else round(amount, decimals)


def _read_time(text: str) -> datetime:
    return datetime.fromisoformat(text)


_REPORTS: tuple[tuple[str, Report], ...] = (
    (r"(?:/openai)?/v1/organization/usage/completions", _report_openai("completions")),
    (r"(?:/openai)?/v1/organization/usage/embeddings", _report_openai("embeddings")),
    (r"(?:/openai)?/v1/organization/costs", _report_openai("costs")),
    (r"(?:/anthropic)?/v1/organizations/usage_report/messages", _report_anthropic("usage")),
    (r"(?:/anthropic)?/v1/organizations/cost_report", _report_anthropic("costs")),
    (r"/openrouter(?:/api)?/v1/activity", _report_openrouter),
)
