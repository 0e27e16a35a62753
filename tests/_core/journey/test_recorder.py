import contextlib
import itertools
import json
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import APIConnectionError, Client, Host, LLMError, PriceWarning, Response, predicate, verify
from llm_provider._core.money.pricing import PriceTable, default_prices_path
from llm_provider.simulator import Fault, Simulator
from support import ask as ask_once

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


@pytest.mark.parametrize("way", ["call", "stream"])
@pytest.mark.parametrize(
    ("fault", "times", "answered"),
    [
        (Fault(finish="no_choices"), 1, True),
        (Fault(finish="no_choices"), 2, False),
        (Fault(status=500), 1, True),
        (Fault(status=500), 2, True),
        (Fault(status=500), 3, False),
    ],
)
def test_every_failed_request_of_a_call_has_its_line_and_its_cost(
    own_cache: Path, simulator: Simulator, fault: Fault, times: int, answered: bool, way: str
) -> None:
    simulator.inject(fault, times=times)
    path = own_cache.parent / "ledger.jsonl"
    with Client(cache_dir=own_cache, ledger=path, max_retries=2) as client:
        outcome = outcome_of(client, way)
        usage = client.usage
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert isinstance(outcome, LLMError) is not answered
    assert [line["outcome"] for line in lines] == ["failed"] * times + ["answered"] * answered
    assert outcome.attempts == len(lines) == simulator.ledger().requests
    known = [Decimal(line["usd"]) for line in lines if line["usd"] is not None]
    assert (usage.spent + usage.wasted, usage.unknown) == (sum(known), len(lines) - len(known))
    if fault.finish and way == "call":
        # A whole reply without choices reports its usage.
        assert outcome.cost == float(sum(known)) == float(simulator.ledger().billed or 0) > 0
    else:
        assert (outcome.cost, len(known)) == (None, int(answered))
        assert all(Decimal(line["at_most"]) > 0 for line in lines[:times])


def outcome_of(client: Client, way: str) -> Response | LLMError:
    try:
        response: Response = ask_once(client, way, MODEL)
    except LLMError as error:
        return error
    return response


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


@pytest.mark.parametrize("model", ["gpt-6-luna", "gpt-6.1-sol"])
@pytest.mark.parametrize("order", [*itertools.permutations(["call", "decide", "sampled"])], ids="-".join)
def test_decisions_and_chats_of_a_model_have_their_own_prices(
    model: str, order: tuple[str, ...], client: Client, simulator: Simulator
) -> None:
    """Whichever was paid first in the process, a chat was billed without its output, or not at all."""
    question, table = [predicate("The text is polite.")], PriceTable.load()
    for way in order:
        with warnings.catch_warnings(action="ignore"):
            answer: Any = (
                client.call(model, "Hi", max_tokens=50)
                if way == "call"
                else client.decide(model, "Hi", question)
                if way == "decide"
                else client.decide(model, "Hi", question, method="sampled", draws=2)
            )
        name = f"decisions/{model}" if way == "decide" else model
        known = table.cost("openai", name, answer.usage)
        assert answer.cost == (None if known is None else float(known)), way


def test_an_answer_that_tells_no_usage_has_a_bound(client: Client, simulator: Simulator) -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hi"}}
    simulator.inject(Fault(body=json.dumps({"choices": [choice]})))
    assert client.call(MODEL, "Hi", max_tokens=100).cost is None
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


def ask(client: Client, way: str, model: str, **parameters: Any) -> list[Any]:
    prompts = ["What is 2+3?", "What is 3+3?"]
    if way == "stream":
        streams = [client.stream(model, prompt, **parameters) for prompt in prompts]
        return [list(deltas) and deltas.response for deltas in streams]
    if way == "embed":
        return [client.embed(model, [prompt], **parameters) for prompt in prompts]
    if way == "score":
        return [client.score(model, prompt, ["a", "b"], **parameters) for prompt in prompts]
    delivery = "batch" if way == "batch" else "live"
    return list(client.call_many(model, prompts, progress=False, delivery=delivery, **parameters))


UNPRICED = {
    "openai/gpt-unheard-of": ("call_many", "stream", "batch"),
    "openai/embedding-unheard-of": ("embed",),
    "azure/mine": ("call_many", "stream", "batch", "embed"),
    "bedrock_mantle/anthropic.claude-unheard-of": ("call_many", "stream"),
    "vertex_ai/gemini-unheard-of": ("call_many", "stream"),
    "groq/unheard-of": ("call_many", "stream"),
    "litellm/openai/gpt-unheard-of": ("call_many", "stream"),
    "lab/mine": ("call_many", "stream", "embed", "score"),
}
"""Models without a price, and the ways to ask them."""


@pytest.mark.parametrize(("model", "way"), [(model, way) for model in UNPRICED for way in UNPRICED[model]])
@pytest.mark.sampled(3)
def test_an_answer_without_a_price_says_why(
    model: str, way: str, own_cache: Path, simulator: Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VERTEX_API_KEY", "key")
    ledger, lab = own_cache.parent / "ledger.jsonl", Host("lab", simulator.url("vllm"), "vllm")
    with warnings.catch_warnings(record=True, action="default") as caught:
        for cache in ("first", "second")[: 1 if way == "batch" else 2]:
            with Client(cache_dir=own_cache.parent / cache, ledger=ledger, hosts=[lab]) as client:
                answers = ask(client, way, model)
    warned = [str(each.message) for each in caught if issubclass(each.category, PriceWarning)]
    assert [answer.cost for answer in answers] == [None, None]
    (reason,) = {answer.cost_unknown for answer in answers}
    assert warned == [f"{reason}; the cost is unknown"]
    assert model.rpartition("/")[2] in reason
    lines = map(json.loads, ledger.read_text().splitlines())
    assert {line["cost_unknown"] for line in lines} == {reason}


@pytest.mark.parametrize("model", ["azure/gpt-6.1-sol", "groq/openai/gpt-oss-120b", "litellm/openai/gpt-4o"])
def test_a_known_cost_says_nothing(client: Client, model: str) -> None:
    assert all(answer.cost and answer.cost_unknown is None for answer in ask(client, "call_many", model))


@pytest.mark.parametrize("way", ["call_many", "stream", "batch"])
def test_the_us_cost_a_tenth_more(way: str, client: Client, simulator: Simulator, tmp_path: Path) -> None:
    model, geo = "claude-opus-5-5", {"extra_body": {"inference_geo": "us"}}
    usual, in_us = ask(client, way, model), ask(client, way, model, **geo)
    costs = [sum(Decimal(repr(answer.cost)) for answer in answers) for answers in (usual, in_us)]
    assert costs[1] == costs[0] * Decimal("1.1")
    entry = simulator.ledger().model("anthropic", model)
    assert client.usage.spent == entry.billed == sum(costs)
    assert sum(answer.cost for answer in ask(client, way, model, **geo)) == 0
    # A batch costs half.
    assert client.usage.saved == costs[1] * (2 if way == "batch" else 1)
    if way == "call_many":
        estimates = [client.estimate(model, ["Hi"], **parameters).cost for parameters in ({}, geo)]
        assert estimates[1].high == pytest.approx(1.1 * estimates[0].high)
        path = client.call_many(model, ["What is 2+3?"], **geo).export(tmp_path / "us.zip").path
        assert "price" not in str(verify(path).not_computed)
