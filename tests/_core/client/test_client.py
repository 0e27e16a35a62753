"""Client: settings, ownership, closing."""

import asyncio
import copy
import csv
import gc
import pickle
import subprocess
from ast import literal_eval
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Budget, BudgetExceededError, Client, RequestError, UnknownModelError, Usage, price
from llm_provider._core.money.price_rows import VARIANTS, WINDOW_SHARES
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
    for window, share in WINDOW_SHARES.items():
        standard = price("gpt-6.1-sol", SMALL)
        assert standard is not None
        assert price("gpt-6.1-sol", SMALL, service_tier=window) == standard * Decimal(share)
        assert price("claude-haiku-5-5", SMALL, service_tier=window) is None
    for variant in VARIANTS - base.keys() - WINDOW_SHARES.keys():
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


TASKS = f"""
import pickle, sys

for number in (1, 2, 2):
    client = pickle.load(sys.stdin.buffer)
    answer = client.call({MODEL!r}, f"What is {{number}}+1?")
    print([id(client._original or client), answer.text, str(client.cache.directory), client.usage.requests])
"""
"""What the tasks of another process find."""


def test_tasks_of_another_process_share_one_client(
    simulator: Simulator, tmp_path: Path, warm_python: list[str]
) -> None:
    with Client(cache_dir=tmp_path / "cache", ledger=tmp_path / "runs.jsonl", max_concurrent=3) as client:
        variant = client.with_options(max_tokens=50)
        sent = b"".join(map(pickle.dumps, (client, client, variant)))
        ended = subprocess.run([*warm_python, "-c", TASKS], input=sent, capture_output=True, check=True)
        first, second, third = map(literal_eval, ended.stdout.decode().splitlines())
        # The second question is not in the cache with another limit of tokens.
        assert [first[1], second[1], third[1]] == ["2", "3", "3"]
        assert first[0] == second[0] == third[0]
        assert [first[3], second[3], third[3]] == [1, 2, 3]
        assert first[2] == str(tmp_path / "cache")
        assert client.call(MODEL, "What is 1+1?").cached
    assert len((tmp_path / "runs.jsonl").read_text(encoding="utf-8").splitlines()) == 4
    assert [50 in request.body.values() for request in simulator.requests()] == [False, False, True]


def test_in_its_own_process_it_is_the_same_client(own_cache: Path) -> None:
    with Client(cache_dir=own_cache, temperature=0) as client:
        assert pickle.loads(pickle.dumps(client)) is client
        assert copy.copy(client) is copy.deepcopy({"a": client})["a"] is client
        variant = pickle.loads(pickle.dumps(client.with_options(temperature=1, stop="END")))
        assert variant.usage is client.usage
        assert variant._runner.defaults == {"temperature": 1, "stop": ("END",)}
    # A closed client is no use to a task.
    with pickle.loads(pickle.dumps(client)) as other:
        assert other is not client
        assert other._runner.defaults == {"temperature": 0}


def test_paths_do_not_depend_on_a_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Client(cache_dir="cache") as client:
        (_, _, settings, _, _) = client.__reduce__()[1]
    assert settings["cache_dir"] == str(tmp_path / "cache")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"keys": {"openai": "sk-secret-1"}}, r"keys= holds API keys: .*env_file='\.env'"),
        ({"api_key": "sk-secret-1"}, r"api_key= is an API key: .*env_file='\.env'"),
        (
            {"budget": 5.0},
            r"budget=5\.0 holds within one process: write budget=Budget\(5\.0, path='run\.budget'\)",
        ),
        ({"budget": Budget(5)}, r"path='run\.budget'"),
    ],
)
def test_a_client_that_cannot_travel_says_what_to_write(settings: Any, said: str) -> None:
    with Client(**settings) as client, pytest.raises(TypeError, match=said) as caught:
        pickle.dumps(client)
    assert "sk-secret" not in str(caught.value)
    with Client() as client, pytest.raises(TypeError, match="api_key= is an API key"):
        pickle.dumps(client.with_options(api_key="sk-secret-1"))
