"""Servers with places, a queue and a prefix cache, over real sockets."""

import http.client
import json
import time
from concurrent.futures import ThreadPoolExecutor

from llm_provider.simulator import Simulator

BEGINNING = "word " * 800
"""1,000 tokens."""


def ask(simulator: Simulator, question: str, timeout: float = 30) -> dict[str, int]:
    connection = http.client.HTTPConnection("127.0.0.1", simulator.port, timeout=timeout)
    body = {"model": "m", "messages": [{"role": "user", "content": question}]}
    try:
        connection.request("POST", "/lab/v1/chat/completions", json.dumps(body))
        usage: dict[str, int] = json.loads(connection.getresponse().read())["usage"]
    finally:
        connection.close()
    return usage


def test_requests_without_a_place_wait_and_are_never_refused() -> None:
    with Simulator(served_at_once=2, latency=0.05) as simulator, ThreadPoolExecutor(10) as threads:
        begun = time.monotonic()
        list(threads.map(lambda number: ask(simulator, f"What is {number}+1?"), range(10)))
        # Two at a time take five rounds, however slow the machine is.
        assert time.monotonic() - begun >= 0.25
        assert simulator.ledger().statuses == {200: 10}


def test_a_client_that_leaves_frees_its_place_or_its_turn() -> None:
    with Simulator(served_at_once=1, latency=60.0) as simulator, ThreadPoolExecutor(3) as threads:
        left = [threads.submit(ask, simulator, "Hi", 0.2) for _ in range(3)]
        assert all(isinstance(one.exception(), TimeoutError) for one in left)
        simulator.configure(latency=0.0)
        ask(simulator, "Hi")
        assert simulator.ledger().disconnects == 3


def test_beginnings_are_kept_until_others_take_their_room() -> None:
    with Simulator(prefix_tokens=1500) as simulator:
        read = [
            ask(simulator, question)["prompt_tokens_details"]["cached_tokens"]  # type: ignore[index]  # JSON
            for question in (f"{BEGINNING}a", f"{BEGINNING}b", "other " * 900, f"{BEGINNING}c")
        ]
    assert read[0] == read[2] == 0
    assert read[1] >= 990
    assert 0 < read[3] < 300
