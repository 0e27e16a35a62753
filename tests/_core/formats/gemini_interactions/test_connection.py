"""The connection to Interactions: every way to call, the background, and requests that are sent again."""

import asyncio
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from interactions_server import (
    AGENT,
    HERE,
    MODEL,
    SOME,
    STREAMS,
    InteractionsServer,
    frames,
    stream_of,
    text_step,
)
from llm_provider import (
    Client,
    Ledger,
    LLMError,
)
from support import WAYS, ask


@pytest.mark.parametrize("way", WAYS)
def test_a_model_and_an_agent_answer_in_every_way(
    server: InteractionsServer, client: Client, ledger: Path, way: str
) -> None:
    answered = ask(client, way, MODEL, "Hello", **HERE)
    assert (answered.text, answered.finish_reason, answered.id) == ("You said: Hello", "stop", "v1_0")
    assert not server.bodies[0]["store"]
    assert "agent" not in server.bodies[0]
    again = ask(client, way, MODEL, "Hello", **HERE)
    assert again.cached
    assert (again.text, again.usage, again.price) == (answered.text, answered.usage, answered.price)
    researched = ask(client, way, AGENT, "Hello")
    assert (researched.text, researched.model) == ("You said: Hello", AGENT)
    assert server.bodies[1]["agent"] == AGENT
    assert len(server.bodies) == 2
    headers = server.headers[0]
    assert headers["x-goog-api-key"] == "key-1"
    assert headers["user-agent"].startswith("google-genai-sdk/")
    assert headers["accept"] == ("text/event-stream" if way in STREAMS else "application/json")
    assert Ledger.read(ledger).spent == pytest.approx(Decimal(str(answered.price + researched.price)))


def test_samples_are_requests(server: InteractionsServer, client: Client) -> None:
    assert len(client.call(MODEL, "Hi", n=3, **HERE).choices) == 3
    assert len(server.bodies) == 3
    assert client.call(MODEL, "Hi", n=3, **HERE).cached


def test_a_model_works_in_the_background_too(server: InteractionsServer, client: Client) -> None:
    answered = client.call(MODEL, "Hello", extra_body={"background": True}, **HERE)
    assert answered.text == "You said: Hello"
    assert server.bodies[0]["store"]
    assert server.fetched == ["v1_0", "v1_0"]


@pytest.mark.parametrize("way", ["call", "acall_many"])
def test_a_call_that_broke_off_goes_on_with_its_interaction(
    server: InteractionsServer, client: Client, way: str
) -> None:
    server.fetch_fault = lambda number: (503, {}, {"error": {"code": "unavailable", "message": "later"}})
    with pytest.raises(LLMError) as caught:
        ask(client, way, AGENT, "Hello")
    assert "v1_0" in "".join(getattr(caught.value, "__notes__", ()))
    server.fetch_fault = lambda number: None
    assert ask(client, way, AGENT, "Hello").text == "You said: Hello"
    assert len(server.bodies) == 1


def test_a_cancellation_loses_no_interaction(server: InteractionsServer, client: Client) -> None:
    server.questions = 10**6

    async def cancelled() -> None:
        task = asyncio.create_task(client.acall(AGENT, "Hello", cache="off"))
        while not server.fetched:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    server.questions = 1
    assert client.call(AGENT, "Hello").text == "You said: Hello"
    assert len(server.bodies) == 1


def test_samples_of_an_agent_are_interactions_of_their_own(
    server: InteractionsServer, client: Client
) -> None:
    server.fetch_fault = lambda number: (503, {}, {}) if number < 3 else None
    with pytest.raises(LLMError):
        client.call(AGENT, "Hello", n=2)
    answered = client.call(AGENT, "Hello", n=2)
    assert len(answered.choices) == 2
    assert len(server.bodies) == 2
    assert set(server.fetched) == {"v1_0", "v1_1"}


def test_an_interaction_that_is_gone_is_made_anew(server: InteractionsServer, client: Client) -> None:
    server.fetch_fault = lambda number: (404, {}, {"error": {"code": "not_found", "message": "gone"}})
    with pytest.raises(LLMError):
        client.call(AGENT, "Hello")
    server.fetch_fault = lambda number: None
    client.call(AGENT, "Hello")
    assert len(server.bodies) == 2


@pytest.mark.parametrize("way", SOME)
def test_a_refused_and_a_cut_request_are_sent_again(
    own_cache: Path, server: InteractionsServer, client: Client, way: str
) -> None:
    def fault(number: int, body: Any) -> Any:
        whole = {"id": "v", "status": "completed", "steps": [text_step("x" * 30)]}
        if number == 1:
            return 429, {"retry-after": "0"}, {"error": {"code": "resource_exhausted", "message": "no"}}
        if number == 0 and not body.get("stream"):
            return 503, {"retry-after": "0"}, {"error": {"code": "unavailable", "message": "no"}}
        if number == 0:
            events = list(stream_of(whole))[:2]
            return 200, {"content-type": "text/event-stream"}, b"".join(list(frames(iter(events)))[:2])
        return None

    server.fault = fault
    answered = ask(client.with_options(max_retries=3), way, MODEL, "Hello", **HERE)
    assert answered.text == "You said: Hello"
    assert len(server.bodies) == 3


@pytest.mark.parametrize("body", [b"", b"<html>"])
def test_a_page_of_a_proxy_ends_no_interaction(
    server: InteractionsServer, client: Client, body: bytes
) -> None:
    server.fetch_fault = lambda number: (200, {"content-type": "text/html"}, body) if number < 3 else None
    assert client.call(AGENT, "Hello").text == "You said: Hello"
    assert len(server.bodies) == 1
