"""Costs and bounds by litellm's price map, for models that `prices.csv` does not have."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import Budget, Client, UnknownPriceError, Usage, price
from llm_provider._calls.chat import CHAT
from llm_provider._calls.worst_case import worst_case
from llm_provider._limits.concurrency import Concurrency
from llm_provider._money.litellm_prices import litellm_cost, most_cost, prices_of
from llm_provider._requests.request import Request
from llm_provider._requests.routing import priced_as, resolve
from llm_provider.simulator import Simulator
from support import RunScript

pytestmark = [*IGNORED_WARNINGS, needs_litellm]

LIVE = [
    "bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0",
    "azure/gpt-4o",
    "vertex_ai/gemini-2.5-pro",
    "vertex_ai/gemini-3-flash-preview",
    "deepinfra/deepseek-ai/DeepSeek-V3",
    "dashscope/qwen-flash",
]
ONLY_LITELLM = "deepinfra/deepseek-ai/DeepSeek-V3"


def bound(client: Client, model: str, **parameters: Any) -> Decimal | None:
    call = client._engine.prepare(CHAT, Request.build(model, "Hi", parameters), Concurrency(1, 1))
    return worst_case(call, call.parts, client._prices())


@pytest.mark.parametrize("model", LIVE)
def test_a_model_of_litellm_has_a_bound(model: str) -> None:
    assert price(model, Usage(input_tokens=1)) is None
    with Client(cache="off") as client:
        small, large = bound(client, model, max_tokens=10), bound(client, model, max_tokens=1000)
        assert small is not None
        assert large is not None
        assert 0 < small < large < 10
        unset = bound(client, model)
        assert unset is not None
        assert unset > large
        assert bound(client, model, max_tokens=10, extra_body={"web_search_options": {}}) is None


def test_the_bound_is_at_least_what_litellm_computes(run_script: RunScript) -> None:
    shown = run_script(
        f"""
        from llm_provider import Usage
        from llm_provider._money.litellm_prices import litellm_cost, most_cost, prices_of
        from llm_provider._providers.litellm.connection import load

        load()
        usage = Usage(input_tokens=3000, output_tokens=200, cache_read_input_tokens=50)
        for model in {LIVE[:5]!r}:
            found = litellm_cost(model, None, usage)
            print(model, 0 < found <= most_cost(prices_of(model), 3000, 200))
        """
    )
    assert shown.stdout.splitlines() == [f"{model} True" for model in LIVE[:5]]


def test_no_bound_without_a_price_or_in_other_units() -> None:
    with Client(cache="off") as client:
        assert bound(client, "azure/a-deployment-of-my-own", max_tokens=10) is None
        assert bound(client, "ollama/llama3", max_tokens=10) is None
    assert prices_of("no-such-provider/model") is None
    assert prices_of("azure/claude-sonnet-4-5") is None
    entry = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}
    assert most_cost({**entry, "output_cost_per_second": 0.1}, 1, 1) is None
    assert most_cost({**entry, "input_cost_per_audio_token": 1e-5}, 1000, 0) == Decimal("0.01")
    assert most_cost({"input_cost_per_token": 1e-6}, 1, 1) is None
    assert most_cost({"input_cost_per_token": 1e-6}, 1, 0) == Decimal("0.000001")


def test_litellm_is_not_loaded_for_a_bound(run_script: RunScript) -> None:
    run_script(
        """
        import sys
        from llm_provider._money.litellm_prices import litellm_cost, prices_of
        assert prices_of("bedrock/anthropic.claude-sonnet-4-5-20250929-v1:0")
        assert litellm_cost("azure/gpt-4o", None, None) is None
        assert "litellm" not in sys.modules
        """
    )


@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_has_litellms_cost_and_a_budget_counts_it(
    client: Client, simulator: Simulator, stream: bool
) -> None:
    budget = Budget(1)
    where: dict[str, Any] = {"base_url": simulator.url("local"), "api_key": "sk-x", "max_tokens": 50}

    async def ask() -> Any:
        if not stream:
            return await client.acall(ONLY_LITELLM, "What is 2+2?", budget=budget, **where)
        async with client.astream(ONLY_LITELLM, "What is 2+2?", budget=budget, **where) as answer:
            async for _ in answer:
                pass
            return answer.response

    answer = asyncio.run(ask())
    entry = prices_of(ONLY_LITELLM)
    assert entry is not None
    expected = (
        answer.usage.input_tokens * entry["input_cost_per_token"]
        + answer.usage.output_tokens * entry["output_cost_per_token"]
    )
    assert answer.cost == pytest.approx(expected)
    assert answer.cost > 0
    assert answer.cost_source == "litellm"
    assert float(budget.spent) == answer.cost
    assert float(client.usage.spent) == answer.cost


def test_the_table_wins_over_litellm() -> None:
    with Client(cache="off") as client:
        model = "litellm/anthropic/claude-sonnet-5-5"
        assert bound(client, model, max_tokens=10) is not None
        assert client._prices().applicable(*priced_as(resolve(model)))
        call = client._engine.prepare(CHAT, Request.build(model, "Hi", {"max_tokens": 10}), Concurrency(1, 1))
        assert worst_case(call, call.parts, type(client._prices())()) != bound(client, model, max_tokens=10)


def test_a_budget_still_refuses_a_model_that_nobody_has_a_price_for(client: Client) -> None:
    with pytest.raises(UnknownPriceError):
        client.call("azure/a-deployment-of-my-own", "Hi", max_tokens=10, budget=1.0, api_key="sk-x")


def test_usage_that_is_unknown_has_no_cost() -> None:
    assert litellm_cost(ONLY_LITELLM, None, None) is None
