"""What google-genai's HTTP clients send, and how long they may take to connect."""

import socket

import pytest

from gemini_support import WEATHER, Way, both_ways, failure, outgoing, run, sent, streamed
from llm_provider._errors import APIConnectionError, APITimeoutError
from llm_provider.simulator import Fault, Simulator
from support import TooSlowError, patiently


@both_ways
def test_exactly_the_payload_is_sent(simulator: Simulator, transport: str, way: Way) -> None:
    request = outgoing(
        simulator.url("gemini"),
        [
            {"role": "user", "content": "Weather in Bern?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c",
                        "function": {"name": "weather", "arguments": '{"my_city": "Bern", "none": null}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "c", "content": "sun"},
        ],
        system="Be short",
        tools=[WEATHER],
        tool_choice="auto",
        max_tokens=50,
        reasoning_effort="low",
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}},
        extra_headers={"X-Own": "1"},
        extra_body={"safetySettings": [{"category": "x", "threshold": "y"}], "service_tier": "flex"},
    )
    run(transport, way, request)
    (seen,) = simulator.requests()
    assert seen.body == request.encoded.payload
    action = "streamGenerateContent?alt=sse" if way is streamed else "generateContent"
    assert seen.path == f"/gemini/v1/models/gemini-3.8-flash:{action}"
    assert seen.headers["x-own"] == "1"
    assert seen.headers["x-server-timeout"] == "30"
    assert "authorization" not in seen.headers


def test_http2_and_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    with Simulator(tls=True) as server:
        request = outgoing(server.url("gemini"))
        untrusted = failure("aiohttp", sent, request)
        assert (type(untrusted), untrusted.retryable) == (APIConnectionError, False)
        monkeypatch.setenv("SSL_CERT_FILE", str(server.certificate))
        for transport, version in (("aiohttp", "1.1"), ("http1", "1.1"), ("http2", "2")):
            for way in (sent, streamed):
                assert run(transport, way, request)[0].choices[0].text == "4"
                assert server.requests()[-1].http_version == version


@both_ways
def test_nobody_listens(transport: str, way: Way) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = failure(transport, way, outgoing(f"http://127.0.0.1:{port}"))
    assert (type(error), error.retryable, error.maybe_billed) == (APIConnectionError, True, False)


@both_ways
def test_opening_a_connection_has_a_limit_of_its_own(transport: str, way: Way) -> None:
    # Accepts connections and never speaks: TLS cannot be opened, and nothing was sent yet.
    with socket.create_server(("127.0.0.1", 0)) as server:
        error = failure(transport, way, outgoing(f"https://127.0.0.1:{server.getsockname()[1]}", connect=0.2))
    assert (type(error), error.retryable, error.maybe_billed) == (APITimeoutError, True, False)


@both_ways
def test_waiting_for_an_answer_is_not_opening_a_connection(
    simulator: Simulator, transport: str, way: Way
) -> None:
    def attempt(longer: float) -> None:
        simulator.clear()
        simulator.inject(Fault(delay=0.3 * longer))
        try:
            answer = run(transport, way, outgoing(simulator.url("gemini"), connect=0.1 * longer))[0]
        except APITimeoutError:
            if not simulator.requests():
                raise TooSlowError("there was no connection in time") from None
            raise
        assert answer.choices[0].text == "4"

    patiently(attempt)
