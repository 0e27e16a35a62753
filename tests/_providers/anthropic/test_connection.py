"""Requests that the SDK of Anthropic would change or refuse. Most are in transport/test_sdk_connection.py."""

from anthropic_support import OLD, exchange, outgoing
from llm_provider.simulator import Simulator


def test_sampling_reaches_the_wire_with_its_version(simulator: Simulator) -> None:
    exchange(outgoing(simulator, "Hi", OLD, temperature=0.5))
    (request,) = simulator.requests("anthropic")
    assert request.body["temperature"] == 0.5
    assert request.headers["anthropic-version"] == "2023-06-01"


def test_a_long_answer_needs_no_stream(simulator: Simulator) -> None:
    assert exchange(outgoing(simulator, "Hi", max_tokens=128_000))["content"]
