"""The settings of a client: checked arguments, with defaults and the values of the environment."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

from ._errors import RequestError, shown
from ._json_values import plain_number
from ._limits.retry import DEFAULT_MAX_RETRIES
from ._limits.timeouts import DEFAULT_TIMEOUTS, Timeouts
from ._requests.api_keys import Accounts, KeyList, sealed
from ._requests.checks import flag, number
from ._requests.request import check
from ._requests.routing import ROUTES, Route, Transport
from ._telemetry.logs import install_from_environment
from ._telemetry.telemetry import CONTENT_VARIABLE, WAITS_VARIABLE, Telemetry, check_telemetry, switch
from ._types.messages import FinishReason

if TYPE_CHECKING:
    from decimal import Decimal

    from ._cache.second_level.settings import SecondLevel
    from ._money.budget import Budget
    from ._requests.env_file import EnvFile

T = TypeVar("T")

RateControl = Literal["adaptive", "shared", "independent", "aimd"]
"""How the limit of a scope is found. "adaptive", "shared" and "independent" use `_limits/controller`, which
the processes of a machine share from the first refusal on, from the first request on, or not at all. "aimd"
is the baseline for comparisons: additive increase and multiplicative decrease alone."""

KEPT_BY_DEFAULT: tuple[FinishReason, ...] = ("stop", "tool_calls")
"""The finish reasons of answers that the cache keeps and serves unless a client says otherwise."""


MAX_RESPONSE_BYTES = 64_000_000
"""The most decoded bytes of an answer, streamed or not. A stream of 128,000 tokens, each in an event of 350
bytes, has 45 MB."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The checked settings of a client, the same for all its calls."""

    timeout: Timeouts
    max_retries: int
    holds_max_retries: bool
    """Whether the user has set `max_retries`, which then bounds the requests of a call in an outage too."""
    outage_patience: float | None
    """Seconds; None means 60 for a call and 3,600 for a batch."""
    max_response_bytes: int
    cache: str
    """The mode of calls without `cache`."""
    second_level: SecondLevel | None
    """The store of answers that machines share."""
    kept: frozenset[str]
    """Finish reasons of the answers that the cache keeps; "empty" for answers without text and tool calls."""
    rate_control: RateControl
    transport: Transport | None
    """None means the transport of the route."""
    keys: Mapping[str, Accounts]
    budget: Budget | None
    env_file: EnvFile | None
    telemetry: bool | Telemetry | None
    """None means that OpenTelemetry is used as soon as the program has configured it."""
    log_content: bool
    """Whether log lines and spans hold prompts and answers."""
    show_waits: bool

    def transport_of(self, route: Route) -> Transport:
        """The HTTP client of a route."""
        return self.transport or route.transport


def decide(
    *,
    timeout: float | Timeouts,
    max_retries: int | None,
    outage_patience: float | None,
    max_response_bytes: int,
    cache: object,
    cache_finish_reasons: Collection[str],
    rate_control: RateControl,
    transport: Transport | None,
    keys: Mapping[str, KeyList],
    budget: float | Decimal | Budget | None,
    env_file: str | os.PathLike[str] | None,
    telemetry: bool | Telemetry | None,
    log_content: bool | None,
    show_waits: bool | None,
) -> Settings:
    """The settings of a client from its arguments, which `Client` documents.

    Raises:
        RequestError: an argument or a variable of the environment is not valid.
        MissingDependencyError: `telemetry` is on, and OpenTelemetry's API is not installed.
    """
    install_from_environment()
    mode, second_level = _cache_of(cache)
    return Settings(
        timeout=check("timeout", timeout).over(DEFAULT_TIMEOUTS),
        max_retries=DEFAULT_MAX_RETRIES if max_retries is None else check("max_retries", max_retries),
        holds_max_retries=max_retries is not None,
        outage_patience=None if outage_patience is None else check("outage_patience", outage_patience),
        max_response_bytes=int(_size("max_response_bytes", max_response_bytes)),
        cache=mode,
        second_level=second_level,
        kept=_kept(cache_finish_reasons),
        rate_control=_one_of("rate_control", rate_control, get_args(RateControl)),
        transport=None if transport is None else _one_of("transport", transport, get_args(Transport)),
        keys=sealed(keys, ROUTES),
        budget=_budget_of_environment() if budget is None else check("budget", budget),
        env_file=None if env_file is None else _env_file(env_file),
        telemetry=check_telemetry(telemetry),
        log_content=_switched("log_content", log_content, CONTENT_VARIABLE, default=False),
        show_waits=_switched("show_waits", show_waits, WAITS_VARIABLE, default=True),
    )


def _env_file(path: str | os.PathLike[str]) -> EnvFile:
    # Imported here because few clients have one.
    from ._requests.env_file import EnvFile

    return EnvFile(path)


def _switched(name: str, value: bool | None, variable: str, *, default: bool) -> bool:
    """A setting that is on or off: its argument, else its variable of the environment, else the default."""
    found = switch(variable) if value is None else flag(name, value)
    return default if found is None else found


_size = number(1, 2**40, whole=True)


def _one_of(name: str, value: T, known: tuple[T, ...]) -> T:
    if not isinstance(value, str) or value not in known:
        from ._requests.remedies import word_remedy

        remedy = word_remedy(name, value, known)
        raise RequestError(f"{name} must be one of {', '.join(map(str, known))}, not {shown(value)}{remedy}")
    return value


def _budget_of_environment() -> Budget | None:
    text = os.environ.get("LLM_PROVIDER_BUDGET", "").strip()
    path = os.environ.get("LLM_PROVIDER_BUDGET_FILE", "").strip()
    if not text and not path:
        return None
    from decimal import Decimal, InvalidOperation

    from ._money.budget import Budget, amount_of

    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise RequestError(f"LLM_PROVIDER_BUDGET must be a number of USD, not {text!r}") from None
    return Budget(amount_of(amount, "LLM_PROVIDER_BUDGET"), path=path or None)


def _cache_of(given: object) -> tuple[str, SecondLevel | None]:
    """The mode and the second level that `cache` names; the environment decides where it is None."""
    if given is None:
        text = os.environ.get("LLM_PROVIDER_CACHE", "").strip()
        try:
            return _cache_of(text if "://" in text else text.lower() or "use")
        except RequestError as error:
            message = str(error).removeprefix("cache").removeprefix(": ").removeprefix(" ")
            kind = type(error)
            raise kind(
                f"LLM_PROVIDER_CACHE {message}"
                if message[:5] == "must "
                else f"LLM_PROVIDER_CACHE: {message}"
            ) from None
    if isinstance(given, bool) or (isinstance(given, str) and "://" not in given):
        return check("cache", given), None
    # Imported here because most clients have one level.
    from ._cache.second_level.settings import second_level_of

    level = second_level_of(given)
    return level.mode, level


def _kept(finish_reasons: Collection[str]) -> frozenset[str]:
    known = {*get_args(FinishReason), "empty"}
    if (
        isinstance(finish_reasons, str)
        or not isinstance(finish_reasons, Collection)
        or any(not isinstance(reason, str) or reason not in known for reason in finish_reasons)
    ):
        raise RequestError(
            f"cache_finish_reasons must be some of {', '.join(sorted(known))}, in a list such as "
            f"['stop', 'length'], not {shown(finish_reasons)}"
        )
    return frozenset(finish_reasons)


def dollars(name: str, amount: float | None) -> float | None:
    """An amount of USD, checked.

    Raises:
        RequestError: it is not a number of 0 or more.
    """
    if amount is None:
        return None
    plain = plain_number(amount)
    if plain is None or not 0 <= plain < float("inf"):
        raise RequestError(f"{name} must be a number of USD, 0 or more, not {shown(amount)}")
    return float(plain)


def callback(name: str, function: T | None) -> T | None:
    """A function that is called with each result, checked.

    Raises:
        RequestError: it cannot be called.
    """
    if function is not None and not callable(function):
        raise RequestError(f"{name} must be a function of a result, such as print, not {shown(function)}")
    return function
