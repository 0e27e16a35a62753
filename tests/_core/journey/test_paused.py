"""Claude's paused turns: the message is sent back until the turn has ended, and that is one answer."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest
from anthropic.types import MessageParam

from counting_server import CountingServer
from llm_provider import (
    BadRequestError,
    Budget,
    BudgetExceededError,
    Client,
    Ledger,
    LLMError,
    Response,
    Usage,
    track,
)
from llm_provider._core.formats.anthropic.decode import continuation, join
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider._features.cli.main import main

MODEL = "claude-haiku-5-5"
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
CALLS = pydantic.TypeAdapter(MessageParam)


class PausingServer(CountingServer):
    """Pauses a turn some times. Each part searches, and counts its tokens and its search."""

    def __init__(self, pauses: int = 2) -> None:
        super().__init__(self.answer)
        self.pauses = pauses
        self.bodies: list[Any] = []
        self.fault: dict[int, int] = {}
        """Number of a request, from 1 → the status with which it fails."""
        self.container: Any = None
        self.more: list[Any] = []
        """Blocks at the end of each part."""

    def answer(self, path: str, headers: Any, body: Any) -> tuple[int, dict[str, str], Any]:
        # The SDK's own types; it takes what it has answered as it is.
        for message in body["messages"]:
            CALLS.validate_python(message)
        self.bodies.append(body)
        if status := self.fault.get(len(self.bodies)):
            error = {"type": "error", "error": {"type": "api_error", "message": "no"}}
            return status, {"retry-after": "0"}, error
        turns = [message["content"] for message in body["messages"] if message["role"] == "assistant"]
        number = sum(block["type"] == "server_tool_use" for turn in turns for block in turn)
        reply = reply_of(number, self.pauses, container=self.container)
        reply["content"] += self.more
        if body.get("stream"):
            return 200, {"content-type": "text/event-stream"}, events_of(reply)
        return 200, {}, reply


def reply_of(number: int, pauses: int = 10**6, **fields: Any) -> Any:
    """A part of a turn that is paused some times."""
    search: Any = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search"}
    return {
        "id": f"msg_{number}", "type": "message", "role": "assistant", "model": MODEL, "container": None,
        "content": [{"type": "text", "text": f"part {number}, "}, {**search, "input": {"query": "x"}}],
        "stop_reason": "pause_turn" if number < pauses else "end_turn", "stop_sequence": None,
        "usage": {
            "input_tokens": 100 * (number + 1), "output_tokens": 10, "service_tier": "standard",
            "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
            "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
        },
        **fields,
    }  # fmt: skip


def events_of(reply: Any) -> bytes:
    """A reply as a stream."""
    events: list[Any] = [{"type": "message_start", "message": {**reply, "content": [], "stop_reason": None}}]
    for index, block in enumerate(reply["content"]):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if block["type"] == "text"
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        events.append({"type": "content_block_delta", "index": index, "delta": delta})
        events.append({"type": "content_block_stop", "index": index})
    end = {"stop_reason": reply["stop_reason"], "stop_sequence": None, "container": reply["container"]}
    usage = {"output_tokens": reply["usage"]["output_tokens"]}
    events += [{"type": "message_delta", "delta": end, "usage": usage}, {"type": "message_stop"}]
    return b"".join(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[PausingServer]:
    with PausingServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        yield server


@pytest.fixture
def own_client(own_cache: Path) -> Iterator[Client]:
    with Client(ledger=own_cache.parent / "ledger.jsonl", max_retries=2) as client:
        yield client


def streamed(client: Client, **options: Any) -> Response:
    with client.stream(MODEL, "Hi", **options) as stream:
        shown = "".join(delta.text for delta in stream)
    assert shown == stream.response.text
    return stream.response


async def astreamed(client: Client, **options: Any) -> Response:
    async with client.astream(MODEL, "Hi", **options) as stream:
        shown = "".join([delta.text async for delta in stream])
    assert shown == stream.response.text
    return stream.response


def first(results: Any) -> Response:
    (result,) = results
    if isinstance(result, LLMError):
        raise result
    return result  # type: ignore[no-any-return]  # as the name says


WAYS: dict[str, Callable[..., Response]] = {
    "call": lambda client, **options: client.call(MODEL, "Hi", **options),
    "acall": lambda client, **options: asyncio.run(client.acall(MODEL, "Hi", **options)),
    "stream": streamed,
    "astream": lambda client, **options: asyncio.run(astreamed(client, **options)),
    "call_many": lambda client, **options: first(client.call_many(MODEL, ["Hi"], progress=False, **options)),
    "rounds": lambda client, **options: client.call(MODEL, "Hi", max_tool_rounds=1, **options),
}


@pytest.mark.parametrize(
    ("way", "pauses"), [("call", 0), ("stream", 1), ("call_many", 3), *((way, 2) for way in WAYS)]
)
def test_a_paused_turn_is_one_answer(
    server: PausingServer, own_client: Client, own_cache: Path, way: str, pauses: int
) -> None:
    server.pauses = pauses
    with track() as costs:
        answer = WAYS[way](own_client, tools=[SEARCH])
    assert answer.text == "".join(f"part {number}, " for number in range(pauses + 1))
    assert answer.finish_reason == "stop"
    assert len(server.bodies) == answer.timing.attempts == pauses + 1
    read = sum(100 * (number + 1) for number in range(pauses + 1))
    assert answer.usage == Usage(input_tokens=read, output_tokens=10 * (pauses + 1), web_searches=pauses + 1)
    for number, body in enumerate(server.bodies[1:], 1):
        *before, turn = body["messages"]
        assert before == server.bodies[0]["messages"]
        blocks = [block for part in range(number) for block in reply_of(part)["content"]]
        assert turn == {"role": "assistant", "content": blocks}
        others = {name: value for name, value in body.items() if name != "messages"}
        assert others == {name: value for name, value in server.bodies[0].items() if name != "messages"}
    for ask_again in WAYS.values():
        again = ask_again(own_client, tools=[SEARCH])
        assert (again.text, again.usage, again.cached, again.cost) == (answer.text, answer.usage, True, 0.0)
    assert len(server.bodies) == pauses + 1
    assert float(costs.cost or 0) == pytest.approx(answer.cost)
    own_client.close()
    assert float(Ledger.read(own_cache.parent / "ledger.jsonl").total.spent) == pytest.approx(answer.cost)


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_that_never_ends_is_cut(server: PausingServer, own_client: Client, way: str) -> None:
    server.pauses = 10**6
    if way == "rounds":
        # Each round has its own bound.
        with pytest.raises(LLMError, match="max_tool_rounds"):
            WAYS[way](own_client, tools=[SEARCH])
        assert len(server.bodies) == 32
        return
    answer = WAYS[way](own_client, tools=[SEARCH])
    assert (answer.finish_reason, answer.raw["stop_reason"]) == ("length", "pause_turn")
    assert len(server.bodies) == 16
    # It is not stored, and goes on from where it is.
    server.bodies.clear()
    server.pauses = 17
    question = {"role": "user", "content": "Hi"}
    rest = own_client.call(MODEL, [question, answer.message], tools=[SEARCH])
    assert (rest.text, rest.finish_reason) == ("part 16, part 17, ", "stop")


@pytest.mark.parametrize("way", WAYS)
def test_a_later_request_that_fails_is_sent_again(
    server: PausingServer, own_client: Client, way: str
) -> None:
    server.fault = {2: 500}
    answer = WAYS[way](own_client, tools=[SEARCH])
    assert (answer.text, len(server.bodies)) == ("part 0, part 1, part 2, ", 4)
    assert len(answer.failures) == 1


@pytest.mark.parametrize("way", WAYS)
def test_a_later_request_that_fails_for_good_tells_the_cost(
    server: PausingServer, own_client: Client, way: str
) -> None:
    server.fault = {3: 400}
    with track() as costs, pytest.raises(BadRequestError) as caught:
        WAYS[way](own_client, tools=[SEARCH])
    assert caught.value.usage is not None
    assert caught.value.usage.input_tokens == 300
    assert caught.value.cost == pytest.approx(float(costs.cost or 0))
    assert caught.value.cost
    # Nothing was stored.
    assert WAYS[way](own_client, tools=[SEARCH]).text == "part 0, part 1, part 2, "


@pytest.mark.parametrize(
    ("given", "sent"), [(None, "c_1"), ({"skills": []}, {"skills": [], "id": "c_1"}), ("c_0", "c_1")]
)
def test_the_container_goes_along(server: PausingServer, own_client: Client, given: Any, sent: Any) -> None:
    server.container = {"id": "c_1", "expires_at": "2026-12-01T00:00:00Z"}
    extra = {} if given is None else {"container": given}
    answer = own_client.call(MODEL, "Hi", tools=[SEARCH], extra_body=extra)
    assert [body.get("container") for body in server.bodies] == [given, sent, sent]
    assert answer.raw["container"]["id"] == "c_1"


def test_a_call_of_the_users_own_tool_is_not_sent_back(server: PausingServer, own_client: Client) -> None:
    # anthropics/anthropic-sdk-python#1339: it needs a result first.
    server.more = [{"type": "tool_use", "id": "toolu_1", "name": "own", "input": {}}]
    tool = {"type": "function", "function": {"name": "own"}}
    answer = own_client.call(MODEL, "Hi", tools=[SEARCH, tool])
    assert [call.name for call in answer.tool_calls] == ["own"]
    assert len(server.bodies) == 1


def test_each_request_is_within_the_budget(server: PausingServer, own_client: Client) -> None:
    # Nobody knows how much a search reads.
    budget = Budget(1000, allow_unknown=True)
    answer = own_client.call(MODEL, "Hi", tools=[SEARCH], budget=budget, max_tokens=100)
    assert float(budget.spent) == pytest.approx(answer.cost)
    server.pauses = 10**6
    small = Budget(float(budget.spent) / 2, allow_unknown=True)
    with pytest.raises(BudgetExceededError):
        own_client.call(MODEL, "other", tools=[SEARCH], budget=small, max_tokens=100)


class BatchServer(PausingServer):
    """Message batches too: each row gets the first part of its turn.

    It bills no searches, whose price in a batch is not known.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Any] = []

    def answer(self, path: str, headers: Any, body: Any) -> tuple[int, dict[str, str], Any]:
        name = path.partition("?")[0].removeprefix("/v1/messages")
        if not name:
            status, fields, reply = super().answer(path, headers, body)
            if status == 200:
                del reply["usage"]["server_tool_use"]
            return status, fields, reply
        if name == "/batches" and body is not None:
            self.rows += body["requests"]
        if name.endswith("/results"):
            message = reply_of(0, self.pauses)
            del message["usage"]["server_tool_use"]
            ends = [{"type": "succeeded", "message": message} for _ in self.rows]
            lines = [
                json.dumps({"custom_id": row["custom_id"], "result": end})
                for row, end in zip(self.rows, ends, strict=True)
            ]
            return 200, {"content-type": "application/x-jsonl"}, "\n".join([*lines, ""]).encode()
        counts = dict.fromkeys(("canceled", "errored", "expired", "processing"), 0)
        day = "2026-11-29T10:00:00Z"
        batch = {
            "id": "msgbatch_1", "type": "message_batch", "processing_status": "ended", "created_at": day,
            "request_counts": {**counts, "succeeded": len(self.rows)}, "ended_at": day, "expires_at": day,
            "archived_at": None, "cancel_initiated_at": None,
            "results_url": f"{self.root}/v1/messages/batches/msgbatch_1/results",
        }  # fmt: skip
        return 200, {}, batch


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch, fast_batches: None) -> Iterator[BatchServer]:
    with BatchServer() as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.root)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        yield server


def deliver(client: Client, number: int = 1, **options: Any) -> Any:
    prompts = [f"Hi {index}" for index in range(number)]
    return client.call_many(MODEL, prompts, delivery="batch", tools=[SEARCH], progress=False, **options)


@pytest.mark.parametrize("pauses", [0, 1, 3])
def test_a_row_of_a_batch_goes_on_to_its_end(
    batches: BatchServer, own_client: Client, own_cache: Path, pauses: int
) -> None:
    batches.pauses = pauses
    budget = Budget(1000, allow_unknown=True)
    with track() as costs:
        answers = deliver(own_client, 3, budget=budget)
    assert len(batches.rows) == 3
    assert len(batches.bodies) == 3 * pauses
    for answer in answers:
        assert answer.text == "".join(f"part {number}, " for number in range(pauses + 1))
        assert answer.finish_reason == "stop"
        read = sum(100 * (number + 1) for number in range(pauses + 1))
        assert answer.usage == Usage(input_tokens=read, output_tokens=10 * (pauses + 1))
        assert answer.timing.attempts == pauses + 1
    total = sum(answer.cost for answer in answers)
    assert float(costs.cost or 0) == pytest.approx(total) == pytest.approx(float(budget.spent))
    # The first part at the price of the batch, the rest at the usual one.
    assert {(row.delivery, row.requests) for row in costs.rows("delivery") if row.requests} == {
        ("batch", 3),
        *([("live", 3 * pauses)] if pauses else []),
    }
    assert all(answer.cached for answer in deliver(own_client, 3))
    assert own_client.call(MODEL, "Hi 1", tools=[SEARCH]).text == answers[1].text
    own_client.close()
    assert float(Ledger.read(own_cache.parent / "ledger.jsonl").total.spent) == pytest.approx(total)


@pytest.mark.parametrize("status", [400, 500])
def test_a_row_that_cannot_go_on_is_what_there_is_of_it(
    batches: BatchServer, own_client: Client, status: int
) -> None:
    batches.fault = dict.fromkeys(range(2, 20), status)
    (answer,) = deliver(own_client, max_retries=1)
    assert (answer.text, answer.finish_reason) == ("part 0, ", "length")
    assert answer.raw["stop_reason"] == "pause_turn"
    batches.fault = {}
    # It was not stored: a live call begins anew.
    assert own_client.call(MODEL, "Hi 0", tools=[SEARCH]).text == "part 0, part 1, part 2, "


def test_another_process_finishes_a_row(
    batches: BatchServer, own_client: Client, own_cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    batch = own_client.submit_many(MODEL, ["Hi"], tools=[SEARCH])
    own_client.close()
    main(["batches", "wait", batch.id])
    assert "1 of 1 rows answered" in capsys.readouterr().out
    with Client() as later:
        answer = later.call(MODEL, "Hi", tools=[SEARCH], cache="only")
    assert (answer.text, answer.finish_reason) == ("part 0, part 1, part 2, ", "stop")


@pytest.mark.parametrize("way", ["call", "stream"])
def test_a_refusal_after_a_part_is_shown_as_it_is_stored(own_client: Client, way: str) -> None:
    class Server(PausingServer):
        def answer(self, path: str, headers: Any, body: Any) -> tuple[int, dict[str, str], Any]:
            reply = reply_of(0)
            if len(body["messages"]) > 1:
                refusal = {"stop_reason": "refusal", "stop_details": {"explanation": "no"}}
                reply |= {"content": [], **refusal}
            stream = {"content-type": "text/event-stream"}
            return (200, stream, events_of(reply)) if body.get("stream") else (200, {}, reply)

    with Server() as server:
        answer = WAYS[way](own_client, tools=[SEARCH], base_url=server.root, api_key="k")
        assert (answer.text, answer.finish_reason) == ("part 0, ", "refusal")


def test_joined_replies() -> None:
    before, after = reply_of(0, 1), reply_of(1, 1)
    encoded = EncodedRequest("messages", {"messages": [{"role": "user", "content": "Hi"}]})
    joined = join(before, after)
    assert (joined["id"], joined["stop_reason"], len(joined["content"])) == ("msg_0", "end_turn", 4)
    assert joined["usage"]["server_tool_use"] == {"web_search_requests": 2, "web_fetch_requests": 0}
    assert continuation(joined, encoded) is None
    assert continuation({**before, "content": []}, encoded) is None
