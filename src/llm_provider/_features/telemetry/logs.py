"""`logging` under the logger `llm_provider`: one line for each call, and one for each request at DEBUG.

`llm_provider.calls` has the calls (INFO) and their requests (DEBUG), `llm_provider.waits` the waits
(WARNING).
"""

import logging
import os
import sys
from collections.abc import Mapping
from typing import TextIO

import orjson

from ..._core.errors import RequestError
from ..._core.events.observed_call import EndedAttempt, ObservedCall
from ..._core.types.usage import Usage

ROOT = logging.getLogger("llm_provider")
CALLS = logging.getLogger("llm_provider.calls")
WAITS = logging.getLogger("llm_provider.waits")

is_logging = CALLS.isEnabledFor
"""Whether a level of `llm_provider.calls` is logged."""

VARIABLE = "LLM_PROVIDER_LOG"
LEVELS = ("debug", "info", "warning")
_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"

# Without a handler, `logging` would print warnings to standard error, where `waits` tells them too.
ROOT.addHandler(logging.NullHandler())


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
    level = os.environ.get(VARIABLE, "").strip().lower()
    if not level:
        return
    if level not in LEVELS:
        raise RequestError(f"{VARIABLE} must be one of {', '.join(LEVELS)}, not {level!r}")
    ROOT.setLevel(level.upper())
    if not any(isinstance(handler, _StderrHandler) for handler in ROOT.handlers):
        ROOT.addHandler(_StderrHandler())


def is_configured(logger: logging.Logger) -> bool:
    """Whether a handler of the program gets the records of a logger."""
    here: logging.Logger | None = logger
    while here is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in here.handlers):
            return True
        here = here.parent if here.propagate else None
    return False


def log_call(
    call: ObservedCall, outcome: str, seconds: float, usage: Usage | None, usd: float | None, **more: object
) -> None:
    """Log the end of a call at INFO: "ok" or the class of its error, and its seconds. None is left out."""
    fields: dict[str, object] = {
        "operation": call.operation,
        "model": call.model_as_given,
        "provider": call.provider,
        "outcome": outcome,
        "seconds": round(seconds, 4),
    }
    if usage is not None:
        fields |= {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    fields |= {"usd": None if usd is None else round(usd, 8), **more}
    if call.tag:
        fields["tag"] = call.tag
    CALLS.info("%s", _Line("call", fields), extra={"llm_provider": fields})


def log_attempt(call: ObservedCall, attempt: EndedAttempt) -> None:
    failure = attempt.failure
    fields = {
        "model": call.model_as_given,
        "provider": call.provider,
        "attempt": attempt.number,
        "outcome": "ok" if failure is None else failure.error,
        "status": None if failure is None else failure.status,
        "waited": round(attempt.waited, 4),
        "seconds": round(attempt.seconds, 4),
        "retry_in": None if attempt.retry_in is None else round(attempt.retry_in, 3),
    }
    CALLS.debug("%s", _Line("attempt", fields), extra={"llm_provider": fields})


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
