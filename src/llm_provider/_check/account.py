"""The account at one provider that is checked: its client, its models, its traffic and its rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .._errors import BudgetExceededError, UnsupportedParameterError
from .._runtime import clock
from .cases import Case
from .report import Row, Verdict

if TYPE_CHECKING:
    from .._client.client import Client
    from .._requests.route import Route
    from .._tokens.models import Model
    from .traffic import RecordingProxy

_SPECIAL = re.compile(r"audio|realtime|image|live|search|transcri|tts|embed|guard|research|codex|vision|ocr")
"""Names of models that do more, or less, than answer a text."""

_LONGEST_WAIT = 45.0
"""Seconds of one call, with all of its waits."""

_LONGEST_PAUSE = 30.0
"""Seconds after which a call that was refused is made again, if the provider asks for no more."""


class Account:
    """One provider. `model` is the one that is asked; empty until one is known."""

    def __init__(
        self, route: Route, client: Client, proxy: RecordingProxy, tell: Callable[[Row], None], model: str
    ) -> None:
        self.route, self.client, self.proxy, self._tell = route, client, proxy, tell
        self.model, self.is_named = model, bool(model)
        self.cases: list[Case] = []
        self.listed: Sequence[Model] = ()
        self.has_batch = False
        """Whether a batch may be under way."""

    def play(self, name: str, operation: str, inputs: Any, *, model: str = "", **parameters: Any) -> Case:
        """Ask once, and keep the case with its traffic."""
        case = Case(name, operation, model or self.model, inputs, parameters)
        self.cases.append(case)
        first = len(self.proxy.exchanges)
        options = {} if operation in ("models", "batch") else {"deadline": _LONGEST_WAIT}
        try:
            case.play(self.client, **options)
            pause = case.error.retry_after if case.error is not None else None
            if pause is not None and pause <= _LONGEST_PAUSE:
                # A small account. Its limits are a row of their own.
                clock.sleep(pause)
                first = len(self.proxy.exchanges)
                case.play(self.client, **options)
        finally:
            case.exchanges = self.proxy.exchanges[first:]
        return case

    def tell(
        self, verdict: Verdict | bool, name: str, expected: str, observed: str, meaning: str = ""
    ) -> None:
        """Add a row. The verdict may be whether it is as expected."""
        word: Verdict = ("ok" if verdict else "differs") if isinstance(verdict, bool) else verdict
        self._tell(Row(word, self.route.provider, name, expected, observed, meaning))

    def judge(self, case: Case, expected: str, observed: str, problem: str = "", meaning: str = "") -> bool:
        """Add the row of a case, which differs if there is a problem; returns whether it was answered."""
        if case.error is None:
            self.tell(not problem, case.name, expected, problem or observed, meaning)
            return True
        skipped = isinstance(case.error, BudgetExceededError | UnsupportedParameterError)
        why = f"{type(case.error).__name__}: {case.error.message[:200]}"
        self.tell("skipped" if skipped else "failed", case.name, expected, why, "calls like it fail")
        return False

    def list_models(self) -> Sequence[Model]:
        """Those that the key reaches, or those of the tables where the provider gives no list."""
        return self.listed or self.client.models(self.route.provider)

    def rank_models(self, kind: str) -> list[str]:
        """The models of a kind whose price is known, the cheapest first."""
        models = [model for model in self.list_models() if model.kind == kind]
        models = [model for model in models if kind != "chat" or not _SPECIAL.search(model.name)]
        prices = [
            (model.input_price + (model.output_price or 0), model.name)
            for model in models
            if model.input_price
        ]
        return [name for _, name in sorted(prices)]
