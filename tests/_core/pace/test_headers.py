"""Predictions of a level, and waits. Golden pairs have each provider's headers, and texts without numbers."""

import datetime
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider._core.pace.failures import LONGEST_RETRY_AFTER
from llm_provider._core.pace.headers import Allowance, Level, retry_after


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


NOW = datetime.datetime(2026, 11, 20, 12, 0, 0, tzinfo=datetime.UTC)


class TestRetryAfter:
    def test_the_end_of_time_is_finite_and_not_waited_for(self) -> None:
        seconds = retry_after({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, now=NOW)
        assert seconds is not None
        assert LONGEST_RETRY_AFTER < seconds < math.inf

    @given(st.datetimes(timezones=st.just(datetime.UTC)).filter(lambda moment: moment.year >= 1900))
    def test_any_date_is_read(self, moment: datetime.datetime) -> None:
        text = moment.strftime("%a, %d %b ") + f"{moment.year:04} " + moment.strftime("%H:%M:%S GMT")
        expected = (moment.replace(microsecond=0) - NOW).total_seconds()
        assert retry_after({"retry-after": text}, now=NOW) == max(0.0, expected)
