"""`logging` under the logger `llm_provider`: one line for each call, and one for each request at DEBUG.

`llm_provider.calls` has the calls (INFO) and their requests (DEBUG). `llm_provider.waits` has the waits
(WARNING), which `_core/events/waits` tells.
"""

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import orjson

from ..._core.errors import RequestError
from ..._core.events.waits import ROOT
from ..._core.runtime.json_pieces import LARGE
from ..._core.types.usage import ServedBy, Usage

CALLS = logging.getLogger("llm_provider.calls")
VARIABLE = "LLM_PROVIDER_LOG"
LEVELS = ("debug", "info", "warning")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to what `sys.stderr` is at that moment, unless a handler of the program writes there too."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)
        self.setFormatter(logging.Formatter(_FORMAT))

    @property
    def stream(self) -> TextIO:  # type: ignore[override]  # the base class has an attribute
        return sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        others = logging.getLogger().handlers
        if sys.stderr is not None and all(
            getattr(other, "stream", None) is not sys.stderr for other in others
        ):
            super().emit(record)


def install_from_environment() -> None:
    """Install a handler for standard error, once, if `LLM_PROVIDER_LOG` asks for it."""
    level = os.environ[VARIABLE].strip().lower()
    if level not in LEVELS:
        raise RequestError(f"{VARIABLE} must be one of {', '.join(LEVELS)}, not {level!r}")
    ROOT.setLevel(level.upper())
    if not any(isinstance(handler, _StderrHandler) for handler in ROOT.handlers):
        ROOT.addHandler(_StderrHandler())


def log_call(
    call: Any, outcome: str, seconds: float, usage: Usage | None, usd: float | None, **more: object
) -> None:
    """Log the end of a call at INFO: "ok" or the class of its error, and its seconds. None is left out."""
    fields: dict[str, object] = {
        "operation": call.exchange.name,
        **_name_model(call),
        "outcome": outcome,
        "seconds": round(seconds, 4),
    }
    if usage is not None:
        fields |= {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    fields |= {"usd": None if usd is None else round(usd, 8), **more}
    if call.tracks.tag:
        fields["tag"] = call.tracks.tag
    CALLS.info("%s", _Line("call", fields), extra={"llm_provider": fields})


def log_attempt(call: Any, attempt: Any) -> None:
    failure = attempt.failure
    fields = {
        **_name_model(call),
        "attempt": attempt.number,
        "outcome": "ok" if failure is None else failure.error,
        "status": None if failure is None else failure.status,
        "waited": round(attempt.waited, 4),
        "seconds": round(attempt.seconds, 4),
        "retry_in": None if attempt.retry_in is None else round(attempt.retry_in, 3),
    }
    CALLS.debug("%s", _Line("attempt", fields), extra={"llm_provider": fields})


def _name_model(call: Any) -> dict[str, str]:
    """The model by the name that the user gave, and its provider."""
    target = call.target
    return {"model": getattr(call.request, "model", target.model), "provider": target.provider}


def find_served_by(outcome: object) -> ServedBy | None:
    """Who gave an answer; None for an error, and for a large body, which is not read on the loop."""
    if len(getattr(outcome, "body", b"")) >= LARGE:
        return None
    served_by: ServedBy | None = getattr(outcome, "served_by", None)
    return served_by


class _Line:
    """The text of a line, made when a handler needs it: `name key=value key=value`."""

    def __init__(self, name: str, fields: Mapping[str, object]) -> None:
        self._name, self._fields = name, fields

    def __str__(self) -> str:
        pairs = (f"{name}={_quote(value)}" for name, value in self._fields.items() if value is not None)
        return f"{self._name} {' '.join(pairs)}"


def _quote(value: object) -> str:
    """A value as one word, or as JSON.

    >>> _quote("two words"), _quote(True), _quote(0.00001234), _quote("gpt-6.1-sol")
    ('"two words"', 'true', '0.00001234', 'gpt-6.1-sol')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.8f}".rstrip("0").rstrip(".")
    text = str(value)
    plain = text.isascii() and text.isprintable() and text and not set(text) & set(' "=')
    return text if plain else orjson.dumps(text).decode(errors="replace")
