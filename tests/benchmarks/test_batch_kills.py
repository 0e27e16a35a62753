"""A process that is killed in the middle of a batch."""

from pathlib import Path

import pytest

from benchmarks.batch_kills import MODELS, STEPS, Found, run
from benchmarks.scenarios import Options, batch_rows


def assert_exactly_once(outcome: Found) -> None:
    assert outcome.problems == []
    assert (outcome.lost, outcome.wrong, outcome.paid) == (0, 0, outcome.rows)
    assert outcome.spent == outcome.billed > 0


@pytest.mark.long
@pytest.mark.parametrize("provider", MODELS)
def test_kills_at_every_step(tmp_path: Path, provider: str) -> None:
    assert_exactly_once(run(provider, tmp_path, [(step,) for step in STEPS]))


@pytest.mark.long
def test_rows_are_measured_beside_live_calls() -> None:
    options = Options(quick=True, rounds=1, clients=("anthropic",))
    ((provider, *figures),) = batch_rows.run(options).tables[0].rows
    assert provider == "anthropic"
    assert all(isinstance(figure, float) and figure > 0 for figure in figures)
