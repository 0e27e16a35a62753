"""The account at one provider that is checked, and the cases of a recording: what it is asked."""

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from ..._core.batches.handle import Batch
from ..._core.client.client import Client
from ..._core.errors import APITimeoutError, BudgetExceededError, LLMError, UnsupportedParameterError
from ..._core.json_values import JSONObject
from ..._core.requests.route import Route
from ..._core.runtime import clock
from ..models.known_models import Model
from .report import Row, make_row
from .traffic import Exchange, RecordingProxy

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
        """The names of the headers of its answers."""
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
            streamed = {"streamed": "".join(self.deltas)}
            response = deltas.response
        else:
            response = client.call(self.model, self.inputs, **parameters)
        return response, {
            "text": response.text,
            "finish_reason": response.finish_reason,
            "tool_calls": [[call.id, call.name, call.arguments] for call in response.tool_calls],
            "usage": {name: count for name, count in asdict(response.usage).items() if count},
            "model": response.model,
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

    def tell(self, verdict: str | bool, name: str, observed: str, meaning: str = "") -> None:
        """Add a row. The verdict may be whether it is as expected."""
        self._show(make_row(verdict, self.route.provider, name, observed, meaning))

    def judge(self, case: Case, observed: str, *, fits: bool = True) -> bool:
        """Add the row of a case, and return whether it was answered."""
        if case.error is None:
            self.tell(fits, case.name, observed)
        else:
            skipped = isinstance(case.error, BudgetExceededError | UnsupportedParameterError)
            why = f"{type(case.error).__name__}: {case.error.message[:200]}"
            self.tell("skipped" if skipped else "failed", case.name, why, "calls like it fail")
        return case.error is None

    def cancel(self, batch: Batch, seconds: float = 20.0) -> bool:
        """`Batch.cancel` within some seconds, for which a Ctrl-C waits too; else a `TimeoutError`."""
        return asyncio.run(asyncio.wait_for(batch.acancel(), seconds))

    def list_models(self) -> Sequence[Model]:
        """Those that the key reaches, or those of the tables where the provider gives no list."""
        return self.listed or self.client.models(self.route.provider)

    def rank_models(self, kind: str) -> list[str]:
        """The models of a kind whose price is known, the cheapest first."""
        prices = {
            model.name: model.input_price + (model.output_price or 0)
            for model in self.list_models()
            if model.kind == kind
            and model.input_price
            and not (kind == "chat" and _SPECIAL.search(model.name))
        }
        return sorted(prices, key=lambda name: (prices[name], name))
