"""What a user reads of a batch of the provider is the sum of its rows, as the ledger and the budget have.

The simulation has live calls: samples, rounds, repairs, retries, streams and failures.
"""

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, field_validator

from llm_provider import Budget, Client, Response, Results, Usage
from llm_provider._core.money.pricing import default_prices_path
from llm_provider.simulator import Simulator

FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("gpt-5.5", {"reasoning_effort": "none"}),
    "responses": ("gpt-5.5", {"endpoint": "responses"}),
    "anthropic": ("claude-haiku-5-5", {}),
    "gemini": ("gemini-3.8-flash", {}),
}


def sum_of_costs(lines: Sequence[dict[str, Any]]) -> float | None:
    """The sum of some lines; None if one of them is not known."""
    known = [Decimal(line["usd"]) for line in lines if line["usd"] is not None]
    return float(sum(known)) if len(known) == len(lines) else None


def is_same(amount: float | None, other: float | None) -> bool:
    return amount == other or (
        None not in (amount, other) and math.isclose(amount or 0, other or 0, rel_tol=1e-12)
    )


def billed_lines(file: Path) -> list[dict[str, Any]]:
    """The lines of a ledger's file that are no hits."""
    lines = [json.loads(text) for text in file.read_text().splitlines()]
    return [line for line in lines if line["outcome"] != "hit"]


def check(outcomes: Results[Response], lines: list[dict[str, Any]]) -> None:
    """Compare outcomes with the ledger."""
    assert is_same(None if outcomes.cost.unknown else float(outcomes.cost), sum_of_costs(lines)), lines
    assert outcomes.maybe_billed == any(outcome.maybe_billed for outcome in outcomes) == bool(lines), lines
    assert outcomes.attempts == sum(outcome.attempts for outcome in outcomes)
    usages = [Usage(**line["usage"]) for line in lines if line.get("usage")]
    paid = [outcome.usage for outcome in outcomes if not outcome.cached and outcome.usage is not None]
    assert sum(paid, Usage()) == sum(usages, Usage())
    for outcome in outcomes:
        if isinstance(outcome, Response) and not outcome.cached:
            assert outcome.price == outcome.cost
        assert outcome.maybe_billed or (outcome.cost, outcome.attempts - len(outcome.failures)) == (0, 0)


class Number(BaseModel):
    number: int


class NoNumber(Number):
    @field_validator("number")
    @classmethod
    def never(cls, number: int) -> int:
        raise ValueError("no number is good")


@pytest.mark.parametrize("failing", ["nothing", "rows", "all rows", "types"])
@pytest.mark.parametrize("resend", ["batch", "live"])
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.sampled(13)
def test_the_results_of_a_batch_sum_up_to_its_lines(
    name: str, n: int, failing: str, resend: Any, simulator: Simulator, tmp_path: Path
) -> None:
    model, own = FORMATS[name]
    simulator.configure(
        prices=default_prices_path(), batch_errored={"rows": 0.5, "all rows": 1.0}.get(failing, 0.0)
    )
    parameters: dict[str, Any] = {**own, "n": n, "max_tokens": 300, "resend": resend, "delivery": "batch"}
    parameters["response_format"] = NoNumber if failing == "types" else Number
    prompts, file, budget = ["a", "b", "a", "c"], tmp_path / "calls.jsonl", Budget(10)
    with Client(cache_dir=tmp_path / "cache", ledger=file) as client:
        outcomes = client.call_many(
            model, prompts, metadata=["a", "b", "a again", "c"], budget=budget, **parameters
        )
        rows = 3 * (1 if n == 1 or name == "chat" else n)
        resent = outcomes.attempts - rows
        assert (resent > 0) == (failing in ("rows", "all rows")), outcomes.attempts
        lines = billed_lines(file)
        check(outcomes, lines)
        assert is_same(float(budget.spent), float(outcomes.cost))
        for number, described in enumerate(["a", "b", "a again", "c"]):
            own_lines = [line for line in lines if line["metadata"] == described]
            assert is_same(outcomes[number].cost, sum_of_costs(own_lines))
        if failing == "types":
            assert [error.samples for error in outcomes.errors] == [()] * 4
            return
        assert not outcomes.errors
        assert is_same(float(outcomes.saved), outcomes[0].cost)
        again = client.call_many(model, prompts, **{**parameters, "delivery": "live", "resend": None})
    assert (again.attempts, again.cost, again.maybe_billed) == (0, 0, False)
    assert is_same(float(again.price), float(outcomes.price))
    assert is_same(float(again.saved), float(again.price))
