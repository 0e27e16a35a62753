"""What `RequestTimeline` records is what the provider has seen, in every way of calling."""

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_provider import Client, LLMError, RequestTimeline, predicate
from llm_provider.simulator import Fault, Simulator

MODEL = "gpt-6.1-sol"
PROMPTS = [f"What is {number} + 1?" for number in range(4)]


def stream(client: Client) -> None:
    for prompt in PROMPTS:
        with client.stream(MODEL, prompt) as deltas:
            assert [*deltas]


async def gather(client: Client) -> None:
    await asyncio.gather(*(client.acall(MODEL, prompt) for prompt in PROMPTS))


WAYS: dict[str, Callable[[Client], Any]] = {
    "call": lambda client: [client.call(MODEL, prompt) for prompt in PROMPTS],
    "acall": lambda client: asyncio.run(gather(client)),
    "call_many": lambda client: client.call_many(MODEL, PROMPTS),
    "samples": lambda client: client.call_many(MODEL, PROMPTS[:2], n=2),
    "iter_many": lambda client: [*client.iter_many(MODEL, PROMPTS)],
    "stream": stream,
    "embed": lambda client: [client.embed("text-embedding-3-small", [prompt]) for prompt in PROMPTS],
    "decide": lambda client: client.decide_many("gpt-6-luna", PROMPTS, {"even": predicate("It is even.")}),
}


def count(timeline: RequestTimeline) -> Counter[str]:
    return Counter(row.outcome for row in timeline.rows)


@pytest.mark.parametrize("way", WAYS)
def test_each_request_is_recorded_once(way: str, client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=429, retry_after="0.01"), times=2)
    simulator.inject(Fault(status=500), times=1)
    with RequestTimeline(client) as timeline:
        WAYS[way](client)
    sent = simulator.ledger()
    assert count(timeline) == {"answered": sent.answered, "refused": 2, "failed": 1}
    assert sent.requests == sent.answered + 3
    times = [row.time for row in timeline.rows]
    assert times == sorted(times)
    for row in timeline.rows:
        assert row.in_flight >= 1
        assert row.window is None or row.window >= 1


def test_stored_answers_and_what_is_outside_the_block_are_not_recorded(client: Client) -> None:
    client.call(MODEL, PROMPTS[0])
    listeners = client._engine.events.listeners
    with RequestTimeline(client) as timeline:
        with RequestTimeline(client.with_options(max_tokens=500)) as inner:
            client.call_many(MODEL, PROMPTS[:3])
        client.call(MODEL, PROMPTS[3])
    assert client._engine.events.listeners == listeners
    client.call(MODEL, PROMPTS[3], draw=1)
    assert (len(timeline.rows), len(inner.rows)) == (3, 2)


def test_a_block_that_raises_stops_recording(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=400))
    with pytest.raises(LLMError), RequestTimeline(client) as timeline:
        client.call(MODEL, PROMPTS[0])
    client.call(MODEL, PROMPTS[1])
    assert [(row.model, row.outcome) for row in timeline.rows] == [(MODEL, "failed")]


def test_a_limit_that_was_found_is_recorded(simulator: Simulator, own_cache: Path) -> None:
    simulator.configure(requests_per_minute=6000, burst=5, rate_limit_headers=False)
    with Client(cache_dir=own_cache) as client, RequestTimeline(client) as timeline:
        client.call_many(MODEL, PROMPTS * 12, cache="off")
        (scope,) = client.statistics()
    assert count(timeline)["refused"] == scope.refusals > 0
    assert timeline.rows[0].rate is None
    assert any(row.rate is not None for row in timeline.rows)
