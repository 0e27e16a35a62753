"""Requests that are given up, or killed, while they wait for a token or a connection cost nothing."""

import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llm_provider import APITimeoutError, Budget, Client, LLMError
from support import wait_until

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY")
ROUTES: dict[str, dict[str, Any]] = {
    "chat": {"model": "gpt-6.1-sol"},
    "responses": {"model": "gpt-6.1-sol", "endpoint": "responses"},
    "anthropic": {"model": "claude-haiku-5-5"},
    "gemini": {"model": "gemini-3.5-flash"},
}


@pytest.fixture
def silent_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server whose queue of connections is full, so that no other one is opened."""
    for name in KEYS:
        monkeypatch.setenv(name, "sk-test")
    server = socket.create_server(("127.0.0.1", 0), backlog=0)
    waiting = []
    for _ in range(4):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex(server.getsockname())
        waiting.append(client)
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    for each in (server, *waiting):
        each.close()


def by_deadline(client: Client, options: dict[str, Any]) -> LLMError:
    error = client.call_many(inputs=[f"Hi {number}" for number in range(5)], deadline=0.3, **options)[4]
    assert isinstance(error, APITimeoutError)
    assert error.message == "not answered by the deadline of 0.3 s: nothing was sent"
    return error


def by_timeout(client: Client, options: dict[str, Any]) -> LLMError:
    with pytest.raises(APITimeoutError) as raised:
        client.call(messages="Hi", timeout=0.3, max_retries=0, outage_patience=0, **options)
    return raised.value


def by_cancellation(client: Client, options: dict[str, Any]) -> None:
    stream = client.stream(messages="Hi", **options)
    thread = threading.Timer(0.3, stream.close)
    thread.start()
    with pytest.raises(RuntimeError, match="the stream was closed"):
        list(stream)
    thread.join()


Way = Callable[[Client, dict[str, Any]], LLMError | None]
WAYS: list[Way] = [by_deadline, by_timeout, by_cancellation]


@pytest.mark.parametrize("transport", ["aiohttp", "http2"])
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_what_waits_for_a_connection_costs_nothing(
    way: Way, route: str, transport: Any, silent_server: str, tmp_path: Path
) -> None:
    budget, ledger = Budget(0.50, path=tmp_path / "budget"), tmp_path / "ledger.jsonl"
    with Client(budget=budget, transport=transport, ledger=ledger) as client:
        error = way(client, ROUTES[route] | {"base_url": silent_server, "max_tokens": 9})
        assert error is None or (not error.maybe_billed and error.cost == 0)
        assert wait_until(lambda: not budget.reserved)
        assert not budget.spent
    assert not ledger.exists() or not ledger.read_text()


@pytest.mark.parametrize("route", ["chat", "responses"])
def test_what_waits_for_a_token_costs_nothing(route: str, silent_server: str, tmp_path: Path) -> None:
    answer, budget = threading.Event(), Budget(0.50, path=tmp_path / "budget")

    def hang() -> str:
        answer.wait(30)
        return "a token"

    with Client(budget=budget, keys={"openai": [hang]}) as client:
        by_deadline(client, ROUTES[route] | {"base_url": silent_server, "max_tokens": 9})
        assert not budget.reserved
        assert not budget.spent
        answer.set()


def test_a_killed_process_that_waits_for_a_token_has_spent_nothing(
    tmp_path: Path, warm_python: list[str], silent_server: str
) -> None:
    code = f"""
import time
from llm_provider import Budget, Client

def hang():
    print("asked", flush=True)
    time.sleep(60)

with Client(budget=Budget(0.50, path={str(tmp_path / "budget")!r}), keys={{"openai": [hang]}}) as client:
    client.call_many("gpt-6.1-sol", ["Hi"] * 100, max_tokens=9, base_url={silent_server!r})
"""
    program = subprocess.Popen([*warm_python, "-c", code], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdout.readline() == "asked\n"
    time.sleep(0.2)
    program.send_signal(signal.SIGKILL)
    program.communicate()
    budget = Budget(0.50, path=tmp_path / "budget")
    budget.check(budget.limit)
    assert not budget.spent


def test_a_source_that_fails_is_asked_once_for_each_attempt(silent_server: str) -> None:
    asked = 0

    def fail() -> str:
        nonlocal asked
        asked += 1
        raise OSError("no identity here")

    client = Client(budget=5, keys={"openai": [fail]}, max_retries=0, outage_patience=0)
    with client, pytest.raises(LLMError, match="no identity here") as raised:
        client.call("gpt-6.1-sol", "Hi", max_tokens=9, base_url=silent_server)
    assert asked == 1
    assert raised.value.attempts == 1
    assert not raised.value.maybe_billed
