"""The words that parameters accept, and the checks that several parameters share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, get_args

from .._errors import RequestError, shown
from .._json_values import plain_number

ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max", "default"]
ReasoningSummary: TypeAlias = Literal["auto", "concise", "detailed"]
ReasoningContext: TypeAlias = Literal["auto", "current_turn", "all_turns"]
Verbosity: TypeAlias = Literal["low", "medium", "high"]
Modality: TypeAlias = Literal["text", "audio", "image"]
ServiceTier: TypeAlias = Literal[
    "auto", "default", "flex", "priority", "scale", "fast", "standard", "standard_only"
]
Unsupported: TypeAlias = Literal["raise", "drop"]
Endpoint: TypeAlias = Literal["chat", "responses"]
InBatch: TypeAlias = Literal["live", "wait", "refuse"]
DeliveryMode: TypeAlias = Literal["live", "batch", "auto"]
Resend: TypeAlias = Literal["batch", "live"]
CacheMode: TypeAlias = Literal["use", "refresh", "only", "off"]


def number(low: float, high: float, *, whole: bool = False) -> Callable[[str, Any], float]:
    """A check for a parameter that is a number between two bounds, both of which it may equal."""
    expected = f"an int from {low} to {high}" if whole else f"a number from {low:g} to {high:g}"

    def check(name: str, value: Any) -> float:
        plain = plain_number(value)
        # NaN and infinities fail the comparison too.
        if plain is None or (whole and isinstance(plain, float)) or not low <= plain <= high:
            from .remedies import number_remedy

            remedy = number_remedy(name, value, low, high, whole=whole)
            raise RequestError(f"{name} must be {expected}, not {shown(value)}{remedy}")
        return plain

    return check


def text(name: str, value: Any) -> str:
    """A check for a parameter that is a text."""
    if not isinstance(value, str) or not value:
        # An API key must not be shown.
        given = type(value).__name__ if name == "api_key" else shown(value)
        from .remedies import text_remedy

        raise RequestError(f"{name} must be a non-empty str, not {given}{text_remedy(name, value)}")
    return value


def flag(name: str, value: Any) -> bool:
    """A check for a parameter that is True or False."""
    if not isinstance(value, bool):
        raise RequestError(f"{name} must be True or False, not {shown(value)}")
    return value


def one_of(words: Any) -> Callable[[str, Any], Any]:
    """A check for a parameter that is one of the words of a `Literal`.

    >>> one_of(Endpoint)("endpoint", "chat")
    'chat'
    """
    known = get_args(words)
    expected = f"{known[0]!r} or {known[1]!r}" if len(known) == 2 else f"one of {', '.join(known)}"

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, str) or value not in known:
            from .remedies import word_remedy

            remedy = word_remedy(name, value, known)
            raise RequestError(f"{name} must be {expected}, not {shown(value)}{remedy}")
        return str(value)

    return check
