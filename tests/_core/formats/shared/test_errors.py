"""Foreign failures: every exception class of the SDKs and transports, and answers that are errors."""

import importlib
import inspect
import json
import ssl
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

import llm_provider as llm
from counting_server import CountingServer, failing
from golden import read
from llm_provider import BadRequestError, InternalServerError, PermissionDeniedError, RateLimitError
from llm_provider._core.formats.shared import errors, replies
from llm_provider._core.formats.transport import http_client
from openai_support import JSON_VALUES

TRANSPORTS = (
    "aiohttp", "aiohttp.http_exceptions", "httpx", "httpx2", "httpcore", "httpcore2", "h11", "h2.exceptions",
)  # fmt: skip

# What a correct use of the SDKs cannot raise: web sockets, typed helpers, webhooks, misuse of a response.
OUT_OF_REACH = {
    "ConnectionNotAvailable", "CookieConflict", "EofStream", "HTTPError", "HTTPStatusError",
    "RequestNotRead", "ResponseNotRead", "StreamClosed", "StreamConsumed", "StreamError",
    "WSMessageTypeError", "WebSocketError",
}  # fmt: skip


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
    failing = type(
        kind.__name__, (kind,), {"__str__": lambda self: "something failed", "__module__": kind.__module__}
    )
    error: BaseException = failing.__new__(failing, "something failed")
    return error


class TestTransports:
    @pytest.mark.parametrize("kind", exceptions_of(*TRANSPORTS))
    def test_every_class_is_known_and_what_is_retried_has_a_reason(self, kind: type[Exception]) -> None:
        error = errors.from_exception(bare(kind))
        assert isinstance(error, llm.ProviderError)
        assert ("failed in its SDK" in error.message) == (kind.__name__ in OUT_OF_REACH)
        assert error.status is None
        name = kind.__name__
        if "Certificate" in name or "Fingerprint" in name or "URL" in name.upper() or "Redirect" in name:
            assert isinstance(error, llm.APIResponseValidationError) or not error.retryable
        elif "Timeout" in name:
            assert isinstance(error, llm.APITimeoutError)
        elif name in ("ConnectError", "ClientConnectorError", "ClientConnectorDNSError", "ProxyError"):
            assert isinstance(error, llm.APIConnectionError)
            assert (error.retryable, error.maybe_billed) == (True, False)

    @pytest.mark.parametrize("kind", [ValueError, TypeError, ImportError, AttributeError, KeyError])
    def test_what_no_connection_raises_is_not_sent_again(self, kind: type[Exception]) -> None:
        outer = openai.APIConnectionError(request=None)  # type: ignore[arg-type]  # nothing reads it
        outer.__cause__ = kind("a header has a line break")
        mapped = errors.from_exception(outer)
        assert mapped.message.startswith(f"the call failed in its SDK: {kind.__name__}: ")
        assert not mapped.retryable
        outer.__cause__ = ConnectionResetError(104, "reset")
        assert errors.from_exception(outer).retryable

    def test_the_cause_tells_more_than_the_wrapping(self) -> None:
        httpx = installed("httpx") or installed("httpx2")
        assert httpx is not None
        outer = httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED]")
        outer.__cause__ = ssl.SSLCertVerificationError(1, "self-signed certificate")
        mapped = errors.from_exception(outer)
        assert (mapped.retryable, mapped.maybe_billed) == (False, False)
        # A loop in the chain ends.
        outer.__cause__.__cause__ = outer
        assert not errors.from_exception(outer).retryable

    def test_a_body_cut_short_is_a_broken_connection_and_a_garbled_one_a_bad_answer(self) -> None:
        aiohttp = pytest.importorskip("aiohttp")
        for inner, kind in (
            (aiohttp.http_exceptions.TransferEncodingError("not enough data"), llm.APIConnectionError),
            (aiohttp.http_exceptions.ContentLengthError("not enough data"), llm.APIConnectionError),
            (aiohttp.http_exceptions.ContentEncodingError("not gzip"), llm.APIResponseValidationError),
        ):
            outer = aiohttp.ClientPayloadError("Response payload is not completed")
            outer.__cause__ = inner
            mapped = errors.from_exception(outer)
            assert type(mapped) is kind
            assert mapped.maybe_billed


def sdk_errors(sdk: str) -> Iterator[Any]:
    base = getattr(installed(sdk), "APIStatusError", None)
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
            "AuthenticationError": llm.AuthenticationError,
            "BadRequestError": llm.BadRequestError,
            "ContentTooLargeError": llm.BadRequestError,
            "ContractSpendLimitReachedError": llm.QuotaExceededError,
            "EnforcedSpendLimitReachedError": llm.QuotaExceededError,
            "GatewayTimeoutError": llm.InternalServerError,
            "InternalServerError": llm.InternalServerError,
            "NotFoundError": llm.NotFoundError,
            "OrganizationOnHoldError": llm.PermissionDeniedError,
            "OverloadedError": llm.OverloadedError,
            "PaymentRequiredError": llm.QuotaExceededError,
            "PermissionDeniedError": llm.PermissionDeniedError,
            "RampLimitExceededError": llm.RateLimitError,
            "RateLimitError": llm.RateLimitError,
            "RequestTimeoutError": llm.InternalServerError,
            "ServiceUnavailableError": llm.OverloadedError,
            "UnprocessableEntityError": llm.BadRequestError,
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
            # Some servers send it as an event.
            for sent in (body, f"event: error\ndata: {json.dumps(body)}\n\n"):
                error = errors.from_sdk(status_error(kind, status, sent))
                assert error.status == status
                assert (type(error), error.message) == (expected.get(name, type(error)), "m"), name
                assert error.retryable == (
                    (status >= 500 and status not in (501, 505))
                    or status in (408, 409)
                    or isinstance(error, llm.RateLimitError)
                ), name

    def test_an_error_inside_a_stream_has_no_status_and_may_be_billed(self, sdk: str) -> None:
        module = importlib.import_module(sdk)
        request = http_library(sdk).Request("POST", "http://127.0.0.1/v1")
        body = {"type": "overloaded_error", "message": "Overloaded"}
        error = errors.from_sdk(module.APIError("Overloaded", request=request, body=body))
        assert type(error) is llm.OverloadedError
        assert error.maybe_billed

    def test_headers_tell_the_wait_and_the_request_and_nothing_of_the_sdk_stays(self, sdk: str) -> None:
        module = importlib.import_module(sdk)
        headers = {"Retry-After": "2", "X-Request-Id": "req_1"}
        for body in (None, {"message": "no"}):
            error = errors.from_sdk(status_error(module.RateLimitError, 429, body, headers))
            assert (error.retry_after, error.request_id) == (2.0, "req_1")
            allowed = (str, int, float, bool, type(None))
            assert all(isinstance(value, allowed) for value in vars(error).values())


class TestAnswers:
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
        assert isinstance(error, llm.LLMError)
        assert error.message


@given(body=JSON_VALUES)
def test_any_body_has_a_message_and_a_class(body: Any) -> None:
    codes, message = errors.error_fields(body)
    assert isinstance(message, str)
    assert isinstance(errors.from_answer(400, codes=codes, message=message), llm.LLMError)
    if isinstance(body, dict):
        for answer in ("choices", "type"):
            failure = replies.error_in(body, answer)
            assert failure is None or isinstance(failure, llm.LLMError)


# What the bodies of failures say, in the forms of many hosts: the golden pairs have each with status 200.


BODIES: dict[str, Any] = {
    sentence: pair for sentence, pair in read("shared/error_bodies").items() if "body" in pair.inputs
}


@pytest.mark.parametrize("status", [400, 422, None])
@pytest.mark.parametrize("sentence", BODIES)
def test_a_wrong_key_and_an_unknown_model_are_told_with_any_status(sentence: str, status: int | None) -> None:
    pair = BODIES[sentence]
    codes, message = errors.error_fields(pair.inputs["body"])
    error = errors.from_answer(status, codes=codes, message=message)
    if sentence.startswith("a prompt"):
        assert status is None or type(error) is BadRequestError
    else:
        assert (type(error).__name__, error.retryable) == (pair.expected["gives"]["raises"], False)


def test_a_status_with_a_meaning_counts() -> None:
    for status, kind in ((403, PermissionDeniedError), (429, RateLimitError), (500, InternalServerError)):
        assert type(errors.from_answer(status, message="Invalid API key")) is kind


def test_words_of_any_length_are_read_in_no_time() -> None:
    for text in ("model" + "`" * 100_000, "the " * 100_000, "invalid model " + "x" * 100_000 + " y"):
        assert errors.from_answer(400, message=text)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("charset", [True, False])
@pytest.mark.parametrize("model", [
    "gpt-6.1-sol", "claude-haiku-5-5", "gemini/gemini-3.8-flash",
])  # fmt: skip
def test_a_body_in_any_encoding_has_its_code_and_message(
    client: llm.Client, encoding: str, charset: bool, model: str
) -> None:
    fields = {"message": "too long for us \u00e9", "code": "context_length_exceeded"}
    body = json.dumps({"error": fields}, ensure_ascii=False).encode(encoding)
    kind = f"application/json; charset={encoding}" if charset else "application/json"
    with CountingServer(failing(400, body, content_type=kind)) as server:
        for way in (client.call, lambda *given, **more: list(client.stream(*given, **more))):
            with pytest.raises(llm.ContextWindowExceededError, match=r"^too long for us"):
                way(model, "Hi", base_url=server.root, api_key="k")
