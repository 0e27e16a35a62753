"""Checks accounts one after the other, and makes the report and the recording."""

import platform
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from .._errors import LLMError, RequestError
from .._evidence.manifest import describe_versions
from .._json_values import JSONObject
from .._money.budget import Budget
from .._requests.api_keys import find_accounts, find_written_key
from .._requests.route import Route
from .._requests.routing import ROUTES, find_route, resolve
from .._runtime import clock
from .._settings import parse_settings
from .account import Account
from .probes import PROBES, check_key, check_models, check_replies
from .report import Row, make_row
from .scrubbing import Scrubber
from .traffic import RecordingProxy

_OF_CASE = ("name", "operation", "model", "inputs", "parameters", "result")
_SET_A_KEY = (
    "no API key is set: set OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY or that of another provider. "
    "For a server of your own set LOCAL_BASE_URL, and write: check --model local/NAME"
)


class Check:
    """The rows, accounts and costs of one run. After an interruption they are those until then."""

    def __init__(self, show: Callable[[Row], None]) -> None:
        self._scrubber, self._show, self._cost = Scrubber(), show, 0.0
        self._accounts: list[Account] = []
        self.rows: list[Row] = []

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
        from .._client.client import Client

        if route.cloud is not None or route.adapter == "litellm":
            raise RequestError(f"{route.provider} is not checked: its requests are made for one address only")
        target = resolve(f"{route.provider}/any", hosts=parse_settings({}).hosts).servers[0]
        with (
            tempfile.TemporaryDirectory(prefix="llm-check-") as folder,
            RecordingProxy(target.base_url or "") as proxy,
            # The patience is that of requests about batches, to which a gateway may answer 500 for ever.
            Client(
                base_url=proxy.url, budget=budget, cache="refresh", cache_dir=Path(folder), max_retries=0,
                max_tokens=400, outage_patience=10.0,
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
        try:
            for batch in account.client.batches() if account.has_batch else ():
                batch.cancel()
        except LLMError as error:
            account.tell("failed", "batch", str(error), "cancel it at the provider")
        check_replies(account)

    def _tell(self, row: Row) -> None:
        self.rows.append(Row._make(map(self._scrubber.scrub, row)))
        self._show(self.rows[-1])

    def report(self) -> JSONObject:
        """The report so far as JSON values. The cost is in USD."""
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
        cases = [
            {
                "provider": account.route.provider,
                "base": account.proxy.base,
                **{name: getattr(case, name) for name in _OF_CASE},
                "exchanges": [exchange.to_dict() for exchange in case.exchanges],
            }
            for account in self._accounts
            for case in account.cases
        ]
        made = {name: value for name, value in self.report().items() if name in ("date", "versions")}
        return self._scrubber.scrub_value({"recording": "llm-provider check 1", **made, "cases": cases})


def choose_models(providers: Sequence[str], models: Sequence[str]) -> dict[str, str]:
    """Provider → the model to ask, "" for the cheapest; by default all providers with a key.

    Raises `RequestError` for unknown names, and if there is nothing to check.
    """
    from .._tokens.models import check_provider

    hosts = parse_settings({}).hosts
    selected = {find_route(model, hosts).provider: model for model in models}
    for provider in providers:
        check_provider(provider, hosts)
        selected.setdefault(provider, "")
    for name, route in ({} if selected else {**ROUTES, **hosts}).items():
        variables = route.key_variables
        if route.cloud is None and (find_written_key(name, variables) or find_accounts(name, variables, {})):
            selected[name] = ""
    if not selected:
        raise RequestError(_SET_A_KEY)
    return selected
