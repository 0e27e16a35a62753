"""HTTP/2, where a server may break off single requests of a connection: they are retried, none is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from h2.errors import ErrorCodes

from http2_server import Fate, HTTP2Server
from llm_provider import APIConnectionError, BadRequestError, Client, OverloadedError, Response
from llm_provider.simulator._server.certificate import write_certificate
from support import ask as ask_once
from wire_shapes import SHAPES, TEXT

CALLS = 30
SOME = frozenset({3, 4, 5})

# One for each of the two libraries that speak HTTP/2 here, httpx and httpx2.
ANSWERS = {
    "gpt-6.1-sol": SHAPES["openai"][0].whole,
    "claude-sonnet-5-5": SHAPES["anthropic"][0].whole,
    "gemini-3.8-flash": SHAPES["gemini"][0].whole,
}
every_library = pytest.mark.parametrize("model", ANSWERS)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def client(
    certificate: tuple[Path, Path], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    keys = {"openai": "key", "anthropic": "key", "gemini": "key"}
    with Client(cache="off", cache_dir=own_cache, transport="http2", keys=keys) as client:
        yield client


def ask(client: Client, model: str, server: HTTP2Server) -> list[Response]:
    """So many calls at once; each must be answered."""
    root = f"{server.root}/v1" if model.startswith("gpt") else server.root
    prompts = [f"item {number}" for number in range(CALLS)]
    results = client.call_many(model, prompts, base_url=root, max_concurrent=CALLS, on_error="raise")
    answers = [result for result in results if isinstance(result, Response)]
    assert [answer.text for answer in answers] == [TEXT] * CALLS
    return answers


@pytest.mark.parametrize("error", [ErrorCodes.INTERNAL_ERROR, ErrorCodes.REFUSED_STREAM])
@every_library
def test_requests_that_are_broken_off(
    client: Client, certificate: tuple[Path, Path], model: str, error: ErrorCodes
) -> None:
    fate: Fate = lambda number: error if number in SOME else None  # noqa: E731  # shorter than a function
    with HTTP2Server(certificate, ANSWERS[model], fate) as server:
        failures = [failure for answer in ask(client, model, server) for failure in answer.failures]
        assert server.requests == CALLS + len(SOME)
    # What is refused was not worked on (RFC 9113 §8.7); of what is broken off nobody knows.
    refused = error == ErrorCodes.REFUSED_STREAM
    assert {failure.error for failure in failures} == {
        (OverloadedError if refused else APIConnectionError).__name__
    }
    assert {failure.maybe_billed for failure in failures} == {not refused}
    assert len(failures) == len(SOME)


@pytest.mark.parametrize("end", ["goaway", "notice"])
@every_library
def test_connections_that_end_in_order_send_nothing_twice(
    client: Client, certificate: tuple[Path, Path], model: str, end: str
) -> None:
    # Every ninth request is the first that its connection does not work on.
    fate: Fate = lambda number: end if number % 9 == 8 else None  # noqa: E731  # shorter than a function
    with HTTP2Server(certificate, ANSWERS[model], fate, seconds=0.05) as server:
        answers = ask(client, model, server)
        ended = server.connections - 1
        assert ended >= CALLS // 9
        assert server.requests == CALLS + ended
    assert [answer.failures for answer in answers] == [()] * CALLS


@pytest.mark.parametrize("most_streams", [1, 4])
@every_library
def test_calls_that_wait_for_a_stream_of_a_connection_that_ends(
    client: Client, certificate: tuple[Path, Path], model: str, most_streams: int
) -> None:
    fate: Fate = lambda number: "goaway" if number == 8 else None  # noqa: E731  # shorter than a function
    with HTTP2Server(certificate, ANSWERS[model], fate, seconds=0.01, most_streams=most_streams) as server:
        ask(client, model, server)
        assert server.requests == CALLS + 1


@pytest.mark.parametrize("size", [1_000, 300_000])
@pytest.mark.parametrize("resets", [False, True])
@pytest.mark.parametrize("way", ["call", "stream"])
@every_library
def test_a_refusal_before_the_end_of_the_body_is_told_at_once(
    client: Client, certificate: tuple[Path, Path], model: str, way: str, resets: bool, size: int
) -> None:
    error = {"error": {"message": "Request too large", "status": "INVALID"}}
    with HTTP2Server(certificate, error, lambda _: None, early=413, resets=resets) as server:
        root = f"{server.root}/v1" if model.startswith("gpt") else server.root
        for number in range(3):
            with pytest.raises(BadRequestError, match="Request too large"):
                ask_once(client, way, model, f"{number}" + "x" * size, base_url=root)
        assert server.requests == 3


@every_library
def test_requests_beyond_a_connection(client: Client, certificate: tuple[Path, Path], model: str) -> None:
    # The library learns the server's limit only after it has sent as many as it likes.
    with HTTP2Server(certificate, ANSWERS[model], lambda _: None, most_streams=10, seconds=0.05) as server:
        failures = [failure for answer in ask(client, model, server) for failure in answer.failures]
        assert server.requests == CALLS
    assert {failure.error for failure in failures} <= {OverloadedError.__name__}
    assert not any(failure.maybe_billed for failure in failures)


@every_library
def test_a_server_that_wants_http_1_is_asked_once(
    client: Client, certificate: tuple[Path, Path], model: str
) -> None:
    with HTTP2Server(certificate, ANSWERS[model], lambda _: ErrorCodes.HTTP_1_1_REQUIRED) as server:
        root = f"{server.root}/v1" if model.startswith("gpt") else server.root
        with pytest.raises(APIConnectionError, match="use the default transport") as caught:
            client.call(model, "Hi", base_url=root)
        assert server.requests == 1
    assert (caught.value.retryable, caught.value.maybe_billed) == (False, False)
