"""What a user reads of a call is the sum over all its requests, as the ledger, the budget and the bill have.

Samples, rounds, repairs, retries, streams, deliveries and failures are crossed, for every wire format.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator

from llm_provider import (
    Budget,
    BudgetExceededError,
    Client,
    LLMError,
    ModelDriftError,
    Response,
    Results,
    Usage,
    track,
)
from llm_provider._money.pricing import default_prices_path
from llm_provider.simulator import Fault, Simulator
from support import ask, wait_until

FORMATS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("gpt-5.5", {"reasoning_effort": "none"}),
    "responses": ("gpt-5.5", {"endpoint": "responses"}),
    "anthropic": ("claude-haiku-5-5", {}),
    "gemini": ("gemini-3.8-flash", {}),
}
EVERY_FORMAT = pytest.mark.parametrize("name", FORMATS)
FAULTS = {
    "none": Fault(),
    "refused": Fault(status=429, retry_after="0.001"),
    "wrong": Fault(status=400),
    "failed": Fault(status=500, retry_after="0.001"),
    "unusable": Fault(finish="no_choices"),
    "broken": Fault(abort_after=1, text="some words that are cut"),
    "cut": Fault(cut_after=1, text="some words that are cut"),
    "mismatched": Fault(text="not JSON"),
    "cut short": Fault(finish="length"),
}
NUMBER = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "schema": {
            "type": "object",
            "properties": {"number": {"type": "integer"}},
            "required": ["number"],
            "additionalProperties": False,
        },
    },
}


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def again() -> str:
    """Has the model call it again."""
    return "use the tool again({})"


KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": ("What is 2+2?", {}),
    "schema": ("Give a number.", {"response_format": NUMBER}),
    "tools": ('use the tool add({"a": 2, "b": 3})', {"tools": [add], "max_tool_rounds": 3}),
    "endless": ("use the tool again({})", {"tools": [again], "max_tool_rounds": 2}),
}


@dataclass(frozen=True)
class Plan:
    """One call, and what happens to its requests."""

    kind: str = "plain"
    way: str = "call"
    n: int = 1
    faults: tuple[str, ...] = ()
    max_retries: int = 1
    max_repairs: int = 1
    limit: str | None = None

    def parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "max_tokens": 300,
            "max_retries": self.max_retries,
            **KINDS[self.kind][1],
        }
        if self.n > 1:
            parameters["n"] = self.n
        if self.kind == "schema":
            parameters["max_repairs"] = self.max_repairs
        if self.limit == "deadline":
            parameters["deadline"] = 0.3
        if self.limit == "strict":
            parameters["strict_model"] = True
        return parameters


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    kind = draw(st.sampled_from(list(KINDS)))
    return Plan(
        kind,
        draw(st.sampled_from(["call", "acall", "many", "equal", "stream", "astream"])),
        draw(st.sampled_from([1, 2, 4])) if kind in ("plain", "schema") else 1,
        tuple(draw(st.lists(st.sampled_from(list(FAULTS)), max_size=6))),
        draw(st.integers(0, 2)),
        draw(st.integers(0, 2)),
        draw(st.sampled_from([None, None, None, "budget", "deadline", "strict"])),
    )


@dataclass
class Run:
    """A client, and what its calls did."""

    client: Client
    simulator: Simulator
    ledger: Path
    names: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, way: str, model: str, prompt: str, parameters: dict[str, Any]) -> list[Response | LLMError]:
        """The outcomes of a call that is made in some way."""
        many = {"many": ([prompt], [prompt]), "equal": ([prompt] * 3, None)}.get(way)
        try:
            if many is not None:
                prompts, metadata = many
                return list(
                    self.client.call_many(model, prompts, metadata=metadata, progress=False, **parameters)
                )
            return [ask(self.client, way, model, prompt, **parameters)]
        except LLMError as error:
            return [error]

    def billed(self, tag: str) -> list[dict[str, Any]]:
        """The lines of the ledger's file that have a tag and are no hits."""
        texts = self.ledger.read_text().splitlines() if self.ledger.exists() else []
        lines = [json.loads(text) for text in texts]
        return [line for line in lines if line.get("tag") == tag and line["outcome"] != "hit"]


def sum_of_costs(lines: Sequence[dict[str, Any]]) -> float | None:
    """The sum of some lines; None if one of them is not known."""
    known = [Decimal(line["usd"]) for line in lines if line["usd"] is not None]
    return float(sum(known)) if len(known) == len(lines) else None


def summed(costs: Sequence[float | None]) -> float | None:
    return None if None in costs else math.fsum(cost or 0 for cost in costs)


def is_same(amount: float | None, other: float | None) -> bool:
    return amount == other or (
        None not in (amount, other) and math.isclose(amount or 0, other or 0, rel_tol=1e-12)
    )


def check(run: Run, outcomes: list[Response | LLMError], tag: str, requests: int, *, exact: bool) -> None:
    """Compare outcomes with the ledger, and their requests with those that reached the server.

    Args:
        run: The run.
        outcomes: Everything that was asked under the tag.
        tag: The tag.
        requests: Requests that the server has seen.
        exact: Whether no request was broken off by a deadline.
    """
    cost = summed([outcome.cost for outcome in outcomes])
    if not exact:
        wait_until(lambda: is_same(sum_of_costs(run.billed(tag)), cost))
    lines = run.billed(tag)
    assert is_same(cost, sum_of_costs(lines)), lines
    assert any(outcome.maybe_billed for outcome in outcomes) == bool(lines), lines
    if tag == "first":
        # Later, the usage of a response may contain that of stored samples.
        usages = [Usage(**line["usage"]) for line in lines if line.get("usage")]
        paid = [outcome.usage for outcome in outcomes if not outcome.cached and outcome.usage is not None]
        assert sum(paid, Usage()) == sum(usages, Usage())
        for outcome in outcomes:
            if isinstance(outcome, Response) and not outcome.cached:
                assert outcome.price == outcome.cost
    attempts = sum(outcome.attempts for outcome in outcomes)
    assert attempts == requests if exact else attempts >= requests
    results = Results(outcomes)
    assert (results.attempts, results.maybe_billed) == (attempts, bool(lines))
    assert is_same(None if results.cost.unknown else float(results.cost), cost)
    for outcome in outcomes:
        assert outcome.maybe_billed or (outcome.cost, outcome.attempts - len(outcome.failures)) == (0, 0)


@EVERY_FORMAT
@pytest.mark.filterwarnings("ignore:an earlier answer is empty")
@pytest.mark.parametrize("examples", [4, pytest.param(25, marks=pytest.mark.long)])
def test_a_user_reads_what_the_ledger_the_budget_and_the_bill_have(
    name: str, examples: int, simulator: Simulator, tmp_path: Path
) -> None:
    @settings(max_examples=examples)
    @given(plan=plans())
    def compare(plan: Plan) -> None:
        compare_sums(name, plan, simulator, tmp_path)

    compare()


def compare_sums(name: str, plan: Plan, simulator: Simulator, tmp_path: Path) -> None:
    model, own = FORMATS[name]
    prompt, parameters = KINDS[plan.kind][0], {**own, **plan.parameters()}
    simulator.clear()
    simulator.configure(prices=default_prices_path())
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    folder.mkdir()
    file = folder / "calls.jsonl"
    with Client(cache_dir=folder / "cache", ledger=file, rate_control="independent") as client:
        run = Run(client, simulator, file)
        if plan.limit == "strict":
            simulator.configure(snapshot_suffix="-2026-08-01")
            client.call(model, "first", **own)
            simulator.clear()
            simulator.configure(prices=default_prices_path(), snapshot_suffix="-2026-10-21")
        for fault in plan.faults:
            simulator.inject(FAULTS[fault])
        if plan.limit == "deadline":
            simulator.inject(Fault(hang=True), times=None)
        budget = Budget(10)
        if plan.limit == "budget":
            (refusal,) = run.ask("call", model, prompt, {**parameters, "budget": 1e-9})
            assert isinstance(refusal, BudgetExceededError)
            budget = Budget(refusal.needed)
        with track("first"):
            outcomes = run.ask(plan.way, model, prompt, {**parameters, "budget": budget})
        server = simulator.ledger()
        check(run, outcomes, "first", server.requests, exact=plan.limit != "deadline")
        cost = summed([outcome.cost for outcome in outcomes])
        if cost is not None:
            assert is_same(float(budget.spent), cost)
            unfinished = sum(billed.unfinished_billed or 0 for billed in server.models)
            assert is_same(float((server.billed or 0) - unfinished), cost)
        if plan.way == "many":
            assert {line.get("metadata") for line in run.billed("first")} <= {prompt}
        simulator.clear()
        simulator.configure(prices=default_prices_path())
        parameters.pop("deadline", None)
        with track("second"):
            second = run.ask("call", model, prompt, {**parameters, "strict_model": False})
        check(run, second, "second", simulator.ledger().requests, exact=True)
        check_second(plan, outcomes, second)


def check_second(plan: Plan, first: list[Response | LLMError], second: list[Response | LLMError]) -> None:
    """The second call pays for what the first has not stored, and knows what the rest cost."""
    (later,) = second
    best = next((outcome for outcome in first if outcome.attempts or isinstance(outcome, Response)), first[0])
    if isinstance(best, Response):
        assert not best.cached or best.cost == 0
        if isinstance(later, Response) and later.cached:
            assert is_same(later.price, best.price)
            assert is_same(float(Results([later]).saved), best.price or 0)
    else:
        assert len(best.samples) < plan.n
        assert all(isinstance(sample, Response) and len(sample.choices) == 1 for sample in best.samples)
        if isinstance(later, Response) and best.samples and not isinstance(best, ModelDriftError):
            # The cache keeps no cut and no empty answer.
            kept = [choice for choice in best.samples if choice.finish_reason == "stop" and choice.text]
            assert all(sample.text in later.texts for sample in kept)
            assert plan.kind != "plain" or later.attempts <= plan.n - len(kept)


class Number(BaseModel):
    number: int


class NoNumber(Number):
    @field_validator("number")
    @classmethod
    def never(cls, number: int) -> int:
        raise ValueError("no number is good")


FAILING = ["nothing", "rows", "all rows", "types"]


@pytest.mark.parametrize("failing", FAILING)
@pytest.mark.parametrize("resend", ["batch", "live"])
@pytest.mark.parametrize("n", [1, 3])
@EVERY_FORMAT
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
        run = Run(client, simulator, file)
        with track("first"):
            outcomes = client.call_many(
                model, prompts, metadata=["a", "b", "a again", "c"], budget=budget, **parameters
            )
        rows = 3 * (1 if n == 1 or name == "chat" else n)
        resent = outcomes.attempts - rows
        assert (resent > 0) == (failing in ("rows", "all rows")), outcomes.attempts
        check(run, list(outcomes), "first", outcomes.attempts, exact=True)
        assert is_same(float(budget.spent), float(outcomes.cost))
        lines = run.billed("first")
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
