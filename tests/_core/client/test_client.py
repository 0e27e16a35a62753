"""Client: settings, ownership, closing."""

import asyncio
import csv
import gc
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider import BudgetExceededError, Client, RequestError, UnknownModelError, Usage, price
from llm_provider._core.money.price_rows import VARIANTS
from llm_provider.simulator import Simulator

MODEL = "gpt-6.1-sol"
EMBEDDING = "text-embedding-3-small"


def test_a_server_of_the_users_own_needs_no_key(llm_simulator: Simulator, own_cache: Path) -> None:
    with Client(cache_dir=own_cache) as client:
        for model in ("openai/any", "local/any", "groq/any"):
            assert client.call(model, "1+1?", base_url=llm_simulator.url("local")).text == "2"
        assert client.call("claude-x", "1+1?", base_url=llm_simulator.url("anthropic")).text == "2"
        assert client.call("gemini-x", "1+1?", base_url=llm_simulator.url("gemini")).text == "2"


def test_prices_of_the_users_own(tmp_path: Path) -> None:
    table = tmp_path / "prices.csv"
    table.write_text(
        "provider,model,variant,min_input_tokens,input,cache_read,cache_write,cache_write_1h,output,"
        "effective_from,source,as_of\nlocal,mine,standard,0,1,,,,2,,me,2026-11-20\n"
    )
    usage = Usage(input_tokens=1_000_000, output_tokens=500_000)
    with Client(prices=table) as client:
        assert client.price("local/mine", usage) == Decimal(2)
        assert client.price("gpt-6.1-sol", usage) == price("gpt-6.1-sol", usage) is not None
    assert price("local/mine", usage) is None


def test_a_loop_that_ended_within_an_iteration_does_not_block_another(client: Client) -> None:
    client.call(MODEL, "Hi")
    for _ in range(40):
        loop = asyncio.new_event_loop()
        looking = client.acall(MODEL, "Hi")
        # Its first step reads, and nothing of the loop runs after it.
        loop.call_soon(looking.send, None)
        loop.call_soon(loop.stop)
        loop.run_forever()
        looking.close()
        loop.close()
    assert asyncio.run(asyncio.wait_for(client.acall(MODEL, "Hi"), 10)).cached


class TestDefaults:
    """Defaults for the parameters of calls, and variants of a client."""

    def test_every_way_to_call_uses_them(self, simulator: Simulator, own_cache: Path) -> None:
        url = simulator.url("openai")
        with Client(
            cache_dir=own_cache, base_url=url, api_key="sk-1", max_tokens=50, system="Be brief."
        ) as client:
            answer = client.call(MODEL, "1+1?")
            assert asyncio.run(client.acall(MODEL, "1+1?")).cached
            with client.stream(MODEL, "1+1?") as deltas:
                list(deltas)
            assert deltas.response.cached
            assert client.call_many(MODEL, ["1+1?"])[0].cached  # type: ignore[union-attr]  # an answer
            assert client.explain_miss(MODEL, "1+1?") is not None
            assert len(client.embed("text-embedding-3-small", ["a"])) == 1
            assert not client.call(MODEL, "1+1?", max_tokens=51).cached
            assert client.call(MODEL, "1+1?", max_tokens=None, seed=None).cached
        with Client(cache_dir=own_cache) as plain:
            options = {"max_tokens": 50, "system": "Be brief.", "base_url": url}
            assert plain.call(MODEL, "1+1?", **options).text == answer.text  # type: ignore[arg-type]  # wrong on purpose, or any value
            assert plain.call(MODEL, "1+1?", **options).cached  # type: ignore[arg-type]  # wrong on purpose, or any value

    def test_no_key_is_shown(self) -> None:
        with Client(api_key="sk-very-secret") as client:
            assert "very-secret" not in repr(vars(client.with_options(api_key="sk-very-secret-too")))

    def test_a_variant_shares_all_but_its_defaults(self, simulator: Simulator, own_cache: Path) -> None:
        with Client(cache_dir=own_cache, budget=1, max_tokens=50) as client:
            variant = client.with_options(max_tokens=60, cache="refresh").with_options(seed=None)
            assert variant.call(MODEL, "1+1?").text == "2"
            assert not variant.call(MODEL, "1+1?").cached
            assert client.call(MODEL, "1+1?", max_tokens=60).cached
            assert not client.call(MODEL, "1+1?").cached
            for shared in ("usage", "budget", "cache"):
                assert getattr(variant, shared) == getattr(client, shared)
            assert len(variant.statistics()) == len(client.statistics()) == 1
            with variant:
                pass
            # Closing a variant closes nothing.
            assert variant.call(MODEL, "1+1?").text == "2"
        with pytest.raises(RuntimeError, match="closed"):
            variant.call(MODEL, "1+1?")

    def test_a_variant_keeps_its_client_alive(self, simulator: Simulator, own_cache: Path) -> None:
        variant = Client(cache_dir=own_cache).with_options(max_tokens=50)
        gc.collect()
        assert variant.call(MODEL, "1+1?").text == "2"
        assert variant.call(MODEL, "1+1?").cached

    def test_a_budget_of_a_variant_is_one_for_all_of_its_calls(self, client: Client) -> None:
        variant = client.with_options(budget=0.006, max_tokens=50)
        variant.call(MODEL, "1+1?")
        with pytest.raises(BudgetExceededError):
            for number in range(100):
                variant.call(MODEL, f"{number}+1?")


def test_calls_that_differ_in_the_user_share_an_answer(simulator: Simulator, client: Client) -> None:
    first = client.call(MODEL, "1+1?", user="one", metadata={"run": "1"}, prompt_cache_key="a")
    assert not first.cached
    assert client.call(MODEL, "1+1?", user="two").cached
    assert client.call(MODEL, "1+1?").cached
    assert not client.call(MODEL, "1+1?", service_tier="flex").cached
    with client.stream(MODEL, "1+3?", user="three") as deltas:
        list(deltas)
    whole, _, streamed = [request.body for request in simulator.requests()]
    assert (whole["user"], whole["metadata"], whole["prompt_cache_key"]) == ("one", {"run": "1"}, "a")
    assert streamed["user"] == "three"


def test_defaults_of_the_client_apply_to_an_estimate_too(own_cache: Path) -> None:
    with Client(cache_dir=own_cache, base_url="not a url") as client:
        for function in (client.embed, client.estimate):
            with pytest.raises(RequestError, match="base_url"):
                function(EMBEDDING, ["a"])  # type: ignore[operator]  # either takes both


ROOT = Path(__file__).parents[3]
SMALL = Usage(input_tokens=1000, output_tokens=10)


def test_each_service_level_has_its_own_price() -> None:
    with (ROOT / "prices.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == "gpt-6.1-sol"]
    base = {row["variant"]: row for row in rows if row["min_input_tokens"] == "0" and row["input"]}
    assert len(base) > 2
    for variant, row in base.items():
        expected = (1000 * Decimal(row["input"]) + 10 * Decimal(row["output"])) / 1_000_000
        assert price("gpt-6.1-sol", SMALL, service_tier=variant) == expected
    assert price("gpt-6.1-sol", SMALL, service_tier="default") == price("gpt-6.1-sol", SMALL)
    assert price("gpt-6.1-sol", SMALL, service_tier="auto") == price("gpt-6.1-sol", SMALL)
    for variant in VARIANTS - base.keys():
        assert price("gpt-6.1-sol", SMALL, service_tier=variant) is None


def test_a_model_without_a_route_is_unknown() -> None:
    with pytest.raises(UnknownModelError):
        price("no-such-model-anywhere", SMALL)


def test_the_first_and_the_last_moment_have_a_price() -> None:
    east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-14))
    assert price("gpt-6.1-sol", SMALL, at=datetime.min.replace(tzinfo=east)) == price(
        "gpt-6.1-sol", SMALL, at=datetime.min.replace(tzinfo=UTC)
    )
    assert price("gpt-6.1-sol", SMALL, at=datetime.max.replace(tzinfo=west)) == price("gpt-6.1-sol", SMALL)


@pytest.mark.parametrize("tokens", [10**400, 2**63, -1])
def test_a_count_of_tokens_that_nothing_holds_is_refused(tokens: int) -> None:
    with pytest.raises(RequestError, match="input_tokens of a usage is a whole number from 0"):
        price("gpt-6.1-sol", Usage(input_tokens=tokens))
