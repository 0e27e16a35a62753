"""The way of a call: samples, timing, price, deadline, retries, storing."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from pathlib import Path

import pytest

from llm_provider import (
    Client,
    LLMError,
    QuotaExhausted,
    RateLimited,
    RequestError,
    Response,
    ServerError,
    Timeout,
    price,
)
from llm_provider.simulator import Fault, Simulator
from support import RunScript, TooSlow, patiently, wait_until

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
        if isinstance(answers[1], Timeout) and len(simulator.requests()) == 3:
            raise TooSlow("it had its place and was sent, but its answer took too long")
        assert all(isinstance(answer, Response) for answer in answers), answers

    patiently(attempt)


def test_the_timeout_is_for_the_whole_answer(client: Client, simulator: Simulator) -> None:
    client.call(MODEL, "warm up")

    def attempt(longer: float) -> None:
        simulator.clear()
        # Each chunk comes in time; the answer as a whole does not.
        simulator.configure(chunk_interval=0.05 * longer, chunks=100)
        shown = []
        with pytest.raises(Timeout, match="within "):
            shown.extend(client.stream(MODEL, "tell a long story", timeout=0.5 * longer, max_retries=0))
        if not shown:
            raise TooSlow("the answer had not begun")
        assert wait_until(lambda: simulator.ledger().disconnects == 1)
        assert simulator.ledger().in_flight == 0

    patiently(attempt)


@pytest.mark.parametrize("model", [MODEL, CLAUDE, "gemini-3.8-flash", "together_ai/zai-org/GLM-5.3"])
@pytest.mark.parametrize("retries", [0, 2])
def test_exactly_the_attempts_asked_for_are_sent(
    client: Client, simulator: Simulator, model: str, retries: int
) -> None:
    simulator.inject(Fault(status=500), times=None)
    with pytest.raises(ServerError) as caught:
        client.call(model, "Hi", max_retries=retries)
    assert caught.value.attempts == simulator.ledger().requests == retries + 1


def test_a_retried_call_succeeds_and_tells_its_attempts(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=503), times=2)
    answer = client.call(MODEL, "Hi")
    assert answer.timing.attempts == 3
    assert answer.text == "echo: Hi"


def test_retry_after_is_kept(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, retry_after="1"), times=1)
    client.call(MODEL, "Hi")
    refused, served = simulator.requests()
    assert served.time - refused.time >= 0.99


def test_a_retry_after_beyond_reason_is_not_waited_for(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, retry_after="86400"), times=1)
    with pytest.raises(RateLimited, match="86400 s, which is too long") as caught:
        client.call(MODEL, "Hi")
    assert caught.value.retry_after == 86400
    assert simulator.ledger().requests == 1


def test_no_quota_is_final(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, quota=True), times=None)
    for model in (MODEL, CLAUDE, "gemini-3.8-flash"):
        with pytest.raises(QuotaExhausted):
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
