"""Why a request failed, in a few words of our own: those of providers and SDKs may quote the prompt."""

import errno
import os
from types import MappingProxyType

from .. import errors

_WORDS = MappingProxyType({
    errors.RateLimitError: "rate limited",
    errors.OverloadedError: "overloaded",
    errors.QuotaExceededError: "no quota left",
    errors.InternalServerError: "server error",
    errors.APIResponseValidationError: "invalid answer",
})  # fmt: skip

_NUMBERS = MappingProxyType({name: number for number, name in errno.errorcode.items()})


def reason(error: BaseException) -> str:
    if isinstance(error, errors.APIConnectionError):
        return _of_connection(error)
    if isinstance(error, errors.APITimeoutError):
        limit = "" if error.limit is None else f" of {error.limit:g} s"
        return f"timeout{limit}{'' if error.phase is None else f' ({error.phase})'}"
    words = next((words for kind, words in _WORDS.items() if isinstance(error, kind)), type(error).__name__)
    status = error.status if isinstance(error, errors.LLMError) else None
    return words if status is None else f"{words} (HTTP {status})"


def _of_connection(error: errors.ProviderError) -> str:
    number = _NUMBERS.get(error.code or "")
    if number is not None:
        return os.strerror(number).lower()
    if error.code == "ENOTFOUND":
        return "name not resolved"
    return "connection broke" if error.maybe_billed else "no connection"
