"""Results are told to `on_result`, whatever the way to call."""

import asyncio
import contextlib
import warnings
from pathlib import Path
from typing import Any

import pytest

from llm_provider import (
    AskedCall,
    BadRequestError,
    Budget,
    Client,
    LLMError,
    PriceWarning,
    RequestError,
    Response,
    UnknownPriceError,
    track,
)
from llm_provider._core.client.call_runner import uses_batch_api
from llm_provider._core.formats.shared.batches import DAY
from llm_provider.simulator import Fault, Simulator
from support import WAYS, ask

MODEL = "gpt-6.1-sol"


@pytest.mark.parametrize("way", WAYS[:6])
def test_on_result_receives_each_result(simulator: Simulator, tmp_path: Path, way: str) -> None:
    results: list[Response | LLMError] = []
    simulator.inject(Fault(status=400), times=None, match="wrong")
    with Client(cache_dir=tmp_path, on_result=results.append) as client:
        ask(client, way, MODEL)
        ask(client, way, MODEL)
        with contextlib.suppress(BadRequestError):
            ask(client, way, MODEL, "wrong")
    first, again, failed = results
    assert isinstance(first, Response)
    assert isinstance(again, Response)
    assert (first.cached, again.cached, type(failed)) == (False, True, BadRequestError)


def test_an_on_result_that_raises_loses_no_answer(simulator: Simulator, tmp_path: Path) -> None:
    def observe(result: object) -> None:
        raise ZeroDivisionError

    with (
        Client(cache_dir=tmp_path, on_result=observe) as client,
        pytest.warns(RuntimeWarning, match="on_result raised ZeroDivisionError"),
    ):
        assert client.call(MODEL, "1+1?").text == "2"


def len_of(text: str) -> int:
    """The length of a text."""
    return len(text)


def test_an_on_result_of_two_arguments_gets_the_call_too(simulator: Simulator, tmp_path: Path) -> None:
    pairs: list[tuple[Any, AskedCall | None]] = []
    with Client(cache_dir=tmp_path, on_result=lambda result, call: pairs.append((result, call))) as client:
        with track("outer"), track("inner"):
            client.call("openai/gpt-6.1-sol", "Hi")
        client.call_many("gpt-6.1-sol", ["Hi", "new"], metadata=["first", "second"])
        client.call_many("gpt-6.1-sol", ["Hi", "new"], metadata=["third", "fourth"])
        with client.stream("claude-sonnet-5-5", "streamed", max_tokens=50) as deltas:
            assert "".join(delta.text for delta in deltas)
        client.embed("text-embedding-3-small", ["one", "two"])
        simulator.inject(Fault(status=400), times=1)
        with pytest.raises(LLMError):
            client.call("gpt-6.1-sol", "bad")
        client.call("gpt-6.1-sol", "no tool", tools=[len_of], max_tool_rounds=1, tool_choice="none")
        with pytest.raises(RequestError):
            client.call("gpt-6.1-sol", "bad", max_tokens=-1)
    *calls, (_, refused) = pairs
    assert refused is None
    rounds, calls = calls[-1], calls[:-1]
    assert rounds[1] is not None
    assert (rounds[0].text, rounds[1].messages[0]["content"]) == ("echo: no tool", "no tool")
    made = [call for _, call in calls if call is not None]
    assert len(made) == len(calls) == 8
    assert (made[0].model, made[0].tag, made[0].operation) == ("openai/gpt-6.1-sol", "outer/inner", "chat")
    assert made[0].messages == ({"role": "user", "content": "Hi"},)
    batches = {call.metadata: call.messages[0]["content"] for call in made[1:5]}
    assert batches == {"first": "Hi", "second": "new", "third": "Hi", "fourth": "new"}
    assert [call.provider for call in made[5:]] == ["anthropic", "openai", "openai"]
    assert made[6].messages == ("one", "two")
    assert made[7].messages[0]["content"] == "bad"
    with pytest.raises(AttributeError):
        made[7].model = "another"  # type: ignore[misc]  # it is frozen


@pytest.mark.parametrize(
    ("model", "parameters", "batch"),
    [
        ("gpt-5.5", {}, True),
        ("gpt-5.5", {"deadline": 3600.0}, False),
        ("gpt-5.5", {"deadline": DAY}, True),
        ("gpt-5.5", {"cache": "off"}, False),
        ("claude-haiku-5-5", {}, True),
        ("gemini/gemini-3.8-flash", {}, True),
        ("deepseek/deepseek-v4-pro", {}, False),
        ("together_ai/zai-org/GLM-5.3", {}, False),
        ("local/any", {}, False),
    ],
)
def test_auto_goes_by_deadline_and_price(model: str, parameters: dict[str, Any], batch: bool) -> None:
    with Client() as client:
        assert uses_batch_api(client._engine, client._runner.prices, model, "auto", parameters) is batch


def test_auto_sends_live_what_must_be_back_soon(client: Client, simulator: Simulator) -> None:
    client.call_many("gpt-5.5", ["a"], delivery="auto", deadline=60.0)
    client.call_many("gpt-5.5", ["b"], delivery="auto")
    ends = [request.path.rpartition("/")[2] for request in simulator.requests()]
    assert (ends.count("completions"), "batches" in ends) == (1, True)


def test_an_input_that_is_not_valid_fails_in_its_place(client: Client) -> None:
    good, bad = client.call_many("gpt-5.5", ["1+1?", [{"role": "nobody"}]], delivery="batch")  # type: ignore[list-item]  # wrong on purpose
    assert good.text == "2"  # type: ignore[union-attr]  # it did not fail
    assert isinstance(bad, RequestError)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("models", "budget", "warned"),
    [
        (["gpt-6.1-sol", "claude-hiku-5-5"], 1.0, "claude-haiku-5-5"), ("gpt-6.1-sool", 1.0, "gpt-6.1-sol"),
        (["gpt-6.1-sol", "claude-hiku-5-5"], Budget(1, allow_unknown=True), None),
        (["gpt-6.1-sol", "claude-haiku-5-5"], 1.0, None),
    ],
)  # fmt: skip
def test_a_batch_that_its_budget_refuses_warns_before_anything_is_sent(
    models: Any, budget: Any, warned: str | None, is_async: bool, client: Client, simulator: Simulator
) -> None:
    batch: dict[str, Any] = {"max_tokens": 20, "budget": budget}

    def run() -> Any:
        if is_async:
            return asyncio.run(client.acall_many(models, ["1+1?"], **batch))
        return client.call_many(models, ["1+1?"], **batch)

    if warned is None:
        with warnings.catch_warnings(action="ignore"):
            run()
        return
    with pytest.raises(PriceWarning, match=f"only stored answers of .*did you mean {warned}"):
        run()  # warnings are errors
    assert simulator.ledger().requests == 0
    with pytest.warns(PriceWarning):
        results = run()
    failed = results["claude-hiku-5-5"] if isinstance(results, dict) else results
    assert [type(each) for each in failed] == [UnknownPriceError]


def test_an_estimate_shows_both_prices(client: Client, simulator: Simulator) -> None:
    assert {"standard", "batch"} <= set(client.estimate("gpt-5.5", ["a"], delivery="auto").costs)
    assert simulator.ledger().requests == 0
    assert "batch" in client.estimate("text-embedding-3-small", ["a"], delivery="batch").costs
