"""Failures of providers, SDKs and transports → our errors.

`from_answer` maps HTTP statuses and provider codes, `from_exception` the exceptions of transports, `from_sdk`
those of the openai and anthropic SDKs. Classes are recognised by their names, so nothing is imported here.
"""

import errno
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..._errors import (
    APIConnectionError,
    APIResponseValidationError,
    APITimeoutError,
    AuthenticationError,
    BadRequestError,
    ContextWindowExceededError,
    InternalServerError,
    LLMError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    QuotaExceededError,
    RateLimitError,
    RefusalError,
)
from ..._json_values import JSONMapping
from ..._limits.retry import ORDERLY_END, retry_after
from ..transport.certificates import trust_remedy
from .error_bodies import body_in_text, error_fields, meaning_of

_LONGEST_MESSAGE = 500
_LONGEST_NAME = 200

# Those that several headers of one answer have, in the order of preference: Anthropic's, Azure's, Mistral's.
_REQUEST_IDS = ("x-request-id", "request-id", "apim-request-id", "mistral-correlation-id")
_REQUEST_ID = re.compile(r".*(request-?id|reqid|correlation-id|trace-?id)|cf-ray")

_STATUS = re.compile(r"[45]\d\d", re.ASCII)

# A provider's code is more specific than the status, so this table comes before the table of statuses.
_CODES: tuple[tuple[re.Pattern[str], type[LLMError]], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"context_length_exceeded|context_window|exceed_context_size_error", ContextWindowExceededError),
        (r"insufficient_quota|billing_error|billing_hard_limit_reached|.*per_?day.*", QuotaExceededError),
        # Anthropic's details.error_code, sent with a type that stands for a short wait.
        (r"\w+_spend_limit_reached|linked_organization_billing_unavailable", QuotaExceededError),
        (r".*content_policy_violation|content_filter|bio_policy", RefusalError),
        (
            r"(invalid|wrong|incorrect)_?api_?key|api_?key_?(invalid|expired)|authentication_error|unauthenticated",
            AuthenticationError,
        ),
        # AWS's: a signature may also be refused because this machine's clock is wrong.
        (r"(expired|missingauthentication)token(exception)?", AuthenticationError),
        (
            r"(unrecognizedclient|invalidsignature|signaturedoesnotmatch|requesttimetooskewed)(exception)?",
            AuthenticationError,
        ),
        (r"permission_error|permission_?denied|organization_on_hold", PermissionDeniedError),
        (r"servicequotaexceeded(exception)?", QuotaExceededError),
        (r"overloaded(_error)?|(service_?)?unavailable(_error|exception)?|slow_down", OverloadedError),
        (r"rate_limit_error|rate_limit_exceeded|requests|tokens|resource_exhausted", RateLimitError),
        (r"(throttling|toomanyrequests|modelnotready)(exception)?", RateLimitError),
        (
            r"model_not_(found|exist|supported)|invalid_model|unknown_model|not_found_error|not_found",
            NotFoundError,
        ),
        (r"invalid_request_error|invalid_argument|failed_precondition|invalid_prompt", BadRequestError),
        # OpenAI's codes for an image that it cannot use, sent with status 200.
        (r"image_\w+|(invalid|empty|failed_to_download|unsupported)(_base64)?_image\w*", BadRequestError),
        (r"data_residency_mismatch", BadRequestError),
        (
            r"api_error|server_error|internal|(internalserver|model(stream)?error)(exception)?",
            InternalServerError,
        ),
        (r"timeout_error|deadline_exceeded|vector_store_timeout|modeltimeoutexception", APITimeoutError),
    )
)

GATEWAY_FAILURE = "invalid_model_endpoint_authentication"
"""The code of Foundry's gateway where it fails to reach its own model, now and then, with any status."""

_STATUSES: dict[int, type[LLMError]] = {
    400: BadRequestError, 401: AuthenticationError, 402: QuotaExceededError, 403: PermissionDeniedError,
    404: NotFoundError, 408: InternalServerError, 409: InternalServerError, 413: BadRequestError,
    422: BadRequestError, 424: InternalServerError, 429: RateLimitError, 503: OverloadedError,
    529: OverloadedError,
}  # fmt: skip

# Statuses that some providers give to every failure.
_VAGUE_STATUSES = (None, 200, 400, 422)

# How providers word that a conversation does not fit. Applied only to these statuses, where no code says so.
_TOO_LONG_STATUSES = (400, 413, 422)
_TOO_LONG = re.compile(
    r"context (length|window)|maximum context|(prompt|input) is too long|input token count.*exceeds"
    r"|exceeds? the (maximum|available)|too many (input )?tokens",
    re.IGNORECASE,
)

_TLS = (
    "ClientConnectorCertificateError", "SSLCertVerificationError", "CertificateError",
    "ServerFingerprintMismatch",
)  # fmt: skip
_NOT_SENT = (
    "ClientConnectorDNSError", "ClientConnectorError", "ClientConnectorSSLError", "ClientHttpProxyError",
    "ClientProxyConnectionError", "ConnectError", "ConnectionRefusedError", "gaierror", "ProxyError",
    "UnsupportedProtocol",
)  # fmt: skip
_CONNECT_TIMED_OUT = ("ConnectionTimeoutError", "ConnectTimeout", "PoolTimeout")
_TIMED_OUT = (
    "SocketTimeoutError", "ServerTimeoutError", "ReadTimeout", "WriteTimeout", "TimeoutException",
    "TimeoutError", "APITimeoutError",
)  # fmt: skip
_MALFORMED = (
    "JSONDecodeError", "APIResponseValidationError", "ClientResponseError", "BadHttpMessage", "DecodingError",
    "InvalidHeader", "LineTooLong", "BadStatusLine", "UnicodeDecodeError", "ContentEncodingError",
    "UnknownApiResponseError", "RecursionError", "ValidationError", "HttpProcessingError", "TooManyRedirects",
)  # fmt: skip
_BROKEN = (
    "ClientOSError", "ClientConnectionResetError", "ClientConnectionError", "ReadError", "WriteError",
    "CloseError", "RemoteProtocolError", "LocalProtocolError", "ProtocolError", "NetworkError",
    "TransportError", "ConnectionResetError", "BrokenPipeError", "ConnectionError", "IncompleteRead",
    "IncompleteReadError", "EndOfStream", "BrokenResourceError", "SSLError", "H2Error", "UploadAbortedError",
    "APIConnectionError", "httpx.RequestError", "httpx2.RequestError", "aiohttp.ClientError",
)  # fmt: skip

# An answer that began and did not end.
_CUT = ("ServerDisconnectedError", "ClientPayloadError", "TransferEncodingError", "ContentLengthError")

# A request that can never be sent. Some transports derive these classes from those of a failed connection.
_UNSENDABLE = ("InvalidURL", "NonHttpUrlClientError", "RedirectClientError")


def from_answer(
    status: int | None,
    *,
    codes: tuple[str | None, ...] = (),
    message: str = "",
    headers: Mapping[str, str] | None = None,
    wait: float | None = None,
) -> LLMError:
    """The error for an answer that is not a success: None or 200 if it came inside a stream or a 200.

    `codes` are the provider's code and type, the most specific first. Its message is shortened, and a web
    page is replaced by its title. Names of headers are in lower case. `wait` are seconds of the body.
    """
    headers = headers or {}
    if "x-amzn-errortype" in headers:
        # AWS has the code in a header: "ThrottlingException:http://internal.amazon.com/..."
        codes = (*codes, headers["x-amzn-errortype"].partition(":")[0])
    # A failure that came with status 200 may have its HTTP status among the codes, as OpenRouter's.
    in_codes = (int(code) for code in codes if code and _STATUS.fullmatch(code))
    kind = _class_of(status if status not in (None, 200) else next(in_codes, None), codes, message)
    after = wait if wait is not None else retry_after(headers)
    unexplained = "an error without a message" if status in (None, 200) else f"HTTP {status}"
    error = kind(
        readable_message(message) or unexplained,
        status=status,
        code=_short(next((code for code in codes if code), None)),
        request_id=_short(_request_id(headers)),
        retry_after=after,
    )
    # The provider may have done, and billed, the work for a failure that came late or inside a stream.
    if kind in (APITimeoutError, InternalServerError) or status in (None, 200):
        error.maybe_billed = True
    return error


def _request_id(headers: Mapping[str, str]) -> str | None:
    known = (headers.get(name) for name in _REQUEST_IDS)
    others = (headers[name] for name in sorted(headers, reverse=True) if _REQUEST_ID.fullmatch(name))
    return next((identifier for identifier in (*known, *others) if identifier), None)


def _short(name: str | None) -> str | None:
    return name[:_LONGEST_NAME] if name else None


def _class_of(status: int | None, codes: tuple[str | None, ...], message: str) -> type[LLMError]:
    if status is not None and 300 <= status < 400:
        return APIResponseValidationError
    if GATEWAY_FAILURE in codes:
        return OverloadedError
    kind = _class_of_codes(status, codes)
    too_long = kind is BadRequestError or (kind is None and status in _TOO_LONG_STATUSES)
    if too_long and _TOO_LONG.search(message):
        return ContextWindowExceededError
    if kind in (None, BadRequestError) and status in _VAGUE_STATUSES:
        meant = meaning_of(message)
        if meant is not None:
            return meant
    if kind is not None:
        return kind
    if status in _STATUSES:
        return _STATUSES[status]
    if status is None or 200 <= status < 300 or status >= 500:
        return InternalServerError
    return BadRequestError


def _class_of_codes(status: int | None, codes: tuple[str | None, ...]) -> type[LLMError] | None:
    for code in codes:
        if code:
            for pattern, kind in _CODES:
                if pattern.fullmatch(code.lower()) and _fits_status(kind, status):
                    return kind
    return None


def _fits_status(kind: type[LLMError], status: int | None) -> bool:
    """Whether a code fits its status: a 5xx with the code `invalid_request_error` is a server's failure."""
    if status is None or status < 400:
        return True
    if kind in (BadRequestError, InternalServerError):
        # These codes are unspecific, so a status with a meaning of its own takes precedence.
        return _STATUSES.get(status, InternalServerError if status >= 500 else BadRequestError) is kind
    if kind in (OverloadedError, APITimeoutError):
        return status >= 500 or status in (408, 409, 429)
    return status < 500


_WRAPPERS = ("APIConnectionError", "APITimeoutError")

# HTTP/2's REFUSED_STREAM for a request that was not processed at all (RFC 9113 §8.7), as httpcore words it.
_REFUSED_STREAM = re.compile(r"<StreamReset stream_id:\d+, error_code:7,")

# HTTP/2's NO_ERROR: the server closed the connection in order, after a number of requests or for a restart.
_ORDERLY_END = re.compile(r"<ConnectionTerminated error_code:0,")

# aiohttp's messages name the TLS context after the host.
_TLS_SETTING = re.compile(r" ssl:(<[^>]*>|\w+)")


def from_exception(error: BaseException) -> LLMError:
    """The error for an exception of a transport: there was no answer, or an incomplete one."""
    # The SDKs wrap an error that this library raised while they read an answer.
    for link in exception_chain(error):
        if isinstance(link, LLMError):
            return link
    links = _chain_from_aiohttp(error)
    names = [name for link in links for name in _names(link)]
    # The messages of the SDKs' wrappers name no cause.
    first = next((link for link in links if type(link).__name__ not in _WRAPPERS), links[0])
    detail = readable_message(_TLS_SETTING.sub("", str(first))) or type(first).__name__
    if "TooManyStreamsError" in names or any(_REFUSED_STREAM.search(str(link)) for link in links):
        return OverloadedError("the connection has no room for another request", maybe_billed=False)
    if any(_ORDERLY_END.search(str(link)) for link in links):
        return APIConnectionError("the server has ended the connection", code=ORDERLY_END, maybe_billed=True)
    if _has_any(names, _UNSENDABLE):
        return APIConnectionError(f"the request cannot be sent: {detail}", retryable=False)
    if _has_any(names, _TLS):
        return APIConnectionError(
            f"the server's certificate is not trusted: {detail}{trust_remedy()}", retryable=False
        )
    if _has_any(names, _CONNECT_TIMED_OUT):
        return APITimeoutError("no connection could be made in time", phase="connect", maybe_billed=False)
    if _has_any(names, _NOT_SENT):
        # It imports urllib.request, which imports ssl.
        from ..transport.proxies import proxy_in

        return APIConnectionError(
            f"no connection could be made: {detail}{proxy_in(detail)}", code=_system_code(links, names)
        )
    is_cut = _has_any(names, _CUT) and "ContentEncodingError" not in names
    if not is_cut and _has_any(names, _MALFORMED):
        return APIResponseValidationError(f"the answer cannot be read: {detail}")
    if not is_cut and _has_any(names, _TIMED_OUT):
        return APITimeoutError(f"the provider did not answer in time: {detail}")
    if is_cut or _has_any(names, _BROKEN):
        return APIConnectionError(f"the connection broke: {detail}", maybe_billed=True)
    return APIConnectionError(
        f"the call failed in its SDK: {type(error).__name__}: {detail}", retryable=False
    )


def _system_code(links: list[BaseException], names: list[str]) -> str | None:
    """The system's name of a failure to connect, such as "ECONNREFUSED"; None if it is not known."""
    if _has_any(names, ("ClientConnectorDNSError", "gaierror")):
        return "ENOTFOUND"
    numbers = [link.errno or 0 for link in links if isinstance(link, OSError)]
    return next((errno.errorcode[number] for number in numbers if number in errno.errorcode), None)


def _has_any(names: list[str], wanted: tuple[str, ...]) -> bool:
    return any(name in wanted for name in names)


def exception_chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, its cause, the cause of that, and so on."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or link.__context__


def _chain_from_aiohttp(error: BaseException) -> list[BaseException]:
    """The exception's chain, beginning with aiohttp's own exception where there is one.

    The bridges from httpx to it raise the same for refused and broken connections, so these are left out.
    """
    links = list(exception_chain(error))
    for index, link in enumerate(links):
        if type(link).__module__.startswith("aiohttp."):
            return links[index:]
    return links


def _names(error: BaseException) -> Iterator[str]:
    """The names of an exception's class and its bases, with and without package: some occur in several."""
    for kind in type(error).__mro__[:-2]:
        yield kind.__name__
        yield f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def readable_message(message: Any) -> str:
    """A provider's message on one line, at most 500 characters; for a web page, its title."""
    text = str(message).strip()
    if text[:200].lstrip().lower().startswith(("<!doctype", "<html", "<?xml")):
        title = re.search(r"<title>([^<]{1,200})</title>", text, re.IGNORECASE)
        text = f"a web page instead of an answer{f': {title.group(1).strip()}' if title else ''}"
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 3]}..."


def headers_of(response: Any) -> dict[str, str]:
    """An SDK response's headers with lower-case names; empty where there are none."""
    headers = getattr(response, "headers", None) or {}
    return {str(name).lower(): str(value) for name, value in headers.items()}


def failure_headers(error: BaseException) -> dict[str, str]:
    """Headers of the answer that an SDK's exception reports, in lower case; empty where there was none."""
    # litellm's response has empty headers; the provider's are in an attribute of the exception.
    headers = getattr(error, "litellm_response_headers", None)
    if headers:
        return {str(name).lower(): str(value) for name, value in headers.items()}
    return headers_of(getattr(error, "response", None))


def error_in(body: JSONMapping, answer: str) -> LLMError | None:
    """The failure in a body of status 200 or an event, else None. Every answer has the field `answer`."""
    return _failure_of(body) if reports_error(body, answer) else None


def reports_error(body: JSONMapping, answer: str) -> bool:
    """Whether a body of status 200 or an event of a stream reports a failure; see `error_in`."""
    if body.get("error") or body.get("type") == "error" or body.get("object") == "error":
        return True
    if answer in body:
        return False
    messages = (body.get(name) for name in ("message", "detail", "errors"))
    return any(value and isinstance(value, (str, list)) for value in messages)


def raise_error_in(body: JSONMapping, answer: str) -> None:
    """Raise the failure that `error_in` finds."""
    if reports_error(body, answer):
        raise _failure_of(body)


def _failure_of(body: JSONMapping) -> LLMError:
    codes, message = error_fields(body)
    # On the top level, "type" is the name of an event and not a code of the failure.
    return from_answer(200, codes=tuple(code for code in codes if code != "error"), message=message)


def from_sdk(error: BaseException) -> LLMError:
    """The error for an exception of the openai or anthropic SDK, or of its transport."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "APIError" not in names or names & {"APIConnectionError", "APIResponseValidationError"}:
        return from_exception(error)
    body = getattr(error, "body", None)
    codes, message = error_fields(body_in_text(body) if isinstance(body, str) else body)
    return from_answer(
        getattr(error, "status_code", None),
        codes=codes,
        message=message or str(getattr(error, "message", "")),
        headers=headers_of(getattr(error, "response", None)),
    )
