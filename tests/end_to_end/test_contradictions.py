"""Answers that contradict themselves or come in odd forms: what was shown is kept, and asked for once."""

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from lab_host import JSON, USAGE, body, events_of, host
from litellm_support import IGNORED_WARNINGS, needs_litellm
from llm_provider import APIResponseValidationError, Client, Delta, LengthFinishReasonError, Response
from llm_provider._core.batches.journal import Journal
from llm_provider.simulator import Fault, Simulator
from openai_support import completion
from raw_server import answering, streaming
from support import ask

pytestmark = IGNORED_WARNINGS

NUMBER = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "a": {"type": "number"}},
    "required": ["n"],
    "additionalProperties": False,
}


def numbered(events: list[JSON], numbers: str) -> list[JSON]:
    return [
        {**event, "sequence_number": {"zeros": 0, "restarts": place % 4, "gaps": 3 * place}[numbers]}
        for place, event in enumerate(events)
    ]


def ask_responses(client: Client, way: str, deltas: list[Delta] | None = None, **more: Any) -> Response:
    response = ask(client, way, "lab/m", deltas=deltas, endpoint="responses", **more)
    assert isinstance(response, Response)
    return response


class TestNumbersOfEvents:
    @pytest.mark.parametrize("numbers", ["zeros", "restarts", "gaps"])
    @pytest.mark.parametrize("way", ["stream", "astream"])
    def test_lose_no_text(self, tmp_path: Path, way: str, numbers: str) -> None:
        reply = body((None, "The answer is not 42."), (None, "haha haha"))
        events = numbered(events_of(reply, pieces=5, output=[]), numbers)
        with host(streaming(events, done=False), tmp_path) as (client, server):
            deltas: list[Delta] = []
            response = ask_responses(client, way, deltas)
            shown = "".join(delta.text for delta in deltas)
            assert shown == response.text == "The answer is not 42.haha haha"
            again = ask_responses(client, "call")
            assert (again.cached, again.text, server.requests) == (True, response.text, 1)

    def test_equal_pieces_with_one_number_are_two(self, tmp_path: Path) -> None:
        piece = {"type": "response.output_text.delta", "sequence_number": 0, "delta": "ha"}
        last = {
            "type": "response.completed",
            "response": {"status": "completed", "output": [], "usage": USAGE},
        }
        with host(streaming([piece, piece, last], done=False), tmp_path) as (client, _):
            assert ask_responses(client, "stream").text == "haha"


class TestEndsWithOtherWords:
    TEXT = "The answer\n is not 42."

    @pytest.mark.parametrize("told", ["The answer is not 42.", "The  answer\n is not 42. "])
    def test_other_blanks_are_the_same_answer(self, tmp_path: Path, told: str) -> None:
        events = events_of(body((None, self.TEXT)), output=body((None, told))["output"])
        with host(streaming(events, done=False), tmp_path) as (client, server):
            deltas: list[Delta] = []
            response = ask_responses(client, "stream", deltas)
            assert "".join(delta.text for delta in deltas) == response.text == self.TEXT
            assert response.finish_reason == "stop"
            again = ask_responses(client, "call")
            assert (again.cached, again.text, server.requests) == (True, self.TEXT, 1)

    @pytest.mark.parametrize("told", ["The answer", "The answer is 42."])
    @pytest.mark.parametrize("where", ["item", "part", "text", "last"])
    def test_other_words_are_shown_and_not_stored(self, tmp_path: Path, where: str, told: str) -> None:
        events = events_of(body((None, self.TEXT)))
        place = {"output_index": 0, "content_index": 0}
        changed = body((None, told))["output"]
        end: JSON = {
            "item": {"type": "response.output_item.done", **place, "item": changed[0]},
            "part": {"type": "response.content_part.done", **place, "part": changed[0]["content"][0]},
            "text": {"type": "response.output_text.done", **place, "text": told},
            "last": {"type": "response.completed", "response": body((None, told))},
        }[where]
        events = [*events[:-2], *([] if where == "item" else events[-2:-1]), end, *events[-1:]]
        with host(streaming(events, done=False), tmp_path) as (client, server):
            for sent in (1, 2):
                deltas: list[Delta] = []
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    response = ask_responses(client, "stream", deltas)
                assert "".join(delta.text for delta in deltas) == response.text == self.TEXT
                assert (response.finish_reason, response.cached) == ("unknown", False)
                assert response.cost == pytest.approx(18e-6)
                assert [str(each.message).partition(":")[0] for each in caught] == [
                    "an answer's stream has shown another text than its end says"
                ]
                assert server.requests == sent

    def test_an_end_without_words_says_nothing(self, tmp_path: Path) -> None:
        reply = body((None, "4"))
        empty = [{**reply["output"][0], "content": []}]
        events = [*events_of(reply, output=empty)]
        events[-2]["item"] = {**reply["output"][0], "content": []}
        with host(streaming(events, done=False), tmp_path) as (client, _):
            response = ask_responses(client, "stream")
            assert (response.text, response.finish_reason) == ("4", "stop")
            assert ask_responses(client, "call").cached


WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


class TestArguments:
    @pytest.mark.parametrize("where", ["arguments", "item", "deltas"])
    @pytest.mark.parametrize("last", ["empty", "absent", "no output"])
    def test_come_in_any_one_event(self, tmp_path: Path, where: str, last: str) -> None:
        whole = '{"city": "Oslo"}'
        place = {"output_index": 0, "item_id": "fc_1"}
        call = {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "weather",
            "arguments": "",
        }
        name = "response.function_call_arguments"
        told = {**call, "arguments": whole} if where == "item" else call
        events: list[JSON] = [
            {"type": "response.created", "response": {}},
            {"type": "response.output_item.added", **place, "item": call},
            *([{"type": f"{name}.delta", **place, "delta": whole}] if where == "deltas" else ()),
            {"type": f"{name}.done", **place, "arguments": whole if where == "arguments" else ""},
            {"type": "response.output_item.done", **place, "item": told},
        ]
        absent = {name: value for name, value in call.items() if name != "arguments"}
        output = {"empty": [call], "absent": [absent], "no output": []}[last]
        events.append({"type": "response.completed", "response": {**body(), "output": output}})
        with host(streaming(events, done=False), tmp_path) as (client, _):
            deltas: list[Delta] = []
            response = ask_responses(client, "stream", deltas, tools=[WEATHER])
            (found,) = response.tool_calls
            assert (found.id, found.name, found.parsed_arguments) == ("call_1", "weather", {"city": "Oslo"})
            assert "".join(each.arguments for delta in deltas for each in delta.tool_calls) == whole
            again = ask_responses(client, "call", tools=[WEATHER])
            assert (again.cached, again.tool_calls) == (True, response.tool_calls)


class TestPhases:
    FINAL = '{"n": 4}'

    @pytest.mark.parametrize("way", ["call", "stream", "call_many"])
    @pytest.mark.parametrize(
        ("texts", "parsed"),
        [
            ([("commentary", '{"n": 1}'), ("final_answer", FINAL)], {"n": 4}),
            ([("commentary", "I will add."), ("final_answer", FINAL)], {"n": 4}),
            ([("commentary", "I will add."), (None, FINAL)], {"n": 4}),
            ([("final_answer", FINAL), ("commentary", "Added.")], {"n": 4}),
            ([("commentary", FINAL)], {"n": 4}),
        ],
    )
    def test_the_final_answer_is_parsed(
        self, tmp_path: Path, way: str, texts: list[tuple[str, str]], parsed: JSON
    ) -> None:
        reply = body(*texts)
        streams = way == "stream"
        sent = streaming(events_of(reply), done=False) if streams else answering(json.dumps(reply).encode())
        with host(sent, tmp_path) as (client, server):
            for cached in (False, True):
                response = ask_responses(client, way, response_format=NUMBER)
                assert response.parsed == parsed
                assert response.text == response.message["content"] == "".join(text for _, text in texts)
                assert Response.from_dict(response.to_dict()).parsed == parsed
                assert response.cached == cached
            assert server.requests == 1


class TestLimits:
    @pytest.mark.parametrize("way", ["call", "stream", "call_many"])
    def test_an_answer_with_all_its_tokens_was_cut(self, tmp_path: Path, way: str) -> None:
        reply = body((None, "The answer is"))
        streams = way == "stream"
        sent = streaming(events_of(reply), done=False) if streams else answering(json.dumps(reply).encode())
        with host(sent, tmp_path, dialect="llama.cpp") as (client, server):
            for requests in (1, 2):
                response = ask_responses(client, way, max_tokens=8, response_format=NUMBER)
                assert (response.finish_reason, response.text) == ("length", "The answer is")
                with pytest.raises(LengthFinishReasonError):
                    _ = response.parsed
                assert server.requests == requests
            # An answer with another number of tokens was not cut there.
            assert ask_responses(client, way, max_tokens=9).finish_reason == "stop"

    def test_a_stored_answer_is_judged_again(self, tmp_path: Path) -> None:
        sent = answering(json.dumps(body((None, "The answer is"))).encode())
        with host(sent, tmp_path, dialect="vllm") as (client, _):
            # vLLM says which answers are cut, so this one is stored.
            assert ask_responses(client, "call", max_tokens=8).finish_reason == "stop"
            assert ask_responses(client, "call", max_tokens=8).cached
        with host(sent, tmp_path, dialect="llama.cpp") as (client, server):
            response = ask_responses(client, "call", max_tokens=8)
            assert (response.finish_reason, response.cached, server.requests) == ("length", False, 1)


# The order of the fields is not that of the schema, and the integer has 70 bits.
OBJECT = '{"n":1180591620717411303424,"a":1.5}'


def whole_json(content: str) -> bytes:
    return json.dumps(completion({"content": "CONTENT"})).replace('"CONTENT"', content).encode()


class TestContentOfJSON:
    @pytest.mark.parametrize("way", ["call", "acall", "call_many"])
    def test_is_the_answer(self, tmp_path: Path, way: str) -> None:
        with host(answering(whole_json(OBJECT)), tmp_path) as (client, server):
            for _ in range(2):
                response = ask(client, way, "lab/m", response_format=NUMBER)
                assert response.text == response.message["content"] == OBJECT
                assert response.parsed == {"n": 2**70, "a": 1.5}
            assert (response.cached, server.requests) == (True, 1)

    @needs_litellm
    @pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
    def test_through_litellm_is_asked_for_once(self, tmp_path: Path) -> None:
        """litellm refuses such an answer of a host that is compatible with OpenAI, but not a stream's."""
        with host(answering(whole_json(OBJECT)), tmp_path) as (client, server):
            more = {"base_url": f"{server.root}/v1", "api_key": "k", "response_format": NUMBER}
            with pytest.raises(APIResponseValidationError, match="another route than litellm"):
                ask(client, "call", "litellm/openai/m", **more)
            assert server.requests == 1
            assert ask(client, "stream", "litellm/openai/m", **more).text == OBJECT

    @pytest.mark.parametrize("content", [OBJECT, "[1,2]", '[{"type":"fruit","name":"fig"}]', "42", "true"])
    def test_may_be_any_json(self, tmp_path: Path, content: str) -> None:
        chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": "CONTENT"}}]}
        end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
        events = f"data: {json.dumps(chunk)}\n\ndata: {json.dumps(end)}\n\ndata: [DONE]\n\n"
        sent = events.replace('"CONTENT"', content).encode()
        with host(answering(sent, headers={"content-type": "text/event-stream"})) as (client, _):
            deltas: list[Delta] = []
            response = ask(client, "stream", "lab/m", deltas=deltas, cache=False)
            assert "".join(delta.text for delta in deltas) == response.text == content
        with host(answering(whole_json(content))) as (client, server):
            assert ask(client, "call", "lab/m", cache=False).text == content
            assert server.requests == 1

    def test_parts_stay_parts(self) -> None:
        parts = [{"type": "text", "text": "See "}, {"type": "reference", "reference_ids": [1]}]
        with host(answering(json.dumps(completion({"content": parts})).encode())) as (client, _):
            response = ask(client, "call", "lab/m", cache=False)
            assert (response.text, response.message["content"]) == ("See ", parts)

    def test_in_the_row_of_a_batch(self, simulator: Simulator, tmp_path: Path) -> None:
        with Client(cache_dir=tmp_path) as client:
            batch = client.submit_many("gpt-5.5", ["4?"], response_format=NUMBER)
            (record,) = Journal(client.cache.directory / "batches").records()
            (row,) = record.rows
            answer = whole_json(OBJECT).decode()
            line = f'{{"custom_id":"{row}","response":{{"status_code":200,"body":{answer}}}}}\n'
            simulator.inject(Fault(body=line.encode()), match="files.download")
            (response,) = batch.results().ok
            assert (response.text, response.parsed) == (OBJECT, {"n": 2**70, "a": 1.5})


class TestIndexesOfCalls:
    @pytest.mark.parametrize("indexes", [(-1, -1), (None, None), ("0", "1"), (1, 2), (-1, 0), ("", "")])
    @pytest.mark.parametrize("apart", [True, False])
    def test_may_be_anything(self, tmp_path: Path, indexes: tuple[Any, Any], apart: bool) -> None:
        """As Z.ai sends whole calls, with arguments that are objects."""
        calls = [
            {
                "id": f"call_{number}",
                "index": index,
                "type": "function",
                "function": {"name": "weather", "arguments": {"day": number}},
            }
            for number, index in enumerate(indexes)
        ]
        groups = [[call] for call in calls] if apart else [calls]
        chunks = [{"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": group}}]} for group in groups]
        end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
        with host(streaming([*chunks, end]), tmp_path) as (client, server):
            deltas: list[Delta] = []
            response = ask(client, "stream", "lab/m", deltas=deltas, tools=[WEATHER])
            found = [(call.id, call.parsed_arguments) for call in response.tool_calls]
            assert found == [("call_0", {"day": 0}), ("call_1", {"day": 1})]
            shown = [call for delta in deltas for call in delta.tool_calls]
            assert [(call.index, call.id) for call in shown] == [(0, "call_0"), (1, "call_1")]
            assert (ask(client, "call", "lab/m", tools=[WEATHER]).cached, server.requests) == (True, 1)

    def test_an_id_tells_calls_of_one_index_apart(self) -> None:
        def chunk(identifier: str, **function: str) -> JSON:
            call = {"id": identifier, "index": -1, "type": "function", "function": function}
            return {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}

        chunks = [
            chunk("a", name="weather", arguments='{"day"'),
            chunk("b", name="weather", arguments='{"day"'),
            chunk("a", arguments=": 1}"),
            chunk("b", arguments=": 2}"),
            {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        ]
        with host(streaming(chunks)) as (client, _):
            response = ask(client, "stream", "lab/m", tools=[WEATHER], cache=False)
            days = [(call.id, call.parsed_arguments) for call in response.tool_calls]
            assert days == [("a", {"day": 1}), ("b", {"day": 2})]
