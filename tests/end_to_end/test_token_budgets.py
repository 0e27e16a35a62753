"""A budget in tokens counts, in every way of calling, the tokens that the provider bills, and never more."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from counting_server import CountingServer
from llm_provider import (
    APIConnectionError,
    Budget,
    BudgetExceededError,
    Client,
    LLMError,
    PriceWarning,
    RequestError,
    SchemaMismatchError,
    UnknownPriceError,
)
from llm_provider.simulator import Fault, Simulator
from openai_support import completion
from support import wait_until

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("gpt-5.5", {"reasoning_effort": "none"}),
    "responses": ("gpt-5.5", {"endpoint": "responses"}),
    "anthropic": ("claude-haiku-5-5", {}),
    "gemini": ("gemini-3.8-flash", {}),
    "interactions": ("gemini-3.8-flash", {"endpoint": "interactions"}),
}
OF_PROVIDERS = ["chat", "anthropic", "gemini"]
SHORT: dict[str, Any] = {"max_tokens": 300}
PROMPTS = ["one two three", "four", "five six"]
Way = Callable[[Client, str, dict[str, Any]], Any]


def square(number: int) -> str:
    """The square of a number."""
    return str(number * number)


def stream(client: Client, model: str, more: dict[str, Any]) -> Any:
    with client.stream(model, PROMPTS[0], **more) as deltas:
        for _ in deltas:
            pass
    return deltas.response


def astream(client: Client, model: str, more: dict[str, Any]) -> Any:
    async def run() -> Any:
        async with client.astream(model, PROMPTS[0], **more) as deltas:
            async for _ in deltas:
                pass
        return deltas.response

    return asyncio.run(run())


def rounds(client: Client, model: str, more: dict[str, Any]) -> Any:
    return client.call(model, 'use the tool square({"number": 7})', tools=[square], max_tool_rounds=2, **more)


WAYS: dict[str, Way] = {
    "call": lambda client, model, more: client.call(model, PROMPTS[0], **more),
    "acall": lambda client, model, more: asyncio.run(client.acall(model, PROMPTS[0], **more)),
    "stream": stream,
    "astream": astream,
    "samples": lambda client, model, more: client.call(model, PROMPTS[0], n=3, **more),
    "tool rounds": rounds,
    "call_many": lambda client, model, more: client.call_many(model, PROMPTS, **more),
    "iter_many": lambda client, model, more: [
        result for _, result in client.iter_many(model, PROMPTS, **more)
    ],
    "batch": lambda client, model, more: client.call_many(model, PROMPTS, delivery="batch", **more),
    "fallback": lambda client, model, more: client.call(model, PROMPTS[0], fallback=["gpt-5.4-mini"], **more),
}


def billed(simulator: Simulator) -> int:
    return sum(each.input_tokens + each.output_tokens for each in simulator.ledger().models)


def ask(way: Way, client: Client, model: str, more: dict[str, Any]) -> list[Any]:
    """The results, or the error, of a way of calling."""
    try:
        results = way(client, model, more)
    except LLMError as error:
        return [error]
    return list(results) if isinstance(results, list) or not hasattr(results, "usage") else [results]


SINGLE = ["call", "astream", "tool rounds"]
"""What the second format of a provider is asked in."""
CROSSINGS = [(name, way) for name in MODELS for way in WAYS if way in SINGLE or name in OF_PROVIDERS]


@pytest.mark.parametrize(("name", "way"), CROSSINGS)
def test_what_is_spent_is_what_the_provider_counted(
    client: Client, simulator: Simulator, fast_batches: None, name: str, way: str
) -> None:
    model, own = MODELS[name]
    budget = Budget(200_000, unit="tokens")
    more = {**own, **SHORT, "token_budget": budget}
    for _ in range(2):
        assert not [each for each in ask(WAYS[way], client, model, more) if isinstance(each, LLMError)]
        # The second time, every answer comes from the cache.
        assert budget.spent == billed(simulator) > 0
        assert (budget.reserved, budget.uncertain) == (0, 0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", OF_PROVIDERS)
def test_a_request_that_may_take_more_than_is_left_is_not_sent(
    client: Client, simulator: Simulator, fast_batches: None, name: str, way: str
) -> None:
    model, own = MODELS[name]
    results = ask(WAYS[way], client, model, {**own, **SHORT, "token_budget": 2_300})
    assert {type(each) for each in results} == {BudgetExceededError}
    assert billed(simulator) == simulator.ledger().requests == 0
    for error in results:
        assert (error.unit, error.budget, error.spent) == ("tokens", 2_300, 0)
        assert 2_300 < error.needed < 20_000
        assert f"may take up to {error.needed:,.0f} tokens, and 2,300 tokens of the budget" in str(error)
        assert LLMError.from_dict(json.loads(json.dumps(error.to_dict()))).unit == "tokens"  # type: ignore[attr-defined]  # a BudgetExceededError


def test_embeddings_count_too(client: Client, simulator: Simulator) -> None:
    budget = Budget(10_000, unit="tokens")
    client.embed("text-embedding-3-small", PROMPTS, token_budget=budget)
    assert budget.spent == billed(simulator) > 0
    with pytest.raises(BudgetExceededError, match="1,000 tokens of the budget of 1,000 tokens are left"):
        client.embed("text-embedding-3-small", ["seven"], token_budget=1_000)


@pytest.mark.parametrize("first", ["USD", "tokens"])
def test_of_a_budget_in_usd_and_one_in_tokens_both_hold(
    client: Client, simulator: Simulator, first: str
) -> None:
    simulator.configure(output_tokens=900)
    prompts = [f"question {number}" for number in range(40)]
    limits: dict[str, Any] = {"budget": 0.2 if first == "USD" else 5.0}
    limits["token_budget"] = 10**9 if first == "USD" else 20_000
    with Client(cache_dir=client.cache.directory, max_concurrent=8, **limits) as spender:
        results = spender.call_many("gpt-5.5", prompts, max_tokens=1000, progress=False)
        usd, tokens = spender.budget, spender.token_budget
        assert usd is not None
        assert tokens is not None
        errors = [each for each in results if isinstance(each, BudgetExceededError)]
        assert 0 < len(errors) < 40
        assert {error.unit for error in errors} == {first}
        assert tokens.spent == billed(simulator) <= tokens.limit
        assert float(usd.spent) == pytest.approx(float(results.cost))
        assert usd.reserved == tokens.reserved == 0


@pytest.mark.parametrize("way", ["call", "acall", "stream", "astream", "call_many"])
@pytest.mark.parametrize(
    "fault", [Fault(hang=True), Fault(status=500), Fault(abort_after=0), Fault(status=400)]
)
def test_a_request_without_an_answer_counts_its_worst_case_if_it_may_be_billed(
    client: Client, simulator: Simulator, way: str, fault: Fault
) -> None:
    simulator.inject(fault, times=None)
    budget = Budget(50_000, unit="tokens")
    more = {**SHORT, "timeout": 0.3, "max_retries": 0, "token_budget": budget}
    results = ask(WAYS[way], client, "gpt-5.5", more)
    assert budget.reserved == 0
    assert budget.spent == budget.uncertain
    if fault.status == 400:
        assert budget.spent == 0
        return
    counted = budget.spent / len(results)
    assert 2_300 < counted < 4_000
    assert all(isinstance(error, LLMError) and "counts its worst case" in str(error) for error in results)
    assert f"{counted:,.0f} tokens)" in str(results[0]) or len(results) > 1


def test_every_retry_needs_tokens_of_its_own(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=500), times=None)
    budget = Budget(6_000, unit="tokens")
    with pytest.raises(BudgetExceededError, match="were perhaps not billed") as caught:
        client.call("gpt-5.5", "Hi", max_tokens=300, max_retries=9, token_budget=budget)
    assert caught.value.unit == "tokens"
    assert simulator.ledger().requests == 2
    assert budget.uncertain == budget.spent <= 6_000


def test_a_cancelled_call_counts_its_worst_case(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(hang=True), times=None)
    budget = Budget(50_000, unit="tokens")

    async def run() -> None:
        task = asyncio.create_task(client.acall("gpt-5.5", "Hi", max_tokens=300, token_budget=budget))
        while not simulator.ledger().requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    wait_until(lambda: budget.reserved == 0)
    assert budget.spent == budget.uncertain > 2_300


def test_a_model_without_a_price_has_a_token_budget_but_searches_have_none(
    client: Client, simulator: Simulator
) -> None:
    budget = Budget(5_000, unit="tokens")
    answer = client.call("gpt-6.1-unheard-of", "Hi", max_tokens=300, token_budget=budget)
    assert (answer.cost, budget.spent) == (None, answer.usage.total_tokens)
    searching: dict[str, Any] = {"max_tokens": 300, "extra_body": {"web_search_options": {}}}
    with pytest.raises(UnknownPriceError, match=r"the most tokens that this request to gpt-5\.5 can take"):
        client.call("gpt-5.5", "Hi", token_budget=5_000, **searching)
    with (
        pytest.warns(PriceWarning, match=r"only stored answers of gpt-5\.5"),
        pytest.raises(UnknownPriceError, match=r"a batch of gpt-5\.5"),
    ):
        client.call_many(
            "gpt-5.5", ["Hi"], token_budget=5_000, delivery="batch", on_error="raise", **searching
        )
    allowing = Budget(5_000, unit="tokens", allow_unknown=True)
    answer = client.call("gpt-5.5", "Hi", token_budget=allowing, **searching)
    assert allowing.spent == answer.usage.total_tokens


def test_an_endless_iterable_is_read_no_further_than_the_tokens_go(
    client: Client, simulator: Simulator
) -> None:
    simulator.configure(output_tokens=280)
    endless = (f"question {number}" for number in itertools.count())
    budget = Budget(10_000, unit="tokens")
    batch: dict[str, Any] = {"progress": False, "max_concurrent": 4, "token_budget": budget}
    results = client.call_many("gpt-5.5", endless, **batch, **SHORT)
    assert 0 < len(results) < 100
    assert budget.left < 3_000


def test_the_environment_and_a_file_share_a_budget(
    client: Client, simulator: Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("LLM_PROVIDER_TOKEN_BUDGET", "1e5")
    monkeypatch.setenv("LLM_PROVIDER_TOKEN_BUDGET_FILE", str(tmp_path / "run.tokens"))
    for prompt in PROMPTS:
        with Client() as spender:
            spender.call("gpt-5.5", prompt, **SHORT)
            assert spender.token_budget is not None
            assert (spender.budget, spender.token_budget.limit) == (None, Decimal(100_000))
    assert Budget(100_000, unit="tokens", path=tmp_path / "run.tokens").spent == billed(simulator) > 0
    with pytest.raises(RequestError, match="is a budget in another unit than USD"):
        Budget(5, path=tmp_path / "run.tokens")
    for wrong, text in (
        ("five", "number of tokens, not 'five'"),
        ("0.5", "not 0.5"),
        ("", "_FILE needs an amount"),
    ):
        monkeypatch.setenv("LLM_PROVIDER_TOKEN_BUDGET", wrong)
        with pytest.raises(RequestError, match=f"LLM_PROVIDER_TOKEN_BUDGET.*{text}"):
            Client()


class UsageServer(CountingServer):
    """Answers Chat Completions with a usage that a test chooses, in the shapes of public reports."""

    def __init__(self, usage: Any, text: str = "Hello") -> None:
        super().__init__(self.answer)
        self.usage, self.text = usage, text

    def answer(self, path: str, headers: Any, body: Any) -> tuple[int, dict[str, str], Any]:
        whole = completion({"content": self.text}) | {"usage": self.usage}
        if not body.get("stream"):
            return 200, {}, whole
        head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        delta = {"index": 0, "delta": {"role": "assistant", "content": self.text}, "finish_reason": "stop"}
        chunks = [head | {"choices": [delta]}, head | {"choices": [], "usage": self.usage}]
        data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
        return 200, {"content-type": "text/event-stream"}, data + b"data: [DONE]\n\n"


@pytest.fixture
def serve() -> Iterator[Any]:
    with contextlib.ExitStack() as stack:
        yield lambda *usage: stack.enter_context(UsageServer(*usage))


LIVE = ["call", "acall", "stream", "astream"]


@pytest.mark.parametrize("way", LIVE)
@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        (None, None),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, None),
        ({}, None),
        ({"prompt_tokens": 11, "completion_tokens": 9, "total_tokens": 88}, 88),
        ({"prompt_tokens": 11, "completion_tokens": 9}, 20),
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13,
          "prompt_tokens_details": {"cached_tokens": 8}}, 13),
        ({"prompt_tokens": 9, "completion_tokens": 40, "total_tokens": 49,
          "completion_tokens_details": {"reasoning_tokens": 38}}, 49),
    ],
)  # fmt: skip
def test_whatever_usage_a_server_reports(
    own_cache: Path, serve: Any, way: str, usage: Any, counted: int | None
) -> None:
    server, budget = serve(usage), Budget(10_000, unit="tokens")
    where = {"base_url": f"{server.root}/v1", "api_key": "sk-test", "token_budget": budget}
    with Client(cache_dir=own_cache, max_retries=0) as client:
        (answer,) = ask(WAYS[way], client, "gpt-5.5", {**where, **SHORT})
    assert answer.text == "Hello"
    assert budget.reserved == 0
    if counted is None:
        # What is not known counts as the most that it can be.
        assert budget.spent == budget.uncertain > 2_300
    else:
        assert (budget.spent, budget.uncertain) == (counted, 0)


@pytest.mark.parametrize("way", LIVE)
def test_an_answer_that_took_more_than_it_might_is_returned_and_the_next_call_refused(
    own_cache: Path, serve: Any, way: str
) -> None:
    server = serve({"prompt_tokens": 9, "completion_tokens": 8_000, "total_tokens": 8_009})
    budget = Budget(5_000, unit="tokens")
    where = {"base_url": f"{server.root}/v1", "api_key": "sk-test", "token_budget": budget}
    with Client(cache_dir=own_cache, max_retries=0) as client:
        (answer,) = ask(WAYS[way], client, "gpt-5.5", {**where, **SHORT})
        assert (answer.text, budget.spent, budget.left) == ("Hello", 8_009, 0)
        assert client.call("gpt-5.5", PROMPTS[0], **where, **SHORT).cached
        with pytest.raises(BudgetExceededError, match="and 0 tokens of the budget of 5,000 tokens are left"):
            client.call("gpt-5.5", "another", **where, **SHORT)
    assert server.requests == 1


@pytest.mark.parametrize("way", LIVE[:2])
def test_answers_that_cannot_be_used_count_by_their_usage(own_cache: Path, serve: Any, way: str) -> None:
    server = serve({"prompt_tokens": 50, "completion_tokens": 5, "total_tokens": 55}, "no number")
    budget = Budget(50_000, unit="tokens")
    where = {"base_url": f"{server.root}/v1", "api_key": "sk-test", "token_budget": budget}
    with Client(cache_dir=own_cache, max_retries=0) as client:
        more = {**where, **SHORT, "response_format": int, "max_repairs": 2}
        (error,) = ask(WAYS[way], client, "gpt-5.5", more)
    assert isinstance(error, SchemaMismatchError)
    assert server.requests == 3
    assert (budget.spent, budget.uncertain) == (3 * 55, 0)


def test_with_many_requests_at_once_the_count_stays_below_and_close(
    client: Client, simulator: Simulator
) -> None:
    simulator.configure(latency=0.03, latency_jitter=0.03, output_tokens=280)
    prompts, most = [f"question {number}" for number in range(200)], Decimal(0)
    budget = Budget(30_000, unit="tokens")
    more: dict[str, Any] = {"progress": False, "max_concurrent": 64, "token_budget": budget}
    for _ in client.iter_many("gpt-5.5", prompts, **more, **SHORT):
        balance = budget._store.read()
        most = max(most, balance.spent + balance.reserved)
    assert most <= budget.limit
    assert budget.spent == billed(simulator)
    assert (budget.left < 3_000, budget.reserved) == (True, 0)


def test_a_stream_that_is_left_early_counts_its_worst_case(client: Client, simulator: Simulator) -> None:
    simulator.configure(output_tokens=200, chunk_interval=0.05)
    budget = Budget(10_000, unit="tokens")
    with client.stream("claude-haiku-5-5", "Hi", token_budget=budget, **SHORT) as deltas:
        next(iter(deltas))
    wait_until(lambda: budget.reserved == 0)
    assert budget.spent == budget.uncertain > 2_300


def test_connections_that_are_refused_take_no_tokens(own_cache: Path) -> None:
    budget = Budget(5_000, unit="tokens")
    with Client(cache_dir=own_cache, outage_patience=0.2) as client, pytest.raises(APIConnectionError):
        client.call("local/m", "Hi", base_url="http://127.0.0.1:9/v1", token_budget=budget, **SHORT)
    assert (budget.spent, budget.reserved) == (0, 0)


@pytest.mark.parametrize("wrong", [-1, 0.5, float("nan"), float("inf"), 10**16, "1000", True, Budget(5)])
def test_what_is_no_number_of_tokens_is_refused(client: Client, simulator: Simulator, wrong: Any) -> None:
    makers: list[Callable[[], object]] = [
        lambda: Budget(wrong, unit="tokens"),
        lambda: client.call("gpt-5.5", "Hi", token_budget=wrong),
        lambda: client.call_many("gpt-5.5", ["Hi"], token_budget=wrong),
        lambda: Client(token_budget=wrong),
    ]
    for make in makers:
        with pytest.raises(RequestError, match="tokens"):
            make()
    assert simulator.ledger().requests == 0


def test_calls_of_a_variant_of_several_models_and_of_a_recheck_share_a_budget(
    client: Client, simulator: Simulator
) -> None:
    budget = Budget(100_000, unit="tokens")
    with client.with_options(token_budget=budget) as variant:
        variant.call("gpt-5.5", "Hi", **SHORT)
        assert budget.spent == billed(simulator) > 0
        variant.call_many(["gpt-5.5", "claude-haiku-5-5"], PROMPTS, **SHORT)
    assert budget.spent == billed(simulator)
    client.recheck("gpt-5.5", PROMPTS, floor=0.01, budget=1.0, token_budget=budget, **SHORT)
    assert budget.spent == billed(simulator)
    assert (budget.reserved, budget.uncertain) == (0, 0)
    assert client.estimate("gpt-5.5", PROMPTS, token_budget=5).requests == 3
