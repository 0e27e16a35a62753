"""The stores of a budget, in memory and in a file, count as the simplest model of them does."""

import asyncio
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llm_provider import Budget
from llm_provider._core.money.budget import Reservation

BATCHES = ("one", "two")
AMOUNTS = st.decimals("0.01", "5", places=2)
OPERATIONS = st.one_of(
    st.tuples(st.just("reserve"), AMOUNTS),
    st.tuples(
        st.just("settle"), st.integers(0, 9), st.none() | AMOUNTS, st.none() | st.sampled_from(BATCHES)
    ),
    st.tuples(st.just("release"), st.integers(0, 9)),
    st.tuples(st.just("park"), st.integers(0, 9), st.booleans()),
    st.tuples(st.just("name"), st.integers(0, 9), st.sampled_from(BATCHES)),
)


@dataclass
class Claim:
    """What is reserved for one request, in the model."""

    reservation: Reservation
    amount: Decimal
    is_open: bool = True
    is_parked: bool = False
    batch: str | None = None


class Model:
    """What is spent, and the claims."""

    def __init__(self) -> None:
        self.spent = self.uncertain = Decimal(0)
        self.claims: list[Claim] = []

    def settle(self, claim: Claim, cost: Decimal | None, batch: str | None) -> None:
        if not claim.is_open:
            return
        claim.is_open = False
        self.spent += claim.amount if cost is None else cost
        self.uncertain += claim.amount if cost is None else 0
        for other in self.claims:
            if batch is not None and other.batch == batch:
                other.is_open = False

    def sum_open(self, *, parked: bool = False) -> Decimal:
        open_claims = [claim for claim in self.claims if claim.is_open and (claim.is_parked or not parked)]
        return sum((claim.amount for claim in open_claims), Decimal(0))

    def name(self, claim: Claim, batch: str) -> None:
        # A batch has one claim; whoever names another one has given the first back.
        if claim.is_open and not any(other.batch == batch for other in self.claims):
            claim.batch = batch
            claim.reservation.name(batch)


@pytest.mark.parametrize("is_shared", [False, True])
@settings(max_examples=30)
@given(operations=st.lists(OPERATIONS, max_size=25))
@example([("reserve", 1), ("reserve", 2), ("settle", 1, None, "one")]).via("a batch of another client")
@example([("reserve", 2), ("park", 0, True), ("park", 0, False)]).via("a call that is waited for again")
def test_a_budget_counts_as_its_model(is_shared: bool, operations: list[tuple[object, ...]]) -> None:
    async def play(path: Path | None) -> None:
        budgets = [Budget(1000, path=path) for _ in range(2 if is_shared else 1)]
        model = Model()
        for number, (what, *details) in enumerate(operations):
            budget = budgets[number % len(budgets)]
            if what == "reserve":
                amount = Decimal(str(details[0]))
                model.claims.append(Claim(await budget.reserve(amount), amount))
            elif model.claims:
                claim = model.claims[int(str(details[0])) % len(model.claims)]
                change(model, claim, str(what), *details[1:])
            for each in budgets:
                assert (each.spent, each.uncertain) == (model.spent, model.uncertain)
                assert each.reserved == model.sum_open()
                assert each._store.read().parked == model.sum_open(parked=True)
                assert each.left == 1000 - model.spent - model.sum_open()

    with TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder, "run.budget") if is_shared else None))


def change(model: Model, claim: Claim, what: str, *details: object) -> None:
    """Change one claim in the budget and in the model."""
    if what == "settle":
        cost, batch = details
        claim.reservation.settle(cost, batch)  # type: ignore[arg-type]  # as drawn
        model.settle(claim, cost, batch)  # type: ignore[arg-type]  # as drawn
    elif what == "release":
        claim.reservation.release()
        model.settle(claim, Decimal(0), None)
    elif what == "park":
        claim.reservation.park(bool(details[0]))
        claim.is_parked = bool(details[0]) if claim.is_open else claim.is_parked
    else:
        model.name(claim, str(details[0]))
