"""What an account is asked, and what is made of the answers: one function for each group of rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._errors import (
    AuthenticationError,
    ContextWindowExceededError,
    NotFoundError,
    OutputError,
    PermissionDeniedError,
    RateLimitError,
)
from .._limits.headers import headroom
from .account import Account
from .cases import Case
from .replies import inspect
from .report import Verdict

_SUM = "What is 12 + 30? Answer with the number."
_WEATHER = "What is the weather in Bern? Use the tool weather."
_FIELDS = {"properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
_CITY = {"type": "object", **_FIELDS}
_TOOL = {"name": "weather", "description": "The weather of a city.", "parameters": _CITY}
_TOOLS = [{"type": "function", "function": _TOOL}]
_SCHEMA = {"type": "json_schema", "json_schema": {"name": "city", "schema": _CITY, "strict": True}}
_RED_SQUARE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAACAAAAAgCAIAAAD8GO2jAAAAJ0lEQVR42u3NsQkAAAjAsP7/tF7hIASyp6lT"
    "CQQCgUAgEAgEgi/BAjLD/C5w/SM9AAAAAElFTkSuQmCC"
)
_LOOK = [{"type": "text", "text": "Which colour?"}, {"type": "image_url", "image_url": {"url": _RED_SQUARE}}]

_PREFIX = "The tenant pays the rent on the first day of each month, as the contract says. " * 400
"""About 7,000 tokens: more than any provider requires of a prompt that it keeps."""

_BURST = 8
"""Calls at once, to see whether limits are as headers tell them."""

_LONGEST_PROMPT = 6_000_000
"""Words of the prompt that is too long. Each is a token of two characters."""


def _judge_text(case: Case) -> str:
    """What is wrong with an answer; empty if nothing is."""
    if case.answer.finish_reason not in ("stop", "length"):
        return f"its end is {case.answer.finish_reason}"
    if case.result.get("streamed", case.answer.text) != case.answer.text:
        return "its deltas are not its text"
    return "" if case.answer.usage.output_tokens and case.answer.text else "no text, or no tokens of output"


def _judge_tool(case: Case) -> str:
    calls = case.result["tool_calls"]
    return "" if [name for _, name, _ in calls] == ["weather"] else f"calls: {calls}"


def _judge_json(case: Case) -> str:
    try:
        return "" if isinstance(case.answer.parsed, dict) else f"parsed is {case.answer.parsed!r:.60}"
    except OutputError as error:
        return error.message


_QUESTIONS: tuple[tuple[str, str, Any, dict[str, Any], str, Callable[[Case], str], str], ...] = (
    ("stream", "stream", "Count to twenty.", {}, "a text and a usage", _judge_text, "streams lose something"),
    ("streamed tool call", "stream", _WEATHER, {"tools": _TOOLS}, "one call", _judge_tool, "calls are lost"),
    ("structured answer", "call", "Where is the Eiffel Tower?", {"response_format": _SCHEMA}, "JSON",
     _judge_json, "answers are repaired, or fail"),
    ("image input", "call", [{"role": "user", "content": _LOOK}], {}, "a text", _judge_text, "no images"),
    ("tool call", "call", _WEATHER, {"tools": _TOOLS}, "one call", _judge_tool, "tools do not work"),
)  # fmt: skip
"""Name, operation, inputs, parameters; what is expected, what judges it, and what a problem means."""


def check_key(account: Account) -> bool:
    """The list of models, and with it the key and the organisation; returns whether the key is accepted."""
    case = account.play("key", "models", None, model=f"{account.route.provider}/any")
    account.listed = case.answer or ()
    names = [name for exchange in case.exchanges for name in exchange.headers if "organization" in name]
    observed = f"{len(account.listed)} models; organisation: {', '.join(names) or 'not told'}"
    account.judge(case, "the key is accepted", observed)
    return not isinstance(case.error, AuthenticationError | PermissionDeniedError)


def check_models(account: Account) -> None:
    """Whether the cheapest models answer; the first one that does is asked from here on."""
    names = [account.model] if account.is_named else account.rank_models("chat")[:3]
    account.model = ""
    for name in names:
        case = account.play(f"model {name}", "call", "Say hello.", model=name)
        if account.judge(case, "an answer", "answers") and not account.model:
            account.model = name
    if not names:
        account.tell(
            "failed", "models", "a model", "no listed model has a known price", "name one with --model"
        )


def check_call(account: Account) -> None:
    """A call: its text, usage and cost, and who answered."""
    case = account.play("call", "call", _SUM)
    problem = _judge_text(case) if case.answer else ""
    if not account.judge(
        case, "a text", case.result.get("text", "")[:40], problem, "answers are cut or lost"
    ):
        return
    usage, counted = case.answer.usage, int(account.client.count_tokens(account.model, _SUM, exact=False))
    fits = usage.output_tokens > 0 and counted / 3 - 10 < usage.input_tokens < 3 * counted + 500
    observed = f"{usage.input_tokens} + {usage.output_tokens} tokens"
    account.tell(fits, "usage", f"about {counted} + a few", observed, "costs and limits go by it")
    price, cost = account.client.price(account.model, usage), case.answer.cost
    fits = price is None or cost is None or abs(float(price) - cost) <= 0.01 * cost
    observed = f"${cost} by {case.answer.cost_source}, ${price} by the table"
    account.tell(
        "note" if cost is None else fits, "cost", "as the table says", observed, "budgets go by the table"
    )
    served, answered = case.result["served_by"], (case.answer.model or "").lower().rpartition("/")[2]
    requested = account.model.rpartition("/")[2].lower()
    problems = [] if requested in answered or answered in requested else [f"{case.answer.model} answered"]
    names = [name for exchange in case.exchanges for name in exchange.headers if name.endswith("-id")]
    if "request_id" not in served and (names or account.route.provider in ("openai", "anthropic")):
        problems.append(f"no request id is read; headers with ids: {names}")
    observed = "; ".join(problems) or ", ".join(f"{name} {value}" for name, value in served.items())
    account.tell(
        not problems, "served by", f"{requested} and a request id", observed, "it is not known who answered"
    )


def check_questions(account: Account) -> None:
    """Streams, formats, media, and a round of a tool."""
    for name, operation, inputs, parameters, expected, judge, meaning in _QUESTIONS:
        case = account.play(name, operation, inputs, **parameters)
        observed = f"as expected, in {sum(exchange.pieces for exchange in case.exchanges)} pieces"
        account.judge(case, expected, observed, judge(case) if case.answer else "", meaning)
    if case.answer and case.answer.tool_calls:
        result = {"role": "tool", "tool_call_id": case.answer.tool_calls[0].id, "content": "sunny"}
        messages = [{"role": "user", "content": _WEATHER}, case.answer.message, result]
        account.judge(account.play("tool result", "call", messages, tools=_TOOLS), "it is taken", "taken")


def check_embedding(account: Account) -> None:
    """Vectors of two texts."""
    for name in account.rank_models("embedding")[:1]:
        case = account.play("embedding", "embed", ["a bird", "a fish"], model=name)
        lengths = [round(math.hypot(*vector), 3) for vector in case.answer or ()]
        size = case.result.get("dimensions", 0)
        fits = len(lengths) == 2 and size > 31 and all(0.01 < length < 1000 for length in lengths)
        observed = f"{size} numbers each, lengths {lengths}"
        account.judge(
            case, "two vectors", observed, "" if fits else observed, "numbers have another form than is read"
        )


def check_prompt_cache(account: Account) -> None:
    """A long prefix twice: the second call reads it from the provider's prompt cache."""
    for text in ("Who pays?", "When?"):
        case = account.play("prompt cache", "call", text, system=_PREFIX, prompt_caching=True)
        case.parameters["system"] = _PREFIX[:80]
    read = case.answer.usage.cache_read_input_tokens if case.answer else 0
    observed = f"{read} of {case.answer.usage.input_tokens if case.answer else 0} tokens read"
    if case.answer and not read and account.route.provider not in ("openai", "anthropic", "gemini"):
        account.tell(
            "skipped", "prompt cache", "the prefix is read", f"{observed}; the host promises nothing"
        )
    else:
        account.judge(
            case, "the prefix is read", observed, "" if read else observed, "calls pay the full price"
        )


def check_limits(account: Account) -> None:
    """Limits as headers tell them, and whether a few calls at once meet others."""
    first = len(account.proxy.exchanges)
    prompts = [f"Say {number}." for number in range(_BURST)]
    account.client.call_many(account.model, prompts, max_concurrent=_BURST, deadline=30)
    exchanges = account.proxy.exchanges[first:]
    refused = [headroom(exchange.headers) for exchange in exchanges if exchange.status == 429]
    known = [room for room in (headroom(exchange.headers) for exchange in exchanges) if room is not None]
    names = sorted({name for exchange in exchanges for name in exchange.headers if "limit" in name})
    parts = (("requests", known[-1].requests), ("tokens", known[-1].tokens)) if known else ()
    observed = ", ".join(f"{60 * part.rate:.0f} {name} a minute" for name, part in parts if part is not None)
    verdict: Verdict | bool = "note" if refused else True
    meaning = "the rate control finds the limit by itself"
    if names and not known:
        verdict, meaning = False, f"headers that are not read: {', '.join(names[:4])}"
    elif any(room and room.requests and room.requests.remaining >= 1 and not room.tokens for room in refused):
        verdict, meaning = False, "another limit than that of the headers is in force"
    observed = f"headers tell {observed or 'none'}; {len(refused)} of {len(exchanges)} calls at once refused"
    account.tell(verdict, "limits", "as headers tell them", observed, meaning)


def check_errors(account: Account) -> None:
    """The errors of a model that does not exist, whole and streamed, and of a prompt that is too long."""
    for name, operation in (("wrong model", "call"), ("wrong model, stream", "stream")):
        case = account.play(name, operation, _SUM, model=f"{account.route.provider}/check-no-such-model")
        observed = f"{case.result.get('error', 'answered')}, HTTP {case.result.get('status', 200)}"
        fits = isinstance(case.error, NotFoundError) and case.error.status == 404
        account.tell(
            fits, name, "NotFoundError, HTTP 404", observed, "a wrong name is not seen, or only by its text"
        )
    # The model whose window is the cheapest, because a server that cuts a prompt sends a bill.
    models = {model.name: model for model in account.list_models()}
    windows = {name: model.context_window or 200_000 for name, model in models.items()}
    names = [] if account.is_named else account.rank_models("chat")
    cheapest = min(
        names, key=lambda name: windows[name] * (models[name].input_price or 0), default=account.model
    )
    words = min(int(windows.get(cheapest, 200_000) * 1.3), _LONGEST_PROMPT)
    case = account.play("over-long prompt", "call", " x" * words, model=cheapest)
    case.inputs, problem = case.inputs[:100], f"answered; {words:,} tokens sent"
    if isinstance(case.error, ContextWindowExceededError | RateLimitError):
        # A small account meets its limit of tokens a minute before.
        case.error, problem = None, ""
    observed, meaning = str(case.result.get("error")), "the server cuts prompts, or has a larger window"
    account.judge(case, "ContextWindowExceededError", observed, problem, meaning)


def check_batch(account: Account) -> None:
    """A batch of one row: submitted, listed, cancelled."""
    if account.route.adapter not in ("anthropic", "gemini") and account.route.batches is None:
        account.tell("skipped", "batch", "a batch", "the provider has no batches that are served")
        return
    account.has_batch = True
    case, first = account.play("batch", "batch", [_SUM]), len(account.proxy.exchanges)
    observed, fits = "", True
    if case.answer is not None:
        listed, before = {batch.id for batch in account.client.batches()}, case.answer.status
        case.answer.cancel()
        fits = case.answer.id in listed and before in ("in_progress", "ended")
        observed = f"{before}, then {', '.join(case.answer.states.values())}"
        case.exchanges += account.proxy.exchanges[first:]
    account.has_batch = False
    expected, problem = "submitted, listed, cancelled", "" if fits else observed
    account.judge(case, expected, observed, problem, "batches cannot be followed")


def check_replies(account: Account) -> None:
    """Unknown fields and events, and what contradicts the SDKs' types, in all replies so far."""
    cases = [(case.name, exchange) for case in account.cases for exchange in case.exchanges]
    findings = {finding: name for name, exchange in reversed(cases) for finding in inspect(exchange)}
    for verdict, kind, name, meaning in (
        ("note", "unknown", "new fields", "Response.raw keeps them"),
        (False, "wrong", "fields and events", "other rows say whether it matters"),
    ):
        texts = [
            f"{text} ({case})" for (its_kind, text), case in sorted(findings.items()) if its_kind == kind
        ]
        observed = "; ".join(texts[:6]) + (f"; {len(texts) - 6} more" if len(texts) > 6 else "")
        known: Verdict | bool = "note" if verdict and texts else not texts
        account.tell(known, name, "those of the SDK's types", observed or "as expected", meaning)


PROBES: tuple[Callable[[Account], None], ...] = (
    check_call, check_questions, check_embedding, check_prompt_cache, check_limits, check_errors, check_batch,
)  # fmt: skip
"""Those that need a model, in their order."""
