"""Budgets: reserved at batch prices, counted when the rows are back."""

import sys
from pathlib import Path

import pytest

from llm_provider import Budget, BudgetExceededError, Client, UnknownPriceError
from llm_provider.simulator import Simulator


def test_a_budget_that_is_too_small_for_live_may_do_for_a_batch(client: Client, simulator: Simulator) -> None:
    with pytest.raises(BudgetExceededError):
        client.call_many("gpt-5.5", ["1+1?"], max_tokens=100, budget=1e-6, delivery="batch")
    assert client.batches() == []
    live, batch = 0.0164, 0.0082
    bound = (live + batch) / 2
    (refused,) = client.call_many("gpt-5.5", ["1+1?"], max_tokens=100, budget=bound)
    assert isinstance(refused, BudgetExceededError)
    assert client.call_many("gpt-5.5", ["1+1?"], max_tokens=100, budget=bound, delivery="batch")


def test_an_unknown_price_is_refused(client: Client, simulator: Simulator) -> None:
    model = "together_ai/zai-org/GLM-5.3"
    with pytest.raises(UnknownPriceError, match="batch"):
        client.call_many(model, ["a"], max_tokens=9, budget=1.0, delivery="batch")
    allowed = Budget(1.0, allow_unknown=True)
    assert client.call_many(model, ["a"], max_tokens=9, budget=allowed, delivery="batch")


def test_a_budget_counts_a_batch_of_an_earlier_process(client: Client, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=20_000.0)
    client.submit_many("gpt-5.5", ["1+1?", "2+2?"])
    with Client(cache_dir=client.cache.directory, budget=1.00) as another:
        results = another.call_many("gpt-5.5", ["1+1?", "2+2?"], delivery="batch")
        assert another.budget is not None
        assert float(another.budget.spent) == pytest.approx(sum(result.cost or 0 for result in results))  # type: ignore[union-attr]  # known to be set here
        assert another.budget.reserved == 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no shared budgets")
@pytest.mark.parametrize("submitter_lives", [True, False])
@pytest.mark.parametrize("in_memory", [True, False])
def test_a_shared_budget_counts_a_batch_once(
    client: Client, simulator: Simulator, tmp_path: Path, submitter_lives: bool, in_memory: bool
) -> None:
    simulator.configure(batch_seconds=20_000.0)
    path = None if in_memory else tmp_path / "run.budget"
    first = Budget(1.0, path=path)
    second = first if in_memory else Budget(1.0, path=path)
    client.submit_many("gpt-5.5", ["1+1?"], max_tokens=99, budget=first)
    if not submitter_lives:
        client.close()
        first._store.close()
        Budget(1.0, path=path)
    assert (second.spent, second.reserved > 0) == (0, True)
    with Client(cache_dir=client.cache.directory, budget=second) as another:
        (result,) = another.call_many("gpt-5.5", ["1+1?"], max_tokens=99, delivery="batch")
    assert (float(second.spent), second.reserved, second.uncertain) == (result.cost, 0, 0)
    assert second._store.read().parked == 0
