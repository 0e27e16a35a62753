"""The settings of a client: each with its check, its default, and its variable of the environment.

`ClientSettings` in `_requests/parameters` has what users read of them: their types and documentation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Required, TypedDict, get_args

from ._errors import RequestError, cite
from ._json_values import JSONMapping, JSONObject, plain_number
from ._limits.concurrency import Concurrency, concurrency, concurrency_of_environment
from ._limits.retry import DEFAULT_MAX_RETRIES
from ._limits.timeouts import DEFAULT_TIMEOUTS, Timeouts
from ._requests.api_keys import Accounts, seal_keys
from ._requests.checks import RateControl, flag, number, one_of
from ._requests.request import check
from ._requests.routing import NO_HOSTS, ROUTES, Route, Target, Transport, resolve
from ._telemetry.logs import install_from_environment
from ._telemetry.telemetry import CONTENT_VARIABLE, WAITS_VARIABLE, Telemetry, check_telemetry, switch
from ._types.messages import FinishReason

if TYPE_CHECKING:
    from ._cache.second_level.settings import SecondLevel
    from ._money.budget import Budget
    from ._requests.env_file import EnvFile

Path = str | os.PathLike[str]

MAX_RESPONSE_BYTES = 64_000_000
"""The most decoded bytes of an answer, streamed or not. A stream of 128,000 tokens, each in an event of 350
bytes, has 45 MB."""


_SWITCHES = {"": True, "1": True, "true": True, "0": False, "false": False}
"""What users write in `LLM_PROVIDER_CACHE` beside the modes."""


def _read_cache(cache: object) -> tuple[str, SecondLevel | None]:
    """The mode and the second level that `cache` names; the environment decides where it is None."""
    if cache is None:
        text = os.environ.get("LLM_PROVIDER_CACHE", "").strip()
        try:
            return _read_cache(text if "://" in text else _SWITCHES.get(text.lower(), text.lower()))
        except RequestError as error:
            message = str(error).replace(", True or False", "").removeprefix("cache")
            message = message.removeprefix(": ").removeprefix(" ")
            kind = type(error)
            raise kind(
                f"LLM_PROVIDER_CACHE {message}"
                if message[:5] == "must "
                else f"LLM_PROVIDER_CACHE: {message}"
            ) from None
    if isinstance(cache, bool) or (isinstance(cache, str) and "://" not in cache):
        return check("cache", cache), None
    # Imported here because most clients have one level.
    from ._cache.second_level.settings import second_level_of

    level = second_level_of(cache)
    return level.mode, level


def _check_reasons(name: str, finish_reasons: Collection[str]) -> frozenset[str]:
    known = {*get_args(FinishReason), "empty"}
    if (
        isinstance(finish_reasons, str)
        or not isinstance(finish_reasons, Collection)
        or any(not isinstance(reason, str) or reason not in known for reason in finish_reasons)
    ):
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
    from ._money.cloud_names import drop_region

    for deployment, model in deployments.items():
        provider, _, rest = str(deployment).partition("/")
        if not rest or provider not in ROUTES or ROUTES[provider].cloud is None:
            clouds = ", ".join(row.provider for row in ROUTES.values() if row.cloud is not None)
            raise RequestError(
                f"{name} has {cite(deployment)}, which names no deployment at a cloud: write 'azure/mine' "
                f"(clouds: {clouds})"
            )
        if not isinstance(model, str) or not model or "/" in drop_region(provider, model):
            raise RequestError(
                f"{name}[{deployment!r}] must be a model such as 'gpt-6.1-sol', not {cite(model)}"
            )
    return dict(deployments)


def read_deployments() -> Mapping[str, str]:
    """Those of the environment, such as `azure/mine=gpt-6.1-sol`, with spaces or commas between them."""
    entries = os.environ.get("LLM_PROVIDER_DEPLOYMENTS", "").replace(",", " ").split()
    pairs = [entry.partition("=") for entry in entries]
    return _check_deployments("LLM_PROVIDER_DEPLOYMENTS", {name: model for name, _, model in pairs})


def _check_env_file(_: str, path: Path) -> EnvFile:
    # Imported here because few clients have one.
    from ._requests.env_file import EnvFile

    return EnvFile(path)


def _read_hosts(_: str, hosts: object) -> Mapping[str, Route]:
    if hosts == () and not os.environ.get("LLM_PROVIDER_HOSTS", "").strip():
        return NO_HOSTS
    # Imported here because few clients have one.
    from ._requests.host_routes import read_hosts

    return read_hosts(hosts)


def _check_dollars(name: str, amount: float | None) -> float | None:
    plain = plain_number(amount)
    if amount is not None and (plain is None or not 0 <= plain < float("inf")):
        raise RequestError(f"{name} must be a number of USD, 0 or more, not {cite(amount)}")
    return None if plain is None else float(plain)


def _check_callback(name: str, function: object) -> object:
    if not callable(function):
        raise RequestError(f"{name} must be a function of a result, such as print, not {cite(function)}")
    return function


def _budget_of_environment() -> Budget | None:
    text = os.environ.get("LLM_PROVIDER_BUDGET", "").strip()
    path = os.environ.get("LLM_PROVIDER_BUDGET_FILE", "").strip()
    if not text and not path:
        return None
    if not text:
        raise RequestError("LLM_PROVIDER_BUDGET_FILE needs an amount: set LLM_PROVIDER_BUDGET, in USD")
    from decimal import Decimal, InvalidOperation

    from ._money.budget import Budget, amount_of

    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise RequestError(f"LLM_PROVIDER_BUDGET must be a number of USD, not {text!r}") from None
    return Budget(amount_of(amount, "LLM_PROVIDER_BUDGET"), path=path or None)


class _Rule(TypedDict, total=False):
    """How a setting is checked."""

    check: Required[Callable[[str, Any], object]]
    """Makes the value of the field from the name and the value that the user gave."""
    default: object
    """The value of a setting that is not given, or a function that finds it in the environment."""
    of: str
    """The name of the setting, where it is not that of the field."""
    none_counts: bool
    """Whether None is checked like any other value. Else it means "not given"."""


def _keep(_: str, value: object) -> object:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The checked settings of a client, the same for all its calls. Files are checked by what opens them."""

    cache_dir: Path | None = field(metadata=_Rule(check=_keep))
    cache_shared: bool | None = field(metadata=_Rule(check=_keep))
    cache: str = field(
        metadata=_Rule(check=lambda _, setting: _read_cache(setting)[0], default=lambda: _read_cache(None)[0])
    )
    """The mode of calls without `cache`."""
    second_level: SecondLevel | None = field(
        metadata=_Rule(
            check=lambda _, setting: _read_cache(setting)[1], default=lambda: _read_cache(None)[1], of="cache"
        )
    )
    """The store of answers that machines share."""
    kept: frozenset[str] = field(
        metadata=_Rule(
            check=_check_reasons,
            default=frozenset({"stop", "tool_calls"}),
            of="cache_finish_reasons",
        )
    )
    """Finish reasons of the answers that the cache keeps; "empty" for answers without text and tool calls."""
    max_concurrent: Concurrency | None = field(
        metadata=_Rule(check=lambda _, most: concurrency(most), default=concurrency_of_environment)
    )
    keys: Mapping[str, Accounts] = field(
        # Sealed by `parse_settings`, which knows the hosts too.
        metadata=_Rule(check=_keep, default={})
    )
    hosts: Mapping[str, Route] = field(
        metadata=_Rule(check=_read_hosts, default=lambda: _read_hosts("hosts", ()))
    )
    """The rows of the user's own hosts, by name."""
    deployments: Mapping[str, str] = field(metadata=_Rule(check=_check_deployments, default=read_deployments))
    env_file: EnvFile | None = field(metadata=_Rule(check=_check_env_file))
    prices: Path | None = field(metadata=_Rule(check=_keep))
    budget: Budget | None = field(metadata=_Rule(check=check, default=_budget_of_environment))
    timeout: Timeouts = field(
        metadata=_Rule(
            check=lambda name, value: check(name, value).over(DEFAULT_TIMEOUTS), default=DEFAULT_TIMEOUTS
        )
    )
    max_retries: int = field(metadata=_Rule(check=check, default=DEFAULT_MAX_RETRIES))
    holds_max_retries: bool = field(metadata=_Rule(check=lambda _, __: True, default=False, of="max_retries"))
    """Whether the user has set `max_retries`, which then bounds the requests of a call in an outage too."""
    outage_patience: float | None = field(metadata=_Rule(check=check))
    """Seconds; None means 60 for a call and 3,600 for a batch."""
    max_response_bytes: int = field(
        metadata=_Rule(check=number(1, 2**40, whole=True), default=MAX_RESPONSE_BYTES)
    )
    on_result: Callable[..., object] | None = field(metadata=_Rule(check=_check_callback))
    rate_control: RateControl = field(metadata=_Rule(check=one_of(RateControl), default="adaptive"))
    transport: Transport | None = field(metadata=_Rule(check=one_of(Transport)))
    """None means the transport of the route."""
    ledger: Path | None = field(metadata=_Rule(check=_keep))
    strict_model: bool = field(metadata=_Rule(check=flag, default=False))
    show_estimate_above: float | None = field(
        metadata=_Rule(check=_check_dollars, default=1.0, none_counts=True)
    )
    telemetry: bool | Telemetry | None = field(
        metadata=_Rule(check=lambda _, value: check_telemetry(value), default=lambda: check_telemetry(None))
    )
    """None means that OpenTelemetry is used as soon as the program has configured it."""
    log_content: bool = field(metadata=_Rule(check=flag, default=lambda: switch(CONTENT_VARIABLE) or False))
    """Whether log lines and spans hold prompts and answers."""
    show_waits: bool = field(metadata=_Rule(check=flag, default=lambda: switch(WAITS_VARIABLE) is not False))

    def find_target(self, model: str, base_url: str | None) -> Target:
        """The destination of a call, with the errors of `resolve`."""
        return resolve(model, base_url, self.env_file, self.hosts, self.deployments)

    def transport_of(self, route: Route) -> Transport:
        """The HTTP client of a route."""
        return self.transport or route.transport


_FIELDS = tuple(
    (setting.name, setting.metadata.get("of", setting.name), setting.metadata) for setting in fields(Settings)
)

NAMES = frozenset(name for _, name, _ in _FIELDS)
"""The names of the settings, as users write them."""


def parse_settings(parameters: JSONMapping) -> Settings:
    """The settings of a client from its arguments and the environment."""
    install_from_environment()
    values: JSONObject = {}
    for attribute, name, rule in _FIELDS:
        if parameters.get(name) is not None or (name in parameters and rule.get("none_counts")):
            values[attribute] = rule["check"](name, parameters[name])
        else:
            default = rule.get("default")
            values[attribute] = default() if callable(default) else default
    values["keys"] = seal_keys(values["keys"], {**ROUTES, **values["hosts"]})
    return Settings(**values)
