"""`logging` under the logger `llm_provider`: one line for each call, and one for each request at DEBUG.

`llm_provider.calls` has the calls (INFO) and their requests (DEBUG), `llm_provider.waits` the waits
(WARNING), and `llm_provider` itself the outages. Prompts and answers are left out unless `log_content` is
set.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

import orjson

from .._errors import LLMError, RequestError
from .facts import AttemptFacts, CallFacts
from .reasons import reason

if TYPE_CHECKING:
    from .._types.usage import Usage

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
        """The present standard error."""
        return sys.stderr

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        others = logging.getLogger().handlers
        if sys.stderr is not None and all(getattr(one, "stream", None) is not sys.stderr for one in others):
            super().emit(record)


def install_from_environment() -> None:
    """Install a handler for standard error, once, if `LLM_PROVIDER_LOG` asks for it.

    Raises:
        RequestError: the variable is not a level.
    """
    level = os.environ.get(VARIABLE, "").strip().lower()
    if not level:
        return
    if level not in LEVELS:
        raise RequestError(f"{VARIABLE} must be one of {', '.join(LEVELS)}, not {level!r}")
    ROOT.setLevel(level.upper())
    if not any(isinstance(handler, _StderrHandler) for handler in ROOT.handlers):
        ROOT.addHandler(_StderrHandler())


def is_configured(logger: logging.Logger) -> bool:
    """Whether a handler of the program gets the records of a logger.

    >>> is_configured(logging.Logger("without handlers"))
    False
    """
    here: logging.Logger | None = logger
    while here is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in here.handlers):
            return True
        here = here.parent if here.propagate else None
    return False


# --- the lines -------------------------------------------------------------------------------------------


def call_line(
    facts: CallFacts,
    outcome: str,
    seconds: float,
    *,
    usage: Usage | None = None,
    usd: float | None = None,
    **more: Any,
) -> None:
    """Log the end of a call at INFO.

    Args:
        facts: The call.
        outcome: "ok", or the name of the class of its error.
        seconds: How long the caller waited.
        usage: Its tokens, where they are known.
        usd: Its cost in USD, where it is known.
        **more: Further facts, of which those that are None are left out.
    """
    fields: dict[str, Any] = {
        "operation": facts.operation,
        "model": facts.asked,
        "provider": facts.provider,
        "outcome": outcome,
        "seconds": round(seconds, 4),
    }
    if usage is not None:
        fields["input_tokens"], fields["output_tokens"] = usage.input_tokens, usage.output_tokens
    fields["usd"] = None if usd is None else round(usd, 8)
    fields.update(more)
    if facts.tag:
        fields["tag"] = facts.tag
    CALLS.info("%s", _Line("call", fields), extra={"llm_provider": fields})


def attempt_line(facts: CallFacts, attempt: AttemptFacts) -> None:
    """Log the end of a request at DEBUG."""
    failure = attempt.failure
    fields: dict[str, Any] = {
        "model": facts.asked,
        "provider": facts.provider,
        "attempt": attempt.number,
        "outcome": "ok" if failure is None else failure.error,
        "status": None if failure is None else failure.status,
        "waited": round(attempt.waited, 4),
        "seconds": round(attempt.seconds, 4),
        "retry_in": None if attempt.retry_in is None else round(attempt.retry_in, 3),
    }
    CALLS.debug("%s", _Line("attempt", fields), extra={"llm_provider": fields})


def outcome_of(error: BaseException) -> tuple[str, str | None]:
    """The outcome of a call that failed, and the reason if the name of the class does not tell it all."""
    return type(error).__name__, reason(error) if isinstance(error, LLMError) else None


class _Line:
    """The text of a line, made when a handler needs it: `name key=value key=value`."""

    __slots__ = ("_fields", "_name")

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        self._name = name
        self._fields = fields

    def __str__(self) -> str:
        shown = (f"{name}={_shown(value)}" for name, value in self._fields.items() if value is not None)
        return f"{self._name} {' '.join(shown)}"


def _shown(value: Any) -> str:
    """A value as one word, or as JSON.

    >>> _shown("two words"), _shown(True), _shown(0.00001234), _shown("gpt-6.1-sol")
    ('"two words"', 'true', '0.00001234', 'gpt-6.1-sol')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.8f}".rstrip("0").rstrip(".")
    text = str(value)
    plain = text.isascii() and text.isprintable() and text and not set(text) & set(' "=')
    return text if plain else orjson.dumps(text).decode(errors="replace")
