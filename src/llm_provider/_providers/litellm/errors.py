"""Exceptions of litellm → our errors."""

from __future__ import annotations

import ast
import re

import orjson

from ..._errors import (
    APIResponseValidationError,
    APITimeoutError,
    ContextWindowExceededError,
    LLMError,
    MissingDependencyError,
    RefusalError,
    UnknownModelError,
    UnsupportedParameterError,
)
from ..errors import (
    error_fields,
    exception_chain,
    failure_headers,
    from_answer,
    from_exception,
    readable_message,
)

_PREFIX = re.compile(
    r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout): |^\w+(?:Exception|Error)(?: Timeout)? - "
)
_TAIL = re.compile(r"\. Handle with `litellm\.|\s*Traceback \(most recent|\s*Original exception: | To drop ")
_PARAMETERS = (
    re.compile(r"parameters: \['(\w+)'"),
    re.compile(r"not support (?:the )?(\w+)"),
    re.compile(r"Setting (\w+) is not supported"),
)
_UNREADABLE = re.compile(
    r"Unable to get json response|Empty or invalid response|provider returned|while decompressing"
    r"|'str' object has no attribute 'model_dump'|maximum recursion depth|Invalid response object"
)
_TRANSPORT_ERRORS = frozenset({"TransportError", "ClientError", "OSError", "TimeoutError"})


def map_error(error: BaseException) -> LLMError:
    """The error for an exception of litellm, or of anything below it."""
    if isinstance(error, LLMError):
        return error
    names = _names(error)
    original = getattr(error, "original_exception", None)
    if "MidStreamFallbackError" in names and isinstance(original, BaseException):
        mapped = map_error(original)
        mapped.maybe_billed = True
        return mapped
    message = _message(error)
    if "UnsupportedParamsError" in names:
        found = next(filter(None, (pattern.search(message) for pattern in _PARAMETERS)), None)
        return UnsupportedParameterError(
            f"{message.rstrip('. ')}: leave it out", parameter=found.group(1) if found else "extra_body"
        )
    if "LLM Provider NOT provided" in message:
        return UnknownModelError(
            "model: litellm does not know this provider; docs.litellm.ai/docs/providers lists those that it "
            "knows; write one of them before the name, or 'local/...' with base_url= for your own server"
        )
    return _failure(error, names, message)


def _failure(error: BaseException, names: set[str], message: str) -> LLMError:
    headers = failure_headers(error)
    links = list(exception_chain(error))
    for link in links:
        if isinstance(link, ImportError):
            return MissingDependencyError(
                f"litellm needs another package for this model: {link}; a server of your own needs none: "
                "write 'local/my-model' and base_url='http://localhost:8000/v1'"
            )
        if isinstance(link, UnicodeEncodeError) and not headers:
            # Its transport fails at such a header, and the status of the answer is lost.
            return APIResponseValidationError("litellm cannot read an answer with a header that is not ASCII")
        if not headers and _TRANSPORT_ERRORS & _names(link):
            return from_exception(link)
    if "APIError" not in names:
        return from_exception(error)
    if "Timeout" in names and not headers:
        return APITimeoutError(f"the provider did not answer in time: {readable_message(message)}")
    status = getattr(error, "status_code", None)
    codes, reported = _codes_and_message(links, message)
    # litellm raises its Timeout, a subclass of APIConnectionError, for answers with status 408 and 504 too.
    unanswered = ("APIConnectionError" in names and "Timeout" not in names) or (
        not isinstance(status, int) or status < 300
    )
    if _UNREADABLE.search(message) or (unanswered and not any(codes)):
        return APIResponseValidationError(f"litellm cannot read the answer: {readable_message(reported)}")
    failure = from_answer(200 if unanswered else status, codes=codes, message=reported, headers=headers)
    for name, kind in (
        ("ContextWindowExceededError", ContextWindowExceededError),
        ("ContentPolicyViolationError", RefusalError),
    ):
        if name in names:
            return kind(
                failure.message, status=failure.status, code=failure.code, request_id=failure.request_id
            )
    return failure


def _codes_and_message(links: list[BaseException], message: str) -> tuple[tuple[str | None, ...], str]:
    """The provider's codes and message, from the body that the openai SDK keeps, else from the text."""
    for link in links:
        body = getattr(link, "body", None)
        if isinstance(body, dict):
            codes, reported = error_fields(body)
            return codes, reported or message
    text = message
    if text.startswith(("b'", 'b"')):
        # Errors of streamed requests hold the body as the repr of bytes.
        try:
            text = ast.literal_eval(text).decode()
        except (ValueError, SyntaxError):
            return (), message
    try:
        codes, reported = error_fields(orjson.loads(text))
    except orjson.JSONDecodeError:
        # litellm turns Anthropic's 529 inside a stream into a 500, and keeps only this word of it.
        return ("overloaded_error",) if "overloaded" in message.lower() else (), message
    return codes, reported or message


def _message(error: BaseException) -> str:
    """The exception's message without litellm's own prefixes and advice."""
    text = str(getattr(error, "message", "") or error)
    while (shorter := _PREFIX.sub("", text)) != text:
        text = shorter
    return _TAIL.split(text, maxsplit=1)[0]


def _names(error: BaseException) -> set[str]:
    """The names of an exception's class and of its bases."""
    return {kind.__name__ for kind in type(error).__mro__}
