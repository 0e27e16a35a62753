from __future__ import annotations

import asyncio
import contextlib
import json
from decimal import Decimal
from pathlib import Path

import pytest

from benchmarks.scenarios import ledger as chaos
from llm_provider import (
    APIConnectionError,
    APIResponseValidationError,
    APITimeoutError,
    Client,
    LLMError,
    PriceWarning,
    Usage,
)
from llm_provider._money.pricing import default_prices_path
from llm_provider.simulator import Fault, Simulator
from support import wait_until

MODEL = "gpt-5.5"


@pytest.fixture(autouse=True)
def bill(simulator: Simulator) -> None:
    simulator.configure(prices=default_prices_path(), cached_tokens=2)


def test_hits_and_answers_that_several_calls_share_are_saved(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=0.3)

    async def equal_calls() -> None:
        await asyncio.gather(*(client.acall(MODEL, "equal") for _ in range(3)))

    asyncio.run(equal_calls())
    client.call(MODEL, "equal")
    billed = simulator.ledger().billed
    assert (client.usage.requests, client.usage.hits, client.usage.failed) == (1, 3, 0)
    assert client.usage.spent == billed
    assert client.usage.saved == 3 * client.usage.spent
    assert client.cache.stats().saved == pytest.approx(float(client.usage.saved))


def test_samples_of_one_request_are_paid_for_once(client: Client, simulator: Simulator) -> None:
    first = client.call(MODEL, "many", n=2)
    client.call(MODEL, "many", n=4)
    assert (client.usage.requests, client.usage.hits) == (2, 2)
    assert client.usage.spent == simulator.ledger().billed
    # Both samples that were stored came in one request, whose cost the first of them carries.
    assert float(client.usage.saved) == first.cost


@pytest.mark.parametrize("model", ["gpt-5.5", "gemini-3.8-flash", "groq/openai/gpt-oss-20b"])
def test_an_answer_that_cannot_be_used_is_wasted(client: Client, simulator: Simulator, model: str) -> None:
    simulator.inject(Fault(finish="no_choices"), times=5)
    with pytest.raises(APIResponseValidationError):
        client.call(model, "unusable")
    usage = client.usage
    assert (usage.requests, usage.failed, usage.unknown) == (0, 2, 0)
    assert usage.cost == usage.wasted == simulator.ledger().billed
    assert usage.usage.input_tokens == simulator.ledger().input_tokens


@pytest.mark.parametrize(
    ("fault", "error", "unknown"),
    [
        (Fault(status=429, retry_after="0.01"), None, 0),
        (Fault(status=401), LLMError, 0),
        (Fault(status=500), None, 1),
        (Fault(body="no JSON"), None, 1),
        (Fault(abort_after=1), None, 1),
    ],
)
def test_the_most_that_a_failed_request_may_have_cost(
    client: Client, simulator: Simulator, fault: Fault, error: type[LLMError] | None, unknown: int
) -> None:
    simulator.inject(fault)
    with pytest.raises(error) if error else contextlib.nullcontext():
        client.call(MODEL, "Hi")
    usage, entry = client.usage, simulator.ledger().model("openai", MODEL)
    assert (usage.failed, usage.unknown, usage.wasted) == (unknown, unknown, 0)
    assert usage.requests == (0 if error else 1)
    unfinished = entry.unfinished_billed or 0
    assert usage.spent == (entry.billed or 0) - unfinished
    assert unfinished <= usage.unknown_at_most
    assert bool(usage.unknown_at_most) is bool(unknown)


def test_requests_that_are_not_sent_cost_nothing(client: Client) -> None:
    with pytest.raises(LLMError):
        client.call(MODEL, "Hi", temperature=9)
    with pytest.raises(LLMError):
        client.call(MODEL, "Hi", cache="only")
    with pytest.raises(APIConnectionError):
        client.call("local/m", "Hi", base_url="http://127.0.0.1:9/v1", max_retries=0)
    assert (client.usage.requests, client.usage.failed) == (0, 0)


def test_cancelled_and_timed_out_calls_are_unknown(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(hang=True), times=3)

    async def cancelled() -> None:
        task = asyncio.create_task(client.acall(MODEL, "cancelled"))
        await asyncio.to_thread(wait_until, lambda: simulator.ledger().in_flight == 1, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert wait_until(lambda: client.usage.unknown == 1, 30)
    with pytest.raises(APITimeoutError):
        client.call(MODEL, "timed out", timeout=0.3, max_retries=0)
    assert client.usage.unknown == client.usage.failed == 2
    assert client.usage.spent == 0


def test_a_stream_that_is_left_or_cut_is_unknown(client: Client, simulator: Simulator) -> None:
    simulator.configure(chunk_interval=0.05)
    with client.stream(MODEL, "word " * 100) as deltas:
        next(deltas)
    assert wait_until(lambda: client.usage.unknown == 1, 30)
    simulator.inject(Fault(cut_after=2))
    with pytest.raises(APIResponseValidationError), client.stream(MODEL, "one two three four") as deltas:
        list(deltas)
    assert (client.usage.requests, client.usage.failed, client.usage.unknown) == (0, 2, 2)
    assert wait_until(lambda: simulator.ledger().model("openai", MODEL).unfinished == 2, 30)
    with client.stream(MODEL, "whole") as deltas:
        list(deltas)
    assert client.usage.requests == 1
    assert float(client.usage.spent) == deltas.response.cost


def test_an_answer_without_a_price_is_unknown(client: Client, simulator: Simulator) -> None:
    answer = client.call("local/some-model", "Hi", base_url=simulator.url("local"))
    assert answer.cost is None
    (row,) = client.usage.rows()
    assert (row.requests, row.unknown, row.spent, row.usage) == (1, 1, 0, answer.usage)
    assert client.usage.unknown_at_most is None


def test_an_answer_that_tells_no_usage_has_a_bound(client: Client, simulator: Simulator) -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}
    simulator.inject(Fault(body=json.dumps({"choices": [choice]})))
    answer = client.call(MODEL, "Hi", max_tokens=100)
    assert answer.cost is None
    assert (client.usage.requests, client.usage.unknown) == (1, 1)
    # 100 tokens of output, at USD 30 a million, and those of the prompt.
    assert Decimal("0.003") < client.usage.unknown_at_most < Decimal("0.03")
    assert client.call(MODEL, "Hi", max_tokens=100).cost == 0
    assert (client.usage.hits, client.usage.saved) == (1, 0)


def test_a_class_without_a_price_warns_once_and_is_unknown(own_cache: Path, simulator: Simulator) -> None:
    prices = own_cache.parent / "prices.csv"
    prices.write_text("provider,model,input,output\nopenai,gpt-5.5,1,2\n")
    with Client(cache_dir=own_cache, prices=prices) as client, pytest.warns(PriceWarning, match="cache_read"):
        client.call_many(MODEL, ["a", "b"], progress=False)
    assert (client.usage.requests, client.usage.unknown, client.usage.spent) == (2, 2, 0)


def test_costs_are_the_prices_of_the_usage_and_the_sums_those_of_the_responses(
    client: Client, simulator: Simulator
) -> None:
    simulator.configure(cached_tokens=3, reasoning_tokens=11)
    models = ("gpt-5.5", "claude-haiku-5-5", "gemini-3.8-flash", "together_ai/zai-org/GLM-5.3")
    answers = [client.call(model, "What does this cost, all in all?") for model in models]
    assert client.usage.usage == sum((answer.usage for answer in answers), Usage())
    exact = [client.price(model, answer.usage) or 0 for model, answer in zip(models, answers, strict=True)]
    assert all(exact)
    assert [answer.cost for answer in answers] == [float(usd) for usd in exact]
    assert client.usage.spent == sum(exact)


def test_chaos_is_billed_as_the_ledger_says(tmp_path: Path) -> None:
    report = chaos.chaos(120, tmp_path)
    assert report.problems == []
    assert all(route.difference == 0 for route in report.routes)
