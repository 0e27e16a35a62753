"""The error matrix: whatever a provider, or the way to it, does ends in one of our errors.

Each failure goes through the real SDK of each route. `Failing.ask` checks on every single one of them what
holds for all: the error is ours, carries the facts of its call, pickles, and shows neither key nor SDK.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import email.utils
import itertools
import json
import logging
import os
import pickle
import socket
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pytest

import llm_provider
import raw_server
from llm_provider import Client, Response
from llm_provider import _errors as errors
from llm_provider._errors import LLMError
from llm_provider.simulator import Fault, Simulator
from raw_server import RawServer
from support import TooSlowError, patiently, wait_until

CANARY = "sk-canary-0123456789-abcdefghijklmnop"
"""The API key of every call. A constant of the module, so that no frame of a test has it as a local."""

LATE = 5.0
"""Seconds in which a server has seen what a client sent before it gave up."""

NUMBERS = itertools.count()

BOTH = ("call", "astream")
"""A whole answer waited for by a thread, and a stream awaited on an event loop."""


@dataclass(frozen=True, slots=True)
class Way:
    """A route, and whom the simulator plays for it."""

    model: str
    server: str

    @property
    def provider(self) -> str:
        return "litellm" if self.model.startswith("litellm/") else self.server


WAYS = {
    "openai": Way("gpt-6.1-sol", "openai"),
    "responses": Way("gpt-5.5-pro", "openai"),
    "anthropic": Way("claude-sonnet-5-5", "anthropic"),
    "gemini": Way("gemini/gemini-4-argon", "gemini"),
    "litellm": Way("litellm/anthropic/claude-sonnet-5-5", "anthropic"),
}
THROUGH_LITELLM = (
    pytest.mark.skipif(find_spec("litellm") is None, reason="litellm is not installed"),
    # Its use of pydantic, not ours of litellm.
    pytest.mark.filterwarnings("ignore::UserWarning:pydantic", "ignore::DeprecationWarning:litellm"),
)
LIVE = [
    pytest.param(way, id=name, marks=THROUGH_LITELLM if name == "litellm" else ())
    for name, way in WAYS.items()
]
DIRECT = [entry for entry in LIVE if entry.id != "litellm"]
every_way = pytest.mark.parametrize("way", LIVE)
every_direct_way = pytest.mark.parametrize("way", DIRECT)
both = pytest.mark.parametrize("how", BOTH)


class Failing:
    """A client whose calls fail; `text` is what a stream showed before it did."""

    def __init__(self, client: Client, caplog: pytest.LogCaptureFixture) -> None:
        self.client = client
        self.text = ""
        self._caplog = caplog

    def ask(self, way: Way, how: str, kind: type[LLMError], **parameters: Any) -> LLMError:
        """Make a call that has to fail with this kind of error."""
        self.text = ""
        with pytest.raises(LLMError) as caught:
            answer(self, way, how, **parameters)
        error = caught.value
        assert type(error) is kind, repr(error)
        assert (error.provider, error.model) == (way.provider, way.model)
        assert error.attempts >= 1
        assert error.__cause__ is None
        assert error.__context__ is None
        twin = pickle.loads(pickle.dumps(error))
        assert (type(twin), twin.args, twin.__dict__) == (kind, error.args, error.__dict__)
        facts = dict(vars(error))
        facts_of_attempts = [dataclasses.astuple(failure) for failure in facts.pop("failures", ())]
        for fact in itertools.chain(facts.values(), *facts_of_attempts):
            assert isinstance(fact, (str, int, float, bool, type(None)))
        told = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
        for shown in (str(error), repr(error), told, repr(pickle.dumps(error)), self._caplog.text):
            assert CANARY not in shown
        return error


def answer(failing: Failing, way: Way, how: str, **parameters: Any) -> Response:
    """The answer of a call or, bit by bit, of a stream."""
    messages = parameters.pop("messages", "one two three")
    if how == "call":
        return failing.client.call(way.model, messages, **parameters)

    async def read() -> Response:
        async with failing.client.astream(way.model, messages, **parameters) as stream:
            async for delta in stream:
                failing.text += delta.text
        return stream.response

    return asyncio.run(read())


def warm_up(simulator: Simulator, failing: Failing, way: Way) -> None:
    """Let the SDK load and build what its first call needs, so that a short timeout is not spent on that."""
    answer(failing, way, "call", base_url=simulator.url(way.server))
    simulator.clear()
    failing.text = ""


@pytest.fixture(scope="module")
def server() -> Iterator[Simulator]:
    with Simulator() as running:
        yield running


@pytest.fixture
def simulator(server: Simulator) -> Simulator:
    server.clear()
    return server


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Client]]:
    """One client per transport, shared by all tests as a program would share it."""
    options: dict[str, Any] = {
        "cache": "off",
        "cache_dir": tmp_path_factory.mktemp("unused"),
        "max_retries": 0,
        "timeout": 20,
    }
    with (
        Client(transport="aiohttp", **options) as aiohttp,
        Client(transport="http2", **options) as http2,
        Client(transport="http1", **options) as http1,
    ):
        yield {"aiohttp": aiohttp, "http2": http2, "http1": http1}


@pytest.fixture(autouse=True)
def own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key of the test's own: each key has limits of its own, so no test is slowed down by another."""
    number = next(NUMBERS)
    for provider in ("OPENAI", "ANTHROPIC", "GEMINI", "LITELLM"):
        monkeypatch.setenv(f"{provider}_API_KEY", f"{CANARY}-{number}")


@pytest.fixture
def failing(clients: dict[str, Client], caplog: pytest.LogCaptureFixture) -> Failing:
    caplog.set_level(logging.DEBUG)
    return Failing(clients["aiohttp"], caplog)


@pytest.fixture(params=["http2", "http1"])
def failing_otherwise(
    request: pytest.FixtureRequest, clients: dict[str, Client], caplog: pytest.LogCaptureFixture
) -> Failing:
    """Over httpx instead of aiohttp."""
    caplog.set_level(logging.DEBUG)
    return Failing(clients[request.param], caplog)


# --- statuses and codes --------------------------------------------------------------------------------

STATUSES: Mapping[int, type[LLMError]] = {
    400: errors.BadRequestError,
    401: errors.AuthenticationError,
    402: errors.QuotaExceededError,
    403: errors.PermissionDeniedError,
    404: errors.NotFoundError,
    408: errors.InternalServerError,
    409: errors.InternalServerError,
    413: errors.BadRequestError,
    422: errors.BadRequestError,
    429: errors.RateLimitError,
    500: errors.InternalServerError,
    502: errors.InternalServerError,
    503: errors.OverloadedError,
    504: errors.InternalServerError,
    529: errors.OverloadedError,
}
"""What a status means where the provider has no word of its own that says more."""

OWN_WORDS: Mapping[tuple[str, int], type[LLMError]] = {
    ("anthropic", 408): errors.APITimeoutError,
    ("anthropic", 504): errors.APITimeoutError,
    ("gemini", 408): errors.APITimeoutError,
    ("gemini", 502): errors.OverloadedError,
    ("gemini", 504): errors.APITimeoutError,
}

STATUS_BY_LITELLM = {413: 400, 529: 500}
"""What litellm reports instead; the provider's own word, which it leaves in the message, tells them apart."""

FINAL = (
    errors.RequestError,
    errors.AuthenticationError,
    errors.PermissionDeniedError,
    errors.QuotaExceededError,
)


@both
@pytest.mark.parametrize("status", STATUSES)
@every_way
def test_statuses(simulator: Simulator, failing: Failing, way: Way, status: int, how: str) -> None:
    simulator.inject(Fault(status=status, message="made up for the test"))
    kind = OWN_WORDS.get((way.server, status), STATUSES[status])
    error = failing.ask(way, how, kind, base_url=simulator.url(way.server))
    assert error.status == (STATUS_BY_LITELLM.get(status, status) if way.provider == "litellm" else status)
    assert error.attempts == 1
    assert error.retryable == (not isinstance(error, FINAL))
    assert error.request_id
    assert error.request_id.startswith("req_")
    assert "made up for the test" in str(error)
    assert len(simulator.requests()) == 1


CODES: Mapping[str, tuple[Fault, type[LLMError]]] = {
    "quota": (Fault(quota=True), errors.QuotaExceededError),
    "context": (Fault(context_length=True), errors.ContextWindowExceededError),
}


@both
@pytest.mark.parametrize("code", CODES)
@every_way
def test_codes_say_more_than_the_status(
    simulator: Simulator, failing: Failing, way: Way, code: str, how: str
) -> None:
    fault, kind = CODES[code]
    simulator.inject(fault, times=None)
    error = failing.ask(way, how, kind, base_url=simulator.url(way.server), max_retries=3)
    assert not error.retryable
    assert error.attempts == len(simulator.requests()) == 1


@both
@every_way
def test_content_policy(simulator: Simulator, failing: Failing, way: Way, how: str) -> None:
    if way.server != "openai":
        pytest.skip("OpenAI alone says it with a status")
    simulator.inject(Fault(status=400, code="content_policy_violation", message="not allowed"))
    failing.ask(way, how, errors.RefusalError, base_url=simulator.url(way.server))


@both
@every_way
def test_a_wrong_key(simulator: Simulator, failing: Failing, way: Way, how: str) -> None:
    simulator.configure(require_key="another-key")
    error = failing.ask(
        way, how, errors.AuthenticationError, base_url=simulator.url(way.server), max_retries=3
    )
    assert (error.status, error.attempts) == (401, 1)


@every_way
def test_a_key_that_the_provider_quotes(simulator: Simulator, failing: Failing, way: Way) -> None:
    simulator.inject(
        Fault(status=401, message=f"Incorrect API key provided: {os.environ['OPENAI_API_KEY']}.")
    )
    error = failing.ask(way, "call", errors.AuthenticationError, base_url=simulator.url(way.server))
    # litellm has put its own word in the key's place by then.
    assert "***" in str(error) or "REDACTED" in str(error)


async def _acall(client: Client, url: str) -> None:
    await client.acall("gpt-6.1-sol", "hi", api_key=CANARY, base_url=url)


async def _astream(client: Client, url: str) -> None:
    async with client.astream("gpt-6.1-sol", "hi", api_key=CANARY, base_url=url) as deltas:
        async for _ in deltas:
            pass


FRONTS: Mapping[str, Callable[[Client, str], Any]] = {
    "call": lambda client, url: client.call("gpt-6.1-sol", "hi", api_key=CANARY, base_url=url),
    "stream": lambda client, url: list(client.stream("gpt-6.1-sol", "hi", api_key=CANARY, base_url=url)),
    "acall": lambda client, url: asyncio.run(_acall(client, url)),
    "astream": lambda client, url: asyncio.run(_astream(client, url)),
    "call_many": lambda client, url: client.call_many(
        "gpt-6.1-sol", ["hi"], api_key=CANARY, base_url=url, on_error="raise"
    ),
    "module's call": lambda _, url: llm_provider.call("gpt-6.1-sol", "hi", api_key=CANARY, base_url=url),
    "module's stream": lambda _, url: list(
        llm_provider.stream("gpt-6.1-sol", "hi", api_key=CANARY, base_url=url)
    ),
    "wrong parameter": lambda client, url: client.call(
        "gpt-6.1-sol", "hi", api_key=CANARY, base_url=url, temperature=0
    ),
    "no route": lambda client, _: client.call("nonsense", "hi", api_key=CANARY),
    "no message": lambda client, _: client.call("gpt-6.1-sol", [{"role": "nobody"}], api_key=CANARY),
    "no key": lambda client, _: client.call("gpt-6.1-sol", "hi", api_key=f"{CANARY}\n"),
}


@pytest.mark.parametrize("front", FRONTS)
def test_a_key_given_with_the_call_is_in_no_frame(
    simulator: Simulator, clients: dict[str, Client], front: str
) -> None:
    simulator.inject(Fault(status=401), times=None)
    with pytest.raises(LLMError) as caught:
        FRONTS[front](clients["aiohttp"], simulator.url("openai"))
    told = "".join(traceback.TracebackException.from_exception(caught.value, capture_locals=True).format())
    assert " = " in told
    assert CANARY not in told


# --- answers that are none -----------------------------------------------------------------------------

DEEP = b"[" * 50_000 + b"]" * 50_000

NO_ANSWERS = {
    "page": b"<!doctype html><html><title>Welcome</title></html>",
    "empty": b"",
    "null": b"null",
    "object": b"{}",
    "list": b"[]",
    "text": b'"hello"',
    "number": b"42",
    "garbage": b"%$#@! no JSON",
    "cut": b'{"id": "1", "choices": [{"mess',
    "not-utf-8": b"\xff\xfe\x80\x00",
    "not-utf-8-inside": b'{"id": "\xff\xfe"}',
    "deep": DEEP,
    "deep-inside": b'{"choices":' + DEEP + b',"content":' + DEEP + b',"candidates":' + DEEP + b"}",
    "surrogate": b'{"id": "\\ud800"}',
}


@pytest.mark.parametrize("name", NO_ANSWERS)
@every_way
def test_bodies_that_are_no_answer(simulator: Simulator, failing: Failing, way: Way, name: str) -> None:
    content_type = "text/html" if name == "page" else "application/json"
    simulator.inject(Fault(body=NO_ANSWERS[name], content_type=content_type), times=None)
    error = failing.ask(way, "call", errors.APIResponseValidationError, base_url=simulator.url(way.server))
    assert error.maybe_billed
    assert len(str(error)) < 1000


@pytest.mark.parametrize("prefix", [b"", b"data: "], ids=["bare", "event"])
@pytest.mark.parametrize("name", NO_ANSWERS)
@every_way
def test_streams_that_are_no_answer(
    simulator: Simulator, failing: Failing, way: Way, name: str, prefix: bytes
) -> None:
    body = prefix + NO_ANSWERS[name] + b"\n\n"
    simulator.inject(Fault(body=body, content_type="text/event-stream"), times=None)
    error = failing.ask(way, "astream", errors.APIResponseValidationError, base_url=simulator.url(way.server))
    assert error.maybe_billed
    assert failing.text == ""


@both
@every_way
def test_an_error_that_comes_with_status_200(
    simulator: Simulator, failing: Failing, way: Way, how: str
) -> None:
    error = {"type": "overloaded_error", "code": 503, "status": "UNAVAILABLE", "message": "full"}
    body = json.dumps({"error": error, "type": "error"}).encode()
    if how == "astream":
        body = b"data: " + body + b"\n\n"
        # Only Anthropic's events have names; Google's SDK does not read those that have.
        body = b"event: error\n" + body if way.server == "anthropic" else body
    simulator.inject(Fault(body=body, content_type="text/event-stream"), times=None)
    # litellm keeps only the message of an error inside a stream.
    kind = (
        errors.InternalServerError
        if way.provider == "litellm" and how == "astream"
        else errors.OverloadedError
    )
    failing.ask(way, how, kind, base_url=simulator.url(way.server))


@both
@pytest.mark.parametrize("finish", ["no_choices", "null_content", "empty"])
@every_way
def test_answers_without_content(
    simulator: Simulator, failing: Failing, way: Way, finish: str, how: str
) -> None:
    simulator.inject(Fault(finish=finish))
    where = {"base_url": simulator.url(way.server)}
    nothing = finish == "no_choices" and way.server != "anthropic"
    if nothing or (finish == "null_content" and way is WAYS["responses"]):
        failing.ask(way, how, errors.APIResponseValidationError, **where)
    else:
        # A whole answer that says nothing: the finish reason is there for whoever wants to know.
        response = answer(failing, way, how, **where)
        assert (response.text, response.finish_reason) == ("", "stop")


# litellm follows them, and cannot be told not to.
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@both
@every_direct_way
def test_redirects_are_not_followed(
    simulator: Simulator, failing: Failing, way: Way, status: int, how: str
) -> None:
    with RawServer(raw_server.close_before_headers) as elsewhere:
        simulator.inject(Fault(redirect=f"{elsewhere.root}/v1/elsewhere", status=status))
        error = failing.ask(way, how, errors.APIResponseValidationError, base_url=simulator.url(way.server))
        assert error.status == status
        assert elsewhere.requests == 0


# --- streams that break --------------------------------------------------------------------------------

BREAKS: Mapping[str, tuple[Fault, type[LLMError]]] = {
    "cut": (Fault(cut_after=1), errors.APIResponseValidationError),
    "abort": (Fault(abort_after=1), errors.APIConnectionError),
    "error": (Fault(error_after=1, status=529, message="made up"), errors.OverloadedError),
    "stall": (Fault(stall_after=1), errors.APITimeoutError),
}


@pytest.mark.parametrize("name", BREAKS)
@every_way
def test_a_stream_that_breaks_is_not_begun_again(
    simulator: Simulator, failing: Failing, way: Way, name: str
) -> None:
    fault, kind = BREAKS[name]
    if name == "error" and way.provider == "litellm":
        kind = errors.InternalServerError  # of Anthropic's error event it keeps the message only
    if name == "stall":
        warm_up(simulator, failing, way)

    def attempt(longer: float) -> None:
        simulator.clear()
        simulator.inject(fault, times=None)
        where = {"base_url": simulator.url(way.server), "timeout": 0.5 * longer if name == "stall" else 20}
        error = failing.ask(way, "astream", kind, **where, max_retries=3)
        if name == "stall" and not failing.text:
            raise TooSlowError("the stream had not begun")
        assert error.maybe_billed
        assert failing.text == "echo:"
        assert error.attempts == len(simulator.requests()) == 1

    patiently(attempt)


EARLY = {
    "empty": Fault(empty_stream=True),
    "cut": Fault(cut_after=0),
    "error": Fault(error_after=0, status=500),
}


@pytest.mark.parametrize("name", EARLY)
@every_way
def test_a_stream_that_breaks_before_anything_was_shown_is_begun_again(
    simulator: Simulator, failing: Failing, way: Way, name: str
) -> None:
    simulator.inject(EARLY[name])
    response = answer(failing, way, "astream", base_url=simulator.url(way.server), max_retries=1)
    assert (response.text, failing.text) == ("echo: one two three",) * 2
    assert response.timing.attempts == len(simulator.requests()) == 2


@every_way
def test_an_answer_that_breaks_in_its_middle(simulator: Simulator, failing: Failing, way: Way) -> None:
    simulator.inject(Fault(abort_after=1))
    error = failing.ask(way, "call", errors.APIConnectionError, base_url=simulator.url(way.server))
    assert error.maybe_billed
    assert error.retryable


@both
@every_way
def test_no_answer_in_time(simulator: Simulator, failing: Failing, way: Way, how: str) -> None:
    warm_up(simulator, failing, way)

    def attempt(longer: float) -> None:
        simulator.clear()
        simulator.inject(Fault(hang=True), times=None)
        where = {"base_url": simulator.url(way.server), "timeout": 0.3 * longer}
        error = failing.ask(way, how, errors.APITimeoutError, **where)
        if not wait_until(lambda: bool(simulator.requests()), LATE):
            raise TooSlowError("the request had not arrived")
        assert error.retryable
        assert error.maybe_billed
        # The request has ended at the server too: nobody pays for an answer that nobody waits for.
        assert wait_until(lambda: simulator.ledger().disconnects > 0)
        ledger = simulator.ledger()
        assert (ledger.disconnects, ledger.in_flight) == (1, 0)

    patiently(attempt)


# --- connections ---------------------------------------------------------------------------------------


def base_url(way: Way, root: str) -> str:
    return f"{root}/v1" if way.server == "openai" else root


def closed_port() -> tuple[socket.socket, str]:
    """A port that nobody listens on, and nobody else gets while the socket lives."""
    free = socket.socket()
    free.bind(("127.0.0.1", 0))
    return free, f"http://127.0.0.1:{free.getsockname()[1]}"


@both
@pytest.mark.parametrize("fault", ["refused", "no such name"])
@every_way
def test_no_connection(failing: Failing, way: Way, fault: str, how: str) -> None:
    check_no_connection(failing, way, fault, how)


@pytest.mark.parametrize("fault", ["refused", "no such name"])
@every_direct_way
def test_no_connection_otherwise(failing_otherwise: Failing, way: Way, fault: str) -> None:
    check_no_connection(failing_otherwise, way, fault, "call")


def check_no_connection(failing: Failing, way: Way, fault: str, how: str) -> None:
    free, refused = closed_port()
    with free:
        url = base_url(way, refused if fault == "refused" else "https://nonexistent.invalid")
        error = failing.ask(way, how, errors.APIConnectionError, base_url=url)
    assert error.retryable
    assert not error.maybe_billed
    assert error.status is None


@pytest.fixture(scope="module")
def tls_server() -> Iterator[Simulator]:
    with Simulator(tls=True) as running:
        yield running


@both
@every_way
def test_a_certificate_that_is_not_trusted(
    tls_server: Simulator, failing: Failing, way: Way, how: str
) -> None:
    check_certificate(tls_server, failing, way, how)


@every_direct_way
def test_a_certificate_that_is_not_trusted_otherwise(
    tls_server: Simulator, failing_otherwise: Failing, way: Way
) -> None:
    check_certificate(tls_server, failing_otherwise, way, "call")


def check_certificate(tls_server: Simulator, failing: Failing, way: Way, how: str) -> None:
    tls_server.clear()
    url = tls_server.url(way.server)
    error = failing.ask(way, how, errors.APIConnectionError, base_url=url, max_retries=3)
    assert not error.retryable
    assert not error.maybe_billed
    assert error.attempts == 1
    assert "certificate" in str(error)
    assert tls_server.requests() == []


@dataclass(frozen=True, slots=True)
class Raw:
    """What the server does, and what that is. To httpx a broken answer is a broken connection."""

    behaviour: raw_server.Behaviour
    kind: type[LLMError]
    kind_over_httpx: type[LLMError] = errors.APIConnectionError


RAW = {
    "reset before headers": Raw(raw_server.reset_before_headers, errors.APIConnectionError),
    "close before headers": Raw(raw_server.close_before_headers, errors.APIConnectionError),
    "reset mid headers": Raw(raw_server.reset_mid_headers, errors.APIConnectionError),
    "reset mid body": Raw(raw_server.reset_mid_body, errors.APIConnectionError),
    "reset mid chunk": Raw(raw_server.reset_mid_chunk, errors.APIConnectionError),
    "close mid body": Raw(raw_server.close_mid_body, errors.APIConnectionError),
    "garbage chunk size": Raw(raw_server.garbage_chunk_size, errors.APIResponseValidationError),
    "garbage encoding": Raw(
        raw_server.garbage_encoding, errors.APIResponseValidationError, errors.APIResponseValidationError
    ),
    "garbage status line": Raw(raw_server.garbage_status_line, errors.APIResponseValidationError),
    "huge header": Raw(raw_server.huge_header, errors.APIResponseValidationError),
    "slow drip": Raw(raw_server.slow_drip, errors.APITimeoutError, errors.APITimeoutError),
}


@both
@pytest.mark.parametrize("name", RAW)
@every_way
def test_broken_http(simulator: Simulator, failing: Failing, way: Way, name: str, how: str) -> None:
    if RAW[name].kind is errors.APITimeoutError:
        warm_up(simulator, failing, way)
    check_broken_http(failing, way, how, RAW[name].behaviour, RAW[name].kind)


@pytest.mark.parametrize("name", RAW)
@every_direct_way
def test_broken_http_otherwise(simulator: Simulator, failing_otherwise: Failing, way: Way, name: str) -> None:
    if RAW[name].kind is errors.APITimeoutError:
        warm_up(simulator, failing_otherwise, way)
    check_broken_http(failing_otherwise, way, "call", RAW[name].behaviour, RAW[name].kind_over_httpx)


def check_broken_http(
    failing: Failing, way: Way, how: str, behaviour: raw_server.Behaviour, kind: type[LLMError]
) -> None:
    def attempt(longer: float) -> None:
        patience = 0.5 * longer if kind is errors.APITimeoutError else 20
        with RawServer(behaviour) as raw:
            error = failing.ask(way, how, kind, base_url=base_url(way, raw.root), timeout=patience)
            if kind is errors.APITimeoutError and not wait_until(lambda: raw.requests > 0, LATE):
                raise TooSlowError("the request had not arrived")
            assert error.maybe_billed
            assert error.retryable
            assert error.attempts == 1
            # litellm sends once more by itself when a connection breaks before its answer.
            assert raw.requests == 1 or (way.provider == "litellm" and raw.requests == 2)

    patiently(attempt)


# --- retries -------------------------------------------------------------------------------------------

RETRIED: Mapping[str, tuple[Fault, type[LLMError], int]] = {
    "server error": (Fault(status=500, retry_after="0"), errors.InternalServerError, 4),
    "rate limit": (Fault(status=429, retry_after="0"), errors.RateLimitError, 4),
    "overload": (Fault(status=529, retry_after="0"), errors.OverloadedError, 4),
    "bad request": (Fault(status=400, retry_after="0"), errors.BadRequestError, 1),
    "wrong key": (Fault(status=401, retry_after="0"), errors.AuthenticationError, 1),
    "no permission": (Fault(status=403, retry_after="0"), errors.PermissionDeniedError, 1),
    "quota": (Fault(quota=True, retry_after="0"), errors.QuotaExceededError, 1),
    "malformed": (Fault(body=b"{}"), errors.APIResponseValidationError, 2),
}


@both
@pytest.mark.parametrize("name", RETRIED)
@every_way
def test_how_often_a_failure_is_sent_again(
    simulator: Simulator, failing: Failing, way: Way, name: str, how: str
) -> None:
    fault, kind, requests = RETRIED[name]
    simulator.inject(fault, times=None)
    error = failing.ask(way, how, kind, base_url=simulator.url(way.server), max_retries=3)
    assert error.attempts == len(simulator.requests()) == requests


@both
@every_way
def test_a_retry_may_succeed(simulator: Simulator, failing: Failing, way: Way, how: str) -> None:
    simulator.inject(Fault(status=503, retry_after="0"), times=2)
    response = answer(failing, way, how, base_url=simulator.url(way.server), max_retries=2)
    assert (response.text, response.timing.attempts) == ("echo: one two three", 3)
    assert failing.text in ("", response.text)


def check_wait(simulator: Simulator, failing: Failing, way: Way, fault: Fault, least: float) -> None:
    """The second request comes at least so many seconds after the first, which met the fault."""
    simulator.inject(fault)
    response = answer(failing, way, "call", base_url=simulator.url(way.server), max_retries=1)
    first, second = simulator.requests()
    assert second.time - first.time >= least
    assert response.timing.queue >= least


@pytest.mark.parametrize(("value", "style"), [("0.4", "seconds"), ("400", "ms")])
@every_way
def test_retry_after_is_waited_for(
    simulator: Simulator, failing: Failing, way: Way, value: str, style: str
) -> None:
    fault = Fault(status=429, retry_after=value, retry_after_style=style)
    check_wait(simulator, failing, way, fault, least=0.4)


def test_a_date_is_waited_for(simulator: Simulator, failing: Failing) -> None:
    moment = datetime.datetime.now(datetime.UTC).replace(microsecond=0) + datetime.timedelta(seconds=2)
    fault = Fault(status=429, retry_after=email.utils.format_datetime(moment, usegmt=True))
    check_wait(simulator, failing, WAYS["anthropic"], fault, least=0)
    assert simulator.requests()[-1].time >= moment.timestamp()


def test_geminis_own_retry_delay_is_waited_for(simulator: Simulator, failing: Failing) -> None:
    fault = Fault(status=429, retry_after="0.5s", retry_after_style="retry_info")
    check_wait(simulator, failing, WAYS["gemini"], fault, least=0.5)


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "1e400", "soon", "Fri, 99 Dec 2026 99:99:99 GMT"])
@every_direct_way
def test_senseless_waits_count_as_none(simulator: Simulator, failing: Failing, way: Way, value: str) -> None:
    simulator.inject(Fault(status=429, retry_after=value))
    error = failing.ask(way, "call", errors.RateLimitError, base_url=simulator.url(way.server))
    assert error.retry_after is None


@pytest.mark.parametrize("value", ["3600", "Fri, 31 Dec 9999 23:59:59 GMT"])
@every_way
def test_nobody_waits_for_hours(simulator: Simulator, failing: Failing, way: Way, value: str) -> None:
    simulator.inject(Fault(status=429, retry_after=value))
    where = {"base_url": simulator.url(way.server)}
    error = failing.ask(way, "call", errors.RateLimitError, **where, max_retries=3)
    assert error.attempts == 1
    assert error.retry_after
    assert error.retry_after > 3000
    assert "too long to wait" in str(error)
    # Nor does anybody after them: the provider may have changed its mind.
    assert answer(failing, way, "call", **where).text == "echo: one two three"
