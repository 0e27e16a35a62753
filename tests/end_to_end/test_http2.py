"""HTTP/2, where a server may break off single requests of a connection: they are retried, none is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from h2.errors import ErrorCodes

from http2_server import Fate, HTTP2Server
from llm_provider import APIConnectionError, Client, OverloadedError, Response
from llm_provider.simulator._server.certificate import write_certificate
from wire_shapes import SHAPES, TEXT

CALLS = 30
SOME = frozenset({3, 4, 5})

# One for each of the two libraries that speak HTTP/2 here, httpx and httpx2.
ANSWERS = {"gpt-6.1-sol": SHAPES["openai"][0].whole, "claude-sonnet-5-5": SHAPES["anthropic"][0].whole}
every_library = pytest.mark.parametrize("model", ANSWERS)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_certificate(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def client(
    certificate: tuple[Path, Path], own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Client]:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    keys = {"openai": "key", "anthropic": "key"}
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


@every_library
def test_a_connection_that_ends(client: Client, certificate: tuple[Path, Path], model: str) -> None:
    fate: Fate = lambda number: "goaway" if number == 8 else None  # noqa: E731  # shorter than a function
    with HTTP2Server(certificate, ANSWERS[model], fate, seconds=0.05) as server:
        ask(client, model, server)
        assert server.connections == 2


@every_library
def test_requests_beyond_a_connection(client: Client, certificate: tuple[Path, Path], model: str) -> None:
    # The library learns the server's limit only after it has sent as many as it likes.
    with HTTP2Server(certificate, ANSWERS[model], lambda _: None, most_streams=10, seconds=0.05) as server:
        failures = [failure for answer in ask(client, model, server) for failure in answer.failures]
        assert server.requests == CALLS
    assert {failure.error for failure in failures} <= {OverloadedError.__name__}
    assert not any(failure.maybe_billed for failure in failures)
