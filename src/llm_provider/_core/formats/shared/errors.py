"""Failures of providers, SDKs and transports → our errors.

`from_answer` maps HTTP statuses and provider codes, `from_exception` the exceptions of transports, `from_sdk`
the exceptions of the openai and anthropic SDKs. Classes are known by their names, so nothing is imported.
"""

import contextlib
import errno
import json
import re
from collections.abc import Mapping
from typing import Any

from ... import doors
from ...errors import (
    APIConnectionError,
    APIResponseValidationError,
    APITimeoutError,
    InternalServerError,
    LLMError,
    OverloadedError,
    RateLimitError,
)
from ...pace.failure_table import find_rule, words_in
from ...pace.failures import ORDERLY_END, SHORTAGES, heed_should_retry
from ...pace.headers import retry_after, wait_for_reset, wait_in_words
from ...runtime.imports import exception_chain
from ...runtime.json_pieces import loads
from ..transport.environment import proxy_in, trust_remedy
from ..transport.wire import EventSplitter

_LONGEST_MESSAGE = 500
_LONGEST_NAME = 200

# Several headers of one answer may have one. Preferred: Anthropic's, Azure's, Mistral's, litellm's proxy's.
_REQUEST_IDS = (
    "x-request-id", "request-id", "apim-request-id", "mistral-correlation-id", "x-litellm-call-id",
)  # fmt: skip
_REQUEST_ID = re.compile(r".*(request-?id|reqid|correlation-id|trace-?id)|cf-ray")

_STATUS = re.compile(r"[45]\d\d", re.ASCII)

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

# A request that can never be sent. Some transports derive these from a failed connection.
_UNSENDABLE = ("InvalidURL", "NonHttpUrlClientError", "RedirectClientError")

# What no connection raises. An SDK wraps it as if one had broken, so it would be sent again for a minute.
_OF_THIS_MACHINE = (AttributeError, ImportError, KeyError, ModuleNotFoundError, TypeError, ValueError)


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
    rule = find_rule(status if status not in (None, 200) else next(in_codes, None), codes, message)
    after = wait if wait is not None else retry_after(headers)
    if after is None and rule.kind in (RateLimitError, OverloadedError):
        after = wait_in_words(message)
        after = wait_for_reset(headers) if after is None and rule.kind is RateLimitError else after
    known = (headers.get(name) for name in _REQUEST_IDS)
    others = (headers[name] for name in sorted(headers, reverse=True) if _REQUEST_ID.fullmatch(name))
    unexplained = "an error without a message" if status in (None, 200) else f"HTTP {status}"
    if status is not None and status // 100 == 3 and (address := headers.get("location")):
        # A query may be a secret of the server's, and what stands before the host is a password.
        address = _USER.sub("//", address.partition("?")[0])
        message = f"the server redirects to {address}, and no redirect is followed: correct the base URL"
    error = rule.kind(
        readable_message(message) or unexplained,
        status=status,
        code=next((code[:_LONGEST_NAME] for code in codes if code), None),
        request_id=next((name[:_LONGEST_NAME] for name in (*known, *others) if name), None),
        retry_after=after,
        retryable=rule.retried,
    )
    if rule.stops:
        vars(error)["_stops"] = True
    heed_should_retry(error, headers)
    # The provider may have done, and billed, the work for a failure that came late or inside a stream.
    failed_late = isinstance(error, (APITimeoutError, InternalServerError)) and rule.retried is None
    if failed_late or status in (None, 200):
        error.maybe_billed = True
    return error


_USER = re.compile(r"//[^/@]*@")

_WRAPPERS = ("APIConnectionError", "APITimeoutError")

# HTTP/2's REFUSED_STREAM for a request that was not processed at all (RFC 9113 §8.7), as httpcore words it.
_REFUSED_STREAM = re.compile(r"<StreamReset stream_id:\d+, error_code:7,")

# HTTP/2's HTTP_1_1_REQUIRED.
_NO_HTTP2 = re.compile(r"error_code:13,")

# HTTP/2's NO_ERROR: the server closed the connection in order, after a number of requests or for a restart.
_ORDERLY_END = re.compile(r"<ConnectionTerminated error_code:0,")

# How a failure to connect names an address of this machine.
_THIS_MACHINE = re.compile(r"connect call failed \('(127\.|::1)|\bhost (localhost|127\.|::1)", re.IGNORECASE)

# aiohttp's messages name the TLS context after the host.
_TLS_SETTING = re.compile(r" ssl:(<[^>]*>|\w+)")


def from_exception(error: BaseException) -> LLMError:
    """The error for an exception of a transport: there was no answer, or an incomplete one."""
    # The SDKs wrap an error that this library raised while they read an answer.
    for link in exception_chain(error):
        if isinstance(link, LLMError):
            return link
    links = list(exception_chain(error))
    # aiohttp's own exception tells most: the bridges from httpx to it raise the same for refused and broken
    # connections.
    begins = (index for index, link in enumerate(links) if type(link).__module__.startswith("aiohttp."))
    links = links[next(begins, 0) :]
    kinds = [kind for link in links for kind in type(link).__mro__[:-2]]
    # With and without the package: some names occur in several.
    names = {kind.__name__ for kind in kinds}
    names |= {f"{kind.__module__.partition('.')[0]}.{kind.__name__}" for kind in kinds}
    # The messages of the SDKs' wrappers name no cause.
    first = next((link for link in links if type(link).__name__ not in _WRAPPERS), links[0])
    detail = readable_message(_TLS_SETTING.sub("", str(first))) or type(first).__name__
    if "TooManyStreamsError" in names or any(_REFUSED_STREAM.search(str(link)) for link in links):
        return OverloadedError("the connection has no room for another request", maybe_billed=False)
    if any(_NO_HTTP2.search(str(link)) for link in links):
        advice = "the server does not serve this request over HTTP/2: use the default transport"
        return APIConnectionError(advice, retryable=False, maybe_billed=False)
    if any(_ORDERLY_END.search(str(link)) for link in links):
        return APIConnectionError("the server has ended the connection", code=ORDERLY_END, maybe_billed=True)
    if not names.isdisjoint(_UNSENDABLE):
        return APIConnectionError(f"the request cannot be sent: {detail}", retryable=False)
    if not names.isdisjoint(_TLS):
        advice = f"the server's certificate is not trusted: {detail}{trust_remedy()}"
        return APIConnectionError(advice, retryable=False)
    if not names.isdisjoint(_CONNECT_TIMED_OUT):
        return APITimeoutError("no connection could be made in time", phase="connect", maybe_billed=False)
    if not names.isdisjoint(_NOT_SENT):
        refused, code = _status_of_proxy(links, names), _system_code(links, names)
        if code in SHORTAGES:
            advice = "raise the limit of this process (ulimit -n), or lower max_concurrent"
            detail = f"too many open files: {advice}"
        refused_here = code == "ECONNREFUSED" and any(_THIS_MACHINE.search(str(link)) for link in links)
        remedy = ": nothing listens there; start the server, or correct its address" if refused_here else ""
        unsent = APIConnectionError(
            f"no connection could be made: {detail}{proxy_in(detail) or remedy}",
            status=refused,
            code=code,
            retryable=None if refused is None else False,
        )
        if refused is not None:
            vars(unsent)["_stops"] = True
        if refused_here:
            vars(unsent)["_refused_here"] = True
        return unsent
    is_cut = not names.isdisjoint(_CUT) and "ContentEncodingError" not in names
    if not is_cut and not names.isdisjoint(_MALFORMED):
        return APIResponseValidationError(f"the answer cannot be read: {detail}")
    if not is_cut and not names.isdisjoint(_TIMED_OUT):
        return APITimeoutError(f"the provider did not answer in time: {detail}")
    if is_cut or (not names.isdisjoint(_BROKEN) and type(first) not in _OF_THIS_MACHINE):
        return APIConnectionError(f"the connection broke: {detail}", maybe_billed=True)
    problem = f"the call failed in its SDK: {type(first).__name__}: {detail}"
    return APIConnectionError(problem, retryable=False)


def _status_of_proxy(links: list[BaseException], names: set[str]) -> int | None:
    """The status with which a proxy refuses this machine, such as 407 without a password; None for others."""
    if names.isdisjoint(("ClientHttpProxyError", "ProxyError")):
        return None
    statuses = (getattr(link, "status", None) or str(link)[:3] for link in links)
    status = next((int(number) for number in statuses if _STATUS.fullmatch(str(number))), 500)
    return status if status < 500 and status not in (408, 429) else None


def _system_code(links: list[BaseException], names: set[str]) -> str | None:
    """The system's name of a failure to connect, such as "ECONNREFUSED"; None if it is not known."""
    if not names.isdisjoint(("ClientConnectorDNSError", "gaierror")):
        return "ENOTFOUND"
    numbers = [link.errno or 0 for link in links if isinstance(link, OSError)]
    return next((errno.errorcode[number] for number in numbers if number in errno.errorcode), None)


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


def body_of(error: BaseException) -> Any:
    """The body of the failure that an SDK's exception reports.

    The openai SDK keeps the field "error" alone. Where that is a text, as Express and Fastify write it, the
    sentence stands beside it.
    """
    body = getattr(error, "body", None)
    if isinstance(body, str):
        with contextlib.suppress(AttributeError, RuntimeError):
            return error.response.text or body  # type: ignore[attr-defined]
    return body


def from_sdk(error: BaseException) -> LLMError:
    """The error for an exception of the openai or anthropic SDK, or of its transport."""
    names = {kind.__name__ for kind in type(error).__mro__}
    if "APIError" not in names or names & {"APIConnectionError", "APIResponseValidationError"}:
        return from_exception(error)
    body = body_of(error)
    body = body_in_text(body) if isinstance(body, str) else body
    codes, message = error_fields(body)
    return from_answer(
        getattr(error, "status_code", None),
        codes=codes,
        message=message or str(getattr(error, "message", "")),
        headers=doors.failures.headers_in(body) | headers_of(getattr(error, "response", None)),
    )


# --- the bodies of failures, in any provider's form: their codes and their message

# Baidu has "error_code", TGI "http_status_code", AWS "__type", before which its name of a service may stand.
_CODE_FIELDS = ("code", "error_code", "__type", "type", "status", "http_status_code")

# Where a message may be, in the order of preference. FastAPI: "detail". Cloudflare: "errors". AWS: "Message".
_MESSAGE_FIELDS = (
    "message", "Message", "detail", "error", "errors", "msg", "error_message", "error_msg", "status_msg",
)  # fmt: skip

_INSIDE = ("error", "detail", "errors")
"""Fields in which a body may have its failure."""

_OF_HOSTS = frozenset({"metadata", "failed_generation"})
"""Fields that single hosts add."""

_DEEPEST = 5
_LONGEST = 20_000
_OBJECT = re.compile(r'\{\s*"')


def error_fields(body: Any) -> tuple[tuple[str, ...], str]:
    """The codes, most specific first, and the message of an error body in any provider's form."""
    if isinstance(body, dict) and "base_resp" in body:
        body = doors.failures.minimax_failure(body) or body
    for _ in range(_DEEPEST):
        # Gemini's endpoint for OpenAI's format sends its error as a list of one.
        if isinstance(body, list) and len(body) == 1:
            body = body[0]
            continue
        fields: Any = body if isinstance(body, dict) else {}
        inner: Any = next((fields[name] for name in _INSIDE if fields.get(name)), None)
        # An object, or a list of one without a place in the request.
        is_list = isinstance(inner, list) and len(inner) == 1 and isinstance(inner[0], dict)
        if not (isinstance(inner, dict) or (is_list and "loc" not in inner[0])):
            break
        body = inner
    if not isinstance(body, dict):
        return read_inside(_message_in(body))
    details = body.get("details")
    listed = details if isinstance(details, list) else [details]
    values = [entry.get("error_code") or entry.get("reason") for entry in listed if isinstance(entry, dict)]
    values += map(body.get, _CODE_FIELDS)
    codes = [str(code).rpartition("#")[2] for code in values if code and isinstance(code, (str, int))]
    inner_codes, message = read_inside(_message_in(body))
    if isinstance(body.get("error"), str) and body["error"] != message:
        codes.append(body["error"])
    raw_codes: tuple[str, ...] = ()
    if not _OF_HOSTS.isdisjoint(body):
        raw_codes, message = doors.failures.read_cause(body, message)
    return (*codes, *inner_codes, *raw_codes), message


def read_inside(text: str) -> tuple[tuple[str, ...], str]:
    """The codes and the message of a JSON error in a text that a gateway repeats, after its own heading."""
    begin = _OBJECT.search(text)
    if begin is not None and words_in(f"{text[: begin.start()]}x") == "x":
        with contextlib.suppress(ValueError, RecursionError):
            codes, message = error_fields(
                json.JSONDecoder(strict=False).raw_decode(text[:_LONGEST], begin.start())[0]
            )
            if message:
                return codes, text[: begin.start()] + message
    return (), text


def drop_marks(text: str) -> str:
    """A text without a byte order mark; of UTF-16 and UTF-32 that was read as UTF-8, its ASCII characters."""
    return text.replace("\0", "").lstrip("\ufeff\ufffd")


def body_in_text(text: str) -> Any:
    """The body of a failure in a text of any type: as JSON, as an event of a stream, or the text itself."""
    text = drop_marks(text)
    splitter, encoded = EventSplitter(), text.encode("utf-8", "replace")
    for data in (encoded, *splitter.feed(encoded), *splitter.end()):
        with contextlib.suppress(ValueError):
            body = loads(data)
            codes, message = error_fields(body)
            if message or any(codes):
                return body
    return text


def _message_in(value: Any, depth: int = 0) -> str:
    """The text of an error, wherever it is; each text of a list, with its place where there is one."""
    if isinstance(value, str):
        return value
    if depth == _DEEPEST:
        return ""
    if isinstance(value, list):
        return "; ".join(filter(None, (_message_in(entry, depth + 1) for entry in value)))
    if not isinstance(value, dict):
        return ""
    text = next(filter(None, (_message_in(value.get(name), depth + 1) for name in _MESSAGE_FIELDS)), "")
    steps = value.get("loc")
    where = ".".join(map(str, steps)) if isinstance(steps, list) else ""
    return f"{where}: {text}" if where and text else text
