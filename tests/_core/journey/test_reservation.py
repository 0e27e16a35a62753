"""Budgets over real connections: what the simulator bills never exceeds them, and they are used up."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import (
    APIConnectionError,
    APITimeoutError,
    Budget,
    BudgetExceededError,
    Client,
    InternalServerError,
    RequestError,
    Response,
    UnknownPriceError,
)
from llm_provider._core.journey.call import Call
from llm_provider._core.journey.chat import CHAT
from llm_provider._core.journey.reservation import worst_case
from llm_provider._core.money.pricing import PriceTable, default_prices_path
from llm_provider._core.pace.call_limits import UNBOUNDED
from llm_provider._core.requests.request import Request
from llm_provider._core.requests.routing import price_names
from llm_provider._core.tokens.counting import most_input_tokens, most_output_tokens
from llm_provider._core.types.usage import Usage
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-6.1-sol"
SHORT: dict[str, Any] = {"max_tokens": 60}
WORST = Decimal("0.0062")
"""USD: a little more than what a short call may cost."""
LONG: dict[str, Any] = {"max_tokens": 420}
WORST_LONG = Decimal("0.0098")


@pytest.fixture
def simulator(simulator: Simulator) -> Simulator:
    simulator.configure(prices=default_prices_path(), output_tokens=50)
    return simulator


def billed(simulator: Simulator) -> Decimal:
    return simulator.ledger().billed


def limited(client: Client, limit: float, **settings: Any) -> Client:
    """Another client of the same cache."""
    return Client(cache_dir=client.cache.directory, budget=limit, **settings)


def prompts(count: int) -> list[str]:
    return [f"question {number}" for number in range(count)]


def answered(results: list[Any]) -> list[Response]:
    return [result for result in results if isinstance(result, Response)]


def test_with_many_in_flight_the_bill_stays_below_and_close(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=0.05, latency_jitter=0.05, output_tokens=400)
    with limited(client, 1.2, max_concurrent=64) as spender:
        most = Decimal(0)
        results = []
        for _, result in spender.iter_many(MODEL, prompts(400), progress=False, **LONG):
            balance = spender.budget._store.read()
            most = max(most, balance.spent + balance.reserved)
            results.append(result)
        budget = spender.budget
    assert billed(simulator) == budget.spent <= budget.limit == Decimal("1.2")
    assert most <= budget.limit
    assert budget.left < WORST_LONG
    assert (budget.reserved, budget.uncertain) == (0, 0)
    refused = [result for result in results if isinstance(result, BudgetExceededError)]
    assert len(answered(results)) + len(refused) == 400
    assert {error.budget for error in refused} == {budget.limit}
    assert refused[-1].spent + refused[-1].needed > budget.limit
    assert (refused[0].provider, refused[0].model, refused[0].attempts) == ("openai", MODEL, 0)


def endless() -> Iterator[str]:
    return (f"question {number}" for number in itertools.count())


def test_an_endless_iterable_is_read_no_further_than_the_money_goes(client: Client) -> None:
    async def endless_and_awaited() -> AsyncIterator[str]:
        for question in endless():
            yield question

    batch: dict[str, Any] = {"progress": False, "max_concurrent": 8, **SHORT}
    results = client.call_many(MODEL, endless(), budget=0.03, **batch)
    assert 0 < len(answered(results)) < len(results) < 200
    awaited = asyncio.run(client.acall_many(MODEL, endless_and_awaited(), budget=0.03, **batch))
    # What the first batch has bought was free for the second, which so got further.
    assert len(answered(results)) < len(answered(awaited)) < len(awaited) < 300
    # An input that is too dear by itself ends nothing.
    mixed = ["word " * 20_000, *prompts(5)]
    results = client.call_many(MODEL, iter(mixed), budget=0.03, **batch)
    assert [isinstance(result, BudgetExceededError) for result in results] == [True] + [False] * 5


def test_a_request_that_may_be_billed_counts_its_worst_case(client: Client, simulator: Simulator) -> None:
    for fault, kind in (
        (Fault(hang=True), APITimeoutError),
        (Fault(status=500), InternalServerError),
        (Fault(abort_after=0), APIConnectionError),
    ):
        with limited(client, 0.01) as spender:
            simulator.clear()
            simulator.inject(fault, times=None, match="Hi")
            with pytest.raises(kind, match=r"perhaps billed, so its budget counts its worst case, \$0\.00"):
                spender.call(MODEL, "Hi", timeout=0.5, max_retries=0, **SHORT)
            budget = spender.budget
            assert 0 < budget.spent == budget.uncertain < WORST
            # There is no money for another attempt now, nor for another call.
            with pytest.raises(BudgetExceededError, match="perhaps not billed"):
                spender.call(MODEL, "Ho", **SHORT)
            assert "uncertain=" in repr(budget)


def test_a_call_that_has_waited_for_money_keeps_its_place_in_the_line(
    own_cache: Path, simulator: Simulator
) -> None:
    simulator.configure(latency=0.1)
    names = ["holds the money", "waits for it", *(f"later {number}" for number in range(8))]

    async def run(client: Client) -> None:
        budget, tasks = Budget(float(WORST) * 1.5), []
        for number, name in enumerate(names):
            money = {"budget": budget} if number < 2 else {}
            tasks.append(asyncio.create_task(client.acall(MODEL, name, **SHORT, **money)))
            await asyncio.sleep(0.005)
        await asyncio.gather(*tasks)

    with Client(cache_dir=own_cache, max_concurrent=2, rate_control="independent") as client:
        client.call(MODEL, "an SDK may take long to import", **SHORT)
        asyncio.run(run(client))
    order = [request.body["messages"][-1]["content"] for request in simulator.requests()][1:]
    assert sorted(order) == sorted(names)
    # One call may take the slot that the first leaves while the money is passed on.
    assert order.index("waits for it") <= 4, order


def test_a_model_without_a_price_is_refused_unless_allowed(client: Client, simulator: Simulator) -> None:
    with limited(client, 1) as spender:
        for model, more in (("gpt-6.1-unheard-of", {}), (MODEL, {"extra_body": {"web_search_options": {}}})):
            with pytest.raises(UnknownPriceError, match="allow_unknown=True") as caught:
                spender.call(model, "Hi", **more, **SHORT)
            assert caught.value.provider == "openai"
        assert simulator.ledger().requests == 0
        assert spender.budget.reserved == 0
    allowing = Budget(0.01, allow_unknown=True)
    with limited(client, allowing) as spender:
        assert spender.call("gpt-6.1-unheard-of", "Hi", **SHORT).cost is None
        assert (allowing.spent, allowing.reserved) == (0, 0)
        paid = spender.call(MODEL, "Hi", **SHORT, extra_body={"web_search_options": {}})
        assert allowing.spent == Decimal(repr(paid.cost)) > 0


def test_the_environment_sets_a_budget(
    client: Client, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert client.budget is None
    monkeypatch.setenv("LLM_PROVIDER_BUDGET", "0.25")
    with Client() as spender:
        assert spender.budget.limit == Decimal("0.25")
    monkeypatch.setenv("LLM_PROVIDER_BUDGET_FILE", str(tmp_path / "run.budget"))
    with Client() as spender:
        spender.call(MODEL, "Hi", **SHORT)
    with Client() as spender:
        assert spender.budget.spent == billed(simulator) > 0
    for wrong, text in (
        ("five", "not 'five'"), ("-1", "not -1"), ("nan", "not NaN"), ("", "_FILE needs an amount"),
        ("1e-400", "from 1E-9"), ("1e400", "not 1E"), ("sNaN", "not sNaN"), ("inf", "not Inf"), ("$5", "not"),
        ("1,5", "not '1,5'"), ("1e13", "to 1E.12"), ("1e-10", "from 1E-9"), ("1e999999999", "not 1E"),
    ):  # fmt: skip
        monkeypatch.setenv("LLM_PROVIDER_BUDGET", wrong)
        with pytest.raises(RequestError, match=f"LLM_PROVIDER_BUDGET.*{text}"):
            Client()


TABLE = PriceTable.load()
MAKER = Client(cache="off")
MODELS = (
    "gpt-6.1-sol", "claude-haiku-5-5", "claude-sonnet-5-5", "gemini-3.8-flash", "deepseek/deepseek-v4-pro",
)  # fmt: skip


def made(model: str, messages: Any = "Hi", **parameters: Any) -> Call:
    return MAKER._engine.prepare(CHAT, Request.build(model, messages, parameters), UNBOUNDED)


@given(st.sampled_from(MODELS), st.data())
def test_no_usage_within_the_bounds_costs_more(model: str, data: st.DataObject) -> None:
    long = data.draw(st.booleans())
    call = made(model, "word " * 60_000 if long else "Hi", max_tokens=data.draw(st.integers(1, 5000)))
    samples = data.draw(st.integers(1, 4))
    priced = price_names(call.target)
    read = most_input_tokens(call.facts(), call.body, call.target)
    written = most_output_tokens(call.facts(), call.target) * samples
    prompt = data.draw(st.integers(0, read))
    cached = data.draw(st.integers(0, prompt))
    # Not every provider has a price for writing to its cache.
    stored = data.draw(st.integers(0, prompt - cached)) if not model.startswith(("gemini", "deep")) else 0
    answer = data.draw(st.integers(0, written))
    usage = Usage(
        input_tokens=prompt,
        cache_read_input_tokens=cached,
        cache_write_input_tokens=stored,
        output_tokens=answer,
        reasoning_output_tokens=data.draw(st.integers(0, answer)),
    )
    assert TABLE.cost(*priced, usage) <= worst_case(call, range(samples), TABLE)


def test_the_prompt_is_paid_once_and_every_sample_by_itself() -> None:
    call = made("gpt-6.1-sol", max_tokens=1_000_000)
    single, three = worst_case(call, range(1), TABLE), worst_case(call, range(3), TABLE)
    assert three - single == 20


def test_a_prompt_kept_for_an_hour_costs_more_to_write() -> None:
    def asking(control: dict[str, str]) -> Decimal:
        part = {"type": "text", "text": "word " * 20_000, "cache_control": control}
        call = made("claude-sonnet-5-5", [{"role": "user", "content": [part]}], max_tokens=1)
        return worst_case(call, range(1), TABLE)

    hour, minutes = asking({"type": "ephemeral", "ttl": "1h"}), asking({"type": "ephemeral"})
    assert hour / minutes == pytest.approx(Decimal("1.6"), rel=Decimal("0.01"))


@pytest.mark.parametrize(
    ("messages", "options", "factor"),
    [
        ("12h", {}, 1),
        ("Hi", {"prompt_cache_options": {"ttl": "30m"}}, 1),
        ("Hi", {"prompt_cache_options": {"ttl": "12h"}}, 2),
        ([{"type": "text", "text": "Hi", "prompt_cache_breakpoint": {"ttl": "12h"}}], {}, 2),
    ],
)
def test_a_prompt_kept_for_twelve_hours_costs_twice_as_much_to_write(
    messages: Any, options: Any, factor: int
) -> None:
    content = messages if isinstance(messages, list) else [{"type": "text", "text": messages}]

    def most(model: str, options: Any, content: Any) -> Decimal | None:
        asked = [{"role": "user", "content": [{"type": "text", "text": "word " * 9000}, *content]}]
        return worst_case(made(model, asked, max_tokens=1, extra_body=options), range(1), TABLE)

    whole, plain = most("gpt-6.1-sol", options, content), most("gpt-6.1-sol", {}, [])
    assert whole is not None
    assert plain is not None
    assert whole / plain == pytest.approx(Decimal(factor), rel=Decimal("0.02"))
    # A model whose row has no price for it has no bound.
    assert (most("gpt-5.5", options, content) is None) == (factor == 2)


def test_a_long_prompt_may_reach_the_dearer_price() -> None:
    most = worst_case(made("gpt-6.1-sol", "word " * 60_000, max_tokens=1), range(1), TABLE)
    # 300,000 bytes may be as many tokens, above the 272,000 where the price doubles.
    assert most > Decimal("0.000005") * 300_000


def test_a_price_of_tomorrow_counts_today_and_fees_count() -> None:
    tomorrow = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 86_400))
    row = {"provider": "local", "model": "tiny", "output": 1}
    table = PriceTable.load(
        overrides=[
            {**row, "input": 0},
            {**row, "input": 0, "output": 3, "request": 5, "effective_from": tomorrow},
        ]
    )
    call = made("local/tiny", max_tokens=1000)
    assert worst_case(call, range(1), table) == Decimal("0.003") + Decimal("0.005")


def test_a_budget_names_the_model_that_may_be_meant(client: Client, simulator: Simulator) -> None:
    with pytest.raises(UnknownPriceError) as caught, limited(client, 1) as spender:
        spender.call("gpt-6.1-soll", "Hi", **SHORT)
    assert "no price of 'gpt-6.1-soll' is known" in str(caught.value)
    assert "did you mean gpt-6.1-sol" in str(caught.value)
    assert "If the name is right: give a price (prices=" in str(caught.value)
    assert "max_tokens" not in str(caught.value)
    assert simulator.ledger().requests == 0
