"""Answers that Google divides over several requests or makes with its own tools: each is one answer."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from counting_server import CountingServer
from llm_provider import (
    BadRequestError,
    Budget,
    BudgetExceededError,
    Client,
    LLMError,
    Response,
    track,
)

MODEL = "gemini/gemini-3.8-flash"
JSON = dict[str, Any]
WORDS = ["one, ", "two, ", "three"]
WAYS = ["call", "stream", "acall", "astream", "call_many"]


def candidate(*parts: JSON, **fields: Any) -> JSON:
    return {"content": {"role": "model", "parts": list(parts)}, **fields}


def reply_of(*candidates: JSON, number: int = 1) -> JSON:
    counts = {"promptTokenCount": 10 * number, "candidatesTokenCount": 3, "thoughtsTokenCount": 2}
    return {
        "candidates": [{**each, "index": index} for index, each in enumerate(candidates)],
        "usageMetadata": {**counts, "totalTokenCount": 5 + 10 * number},
        "modelVersion": "gemini-3.8-flash",
        "responseId": f"r{number}",
    }


def events_of(reply: JSON) -> bytes:
    """A stream with one event for each part, and a last one without parts."""
    events = [
        {**reply, "candidates": [{**candidate(entry), "index": each["index"]}]}
        for each in reply["candidates"]
        for entry in each["content"]["parts"]
    ]
    last = [{**each, "content": {"role": "model"}} for each in reply["candidates"]]
    events.append({**reply, "candidates": last})
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(event).encode() for event in events)


class DividingServer(CountingServer):
    """Answers with the words, one in each request. A request with a token gets the word after it.

    Every request must be the first one with a token that was given. `failing` numbers requests from 1.
    """

    def __init__(self, words: list[str] | None = None, failing: dict[int, int] | None = None) -> None:
        super().__init__(self._answer)
        self.words = WORDS if words is None else words
        self.failing = failing or {}
        self.bodies: list[JSON] = []
        self.first: dict[str, JSON] = {}

    def _answer(self, path: str, headers: Any, body: JSON) -> tuple[int, JSON, Any]:
        self.bodies.append(body)
        status = self.failing.get(len(self.bodies))
        if status is not None:
            return status, {}, {"error": {"code": status, "message": "No.", "status": "INVALID_ARGUMENT"}}
        body = dict(body)
        token, prompt = body.pop("continuationToken", "token 0"), json.dumps(body["contents"])
        number = int(token.removeprefix("token "))
        if number:
            assert self.first[prompt] == body
        self.first[prompt] = body
        last = number >= len(self.words) - 1
        fields = {"finishReason": "STOP"} if last else {"finishReason": "CONTINUATION"}
        samples = []
        for index in range(body.get("generationConfig", {}).get("candidateCount", 1)):
            given = {} if last or index else {"continuationToken": f"token {number + 1}"}
            samples.append(candidate({"text": self.words[number]}, **fields, **given))
        reply = reply_of(*samples, number=number + 1)
        if "alt=sse" in path:
            return 200, {"content-type": "text/event-stream"}, events_of(reply)
        return 200, {}, reply


def ask(client: Client, way: str, server: CountingServer, prompt: str = "Count.", **more: Any) -> Response:
    """The answer to a prompt. The deltas of a stream add up to it."""
    options = {"base_url": server.root, "api_key": "k", "max_retries": 0, **more}
    if way == "call":
        return client.call(MODEL, prompt, **options)
    if way == "acall":
        return asyncio.run(client.acall(MODEL, prompt, **options))
    if way == "call_many":
        (result,) = client.call_many(MODEL, [prompt], **options)
        if isinstance(result, LLMError):
            raise result
        return result
    if way == "stream":
        with client.stream(MODEL, prompt, **options) as deltas:
            shown = list(deltas)
        response = deltas.response
    else:

        async def read() -> tuple[list[Any], Response]:
            async with client.astream(MODEL, prompt, **options) as deltas:
                return [delta async for delta in deltas], deltas.response

        shown, response = asyncio.run(read())
    for index, choice in enumerate(response.choices):
        own = [delta for delta in shown if delta.index == index and not delta.tool_results]
        if response.tool_rounds is None:
            assert "".join(delta.text for delta in own) == choice.text
            calls = [
                (call.index, call.id, call.name, call.arguments) for delta in own for call in delta.tool_calls
            ]
            assert calls == [
                (number, call.id, call.name, call.arguments) for number, call in enumerate(choice.tool_calls)
            ]
    return response


@pytest.fixture
def server() -> Iterator[DividingServer]:
    with DividingServer() as running:
        yield running


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("mode", ["use", "refresh", "off"])
def test_an_answer_goes_on(client: Client, server: DividingServer, way: str, samples: int, mode: str) -> None:
    more = {"n": samples, "cache": mode}
    with track() as costs:
        answer = ask(client, way, server, **more)
    assert [choice.text for choice in answer.choices] == ["one, two, three"] * samples
    assert [choice.finish_reason for choice in answer.choices] == ["stop"] * samples
    assert [body.get("continuationToken") for body in server.bodies] == [None, "token 1", "token 2"]
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (60, 15)
    assert answer.usage.reasoning_output_tokens == 6
    assert answer.timing.attempts == 3
    single = client.price(MODEL, answer.usage)
    assert single is not None
    assert answer.cost == pytest.approx(float(single))
    assert answer.price == pytest.approx(float(single))
    assert float(costs.cost) == pytest.approx(answer.cost)
    again = ask(client, way, server, **more)
    assert again.cached is (mode == "use")
    assert len(server.bodies) == (3 if mode == "use" else 6)
    assert [choice.message for choice in again.choices] == [choice.message for choice in answer.choices]
    assert (again.usage, again.price) == (answer.usage, answer.price)
    assert again.raw == answer.raw


@pytest.mark.parametrize("way", WAYS)
def test_a_later_request_that_fails_ends_the_call(client: Client, way: str) -> None:
    with DividingServer(failing={3: 400}) as server:
        with track() as costs, pytest.raises(BadRequestError) as caught:
            ask(client, way, server)
        assert caught.value.status == 400
        assert caught.value.usage is not None
        assert caught.value.usage.input_tokens == 30
        assert caught.value.cost == pytest.approx(float(costs.cost))
        assert caught.value.cost
        # Nothing was stored.
        assert (ask(client, way, server).text, len(server.bodies)) == ("one, two, three", 6)


@pytest.mark.parametrize("way", WAYS)
def test_a_later_request_is_sent_again(client: Client, way: str) -> None:
    with DividingServer(failing={2: 503}) as server:
        answer = ask(client, way, server, max_retries=2)
        assert (answer.text, answer.finish_reason) == ("one, two, three", "stop")
        assert [body.get("continuationToken") for body in server.bodies] == [
            None,
            *["token 1"] * 2,
            "token 2",
        ]
        assert len(answer.failures) == 1


def test_each_request_is_within_the_budget(client: Client, server: DividingServer) -> None:
    budget = Budget(1)
    answer = ask(client, "call", server, budget=budget, max_tokens=100)
    assert float(budget.spent) == pytest.approx(answer.cost)
    first = client.price(MODEL, answer.usage)
    assert first is not None
    small = Budget(float(budget.spent) * 0.9)
    ask(client, "call", server, "Other.", max_tokens=5, budget=Budget(1))
    with pytest.raises(BudgetExceededError) as caught:
        # There is room for the first request, and not for all.
        while True:
            ask(client, "call", server, "Again.", max_tokens=5, budget=small, cache="off")
    assert small.spent <= small.limit
    assert caught.value.provider == "gemini"


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_without_an_end_is_cut(client: Client, way: str) -> None:
    with DividingServer(["word "] * 1000) as server:
        answer = ask(client, way, server)
        assert (answer.text, answer.finish_reason) == ("word " * 16, "length")
        assert len(server.bodies) == 16
        assert not ask(client, way, server).cached


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fields", [{}, {"continuationToken": "same"}, {"continuationToken": ""}])
def test_an_answer_that_cannot_go_on_is_cut(client: Client, way: str, fields: JSON) -> None:
    reply = reply_of(candidate({"text": "one"}, finishReason="CONTINUATION", **fields))

    def answer(path: str, *_: Any) -> tuple[int, JSON, Any]:
        sse = "alt=sse" in path
        return 200, {"content-type": "text/event-stream"} if sse else {}, events_of(reply) if sse else reply

    with CountingServer(answer) as server:
        response = ask(client, way, server)
        assert response.finish_reason == "length"
        assert server.requests == (2 if fields.get("continuationToken") else 1)
        assert not ask(client, way, server).cached
