"""Outages end to end: a provider that fails every request, or is gone, is waited for."""

import asyncio
import logging
import re
import socket
import threading
import time
from typing import Any

import pytest

from llm_provider import APIConnectionError, Client, InternalServerError, LLMError, Response
from llm_provider.simulator import Fault, Simulator
from support import wait_until

MODEL = "gpt-6.1-sol"


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def is_down(client: Client) -> bool:
    return any(scope.down_for is not None for scope in client.statistics())


def test_a_batch_waits_while_every_request_fails(
    client: Client, simulator: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "llm_provider")
    simulator.configure(latency=0.05)
    simulator.inject(Fault(status=500), times=None, match="later")
    results: list[Response | LLMError] = []
    prompts = [f"{'later ' if index > 20 else ''}{index}" for index in range(300)]
    thread = threading.Thread(
        target=lambda: results.extend(client.call_many(MODEL, prompts, max_concurrent=30)), daemon=True
    )
    thread.start()
    wait_until(lambda: is_down(client))
    failed = simulator.ledger().requests
    (down,) = client.statistics()
    time.sleep(0.7)
    # Only probes are sent: at 0.5 s, and perhaps the next.
    assert simulator.ledger().requests - failed <= 30 + 3
    simulator.clear()
    thread.join(60)
    assert [getattr(result, "text", result) for result in results] == [f"echo: {text}" for text in prompts]
    assert down.next_try is not None
    assert down.next_try <= 0.6
    began, ended = (record.getMessage() for record in caplog.records if record.name == "llm_provider")
    assert re.fullmatch(rf"openai {MODEL} is down since \d\d:\d\d:\d\d, next try in 0\.\d s: .+", began)
    assert ended.startswith(f"openai {MODEL} answers again after ")
    assert sum(result.timing.attempts for result in results if isinstance(result, Response)) <= 300 + 70


@pytest.mark.long
def test_a_single_call_says_how_long_the_provider_was_down(client: Client) -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    with pytest.raises(APIConnectionError) as caught:
        client.call(MODEL, "Hi", base_url=url, api_key="k", outage_patience=1)
    error = caught.value
    assert re.search(
        r"openai gpt-6\.1-sol was down for \d+(\.\d)? s, since \d\d:\d\d:\d\d, and outage_patience is over; "
        r"the last failure: ",
        str(error),
    ), error
    assert error.attempts == len(error.failures) >= 5
    assert not error.maybe_billed


def test_a_batch_is_impatient_once_for_all_its_calls(client: Client, simulator: Simulator) -> None:
    simulator.inject(Fault(status=500), times=None)
    prompts = [str(index) for index in range(400)]
    results = client.call_many(MODEL, prompts, max_concurrent=20, outage_patience=1)
    assert {type(result) for result in results} == {InternalServerError}
    assert simulator.ledger().requests < 60
    assert "was down for" in str(results[-1])
    assert isinstance(results[-1], LLMError)
    assert results[-1].attempts == 0


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.sampled(3)
def test_the_inputs_that_are_left_make_no_provider_down_that_is_there(
    client: Client, caplog: pytest.LogCaptureFixture, gone: bool
) -> None:
    prompts = [str(number) for number in range(100)]
    port = free_port()
    address: dict[str, Any] = {"base_url": f"http://127.0.0.1:{port}/openai", "api_key": "sk-test"}
    with Simulator(port=port) as simulator:
        client.call_many(MODEL, prompts, **address)
        simulator.inject(Fault(status=500), times=None, match="left")
        if gone:
            simulator.close()
        results = client.call_many(MODEL, [*prompts, "left 1", "left 2"], **address, outage_patience=1)
    error = APIConnectionError if gone else InternalServerError
    assert [type(result) for result in results] == [Response] * 100 + [error] * 2
    assert gone == any("is down since" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize("transport", ["aiohttp", "http1"])
async def test_a_server_of_this_machine_that_is_not_started_is_told_soon(transport: Any) -> None:
    server: dict[str, Any] = {"base_url": f"http://127.0.0.1:{free_port()}/v1", "api_key": "k"}

    async def read_stream(client: Client) -> None:
        async for _ in client.astream(f"{MODEL}-0", "Hi", **server):
            pass

    with Client(cache="off", transport=transport) as client:
        ways = [
            *(client.acall(model, "Hi", **server) for model in ("local/m", MODEL)),
            read_stream(client),
            client.acall("local/a", "Hi", fallback=["local/b"], **server),
            client.aembed("local/e", ["Hi"], **server),
            client.acall_many("local/n", [str(number) for number in range(40)], **server),
            client.acall("local/w", "Hi", outage_patience=60, **server),
        ]
        tasks = [asyncio.ensure_future(way) for way in ways]
        # Those that wait for an outage would take a minute or an hour.
        await asyncio.wait(tasks[:-1], timeout=50)
        *ended, waiting = tasks
        assert (waiting.done(), [task.done() for task in ended]) == (False, [True] * len(ended))
        waiting.cancel()
        errors = [task.exception() for task in ended if task is not ended[-1]] + [*ended[-1].result()]
    for error in errors:
        assert isinstance(error, APIConnectionError), error
        assert error.code == "ECONNREFUSED"
        assert "nothing listens there; start the server" in str(error)


def test_a_server_of_this_machine_that_answered_before_is_waited_for(client: Client) -> None:
    port, ended = free_port(), list[Any]()
    address: dict[str, Any] = {"base_url": f"http://127.0.0.1:{port}/openai", "api_key": "sk-test"}
    with Simulator(port=port):
        client.call(MODEL, "Hi", **address)
    thread = threading.Thread(target=lambda: ended.append(client.call(MODEL, "Ho", **address)))
    thread.start()
    assert wait_until(lambda: is_down(client))
    assert wait_until(lambda: client.statistics()[0].down_for > 3.5 or bool(ended))
    assert not ended
    with Simulator(port=port):
        thread.join()
    assert ended[0].text
