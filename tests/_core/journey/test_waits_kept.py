"""A wait that a provider asks for is kept by every kind of request."""

import itertools
import re
from collections.abc import Callable

import pytest

from llm_provider import Client
from llm_provider.simulator import Fault, Simulator
from support import ask

MODEL = "gpt-6.1-sol"
WAIT = 0.15
"""Seconds."""


def send_batch(client: Client) -> object:
    (result,) = client.call_many(MODEL, ["1+1?"], delivery="batch")
    return result.text  # type: ignore[union-attr]  # it does not fail


def cancel_batch(client: Client) -> object:
    batch = client.submit_many(MODEL, ["1+1?"])
    batch.cancel()
    return batch


REQUESTS: dict[str, tuple[str, Callable[[Client], object]]] = {
    **{
        way: ("Hi", lambda client, way=way: ask(client, way, MODEL))
        for way in ("call", "astream", "acall_many", "iter_many")
    },
    "embed": ("", lambda client: client.embed("text-embedding-3-small", ["a"])),
    "count_tokens": ("", lambda client: client.count_tokens("claude-sonnet-5-5", "Hi")),
    "models": ("models.list", lambda client: client.models("openai", live=True)),
    "files.upload": ("files.upload", send_batch),
    "batches.create": ("batches.create", send_batch),
    "batches.retrieve": ("batches.retrieve", send_batch),
    "files.download": ("files.download", send_batch),
    "batches.cancel": ("batches.cancel", cancel_batch),
}


@pytest.mark.parametrize("kind", REQUESTS)
@pytest.mark.usefixtures("fast_batches")
def test_a_wait_that_is_asked_for_is_kept(client: Client, simulator: Simulator, kind: str) -> None:
    match, use = REQUESTS[kind]
    if kind == "batches.cancel":
        simulator.configure(batch_seconds=80_000.0)
    simulator.inject(Fault(status=429, retry_after=str(WAIT)), times=2, match=match or None)
    assert use(client)
    requests = simulator.requests()
    refused = [number for number, request in enumerate(requests) if request.status == 429]
    assert len(refused) == 2, [(request.path, request.status) for request in requests]
    for number in refused:
        path = requests[number].path
        again = next(each for each in itertools.islice(requests, number + 1, None) if each.path == path)
        assert again.time - requests[number].time >= WAIT


@pytest.mark.usefixtures("fast_batches")
def test_between_two_looks_at_a_batch_there_is_a_pause(client: Client, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=40.0, batch_clock=100.0)  # 0.4 s
    assert send_batch(client) == "2"
    paths = [(request.path, request.time) for request in simulator.requests()]
    looks = [time for path, time in paths if re.fullmatch(r".*/batches/[^/?]+", path)]
    assert len(looks) > 1
    assert all(later - look >= 0.015 for look, later in itertools.pairwise(looks[:-1]))
