"""The features that the core uses: name → the module that has it, imported by the first call that needs it.

Nothing else in the core names a module of a feature. What the core expects of each is said in this table.
It is a file of its own, as the test of the layers knows it as the only door.
"""

from __future__ import annotations

import functools
import importlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import RequestError
from ..words import read_switch

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

_MODULES = {
    # `Observer`: listens to calls. `check_package`: whether OpenTelemetry is installed.
    "telemetry": "_features.telemetry.observer",
    # `install_from_environment`: the handler that `LLM_PROVIDER_LOG` asks for.
    "logs": "_features.telemetry.logs",
}


@functools.cache
def load(name: str) -> Any:
    """The module of a feature."""
    return importlib.import_module(f"{__name__.partition('.')[0]}.{_MODULES[name]}")


def switch(variable: str) -> bool | None:
    """A variable of the environment that is on or off; None if it is not set."""
    text = os.environ.get(variable, "").strip()
    is_on = read_switch(text)
    if text and is_on is None:
        raise RequestError(f"{variable} must be 1 or 0, not {text!r}")
    return is_on


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
