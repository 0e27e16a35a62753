"""What an account is asked, and what is made of the answers: one function for each group of rows."""

import itertools
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

from ..._core import errors
from ..._core.batches.handle import Batch
from ..._core.pace.headers import headroom
from ..._core.runtime import clock
from ..._core.types.usage import Usage
from ..._core.words import format_usd
from .account import MODEL, Account, Case
from .replies import UNKNOWN, WRONG, find_types, inspect, read_json

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


def _judge_text(case: Case) -> str:
    """What is wrong with an answer; empty if nothing is."""
    if case.answer.finish_reason not in ("stop", "length"):
        return f"its end is {case.answer.finish_reason}"
    if case.result.get("streamed", case.answer.text) != case.answer.text:
        return "its deltas are not its text"
    pairs = list(itertools.pairwise(case.deltas))
    repeats = [len(after) > len(before) and after.startswith(before) for before, after in pairs]
    if len(pairs) > 1 and all(repeats):
        return "each delta repeats those before it"
    return "" if case.answer.text else "no text"


def _judge_tool(case: Case) -> str:
    calls = case.result["tool_calls"]
    if [name for _, name, _ in calls] != ["weather"]:
        return f"calls: {calls}"
    arguments = read_json(calls[0][2])
    if not isinstance(arguments, dict) or "city" not in arguments:
        return f"arguments: {arguments!r:.60}"
    return "" if case.answer.finish_reason == "tool_calls" else f"its end is {case.answer.finish_reason}"


def _judge_json(case: Case) -> str:
    text = case.answer.text
    return "" if isinstance(read_json(text), dict) else f"it is no JSON, or not only JSON: {text!r:.60}"


_QUESTIONS: tuple[tuple[str, str, Any, dict[str, Any], Callable[[Case], str]], ...] = (
    ("call", "call", _SUM, {}, _judge_text),
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
    observed = f"{len(account.listed)} models; organisation: {names or 'not told'}"
    account.judge(case, observed, fits=bool(account.listed))
    # A restricted key may call models, and not list them.
    return not isinstance(case.error, errors.AuthenticationError)


def check_models(account: Account) -> None:
    """Whether the cheapest models answer; the first one that does is asked from here on."""
    names = [account.model] if account.is_named else account.rank_models("chat")[:3]
    account.model = ""
    for name in names:
        case = account.play(f"{MODEL}{name}", "call", "Say hello.", model=name)
        if account.judge(case, "answers") and not account.model:
            account.model = name
    if not account.model:
        account.add_row("failed", "models", "none answers" if names else "no listed model has a known price")


def _is_snapshot(requested: str, answered: str | None) -> bool:
    """Whether two names mean one model: one may have a date or a version more."""
    names = [name.rpartition("/")[2].lower().removesuffix("-latest") for name in (requested, answered or "")]
    short, long = sorted(names, key=len)
    more = r"([-@:](latest|preview|exp|free|v?\d{2}[\d-]+))*(\.gguf)?"
    return bool(short and re.fullmatch(re.escape(short) + more, long))


def check_questions(account: Account) -> None:
    """A text, streams, formats, media, and a round of a tool."""
    for name, operation, inputs, parameters, judge in _QUESTIONS:
        case = account.play(name, operation, inputs, **parameters)
        problem, pieces = judge(case) if case.answer else "", sum(each.pieces for each in case.exchanges)
        text = case.result.get("text", "")[:40] or "as expected"
        observed = f"{text}, in {pieces} piece{'s' if pieces != 1 else ''}"
        account.judge(case, problem or observed, fits=not problem)
    if case.answer and case.answer.tool_calls:
        result = {"role": "tool", "tool_call_id": case.answer.tool_calls[0].id, "content": "sunny"}
        messages = [{"role": "user", "content": _WEATHER}, case.answer.message, result]
        with warnings.catch_warnings():
            # Its arguments may be broken, which the row of the call says.
            warnings.simplefilter("ignore", UserWarning)
            account.judge(account.play("tool result", "call", messages, tools=_TOOLS), "taken")


def check_answers(account: Account) -> None:
    """The counts and costs of all answers so far, and who gave them."""
    cases = [case for case in account.cases if case.answer and case.operation in ("call", "stream")]
    greeting = next(case for case in cases if case.model == account.model).answer.usage.input_tokens
    has_ids = any("request_id" in case.result["served_by"] for case in cases)
    judged: dict[str, list[tuple[str | bool, str, str]]] = {"usage": [], "cost": [], "served by": []}
    for case in cases:
        usage, length, served = case.answer.usage, len(case.answer.text), case.result["served_by"]
        # A token has at most 12 characters of prose. Tools and images are more than the greeting is.
        least, most = greeting + 1.0, 20_000
        if isinstance(case.inputs, str) and not case.parameters:
            least, most = max(1, len(case.inputs) / 12), len(case.inputs) + 500
        fits: str | bool = max(least, usage.cache_read_input_tokens) <= usage.input_tokens <= most
        fits = fits and max(1, length / 12) <= usage.output_tokens < 1000  # `max_tokens` is 400
        observed = f"{usage.input_tokens} + {usage.output_tokens} tokens; expected are {least:.0f} to {most}"
        judged["usage"].append((fits, f"{observed}, and those of {length} characters", case.name))
        price, cost = account.client.price(case.model, usage), case.answer.cost
        is_free = account.client.price(case.model, Usage(input_tokens=20, output_tokens=2)) is None
        fits = is_free and "note"
        if cost is not None:
            fits = price is None or abs(float(price) - cost) <= 0.01 * cost
        observed = f"{format_usd(cost)} by {case.answer.cost_source}, {format_usd(price)} by the table"
        judged["cost"].append((fits, observed, case.name))
        problems, names = [], [name for name in case.list_headers() if name.endswith("-id")]
        if not _is_snapshot(case.model, served.get("model")):
            problems.append(f"{case.model} was asked, and {served.get('model', 'no name')} answered")
        promised = names or has_ids or account.route.provider in ("openai", "anthropic")
        if "request_id" not in served and promised:
            problems.append(f"no request id is read; headers with ids: {names}")
        who = ", ".join(f"{name} {value}" for name, value in served.items())
        judged["served by"].append((not problems, "; ".join(problems) or who, case.name))
    for row, judgements in judged.items():
        verdict = min((each[0] for each in judgements), key=(False, "note", True).index)
        texts, wrong = dict[str, list[str]](), [each for each in judgements if each[0] is not True]
        for _, text, name in wrong or judgements[:1]:
            texts.setdefault(text, []).append(name)
        observed = "; ".join(f"{', '.join(names)}: {text}" for text, names in texts.items())
        account.add_row(verdict, row, observed)


def check_embedding(account: Account) -> None:
    names = account.rank_models("embedding")[:1]
    kinds = {model.kind for model in account.client.models(account.route.provider)}
    if "embedding" in kinds and not names:
        account.add_row("skipped", "embedding", "no embedding model with a known price is listed")
    for name in names:
        case = account.play("embedding", "embed", ["a bird", "a fish"], model=name)
        different = dict.fromkeys(map(tuple, case.answer or ()))
        lengths = [round(math.hypot(*vector), 3) for vector in different]
        size, served = case.result.get("dimensions", 0), getattr(case.answer, "model", "")
        tokens = case.result.get("usage", {}).get("input_tokens", 0)
        low, high = (0.98, 1.02) if account.route.provider in ("openai", "gemini") else (0.01, 1000)
        fits = len(lengths) == 2 and size > 31 and all(low < length < high for length in lengths)
        fits = fits and 0 < tokens < 100 and _is_snapshot(name, served)
        observed = f"{size} numbers each, lengths {lengths}, {tokens} tokens, by {served}"
        account.judge(case, observed, fits=fits)


def check_prompt_cache(account: Account) -> None:
    """A long prefix twice: the second call reads it from the provider's prompt cache."""
    known = []
    for text in ("Who pays?", "When?"):
        case = account.play("prompt cache", "call", text, system=_PREFIX, prompt_caching=True)
        case.parameters["system"] = _PREFIX[:80]
        usage = case.answer.usage if case.answer else Usage()
        known.append(usage.cache_read_input_tokens + usage.cache_write_input_tokens)
    read = usage.cache_read_input_tokens
    observed = f"{read} of {usage.input_tokens} tokens read; {known[0]} read or written before"
    if case.answer and not usage.input_tokens:
        account.add_row("skipped", case.name, "the answer has no counts")
    elif case.error or read or account.route.provider in ("openai", "anthropic", "gemini"):
        # A count with the cached tokens twice is above the last bound. Only Anthropic always counts writing.
        counts_writing = known[0] > 0 or account.route.provider != "anthropic"
        account.judge(case, observed, fits=0 < read <= usage.input_tokens < 13_500 and counts_writing)
    else:
        account.add_row("skipped", case.name, f"{observed}; the host promises nothing")


def check_limits(account: Account) -> None:
    """Limits as headers tell them, and whether a few calls at once meet others."""
    first = len(account.proxy.exchanges)
    prompts = [f"Say {number}." for number in range(8)]
    results = account.client.call_many(account.model, prompts, max_concurrent=len(prompts), deadline=30)
    exchanges = account.proxy.exchanges[first:]
    expected = (errors.RateLimitError, errors.BudgetExceededError)
    failures = {type(error).__name__ for error in results.errors if not isinstance(error, expected)}
    rooms = [(exchange.status, headroom(exchange.headers)) for exchange in exchanges]
    refused, known = [room for status, room in rooms if status == 429], [room for _, room in rooms if room]
    names = sorted({name for exchange in exchanges for name in exchange.headers if "limit" in name})
    parts = (("requests", known[-1].requests), ("tokens", known[-1].tokens)) if known else ()
    limits = ", ".join(f"{60 * part.rate:.0f} {name} a minute" for name, part in parts if part is not None)
    needs = [((room.requests, 1), (room.tokens, 1000)) for room in refused if room]
    is_other = any(all(part is None or part.remaining >= need for part, need in pairs) for pairs in needs)
    verdict: str | bool = "note" if refused else True if exchanges else "skipped"
    meaning = ""
    if names and not known:
        verdict, meaning = False, f"headers that are not read: {', '.join(names[:4])}"
    elif is_other:
        verdict, meaning = False, "another limit than that of the headers is in force"
    elif exchanges and not known and account.route.provider in ("openai", "anthropic"):
        verdict, meaning = "note", "this provider has sent them so far"
    observed = f"headers tell {limits or 'none'}; {len(refused)} of {len(exchanges)} calls at once refused"
    if before := sum(exchange.status == 429 for exchange in account.proxy.exchanges[:first]):
        verdict, observed = verdict and "note", f"{observed}; {before} refused before"
    if failures:
        verdict, observed = False, f"{observed}; others failed: {', '.join(sorted(failures))}"
    account.add_row(verdict, "limits", observed, meaning)


def check_errors(account: Account) -> None:
    """The errors of a model that does not exist, whole and streamed, and of a prompt that is too long."""
    for name, operation in (("wrong model", "call"), ("wrong model, stream", "stream")):
        case = account.play(name, operation, _SUM, model=f"{account.route.provider}/check-no-such-model")
        observed = f"{case.result.get('error', 'answered')}, HTTP {case.result.get('status', 200)}"
        fits = isinstance(case.error, errors.NotFoundError) and case.error.status == 404
        account.add_row(fits, name, observed)
    # The model whose window is the cheapest, because a server that cuts a prompt sends a bill.
    models = {model.name: model for model in account.list_models()}
    windows = {name: model.context_window or 200_000 for name, model in models.items()}
    costs = {name: windows[name] * (models[name].input_price or 0) for name in account.rank_models("chat")}
    cheapest = account.model if account.is_named else min(costs, key=costs.__getitem__, default=account.model)
    words = min(int(windows.get(cheapest, 200_000) * 1.3), 6_000_000)  # each is a token of two characters
    case = account.play("over-long prompt", "call", " x" * words, model=cheapest)
    case.inputs, fits = case.inputs[:100], case.error is not None
    observed = str(case.result.get("error", f"answered; {words:,} tokens sent"))
    if isinstance(case.error, errors.ContextWindowExceededError | errors.RateLimitError):
        # A small account meets its limit of tokens a minute before.
        case.error = None
    account.judge(case, observed, fits=fits)


def check_batch(account: Account) -> None:
    if account.route.adapter not in ("anthropic", "gemini") and account.route.batches is None:
        account.add_row("skipped", "batch", "the provider has no batches that are served")
        return
    account.has_batch = True
    case, first = account.play("batch", "batch", [_SUM]), len(account.proxy.exchanges)
    observed, fits = "", True
    if case.answer:
        try:
            observed, fits = _cancel_batch(account, case.answer)
        except (errors.LLMError, TimeoutError) as error:
            observed, fits = f"{type(error).__name__}, HTTP {getattr(error, 'status', None)}", False
        if not fits:
            observed = f"{', '.join(case.answer.batch_ids)}: {observed}"
        case.exchanges += account.proxy.exchanges[first:]
    account.has_batch = False
    account.judge(case, observed, fits=fits)


def _cancel_batch(account: Account, batch: Batch) -> tuple[str, bool]:
    """Cancel a batch. Returns the provider's word for its state then, and whether it fits."""
    try:
        account.cancel(batch, 60.0)
    except errors.RequestError:
        return f"{', '.join(batch.batch_ids)} goes on: this provider cannot cancel a batch", True
    for _ in range(5):
        status, state = batch.status, ", ".join(batch.states.values())
        if is_ending := "cancel" in state.lower() or status != "in_progress":
            break
        clock.sleep(2.0)
    # The cost of a batch that was worked off before is counted with its results.
    if status != "in_progress" and any(
        isinstance(error, errors.PendingBatchError) for error in batch.results(30.0).errors
    ):
        return f"{state}, and its results cannot be read", False
    return state, is_ending and (
        status == "in_progress" or not re.search("fail|expire", state, re.IGNORECASE)
    )


def check_replies(account: Account) -> None:
    """Unknown fields and events, and what contradicts the SDK's types, in all replies so far."""
    of_cases = {id(exchange): case.name for case in account.cases for exchange in case.exchanges}
    exchanges = account.proxy.exchanges
    if account.route.batches is not None and account.route.batches.host:
        # The types are OpenAI's, and these batches have other shapes.
        exchanges = [each for each in exchanges if not re.search(r"/(files|batch|batches)\b", each.path)]
    cases = [(of_cases.get(id(exchange), "limits"), exchange) for exchange in exchanges]
    findings: dict[tuple[str, str], str] = {}
    for name, exchange in cases:
        try:
            for finding in inspect(exchange):
                findings.setdefault(finding, name)
        except Exception as error:  # a strange reply is a finding, and must not hide others
            findings.setdefault((WRONG, f"a reply cannot be compared: {type(error).__name__}"), name)
    usual = "as expected" if any(find_types(exchange) for _, exchange in cases) else ""
    verdicts: dict[str, str | bool] = {UNKNOWN: "note", WRONG: False}
    for row, verdict in verdicts.items():
        texts = [f"{text} ({case})" for (name, text), case in sorted(findings.items()) if name == row]
        word = verdict if texts else bool(usual) or "skipped"
        account.add_row(word, row, "; ".join(texts) or usual or "no reply to compare")


PROBES: tuple[Callable[[Account], None], ...] = (
    check_questions, check_answers, check_embedding, check_prompt_cache, check_limits, check_errors,
    check_batch,
)  # fmt: skip
"""Those that need a model, in their order."""
