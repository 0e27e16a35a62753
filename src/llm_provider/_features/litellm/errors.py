"""Exceptions of litellm → our errors."""

import ast
import re

import orjson

from ..._core import errors
from ..._core.formats.shared.errors import (
    error_fields,
    failure_headers,
    from_answer,
    from_exception,
    readable_message,
)
from ..._core.pace.failure_table import quotes_input
from ..._core.runtime.imports import exception_chain

_PREFIX = re.compile(
    r"^(?:litellm\.)?\w*(?:Error|Exception|Timeout): |^\w+(?:Exception|Error)(?: Timeout)? - "
)
_TAIL = re.compile(r"\. Handle with `litellm\.|\s*Traceback \(most recent|\s*Original exception: | To drop ")
_PARAMETERS = (
    re.compile(r"parameters: \['(\w+)'"),
    re.compile(r"not support (?:the )?(?:parameter )?'?(\w+)"),
    re.compile(r"Setting (\w+) is not supported"),
)
_UNREADABLE = re.compile(
    r"Unable to get json response|Empty or invalid response|provider returned|while decompressing"
    r"|'str' object has no attribute 'model_dump'|maximum recursion depth|Invalid response object"
)
_TRANSPORT_ERRORS = frozenset({"TransportError", "ClientError", "OSError", "TimeoutError"})

_NO_CLIENT = re.compile(r"Missing credentials\. Please pass|The api_key client option must be set")
"""The messages of OpenAI's SDK, new and old, where it cannot make a client, for which litellm asks late."""


def map_error(error: BaseException) -> errors.LLMError:
    if isinstance(error, errors.LLMError):
        return error
    names = _names(error)
    original = getattr(error, "original_exception", None)
    if "MidStreamFallbackError" in names and isinstance(original, BaseException):
        mapped = map_error(original)
        mapped.maybe_billed = True
        return mapped
    message = _message(error)
    if "UnsupportedParamsError" in names:
        parameter = next(filter(None, (pattern.search(message) for pattern in _PARAMETERS)), None)
        return errors.UnsupportedParameterError(
            f"{message.rstrip('. ')}: leave it out",
            parameter=parameter.group(1) if parameter else "extra_body",
        )
    if _NO_CLIENT.search(message) and not failure_headers(error):
        return errors.MissingAPIKeyError(
            f"litellm lacks a setting of this provider: {readable_message(message)}"
        )
    if "LLM Provider NOT provided" in message:
        return errors.UnknownModelError(
            "model: litellm does not know this provider; docs.litellm.ai/docs/providers lists those that it "
            "knows; write one of them before the name, or 'local/...' with base_url= for your own server"
        )
    return _failure(error, names, message)


_UNKNOWN = re.compile(
    r"Unmapped LLM provider|Unknown provider|Invalid \w+ model format|not enough values to unpack"
)
_CREDENTIALS = re.compile(
    r"api.?key|credential|token|jwt|log-?in|\bauth|project_id|tenant|api.?base|base url|endpoint|is not set"
    r"|environment variable|required parameters",
    re.IGNORECASE,
)
_INSTALL = re.compile(r"pip install [^\s`'\"]*")
_PACKAGES = {"google": "google-auth", "vertexai": "google-cloud-aiplatform", "PIL": "pillow"}
"""Packages with another name than their module."""


def unsent_error(error: Exception) -> errors.LLMError:
    """The error for an exception that litellm raised before it sent a request, so that no other can help."""
    mapped, links = map_error(error), list(exception_chain(error))
    if any(failure_headers(link) or "JSONDecodeError" in _names(link) for link in links):
        # The answer of a server. For a few providers litellm does not tell that it sends a request.
        return mapped
    if isinstance(mapped, errors.RequestError) and not isinstance(
        mapped, (errors.BadRequestError, errors.NotFoundError)
    ):
        return mapped
    message = readable_message(_message(error))
    if _UNREADABLE.search(message):
        return mapped
    if isinstance(mapped, (errors.APIConnectionError, errors.APITimeoutError)) and mapped.retryable:
        # For example of a server that lists models, or gives tokens.
        mapped.maybe_billed = False
        return mapped
    if "LiteLLMUnknownProvider" in _names(error) or _UNKNOWN.search(message):
        return errors.UnknownModelError(f"model: litellm cannot reach it: {message}")
    if _CREDENTIALS.search(message):
        return errors.MissingAPIKeyError(f"litellm lacks a setting of this provider: {message}")
    return errors.BadRequestError(f"litellm cannot make this request: {message}")


def _missing_package(error: ImportError) -> str:
    command = _INSTALL.search(str(error))
    if command:
        return command.group()
    module = (error.name or "").partition(".")[0]
    return f"pip install {_PACKAGES.get(module, module)}" if module else str(error)


def _failure(error: BaseException, names: set[str], message: str) -> errors.LLMError:
    headers = failure_headers(error)
    links = list(exception_chain(error))
    for link in links:
        if isinstance(link, ImportError):
            package = _missing_package(link)
            return errors.MissingDependencyError(
                f"litellm needs another package for this model ({link}): {package}; a server of your own "
                "needs none: write 'local/my-model' and base_url='http://localhost:8000/v1'"
            )
        if isinstance(link, UnicodeEncodeError) and not headers:
            # Its transport fails at such a header, and the status of the answer is lost.
            return errors.APIResponseValidationError(
                "litellm cannot read an answer with a header that is not ASCII"
            )
        if not headers and _TRANSPORT_ERRORS & _names(link):
            return from_exception(link)
    if "APIError" not in names:
        return from_exception(error)
    if "Timeout" in names and not headers:
        return errors.APITimeoutError(f"the provider did not answer in time: {readable_message(message)}")
    status = getattr(error, "status_code", None)
    codes, reported = _codes_and_message(links, message)
    # litellm raises its Timeout, a subclass of APIConnectionError, for answers with status 408 and 504 too.
    unanswered = ("APIConnectionError" in names and "Timeout" not in names) or (
        not isinstance(status, int) or status < 300
    )
    if _UNREADABLE.search(message) or (unanswered and not any(codes)):
        # The next answer of a JSON mode whose content is an object would be one too.
        again = "content\n  Input should be a valid string" not in str(error)
        advice = "" if again else ": its content is no text; another route than litellm reads it"
        return errors.APIResponseValidationError(
            f"litellm cannot read the answer: {readable_message(reported)}{advice}", retryable=again
        )
    failure = from_answer(200 if unanswered else status, codes=codes, message=reported, headers=headers)
    for name, kind in (
        ("ContextWindowExceededError", errors.ContextWindowExceededError),
        ("ContentPolicyViolationError", errors.RefusalError),
    ):
        # litellm looks for its words in the whole message, which may quote the prompt.
        if name in names and not quotes_input(reported):
            return kind(
                failure.message, status=failure.status, code=failure.code, request_id=failure.request_id
            )
    return failure


def _codes_and_message(links: list[BaseException], message: str) -> tuple[tuple[str | None, ...], str]:
    """The provider's codes and message, from the body that the openai SDK keeps, else from the text."""
    for link in links:
        body = getattr(link, "body", None)
        # The SDK keeps only the field `error` of the body, which may be a text.
        if body and isinstance(body, (dict, list, str)):
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
    return {kind.__name__ for kind in type(error).__mro__}
