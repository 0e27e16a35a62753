"""`max_errors`: the end of a batch after so many failed rows, in every way of asking for many."""

import asyncio
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from llm_provider import (
    BatchError,
    Client,
    LLMError,
    RequestError,
    Response,
    Results,
    TooManyErrorsError,
    predicate,
)
from llm_provider.simulator import Fault, Simulator
from support import wait_until

MODEL = "gpt-6.1-sol"
MANY = ("call_many", "acall_many", "iter_many", "aiter_many")

pytestmark = pytest.mark.filterwarnings("ignore:the batch was stopped")


def ask_many(client: Client, way: str, prompts: Any, **more: Any) -> dict[int, Any]:
    """The results of a batch by index, in any way."""
    method = getattr(client, way)
    if way == "call_many":
        return dict(enumerate(method(MODEL, prompts, **more)))
    if way == "iter_many":
        return dict(method(MODEL, prompts, **more))

    async def awaited() -> dict[int, Any]:
        if way == "acall_many":
            return dict(enumerate(await method(MODEL, prompts, **more)))
        return {index: result async for index, result in method(MODEL, prompts, **more)}

    return asyncio.run(awaited())


def fail(simulator: Simulator, kind: str) -> None:
    if kind == "refused":
        simulator.inject(Fault(status=400), match="bad", times=None)
    elif kind == "retried":
        simulator.inject(Fault(status=500), match="bad", times=None)
    elif kind == "long wait":
        simulator.inject(Fault(status=429, retry_after=50), match="bad", times=None)


def prompts_of(kind: str) -> list[Any]:
    bad: Any = {"role": "user"} if kind == "wrong input" else "bad"
    return [
        f"good {number}" if number % 4 else (bad if bad != "bad" else f"bad {number}") for number in range(20)
    ]


@pytest.mark.parametrize("way", MANY)
@pytest.mark.parametrize("kind", ["refused", "retried", "wrong input"])
@pytest.mark.parametrize("max_errors", [1, 0.1])
def test_a_batch_ends_after_so_many_failed_rows_and_a_resume_asks_the_rest(
    client: Client, simulator: Simulator, way: str, kind: str, max_errors: float
) -> None:
    fail(simulator, kind)
    prompts = prompts_of(kind)
    if kind == "wrong input":
        prompts[0] = "good 0"
    options: Any = {"max_concurrent": 2, "max_errors": max_errors, "max_retries": 1}
    results = ask_many(client, way, prompts, **options)
    assert sorted(results) == list(range(20))  # a list has a result for each input
    unasked = [row for row in results.values() if isinstance(row, TooManyErrorsError)]
    failed = [row for row in results.values() if isinstance(row, LLMError) and row not in unasked]
    limit = 2 if max_errors == 0.1 else max_errors
    if kind == "wrong input":
        assert len(failed) == 4  # the others are found while the list is read, and cost nothing
    else:
        # Requests under way are awaited, and a row that waits before its retry ends with its failure.
        assert limit <= len(failed) <= limit + (1 if kind == "refused" else 10)
    assert unasked or kind == "retried"  # the good rows are answered while the bad ones wait
    assert all(row.max_errors == limit and not row.attempts and row.cost == 0 for row in unasked)
    assert all("max_errors=" in str(row) for row in unasked)
    answered = [index for index, row in results.items() if isinstance(row, Response)]
    asked = simulator.ledger().requests

    simulator.drop_faults()
    again = ask_many(client, way, prompts, max_concurrent=2)
    right = 16 if kind == "wrong input" else 20
    assert sum(isinstance(row, Response) for row in again.values()) == right
    assert all(again[index].cached for index in answered)
    assert simulator.ledger().requests - asked == right - len(answered)


@pytest.mark.parametrize("way", MANY)
def test_the_end_does_not_wait_for_retries_and_gates(client: Client, simulator: Simulator, way: str) -> None:
    simulator.inject(Fault(status=429, retry_after="3000"), match="slow", times=None)
    simulator.inject(Fault(status=400, delay=0.3), match="bad", times=None)
    prompts = ["bad", *(f"slow {number}" for number in range(20))]
    results = ask_many(client, way, prompts, max_errors=1, max_concurrent=4)
    # It would take 50 minutes otherwise.
    assert len(results) == len(prompts)
    assert not any(isinstance(row, Response) for row in results.values())
    assert wait_until(lambda: simulator.ledger().in_flight == 0)


@pytest.mark.parametrize("way", MANY)
def test_requests_under_way_are_awaited_and_stored(client: Client, simulator: Simulator, way: str) -> None:
    simulator.inject(Fault(status=400), match="bad", times=None)
    simulator.inject(Fault(delay=0.5), match="good", times=None)
    prompts = ["good 1", "good 2", "good 1", "bad"]
    first = ask_many(client, way, prompts, max_errors=1, max_concurrent=4)
    assert [isinstance(first[index], Response) for index in range(4)] == [True, True, True, False]
    again = ask_many(client, way, prompts[:3], cache="only")
    assert all(again[index].cached for index in range(3))


@pytest.mark.parametrize("way", ["iter_many", "aiter_many"])
def test_an_endless_iterator_is_read_no_further(client: Client, simulator: Simulator, way: str) -> None:
    simulator.inject(Fault(status=400), match="bad", times=None)
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield f"bad {read}"

    results = ask_many(client, way, endless(), max_errors=5, max_concurrent=4)
    assert 5 < len(results) <= read < 100


def test_the_rows_of_each_model_count_by_themselves(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400), provider="openai", times=None)
    prompts = [f"question {number}" for number in range(12)]
    both = client.call_many([MODEL, "claude-haiku-5-5"], prompts, max_errors=2, max_concurrent=1)
    assert len(both["claude-haiku-5-5"].ok) == 12
    assert any(isinstance(row, TooManyErrorsError) for row in both[MODEL])


def test_a_raised_error_has_the_results_so_far(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400), match="bad", times=None)
    with pytest.raises(BatchError, match=r"were not sent\); the first") as caught:
        client.call_many(
            MODEL, ["good", "bad", "good 1", "good 2"], max_errors=1, max_concurrent=1, on_error="raise"
        )
    results = caught.value.results
    assert isinstance(results, Results)
    assert results.texts[0] is not None
    assert isinstance(results[3], TooManyErrorsError)
    assert isinstance(LLMError.from_dict(results[3].to_dict()), TooManyErrorsError)


def test_one_warning_tells_the_end(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400), match="bad", times=None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client.call_many(MODEL, [f"bad {number}" for number in range(9)], max_errors=2, max_concurrent=1)
    told = [str(each.message) for each in caught]
    assert len(told) == 1
    assert "2 rows of this batch failed (max_errors=2)" in told[0]


@pytest.mark.parametrize("way", ["acall_many", "call_many"])
@pytest.mark.parametrize(
    "more", [{"fallback": ["gpt-5.4-mini"]}, {"n": 3}, {"budget": 1.0}, {"cache": "off"}]
)
def test_the_end_crosses_other_features(
    client: Client, simulator: Simulator, way: str, more: dict[str, Any]
) -> None:
    simulator.inject(Fault(status=400), match="bad", times=None)
    prompts = [f"bad {number}" for number in range(12)]
    results = ask_many(client, way, prompts, max_errors=2, max_concurrent=1, max_tokens=20, **more)
    unasked = [row for row in results.values() if isinstance(row, TooManyErrorsError)]
    assert len(unasked) >= 12 - 2 - 2


def test_decisions_have_the_same_end(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400), match="bad", times=None)
    inputs = [f"bad {number}" for number in range(8)]
    decided = client.decide_many(
        MODEL,
        inputs,
        {"good": predicate("Is it good?")},
        method="sampled",
        draws=1,
        max_errors=1,
        max_concurrent=1,
    )
    assert sum(isinstance(row, TooManyErrorsError) for row in decided) >= 6


def test_misses_of_a_replay_count_too(client: Client) -> None:
    results = client.call_many(MODEL, ["a", "b", "c"], max_errors=2, cache="only")
    assert [type(row).__name__ for row in results] == ["CacheMissError"] * 3


@pytest.mark.parametrize("wrong", [0, -1, 1.0, 2.5, 0.0, float("nan"), float("inf"), True, "3", [1], 2**40])
def test_a_wrong_limit_is_refused_by_name(client: Client, wrong: Any) -> None:
    with pytest.raises(RequestError, match="max_errors must be"):
        client.call_many(MODEL, ["a"], max_errors=wrong)


def test_what_cannot_end_is_refused_before_anything_is_sent(client: Client, simulator: Simulator) -> None:
    with pytest.raises(RequestError, match="a share of all inputs"):
        client.call_many(MODEL, iter(["a"]), max_errors=0.5)
    with pytest.raises(RequestError, match="delivery='live'"):
        client.call_many(MODEL, ["a"], max_errors=1, delivery="batch")
    with pytest.raises(TypeError, match="call_many"):
        client.call(MODEL, "a", max_errors=1)  # type: ignore[call-overload]
    assert isinstance(client.call_many(MODEL, ["a"], max_errors=1, delivery="auto")[0], Response)
    assert simulator.ledger().requests == 1


async def test_an_equal_call_of_another_batch_goes_on(client: Client, simulator: Simulator) -> None:
    """Its question was waiting in the batch that has ended, and is asked all the same."""
    simulator.inject(Fault(status=400, delay=0.3), match="bad")
    ends = asyncio.create_task(client.acall_many(MODEL, ["bad", "same"], max_errors=1, max_concurrent=1))
    await asyncio.to_thread(wait_until, lambda: simulator.ledger().in_flight == 1)
    other = await client.acall_many(MODEL, ["same"])
    assert isinstance(other[0], Response)
    assert type((await ends)[0]).__name__ == "BadRequestError"
