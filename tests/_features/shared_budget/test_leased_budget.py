"""Workers that share a budget never exceed it together, and a killed worker's part is not given again."""

from decimal import Decimal

import pytest

from llm_provider import BudgetExceededError
from llm_provider._features.shared_budget.leased_budget import BudgetParts, LeasedBudget


async def test_workers_share_one_amount() -> None:
    parts = BudgetParts(Decimal(1), workers=4)
    workers = [LeasedBudget(parts.take, Decimal(1)) for _ in range(4)]
    spent, amount = Decimal(0), Decimal("0.007")
    for budget in workers * 100:
        if budget.covers(amount):
            (await budget.reserve(amount)).settle(amount)
            spent += amount
    # Less than a request is left with each worker.
    assert Decimal(1) - 4 * amount < spent <= Decimal(1)
    assert sum(budget.limit for budget in workers) == 1
    assert spent == sum(budget.spent for budget in workers)


def test_the_part_of_a_killed_worker_stays_spent() -> None:
    parts = BudgetParts(Decimal(1), workers=1)
    killed = LeasedBudget(parts.take, Decimal(1))
    assert killed.covers(Decimal("0.9"))
    successor = LeasedBudget(parts.take, Decimal(1))
    assert not successor.covers(Decimal("0.2"))
    assert successor.covers(Decimal("0.1"))


def test_a_model_without_a_price_is_refused_as_by_any_budget() -> None:
    assert not LeasedBudget(BudgetParts(Decimal(1), 1).take, Decimal(1)).allow_unknown


def test_a_request_that_costs_more_than_all_takes_nothing() -> None:
    parts = BudgetParts(Decimal(1), workers=1)
    budget = LeasedBudget(parts.take, Decimal(1))
    with pytest.raises(BudgetExceededError, match=r"up to \$2.00, .* the budget of \$1.00"):
        budget.check(Decimal(2))
    assert budget.covers(Decimal("0.01"))
    assert not budget.covers(Decimal(2))
    assert budget.limit < 1


def test_workers_share_tokens_too() -> None:
    parts = BudgetParts(Decimal(1000), workers=2)
    budget = LeasedBudget(parts.take, Decimal(1000), unit="tokens")
    take, (_, total) = budget.__reduce__()  # type: ignore[misc]  # what a pickle makes it of
    again = take(parts.take, total)  # type: ignore[operator]  # as above
    assert (again.unit, budget.covers(Decimal(900)), again.covers(Decimal(200))) == ("tokens", True, False)
    with pytest.raises(
        BudgetExceededError, match=r"take up to 2,000 tokens, .* budget of 1,000 tokens"
    ) as caught:
        budget.check(Decimal(2000))
    assert caught.value.unit == "tokens"
