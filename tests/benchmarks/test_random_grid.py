"""The grid of random refusals beside rate-limit headers: some of its cells, in simulated time."""

import pytest

from benchmarks.rate_control.random_grid import FIRST_SEED, HEADERS, LATENCIES, RETRY_AFTERS, Cell, measure

SEEDS = range(FIRST_SEED, FIRST_SEED + 1)


@pytest.mark.parametrize("headers", HEADERS)
@pytest.mark.parametrize("retry_after", RETRY_AFTERS)
@pytest.mark.sampled(5)
def test_random_refusals_cost_no_more_than_their_own_waits(headers: str, retry_after: float | None) -> None:
    """The seconds are those of the simulation."""
    turn = HEADERS.index(headers) + RETRY_AFTERS.index(retry_after)
    controllers = ("independent", "shared")[turn % 2]
    cell = Cell(0.02, headers, retry_after, LATENCIES[1 + turn % 2], 2400, controllers)
    assert measure(cell, SEEDS) < measure(cell, SEEDS, oracle=True) / 0.9


def test_the_oracle_pays_for_the_last_wait_too() -> None:
    cell = Cell(0.05, "right", 20.0, 0.1, 300, "independent")
    assert measure(cell, SEEDS, oracle=True) > 20 > measure(cell._replace(share=0.0), SEEDS)
