"""Verdicts on failures, and the waits that providers ask for."""

import datetime
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_provider import _errors
from llm_provider._errors import (
    Authentication,
    BadResponse,
    Connection,
    LLMError,
    Overloaded,
    QuotaExhausted,
    RateLimited,
    ServerError,
    Timeout,
)
from llm_provider._retry import LONGEST_RETRY_AFTER, Verdict, is_congestion, judge, retry_after, retry_delay

NOW = datetime.datetime(2026, 11, 20, 12, 0, 0, tzinfo=datetime.UTC)


def verdict(error: LLMError, attempts: int = 1, max_retries: int = 6) -> Verdict:
    return judge(error, attempts=attempts, max_retries=max_retries, random_source=random.Random(0))


class TestJudge:
    @pytest.mark.parametrize("kind", [RateLimited, Overloaded, ServerError, Timeout, Connection])
    def test_what_may_pass_is_sent_again_as_often_as_allowed(self, kind: type[LLMError]) -> None:
        assert [verdict(kind("x"), attempts, 2).retry for attempts in (1, 2, 3)] == [True, True, False]
        assert not verdict(kind("x"), max_retries=0).retry

    @pytest.mark.parametrize("kind", [Authentication, QuotaExhausted, _errors.BadRequest, _errors.Refused])
    def test_what_will_not_pass_is_final(self, kind: type[LLMError]) -> None:
        assert verdict(kind("x", retry_after=1.0)) == Verdict(retry=False)

    def test_a_malformed_answer_is_asked_for_once_more_only(self) -> None:
        assert [verdict(BadResponse("x"), attempts).retry for attempts in (1, 2)] == [True, False]
        assert not verdict(BadResponse("x"), max_retries=0).retry

    def test_the_error_itself_can_be_final(self) -> None:
        assert not verdict(Connection("certificate", retryable=False)).retry

    def test_the_providers_wait_is_kept_to_the_second(self) -> None:
        assert verdict(RateLimited("x", retry_after=0.0)) == Verdict(retry=True, delay=0.0)
        assert verdict(RateLimited("x", retry_after=17.5)).delay == 17.5
        assert verdict(RateLimited("x", retry_after=LONGEST_RETRY_AFTER)).retry
        assert not verdict(RateLimited("x", retry_after=LONGEST_RETRY_AFTER + 1)).retry

    @given(st.integers(1, 10_000), st.integers(0, 2**32))
    def test_a_back_off_grows_and_stays_in_bounds(self, attempts: int, seed: int) -> None:
        delay = judge(
            ServerError("x"), attempts=attempts, max_retries=10_000, random_source=random.Random(seed)
        ).delay
        assert 0.0 <= delay <= min(0.5 * 2.0 ** min(attempts - 1, 6), 30.0)

    def test_jitter_is_full(self) -> None:
        source = random.Random(1)
        delays = [
            judge(ServerError("x"), attempts=3, max_retries=6, random_source=source).delay
            for _ in range(1000)
        ]
        assert min(delays) < 0.1
        assert max(delays) > 1.9
        assert 0.9 < sum(delays) / len(delays) < 1.1


def test_congestion_is_too_much_and_not_something_broken() -> None:
    congestion = {
        kind
        for kind in vars(_errors).values()
        # Those with arguments of their own are raised here, not by a provider.
        if isinstance(kind, type) and issubclass(kind, LLMError) and kind.__init__ is LLMError.__init__
        if is_congestion(kind("x"))
    }
    assert congestion == {RateLimited, Overloaded}


def test_a_wait_that_nobody_waits_for_is_no_congestion() -> None:
    assert is_congestion(RateLimited("slow", retry_after=LONGEST_RETRY_AFTER))
    assert not is_congestion(RateLimited("tomorrow", retry_after=LONGEST_RETRY_AFTER + 1))


class TestRetryAfter:
    @pytest.mark.parametrize(
        ("headers", "seconds"),
        [
            ({"retry-after": "2"}, 2.0),
            ({"retry-after": " 2 "}, 2.0),
            ({"retry-after": "0"}, 0.0),
            ({"retry-after": "1.25"}, 1.25),
            ({"retry-after-ms": "1500"}, 1.5),
            ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
            ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
            ({"retry-after": "Fri, 20 Nov 2026 12:00:30 GMT"}, 30.0),
            ({"retry-after": "Fri, 20 Nov 2026 12:00:30 -0000"}, 30.0),
            ({"retry-after": "Fri, 20 Nov 2026 13:00:30 +0100"}, 30.0),
            ({"retry-after": "Fri, 20 Nov 2020 12:00:00 GMT"}, 0.0),
            ({}, None),
            ({"retry-after": ""}, None),
        ],
    )
    def test_forms_of_the_header(self, headers: dict[str, str], seconds: float | None) -> None:
        assert retry_after(headers, now=NOW) == seconds

    @pytest.mark.parametrize(
        "text",
        [
            "nan",
            "inf",
            "-inf",
            "-1",
            "+1",
            "1e400",
            "1e3",
            "0x10",
            "1_000",
            "\u0663",
            "\uff11\uff12",
            "\u00b2",
            "1,5",
            ".5",
            "5.",
            "9" * 400,
            "tomorrow",
            "Fri, 99 Nov 2026 12:00:30 GMT",
            "Fri, 20 Nov 2026 12:00:30 +9999",
            "\x00",
            "2\n3",
        ],
    )
    def test_what_is_no_number_or_date_counts_as_absent(self, text: str) -> None:
        assert retry_after({"retry-after": text, "retry-after-ms": text}, now=NOW) is None

    def test_the_end_of_time_is_finite_and_not_waited_for(self) -> None:
        seconds = retry_after({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"}, now=NOW)
        assert seconds is not None
        assert math.isfinite(seconds)
        assert not verdict(RateLimited("x", retry_after=seconds)).retry

    @given(st.text(max_size=50), st.text(max_size=20))
    def test_any_text_is_a_finite_wait_or_none(self, text: str, milliseconds: str) -> None:
        seconds = retry_after({"retry-after": text, "retry-after-ms": milliseconds})
        assert seconds is None or (math.isfinite(seconds) and seconds >= 0)

    @given(st.datetimes(timezones=st.just(datetime.UTC)).filter(lambda moment: moment.year >= 1900))
    def test_any_date_is_read(self, moment: datetime.datetime) -> None:
        text = moment.strftime("%a, %d %b ") + f"{moment.year:04} " + moment.strftime("%H:%M:%S GMT")
        expected = (moment.replace(microsecond=0) - NOW).total_seconds()
        assert retry_after({"retry-after": text}, now=NOW) == max(0.0, expected)


class TestRetryDelay:
    @pytest.mark.parametrize(("text", "seconds"), [("27.39s", 27.39), ("0s", 0.0), ("3600s", 3600.0)])
    def test_protobuf_durations(self, text: str, seconds: float) -> None:
        assert retry_delay(text) == seconds

    @pytest.mark.parametrize(
        "text", ["", "s", "27", "-1s", "nans", "1e9s", "\u0663s", "1m", None, 3, 2.5, b"1s", ["1s"]]
    )
    def test_anything_else_is_none(self, text: Any) -> None:
        assert retry_delay(text) is None

    @given(st.text(max_size=20))
    def test_any_text_is_a_finite_wait_or_none(self, text: str) -> None:
        seconds = retry_delay(text)
        assert seconds is None or (math.isfinite(seconds) and seconds >= 0)
