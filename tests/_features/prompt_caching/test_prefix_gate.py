"""The first call of each common prefix goes alone, and the bill shows it."""

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from llm_provider import BadRequestError, Client, Response
from llm_provider.simulator import Fault, Simulator
from support import wait_until

PRICES = str(Path(__file__).parents[3] / "prices.csv")
TOKENS = 5120
DOCUMENT = ("The quick brown fox jumps over the lazy dog again. " * 402)[: 4 * TOKENS]
"""So many tokens of the simulator's, a multiple of OpenAI's 128."""
OTHER = "A slow red fox does not jump over any dog. " * 480
CLAUDE = "claude-sonnet-5-5"


def about(document: str, count: int, start: int = 0) -> list[list[dict[str, Any]]]:
    def question(number: int) -> list[dict[str, Any]]:
        parts = [{"type": "text", "text": text} for text in (document, f"What is {number}+{number}?")]
        return [{"role": "user", "content": parts}]

    return [question(number) for number in range(start, start + count)]


@pytest.fixture
def cached(simulator: Simulator) -> Simulator:
    simulator.configure(prompt_cache=True, prices=PRICES, output_tokens=4, latency=0.01)
    return simulator


@pytest.mark.parametrize(
    ("model", "write", "read", "written", "form"),
    [
        (CLAUDE, "2.5", "0.1", TOKENS, "system"),
        ("gpt-6.1-sol", "2.5", "0.1", TOKENS, "parts"),
        ("gpt-5.5", "5", "0.5", 0, "parts"),
        ("gemini-3.8-flash", "0.75", "0.075", 0, "system"),
    ],
)
def test_a_prefix_is_written_once_and_then_read(
    cached: Simulator, client: Client, model: str, write: str, read: str, written: int, form: str
) -> None:
    count = 12
    if form == "system":
        questions = [f"What is {number}+{number}?" for number in range(count)]
        results = client.call_many(model, questions, system=DOCUMENT, prompt_caching=True)
    else:
        results = client.call_many(model, about(DOCUMENT, count), prompt_caching=True)
    assert not results.errors
    (counts,) = cached.ledger().models
    assert counts.cache_write_input_tokens == written
    assert counts.cache_read_input_tokens == (count - 1) * TOKENS
    assert results.cost == pytest.approx(float(counts.billed))
    questions_only = counts.input_tokens - count * TOKENS
    rest = {CLAUDE: (2, 10), "gpt-6.1-sol": (2, 10), "gpt-5.5": (5, 30), "gemini-3.8-flash": ("0.75", "3.75")}
    each, out = map(Decimal, rest[model])
    bound = TOKENS * (Decimal(write) + (count - 1) * Decimal(read)) + questions_only * each
    bound = (bound + counts.output_tokens * out) / 1_000_000
    assert bound <= counts.billed <= bound * Decimal("1.05")


def test_the_key_of_the_own_cache_is_that_without_it(cached: Simulator, client: Client) -> None:
    client.call_many(CLAUDE, about(DOCUMENT, 2), prompt_caching=True)
    client.call(CLAUDE, "1+1?", system=DOCUMENT, prompt_caching=True)
    assert all(result.cached for result in client.call_many(CLAUDE, about(DOCUMENT, 2)))  # type: ignore[union-attr]  # known to be set here
    assert client.call(CLAUDE, "1+1?", system=DOCUMENT).cached
    with client.stream(CLAUDE, "2+2?", system=DOCUMENT, prompt_caching=True) as deltas:
        list(deltas)
    assert "cache_control" in str(cached.requests()[-1].body["system"])
    assert cached.ledger().model("anthropic", CLAUDE).cache_read_input_tokens == 2 * TOKENS


def test_a_prefix_of_one_call_is_not_written(cached: Simulator, client: Client) -> None:
    client.call_many(CLAUDE, about(DOCUMENT, 3), prompt_caching=True)
    client.call_many(CLAUDE, [*about(DOCUMENT, 4), *about(OTHER, 1)], prompt_caching=True)
    # Three answers are stored, so one call of each prefix is left.
    bodies = [request.body for request in cached.requests()]
    assert ["cache_control" in str(body) for body in bodies] == [True] * 3 + [False] * 2
    client.call_many("gpt-6.1-sol", about(DOCUMENT, 1), prompt_caching=True)
    assert cached.ledger().model("openai", "gpt-6.1-sol").cache_write_input_tokens == 0


def test_short_prefixes_are_not_held_back(simulator: Simulator, client: Client) -> None:
    simulator.inject(Fault(hang=True), times=1, match="What is 0")
    inputs = [f"What is {number}+{number}?" for number in range(6)]
    results = client.iter_many(CLAUDE, inputs, system="Be brief.", prompt_caching=True)
    assert sorted(next(results)[0] for _ in range(5)) == [1, 2, 3, 4, 5]
    results.close()  # type: ignore[attr-defined]  # a generator


@pytest.mark.parametrize("way", ["sync", "async"])
def test_other_prefixes_are_not_held_back(cached: Simulator, client: Client, way: str) -> None:
    cached.inject(Fault(hang=True), times=1, match="What is 0")
    inputs = [*about(DOCUMENT, 3), *about(OTHER, 3, start=10)]

    async def first_three() -> list[int]:
        results = []
        async for index, _ in client.aiter_many(CLAUDE, inputs, prompt_caching=True):
            results.append(index)
            if len(results) == 3:
                break
        return results

    if way == "async":
        answered = asyncio.run(first_three())
    else:
        results = client.iter_many(CLAUDE, inputs, prompt_caching=True)
        answered = [next(results)[0] for _ in range(3)]
        results.close()  # type: ignore[attr-defined]  # a generator
    assert sorted(answered) == [3, 4, 5]
    # Leaving the loop has cancelled the first call, and those that waited for it were never sent.
    assert wait_until(lambda: cached.ledger().in_flight == 0)
    assert len(cached.requests()) == 4


def test_after_a_failure_the_next_call_leads(cached: Simulator, client: Client) -> None:
    cached.inject(Fault(status=400), times=1, match="What is 0")
    results = client.call_many(CLAUDE, about(DOCUMENT, 5), prompt_caching=True)
    assert isinstance(results[0], BadRequestError)
    assert all(isinstance(result, Response) for result in results[1:])
    counts = cached.ledger().model("anthropic", CLAUDE)
    assert (counts.cache_write_input_tokens, counts.cache_read_input_tokens) == (TOKENS, 3 * TOKENS)


def test_calls_that_all_fail_are_not_sent_one_by_one(cached: Simulator, client: Client) -> None:
    cached.inject(Fault(status=400, delay=0.05), times=20)
    assert len(client.call_many(CLAUDE, about(DOCUMENT, 12), prompt_caching=True).errors) == 12
    assert cached.ledger().peak_in_flight > 1


def test_inputs_that_come_one_by_one_are_cached_from_the_second_on(cached: Simulator, client: Client) -> None:
    def slowly() -> Iterator[list[dict[str, Any]]]:
        for number, prompt in enumerate(about(DOCUMENT, 4)):
            # Each is answered before the next one is read, so no two are gathered together.
            assert wait_until(lambda number=number: answered() == number)  # type: ignore[misc]  # the default binds it
            yield prompt

    def answered() -> int:
        return cached.ledger().answered

    assert not client.call_many(CLAUDE, slowly(), prompt_caching=True).errors
    counts = cached.ledger().model("anthropic", CLAUDE)
    assert (counts.cache_write_input_tokens, counts.cache_read_input_tokens) == (TOKENS, 2 * TOKENS)
