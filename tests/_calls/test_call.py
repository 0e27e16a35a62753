"""A call: the keys of its parts, and the error of a deadline that passes."""

from __future__ import annotations

from llm_provider import APITimeoutError, Client, FailedAttempt
from llm_provider._calls.call import Call, SentRequests
from llm_provider._calls.chat import CHAT
from llm_provider._limits.concurrency import Concurrency
from llm_provider._limits.timeouts import Deadline
from llm_provider._requests.request import Request

DEADLINE = Deadline(5.0, 0.0)


def call_of(client: Client, **parameters: object) -> Call:
    request = Request.build("gpt-6.1-sol", "Hi", dict(parameters))
    return client._engine.prepare(CHAT, request, Concurrency(1, 1))


class TestKeys:
    def test_every_part_has_a_key_of_its_own(self, client: Client) -> None:
        call = call_of(client, n=3)
        assert list(call.parts) == [0, 1, 2]
        assert len({call.key(part) for part in call.parts}) == 3

    def test_a_part_has_the_key_of_the_call_that_asks_for_it_alone(self, client: Client) -> None:
        several = call_of(client, n=3)
        for part in several.parts:
            alone = call_of(client, draw=part)
            assert list(alone.parts) == [part]
            assert alone.key(part) == several.key(part)
            assert alone.asked(part) == several.asked(part)


class TestMissedDeadline:
    def test_nothing_was_sent(self) -> None:
        error = SentRequests().missed(DEADLINE)
        assert str(error) == "not answered by the deadline of 5 s: nothing was sent"
        assert (error.attempts, error.maybe_billed, error.failures) == (0, False, ())
        assert (error.phase, error.limit) == ("deadline", 5.0)

    def test_requests_had_failed(self) -> None:
        sent = SentRequests()
        sent.failures = (FailedAttempt(error="InternalServerError"), FailedAttempt(error="RateLimitError"))
        error = sent.missed(DEADLINE)
        assert error.message.endswith("deadline of 5 s: after InternalServerError, RateLimitError")
        assert (error.attempts, error.maybe_billed) == (2, False)

    def test_a_request_was_under_way(self) -> None:
        sent = SentRequests()
        sent.unfailed = 1
        sent.failures = (FailedAttempt(error="RateLimitError"),)
        error = sent.missed(DEADLINE)
        assert isinstance(error, APITimeoutError)
        assert error.message.endswith(": a request was under way, after RateLimitError")
        assert (error.attempts, error.maybe_billed, error.failures) == (2, True, sent.failures)

    def test_a_failed_request_may_have_been_billed(self) -> None:
        sent = SentRequests()
        sent.failures = (FailedAttempt(error="APITimeoutError", maybe_billed=True),)
        assert sent.missed(DEADLINE).maybe_billed
