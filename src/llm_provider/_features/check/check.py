"""Checks accounts one after the other, and makes the report and the recording."""

import platform
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ..._core import doors
from ..._core.errors import LLMError, RequestError
from ..._core.json_values import JSONObject
from ..._core.money.budget import Budget
from ..._core.requests.api_keys import Credential, find_accounts, find_written_key
from ..._core.requests.route import Route
from ..._core.requests.routing import ROUTES, find_key, find_route, resolve
from ..._core.runtime import clock
from ..._core.runtime.imports import describe_versions
from ..._core.settings import Settings, parse_settings
from ..._core.words import escape_controls
from .account import Account, Row, make_row
from .probes import PROBES, check_key, check_models, check_replies
from .traffic import RecordingProxy, Scrubber

_OF_CASE = ("name", "operation", "model", "inputs", "parameters", "result")
_SET_A_KEY = (
    "no API key is set: set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or that of another provider. "
    "For a server of your own set LOCAL_BASE_URL, and write: check --model local/NAME"
)
_PATIENCE = 10.0
"""Seconds of requests about batches that fail: a gateway may answer them with 500 for ever."""


class Check:
    """The rows, accounts and costs of one run. After an interruption they are those until then."""

    def __init__(self, show: Callable[[Row], None]) -> None:
        def tell(row: Row) -> None:
            # A model's text may have line breaks, and commands to a terminal.
            cells = (escape_controls(" ".join(self._scrubber.scrub(cell).split())) for cell in row)
            self.rows.append(Row._make(cells))
            show(self.rows[-1])

        self._scrubber, self._tell, self._cost = Scrubber(), tell, 0.0
        self._accounts: list[Account] = []
        self.rows: list[Row] = []
        self.batch_end = ""
        """What became of a batch that was under way at an interruption; empty if there was none."""

    def run(self, models: Mapping[str, str], limit: float) -> None:
        """Check providers, each with its model or "" for the cheapest, for at most `limit` USD."""
        budget, hosts = Budget(limit, allow_unknown=True), parse_settings({}).hosts
        for provider, model in models.items():
            try:
                self._check_provider({**ROUTES, **hosts}[provider], model, budget)
            except Exception as error:  # a strange reply must not hide the rows of the others
                self._tell(make_row("failed", provider, "check", f"{type(error).__name__}: {error}"))
            finally:
                self._cost = float(budget.spent)

    def _check_provider(self, route: Route, model: str, budget: Budget) -> None:
        from ..._core.client.client import Client

        url, keys = _find_access(route, parse_settings({}))
        self._scrubber.keys += keys
        with (
            tempfile.TemporaryDirectory(prefix="llm-check-") as folder,
            RecordingProxy(url, self._scrubber.names) as proxy,
            Client(
                base_url=proxy.url, budget=budget, cache="refresh", cache_dir=Path(folder), max_retries=0,
                max_tokens=400, outage_patience=_PATIENCE,
            ) as client,
        ):  # fmt: skip
            account = Account(route, client, proxy, self._tell, model)
            self._accounts.append(account)
            try:
                if check_key(account):
                    check_models(account)
                    for probe in PROBES if account.model else ():
                        probe(account)
            finally:
                self._end(account)

    def _end(self, account: Account) -> None:
        """Cancel a batch that is under way, and look at all replies."""
        if account.has_batch:
            batches = account.client.batches()
            names = ", ".join(name for batch in batches for name in batch.batch_ids)
            self.batch_end = f"; a batch under way was not cancelled: {names or 'its name is lost'}"
            try:
                if names and all(map(account.cancel, batches)):
                    self.batch_end = "; a batch under way was cancelled"
            except (LLMError, TimeoutError) as error:
                account.add_row("failed", "batch", f"{names}: {type(error).__name__}")
        check_replies(account)

    def report(self) -> JSONObject:
        return {
            "report": "llm-provider check 1",
            "date": time.strftime("%Y-%m-%d", time.gmtime(clock.time())),
            "versions": {**describe_versions(), "system": platform.system()},
            "models": sorted({account.model or account.route.provider for account in self._accounts}),
            "cost": self._cost,
            "counts": Counter(row.verdict for row in self.rows),
            "rows": [row._asdict() for row in self.rows],
        }

    def record(self) -> JSONObject:
        """The recording so far, without secrets: tests/recorded/README.md describes it."""
        cases = []
        for account in self._accounts:
            for case in account.cases:
                known = {"provider": account.route.provider, "base": account.proxy.base}
                known |= {name: getattr(case, name) for name in _OF_CASE}
                cases.append({**known, "exchanges": [exchange.to_dict() for exchange in case.exchanges]})
        made = {name: value for name, value in self.report().items() if name in ("date", "versions")}
        return self._scrubber.scrub_value({"recording": "llm-provider check 1", **made, "cases": cases})


def choose_models(providers: Sequence[str], models: Sequence[str]) -> dict[str, str]:
    """Provider → the model to ask, "" for the cheapest; by default all providers with a key.

    Raises `RequestError` for unknown names, for a provider without a key, and if there is nothing to check.
    """
    settings = parse_settings({})
    routes = {**ROUTES, **settings.hosts}
    selected = {find_route(model, settings.hosts).provider: model for model in models}
    if len(selected) < len(models):
        raise RequestError("two models have one provider: check them one after the other")
    for provider in providers:
        doors.known_models.check_provider(provider, settings.hosts)
        selected.setdefault(provider, "")
    for provider in selected:
        _find_access(routes[provider], settings)
    own = (name for name, route in routes.items() if not route.cloud and _find_keys(route, settings))
    if not (selected := selected or dict.fromkeys(own, "")):
        raise RequestError(_SET_A_KEY)
    return selected


def _find_access(route: Route, settings: Settings) -> tuple[str, list[Credential]]:
    """The URL of a server and the keys that calls send; an error if it cannot be checked with those."""
    if route.cloud is not None or route.adapter == "litellm":
        raise RequestError(f"{route.provider} is not checked: its requests are made for one address only")
    target = resolve(f"{route.provider}/any", None, settings.env_file, settings.hosts).servers[0]
    return target.base_url or "", _find_keys(route, settings) or [find_key(target, settings.env_file)]


def _find_keys(route: Route, settings: Settings) -> list[Credential]:
    where = (route.provider, route.key_variables)
    listed = [key for account in find_accounts(*where, {}, settings.env_file) or () for key in account]
    return [*listed, *filter(None, [find_written_key(*where, settings.env_file)])]
