"""`Telemetry`: which OpenTelemetry providers a client uses, and when it does.

With the default, a client begins to export as soon as the program has configured OpenTelemetry's SDK, as
other libraries do. The anthropic SDK's own spans are switched off here.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from ..._core.errors import MissingDependencyError, RequestError
from ..._core.runtime.imports import install_command
from ..._core.words import read_switch

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

SDK = "opentelemetry.sdk"
SDK_METRICS = f"{SDK}.metrics"
VARIABLE = "LLM_PROVIDER_OTEL"
CONTENT_VARIABLE = "LLM_PROVIDER_LOG_CONTENT"
WAITS_VARIABLE = "LLM_PROVIDER_SHOW_WAITS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Telemetry:
    """The OpenTelemetry providers of a client, in place of the global ones.

    Args:
        tracer_provider: Makes the spans; None for the global provider of OpenTelemetry's SDK.
        meter_provider: Takes the metrics; None for the same.

    >>> from llm_provider import Client
    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> with Client(telemetry=Telemetry(tracer_provider=TracerProvider())) as client:
    ...     client.statistics()
    []
    """

    tracer_provider: TracerProvider | None = None
    meter_provider: MeterProvider | None = None


def switch(variable: str) -> bool | None:
    """A variable of the environment that is on or off; None if it is not set."""
    text = os.environ.get(variable, "").strip()
    is_on = read_switch(text)
    if text and is_on is None:
        raise RequestError(f"{variable} must be 1 or 0, not {text!r}")
    return is_on


def check_telemetry(value: bool | Telemetry | None) -> bool | Telemetry | None:
    """The setting `telemetry`; None if OpenTelemetry is used as soon as the program configures it."""
    if value is None:
        value = switch(VARIABLE)
    if value is not None and not isinstance(value, (bool, Telemetry)):
        raise RequestError(f"telemetry must be True, False, None or a Telemetry, not {value!r}")
    if value:
        try:
            import opentelemetry.metrics
            import opentelemetry.trace  # noqa: F401  # to find out whether it is there
        except ImportError:
            raise MissingDependencyError(
                f"telemetry needs the package opentelemetry-api: {install_command('otel')}"
            ) from None
    return value


def find_provider(telemetry: bool | Telemetry | None, signal: Literal["trace", "metrics"]) -> Any:
    """The provider of spans or of metrics; None if the program has not configured one."""
    name = "tracer_provider" if signal == "trace" else "meter_provider"
    provider = getattr(telemetry, name, None)
    if provider is None:
        if telemetry is False or (telemetry is not True and f"{SDK}.{signal}" not in sys.modules):
            return None
        provider = getattr(import_module(f"opentelemetry.{signal}"), f"get_{name}")()
    # The API's own providers are proxies, or do nothing.
    return None if type(provider).__module__.startswith(f"opentelemetry.{signal}") else provider
