"""Calls as background jobs: answers, prices, keys, and what cannot stand beside them."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from background_server import BackgroundServer, answer
from llm_provider import (
    APITimeoutError,
    Budget,
    BudgetExceededError,
    CacheMissError,
    Client,
    Ledger,
    LLMError,
)
from support import TooSlowError, patiently

MakeClient = Callable[..., Client]

MODEL = "gpt-5.5"
PRICES = {"soonest": 0.0305, "2h": 0.02135, "8h": 0.0183}
"""USD of 100 tokens at 5 and 1,000 tokens at 30 per million, without and with OpenAI's discounts."""

WAYS: dict[str, Callable[..., Any]] = {
    "call": lambda client, prompt, **options: client.call(MODEL, prompt, **options),
    "acall": lambda client, prompt, **options: asyncio.run(client.acall(MODEL, prompt, **options)),
    "call_many": lambda client, prompt, **options: client.call_many(
        MODEL, [prompt], on_error="return", progress=False, **options
    )[0],
    "acall_many": lambda client, prompt, **options: asyncio.run(
        client.acall_many(MODEL, [prompt], progress=False, **options)
    )[0],
    "iter_many": lambda client, prompt, **options: next(
        client.iter_many(MODEL, [prompt], progress=False, **options)
    )[1],
    "submit_many": lambda client, prompt, **options: client.submit_many(
        MODEL, [prompt], progress=False, **options
    ).results()[0],
}


def ask(way: str, client: Client, prompt: str = "Hi", window: str | None = None, **options: Any) -> Any:
    """The result of one prompt, or its error."""
    if window is not None:
        options["background_options"] = {"completion_window": window}
    try:
        return WAYS[way](client, prompt, delivery="background", **options)
    except LLMError as error:
        return error


@pytest.mark.parametrize(
    ("way", "window"), [*(("call", window) for window in PRICES), *((way, "8h") for way in [*WAYS][1:])]
)
def test_a_job_is_answered_once_at_the_price_of_its_window(
    server: BackgroundServer, make_client: MakeClient, own_cache: Path, way: str, window: str
) -> None:
    client = make_client()
    first = ask(way, client, window=window)
    assert (first.text, first.cost, first.cached) == ("answer to Hi", PRICES[window], False)
    assert first.cost_source == "prices"
    for other in WAYS if window == "2h" else (way,):
        again = ask(other, client, window="2h")
        assert (again.text, again.cost, again.cached) == ("answer to Hi", 0.0, True)
    # A live call of the same endpoint has the same key.
    assert client.call(MODEL, "Hi", endpoint="responses", cache="only").text == "answer to Hi"
    assert len(server.jobs) == 1
    client.close()
    rows = Ledger.read(own_cache.parent / "ledger.jsonl").rows("delivery")
    delivery = "background" if window == "soonest" else f"background-{window}"
    assert {row.delivery: float(row.spent) for row in rows if row.spent} == {delivery: PRICES[window]}


def test_a_job_is_sent_as_the_sdk_would_send_it(server: BackgroundServer, make_client: MakeClient) -> None:
    options = {"completion_window": "8h", "continuation_id": "night"}
    make_client().call(
        MODEL, "Hi", delivery="background", background_options=options, metadata={"run": "7"},
        reasoning_effort="none", logprobs=True,
    )  # fmt: skip
    (body,) = server.bodies
    assert body["background_options"] == options
    assert (body["background"], body["store"], body["metadata"]["run"]) == (True, True, "7")
    # The answer has what the request asked to be included.
    wanted = ["reasoning.encrypted_content", "message.output_text.logprobs"]
    assert server.queries[-1] == {"include[]": wanted}


@pytest.mark.parametrize("model", ["claude-haiku-5-5", "gemini/gemini-3.8-flash", "groq/openai/gpt-oss-20b"])
@pytest.mark.parametrize("way", ["call", "call_many"])
def test_a_host_without_jobs_is_refused_before_anything_is_sent(
    make_client: MakeClient, model: str, way: str
) -> None:
    client = make_client(keys={"anthropic": "k", "gemini": "k", "groq": "k"})
    with pytest.raises(LLMError, match=r"background|delivery"):
        if way == "call":
            client.call(model, "Hi", delivery="background", unsupported="drop")
        else:
            client.call_many(model, ["Hi"], delivery="background")
    assert client.batches() == []


@pytest.mark.parametrize("cache", ["use", "refresh", "only"])
@pytest.mark.parametrize("way", ["call", "call_many"])
def test_modes_of_the_cache(server: BackgroundServer, make_client: MakeClient, way: str, cache: str) -> None:
    client = make_client()
    missing = ask(way, client, cache="only")
    assert isinstance(missing, CacheMissError)
    ask(way, client)
    again = ask(way, client, cache=cache)
    assert again.cached is (cache != "refresh")
    assert len(server.jobs) == (2 if cache == "refresh" else 1)


@pytest.mark.parametrize("way", ["call", "call_many"])
def test_samples_are_jobs_of_their_own(server: BackgroundServer, make_client: MakeClient, way: str) -> None:
    client = make_client()
    result = ask(way, client, n=3)
    assert len(result.choices) == 3
    assert result.cost == pytest.approx(3 * PRICES["soonest"])
    assert len(server.jobs) == 3
    more = ask(way, client, n=4)
    assert (len(more.choices), len(server.jobs)) == (4, 4)
    assert more.cost == pytest.approx(PRICES["soonest"])


def test_rounds_of_tools_are_jobs_and_add_up(server: BackgroundServer, make_client: MakeClient) -> None:
    def square(number: int) -> int:
        """The square of a number."""
        return number**2

    def end(body: Any) -> Any:
        given = body["input"][-1]
        if given.get("type") == "function_call_output":
            return answer(body, f"it is {given['output']}")
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "square",
                "arguments": '{"number": 7}', "status": "completed"}  # fmt: skip
        return {**answer(body), "output": [item]}

    server.end = end
    options: Any = {"delivery": "background", "background_options": {"completion_window": "8h"}}
    client = make_client()
    result = client.call(MODEL, "Square 7", tools=[square], max_tool_rounds=3, **options)
    assert result.text == "it is 49"
    assert result.cost == pytest.approx(2 * PRICES["8h"])
    assert len(server.jobs) == 2
    assert client.call(MODEL, "Square 7", tools=[square], max_tool_rounds=3, **options).cached


def test_structured_answers_and_metadata(server: BackgroundServer, make_client: MakeClient) -> None:
    server.end = lambda body: answer(body, '{"n": 3}')
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    client = make_client()
    results = client.call_many(
        MODEL, ["a", "b"], delivery="background", response_format=schema, metadata=[{"id": 1}, {"id": 2}]
    )
    assert [result.parsed for result in results] == [{"n": 3}, {"n": 3}]
    assert [result.metadata for result in results] == [{"id": 1}, {"id": 2}]


@pytest.mark.parametrize("way", ["call", "acall", "call_many"])
def test_a_deadline_ends_the_wait_and_not_the_job(
    server: BackgroundServer, make_client: MakeClient, way: str
) -> None:
    server.polls_until_done = 10**6
    client = make_client()

    def attempt(longer: float) -> None:
        error = ask(way, client, deadline=0.3 * longer, budget=Budget(10.0))
        assert isinstance(error, APITimeoutError)
        if not server.jobs:
            raise TooSlowError
        assert error.phase == "deadline"
        assert "goes on" in str(error)
        assert error.maybe_billed

    patiently(attempt)
    server.polls_until_done = 0
    assert ask(way, make_client()).text == "answer to Hi"
    assert len(server.jobs) == 1


@pytest.mark.parametrize("way", ["call", "call_many"])
def test_a_budget_holds_the_worst_case_of_the_window(
    server: BackgroundServer, make_client: MakeClient, way: str
) -> None:
    client = make_client()
    # 1,000 tokens of answer cost 0.03 USD, 0.018 in the window of eight hours.
    budget = Budget(0.025)
    refused = ask(way, client, "a", max_tokens=1000, budget=budget)
    assert isinstance(refused, BudgetExceededError)
    assert not server.jobs
    answered = ask(way, client, "b", window="8h", max_tokens=1000, budget=budget)
    assert float(budget.spent) == pytest.approx(answered.cost)
    assert isinstance(ask(way, client, "c", window="8h", max_tokens=1000, budget=budget), BudgetExceededError)
    assert len(server.jobs) == 1


@pytest.mark.parametrize("way", ["call", "call_many"])
@pytest.mark.parametrize("window", ["soonest", "8h"])
def test_a_token_budget_counts_a_job_once(
    server: BackgroundServer, make_client: MakeClient, way: str, window: str
) -> None:
    client, budget = make_client(), Budget(4_000, unit="tokens")
    answered = ask(way, client, "a", window=window, max_tokens=1000, token_budget=budget)
    assert (budget.spent, budget.reserved) == (answered.usage.total_tokens, 0)
    refused = ask(way, client, "b", window=window, max_tokens=1000, token_budget=budget)
    assert isinstance(refused, BudgetExceededError)
    assert (refused.unit, len(server.jobs)) == ("tokens", 1)


def test_equal_calls_at_the_same_time_share_a_job(server: BackgroundServer, make_client: MakeClient) -> None:
    client = make_client()

    async def ask_at_once() -> list[Any]:
        return await asyncio.gather(*(client.acall(MODEL, "Hi", delivery="background") for _ in range(5)))

    results = asyncio.run(ask_at_once())
    assert {result.text for result in results} == {"answer to Hi"}
    assert len(server.jobs) == 1
    assert sum(result.cost for result in results) == pytest.approx(PRICES["soonest"])


def test_a_live_delivery_is_a_plain_call(server: BackgroundServer, make_client: MakeClient) -> None:
    result = make_client().call(MODEL, "Hi", delivery="live", endpoint="responses")
    assert (result.text, len(server.jobs)) == ("answer to Hi", 0)
