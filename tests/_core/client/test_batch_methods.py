"""The methods of `Client` for batches: arguments, errors and budgets."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from llm_provider import BatchError, Budget, BudgetExceededError, Client, Response
from llm_provider._core.client.batch_methods import parse_batch
from llm_provider.simulator import Fault, Simulator
from support import finish, wait_until

MODEL = "gpt-6.1-sol"
EITHER = pytest.mark.parametrize("way", ["call_many", "acall_many"])


@EITHER
def test_raising_waits_for_the_rest_and_keeps_it(client: Client, simulator: Simulator, way: str) -> None:
    simulator.inject(Fault(status=400), times=1, match="number 0")
    inputs = [f"number {number}" for number in range(20)]
    with pytest.raises(BatchError, match="1 of 20 calls failed") as caught:
        finish(getattr(client, way)(MODEL, inputs, on_error="raise"))
    assert list(caught.value.errors) == [0]
    assert caught.value.__cause__ is caught.value.results[0]
    # The nineteen others were stored: a second run asks for the one that failed only.
    again = client.call_many(MODEL, inputs, on_error="raise")
    assert sum(result.cached for result in again if isinstance(result, Response)) == 19


@EITHER
def test_rows_fill_a_template_and_metadata_travels(simulator: Simulator, own_cache: Path, way: str) -> None:
    rows = [{"sum": "1+1", "id": 1}, {"sum": "fails", "id": 2}, {"sum": "2+2", "id": 3}]
    simulator.inject(Fault(finish="no_choices"), times=None, match="fails")
    metadata: list[object] = []
    file = own_cache.parent / "calls.jsonl"
    with Client(
        cache_dir=own_cache, on_result=lambda result: metadata.append(result.metadata), ledger=file
    ) as client:
        client.call(MODEL, "What is 1+1?")
        options: dict[str, Any] = {"rows": rows, "metadata": lambda row: {"id": row["id"]}}
        call_many = getattr(client, way)
        results = finish(call_many(MODEL, "What is {sum}?", **options))
        (missed,) = finish(call_many(MODEL, ["new"], metadata=[4], cache="only"))
        assert client.estimate(MODEL, "What is {sum}?", **options).inputs == 3
    assert results.texts == ["2", None, "4"]
    assert [result.metadata for result in results] == [{"id": 1}, {"id": 2}, {"id": 3}]
    assert results[0].cached
    assert missed.metadata == 4
    assert results.to_pandas()["id"].tolist() == [1, 2, 3]
    assert metadata[0] is None
    assert sorted(map(str, metadata[1:])) == ["4", "{'id': 1}", "{'id': 2}", "{'id': 3}"]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["outcome"]: line.get("metadata") for line in lines[1:]} == {
        "hit": {"id": 1}, "failed": {"id": 2}, "answered": {"id": 3}
    }  # fmt: skip


MODELS = [MODEL, "claude-sonnet-5-5", "gemini-3.8-flash"]


@EITHER
def test_several_models_get_the_same_inputs(client: Client, way: str) -> None:
    inputs = (f"What is {number}+0?" for number in (0, 1, 2))
    options = {"max_tokens": 50, "metadata": ["a", "b", "c"], "budget": 1.0, "max_concurrent": 2}
    models = MODELS if way == "call_many" else tuple(MODELS)
    by_name = finish(getattr(client, way)(models, inputs, **options))
    assert list(by_name) == MODELS
    for results in by_name.values():
        assert results.texts == ["0", "1", "2"]
        assert [result.metadata for result in results] == ["a", "b", "c"]
    assert [results[0].provider for results in by_name.values()] == ["openai", "anthropic", "gemini"]
    assert sum(results.cost for results in by_name.values()) == pytest.approx(float(client.usage.spent))


def test_several_models_share_a_budget_and_raise_together(client: Client, simulator: Simulator) -> None:
    budget = Budget(0.000001)
    with pytest.raises(BatchError, match=r"6 of 6 calls failed") as caught:
        client.call_many(MODELS, ["a", "b"], max_tokens=1000, budget=budget, on_error="raise")
    assert {type(error) for error in caught.value.errors.values()} == {BudgetExceededError}
    assert simulator.ledger().requests == 0


def test_a_model_that_hangs_does_not_hold_the_others(simulator: Simulator, own_cache: Path) -> None:
    simulator.inject(Fault(hang=True), provider="openai", times=None)
    answered: list[object] = []

    async def sweep(client: Client) -> None:
        inputs = [f"number {number}" for number in range(40)]
        task = asyncio.create_task(client.acall_many(MODELS[:2], inputs, max_concurrent=1, max_tokens=50))
        assert await asyncio.to_thread(wait_until, lambda: len(answered) == len(inputs))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Client(cache_dir=own_cache, on_result=answered.append) as client:
        asyncio.run(sweep(client))
    assert wait_until(lambda: simulator.ledger().in_flight == 0)


def test_metadata_that_json_cannot_hold_loses_no_answer(simulator: Simulator, own_cache: Path) -> None:
    class Odd:
        def to_dict(self) -> None:
            raise ValueError("no")

    file, values = own_cache.parent / "calls.jsonl", [2**80, "\ud800", Odd(), {1, 2}]
    with Client(cache_dir=own_cache, ledger=file) as client:
        results = client.call_many(
            MODEL, [f"number {n}" for n in range(4)], metadata=values, max_concurrent=1
        )
    assert [result.metadata for result in results] == values
    lines = [json.loads(line)["metadata"] for line in file.read_text().splitlines()]
    assert lines[:2] == values[:2]
    assert lines[2].startswith("<")
    assert lines[3] == [1, 2]


def test_a_parameter_is_known_under_the_function_that_has_it() -> None:
    with pytest.raises(TypeError, match=r"iter_many\(\) got an unexpected parameter 'on_error'"):
        parse_batch("iter_many", "a", ["a"], {"on_error": "raise"}, {})  # type: ignore[typeddict-unknown-key]  # on purpose


def test_metadata_of_a_call_stays_a_parameter() -> None:
    parsed = parse_batch("call_many", "m", ["a"], {"metadata": {"run": "7"}}, {})
    assert parsed.inputs[0].metadata is None
    assert parsed.parameters == {"metadata": {"run": "7"}}
    parsed = parse_batch("call_many", "m", ["a"], {"metadata": [1]}, {})
    assert parsed.inputs[0].metadata("a") == 1
    assert parsed.parameters == {}
