"""Searches and costs that replies report, over real SDKs and in the forms of real hosts."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from llm_provider import APIResponseValidationError, Budget, Client, Response, Usage, price
from llm_provider._money.pricing import default_prices_path
from llm_provider._providers.bill import (
    anthropic_tools,
    chat_tools,
    gemini_tools,
    is_own_cost,
    reported_cost,
    response_searches,
    response_tools,
    without_cost,
)
from llm_provider.simulator import Fault, Simulator
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


def test_an_answer_that_cannot_be_used_costs_what_it_says(client: Client, simulator: Simulator) -> None:
    simulator.configure(reported_cost=0.125)
    simulator.inject(Fault(finish="no_choices"), times=5)
    with pytest.raises(APIResponseValidationError):
        client.call("openrouter/openai/gpt-6.1-sol", "unusable")
    assert client.usage.wasted == simulator.ledger().billed == Decimal("0.25")


def test_a_budget_counts_the_cost_of_the_reply(client: Client, simulator: Simulator) -> None:
    simulator.configure(reported_cost=0.25)
    budget = Budget(2)
    client.call("openrouter/openai/gpt-6.1-sol", "Hi", max_tokens=10, budget=budget)
    assert budget.spent == Decimal("0.25")


def test_samples_of_one_request_share_its_reported_cost(client: Client, simulator: Simulator) -> None:
    simulator.configure(reported_cost=0.5)
    answer = client.call("gpt-5.5", "Hi", n=3)
    assert (answer.cost, answer.cost_source) == (0.5, "reply")
    assert len(answer.choices) == 3
    assert client.usage.spent == Decimal("0.5")


def test_a_search_through_responses_is_not_billed_twice_when_it_failed() -> None:
    items = [
        {"type": "web_search_call", "status": "failed", "action": {"type": "search"}},
        {"type": "web_search_call", "status": "completed"},
        {"type": "web_search_call", "status": "completed", "action": {"type": "find_in_page"}},
        {"type": "file_search_call"},
        None,
    ]
    assert response_searches(items) == 1
    assert response_searches(None) == 0


@pytest.mark.parametrize(
    ("grounding", "searches"),
    [
        ({"webSearchQueries": ["a", "", "b"]}, 2),
        ({"webSearchQueries": ["a"], "imageSearchQueries": ["b"]}, 2),
        ({"webSearchQueries": None}, 0),
        ({"groundingChunks": [{"maps": {}}]}, 0),
        (None, 0),
    ],
)
def test_queries_of_gemini(grounding: Any, searches: int) -> None:
    candidate = {"groundingMetadata": grounding}
    assert gemini_tools({"candidates": [candidate], "modelVersion": "gemini-4-argon"})[0] == searches
    assert gemini_tools({"candidates": [candidate] * 2, "modelVersion": "gemini-2.5-pro"})[0] == min(
        1, searches
    )


def test_searches_of_other_hosts() -> None:
    usage = {"server_tool_use": {"web_search_requests": 3}}
    assert chat_tools({"model": "anthropic/claude-sonnet-5-5"}, usage)[0] == 3
    assert chat_tools({"model": "sonar-pro"}, {"num_search_queries": 2})[0] == 2
    assert chat_tools({"model": "gpt-4o-mini-search-preview"}, {})[0] == 1
    ran = {"executed_tools": [{"type": "browser.search"}, {"type": "browser.open"}, {"type": "search"}]}
    assert chat_tools({"model": "openai/gpt-oss-120b", "choices": [{"message": ran}]}, {})[0] == 2
    assert chat_tools({"model": "research-preview"}, {})[0] == 0
    assert chat_tools({}, {})[0] == 0


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        ({"cost": 0.0161, "is_byok": False}, "0.0161"),
        ({"cost": 0, "is_byok": False}, "0"),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}, "0.21"),
        ({"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": None}}, None),
        ({"cost": {"total_cost": 0.006, "request_cost": 0.005}}, "0.006"),
        ({"cost_in_usd_ticks": 37756000}, "0.0037756"),
        ({"estimated_cost": 2.5e-7}, "2.5E-7"),
        ({"cost": 0}, None),
        ({"cost_in_usd_ticks": 0}, None),
        ({"cost": "0.1"}, None),
        ({"cost": True}, None),
        ({"cost": -1}, None),
        ({"cost": float("nan")}, None),
        ({"cost": float("inf")}, None),
        ({"prompt_tokens": 5}, None),
        (None, None),
        ([], None),
    ],
)
def test_the_reported_cost_in_the_forms_of_hosts(usage: Any, cost: str | None) -> None:
    assert reported_cost(usage) == (None if cost is None else Decimal(cost))


def test_a_reported_cost_is_read_from_a_real_reply(client: Client, simulator: Simulator) -> None:
    """The reply of xAI, by its reference for the usage object."""
    reply = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "grok-4.3",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {
            "prompt_tokens": 32,
            "completion_tokens": 9,
            "total_tokens": 135,
            "completion_tokens_details": {"reasoning_tokens": 94},
            "num_sources_used": 0,
            "cost_in_usd_ticks": 37756000,
        },
    }
    simulator.inject(Fault(status=200, body=json.dumps(reply)), times=1)
    answer = client.call("xai/grok-4.3", "Hi")
    assert (answer.cost, answer.cost_source) == (0.0037756, "reply")


def test_a_cost_that_litellm_computed_is_not_the_replys() -> None:
    assert not is_own_cost({"cost": 0.1})
    assert is_own_cost({"cost": 0.1, "is_byok": False})
    assert is_own_cost({"cost": {"total_cost": 0.1}})
    assert is_own_cost({"estimated_cost": 0.1})


def test_the_cost_of_a_request_is_not_that_of_each_text() -> None:
    usage = {"prompt_tokens": 5, "cost": 0.1, "cost_details": {}, "cost_in_usd_ticks": 3}
    assert without_cost(usage) == {"prompt_tokens": 5}
    assert without_cost(None) is None


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["gpt-5.5", "gpt-5.5-pro", "claude-sonnet-5-5", "gemini-3.8-flash"])
def test_zeros_for_an_answer_are_an_unknown_cost(
    client: Client, simulator: Simulator, model: str, stream: bool
) -> None:
    simulator.configure(count_usage=False)
    answer = ask(client, model, stream=stream)
    assert (answer.cost, answer.cost_source, answer.usage) == (None, None, Usage())
    (row,) = client.usage.rows("model")
    assert row.unknown == 1
    assert not row.spent
    assert client.usage.unknown_at_most
    budget = Budget(9)
    counted = client.call(model, "Another", max_tokens=100, budget=budget)
    assert counted.cost is None
    assert budget.spent > 0


def test_the_cost_of_the_reply_has_its_tools(client: Client) -> None:
    usage: dict[str, Any] = {"input_tokens": 9, "output_tokens": 5, "total_tokens": 14, "cost": 0.05}
    call = {"type": "file_search_call", "id": "x_1", "status": "completed"}
    reply = {"id": "r", "object": "response", "status": "completed", "model": "gpt-6.1-sol", "usage": usage}
    with RawServer(answering(json.dumps({**reply, "output": [call]}).encode())) as raw:
        answer = client.call("gpt-6.1-sol", "2+2?", base_url=f"{raw.root}/v1", api_key="sk-test")
    assert (answer.cost, answer.usage.unpriced_tools) == (0.05, 1)


def test_tools_of_hosts_and_of_litellm_in_chat_completions() -> None:
    contained = {"provider_specific_fields": {"container": {"id": "container_1"}}}
    ran = {"executed_tools": [{"type": "search"}, {"type": "python"}, {"type": "browser.open"}]}
    maps = {"prompt_tokens_details": {"web_search_requests": 2, "google_maps_grounding_requests": 1}}
    assert chat_tools({"choices": [{"message": contained}]}, {})[1] == 1
    assert chat_tools({"choices": [{"message": ran}]}, {})[1] == 2
    assert chat_tools({}, {"num_sources_used": 3})[1] == 3
    assert chat_tools({}, maps)[1] == 1
    assert chat_tools({"model": "gemini-2.5-pro"}, maps)[0] == 1
    assert chat_tools({"model": "gemini-3.8-flash"}, maps)[0] == 2


@pytest.mark.parametrize(
    "reply", [{}, {"choices": [None]}, {"choices": [{"message": {"executed_tools": 5}}]}]
)
def test_nonsense_used_no_tools(reply: Any) -> None:
    assert chat_tools(reply, {}) == (0, 0)
    assert anthropic_tools({"content": [5, {"type": []}], "container": "c"}, {"server_tool_use": 5}) == 0
    assert response_tools([{"type": []}, {"environment": 5}, None]) == response_tools(None) == 0
    assert gemini_tools({"candidates": [{"groundingMetadata": {"groundingChunks": {"maps": 5}}}]}) == (0, 0)
