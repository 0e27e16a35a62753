"""Searches and costs that replies report, over real SDKs and in the forms of real hosts."""

import json
from decimal import Decimal
from typing import Any

import pytest

from llm_provider import Budget, Client, Response, Usage, price
from llm_provider._core.money.pricing import default_prices_path
from llm_provider.simulator import Simulator
from raw_server import RawServer, answering

SEARCHING = [
    ("gpt-5.5-pro", 3, 3),
    ("gemini-3.8-flash", 2, 2),
    ("gemini-2.5-pro", 2, 1),
    ("claude-sonnet-5-5", 2, 2),
    ("gpt-5-search-api", 0, 1),
]


@pytest.fixture(autouse=True)
def bill(simulator: Simulator) -> None:
    simulator.configure(prices=default_prices_path())


def ask(client: Client, model: str, *, stream: bool, **parameters: Any) -> Response:
    if not stream:
        return client.call(model, "What is new?", max_tokens=100, **parameters)
    with client.stream(model, "What is new?", max_tokens=100, **parameters) as answer:
        for _ in answer:
            pass
        return answer.response


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "made", "billed"), SEARCHING)
def test_searches_are_counted_and_priced(
    client: Client, simulator: Simulator, model: str, made: int, billed: int, stream: bool
) -> None:
    simulator.configure(web_searches=made)
    answer = ask(client, model, stream=stream)
    assert answer.usage.web_searches == billed
    tokens = Usage(input_tokens=answer.usage.input_tokens, output_tokens=answer.usage.output_tokens)
    fee = {"gpt-5.5-pro": "0.03", "gemini-3.8-flash": "0.028", "gemini-2.5-pro": "0.035"}.get(model, "0.01")
    if model.startswith("claude"):
        fee = "0.02"
    of_tokens = price(model, tokens)
    assert of_tokens is not None
    assert client.usage.spent == of_tokens + Decimal(fee) == simulator.ledger().billed
    assert answer.cost == pytest.approx(float(of_tokens) + float(fee))
    assert answer.cost_source == "prices"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "model", ["openrouter/openai/gpt-6.1-sol", "xai/grok-4.3", "openrouter/no/such-model"]
)
def test_the_cost_of_the_reply_wins(client: Client, simulator: Simulator, model: str, stream: bool) -> None:
    simulator.configure(reported_cost=0.0161)
    answer = ask(client, model, stream=stream)
    assert (answer.cost, answer.cost_source) == (0.0161, "reply")
    assert client.usage.spent == Decimal("0.0161") == simulator.ledger().billed
    again = client.call(model, "What is new?", max_tokens=100)
    assert (again.cached, again.cost, again.cost_source) == (True, 0.0, None)
    assert client.usage.saved == Decimal("0.0161")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash"])
def test_zeros_are_an_unknown_cost(client: Client, simulator: Simulator, model: str, stream: bool) -> None:
    simulator.configure(count_usage=False)
    answer = ask(client, model, stream=stream)
    assert (answer.cost, answer.cost_source, answer.usage) == (None, None, Usage())
    (row,) = client.usage.rows("model")
    assert row.unknown == 1
    assert not row.spent
    assert client.usage.unknown_at_most
    budget = Budget(9)
    assert client.call(model, "Another", max_tokens=100, budget=budget).cost is None
    assert budget.spent > 0


def test_the_cost_of_the_reply_has_its_tools(client: Client) -> None:
    usage: dict[str, Any] = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14, "cost": 0.05}
    call = {"type": "file_search_call", "id": "x_1", "status": "completed"}
    reply = {"id": "r", "object": "response", "status": "completed", "model": "gpt-6.1-sol", "usage": usage}
    with RawServer(answering(json.dumps({**reply, "output": [call]}).encode())) as raw:
        answer = client.call("gpt-6.1-sol", "2+2?", base_url=f"{raw.root}/v1", api_key="sk-test")
    assert (answer.cost, answer.usage.unpriced_tools) == (0.05, 1)
