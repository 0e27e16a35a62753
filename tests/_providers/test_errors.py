"""Foreign failures: every exception class of the SDKs and transports, and answers that are errors."""

import importlib
import inspect
import socket
import ssl
import types
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._errors import (
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
    ProviderError,
    QuotaExceededError,
    RateLimitError,
    RefusalError,
)
from llm_provider._providers import errors, http_client

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TRANSPORTS = (
    "aiohttp",
    "aiohttp.http_exceptions",
    "httpx",
    "httpx2",
    "httpcore",
    "httpcore2",
    "h11",
    "h2.exceptions",
)

# What a correct use of the SDKs cannot raise: web sockets, typed helpers, webhooks, misuse of a response.
OUT_OF_REACH = {
    "ConnectionNotAvailable",
    "CookieConflict",
    "EofStream",
    "HTTPError",
    "HTTPStatusError",
    "RequestNotRead",
    "ResponseNotRead",
    "StreamClosed",
    "StreamConsumed",
    "StreamError",
    "WSMessageTypeError",
    "WebSocketError",
}


def installed(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def exceptions_of(*names: str) -> list[Any]:
    return [
        pytest.param(kind, id=f"{name}.{class_name}")
        for name in names
        for class_name, kind in sorted(vars(installed(name)).items() if installed(name) else ())
        if inspect.isclass(kind) and issubclass(kind, Exception) and not issubclass(kind, Warning)
    ]


def bare(kind: type[BaseException]) -> BaseException:
    """An instance of any exception class, whatever its constructor wants, that can be shown."""
    shown = type(
        kind.__name__, (kind,), {"__str__": lambda self: "something failed", "__module__": kind.__module__}
    )
    error: BaseException = shown.__new__(shown, "something failed")
    return error


class TestTransports:
    @pytest.mark.parametrize("kind", exceptions_of(*TRANSPORTS))
    def test_every_class_is_known(self, kind: type[Exception]) -> None:
        error = errors.from_exception(bare(kind))
        assert isinstance(error, ProviderError)
        assert ("failed in its SDK" in error.message) == (kind.__name__ in OUT_OF_REACH)
        assert error.status is None

    @pytest.mark.parametrize("kind", exceptions_of(*TRANSPORTS))
    def test_what_is_retried_has_a_reason(self, kind: type[Exception]) -> None:
        error = errors.from_exception(bare(kind))
        name = kind.__name__
        if "Certificate" in name or "Fingerprint" in name or "URL" in name.upper() or "Redirect" in name:
            assert isinstance(error, APIResponseValidationError) or not error.retryable
        elif "Timeout" in name:
            assert isinstance(error, APITimeoutError)
        elif name in ("ConnectError", "ClientConnectorError", "ClientConnectorDNSError", "ProxyError"):
            assert isinstance(error, APIConnectionError)
            assert (error.retryable, error.maybe_billed) == (True, False)

    @pytest.mark.parametrize(
        ("error", "kind", "retryable", "maybe_billed"),
        [
            (ConnectionRefusedError(111, "refused"), APIConnectionError, True, False),
            (socket.gaierror(-2, "Name or service not known"), APIConnectionError, True, False),
            (ConnectionResetError(104, "reset"), APIConnectionError, True, True),
            (BrokenPipeError(32, "pipe"), APIConnectionError, True, True),
            (TimeoutError(), APITimeoutError, True, True),
            (ssl.SSLCertVerificationError(1, "self-signed certificate"), APIConnectionError, False, False),
            (ssl.SSLError(1, "record layer failure"), APIConnectionError, True, True),
            (ValueError("boom"), APIConnectionError, False, False),
            (RuntimeError("client has been closed"), APIConnectionError, False, False),
            (RecursionError("deep"), APIResponseValidationError, True, True),
            (
                UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
                APIResponseValidationError,
                True,
                True,
            ),
        ],
    )
    def test_exceptions_of_the_language(
        self, error: Exception, kind: type[LLMError], retryable: bool, maybe_billed: bool
    ) -> None:
        mapped = errors.from_exception(error)
        assert type(mapped) is kind
        assert (mapped.retryable, mapped.maybe_billed) == (retryable, maybe_billed)

    def test_the_cause_tells_more_than_the_wrapping(self) -> None:
        httpx = installed("httpx") or installed("httpx2")
        assert httpx is not None
        outer = httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED]")
        outer.__cause__ = ssl.SSLCertVerificationError(1, "self-signed certificate")
        assert not errors.from_exception(outer).retryable
        # A loop in the chain ends.
        outer.__cause__.__cause__ = outer
        assert not errors.from_exception(outer).retryable

    def test_a_body_cut_short_is_a_broken_connection_and_a_garbled_one_a_bad_answer(self) -> None:
        aiohttp = pytest.importorskip("aiohttp")
        for inner, kind in (
            (aiohttp.http_exceptions.TransferEncodingError("not enough data"), APIConnectionError),
            (aiohttp.http_exceptions.ContentLengthError("not enough data"), APIConnectionError),
            (aiohttp.http_exceptions.ContentEncodingError("not gzip"), APIResponseValidationError),
        ):
            outer = aiohttp.ClientPayloadError("Response payload is not completed")
            outer.__cause__ = inner
            mapped = errors.from_exception(outer)
            assert type(mapped) is kind
            assert mapped.maybe_billed

    def test_a_class_of_the_same_name_elsewhere_is_not_taken_for_a_transports(self) -> None:
        foreign = pytest.importorskip("google.genai.errors")
        assert "failed in its SDK" in errors.from_exception(bare(foreign.ClientError)).message


class TestErrorsOfGateways:
    def test_a_code_that_is_a_status_classifies_an_error_in_a_200(self) -> None:
        """OpenRouter's code is a number."""
        for code, kind, retryable in (
            ("400", BadRequestError, False),
            ("429", RateLimitError, True),
            ("502", InternalServerError, True),
        ):
            error = errors.from_answer(200, codes=(code,), message="no")
            assert (type(error), error.retryable, error.maybe_billed) == (kind, retryable, True)

    @pytest.mark.parametrize(
        "raw",
        ["upstream is full, retry shortly", '{"error": {"message": "upstream is full, retry shortly"}}'],
    )
    def test_the_explanation_of_the_provider_behind_is_told(self, raw: str) -> None:
        body = {"error": {"message": "Provider returned error", "code": 429, "metadata": {"raw": raw}}}
        codes, message = errors.error_fields(body)
        assert message == "Provider returned error: upstream is full, retry shortly"
        assert codes[1] == "429"

    def test_azures_request_id_is_one(self) -> None:
        assert errors.from_answer(400, headers={"apim-request-id": "r1"}).request_id == "r1"


def sdk_errors(sdk: str) -> Iterator[Any]:
    module = installed(sdk)
    base = getattr(module, "APIStatusError", None)
    for param in exceptions_of(sdk):
        (kind,) = param.values
        # OAuthError belongs to workload identities, which need no key.
        if base is not None and issubclass(kind, base) and kind.__name__ != "OAuthError":
            yield kind


def http_library(sdk: str) -> Any:
    return http_client.library_of(importlib.import_module(sdk).DefaultAsyncHttpxClient)


def status_error(kind: Any, status: int, body: Any, headers: dict[str, str] | None = None) -> Any:
    library = http_library(kind.__module__.partition(".")[0])
    request = library.Request("POST", "http://127.0.0.1/v1")
    return kind(
        "failed", response=library.Response(status, request=request, headers=headers or {}), body=body
    )


@pytest.mark.parametrize("sdk", ["openai", "anthropic"])
class TestSDKs:
    def test_every_status_class_keeps_its_meaning(self, sdk: str) -> None:
        expected = {
            "AuthenticationError": AuthenticationError,
            "BadRequestError": BadRequestError,
            "ContentTooLargeError": BadRequestError,
            "ContractSpendLimitReachedError": QuotaExceededError,
            "EnforcedSpendLimitReachedError": QuotaExceededError,
            "GatewayTimeoutError": InternalServerError,
            "InternalServerError": InternalServerError,
            "NotFoundError": NotFoundError,
            "OrganizationOnHoldError": PermissionDeniedError,
            "OverloadedError": OverloadedError,
            "PaymentRequiredError": QuotaExceededError,
            "PermissionDeniedError": PermissionDeniedError,
            "RampLimitExceededError": RateLimitError,
            "RateLimitError": RateLimitError,
            "RequestTimeoutError": InternalServerError,
            "ServiceUnavailableError": OverloadedError,
            "UnprocessableEntityError": BadRequestError,
        }
        statuses = {"InternalServerError": 500, "APIStatusError": 418}
        for kind in sdk_errors(sdk):
            inherited = next(
                (vars(base)["status_code"] for base in kind.__mro__ if "status_code" in vars(base)), None
            )
            name = kind.__name__
            status = inherited if isinstance(inherited, int) else statuses.get(name, 400)
            # Anthropic's classes for one cause are named after its code.
            code = "".join(f"_{c.lower()}" if c.isupper() else c for c in name.removesuffix("Error")).lstrip(
                "_"
            )
            body = {"error": {"type": "some_error", "message": "m", "details": {"error_code": code}}}
            error = errors.from_sdk(status_error(kind, status, body))
            assert error.status == status
            assert type(error) is expected.get(name, type(error)), name
            assert error.retryable == (
                status >= 500 or status in (408, 409) or isinstance(error, RateLimitError)
            ), name

    def test_connection_errors_are_of_their_cause(self, sdk: str) -> None:
        module = importlib.import_module(sdk)
        library = http_library(sdk)
        request = library.Request("POST", "http://127.0.0.1/v1")
        for cause, kind, billed in (
            (library.ConnectError("refused"), APIConnectionError, False),
            (library.ConnectTimeout("late"), APITimeoutError, False),
            (library.ReadTimeout("late"), APITimeoutError, True),
            (library.RemoteProtocolError("peer closed"), APIConnectionError, True),
        ):
            wrapped = module.APIConnectionError(request=request)
            wrapped.__cause__ = cause
            error = errors.from_sdk(wrapped)
            assert type(error) is kind
            assert (error.retryable, error.maybe_billed) == (True, billed)
        timed_out = errors.from_sdk(module.APITimeoutError(request=request))
        assert isinstance(timed_out, APITimeoutError)

    def test_an_error_inside_a_stream_has_no_status_and_may_be_billed(self, sdk: str) -> None:
        module = importlib.import_module(sdk)
        library = http_library(sdk)
        request = library.Request("POST", "http://127.0.0.1/v1")
        body = {"type": "overloaded_error", "message": "Overloaded"}
        error = errors.from_sdk(module.APIError("Overloaded", request=request, body=body))
        assert type(error) is OverloadedError
        assert error.maybe_billed

    def test_headers_tell_the_wait_and_the_request(self, sdk: str) -> None:
        module = importlib.import_module(sdk)
        headers = {"Retry-After": "2", "X-Request-Id": "req_1"}
        error = errors.from_sdk(status_error(module.RateLimitError, 429, None, headers))
        assert (error.retry_after, error.request_id) == (2.0, "req_1")

    def test_nothing_of_the_sdk_stays_in_the_error(self, sdk: str) -> None:
        module = importlib.import_module(sdk)
        error = errors.from_sdk(status_error(module.BadRequestError, 400, {"message": "no"}))
        allowed = (str, int, float, bool, type(None))
        assert all(isinstance(value, allowed) for value in vars(error).values())


class TestAnswers:
    @pytest.mark.parametrize(
        ("status", "codes", "message", "kind"),
        [
            (400, (None, "invalid_request_error"), "bad", BadRequestError),
            (401, (None, "invalid_request_error"), "You didn't provide an API key.", AuthenticationError),
            (401, ("invalid_api_key", "invalid_request_error"), "Incorrect API key", AuthenticationError),
            (402, ("insufficient_funds",), "", QuotaExceededError),
            (403, ("permission_denied", "invalid_request_error"), "", PermissionDeniedError),
            (403, ("unsupported_country_region_territory", "request_forbidden"), "", PermissionDeniedError),
            (404, ("model_not_found", "invalid_request_error"), "", NotFoundError),
            (404, (None, "invalid_request_error"), "Invalid URL", NotFoundError),
            (408, (), "", InternalServerError),
            (409, ("conflict", "invalid_request_error"), "", InternalServerError),
            (413, ("request_too_large",), "", BadRequestError),
            (418, (), "", BadRequestError),
            (422, (), "", BadRequestError),
            (429, ("rate_limit_exceeded", "requests"), "", RateLimitError),
            (429, (None, "tokens"), "", RateLimitError),
            (429, (None, "api_error"), "", RateLimitError),
            (429, ("insufficient_quota", "insufficient_quota"), "", QuotaExceededError),
            (429, ("enforced_spend_limit_reached", "rate_limit_error"), "", QuotaExceededError),
            (429, ("GenerateRequestsPerDayPerProjectPerModel-FreeTier",), "", QuotaExceededError),
            (500, (None, "server_error"), "", InternalServerError),
            (500, (None, "invalid_request_error"), "", InternalServerError),
            (500, ("rate_limit_exceeded",), "", InternalServerError),
            (502, (), "", InternalServerError),
            (503, (None, "server_error"), "", OverloadedError),
            (503, ("service_unavailable_error",), "", OverloadedError),
            (504, ("DEADLINE_EXCEEDED",), "", APITimeoutError),
            (529, ("overloaded_error",), "", OverloadedError),
            (307, (), "", APIResponseValidationError),
            (200, ("overloaded_error",), "", OverloadedError),
            (None, (), "", InternalServerError),
            (400, ("context_length_exceeded",), "", ContextWindowExceededError),
            (400, (None, "exceed_context_size_error"), "", ContextWindowExceededError),
            (
                400,
                (None, "invalid_request_error"),
                "prompt is too long: 250000 tokens > 200000",
                ContextWindowExceededError,
            ),
            (
                400,
                ("INVALID_ARGUMENT",),
                "The input token count (9) exceeds the maximum",
                ContextWindowExceededError,
            ),
            (
                400,
                ("BadRequestError",),
                "This model's maximum context length is 8192 tokens.",
                ContextWindowExceededError,
            ),
            (413, (), "the request exceeds the available context size", ContextWindowExceededError),
            (429, (), "too many tokens", RateLimitError),
            (400, ("content_filter",), "", RefusalError),
            (400, ("content_policy_violation",), "", RefusalError),
        ],
    )
    def test_statuses_and_codes(
        self, status: int | None, codes: tuple[str | None, ...], message: str, kind: type[LLMError]
    ) -> None:
        assert type(errors.from_answer(status, codes=codes, message=message)) is kind

    def test_money_may_have_been_spent_where_work_was_done(self) -> None:
        assert errors.from_answer(500).maybe_billed
        assert errors.from_answer(200, codes=("rate_limit_error",)).maybe_billed
        assert not errors.from_answer(429).maybe_billed
        assert not errors.from_answer(503).maybe_billed
        assert not errors.from_answer(401).maybe_billed

    def test_the_wait_of_the_body_wins(self) -> None:
        headers = {"retry-after": "9", "request-id": "req_2"}
        error = errors.from_answer(429, headers=headers, wait=1.5)
        assert (error.retry_after, error.request_id) == (1.5, "req_2")
        assert errors.from_answer(429, headers=headers).retry_after == 9.0

    def test_a_web_page_is_its_title(self) -> None:
        page = "<!DOCTYPE html><html><head><title> 502 Bad\nGateway </title></head><body>nginx</body></html>"
        assert (
            errors.from_answer(502, message=page).message
            == "a web page instead of an answer: 502 Bad Gateway"
        )
        assert errors.from_answer(502, message="<html></html>").message == "a web page instead of an answer"

    def test_a_long_message_is_cut_and_an_absent_one_replaced(self) -> None:
        assert len(errors.from_answer(400, message="x" * 10_000).message) == 500
        assert errors.from_answer(418).message == "HTTP 418"
        assert errors.from_answer(None).message == "an error without a message"

    @given(
        st.none() | st.integers(100, 999),
        st.lists(st.none() | st.text(max_size=20), max_size=3),
        st.text(max_size=50),
        st.dictionaries(st.sampled_from(["retry-after", "x-request-id"]), st.text(max_size=20)),
    )
    def test_every_answer_is_some_error_of_ours(
        self, status: int | None, codes: list[str | None], message: str, headers: dict[str, str]
    ) -> None:
        error = errors.from_answer(status, codes=tuple(codes), message=message, headers=headers)
        assert isinstance(error, LLMError)
        assert error.message


class TestErrorFields:
    @pytest.mark.parametrize(
        ("body", "codes", "message"),
        [
            ({"error": {"code": "a", "type": "b", "message": "m"}}, (None, "a", "b", None), "m"),
            ({"code": "a", "message": "m"}, (None, "a", None, None), "m"),
            ({"type": "error", "error": {"type": "b", "message": "m"}}, (None, None, "b", None), "m"),
            ({"type": "b", "details": {"error_code": "c"}, "message": "m"}, ("c", None, "b", None), "m"),
            (
                {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}},
                (None, "429", None, "RESOURCE_EXHAUSTED"),
                "",
            ),
            ({"error": "plain"}, (None,) * 4, "plain"),
            ({"code": "c", "error": "plain"}, (None, "c", None, None), "plain"),
            ({"error": {"detail": "d"}}, (None,) * 4, "d"),
            ({"error": {"error": {"message": "m", "code": 5}}}, (None, "5", None, None), "m"),
            ([{"error": {"message": "m", "details": [{"reason": "r"}]}}], ("r", None, None, None), "m"),
            ({"message": {"detail": [{"msg": "one"}, {"msg": "two"}]}}, (None,) * 4, "one; two"),
            ({"errors": [{"code": 5007, "message": "m"}], "messages": []}, (None,) * 4, "m"),
            ({"detail": [{"msg": "field required"}]}, (None,) * 4, "field required"),
            ({"detail": [{"loc": ["body", 0], "msg": "m"}]}, (None,) * 4, "body.0: m"),
            ("<html>", (), "<html>"),
            (None, (), ""),
            ([], (), ""),
        ],
    )
    def test_shapes(self, body: Any, codes: tuple[str | None, ...], message: str) -> None:
        assert errors.error_fields(body) == (codes, message)

    @given(JSON_VALUES, JSON_VALUES)
    def test_any_json_has_fields(self, a: Any, b: Any) -> None:
        for body in (a, {"error": a, "message": b}, {"details": a, "code": b, "message": a}):
            codes, message = errors.error_fields(body)
            assert all(code is None or isinstance(code, str) for code in codes)
            assert isinstance(message, str)
            errors.from_answer(400, codes=codes, message=message)


def test_headers_have_lower_case_names() -> None:
    answer = types.SimpleNamespace(headers={"Retry-After": "1"})
    assert errors.headers_of(answer) == {"retry-after": "1"}
    assert errors.headers_of(None) == {}


@pytest.mark.parametrize(
    ("headers", "identifier"),
    [
        ({"mistral-correlation-id": "m", "cf-ray": "c"}, "m"),
        ({"x-request-id": "x", "mistral-correlation-id": "m"}, "x"),
        ({"apim-request-id": "a", "x-ms-client-request-id": "b"}, "a"),
        ({"x-amzn-requestid": "q", "date": "d"}, "q"),
        ({"nvcf-reqid": "n"}, "n"),
        ({"x-ds-trace-id": "t", "cf-ray": "c"}, "t"),
        ({"llm_provider-mistral-correlation-id": "m"}, "m"),
        ({"cf-ray": "c"}, "c"),
        ({"x-request-id": "", "request-id": "r"}, "r"),
        ({"x-requests": "5", "x-ratelimit-limit-requests": "9"}, None),
    ],
)
def test_every_request_id_is_told(headers: dict[str, str], identifier: str | None) -> None:
    assert errors.from_answer(400, message="no", headers=headers).request_id == identifier


@given(body=JSON_VALUES)
def test_any_body_has_a_message_and_a_class(body: Any) -> None:
    codes, message = errors.error_fields(body)
    assert isinstance(message, str)
    assert isinstance(errors.from_answer(400, codes=codes, message=message), LLMError)
    if isinstance(body, dict):
        for answer in ("choices", "type"):
            failure = errors.error_in(body, answer)
            assert failure is None or isinstance(failure, LLMError)
