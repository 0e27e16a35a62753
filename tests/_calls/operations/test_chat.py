"""The operation `chat`: samples, kept answers and results."""

from __future__ import annotations

import pytest

from llm_provider import Client
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-6.1-sol"
CLAUDE = "claude-sonnet-5-5"


def test_samples_are_separate_calls_where_a_provider_has_no_n(client: Client, simulator: Simulator) -> None:
    single = client.call(CLAUDE, "Hi", cache="off")
    three = client.call(CLAUDE, "Hi", n=3)
    assert len(three.texts) == 3
    assert three.usage.input_tokens == 3 * single.usage.input_tokens
    assert three.cost == pytest.approx(3 * (single.cost or 0))
    assert three.timing.attempts == 3
    assert len(three.raw) == 3
    assert client.call(CLAUDE, "Hi", n=3).cached
    assert simulator.ledger().requests == 4


@pytest.mark.parametrize("model", [MODEL, CLAUDE, "gemini-3.8-flash"])
def test_a_larger_n_sends_only_the_missing_samples(client: Client, simulator: Simulator, model: str) -> None:
    first = client.call(model, "Hi", n=2)
    more = client.call(model, "Hi", n=4)
    assert more.texts[:2] == first.texts
    assert (len(more.texts), more.cached) == (4, False)
    assert client.call(model, "Hi", n=3, draw=1).cached
    sent = [request.body for request in simulator.requests()]
    assert (
        sum(body.get("n") or body.get("generationConfig", {}).get("candidateCount") or 1 for body in sent)
        == 4
    )


def test_the_samples_of_one_request_share_its_usage_and_cost(client: Client, simulator: Simulator) -> None:
    response = client.call(MODEL, "Hi", n=3)
    billed = simulator.ledger()
    assert (len(response.texts), billed.requests) == (3, 1)
    assert (response.usage.input_tokens, response.usage.output_tokens) == (
        billed.input_tokens,
        billed.output_tokens,
    )
    assert response.cost == float(client.usage.spent) > 0
    stored = client.call(MODEL, "Hi", n=3)
    assert (stored.texts, stored.usage, stored.cost) == (response.texts, response.usage, 0.0)


@pytest.mark.parametrize(
    ("finish", "stored_by_default"), [("length", False), ("tool_calls", True), ("empty", False)]
)
def test_only_complete_answers_are_kept(
    client: Client, simulator: Simulator, finish: str, stored_by_default: bool
) -> None:
    simulator.inject(Fault(finish=finish), times=1)
    assert not client.call(MODEL, "Hi").cached
    assert client.call(MODEL, "Hi").cached == stored_by_default


@pytest.mark.parametrize("model", [MODEL, CLAUDE, "gemini-3.8-flash"])
def test_a_stored_answer_equals_the_one_that_was_sent(client: Client, model: str) -> None:
    sent = client.call(model, "What is 2+2?")
    stored = client.call(model, "What is 2+2?")
    for name in ("text", "choices", "usage", "model", "provider", "id", "raw"):
        assert getattr(stored, name) == getattr(sent, name)
    assert (stored.cached, stored.cost, stored.timing.attempts) == (True, 0.0, 0)


def test_the_number_of_samples_is_not_in_the_key(client: Client, simulator: Simulator) -> None:
    several = client.call(MODEL, "Hi", n=2)
    for draw in (0, 1):
        assert client.call(MODEL, "Hi", draw=draw, cache="only").text == several.texts[draw]
    assert simulator.ledger().requests == 1
