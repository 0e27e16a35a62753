"""Functions that Google runs for an answer are no calls of the user's."""

import json
from pathlib import Path
from typing import Any

import pytest

from counting_server import CountingServer
from gemini_answers import JSON, MODEL, WAYS, ask, candidate, events_of, reply_of
from llm_provider import (
    CacheMissError,
    Client,
    LLMError,
    Response,
)
from llm_provider._core.batches.journal import Journal
from llm_provider._core.formats.gemini import encode as adapter
from llm_provider._core.formats.protocol import EncodedRequest
from llm_provider.simulator import Fault, Simulator

CALL = {"functionCall": {"name": "search", "args": {"q": "a"}}}
RESULT = {"functionResponse": {"name": "search", "response": {"output": "b"}}}
MCP = {"mcpServers": [{"name": "docs", "streamableHttpTransport": {"url": "https://example.org/mcp"}}]}
ADD = {"functionCall": {"name": "add", "args": {"x": 1, "y": 2}}, "thoughtSignature": "c2ln"}


def add(x: int, y: int) -> int:
    """Adds."""
    return x + y


class AnsweringServer(CountingServer):
    """Gives one answer after the other, in streams too."""

    def __init__(self, *answers: JSON, cut: bool = False) -> None:
        super().__init__(self._answer)
        self.bodies: list[JSON] = []
        self._answers = answers
        self._cut = cut

    def _answer(self, path: str, headers: Any, body: JSON) -> tuple[int, JSON, Any]:
        self.bodies.append(body)
        reply = reply_of(self._answers[min(len(self.bodies), len(self._answers)) - 1])
        if "alt=sse" not in path:
            return 200, {}, reply
        events = events_of(reply)
        if self._cut:
            events = events[: events.rindex(b"data:")]
        return 200, {"content-type": "text/event-stream"}, events


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("tools", [[MCP], [add, MCP], [add, {"mcp_servers": MCP["mcpServers"]}], [add], []])
@pytest.mark.parametrize("identified", [True, False])
def test_a_tool_that_google_runs_is_no_call_of_the_user(
    client: Client, way: str, tools: list[Any], identified: bool
) -> None:
    own = {"id": "c1"} if identified else {}
    parts = [
        {"functionCall": {**CALL["functionCall"], **own}},
        {"functionResponse": {**RESULT["functionResponse"], **own}},
    ]
    more: JSON = {"tools": tools or None, **({"max_tool_rounds": 3} if add in tools else {})}
    with AnsweringServer(candidate(*parts, {"text": "b."}, finishReason="STOP")) as server:
        for cached in (False, True):
            answer = ask(client, way, server, **more)
            assert (answer.text, answer.finish_reason, answer.tool_calls) == ("b.", "stop", ())
            assert answer.cached is cached
            (call,) = answer.server_tool_calls
            assert (call.name, call.arguments, call.result) == ("search", {"q": "a"}, {"output": "b"})
        ask(
            client,
            way,
            server,
            [{"role": "user", "content": "Count."}, answer.message, {"role": "user", "content": "And?"}],
        )
        assert server.requests == 2
        assert server.bodies[1]["contents"][1] == {"role": "model", "parts": [*parts, {"text": "b."}]}


@pytest.mark.parametrize("way", WAYS)
def test_a_call_of_the_user_beside_one_that_google_runs(client: Client, way: str) -> None:
    first = candidate(CALL, RESULT, ADD, finishReason="STOP")
    with AnsweringServer(first, candidate({"text": "3."}, finishReason="STOP")) as server:
        answer = ask(client, way, server, tools=[add, MCP], max_tool_rounds=3)
        assert [call.name for call in answer.rounds[0].tool_calls] == ["add"]
        assert (answer.text, server.requests) == ("3.", 2)
        (_, turn, result) = server.bodies[1]["contents"]
        assert turn["parts"] == [CALL, RESULT, ADD]
        assert [entry["functionResponse"]["name"] for entry in result["parts"]] == ["add"]


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize(
    "parts", [[{"text": "one"}], [ADD], [CALL], [CALL, RESULT], [CALL, RESULT, {"text": "b"}]]
)
def test_a_stream_without_its_end_is_no_answer(client: Client, way: str, parts: list[JSON]) -> None:
    with AnsweringServer(candidate(*parts, finishReason="STOP"), cut=True) as server:
        with pytest.raises(LLMError, match="it was cut"):
            ask(client, way, server, tools=[add, MCP])
        with pytest.raises(CacheMissError):
            ask(client, "call", server, tools=[add, MCP], cache="only")


@pytest.mark.parametrize("way", ["stream", "astream"])
def test_calls_that_are_shown_at_the_end_are_those_of_the_answer(client: Client, way: str) -> None:
    parts = [CALL, ADD, CALL, {"text": "b"}, RESULT, ADD]
    with AnsweringServer(candidate(*parts, finishReason="STOP")) as server:
        for tools in ([add, MCP], [add, "code_execution"], [add]):
            answer = ask(client, way, server, tools=tools)
            assert [call.name for call in answer.tool_calls] == ["add", "search", "add"]


def test_rows_of_a_batch(simulator: Simulator, tmp_path: Path) -> None:
    divided = candidate({"text": "one"}, finishReason="CONTINUATION", continuationToken="t")
    called = candidate(CALL, RESULT, {"text": "b."}, finishReason="STOP")
    with Client(cache_dir=tmp_path / "cache") as client:
        batch = client.submit_many(MODEL, ["Count.", "Search."])
        (record,) = Journal(client.cache.directory / "batches").records()
        rows = zip(record.rows, (divided, called), strict=True)
        lines = [json.dumps({"key": name, "response": reply_of(each)}) for name, each in rows]
        simulator.inject(Fault(body="\n".join(lines)), match="files.download")
        first, second = batch.results()
        assert isinstance(first, Response)
        assert isinstance(second, Response)
        # The divided answer goes on in a live request, which the simulator answers.
        assert (first.finish_reason, first.text) == ("stop", "oneecho: Count.")
        assert (second.finish_reason, second.text, second.tool_calls) == ("stop", "b.", ())
        assert client.call(MODEL, "Search.", cache="only").cached
        assert client.call(MODEL, "Count.", cache="only").text == first.text


@pytest.mark.parametrize(
    "entry", [{"toolCall": {"id": "1"}}, {"toolResponse": {"id": "1"}}, RESULT, CALL, ADD]
)
def test_a_stream_that_breaks_within_a_tool_is_not_whole(entry: JSON) -> None:
    """Google goes on after these, whatever the finish reason says. A call of the user's ends the answer."""
    payload = {"tools": [{"functionDeclarations": [{"name": "add"}]}, {"codeExecution": {}}]}
    assembler = adapter.assembler(EncodedRequest("v1beta/models/m:generateContent", payload))
    assembler.feed(reply_of(candidate(entry, finishReason="STOP")))
    assert assembler.is_whole() is (entry is ADD)
