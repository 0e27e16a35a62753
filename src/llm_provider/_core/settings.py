"""The settings of a client: each with its check, its default, and its variable of the environment.

`ClientSettings` in `_core/requests/parameters` has what users read of them: their types and documentation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, cast, get_args

from . import doors
from .errors import RequestError, cite
from .json_values import JSONMapping, JSONObject, plain_number
from .pace.call_limits import DEFAULT_TIMEOUTS, Concurrency, Timeouts, concurrency, concurrency_of_environment
from .pace.failures import DEFAULT_MAX_RETRIES
from .requests.api_keys import Accounts, seal_keys
from .requests.checks import RateControl, flag, number, one_of
from .requests.request import check
from .requests.routing import NO_HOSTS, ROUTES, Route, Target, Transport, resolve
from .runtime.switches import switch
from .types.messages import FinishReason

if TYPE_CHECKING:
    from .._features.second_level.settings import SecondLevel
    from .._features.telemetry.observer import Telemetry
    from .._features.user_limits.limit import Limit
    from .money.budget import Budget, Unit
    from .requests.api_keys import EnvFile

Path = str | os.PathLike[str]

MAX_RESPONSE_BYTES = 64_000_000
"""The most decoded bytes of an answer, streamed or not. A stream of 128,000 tokens, each in an event of 350
bytes, has 45 MB."""


def _read_cache(cache: object) -> tuple[str, SecondLevel | None]:
    """The mode and the second level that `cache` names; the environment decides where it is None."""
    if cache is None:
        text = os.environ.get("LLM_PROVIDER_CACHE", "").strip()
        # An empty variable decides nothing.
        switch_or_mode = {"": True, "1": True, "true": True, "0": False, "false": False}
        try:
            return _read_cache(text if "://" in text else switch_or_mode.get(text.lower(), text.lower()))
        except RequestError as error:
            message = str(error).replace(", True or False", "").removeprefix("cache").lstrip(": ")
            colon = "" if message.startswith("must ") else ":"
            raise type(error)(f"LLM_PROVIDER_CACHE{colon} {message}") from None
    if isinstance(cache, bool) or (isinstance(cache, str) and "://" not in cache):
        return check("cache", cache), None
    kind = doors.second_level_settings.SecondLevel
    level = cache if isinstance(cache, kind) else kind(cast("Any", cache))
    return level.mode, level


def _check_reasons(name: str, finish_reasons: Collection[str]) -> frozenset[str]:
    known = {*get_args(FinishReason), "empty"}
    several = isinstance(finish_reasons, Collection) and not isinstance(finish_reasons, str)
    if not several or any(not isinstance(reason, str) or reason not in known for reason in finish_reasons):
        raise RequestError(
            f"{name} must be some of {', '.join(sorted(known))}, in a list such as "
            f"['stop', 'length'], not {cite(finish_reasons)}"
        )
    return frozenset(finish_reasons)


def _check_deployments(name: str, deployments: Mapping[str, str]) -> Mapping[str, str]:
    if not isinstance(deployments, Mapping):
        raise RequestError(
            f"{name} must be a dict, such as {{'azure/mine': 'gpt-6.1-sol'}}, not {cite(deployments)}"
        )
    for deployment, model in deployments.items():
        provider, _, rest = str(deployment).partition("/")
        if not rest or provider not in ROUTES or ROUTES[provider].cloud is None:
            clouds = ", ".join(row.provider for row in ROUTES.values() if row.cloud is not None)
            raise RequestError(
                f"{name} has {cite(deployment)}, which names no deployment at a cloud: write 'azure/mine' "
                f"(clouds: {clouds})"
            )
        plain = isinstance(model, str) and doors.cloud_price_names.drop_region(provider, model)
        if not plain or "/" in plain:
            raise RequestError(
                f"{name}[{deployment!r}] must be a model such as 'gpt-6.1-sol', not {cite(model)}"
            )
    return dict(deployments)


def read_deployments() -> Mapping[str, str]:
    """The deployments of the environment, such as `azure/mine=gpt-6.1-sol`, between spaces or commas."""
    entries = os.environ.get("LLM_PROVIDER_DEPLOYMENTS", "").replace(",", " ").split()
    pairs = [entry.partition("=") for entry in entries]
    return _check_deployments("LLM_PROVIDER_DEPLOYMENTS", {name: model for name, _, model in pairs})


def _check_env_file(_: str, path: Path) -> EnvFile:
    # Imported here because few clients have one.
    from .requests.api_keys import EnvFile

    return EnvFile(path)


def _read_hosts(_: str, hosts: object) -> Mapping[str, Route]:
    if hosts == () and not os.environ.get("LLM_PROVIDER_HOSTS", "").strip():
        return NO_HOSTS
    return doors.host_routes.read_hosts(hosts)


def _limits_of_environment() -> Mapping[Any, Any]:
    path = os.environ.get("LLM_PROVIDER_LIMITS", "").strip()
    return doors.limit_settings.read_limits("LLM_PROVIDER_LIMITS", path) if path else {}


def _check_dollars(name: str, amount: float | None) -> float | None:
    plain = plain_number(amount)
    if amount is not None and (plain is None or not 0 <= plain <= 1e12):
        raise RequestError(f"{name} must be a number of USD, 0 or more, not {cite(amount)}")
    return None if plain is None else float(plain)


def _check_telemetry(_: str, value: object) -> object:
    return value if value is None or value is False else doors.observer.check_telemetry(value)


def _check_callback(name: str, function: object) -> object:
    if not callable(function):
        raise RequestError(f"{name} must be a function of a result, such as print, not {cite(function)}")
    return function


def _budget_of_environment(name: str = "LLM_PROVIDER_BUDGET", unit: Unit = "USD") -> Budget | None:
    text = os.environ.get(name, "").strip()
    path = os.environ.get(f"{name}_FILE", "").strip()
    if not text and not path:
        return None
    if not text:
        raise RequestError(f"{name}_FILE needs an amount: set {name}, in {unit}")
    from decimal import Decimal, InvalidOperation

    from .money.budget import Budget, amount_of

    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise RequestError(f"{name} must be a number of {unit}, not {text!r}") from None
    return Budget(amount_of(amount, name, unit), path=path or None, unit=unit)


def read_prices() -> str | None:
    """The file of prices that the environment names."""
    return os.environ.get("LLM_PROVIDER_PRICES") or None


def _rule(
    check: Callable[[str, Any], object] = lambda _, value: value,
    default: object = None,
    *,
    of: str = "",
    none_counts: bool = False,
) -> Any:
    """How a setting is checked.

    `check` makes the value of the field from the name and the value that the user gave. `default` is for a
    setting that is not given: a value, or a function that finds it in the environment. `of` names the setting
    if it has another name than the field. None means "not given", unless it counts as a value.
    """
    return field(metadata={"check": check, "default": default, "of": of, "none_counts": none_counts})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings of a client, the same for all its calls. Files are checked by what opens them."""

    cache_dir: Path | None = _rule()
    cache_shared: bool | None = _rule()
    # `parse_settings` reads both of them from one argument.
    cache: str = _rule()
    """The mode of calls without `cache`."""
    second_level: SecondLevel | None = _rule(of="cache")
    """The store of answers that machines share."""
    kept_reasons: frozenset[str] = _rule(
        _check_reasons, frozenset({"stop", "tool_calls"}), of="cache_finish_reasons"
    )
    """Finish reasons of the answers that the cache keeps; "empty" for answers without text and tool calls."""
    max_concurrent: Concurrency | None = _rule(lambda _, most: concurrency(most), concurrency_of_environment)
    # Sealed by `parse_settings`, which knows the hosts too.
    keys: Mapping[str, Accounts] = _rule(default={})
    hosts: Mapping[str, Route] = _rule(_read_hosts, lambda: _read_hosts("hosts", ()))
    """The rows of the user's own hosts, by name."""
    deployments: Mapping[str, str] = _rule(_check_deployments, read_deployments)
    env_file: EnvFile | None = _rule(_check_env_file)
    prices: Path | None = _rule(default=read_prices)
    budget: Budget | None = _rule(check, _budget_of_environment)
    token_budget: Budget | None = _rule(
        check, lambda: _budget_of_environment("LLM_PROVIDER_TOKEN_BUDGET", "tokens")
    )
    timeout: Timeouts = _rule(lambda name, value: check(name, value).over(DEFAULT_TIMEOUTS), DEFAULT_TIMEOUTS)
    max_retries: int = _rule(check, DEFAULT_MAX_RETRIES)
    holds_max_retries: bool = _rule(lambda _, __: True, default=False, of="max_retries")
    """Whether the user has set `max_retries`, which then bounds the requests of a call in an outage too."""
    outage_patience: float | None = _rule(check)
    """Seconds; None means 60 for a call and 3,600 for a batch."""
    max_response_bytes: int = _rule(number(1, 2**40, whole=True), MAX_RESPONSE_BYTES)
    on_result: Callable[..., object] | None = _rule(_check_callback)
    rate_control: RateControl = _rule(one_of(RateControl), "adaptive")
    limits: Mapping[tuple[str, str], tuple[str, Limit]] = _rule(
        # The door is opened by the first use.
        lambda name, limits: doors.limit_settings.read_limits(name, limits),  # noqa: PLW0108
        _limits_of_environment,
    )
    """By provider and group of models, what the user has written as the key, and the limit."""
    transport: Transport | None = _rule(one_of(Transport))
    """None means the transport of the route."""
    ledger: Path | None = _rule()
    strict_model: bool = _rule(flag, default=False)
    show_estimate_above: float | None = _rule(_check_dollars, 1.0, none_counts=True)
    telemetry: bool | Telemetry | None = _rule(
        _check_telemetry, lambda: _check_telemetry("", switch("LLM_PROVIDER_OTEL"))
    )
    """None means that OpenTelemetry is used as soon as the program has configured it."""
    log_content: bool = _rule(flag, lambda: switch("LLM_PROVIDER_LOG_CONTENT") or False)
    """Whether log lines and spans hold prompts and answers."""
    show_waits: bool = _rule(flag, lambda: switch("LLM_PROVIDER_SHOW_WAITS") is not False)

    def find_target(self, model: str, base_url: str | None, endpoint: str | None = None) -> Target:
        """The destination of a call, with the errors of `resolve`."""
        return resolve(model, base_url, self.env_file, self.hosts, self.deployments, endpoint)


_FIELDS = tuple(
    (setting.name, setting.metadata["of"] or setting.name, setting.metadata) for setting in fields(Settings)
)

NAMES = frozenset(name for _, name, _ in _FIELDS)
"""The names of the settings, as users write them."""


def parse_settings(parameters: JSONMapping) -> Settings:
    """The settings of a client from its arguments and the environment."""
    if os.environ.get("LLM_PROVIDER_LOG", "").strip():
        doors.observer.install_from_environment()
    values: JSONObject = {}
    for attribute, name, rule in _FIELDS:
        if parameters.get(name) is not None or (name in parameters and rule["none_counts"]):
            values[attribute] = rule["check"](name, parameters[name])
        else:
            default = rule["default"]
            values[attribute] = default() if callable(default) else default
    values["cache"], values["second_level"] = _read_cache(parameters.get("cache"))
    routes: dict[str, Route] = {**ROUTES, **values["hosts"]}
    values["keys"] = seal_keys(values["keys"], {name: row.takes_tokens for name, row in routes.items()})
    if values["limits"]:
        named = values["hosts"], values["deployments"]
        values["limits"] = doors.limit_settings.find_limits(values["limits"], routes, *named)
    return Settings(**values)
