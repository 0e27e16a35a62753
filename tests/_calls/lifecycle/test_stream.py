"""Streams: deltas, the final response, leaving early, errors before and after the first delta."""

from __future__ import annotations

import asyncio
import gc

import pytest

from llm_provider import (
    APIResponseValidationError,
    Client,
    Delta,
    InternalServerError,
    LLMError,
    RequestError,
    Response,
    Stream,
)
from llm_provider.simulator import Fault, Simulator
from raw_server import RawServer, streaming
from support import wait_until

MODEL = "gpt-6.1-sol"
STORY = "tell a story of several words, please"


async def collect(client: Client, prompt: str) -> tuple[list[Delta], Response]:
    stream = client.astream(MODEL, prompt)
    return [delta async for delta in stream], stream.response


def test_deltas_add_up_to_the_response(client: Client) -> None:
    with client.stream(MODEL, STORY, cache="off") as stream:
        deltas = list(stream)
    assert len(deltas) > 3
    assert "".join(str(delta) for delta in deltas) == stream.response.text == f"echo: {STORY}"
    called = client.call(MODEL, STORY, cache="off")
    assert stream.response.choices == called.choices
    assert stream.response.usage == called.usage
    assert called.timing.first_token is None
    timing = stream.response.timing
    assert 0 < timing.first_token <= timing.total


def test_asynchronous_deltas_add_up(client: Client) -> None:
    deltas, response = asyncio.run(collect(client, STORY))
    assert "".join(delta.text for delta in deltas) == response.text


def test_live_and_streamed_share_an_entry(client: Client, simulator: Simulator) -> None:
    live = client.call(MODEL, STORY)
    stream = client.stream(MODEL, STORY)
    assert [delta.text for delta in stream] == [live.text]
    assert stream.response.cached
    assert stream.response.cost == 0
    other = client.stream(MODEL, "another " + STORY)
    list(other)
    assert client.call(MODEL, "another " + STORY).choices == other.response.choices
    assert simulator.ledger().requests == 2


def test_response_is_there_only_at_the_end(client: Client) -> None:
    stream = client.stream(MODEL, STORY)
    with pytest.raises(RuntimeError, match="has not ended"):
        _ = stream.response
    list(stream)
    assert stream.response.finish_reason == "stop"
    assert list(stream) == []


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "claude-sonnet-5-5", "gemini/gemini-3.8-flash"])
@pytest.mark.sampled(3)
def test_unread_items_are_not_tracked_by_the_garbage_collector(
    client: Client, simulator: Simulator, model: str
) -> None:
    def deltas() -> set[int]:
        gc.collect()
        return {id(tracked) for tracked in gc.get_objects() if type(tracked) is Delta}

    simulator.configure(output_tokens=300, chunks=300)
    before = deltas()
    with client.stream(model, STORY, cache="off") as stream:
        wait_until(lambda: client.usage.requests == 1)
        assert deltas() <= before
        assert len(list(stream)) >= 300


@pytest.mark.parametrize("way", ["left", "left in a loop", "dropped"])
def test_a_stream_that_is_not_read_to_its_end_is_cancelled(
    client: Client, simulator: Simulator, way: str
) -> None:
    simulator.configure(chunk_interval=0.2, chunks=100)

    async def leave() -> None:
        async with client.astream(MODEL, STORY) as stream:
            async for _ in stream:
                break

    if way == "left in a loop":
        asyncio.run(leave())
    else:
        stream = client.stream(MODEL, STORY)
        next(stream)
        if way == "left":
            with stream:
                pass
            with pytest.raises(RuntimeError):
                _ = stream.response
            assert list(stream) == []
        del stream
        gc.collect()
    assert wait_until(lambda: simulator.ledger().disconnects == 1)


def test_cancelling_the_reader_cancels(client: Client, simulator: Simulator) -> None:
    simulator.configure(latency=30)

    async def main() -> None:
        task = asyncio.create_task(collect(client, STORY))
        while simulator.ledger().in_flight == 0:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert wait_until(lambda: simulator.ledger().disconnects == 1)


def test_a_failure_before_the_first_delta_is_retried(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=500), times=1)
    stream = client.stream(MODEL, STORY)
    list(stream)
    assert stream.response.timing.attempts == 2


@pytest.mark.parametrize("fault", [Fault(cut_after=3), Fault(error_after=3)])
def test_a_failure_after_the_first_delta_is_raised(
    client: Client, simulator: Simulator, fault: Fault
) -> None:
    simulator.inject(fault, times=None)
    stream = client.stream(MODEL, STORY)
    deltas = []
    with pytest.raises(LLMError) as caught:
        deltas.extend(stream)
    assert isinstance(caught.value, (APIResponseValidationError, InternalServerError))
    assert caught.value.maybe_billed
    assert caught.value.attempts == 1
    simulator.clear()
    assert not client.call(MODEL, STORY).cached


def test_an_empty_stream_is_an_error(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(empty_stream=True), times=None)
    with pytest.raises(APIResponseValidationError, match="empty"):
        list(client.stream(MODEL, STORY, max_retries=0))


def test_bad_input_raises_at_once(client: Client, simulator: Simulator) -> None:
    with pytest.raises(RequestError):
        client.stream(MODEL, [])
    assert simulator.ledger().requests == 0


def by_sample(stream: Stream) -> dict[int, str]:
    """The text of each sample, from the deltas."""
    texts: dict[int, str] = {}
    for delta in stream:
        texts[delta.index] = texts.get(delta.index, "") + delta.text
    return texts


@pytest.mark.parametrize(
    ("model", "requests"), [(MODEL, 1), ("gemini-3.8-flash", 1), ("claude-sonnet-5-5", 2)]
)
def test_the_deltas_of_several_samples_carry_their_number(
    client: Client, simulator: Simulator, model: str, requests: int
) -> None:
    stream = client.stream(model, STORY, n=2)
    assert by_sample(stream) == dict(enumerate(stream.response.texts))
    assert len(stream.response.texts) == 2
    assert simulator.ledger().requests == requests
    # The stored samples are streamed as well, and only the third is asked for.
    more = client.stream(model, STORY, n=3)
    assert by_sample(more) == dict(enumerate(more.response.texts))
    assert more.response.texts[:2] == stream.response.texts
    assert simulator.ledger().requests == requests + 1
    again = client.stream(model, STORY, n=3)
    assert by_sample(again) == dict(enumerate(more.response.texts))
    assert again.response.cached
    assert simulator.ledger().requests == requests + 1


def chunk(*choices: tuple[int, str, str | None]) -> dict[str, object]:
    pieces = [
        {"index": index, "delta": {"content": text}, "finish_reason": end} for index, text, end in choices
    ]
    return {"id": "c1", "model": "m", "choices": pieces}


def test_samples_that_arrive_together_are_told_apart() -> None:
    together = [
        chunk((1, "B", None), (0, "a", None)),
        chunk((0, "", "stop"), (1, "", "stop")),
        # More than was asked for.
        chunk((2, "x", "stop")),
    ]
    with RawServer(streaming(together)) as server, Client(cache="off") as client:
        stream = client.stream("local/m", STORY, n=2, base_url=f"{server.root}/v1")
        assert by_sample(stream) == {0: "a", 1: "B"} == dict(enumerate(stream.response.texts))
        assert server.requests == 1


def test_a_server_that_streams_one_sample_is_asked_again() -> None:
    with RawServer(streaming([chunk((0, "a", "stop"))])) as server, Client(cache="off") as client:
        stream = client.stream("local/m", STORY, n=2, base_url=f"{server.root}/v1")
        assert by_sample(stream) == {0: "a", 1: "a"} == dict(enumerate(stream.response.texts))
        assert server.requests == 2
