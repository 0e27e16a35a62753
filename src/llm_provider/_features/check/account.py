"""The account at one provider that is checked, the cases that it is asked, and the rows about it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from ..._core.batches.handle import Batch
from ..._core.client.client import Client
from ..._core.errors import APITimeoutError, BudgetExceededError, LLMError, UnsupportedParameterError
from ..._core.json_values import JSONObject
from ..._core.requests.route import Route
from ..._core.runtime import clock
from ..._core.words import format_usd
from .traffic import Exchange, RecordingProxy

if TYPE_CHECKING:
    from ..models.known_models import Model

BAD = frozenset({"differs", "failed"})
"""The verdicts that make the exit code 1. The others are "ok", "note" and "skipped"."""

MODEL = "model "
"""The name of a row about a model begins with it."""

EXPECTED = {
    "key": ("the key is accepted", ""),
    MODEL: ("an answer", ""),
    "models": ("a model that answers", "name one with --model"),
    "call": ("a text", "answers are cut or lost"),
    "usage": ("about the estimate", "costs and limits go by it"),
    "cost": ("as the table says", "budgets go by the table"),
    "served by": ("the model that was asked, and a request id", "it is not known who answered"),
    "stream": ("a text", "streams lose something"),
    "streamed tool call": ("one call", "calls are lost"),
    "structured answer": ("JSON", "answers are repaired, or fail"),
    "image input": ("a text", "no images"),
    "tool call": ("one call", "tools do not work"),
    "tool result": ("it is taken", ""),
    "embedding": ("two vectors, and their tokens", "numbers have another form than is read"),
    "prompt cache": ("the prefix is read", "calls pay the full price"),
    "limits": ("as headers tell them", "the rate control finds the limit by itself"),
    "wrong model": ("NotFoundError, HTTP 404", "a wrong name is not seen, or only by its text"),
    "wrong model, stream": ("NotFoundError, HTTP 404", "a wrong name is not seen, or only by its text"),
    "over-long prompt": ("ContextWindowExceededError", "the server cuts prompts, or has a larger window"),
    "batch": ("submitted, looked up, cancelled", "it may go on, and be billed: cancel it at the provider"),
    "new fields": ("those of the SDK's types", "Response.raw keeps them"),
    "fields and events": ("those of the SDK's types", "other rows say whether it matters"),
    "check": ("all rows", "the rest was not tried"),
}
"""Name of a row → what is expected, and what another finding means."""


class Row(NamedTuple):
    """One thing that was looked at."""

    verdict: str
    provider: str
    name: str
    expected: str
    observed: str
    meaning: str

    def __str__(self) -> str:
        observed = self.observed[:600] + " … (--report has the rest)" * (len(self.observed) > 600)
        line = f"{self.verdict:8} {self.provider:10} {self.name:20} {observed}"
        more = f"\n{'':40} expected: {self.expected}; {self.meaning}"
        return line if self.verdict in ("ok", "skipped") else line + more


def make_row(verdict: str | bool, provider: str, name: str, observed: str, meaning: str = "") -> Row:
    """A row with what is expected of it. The verdict may be whether it is as expected."""
    word = ("ok" if verdict else "differs") if isinstance(verdict, bool) else verdict
    expected, usual = EXPECTED[MODEL if name.startswith(MODEL) else name]
    return Row(word, provider, name, expected, observed, meaning or usual)


def write_markdown(report: JSONObject) -> str:
    counts = ", ".join(f"{number} {word}" for word, number in report["counts"].items())
    versions = ", ".join(" ".join(pair) for pair in report["versions"].items())
    run = f"{report['date']}: {', '.join(report['models'])}: {counts}; {format_usd(report['cost'])}"
    head = ["| verdict | provider | row | expected | found | meaning |", "|---|---|---|---|---|---|"]
    rows = [" | ".join(cell.replace("|", "/") for cell in row.values()) for row in report["rows"]]
    # A server's words may have lines of their own, or look like HTML.
    rows = [f"| {' '.join(escape(row, quote=False).split())} |" for row in rows]
    return "\n".join(["# llm-provider check", "", run, "", versions, "", *head, *rows, ""])


_SPECIAL = re.compile(r"audio|realtime|image|live|search|transcri|tts|embed|guard|research|codex|vision|ocr")
"""Names of models that do more, or less, than answer a text."""

_LONGEST_WAIT = 45.0
"""Seconds of one call, with all of its waits."""

_LONGEST_PAUSE = 30.0
"""Seconds after which a call that was refused is made again, if the provider asks for no more."""


@dataclass(slots=True)
class Case:
    """What is asked, live or from a recording, and its traffic.

    `result` is what the library made of the replies, `answer` the object that it gave, `deltas` the texts of
    a stream.
    """

    name: str
    operation: str
    model: str
    inputs: Any = None
    parameters: JSONObject = field(default_factory=dict)
    exchanges: list[Exchange] = field(default_factory=list)
    result: JSONObject = field(default_factory=dict)
    answer: Any = None
    deltas: list[str] = field(default_factory=list)
    error: LLMError | None = None

    def play(self, client: Client, **options: Any) -> None:
        """Ask, and fill in the last three fields. `options` are parameters that no recording has."""
        self.error = None
        try:
            self.answer, self.result = self._ask(client, {**self.parameters, **options})
        except LLMError as error:
            self.error, self.result = error, {"error": type(error).__name__, "status": error.status}

    def list_headers(self) -> list[str]:
        return [name for exchange in self.exchanges for name in exchange.headers]

    def _ask(self, client: Client, parameters: JSONObject) -> tuple[Any, JSONObject]:
        if self.operation == "models":
            models = client.models(self.model.partition("/")[0], live=True)
            return models, {"models": [model.name for model in models]}
        if self.operation == "batch":
            batch = client.submit_many(self.model, self.inputs, **parameters)
            return batch, {"status": batch.last_status, "rows": batch.counts.total}
        if self.operation == "embed":
            vectors = client.embed(self.model, self.inputs, **parameters)
            numbers = [[round(float(number), 6) for number in vector[:4]] for vector in vectors]
            usage = asdict(vectors.usage)
            return vectors, {"vectors": numbers, "dimensions": vectors.dimensions, "usage": usage}
        streamed = {}
        if self.operation == "stream":
            with client.stream(self.model, self.inputs, **parameters) as deltas:
                self.deltas = [delta.text for delta in deltas if delta.text]
            streamed, response = {"streamed": "".join(self.deltas)}, deltas.response
        else:
            response = client.call(self.model, self.inputs, **parameters)
        return response, {
            **{name: getattr(response, name) for name in ("text", "finish_reason", "model")},
            "tool_calls": [[call.id, call.name, call.arguments] for call in response.tool_calls],
            "usage": {name: count for name, count in asdict(response.usage).items() if count},
            "served_by": response.served_by.to_dict() if response.served_by else {},
            "message": sorted(response.message),
            **streamed,
        }


class Account:
    """One provider. `model` is the one that is asked; empty until one is known."""

    def __init__(
        self, route: Route, client: Client, proxy: RecordingProxy, show: Callable[[Row], None], model: str
    ) -> None:
        self.route, self.client, self.proxy, self._show = route, client, proxy, show
        self.model, self.is_named = model, bool(model)
        self.cases: list[Case] = []
        self.listed: Sequence[Model] = ()
        self.has_batch = False
        """Whether a batch may be under way."""

    def play(self, name: str, operation: str, inputs: Any, *, model: str = "", **parameters: Any) -> Case:
        """Ask, and keep the case with its traffic."""
        case = Case(name, operation, model or self.model, inputs, parameters)
        self.cases.append(case)
        # A server that hangs at one kind of call hangs at others.
        has_hung = any(isinstance(case.error, APITimeoutError) for case in self.cases)
        wait = _LONGEST_WAIT / 3 if has_hung else _LONGEST_WAIT
        options = {} if operation in ("models", "batch") else {"deadline": wait}
        for is_last in (False, True):
            first = len(self.proxy.exchanges)
            try:
                case.play(self.client, **options)
            finally:
                case.exchanges = self.proxy.exchanges[first:]
            pause = case.error.retry_after if case.error is not None else None
            if pause is None or pause > _LONGEST_PAUSE or is_last:
                break
            # A small account. Its limits are a row of their own.
            clock.sleep(pause)
        return case

    def add_row(self, verdict: str | bool, name: str, observed: str, meaning: str = "") -> None:
        """Add a row. The verdict may be whether it is as expected."""
        self._show(make_row(verdict, self.route.provider, name, observed, meaning))

    def judge(self, case: Case, observed: str, *, fits: bool = True) -> bool:
        """Add the row of a case, and return whether it was answered."""
        if case.error is None:
            self.add_row(fits, case.name, observed)
        else:
            skipped = isinstance(case.error, BudgetExceededError | UnsupportedParameterError)
            why = f"{type(case.error).__name__}: {case.error.message[:200]}"
            self.add_row("skipped" if skipped else "failed", case.name, why, "calls like it fail")
        return case.error is None

    def cancel(self, batch: Batch, seconds: float = 20.0) -> bool:
        """`Batch.cancel` within some seconds, for which a Ctrl-C waits too; else a `TimeoutError`."""
        return asyncio.run(asyncio.wait_for(batch.acancel(), seconds))

    def list_models(self) -> Sequence[Model]:
        """The models that the key reaches, or the models of the tables where the provider gives no list."""
        return self.listed or self.client.models(self.route.provider)

    def rank_models(self, kind: str) -> list[str]:
        """The models of a kind whose price is known, the cheapest first."""
        prices = {}
        for model in self.list_models():
            is_special = kind == "chat" and _SPECIAL.search(model.name)
            if model.kind == kind and model.input_price and not is_special:
                prices[model.name] = model.input_price + (model.output_price or 0)
        return sorted(prices, key=lambda name: (prices[name], name))
