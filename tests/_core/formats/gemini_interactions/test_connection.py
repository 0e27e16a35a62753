"""The connection to Interactions: every way to call, the background, and requests that are sent again."""

import asyncio
import json
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from interactions_server import (
    AGENT,
    HERE,
    MODEL,
    SOME,
    STREAM,
    STREAMS,
    Fault,
    InteractionsServer,
    frames,
    stream_of,
    text_step,
    thought,
)
from llm_provider import (
    Client,
    Delta,
    Ledger,
    LLMError,
)
from llm_provider._core.formats.gemini_interactions import connection
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
        # The library's own loop notes the interaction a moment later, and then asks for it no more.
        asked = 0
        while asked != len(server.fetched):
            asked = len(server.fetched)
            await asyncio.sleep(0.3)

    asyncio.run(cancelled())
    server.questions = 1
    assert client.call(AGENT, "Hello").text == "You said: Hello"
    assert len(server.bodies) == 1


async def ask_in_loop(client: Client, way: str, shown: list[Any], **more: Any) -> Any:
    if way == "astream":
        stream = client.astream(AGENT, "Hello", **more)
        async for delta in stream:
            shown.append(delta)  # noqa: PERF401 -- the test looks at it meanwhile
        return stream.response
    if way == "acall_many":
        return (await client.acall_many(AGENT, ["Hello"], progress=False, **more))[0]
    if way == "call":
        return await asyncio.to_thread(client.call, AGENT, "Hello", **more)
    return await client.acall(AGENT, "Hello", **more)


@pytest.mark.parametrize("then", ["acall", "astream", "call", "acall_many"])
@pytest.mark.parametrize("first", ["acall", "astream", "acall_many"])
@pytest.mark.parametrize("moment", ["submitted", "asked", "between"])
@pytest.mark.sampled(5)
async def test_an_equal_call_right_after_a_cancellation_begins_no_second_interaction(
    server: InteractionsServer, client: Client, moment: str, first: str, then: str
) -> None:
    gate, reached, shown = threading.Event(), threading.Event(), list[Any]()

    def wait(*_: object) -> None:
        reached.set()
        gate.wait(20)

    if (moment, first) == ("submitted", "astream"):
        server.cut = lambda number, events: (200, STREAM, (events if number else (wait(), events)[1]))
    elif first == "astream":
        broken = after(3, "a break")
        server.cut = lambda number, events: broken(number, events if not number else (wait(), events)[1])
    elif moment == "submitted":
        server.after = wait
    else:
        server.questions = 2
        server.fetch_fault = lambda number: wait() if moment == "asked" and number == 1 else None
    task = asyncio.create_task(ask_in_loop(client, first, shown))
    while not (reached.is_set() or (moment == "between" and (server.fetched or shown))):
        await asyncio.sleep(0.001)
    task.cancel()
    again = asyncio.create_task(ask_in_loop(client, then, []))
    await asyncio.sleep(0)
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await again).text == "You said: Hello"
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


def after(number: int, how: str) -> Callable[[int, bytes], Fault]:
    """The first stream ends within or after some events; the others are whole."""

    def cut(stream: int, sent: bytes) -> Fault:
        if stream:
            return 200, STREAM, sent
        events = sent.split(b"\n\n")
        data = b"\n\n".join([*events[:number], b""])
        if how == "an error event":
            error = {"event_type": "error", "error": {"code": "gateway_timeout", "message": "later"}}
            return 200, STREAM, data + b"data: " + json.dumps(error).encode() + b"\n\n"
        if how == "done":
            return 200, STREAM, data + b"data: [DONE]\n\n"
        if how == "within an event":
            return 200, STREAM, data + events[number][: len(events[number]) // 2]
        length = {} if how == "an end" else {"content-length": str(len(sent))}
        return 200, {**STREAM, **length}, data

    return cut


CUTS = ("an end", "a break", "within an event", "an error event", "done")


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize(("way", "number"), [("stream", 1), ("stream", 5), ("astream", 9), ("stream", 14)])
def test_a_cut_stream_goes_on_after_its_last_event(
    server: InteractionsServer, client: Client, ledger: Path, way: str, how: str, number: int
) -> None:
    steps = [thought("c2ln", "First"), text_step("One. Two. Three."), text_step("Four.")]
    server.answer = lambda body: {"status": "completed", "steps": steps}
    server.cut = after(number, how)
    deltas: list[Delta] = []
    answered = ask(client, way, AGENT, "Hello", deltas)
    assert answered.text == "One. Two. Three.Four." == "".join(delta.text for delta in deltas)
    assert answered.reasoning == "First" == "".join(delta.reasoning for delta in deltas)
    assert server.streams == [{}, {"stream": ["true"], "last_event_id": [f"e{number - 1}"]}]
    assert len(server.bodies) == 1
    assert Ledger.read(ledger).spent == pytest.approx(Decimal(str(answered.price)))


def test_events_that_come_again_are_shown_once(server: InteractionsServer, client: Client) -> None:
    # A gateway that drops the query begins with the first event.
    cut, serve = after(9, "a break"), server.reply
    server.cut = cut
    server.reply = lambda path, headers, body: serve(path.partition("&last")[0], headers, body)
    deltas: list[Delta] = []
    assert ask(client, "stream", AGENT, "Hello", deltas).text == "You said: Hello"
    assert "".join(delta.text for delta in deltas) == "You said: Hello"


@pytest.mark.parametrize("way", ["call", "stream"])
def test_a_stream_without_ids_is_not_resumed_and_its_interaction_is_not_lost(
    server: InteractionsServer, client: Client, way: str
) -> None:
    server.mark, server.cut = lambda number: False, after(9, "a break")
    deltas: list[Delta] = []
    with pytest.raises(LLMError) as caught:
        ask(client, "stream", AGENT, "Hello", deltas)
    assert "v1_0" in "".join(getattr(caught.value, "__notes__", ()))
    assert deltas
    assert ask(client, way, AGENT, "Hello").text == "You said: Hello"
    assert len(server.bodies) == 1


@pytest.mark.parametrize("status", [404, 500])
def test_a_stream_that_cannot_be_resumed_fails(
    server: InteractionsServer, client: Client, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(connection, "_FIRST_PAUSE", 0.001)
    first = after(9, "a break")
    server.cut = lambda number, sent: (
        (status, {}, {"error": {"code": "x", "message": "no"}}) if number else first(0, sent)
    )
    with pytest.raises(LLMError):
        ask(client, "stream", AGENT, "Hello")
    assert len(server.streams) == (2 if status == 404 else 6)
    server.cut = after(99, "an end")
    assert ask(client, "stream", AGENT, "Hello").text == "You said: Hello"
    assert len(server.bodies) == (2 if status == 404 else 1)


def test_a_stream_that_its_reader_leaves_is_not_paid_again(
    server: InteractionsServer, client: Client
) -> None:
    server.cut = after(9, "an end")
    with client.stream(AGENT, "Hello", cache="off") as stream:
        next(iter(stream))
    assert client.call(AGENT, "Hello").text == "You said: Hello"
    assert len(server.bodies) == 1


@pytest.mark.parametrize("way", STREAMS)
def test_a_stream_of_a_model_that_is_not_stored_is_not_resumed(
    server: InteractionsServer, client: Client, way: str
) -> None:
    server.cut = after(9, "a break")
    with pytest.raises(LLMError):
        ask(client, way, MODEL, "Hello", **HERE)
    assert len(server.streams) == 1
