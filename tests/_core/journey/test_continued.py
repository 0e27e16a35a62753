"""Answers that Google divides over several requests: each is one answer, and is paid once."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from counting_server import CountingServer
from gemini_answers import JSON, MODEL, WAYS, ask, candidate, events_of, reply_of
from llm_provider import (
    APITimeoutError,
    BadRequestError,
    Budget,
    BudgetExceededError,
    Client,
    Ledger,
    Response,
    Usage,
    track,
)
from llm_provider._core.formats.gemini import encode as adapter
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._core.requests.routing import resolve
from llm_provider._core.tokens.counting import most_input_tokens

WORDS = ["one, ", "two, ", "three"]


class DividingServer(CountingServer):
    """Answers with the words, one in each request. A request with a token gets the word after it.

    Every request must be the first one with a token that was given. `failing` numbers requests from 1.
    """

    def __init__(self, words: list[str] | None = None, failing: dict[int, int] | None = None) -> None:
        super().__init__(self._answer)
        self.words = WORDS if words is None else words
        self.repaired: list[str] = []
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
        if len(body["contents"]) == 3 and self.repaired:
            self.words = self.repaired
        last = number >= len(self.words) - 1
        fields = {"finishReason": "STOP"} if last else {"finishReason": "CONTINUATION"}
        samples = []
        for index in range(body.get("generationConfig", {}).get("candidateCount", 1)):
            given = {} if last or index else {"continuationToken": f"token {number + 1}"}
            samples.append({**self.parts_of(body, number), **fields, **given})
        reply = reply_of(*samples, number=number + 1)
        if "alt=sse" in path:
            return 200, {"content-type": "text/event-stream"}, events_of(reply)
        return 200, {}, reply

    def parts_of(self, body: JSON, number: int) -> JSON:
        return candidate({"text": self.words[number]})


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
    assert (answer.text, answer.timing.attempts) == ("one, two, three", 3)
    assert float(budget.spent) == pytest.approx(answer.cost)
    # There is room for some requests.
    worst = client.price(MODEL, Usage(input_tokens=3_000, output_tokens=100)) or 0
    small = Budget(float(worst))
    with pytest.raises(BudgetExceededError) as caught:
        while ask(client, "call", server, max_tokens=100, budget=small, cache="off"):
            pass
    assert 0 < small.spent <= small.limit
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


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_that_does_not_match_goes_on_too(client: Client, way: str) -> None:
    """A repair is a question of its own, whose answer may be divided as well."""
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    with DividingServer(['{"a":', ' "no"}']) as server:
        server.repaired = ['{"a"', ":", " 1}"]
        if way in ("stream", "astream"):
            # A stream was shown, so it is not asked again.
            answer = ask(client, way, server, response_format=schema)
            assert (answer.text, len(server.bodies)) == ('{"a": "no"}', 2)
            return
        answer = ask(client, way, server, response_format=schema)
        assert (answer.parsed, len(server.bodies)) == ({"a": 1}, 5)
        assert answer.usage.input_tokens == 10 + 20 + 10 + 20 + 30
        assert ask(client, way, server, response_format=schema).cached


@pytest.mark.parametrize("way", WAYS)
def test_each_round_of_tools_goes_on(client: Client, way: str) -> None:
    def add(x: int, y: int) -> int:
        """Adds."""
        return x + y

    call = {"functionCall": {"name": "add", "args": {"x": 1, "y": 2}}, "thoughtSignature": "c2ln"}
    parts = [candidate({"text": "I add. "}), candidate(call)]

    class Server(DividingServer):
        def parts_of(self, body: JSON, number: int) -> JSON:
            first = len(body["contents"]) == 1
            return parts[number] if first else candidate({"text": ["It is ", "3."][number]})

    with Server(["", ""]) as server:
        for cached in (False, True):
            answer = ask(client, way, server, tools=[add], max_tool_rounds=2)
            assert [each.text for each in answer.rounds] == ["I add. ", "It is 3."]
            assert (answer.cached, len(server.bodies)) == (cached, 4)
        (_, turn, result) = server.bodies[2]["contents"]
        assert turn["parts"] == [{"text": "I add. "}, call]
        assert result["parts"][0]["functionResponse"]["response"] == {"output": "3"}


def test_equal_calls_share_all_requests(client: Client, server: DividingServer) -> None:
    async def main() -> list[Response]:
        calls = [client.acall(MODEL, "Count.", base_url=server.root, api_key="k") for _ in range(5)]
        return await asyncio.gather(*calls)

    answers = asyncio.run(main())
    assert {answer.text for answer in answers} == {"one, two, three"}
    assert sum(answer.cached for answer in answers) == 4
    assert len(server.bodies) == 3


def test_the_ledger_has_each_request_under_the_key_of_the_answer(
    server: DividingServer, tmp_path: Path
) -> None:
    with Client(cache_dir=tmp_path / "cache", ledger=tmp_path / "ledger.jsonl") as client:
        answer = ask(client, "call", server)
    lines = [json.loads(line) for line in (tmp_path / "ledger.jsonl").read_text().splitlines()]
    assert [line["keys"] for line in lines] == [list(answer.cache_keys)] * 3
    assert sum(line["usage"]["input_tokens"] for line in lines) == answer.usage.input_tokens
    assert float(Ledger.read(tmp_path / "ledger.jsonl").cost) == pytest.approx(answer.cost)


def test_a_deadline_is_for_all_requests(client: Client) -> None:
    release = threading.Event()

    class Server(DividingServer):
        def parts_of(self, body: JSON, number: int) -> JSON:
            if number:
                release.wait(20)
            return super().parts_of(body, number)

    with Server() as server:
        with pytest.raises(APITimeoutError, match="a request was under way") as caught:
            ask(client, "call", server, deadline=1.0)
        release.set()
        assert (caught.value.phase, caught.value.attempts) == ("deadline", 2)
        assert caught.value.usage is not None
        assert caught.value.maybe_billed
        assert not ask(client, "call", server).cached


def test_an_answer_goes_on_from_a_token_of_the_user(client: Client, server: DividingServer) -> None:
    ask(client, "call", server)
    server.bodies.clear()
    answer = ask(client, "call", server, extra_body={"continuationToken": "token 1"})
    assert answer.text == "two, three"
    assert [body["continuationToken"] for body in server.bodies] == ["token 1", "token 2"]


def test_the_worst_case_of_a_later_request_has_the_answer_so_far() -> None:
    """Google may read again what it has written, and bill it as input."""
    reply, target = reply_of(candidate({"text": "one"})), resolve(MODEL)
    without_usage = {"candidates": reply["candidates"]}
    none, told, untold = [
        most_input_tokens(adapter.facts(EncodedRequest("", {}, continues=before)), b"{}", target) or 0
        for before in (None, reply, without_usage)
    ]
    assert told - none == 5
    assert untold - none > 5


@pytest.mark.parametrize("way", ["call", "acall", "call_many"])
def test_a_whole_answer_without_a_reason_goes_on(client: Client, way: str) -> None:
    """As in the SDK. Where it cannot go on, it is cut, and no "stop"."""
    first = reply_of(candidate({"text": "one, "}, continuationToken="token 1"))
    last = reply_of(candidate({"text": "two"}, finishReason="STOP"))
    for later, expected in ((last, ("one, two", "stop")), (first, ("one, one, ", "length"))):
        with CountingServer(
            lambda _, __, body, later=later: (200, {}, later if "continuationToken" in body else first)
        ) as server:
            answer = ask(client, way, server, cache="off")
            assert (answer.text, answer.finish_reason) == expected
            assert server.requests == 2
