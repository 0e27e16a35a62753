"""Why a request failed, in a few words of our own: those of providers and SDKs may quote the prompt."""

import errno
import os
from types import MappingProxyType

from .._errors import (
    APIConnectionError,
    APIResponseValidationError,
    APITimeoutError,
    InternalServerError,
    LLMError,
    OverloadedError,
    ProviderError,
    QuotaExceededError,
    RateLimitError,
)

_WORDS = MappingProxyType({
    RateLimitError: "rate limited",
    OverloadedError: "overloaded",
    QuotaExceededError: "no quota left",
    InternalServerError: "server error",
    APIResponseValidationError: "invalid answer",
})  # fmt: skip

_NUMBERS = MappingProxyType({name: number for number, name in errno.errorcode.items()})


def reason(error: BaseException) -> str:
    if isinstance(error, APIConnectionError):
        return _of_connection(error)
    if isinstance(error, APITimeoutError):
        limit = "" if error.limit is None else f" of {error.limit:g} s"
        return f"timeout{limit}{'' if error.phase is None else f' ({error.phase})'}"
    words = next((words for kind, words in _WORDS.items() if isinstance(error, kind)), type(error).__name__)
    status = error.status if isinstance(error, LLMError) else None
    return words if status is None else f"{words} (HTTP {status})"


def _of_connection(error: ProviderError) -> str:
    number = _NUMBERS.get(error.code or "")
    if number is not None:
        return os.strerror(number).lower()
    if error.code == "ENOTFOUND":
        return "name not resolved"
    return "connection broke" if error.maybe_billed else "no connection"
