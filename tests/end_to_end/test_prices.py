"""The price of an answer is its own. What failed requests may have cost is an upper bound beside it.

Each way to call is crossed with the failures before its answer. What the user reads, the ledger, and the
simulator's bill, whose arithmetic is separate, agree.
"""

import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas
import pytest
from pydantic import BaseModel, Field

from llm_provider import Budget, Client, LLMError, Response, Results, verify
from llm_provider._core.money.pricing import default_prices_path
from llm_provider._core.words import format_usd
from llm_provider.simulator import Fault, Simulator

CHAT = "gpt-5.5"
PLAIN: dict[str, Any] = {"max_tokens": 40}


class City(BaseModel):
    people: int = Field(ge=1)


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


FORM = {"response_format": City, **PLAIN}


def stream(client: Client, **more: Any) -> Any:
    with client.stream(CHAT, "a", **PLAIN, **more) as deltas:
        for _ in deltas:
            pass
        return deltas.response


Way = Callable[..., Any]
USE = 'use the tool add({"a": 2, "b": 3})'
WAYS: dict[str, Way] = {
    "call": lambda client, **more: client.call(CHAT, "a", **PLAIN, **more),
    "responses": lambda client, **more: client.call("gpt-6.1-sol", "a", **PLAIN, **more),
    "claude": lambda client, **more: client.call("claude-haiku-5-5", "a", **PLAIN, **more),
    "gemini": lambda client, **more: client.call("gemini-3.8-flash", "a", **PLAIN, **more),
    "stream": stream,
    "samples in one request": lambda client, **more: client.call(
        CHAT, "a", n=3, temperature=1, **PLAIN, **more
    ),
    "samples in three requests": lambda client, **more: client.call(
        "claude-haiku-5-5", "a", n=3, **PLAIN, **more
    ),
    "repair": lambda client, **more: client.call(CHAT, "a", **FORM, **more),
    "rounds": lambda client, **more: client.call(CHAT, USE, tools=[add], max_tool_rounds=2, **PLAIN, **more),
    "fallback": lambda client, **more: client.call(
        CHAT, "a", fallback=["claude-haiku-5-5"], max_retries=0, **PLAIN, **more
    ),
    "embed": lambda client, **more: client.embed("text-embedding-3-small", ["a", "bc", "def"], **more),
    "many": lambda client, **more: client.call_many(CHAT, list("abc"), progress=False, **PLAIN, **more),
    "batch": lambda client, **more: client.call_many(
        CHAT, list("abc"), delivery="batch", resend="live", progress=False, **PLAIN, **more
    ),
}

FAILURES: dict[str, tuple[Fault, bool, int]] = {
    "500": (Fault(status=500), True, 3),
    "429": (Fault(status=429, retry_after="0.01"), False, 3),
    "cut": (Fault(abort_after=0), True, 3),
    "no JSON": (Fault(body="<html>"), True, 1),
}
"""What fails, whether it may have been billed, and how often it is tried again."""


def read(client: Client) -> tuple[Decimal, Decimal, int, Decimal | None]:
    """Spent, wasted, unknown, and the most that the unknown can be, as the ledger has them."""
    ledger = client.usage
    return ledger.spent, ledger.total.wasted, ledger.unknown, ledger.unknown_at_most


def is_close(amount: float | Decimal | None, other: float | Decimal | None) -> bool:
    return None not in (amount, other) and math.isclose(amount or 0, other or 0, rel_tol=1e-9, abs_tol=1e-12)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", FAILURES)
@pytest.mark.parametrize("times", [0, 1, 3])
@pytest.mark.sampled(7)
def test_what_is_read_is_what_is_entered_and_billed(
    simulator: Simulator, tmp_path: Path, way: str, kind: str, times: int
) -> None:
    fault, may_be_billed, most_times = FAILURES[kind]
    budget = Budget(10.0)
    simulator.configure(prices=default_prices_path(), batch_errored=0.4)
    with Client(cache_dir=tmp_path / "cache", budget=budget) as client:
        if times:
            # Not the requests about a batch, which are not billed.
            match, provider = "delivery" if way == "batch" else None, "openai" if way == "fallback" else None
            simulator.inject(fault, provider, min(times, most_times), match)
        if way == "repair":
            simulator.inject(Fault(text='{"people": 0}'))
            simulator.inject(Fault(text='{"people": 1}'))
        result = WAYS[way](client)
        results: Results[Any] = result if isinstance(result, Results) else Results([result])
        assert not results.errors
        spent, wasted, unknown, at_most = read(client)
        # What the answers cost is known, whatever failed before.
        assert results.price.unknown == 0
        assert is_close(results.price, spent)
        assert is_close(results.cost, spent + wasted)
        assert bool(results.cost.unknown) == bool(unknown) == bool(way != "batch" and times and may_be_billed)
        assert results.cost.at_most is not None
        assert is_close(results.cost.at_most, at_most)
        assert ("at most" in str(results.cost)) == ("at most" in repr(results)) == bool(unknown)
        amount = format_usd(results.cost, unknown, at_most)
        assert repr(client).endswith(f", {amount})"), (repr(client), amount)
        billed = simulator.ledger().billed
        assert billed is not None
        assert is_close(billed, spent) or spent <= billed <= spent + wasted + (at_most or 0)
        # A budget counts the worst case.
        assert is_close(budget.spent, spent + wasted + (at_most or 0))
        assert results.saved == 0
        for each in results:
            known = each.cost is not None
            assert known == (each.cost_bounds is None)
            least, most = (each.cost, each.cost) if known else each.cost_bounds
            assert each.price <= least + 1e-12
            assert least <= most
        # A hit has the price of the answer, and no part of what failed.
        again = WAYS[way](client, cache="only")
        hits: Results[Any] = again if isinstance(again, Results) else Results([again])
        assert (hits.cost, hits.cost.unknown) == (0, 0)
        assert [hit.price for hit in hits] == [each.price for each in results]
        assert is_close(hits.saved, spent)
        assert all(hit.cost_bounds is None for hit in hits)
        if way != "embed":
            check_files(client, results, tmp_path)


def check_files(client: Client, results: Results[Any], folder: Path) -> None:
    """The same is in the lines of results, in the table and in evidence."""
    results.to_jsonl(folder / "results.jsonl")
    back = Results.from_jsonl(folder / "results.jsonl")
    assert (repr(back.cost), repr(back.price)) == (repr(results.cost), repr(results.price))
    check_sums(results, folder)
    written = str(results.export(folder / "results.evidence.zip", client=client)).splitlines()
    assert sorted(written) == sorted(str(verify(folder / "results.evidence.zip")).splitlines())
    assert written[0].endswith(f" {results.cost} paid, {results.price} when bought")
    assert not any("not computed: price" in line for line in written)


def check_sums(results: Results[Any], folder: Path) -> None:
    """The sums of a table are the cost, in memory and in files."""
    frame = results.to_pandas()
    frame.to_csv(path := folder / "table.csv")
    for table in (frame, pandas.read_csv(path), Results(reversed(results)).to_pandas()):
        assert is_close(table["cost_at_least"].sum(), results.cost)
        if results.cost.at_most is not None:
            assert is_close(table["cost_at_most"].sum(), results.cost + results.cost.at_most)
        known = table["cost"].notna()
        assert (table["cost"] == table["cost_at_least"])[known].all()
        assert (~known).sum() == results.cost.unknown


@pytest.mark.parametrize("fallback", [None, "claude-haiku-5-5"])
@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("model", [CHAT, "gemini-3.8-flash"])
@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.sampled(3)
def test_sums_of_a_table_are_what_is_entered(
    simulator: Simulator, tmp_path: Path, model: str, samples: int, fallback: str | None, retries: int
) -> None:
    simulator.configure(prices=default_prices_path())
    options: dict[str, Any] = {"n": samples, "max_retries": retries, "outage_patience": 0.1, **PLAIN}
    options |= {"fallback": [fallback]} if fallback else {}
    with Client(cache_dir=tmp_path / "cache") as client:
        client.call_many(model, ["stored"], **options)
        before = read(client)
        simulator.inject(Fault(status=500), times=None, match="fails")
        # One that is refused has a known cost of nothing, and the second answer comes after a failure.
        simulator.inject(Fault(status=400), times=None, match="refused")
        simulator.inject(Fault(status=500), times=1, match="again")
        questions = ["stored", "again", "fails always", "refused", "plain"]
        results = client.call_many(model, questions, **options)
        spent, wasted, unknown, _ = read(client)
        assert results.errors
        assert unknown
        assert is_close(results.cost, spent + wasted - before[0] - before[1])
        check_sums(results, tmp_path)


def test_a_failure_without_an_answer_has_its_bounds(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=500), times=None)
    (error,) = client.call_many(CHAT, ["a"], max_retries=2, outage_patience=0.1, progress=False, **PLAIN)
    assert isinstance(error, LLMError)
    assert error.cost is None
    assert error.cost_bounds == (0.0, pytest.approx(float(client.usage.unknown_at_most or 0)))
    assert LLMError.from_dict(json.loads(json.dumps(error.to_dict()))).cost_bounds == error.cost_bounds
    assert str(Results([error]).cost).startswith("at most $")


def test_parts_that_were_stored_are_no_part_of_the_cost(client: Client, simulator: Simulator) -> None:
    """Half of the samples were stored, and a request failed before the other half."""
    first = client.call("claude-haiku-5-5", "a", n=2, **PLAIN)
    simulator.inject(Fault(status=500))
    whole = client.call("claude-haiku-5-5", "a", n=4, **PLAIN)
    results: Results[Response] = Results([whole])
    assert not whole.cached
    assert is_close(results.price, 2 * (first.price or 0))
    assert is_close(results.saved, first.price)
    assert is_close(results.cost + results.saved, results.price)
    assert is_close(client.usage.spent, results.price)
    assert is_close(results.cost.at_most, client.usage.unknown_at_most)


@pytest.mark.parametrize("way", ["call", "stream", "embed"])
def test_a_request_that_timed_out_may_have_been_billed(
    client: Client, simulator: Simulator, way: str
) -> None:
    simulator.inject(Fault(hang=True))
    results: Results[Any] = Results([WAYS[way](client, timeout=1.0)])
    assert is_close(results.price, client.usage.spent)
    assert is_close(results.cost.at_most, client.usage.unknown_at_most)
    assert "at most" in str(results.cost)
