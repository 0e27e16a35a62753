import contextlib
import json
from decimal import Decimal
from pathlib import Path

import pytest

from benchmarks.scenarios import ledger as chaos
from llm_provider import APIConnectionError, Client, LLMError, PriceWarning
from llm_provider._money.pricing import default_prices_path
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-5.5"


@pytest.fixture(autouse=True)
def bill(simulator: Simulator) -> None:
    simulator.configure(prices=default_prices_path(), cached_tokens=2)


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


def test_chaos_is_billed_as_the_ledger_says(tmp_path: Path) -> None:
    report = chaos.chaos(120, tmp_path)
    assert report.problems == []
    assert all(route.difference == 0 for route in report.routes)
