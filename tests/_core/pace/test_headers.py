"""Predictions of a level. Golden pairs have the headers of each provider, and texts that are no numbers."""

import pytest

from llm_provider._core.pace.headers import Allowance, Level


def test_a_level_is_what_remained_plus_the_refill_minus_what_was_sent() -> None:
    level = Level()
    assert level.ready_at(0.0, used=100.0, amount=1.0, margin=1.0) == 0.0, "nothing is known yet"
    level.read(at=0.0, used=1.0, allowance=Allowance(rate=1.0, remaining=5.0))
    assert level.ready_at(0.0, used=4.0, amount=1.0, margin=1.0) == 0.0
    assert level.ready_at(0.0, used=5.0, amount=1.0, margin=1.0) == pytest.approx(1.0)
    assert level.ready_at(0.5, used=5.0, amount=1.0, margin=1.0) == pytest.approx(1.0)
    level.read(at=2.0, used=20.0, allowance=Allowance(rate=1.0, remaining=5.0))
    level.read(at=1.0, used=10.0, allowance=Allowance(rate=99.0, remaining=500.0))
    assert level.ready_at(2.0, used=25.0, amount=1.0, margin=0.0) > 2.0, "the newest request counts"
    empty = Level()
    empty.read(at=0.0, used=1.0, allowance=Allowance(rate=1.0, remaining=0.0))
    assert empty.ready_at(0.0, used=1.0, amount=1.0, margin=9.0) < 1.3, (
        "no more is waited for than the limit holds"
    )
