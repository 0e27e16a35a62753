"""Outages end to end: a provider that fails every request, or is gone, is waited for."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from llm_provider import (
    APIConnectionError,
    APIResponseValidationError,
    APITimeoutError,
    Client,
    InternalServerError,
    LLMError,
    OverloadedError,
    RequestError,
    Response,
    Timeouts,
)
from llm_provider.simulator import Fault, Simulator
from support import wait_until

MODEL = "gpt-6.1-sol"
MODELS = {"openai": MODEL, "anthropic": "claude-sonnet-5-5", "gemini": "gemini-3.8-flash"}


def after(condition: Callable[[], bool], action: Callable[[], None]) -> threading.Thread:
    """Does something in another thread as soon as a condition holds."""

    def run() -> None:
        wait_until(condition)
        action()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


@pytest.mark.parametrize("status", [500, 503])
def test_a_batch_waits_while_every_request_fails(
    client: Client, simulator: Simulator, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    caplog.set_level(logging.INFO, "llm_provider")
    simulator.configure(latency=0.05)
    simulator.inject(Fault(status=status), times=None, match="later")
    seen: list[str] = []
    results: list[Response | LLMError] = []

    def batch() -> None:
        prompts = [f"{'later ' if index > 20 else ''}{index}" for index in range(300)]
        results.extend(client.call_many(MODEL, prompts, max_concurrent=30))

    thread = threading.Thread(target=batch)
    thread.start()
    wait_until(lambda: any(scope.down_for is not None for scope in client.statistics()))
    failed = simulator.ledger().requests
    down = next(scope for scope in client.statistics() if scope.down_for is not None)
    time.sleep(1.0)
    seen += [record.getMessage() for record in caplog.records if record.name == "llm_provider"]
    # Only probes are sent: at 0.5 s, and perhaps the next.
    assert simulator.ledger().requests - failed <= 30 + 3
    simulator.clear()
    thread.join(60)
    assert [result.text for result in results if isinstance(result, Response)] == [
        f"echo: {'later ' if index > 20 else ''}{index}" for index in range(300)
    ]
    assert down.next_try is not None
    assert down.next_try <= 0.6
    assert re.fullmatch(rf"openai {MODEL} is down since \d\d:\d\d:\d\d, next try in 0\.\d s: .+", seen[0]), (
        seen
    )
    about_scope = [record.getMessage() for record in caplog.records if record.name == "llm_provider"]
    assert about_scope[-1].startswith(f"openai {MODEL} answers again after ")
    assert len(about_scope) == 2
    attempts = [result.timing.attempts for result in results if isinstance(result, Response)]
    assert sum(attempts) <= 300 + 2 * 30 + 10


@pytest.mark.parametrize("provider", MODELS)
def test_a_server_that_is_gone_is_waited_for(provider: str, own_cache: Path) -> None:
    port = free_port()
    started: list[Simulator] = []
    results: list[Response | LLMError] = []
    with Client(cache="off") as client:

        def batch() -> None:
            results.extend(
                client.call_many(
                    MODELS[provider],
                    [str(index) for index in range(200)],
                    max_concurrent=40,
                    base_url=f"http://127.0.0.1:{port}/{provider}",
                    api_key="sk-test",
                )
            )

        thread = threading.Thread(target=batch)
        thread.start()
        wait_until(lambda: any(scope.down_for is not None for scope in client.statistics()))
        time.sleep(0.7)
        with Simulator(port=port) as simulator:
            started.append(simulator)
            thread.join(60)
            assert not thread.is_alive()
            assert simulator.ledger().requests == 200
    kinds = Counter(type(result).__name__ for result in results)
    assert kinds == {"Response": 200}, [result for result in results if isinstance(result, LLMError)][:2]


def test_a_single_call_says_how_long_the_provider_was_down(client: Client) -> None:
    began = time.monotonic()
    with pytest.raises(APIConnectionError) as caught:
        client.call(
            MODEL, "Hi", base_url=f"http://127.0.0.1:{free_port()}/v1", api_key="k", outage_patience=1.5
        )
    error = caught.value
    assert re.search(
        r"openai gpt-6\.1-sol was down for \d+(\.\d)? s, since \d\d:\d\d:\d\d, and outage_patience is over; "
        r"the last failure: ",
        str(error),
    ), error
    assert error.attempts == len(error.failures) >= 5
    assert not error.maybe_billed
    assert time.monotonic() - began < 30


def test_a_batch_is_impatient_once_for_all_its_calls(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=500), times=None)
    began = time.monotonic()
    results = client.call_many(
        MODEL, [str(index) for index in range(400)], max_concurrent=20, outage_patience=1
    )
    assert {type(result) for result in results} == {InternalServerError}
    assert time.monotonic() - began < 20
    assert simulator.ledger().requests < 60
    assert "was down for" in str(results[-1])
    assert isinstance(results[-1], LLMError)
    assert results[-1].attempts == 0


def test_a_deadline_wins(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=500), times=None)
    began = time.monotonic()
    results = client.call_many(MODEL, [str(index) for index in range(50)], max_concurrent=10, deadline=2)
    assert {type(result) for result in results} == {APITimeoutError}
    assert time.monotonic() - began < 10


def test_without_retries_nothing_is_sent_twice(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=500), times=None)
    results = client.call_many(
        MODEL, [str(index) for index in range(60)], max_concurrent=10, max_retries=0, outage_patience=2
    )
    assert all(isinstance(result, InternalServerError) and result.attempts <= 1 for result in results)
    requests = Counter(str(request.body) for request in simulator.requests())
    assert max(requests.values()) == 1


def test_one_prompt_that_always_fails_stops_no_batch(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=500), times=None, match="poison")
    prompts = ["poison" if index == 7 else str(index) for index in range(100)]
    results = client.call_many(MODEL, prompts, max_concurrent=8, outage_patience=5)
    failed = [index for index, result in enumerate(results) if isinstance(result, LLMError)]
    assert failed == [7]


def test_what_may_have_been_billed_counts_as_an_attempt_during_an_outage(
    client: Client, simulator: Simulator
) -> None:
    simulator.inject(Fault(delay=30.0), times=None)
    results = client.call_many(
        MODEL,
        [str(index) for index in range(20)],
        max_concurrent=20,
        max_retries=1,
        timeout=Timeouts(total=0.3),
        outage_patience=4,
    )
    assert all(isinstance(result, APITimeoutError) for result in results)
    requests = Counter(str(request.body) for request in simulator.requests())
    assert max(requests.values()) <= 2


def test_a_cancelled_probe_leaves_the_others_waiting_for_the_next(
    simulator: Simulator, own_cache: Path
) -> None:
    simulator.inject(Fault(status=500), times=None)

    async def main() -> None:
        async with Client(cache="off") as client:
            tasks = [asyncio.create_task(client.acall(MODEL, str(index))) for index in range(30)]
            while all(scope.down_for is None for scope in client.statistics()):
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)
            for task in tasks[:29]:
                task.cancel()
            simulator.clear()
            assert (await tasks[29]).text == "echo: 29"
            await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_call_that_is_alone_waits_as_long_as_its_patience(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=500), times=None)
    answers: list[Response] = []
    thread = threading.Thread(target=lambda: answers.append(client.call(MODEL, "Hi", outage_patience=300)))
    thread.start()
    wait_until(lambda: simulator.ledger().requests >= 12)  # more than max_retries allows outside an outage
    simulator.clear()
    thread.join(60)
    assert [answer.text for answer in answers] == ["echo: Hi"]


FAILURES = {
    "500": (Fault(status=500), InternalServerError),
    "503": (Fault(status=503, retry_after="0.01"), OverloadedError),
    "timeout": (Fault(delay=30.0), APITimeoutError),
    "cut": (Fault(abort_after=0), APIConnectionError),
    "malformed": (Fault(body="{"), APIResponseValidationError),
}
WAYS = ("call_many", "acall_many", "iter_many", "call", "acall")


def run(client: Client, way: str, prompts: list[str], **parameters: Any) -> list[Response | LLMError]:
    """The results of some prompts, in one of the ways to call."""
    if way == "call_many":
        return list(client.call_many(MODEL, prompts, **parameters))
    if way == "acall_many":
        return list(asyncio.run(client.acall_many(MODEL, prompts, **parameters)))
    if way == "iter_many":
        return list(dict(sorted(client.iter_many(MODEL, iter(prompts), **parameters))).values())

    async def each() -> list[Any]:
        calls = (client.acall(MODEL, prompt, **parameters) for prompt in prompts)
        return await asyncio.gather(*calls, return_exceptions=True)

    if way == "acall":
        return asyncio.run(each())
    results: list[Response | LLMError] = []
    for prompt in prompts:
        try:
            results.append(client.call(MODEL, prompt, **parameters))
        except LLMError as error:
            results.append(error)
    return results


def crossings() -> list[Any]:
    """Every crossing of a resumed run with an outage; `make test` takes a sample of those that end soon."""
    flags = (True, False)
    return [
        pytest.param(
            *cell,
            marks=() if number % 37 == 0 and (cell[1] != "timeout" or cell[-1]) else pytest.mark.matrix,
        )
        for number, cell in enumerate(
            itertools.product(WAYS, FAILURES, (0, 3, 40), (1, 2, 6), (0, 3), flags, flags)
        )
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("way", "kind", "stored", "failing", "fresh", "explicit", "recovers"), crossings())
@pytest.mark.sampled(5)
def test_a_resumed_run_ends(
    client: Client,
    simulator: Simulator,
    way: str,
    kind: str,
    stored: int,
    failing: int,
    fresh: int,
    explicit: bool,
    recovers: bool,
) -> None:
    fault, expected = FAILURES[kind]
    good = [f"good {number}" for number in range(stored + fresh)]
    poison = [f"poison {number}" for number in range(failing)]
    assert all(isinstance(result, Response) for result in run(client, "call_many", good[:stored]))
    sent = simulator.ledger().requests
    # One call after the other would meet all failures with the first.
    times = 1 if way == "call" else failing
    simulator.inject(fault, times=times if recovers else None, match="poison")
    parameters: dict[str, Any] = {"timeout": Timeouts(total=1.0 if kind == "timeout" else 20)}
    parameters |= {"max_retries": 2} if explicit else {"outage_patience": 20 if recovers else 1}
    first = len(good) if way == "call" else stored
    results = run(client, way, good[:first] + poison + good[first:], **parameters)
    answered, failed = results[:first] + results[first + failing :], results[first : first + failing]
    assert all(isinstance(result, Response) for result in answered), answered
    bodies = [str(request.body) for request in simulator.requests()[sent:]]
    requests = {prompt: sum(f"'{prompt}'" in body for body in bodies) for prompt in good + poison}
    assert all(requests[prompt] == 1 for prompt in good[stored:])
    for result, prompt in zip(failed, poison, strict=True):
        assert isinstance(result, Response if recovers else expected), result
        attempts = result.timing.attempts if isinstance(result, Response) else result.attempts
        assert attempts == requests[prompt]
        assert attempts <= (3 if explicit else 11)


@pytest.mark.parametrize("way", WAYS)
def test_an_explicit_max_retries_holds_for_the_inputs_that_are_left(
    client: Client, simulator: Simulator, way: str
) -> None:
    prompts = [str(number) for number in range(100)]
    run(client, "call_many", prompts)
    simulator.inject(Fault(status=500), times=None, match="poison")
    for _ in range(2):
        results = run(client, way, [*prompts, "poison 1", "poison 2"], max_retries=2)
        assert [type(result) for result in results] == [Response] * 100 + [InternalServerError] * 2
        assert [result.attempts for result in results[100:] if isinstance(result, LLMError)] == [3, 3]


def test_the_max_retries_of_a_client_is_explicit(simulator: Simulator, own_cache: Path) -> None:
    simulator.inject(Fault(status=500), times=None)
    with Client(max_retries=7) as client, pytest.raises(InternalServerError) as caught:
        client.call(MODEL, "Hi")
    assert caught.value.attempts == 8


def test_the_inputs_that_are_left_do_not_make_a_provider_down(
    client: Client, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    prompts = [str(number) for number in range(100)]
    client.call_many(MODEL, prompts)
    simulator.inject(Fault(status=500), times=None, match="poison")
    results = client.call_many(MODEL, [*prompts, "poison 1", "poison 2"], outage_patience=3)
    assert [type(result) for result in results[100:]] == [InternalServerError] * 2
    assert not [record for record in caplog.records if "is down since" in record.getMessage()]


def test_a_server_that_is_gone_is_no_fault_of_the_inputs_that_are_left(
    client: Client, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    prompts = [str(number) for number in range(100)]
    url = f"http://127.0.0.1:{(port := free_port())}/openai"
    with Simulator(port=port):
        client.call_many(MODEL, prompts, base_url=url, api_key="sk-test")
    results = client.call_many(
        MODEL, [*prompts, "left 1", "left 2"], base_url=url, api_key="sk-test", outage_patience=2
    )
    assert [type(result) for result in results[100:]] == [APIConnectionError] * 2
    assert [record for record in caplog.records if "is down since" in record.getMessage()]


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", ["call_many", "acall_many"])
def test_the_default_of_max_retries_holds_for_suspects(
    client: Client, simulator: Simulator, way: str
) -> None:
    prompts = [str(number) for number in range(100)]
    run(client, "call_many", prompts)
    simulator.inject(Fault(status=500), times=None, match="poison")
    results = run(client, way, [*prompts, "poison 1", "poison 2"])
    assert [result.attempts for result in results[100:] if isinstance(result, LLMError)] == [11, 11]


@pytest.mark.parametrize("value", [-1, float("nan"), "60", True])
def test_a_patience_that_is_none(client: Client, simulator: Simulator, value: object) -> None:
    with pytest.raises(RequestError, match="outage_patience must be a number of seconds, 0 or more"):
        client.call(MODEL, "Hi", outage_patience=value)  # type: ignore[arg-type]  # wrong on purpose, or any value
    with pytest.raises(RequestError, match="outage_patience must be a number of seconds, 0 or more"):
        Client(outage_patience=value)  # type: ignore[arg-type]  # wrong on purpose, or any value
    assert simulator.ledger().requests == 0
