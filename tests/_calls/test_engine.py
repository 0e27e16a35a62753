"""The way of a call: samples, timing, price, deadline, retries, storing."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import (
    APITimeoutError,
    Client,
    InternalServerError,
    LLMError,
    QuotaExceededError,
    RateLimitError,
    RequestError,
    Response,
    price,
)
from llm_provider.simulator import Fault, Simulator
from support import RunScript, TooSlowError, patiently, wait_until

MODEL = "gpt-6.1-sol"
CLAUDE = "claude-sonnet-5-5"


def test_samples_are_separate_calls_where_a_provider_has_no_n(client: Client, simulator: Simulator) -> None:
    single = client.call(CLAUDE, "Hi", cache="off")
    three = client.call(CLAUDE, "Hi", n=3)
    assert len(three.texts) == 3
    assert three.usage.input_tokens == 3 * single.usage.input_tokens
    assert three.cost == pytest.approx(3 * (single.cost or 0))
    assert three.timing.attempts == 3
    assert len(three.raw) == 3
    assert client.call(CLAUDE, "Hi", n=3).cached
    assert simulator.ledger().requests == 4


def test_one_call_with_n_where_it_exists(client: Client, simulator: Simulator) -> None:
    assert len(client.call(MODEL, "Hi", n=3).texts) == 3
    assert simulator.ledger().requests == 1


def test_of_several_samples_the_paid_ones_are_kept(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400), times=1)
    with pytest.raises(LLMError):
        client.call(CLAUDE, "Hi", n=4)
    assert simulator.ledger().requests == 4
    response = client.call(CLAUDE, "Hi", n=4)
    assert (len(response.texts), response.cached) == (4, False)
    assert simulator.ledger().requests == 5


def test_timing_adds_up(client: Client, simulator: Simulator) -> None:
    client.call(MODEL, "warm up")
    simulator.configure(latency=0.2)
    timing = client.call(MODEL, "timed").timing
    assert timing.attempts == 1
    assert 0 <= timing.queue <= timing.total - 0.2
    assert timing.overhead < timing.total - 0.2 + 0.001
    with Client(cache_dir=client.cache.directory, max_concurrent=1) as narrow:
        waited = narrow.call_many(MODEL, ["first", "second"])
    assert max(answer.timing.queue for answer in waited if isinstance(answer, Response)) >= 0.05


def test_waiting_for_a_slot_is_not_in_the_timeout(simulator: Simulator, own_cache: Path) -> None:
    def attempt(longer: float) -> None:
        simulator.clear()
        simulator.inject(Fault(delay=0.8 * longer), times=1, match="first")

        async def ask() -> list[Response | BaseException]:
            async with Client(cache_dir=own_cache, cache="off", max_concurrent=1, max_retries=0) as client:
                await client.acall(MODEL, "warm up")
                first = asyncio.create_task(client.acall(MODEL, "first"))
                while simulator.ledger().in_flight == 0:
                    await asyncio.sleep(0)
                second = client.acall(MODEL, "second", timeout=0.5 * longer)
                return await asyncio.gather(first, second, return_exceptions=True)

        answers = asyncio.run(ask())
        if isinstance(answers[1], APITimeoutError) and len(simulator.requests()) == 3:
            raise TooSlowError("it had its place and was sent, but its answer took too long")
        assert all(isinstance(answer, Response) for answer in answers), answers

    patiently(attempt)


def test_the_timeout_is_for_the_whole_answer(client: Client, simulator: Simulator) -> None:
    client.call(MODEL, "warm up")

    def attempt(longer: float) -> None:
        simulator.clear()
        # Each chunk comes in time; the answer as a whole does not.
        simulator.configure(chunk_interval=0.05 * longer, chunks=100)
        shown = []
        with pytest.raises(APITimeoutError, match="within "):
            shown.extend(client.stream(MODEL, "tell a long story", timeout=0.5 * longer, max_retries=0))
        if not shown:
            raise TooSlowError("the answer had not begun")
        assert wait_until(lambda: simulator.ledger().disconnects == 1)
        assert simulator.ledger().in_flight == 0

    patiently(attempt)


@pytest.mark.parametrize("model", [MODEL, CLAUDE, "gemini-3.8-flash", "together_ai/zai-org/GLM-5.3"])
@pytest.mark.parametrize("retries", [0, 2])
def test_exactly_the_attempts_asked_for_are_sent(
    client: Client, simulator: Simulator, model: str, retries: int
) -> None:
    simulator.inject(Fault(status=500), times=None)
    with pytest.raises(InternalServerError) as caught:
        client.call(model, "Hi", max_retries=retries)
    assert caught.value.attempts == simulator.ledger().requests == retries + 1


def test_a_retried_call_succeeds_and_tells_its_attempts(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=503), times=2)
    answer = client.call(MODEL, "Hi")
    assert answer.timing.attempts == 3
    assert answer.text == "echo: Hi"


@pytest.mark.parametrize("model", [MODEL, CLAUDE])
def test_the_sdk_tells_how_many_attempts_came_before(
    client: Client, simulator: Simulator, model: str
) -> None:
    simulator.inject(Fault(status=503), times=2)
    client.call(model, "Hi", timeout=45)
    told = [request.headers for request in simulator.requests()]
    assert [headers["x-stainless-retry-count"] for headers in told] == ["0", "1", "2"]
    assert {float(headers["x-stainless-read-timeout"]) for headers in told} == {45}


def test_retry_after_is_kept(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, retry_after="1"), times=1)
    client.call(MODEL, "Hi")
    refused, served = simulator.requests()
    assert served.time - refused.time >= 0.99


def test_a_retry_after_beyond_reason_is_not_waited_for(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, retry_after="86400"), times=1)
    with pytest.raises(RateLimitError, match="86400 s, which is too long") as caught:
        client.call(MODEL, "Hi")
    assert caught.value.retry_after == 86400
    assert simulator.ledger().requests == 1


def test_no_quota_is_final(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, quota=True), times=None)
    for model in (MODEL, CLAUDE, "gemini-3.8-flash"):
        with pytest.raises(QuotaExceededError):
            client.call(model, "Hi")
    assert simulator.ledger().requests == 3


def test_cost_is_the_price_of_the_usage(client: Client, simulator: Simulator) -> None:
    simulator.configure(cached_tokens=3, reasoning_tokens=11)
    for model in (MODEL, CLAUDE, "gemini-3.8-flash", "together_ai/zai-org/GLM-5.3"):
        answer = client.call(model, "What does this cost, all in all?")
        expected = price(model, answer.usage)
        assert expected is not None
        assert expected > Decimal(0)
        assert answer.cost == float(expected)


def test_the_tier_that_was_asked_for_is_priced(client: Client) -> None:
    standard = client.call("gemini-3.8-flash", "What does this cost?")
    flex = client.call("gemini-3.8-flash", "What does this cost?", extra_body={"serviceTier": "flex"})
    assert standard.cost is not None
    assert flex.cost == pytest.approx(standard.cost / 2)


def test_warnings_made_errors_lose_no_answer(
    simulator: Simulator, run_script: RunScript, tmp_path: Path
) -> None:
    prices = tmp_path / "prices.csv"
    header = "provider,model,variant,min_input_tokens,input,cache_read,cache_write,cache_write_1h,output"
    prices.write_text(
        f"{header},effective_from,source,as_of\nopenai,partly,standard,0,1,,,,,,me,2026-11-20\n"
    )
    shown = run_script(
        f"""
        from llm_provider import Client
        with Client(prices={str(prices)!r}, cache_dir="/dev/null") as client:
            print(client.call("openai/partly", "What is 1+1?"))
        """
    )
    assert shown.stdout == "2\n"


@pytest.mark.parametrize("front", ["call", "stream"])
def test_thirty_megabytes_are_refused_before_sending(
    client: Client, simulator: Simulator, front: str
) -> None:
    with pytest.raises(RequestError, match=r"30\.0 MB"):
        getattr(client, front)(MODEL, "x" * 30_000_000)
    assert simulator.ledger().requests == 0


def test_an_unknown_price_is_none(client: Client) -> None:
    assert client.call("openai/no-such-model", "Hi").cost is None


def test_what_was_answered_before_a_cancellation_is_stored(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=0.02)

    async def main() -> list[str]:
        tasks = {
            asyncio.create_task(client.acall(MODEL, f"item {number}")): f"item {number}"
            for number in range(90)
        }
        _, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        return [tasks[task] for task in tasks if not task.cancelled()]

    answered = asyncio.run(main())
    assert answered
    again = client.call_many(MODEL, answered)
    assert all(isinstance(result, Response) and result.cached for result in again)


def test_a_deadline_ends_a_call_that_hangs(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(hang=True), times=None)

    def attempt(longer: float) -> None:
        for model in (MODEL, CLAUDE, "gemini-3.8-flash"):
            with pytest.raises(APITimeoutError, match=r"not answered by the deadline of \S+ s: ") as caught:
                client.call(model, "Hi", deadline=0.5 * longer)
            error = caught.value
            assert (error.phase, error.limit, error.model) == ("deadline", 0.5 * longer, model)
            assert error.maybe_billed == bool(error.attempts) == ("a request was under way" in error.message)
            if not error.attempts:
                raise TooSlowError("nothing was sent in time")

    patiently(attempt)
    assert wait_until(lambda: simulator.ledger().in_flight == 0)


def test_a_deadline_ends_a_stream(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(stall_after=1), times=None)

    def attempt(longer: float) -> None:
        shown = ""
        with pytest.raises(APITimeoutError, match="deadline"):
            for delta in client.stream(MODEL, "one two three", deadline=longer):
                shown += delta.text
        if not shown:
            raise TooSlowError("nothing was shown in time")

    patiently(attempt)


def test_the_queue_counts_for_a_deadline(simulator: Simulator, own_cache: Path) -> None:
    simulator.inject(Fault(hang=True))
    with Client(cache_dir=own_cache, max_concurrent=1) as client:

        async def main() -> BaseException | Response:
            first = asyncio.create_task(client.acall(MODEL, "hangs"))
            while not simulator.ledger().in_flight:
                await asyncio.sleep(0.01)
            second = await asyncio.gather(client.acall(MODEL, "waits", deadline=0.3), return_exceptions=True)
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            return second[0]

        error = asyncio.run(main())
    assert isinstance(error, APITimeoutError)
    assert error.message == "not answered by the deadline of 0.3 s: nothing was sent"
    assert (error.attempts, error.maybe_billed) == (0, False)
    assert simulator.ledger().requests == 1


def test_a_retry_after_past_the_deadline_fails_at_once(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, retry_after="60"), times=None)
    with pytest.raises(
        RateLimitError, match=r"asked to wait 60 s: the deadline of 30 s is \S+ s away"
    ) as caught:
        client.call(MODEL, "Hi", deadline=30)
    assert (caught.value.attempts, caught.value.retry_after) == (1, 60.0)
    assert simulator.ledger().requests == 1


def test_a_deadline_is_for_all_attempts(client: Client, simulator: Simulator) -> None:
    def attempt(longer: float) -> None:
        simulator.clear()
        simulator.inject(Fault(status=500, retry_after=f"{longer}"), times=None)
        with pytest.raises(LLMError) as caught:
            client.call(MODEL, "Hi", deadline=2.5 * longer, max_retries=100)
        error = caught.value
        if isinstance(error, APITimeoutError) or error.attempts == 1:
            raise TooSlowError("an attempt took longer than it should wait")
        assert isinstance(error, InternalServerError)
        assert f"asked to wait {longer:.0f} s: the deadline of {2.5 * longer:g} s is " in error.message
        assert error.attempts == len(error.failures) == simulator.ledger().requests <= 3

    patiently(attempt)


def test_a_deadline_is_no_others(client: Client, simulator: Simulator) -> None:
    client.call(MODEL, "warm up")
    simulator.configure(latency=1.5)

    async def main() -> list[Response | BaseException]:
        return await asyncio.gather(
            client.acall(MODEL, "shared", deadline=0.5),
            client.acall(MODEL, "shared"),
            return_exceptions=True,
        )

    hasty, patient = asyncio.run(main())
    assert isinstance(hasty, APITimeoutError)
    assert isinstance(patient, Response)
    assert simulator.ledger().requests == 2


def test_a_hung_request_among_a_thousand_does_not_hold_the_batch(
    client: Client, simulator: Simulator
) -> None:
    simulator.inject(Fault(hang=True), match="item 500.", times=None)
    prompts = [f"item {number}." for number in range(1000)]
    results = client.call_many(MODEL, prompts, deadline=5)
    done = [place for place, result in enumerate(results) if isinstance(result, Response)]
    # On a busy machine fewer may be done in time; none of those is lost, and nothing else fails.
    assert done
    assert 500 not in done
    for place in set(range(1000)) - set(done):
        result = results[place]
        assert isinstance(result, APITimeoutError)
        assert (result.phase, result.limit) == ("deadline", 5.0)
    stored = client.call_many(MODEL, [prompts[place] for place in done], cache="only")
    assert all(isinstance(result, Response) for result in stored)


def test_after_a_batchs_deadline_nothing_is_sent_and_what_is_stored_is_there(
    client: Client, simulator: Simulator
) -> None:
    client.call(MODEL, "stored")
    prompts = [*(f"item {number}" for number in range(60)), "stored"]
    simulator.inject(Fault(hang=True), times=None)

    def attempt(longer: float) -> None:
        before = simulator.ledger().requests
        results = client.call_many(MODEL, prompts, deadline=0.5 * longer, max_concurrent=1)
        assert isinstance(results[-1], Response)
        told = [str(result) for result in results if isinstance(result, APITimeoutError)]
        assert len(told) == 60
        sent = simulator.ledger().requests - before
        if not sent:
            raise TooSlowError("nothing was sent in time")
        assert sent == 1
        assert sum("nothing was sent" in text for text in told) == 59

    patiently(attempt)
    other, stored = asyncio.run(client.acall_many(MODEL, prompts[-2:], deadline=0.2))
    assert isinstance(other, APITimeoutError)
    assert isinstance(stored, Response)


def test_an_outage_is_not_many_times_the_load(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=500, retry_after="0"), times=None)
    results = client.call_many(MODEL, [f"item {number}" for number in range(60)], max_retries=6)
    assert all(isinstance(result, InternalServerError) for result in results)
    assert sum(result.attempts for result in results if isinstance(result, InternalServerError)) == 70
    assert simulator.ledger().requests == 70
    assert sum("too many calls fail" in str(result) for result in results) >= 59


FRONTS = ("call", "acall", "stream", "astream", "call_many", "acall_many")


@pytest.mark.parametrize("front", FRONTS)
@pytest.mark.parametrize("model", [MODEL, "gpt-5.5-pro", CLAUDE, "gemini-3.8-flash"])
def test_every_front_sends_exactly_the_attempts_asked_for(
    client: Client, simulator: Simulator, model: str, front: str
) -> None:
    simulator.inject(Fault(status=500, retry_after="0"), times=None)
    error = failed(client, front, model, max_retries=2)
    assert isinstance(error, InternalServerError)
    assert error.attempts == len(error.failures) == simulator.ledger().requests == 3


def failed(client: Client, front: str, model: str, **parameters: Any) -> LLMError:
    """The error that a call of this front ends with."""

    async def awaited() -> object:
        if front == "acall":
            return await client.acall(model, "Hi", **parameters)
        if front == "acall_many":
            return (await client.acall_many(model, ["Hi"], **parameters))[0]
        return [delta async for delta in client.astream(model, "Hi", **parameters)]

    try:
        if front == "call":
            result: object = client.call(model, "Hi", **parameters)
        elif front == "stream":
            result = list(client.stream(model, "Hi", **parameters))
        elif front == "call_many":
            result = client.call_many(model, ["Hi"], **parameters)[0]
        else:
            result = asyncio.run(awaited())
    except LLMError as error:
        return error
    assert isinstance(result, LLMError)
    return result
