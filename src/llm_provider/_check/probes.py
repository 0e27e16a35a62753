"""What an account is asked, and what is made of the answers: one function for each group of rows."""

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
from .._types.usage import Usage
from .account import Account, Case
from .replies import UNKNOWN, WRONG, inspect
from .report import MODEL

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


_QUESTIONS: tuple[tuple[str, str, Any, dict[str, Any], Callable[[Case], str]], ...] = (
    ("stream", "stream", "Count to twenty.", {}, _judge_text),
    ("streamed tool call", "stream", _WEATHER, {"tools": _TOOLS}, _judge_tool),
    ("structured answer", "call", "Where is the Eiffel Tower?", {"response_format": _SCHEMA}, _judge_json),
    ("image input", "call", [{"role": "user", "content": _LOOK}], {}, _judge_text),
    ("tool call", "call", _WEATHER, {"tools": _TOOLS}, _judge_tool),
)
"""Name, operation, inputs, parameters, and what judges the answer."""


def check_key(account: Account) -> bool:
    """The list of models, and with it the key and the organisation; returns whether the key is accepted."""
    case = account.play("key", "models", None, model=f"{account.route.provider}/any")
    account.listed = case.answer or ()
    names = ", ".join(name for name in case.list_headers() if "organization" in name)
    account.judge(case, f"{len(account.listed)} models; organisation: {names or 'not told'}")
    return not isinstance(case.error, AuthenticationError | PermissionDeniedError)


def check_models(account: Account) -> None:
    """Whether the cheapest models answer; the first one that does is asked from here on."""
    names = [account.model] if account.is_named else account.rank_models("chat")[:3]
    account.model = ""
    for name in names:
        case = account.play(f"{MODEL}{name}", "call", "Say hello.", model=name)
        if account.judge(case, "answers") and not account.model:
            account.model = name
    if not names:
        account.tell("failed", "models", "no listed model has a known price")


def check_call(account: Account) -> None:
    """A call: its text, usage and cost, and who answered."""
    case = account.play("call", "call", _SUM)
    problem = _judge_text(case) if case.answer else ""
    if not account.judge(case, problem or case.result.get("text", "")[:40], fits=not problem):
        return
    usage, counted = case.answer.usage, int(account.client.count_tokens(account.model, _SUM, exact=False))
    fits = usage.output_tokens > 0 and counted / 3 - 10 < usage.input_tokens < 3 * counted + 500
    observed = f"{usage.input_tokens} + {usage.output_tokens} tokens; the estimate is {counted} + a few"
    account.tell(fits, "usage", observed)
    price, cost = account.client.price(account.model, usage), case.answer.cost
    fits = price is None or cost is None or abs(float(price) - cost) <= 0.01 * cost
    observed = f"${cost} by {case.answer.cost_source}, ${price} by the table"
    account.tell("note" if cost is None else fits, "cost", observed)
    served, answered = case.result["served_by"], (case.answer.model or "").lower().rpartition("/")[2]
    requested, problems = account.model.rpartition("/")[2].lower(), []
    if requested not in answered and answered not in requested:
        problems.append(f"{requested} was asked, and {case.answer.model} answered")
    names = [name for name in case.list_headers() if name.endswith("-id")]
    if "request_id" not in served and (names or account.route.provider in ("openai", "anthropic")):
        problems.append(f"no request id is read; headers with ids: {names}")
    who = ", ".join(f"{name} {value}" for name, value in served.items())
    account.tell(not problems, "served by", "; ".join(problems) or who)


def check_questions(account: Account) -> None:
    """Streams, formats, media, and a round of a tool."""
    for name, operation, inputs, parameters, judge in _QUESTIONS:
        case = account.play(name, operation, inputs, **parameters)
        problem, pieces = judge(case) if case.answer else "", sum(each.pieces for each in case.exchanges)
        observed = f"as expected, in {pieces} piece{'s' if pieces != 1 else ''}"
        account.judge(case, problem or observed, fits=not problem)
    if case.answer and case.answer.tool_calls:
        result = {"role": "tool", "tool_call_id": case.answer.tool_calls[0].id, "content": "sunny"}
        messages = [{"role": "user", "content": _WEATHER}, case.answer.message, result]
        account.judge(account.play("tool result", "call", messages, tools=_TOOLS), "taken")


def check_embedding(account: Account) -> None:
    for name in account.rank_models("embedding")[:1]:
        case = account.play("embedding", "embed", ["a bird", "a fish"], model=name)
        lengths = [round(math.hypot(*vector), 3) for vector in case.answer or ()]
        size = case.result.get("dimensions", 0)
        fits = len(lengths) == 2 and size > 31 and all(0.01 < length < 1000 for length in lengths)
        account.judge(case, f"{size} numbers each, lengths {lengths}", fits=fits)


def check_prompt_cache(account: Account) -> None:
    """A long prefix twice: the second call reads it from the provider's prompt cache."""
    for text in ("Who pays?", "When?"):
        case = account.play("prompt cache", "call", text, system=_PREFIX, prompt_caching=True)
        case.parameters["system"] = _PREFIX[:80]
    usage = case.answer.usage if case.answer else Usage()
    read = usage.cache_read_input_tokens
    observed = f"{read} of {usage.input_tokens} tokens read"
    if case.error or read or account.route.provider in ("openai", "anthropic", "gemini"):
        account.judge(case, observed, fits=read > 0)
    else:
        account.tell("skipped", case.name, f"{observed}; the host promises nothing")


def check_limits(account: Account) -> None:
    """Limits as headers tell them, and whether a few calls at once meet others."""
    first = len(account.proxy.exchanges)
    prompts = [f"Say {number}." for number in range(_BURST)]
    account.client.call_many(account.model, prompts, max_concurrent=_BURST, deadline=30)
    exchanges = account.proxy.exchanges[first:]
    rooms = [(exchange.status, headroom(exchange.headers)) for exchange in exchanges]
    refused, known = [room for status, room in rooms if status == 429], [room for _, room in rooms if room]
    names = sorted({name for exchange in exchanges for name in exchange.headers if "limit" in name})
    parts = (("requests", known[-1].requests), ("tokens", known[-1].tokens)) if known else ()
    limits = ", ".join(f"{60 * part.rate:.0f} {name} a minute" for name, part in parts if part is not None)
    verdict: str | bool = "note" if refused else True
    meaning = ""
    if names and not known:
        verdict, meaning = False, f"headers that are not read: {', '.join(names[:4])}"
    elif any(room and room.requests and room.requests.remaining >= 1 and not room.tokens for room in refused):
        verdict, meaning = False, "another limit than that of the headers is in force"
    observed = f"headers tell {limits or 'none'}; {len(refused)} of {len(exchanges)} calls at once refused"
    account.tell(verdict, "limits", observed, meaning)


def check_errors(account: Account) -> None:
    """The errors of a model that does not exist, whole and streamed, and of a prompt that is too long."""
    for name, operation in (("wrong model", "call"), ("wrong model, stream", "stream")):
        case = account.play(name, operation, _SUM, model=f"{account.route.provider}/check-no-such-model")
        observed = f"{case.result.get('error', 'answered')}, HTTP {case.result.get('status', 200)}"
        account.tell(isinstance(case.error, NotFoundError) and case.error.status == 404, name, observed)
    # The model whose window is the cheapest, because a server that cuts a prompt sends a bill.
    models = {model.name: model for model in account.list_models()}
    windows = {name: model.context_window or 200_000 for name, model in models.items()}
    costs = {name: windows[name] * (models[name].input_price or 0) for name in account.rank_models("chat")}
    cheapest = account.model if account.is_named else min(costs, key=costs.__getitem__, default=account.model)
    words = min(int(windows.get(cheapest, 200_000) * 1.3), _LONGEST_PROMPT)
    case = account.play("over-long prompt", "call", " x" * words, model=cheapest)
    case.inputs, fits = case.inputs[:100], case.error is not None
    observed = str(case.result.get("error", f"answered; {words:,} tokens sent"))
    if isinstance(case.error, ContextWindowExceededError | RateLimitError):
        # A small account meets its limit of tokens a minute before.
        case.error = None
    account.judge(case, observed, fits=fits)


def check_batch(account: Account) -> None:
    """A batch of one row: submitted, listed, cancelled."""
    if account.route.adapter not in ("anthropic", "gemini") and account.route.batches is None:
        account.tell("skipped", "batch", "the provider has no batches that are served")
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
    account.judge(case, observed, fits=fits)


def check_replies(account: Account) -> None:
    """Unknown fields and events, and what contradicts the SDK's types, in all replies so far."""
    cases = [(case.name, exchange) for case in account.cases for exchange in case.exchanges]
    findings = {finding: name for name, exchange in reversed(cases) for finding in inspect(exchange)}
    verdicts: dict[str, str | bool] = {UNKNOWN: "note", WRONG: False}
    for row, verdict in verdicts.items():
        texts = [f"{text} ({case})" for (name, text), case in sorted(findings.items()) if name == row]
        more = f"; {len(texts) - 6} more" if len(texts) > 6 else ""
        account.tell(verdict if texts else True, row, "; ".join(texts[:6]) + more or "as expected")


PROBES: tuple[Callable[[Account], None], ...] = (
    check_call, check_questions, check_embedding, check_prompt_cache, check_limits, check_errors, check_batch,
)  # fmt: skip
"""Those that need a model, in their order."""
