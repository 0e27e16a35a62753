"""What the calls of a client cost is what the simulator, which has arithmetic of its own, would have billed.

DeepSeek is left out: its price goes by the clock, and the simulator bills the standard price at every hour.
"""

from decimal import Decimal

import pytest

from llm_provider import Client, Response
from llm_provider._money.pricing import default_prices_path
from llm_provider.simulator import Fault, Simulator

WITH_CACHE_WRITES = (
    "gpt-6.1-sol",
    "gpt-6-astra",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "gemini-3.8-flash",
)
WITHOUT = (
    "gpt-5.5",
    "gemini-4-argon",
    "together_ai/zai-org/GLM-5.3",
    "groq/openai/gpt-oss-120b",
    "xai/grok-4.7",
    "mistral/mistral-large-4",
    "fireworks_ai/kimi-k3",
    "openrouter/anthropic/claude-sonnet-5.5",
)


def prompts(count: int, *, long: bool = False) -> list[str]:
    # Long enough to pass the limit above which claude-haiku-5-5, among others, is dearer.
    filler = "word " * 100_000 if long else "word " * 200
    return [f"question {number}: {filler}" for number in range(count)]


@pytest.mark.parametrize(
    ("models", "usage"),
    [
        (WITH_CACHE_WRITES, {"cached_tokens": 40, "cache_write_tokens": 30, "reasoning_tokens": 25}),
        (WITHOUT, {"cached_tokens": 70, "reasoning_tokens": 5}),
    ],
)
def test_hundreds_of_calls_cost_what_the_simulator_bills(
    client: Client, simulator: Simulator, models: tuple[str, ...], usage: dict[str, int]
) -> None:
    simulator.configure(prices=default_prices_path(), **usage)
    answers: list[Response] = []
    for model in models:
        # Refused, failed and overloaded attempts are retried. Failed ones may have been billed.
        for status in (429, 500, 503):
            simulator.inject(Fault(status=status, retry_after="0.01"), times=2)
        results = client.call_many(model, prompts(36), progress=False)
        answers += [answer for answer in results if isinstance(answer, Response)]
        with client.stream(model, "a streamed question") as deltas:
            assert "".join(map(str, deltas))
            answers.append(deltas.response)
        answers.append(client.call(model, prompts(1, long=True)[0]))
    billed = simulator.ledger().billed
    assert len(answers) == 38 * len(models)
    assert billed is not None
    exact = [client.price(f"{answer.provider}/{answer.model}", answer.usage) for answer in answers]
    assert None not in exact
    assert sum(filter(None, exact), Decimal(0)) == billed
    costs = [
        price if answer.cost is None else answer.cost for answer, price in zip(answers, exact, strict=True)
    ]
    assert sum(map(float, filter(None, costs))) == pytest.approx(float(billed), rel=1e-12)
    assert sum(answer.cost is None for answer in answers) == sum(
        any(failure.maybe_billed for failure in answer.failures) for answer in answers
    )

    # From the cache the same answers are free, and nothing reaches the server.
    again = [answer for model in models for answer in client.call_many(model, prompts(36), progress=False)]
    assert [answer.cost for answer in again if isinstance(answer, Response)] == [0] * 36 * len(models)
    assert simulator.ledger().billed == billed
